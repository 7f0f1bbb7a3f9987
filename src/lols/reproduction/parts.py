"""Parts beside the tables, run and shown: the structured bandit (section 5), and certificates of parsers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

from lols.plots.bandit import bandit_figure
from lols.plots.certificates import regret_figure
from lols.reproduction import charts
from lols.reproduction.cells import trained
from lols.reproduction.data import DataPlace
from lols.reproduction.document import TEXTS, Chart, FigureText, Row, Section, TextTable, Values, figure, verdict
from lols.reproduction.paper import LOLS
from lols.reproduction.plan import Cell, Work
from lols.reproduction.theory.runs import regret_curve

REGRET = "bandit regret"
BANDIT = "bandit "  # how the names of its work begin
LAYOUT_ROUNDS = {True: 4_000, False: 20_000}  # quick or not
TAGGING_ROUNDS = 20_000
REGRET_ROUNDS = {True: (1_000, 3_000, 10_000), False: (1_000, 10_000, 100_000)}
REGRET_SEEDS = {True: 2, False: 4}
HELD_OUT = {True: 300, False: None}

CERTIFICATE = "certificate: "
CERTIFIED_TABLE = "table4"  # here teachers differ most
POLICIES = {
    "LOLS, optimal teacher": Cell(CERTIFIED_TABLE, LOLS, "optimal", "hinge", 0),
    "LOLS, bad teacher": Cell(CERTIFIED_TABLE, LOLS, "bad", "hinge", 0),
    "Reference roll-outs, bad teacher": Cell(CERTIFIED_TABLE, "learned/reference", "bad", "hinge", 0),
}
LEFT_OUT = ("LOLS, optimal teacher",)  # when quick: it has a kernel of its own
SENTENCES = {True: 100, False: 400}  # to certify on, quick or not


# --- the bandit -------------------------------------------------------------------------------------------------------


def bandit_work(quick: bool, seeds: int, data: str | None) -> list[Work]:
    """Simulations, and how the exact regret falls with the rounds; `data` is a folder with the EWT treebank."""
    layout = ("layout", LAYOUT_ROUNDS[quick], seeds, HELD_OUT[quick], None, not quick)
    tagging = ("tagging", TAGGING_ROUNDS, seeds, None, data)
    worlds = [layout] if quick else [layout, tagging]
    work = [Work(BANDIT + str(world[0]), simulated, world) for world in worlds]
    return [*work, Work(REGRET, regret_curve, (REGRET_ROUNDS[quick], REGRET_SEEDS[quick]))]


def simulated(
    world: str, rounds: int, seeds: int, held_out: int | None, data: str | None, full_information: bool = True
) -> dict[str, Any]:
    """What `lols bandit simulate` gives; without a learner that sees the truth there is less to compile."""
    from lols.bandit.worlds.outcome import summarise
    from lols.bandit.worlds.simulate import simulate_seeds
    from lols.bandit.worlds.world import WorldSpec

    spec = WorldSpec(world, data, held_out=held_out)
    found = summarise(simulate_seeds(spec, {}, rounds, range(seeds), jobs=1, full_information=full_information))
    command = f"lols bandit simulate {world} --rounds {rounds} --seeds {seeds}"
    command += "" if held_out is None else f" --held-out {held_out}"
    return {**found, "command": command + ("" if full_information else " --no-full-information")}


def bandit_section(bandit: Values, command: str) -> Section:
    figures = [_world(name, world, command) for name, world in bandit.get("worlds", {}).items()]
    figures += [_regret(bandit["regret"], command)] if bandit.get("regret") else []
    return Section("The structured bandit", ("Only the loss of what was shown is seen.",), figures)


def _world(name: str, world: Values, command: str) -> FigureText:
    rows, seeds = [], len(world["seeds"])
    for words, key in TEXTS["world"]["losses"].items():
        if world[key] is not None:
            spread = world["intervals"].get(key)
            rows.append([words, f"{world[key]:.4f}" + ("" if spread is None else f" ± {spread:.4f}")])
    band = f"Band and ±: 95 % intervals of the mean over {seeds} seeds." if seeds > 1 else "One seed."
    share, closed = world["gap_closed"], ""
    if share is not None:
        closed = (
            f" The last policy is {100 * share:.0f} % of the way from the reference to a learner with full information."
        )
    chart = Chart(f"bandit-{name}", f"Loss by round: {name}", partial(bandit_figure, world))
    table = TextTable(("loss on held-out objects", "mean"), rows)
    made = figure("world", [table], chart, name=name, rounds=world["rounds"], band=band, closed=closed)
    return made._replace(command=world.get("command") or command)


def _regret(regret: Values, command: str) -> FigureText:
    means = [statistics.fmean(runs) for runs in regret["values"]]
    rows = [[f"{n:,}", f"{mean:.5f}"] for n, mean in zip(regret["rounds"], means)]
    words = " Slope {value:.2f} (95 %: {low:.2f} to {high:.2f}); Corollary 2 promises slope {bound:.2f}."
    slope = words.format(bound=regret["bound"], **regret["slope"]) if math.isfinite(regret["slope"]["value"]) else ""
    chart = Chart("bandit-regret", "Regret by rounds, on logarithmic scales", partial(charts.regret_slope, regret))
    made = figure("regret", [TextTable(("rounds N", "mean regret"), rows, words=0)], chart, slope=slope)
    return made._replace(command=command)


def bandit_rows(bandit: Values, judged: bool) -> list[Row]:
    """Whether the reference is beaten, and whether regret falls as promised, up to the intervals."""
    rows: list[Row] = []
    for name, world in bandit.get("worlds", {}).items():
        (policy, own), (reference, other) = (
            (world[key], world["intervals"].get(key) or 0.0) for key in ("policy_loss", "held_out_reference_loss")
        )
        level = abs(policy - reference) <= math.hypot(own, other)
        word = "no difference" if level else "holds" if policy < reference else "fails"
        here = f"a held-out loss of {policy:.3f}{f' ± {own:.3f}' if own else ''} after learning, {reference:.3f} before"
        if (world["gap_closed"] or 0.0) > 0:
            here += f"; {100 * world['gap_closed']:.0f} % of the way to full information"
        rows.append([verdict(word) if judged else "", f"{name}: the bandit beats its reference", here])
    regret = bandit.get("regret")
    if regret and math.isfinite(regret["slope"]["value"]):
        slope, bound = regret["slope"], regret["bound"]
        word = "holds" if slope["value"] <= bound else "no difference" if slope["low"] <= bound else "fails"
        here = "{value:.2f} (95 %: {low:.2f} to {high:.2f})".format(**slope)
        rows.append([verdict(word), f"Corollary 2: regret falls at least as N to the power of {bound:.2f}", here])
    return rows


# --- certificates -----------------------------------------------------------------------------------------------------


def certify_work(place: DataPlace, quick: bool, command: str) -> list[Work]:
    """Certificates of parsers, where these are trained at all: what Theorem 3 says of policies and their teachers."""
    return [
        Work(
            CERTIFICATE + name,
            certified,
            (cell, place, SENTENCES[quick], command),
            (place.spec.printed.task, cell.teacher),
        )
        for name, cell in POLICIES.items()
        if cell.teacher in place.spec.teachers and not (quick and name in LEFT_OUT)
    ]


def certified(cell: Cell, place: DataPlace, limit: int, command: str) -> dict[str, Any]:
    """Train the parser of a cell, and certify it on the test part."""
    from lols.certificates.certify import certify_case

    case = trained(cell, place).case_of_file(place.test, limit=limit, seed=cell.seed)
    return {**certify_case(case, seed=cell.seed, progress=False).as_dict(), "command": command}


def certificates_section(certificates: Mapping[str, Values], command: str) -> Section:
    """What `lols certify` says of policies, a figure for each."""
    made = [_certificate(k, name, of, command) for k, (name, of) in enumerate(certificates.items(), 1)]
    return Section("Certificates", ("Losses and regrets per example, with 95 % intervals (lols certify).",), made)


def _certificate(number: int, name: str, certificate: Values, command: str) -> FigureText:
    form = ("{value:.4f}", "{low:.4f} to {high:.4f}")
    rows = [
        [words, *(text.format(**certificate[key]) for text in form)]
        for words, key in TEXTS["certificate"]["rows"].items()
    ]
    chart = Chart(f"certificate-{number}", "Regret by step and by decision", partial(regret_figure, certificate))
    drawn = [chart] if certificate["by_step"] else []
    if certificate.get("model") and certificate.get("file"):
        command = f"lols certify {certificate['model']} {certificate['file']}"
    made = figure(
        "certificate", [TextTable(("per example", "mean", "95 % interval"), rows)], *drawn, name=name, **certificate
    )
    return made._replace(command=certificate.get("command") or command)
