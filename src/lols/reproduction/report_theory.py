"""The report's part on the paper's theory: Table 1, Figure 3, Theorem 3 and its gap, and Theorem 4's snakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from lols.reproduction.report_charts import KINDS, Chart, Key, Scale, legend
from lols.reproduction.report_html import Section, figure, panels, plain_table, verdict

__all__ = ["theory_section"]

Result = Mapping[str, Any]
ROLL_OUTS = ("reference", "mixture", "learned")
SLACK = (
    ("averaging", "one change must suit all averaged policies"),
    ("limits", "changes must be in the class"),
    ("teacher", "one better action would help the teacher"),
)


def theory_section(theory: Result, command: str) -> Section:
    """All parts that there are."""
    parts = (
        ("table1", _table_1),
        ("figure3", _figure_3),
        ("theorem3", _theorem_3),
        ("gap", _gap),
        ("snakes", _snakes),
        ("claims", _claims),
    )
    made = [draw(theory[name], command) for name, draw in parts if theory.get(name)]
    return "The theory, computed", "\n".join(made)


def _table_1(cells: Sequence[Result], command: str) -> str:
    rows = []
    for roll_in in dict.fromkeys(cell["roll_in"] for cell in cells):
        here = {cell["roll_out"]: cell for cell in cells if cell["roll_in"] == roll_in}
        rows.append([escape(roll_in), *(_agreement(here[out]) if out in here else "" for out in ROLL_OUTS)])
    agree = sum(bool(cell["agrees"]) for cell in cells)
    note = f"{agree} of {len(cells)} cells come out as the paper prints them."
    heads = ["roll-in", *(f"roll-out: {out}" for out in ROLL_OUTS)]
    return figure("Table 1: what each pair of policies may lead to", plain_table(heads, rows, words=4), command, note)


def _agreement(cell: Result) -> str:
    ours = f"<b>{escape(cell['ours'])}</b>" if cell["ours"] == "good" else escape(cell["ours"])
    same = "✓ as the paper" if cell["agrees"] else f"✗ the paper: {cell['paper']}"
    return f'{ours}<span class="paper">{escape(same)}</span>'


def _figure_3(cells: Sequence[Result], command: str) -> str:
    rows = []
    for world in dict.fromkeys(cell["world"] for cell in cells):
        for roll_in in dict.fromkeys(cell["roll_in"] for cell in cells if cell["world"] == world):
            here = {c["roll_out"]: c for c in cells if c["world"] == world and c["roll_in"] == roll_in}
            losses = [_losses(here[out]) if out in here else "" for out in ROLL_OUTS]
            teacher = next(iter(here.values()))["reference_loss"]
            rows.append([escape(world), escape(roll_in), *losses, f"{teacher:g}"])
    note = (
        "The worst loss of a policy without cost-sensitive regret, then where training ends on average. The last world "
        "is ours, for the cell that the paper has no theorem for."
    )
    body = plain_table(
        ["world", "roll-in", *(f"roll-out: {out}" for out in ROLL_OUTS), "teacher's loss"], rows, words=5
    )
    return figure("Figure 3: three small worlds, and one more", body, command, note)


def _losses(cell: Result) -> str:
    worse = cell["worst_loss"] > cell["reference_loss"]
    word = (
        "worse than the teacher" if worse else "one change is better" if cell["worst_deviation_regret"] > 0 else "good"
    )
    kind = "fails" if worse else "no-difference" if word != "good" else "holds"
    told = f'<span class="paper"><span class="verdict {kind}">{word}</span></span>'
    return f"{cell['worst_loss']:g} → {cell['trained_loss']:.3g}{told}"


def _theorem_3(three: Result, command: str) -> str:
    runs, by_beta = three["runs"], three["by_beta"]
    most = max((run["right"] for run in runs), default=1.0) * 1.04 or 1.0
    lefts = [run["left"] for run in runs]
    scatter = Chart(
        "Both sides, run by run", Scale(-0.02 * most, most, "right side, T δ"),
        Scale.around([*lefts, 0.0, most], "left side", margin=0.03),
    )  # fmt: skip
    scatter.diagonal(most)
    scatter.say(0.72 * most, 0.72 * most, "equal", KINDS, side="end", shift=(-6, 0))
    betas = [row["beta"] for row in by_beta]
    for kind, beta in enumerate(betas):
        scatter.dots([(run["right"], run["left"]) for run in runs if run["beta"] == beta], kind % KINDS)
    height = max((sum(row[name] for name, _ in SLACK) for row in by_beta), default=0.0) or 1.0
    ticks = [(k, f"{beta:g}") for k, beta in enumerate(betas)]
    bars = Chart(
        "Right side less left side, mean", Scale(-0.6, len(betas) - 0.4, "β", ticks=ticks), Scale(0.0, 1.05 * height)
    )
    for k, row in enumerate(by_beta):
        bottom = 0.0
        for kind, (name, words) in enumerate(SLACK):
            bars.box(
                (k - 0.32, k + 0.32),
                (bottom, bottom + row[name]),
                kind,
                f"β = {row['beta']:g}, {words}: {row[name]:.4f}",
            )
            bottom += row[name]
    keys = legend(Key(k % KINDS, f"β = {beta:g}", "dots") for k, beta in enumerate(betas))
    keys += legend(Key(k, words, "box") for k, (_, words) in enumerate(SLACK))
    note = f"The left side exceeds the right one in {three['violations']:,} of {len(runs):,} runs"
    note += f" on {three['spaces']:,} random spaces."
    if three.get("no_regret"):
        falls = ", ".join(f"{row['regret']:.4f} after {row['rounds']:,} rounds" for row in three["no_regret"])
        note += f" Corollary 1: the learner's own part of the right side falls: {falls}."
    return figure("Theorem 3: how tight it is", panels([scatter.svg(), bars.svg()]) + keys, command, note)


def _gap(gap: Result, command: str) -> str:
    rows, charts = gap["spaces"], []
    x = Scale(-0.02, 1.02, "β")
    worlds: dict[str, list[tuple[float, float]]] = {}
    for row in gap["worlds"]:
        worlds.setdefault(row["world"], []).append((row["beta"], row["gap"]))
    exact = Chart(
        "Two worlds, exactly", x, Scale.around([g for w in worlds.values() for _, g in w] + [0.0], "largest gap")
    )
    for kind, points in enumerate(worlds.values()):
        for piece in _pieces(points):
            exact.line(piece, kind % KINDS, points_too=False)
    charts.append(exact.svg())
    means = Chart("Random spaces: mean of it", x, Scale.around([row["mean"] for row in rows] + [0.0], "mean gap"))
    means.line([(row["beta"], row["mean"]) for row in rows], 2, words="mean gap")
    charts.append(means.svg())
    names = (
        ("above_zero", 3, "the gap is above 0"),
        ("worse_than_reference", 4, "its policy is worse than the teacher"),
    )
    shares = [100.0 * row[name] / row["spaces"] for row in rows for name, _, _ in names]
    share = Chart("Random spaces: how often", x, Scale.around([*shares, 0.0], "% of the spaces"))
    for name, kind, words in names:
        share.line([(row["beta"], 100.0 * row[name] / row["spaces"]) for row in rows], kind, words=words)
    charts.append(share.svg())
    of_worlds = [Key(k % KINDS, name, "bare") for k, name in enumerate(worlds)]
    keys = legend([*of_worlds, Key(2, "mean"), *(Key(kind, words) for _, kind, words in names)])
    note = "The largest gap at which a learner without regret may stay. The classes here have all policies."
    title = "The minimum of the average, less the average of the minima"
    return figure(title, panels(charts) + keys, command, note)


def _pieces(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """A line, broken where it jumps."""
    steps = sorted(abs(b[1] - a[1]) for a, b in pairwise(points))
    jump = 4.0 * (steps[len(steps) // 2] if steps else 0.0) + 0.05
    made = [[points[0]]]
    for before, point in pairwise(points):
        if abs(point[1] - before[1]) > jump:
            made.append([])
        made[-1].append(point)
    return made


def _snakes(snakes: Result, command: str) -> str:
    rows, fit = snakes["rows"], snakes["fit"]
    steps = [row["steps"] for row in rows]
    series = (
        ("updates", "updates along a snake"),
        ("hamming_updates", "updates, Hamming loss"),
        ("policies", "policies, 2 to the T"),
    )
    x = Scale(steps[0] - 0.4, steps[-1] + 0.4, "T, decisions", ticks=[(t, str(t)) for t in steps])
    y = Scale.around([row[name] for row in rows for name, _ in series], "updates, logarithmic", log=True)
    chart = Chart("Updates to a local optimum", x, y)
    low, high = steps[0] - 0.2, steps[-1] + 0.2
    chart.line([(t, fit["scale"] * fit["base"] ** t) for t in (low, high)], 5, points_too=False)
    for kind, (name, words) in enumerate(series):
        points = [(row["steps"], row[name]) for row in rows]
        chart.points(points, kind, words=words) if name == "updates" else chart.line(points, kind, words=words)
    for row in rows:
        chart.say(row["steps"], row["updates"], str(row["updates"]), 0, side="middle", shift=(0, -7))
    fitted = Key(5, f"fit: {fit['scale']:.2f} × {fit['base']:.2f} to the T", "bare")
    keys = legend([Key(k, words, "line" if k else "point") for k, (_, words) in enumerate(series)] + [fitted])
    table = plain_table(
        ["T", "policies", "updates", "Algorithm 1", "Hamming loss", "found by"],
        [
            [
                *(
                    f"{row[name]:,}"
                    for name in ("steps", "policies", "updates", "updates_algorithm1", "hamming_updates")
                ),
                escape(row["found_by"]),
            ]
            for row in rows
        ],
        words=0,
    )
    body = f'<div class="panels n2">{chart.svg()}{table}</div>{keys}'
    return figure("Theorem 4: local descent can take exponentially long", body, command)


def _claims(claims: Sequence[Result], command: str) -> str:
    rows = []
    for claim in claims:
        told = f'{escape(claim["paper"])}<span class="paper">Here: {escape(claim["ours"])}</span>'
        rows.append([escape(claim["where"]), verdict("holds" if claim["holds"] else "fails"), told])
    body = plain_table(["where", "", "what the paper says, and what comes out"], rows, words=3)
    return figure("The paper's theory, claim by claim", body, command)
