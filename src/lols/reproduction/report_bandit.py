"""The report's parts on the bandit and on certificates: losses round by round, regret, and where it arises."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from lols.reproduction.report_charts import Chart, Key, Scale, legend
from lols.reproduction.report_html import Section, figure, panels, plain_table

__all__ = ["bandit_section", "certificates_section"]

Result = Mapping[str, Any]
HELD_OUT = (
    ("rules", "held_out_reference_loss"),
    ("the bandit's last policy", "policy_loss"),
    ("full information", "full_information_loss"),
    ("optimum", "optimum_loss"),
    ("random", "held_out_random_loss"),
)
FIGURES = (
    ("loss", "loss"),
    ("the teacher's loss", "teacher_loss"),
    ("regret to the teacher", "regret_to_teacher"),
    ("regret to one-step deviations, with hindsight", "deviation_regret_hindsight"),
    ("the same within the class of policies", "deviation_regret_in_class"),
)
LONGEST = 22  # characters of a decision's name


def bandit_section(bandit: Result, command: str) -> Section:
    """Every world, and the regret."""
    made = [_world(name, world, command) for name, world in (bandit.get("worlds") or {}).items() if world.get("curve")]
    if bandit.get("regret"):
        made.append(_regret(bandit["regret"], command))
    return "The structured bandit", "\n".join(made)


def _world(name: str, world: Result, command: str) -> str:
    curve, ends = world["curve"], [0, *world["curve"]["rounds"]]
    middles = [(a + b) / 2 for a, b in pairwise(ends)]
    loss, half = curve["loss"], curve.get("loss_interval") or [0.0] * len(curve["loss"])
    levels = [
        (1, "rules", world.get("reference_loss")),
        (2, "full information, held out", world.get("full_information_loss")),
    ]
    known = [(kind, words, float(value)) for kind, words, value in levels if value is not None]
    scale = Scale.around([*loss, *(value for _, _, value in known)], "loss", margin=0.3)
    chart = Chart(f"{name}: {world['rounds']:,} rounds", Scale(0, ends[-1], "rounds"), scale, height=250)
    lower = [(x, max(y - h, scale.low)) for x, y, h in zip(middles, loss, half)]
    upper = [(x, min(y + h, scale.high)) for x, y, h in zip(middles, loss, half)]
    cut = any(y - h < scale.low or y + h > scale.high for y, h in zip(loss, half))
    if any(half):
        chart.band(lower, upper, 0)
    for kind, _, value in known:
        chart.rule(value, kind)
    chart.line(list(zip(middles, loss)), 0, points_too=False)
    spreads = world.get("intervals") or {}
    rows = []
    for words, key in HELD_OUT:
        if world.get(key) is not None:
            spread = spreads.get(key)
            rows.append([escape(words), f"{world[key]:.4f}" + (f" ± {spread:.4f}" if spread is not None else "")])
    table = plain_table(["loss on held-out objects", "mean"], rows)
    seeds = len(world.get("seeds") or [0])
    band = f"Band{', cut at the edges,' if cut else ''} and ±: 95 % intervals of the mean over {seeds} seeds."
    band = band if seeds > 1 else "One seed."
    closed = world.get("gap_closed")
    note = "The loss of what was shown, mean of a window of rounds, beside what the rules would have cost. " + band
    if closed is not None:
        note += (
            f" The last policy is {100 * closed:.0f} % of the way from the rules to a learner with full information."
        )
    body = f'<div class="panels n2">{chart.svg()}{table if rows else ""}</div>'
    keys = legend(
        [Key(0, "the bandit", "bare"), *(Key(kind, f"{words}: {value:.3f}", "rule") for kind, words, value in known)]
    )
    return figure(f"Learning from one loss a round: {name}", body + keys, str(world.get("command") or command), note)


def _regret(regret: Result, command: str) -> str:
    rounds, values, slope = regret["rounds"], regret["values"], regret.get("slope") or {}
    means = [statistics.fmean(runs) for runs in values]
    points = [(n, mean) for n, mean in zip(rounds, means) if mean > 0.0]
    x = Scale.around(rounds, "rounds N, logarithmic", log=True)
    shown = [v for runs in values for v in runs if v > 0.0] or [1.0]
    chart = Chart("Regret against rounds", x, Scale.around(shown, "regret, logarithmic", log=True), height=250)
    keys = [Key(0, "mean over seeds", "point"), Key(4, "one seed", "point")]
    value, height, bound = slope.get("value"), slope.get("height"), regret.get("bound")
    if value is not None and height is not None and math.isfinite(value) and math.isfinite(height):
        chart.line([(n, height * n**value) for n in (rounds[0], rounds[-1])], 0, points_too=False)
        keys.append(Key(0, f"slope {value:.2f} (95 %: {slope['low']:.2f} to {slope['high']:.2f})", "bare"))
    if bound is not None and points:
        first = points[0]
        ends = [(n, first[1] * (n / first[0]) ** bound) for n in (rounds[0], rounds[-1])]
        chart.line([(n, max(v, chart.y.low)) for n, v in ends], 1, points_too=False)
        keys.append(Key(1, f"slope {bound:.2f}, what Corollary 2 promises", "bare"))
    for n, runs in zip(rounds, values):
        chart.points([(n, v) for v in runs if v > 0.0], 4, size=2.2)
    chart.points(points, 0, words="mean regret")
    rows = [[f"{n:,}", f"{mean:.5f}"] for n, mean in zip(rounds, means)]
    table = plain_table(["rounds N", "mean regret"], rows, words=0)
    body = f'<div class="panels n2">{chart.svg()}{table}</div>{legend(keys)}'
    note = (
        "The left side of Theorem 3 at the averaged policy of Algorithm 2, computed exactly; only the runs are random."
    )
    return figure("How the bandit's regret falls", body, str(regret.get("command") or command), note)


# --- certificates -----------------------------------------------------------------------------------------------------


def certificates_section(certificates: Mapping[str, Result], command: str) -> Section:
    """What `lols certify` says of policies: a figure for each, by its name."""
    return "Certificates", "\n".join(_certificate(name, made, command) for name, made in certificates.items())


def _certificate(name: str, made: Result, command: str) -> str:
    rows = []
    for words, key in FIGURES:
        if made.get(key) is not None:
            value = made[key]
            rows.append([escape(words), f"{value['value']:.4f}", f"{value['low']:.4f} to {value['high']:.4f}"])
    body = plain_table(["per example", "mean", "95 % interval"], rows) if rows else ""
    charts = []
    if made.get("by_step"):
        charts.append(_bars("Where in the trajectory", [str(row["step"]) for row in made["by_step"]], made["by_step"]))
    if made.get("by_decision"):
        names = [f"{row['taken']} → {row['better']}" for row in made["by_decision"]]
        charts.append(_bars("On which decisions: taken → better", names, made["by_decision"]))
    if charts:
        body += panels(charts) + legend([Key(0, "with hindsight", "box"), Key(2, "within the class", "box")])
    if made.get("model") and made.get("file"):
        command = f"lols certify {made['model']} {made['file']}"
    return figure(f"{name}: {made['verdict']}", body, str(made.get("command") or command), str(made.get("advice", "")))


def _bars(title: str, names: Sequence[str], rows: Sequence[Result]) -> str:
    """Two bars for each row, the first row on top."""
    short = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names]
    left = 24 + int(6.2 * max(map(len, short)))
    ends = [row[key][end] for row in rows for key in ("hindsight", "in_class") for end in ("low", "high", "value")]
    x = Scale.around([*ends, 0.0], "regret per example", margin=0.03)
    y = Scale(-0.6, len(rows) - 0.4, ticks=[(len(rows) - 1 - k, name) for k, name in enumerate(short)])
    chart = Chart(title, x, y, height=76 + 30 * len(rows), left=left)
    for k, row in enumerate(rows):
        middle = len(rows) - 1 - k
        for kind, key, place in ((0, "hindsight", 0.2), (2, "in_class", -0.2)):
            of = row[key]
            words = f"{names[k]}: {of['value']:.4f} ({of['low']:.4f} to {of['high']:.4f})"
            chart.box((0.0, of["value"]), (middle + place - 0.17, middle + place + 0.17), kind, words)
            chart.across(of["low"], of["high"], middle + place)
    return chart.svg()
