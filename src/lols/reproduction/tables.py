"""A table of the paper: from runs to plain values (means over seeds, curves, β, the coin), and from these to text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lols.reproduction import charts
from lols.reproduction.cells import Run
from lols.reproduction.data import DataPlace
from lols.reproduction.document import FIGURES, TEXTS, Chart, FigureText, Section, TextCell, TextTable, Values, figure
from lols.reproduction.paper import LOLS, PAPER, paper_figure, sampling_error
from lols.reproduction.plan import COIN, CURVES, Cell, TableSpec, beta_row, row_name, run_as

# --- from runs to values ----------------------------------------------------------------------------------------------


def make_table(place: DataPlace, runs: Mapping[str, Run], seeds: int, command: str = "") -> dict[str, Any]:
    """A table as plain values; cells that have not run yet are left out."""
    spec, look = place.spec, _Look(place.spec, runs, seeds)
    pairs = [{"teacher": teacher, "learner": learner} for teacher in spec.teachers for learner in spec.learners]
    optimal = [pair for pair in pairs if pair["teacher"] == "optimal"]
    made: dict[str, Any] = {
        "title": spec.title,
        "task": spec.printed.task,
        "metric": spec.printed.metric,
        "unit": "cost" if spec.printed.metric == "cost" else "percent",
        "higher_is_better": spec.printed.metric != "cost",
        "points": spec.printed.scale / 100.0,  # how much a point is: one of a hundred
        "paper_table": PAPER[spec.paper].number,
        "paper_name": spec.paper,
        "data": place.spec.about,
        "passes": place.spec.passes,
        "teachers": list(spec.teachers),
        "learners": list(spec.learners),
        "rows": list(spec.rows),
        "items": max((run.items for key, run in runs.items() if key.startswith(f"{spec.name}|")), default=0),
        "cells": [
            {"row": row, **pair, **figures, "paper": paper_figure(spec.paper, pair["teacher"], row)}
            for pair in pairs
            for row in spec.rows
            if (figures := look.figures(row, **pair))
        ],
        "curves": [
            {"row": row, **pair, "passes": list(range(1, len(means) + 1)), "values": means, "sd": spreads}
            for pair in pairs
            for row in spec.rows
            if row in CURVES
            for means, spreads in [look.curve(row, **pair)]
            if means
        ],
        "beta": None,
        "coins": None,
        "command": command,
    }
    if spec.betas:
        cells = [
            {"beta": beta, **pair, **figures}
            for pair in pairs
            for beta in spec.betas
            if (figures := look.figures(beta_row(beta), **pair))
        ]
        made["beta"] = {"teachers": list(spec.teachers), "betas": list(spec.betas), "cells": cells}
    if spec.coins:
        made["coins"] = [
            {"coin": coin, **pair, **figures}
            for pair in optimal
            for coin, row in (("state", LOLS), ("rollout", COIN))
            if (figures := look.figures(row, **pair))
        ]
    return made


class _Look:
    """Looks figures up among the runs."""

    def __init__(self, spec: TableSpec, runs: Mapping[str, Run], seeds: int):
        self.spec, self.runs, self.seeds = spec, runs, seeds

    def found(self, row: str, teacher: str, learner: str) -> list[Run]:
        """The runs of all seeds that there are."""
        cells = (Cell(self.spec.name, row, teacher, learner, seed) for seed in range(self.seeds))
        keys = [run_as(cell, self.spec).key for cell in cells]
        return [self.runs[key] for key in keys if key in self.runs]

    def figures(self, row: str, teacher: str, learner: str) -> dict[str, Any]:
        """Values, mean, standard deviation and standard error; nothing where nothing has run."""
        runs, scale = self.found(row, teacher, learner), self.spec.printed.scale
        if not runs:
            return {}
        values = [run.values[-1] * scale for run in runs]
        mean = statistics.fmean(values)
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        if len(values) > 1:
            error = max(sd, self.usual(teacher, learner)) / len(values) ** 0.5
        else:
            error = sampling_error(mean / scale, runs[0].items, runs[0].most) * scale
        seconds = statistics.fmean(run.seconds for run in runs)
        return {"values": values, "mean": mean, "sd": sd, "se": error, "seconds": seconds}

    def usual(self, teacher: str, learner: str) -> float:
        """The standard deviation over seeds of all strategies together: a few seeds may agree by chance."""
        known = [[run.values[-1] for run in self.found(row, teacher, learner)] for row in self.spec.rows]
        spread = [statistics.variance(values) for values in known if len(values) > 1]
        return statistics.fmean(spread) ** 0.5 * self.spec.printed.scale if spread else 0.0

    def curve(self, row: str, teacher: str, learner: str) -> tuple[list[float], list[float]]:
        """Mean and standard deviation after each pass."""
        passes, scale = list(zip(*(run.values for run in self.found(row, teacher, learner)))), self.spec.printed.scale
        means = [statistics.fmean(values) * scale for values in passes]
        return means, [statistics.stdev(values) * scale if len(values) > 1 else 0.0 for values in passes]


# --- from values to a section -----------------------------------------------------------------------------------------


def table_section(name: str, table: Values) -> Section:
    """All that a table has."""
    figures = [strategies(name, table), _curves(name, table), _betas(name, table), _coins(table)]
    made = [one._replace(command=table["command"]) for one in figures if one is not None]
    return Section(f"Table {table['paper_table']}: {table['title']}", _about(table), made)


def _about(table: Values) -> list[str]:
    better = "higher is better" if table["higher_is_better"] else "lower is better"
    metric = TEXTS["metrics"].get(table["metric"], {}).get("words") or str(table["metric"]).capitalize()
    lines = [f"{metric}; {better}; {table['passes']} passes.", f"Ours: {table['data']}."]
    if any(cell["paper"] is not None for cell in table["cells"]):
        paper = PAPER[table["paper_name"]]
        lines.append(f"The paper's figures beside ours: {paper.train}; tested on {paper.test}.")
    return lines


def strategies(name: str, table: Values) -> FigureText:
    """All strategies under all teachers, a table for each learner."""
    seeds = max(len(cell["values"]) for cell in table["cells"])
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    cells = [cell | {"shade": shade} for cell, shade in zip(table["cells"], closeness(table))]
    by_learner = {learner: [c for c in cells if c["learner"] == learner] for learner in table["learners"]}
    tables = [_strategy_table(table, learner, of) for learner, of in by_learner.items() if of]
    chart = Chart(name, f"{table['title']}: heat map", partial(charts.heat_map, table, tables), True)
    return figure("strategies", tables, chart, spread=spread)


def _strategy_table(table: Values, learner: str, cells: Sequence[Values]) -> TextTable:
    teachers = [t for t in table["teachers"] if any(c["teacher"] == t for c in cells)]
    strategies = [r for r in table["rows"] if any(c["row"] == r for c in cells)]
    digits = _paper_digits(table)
    texts: dict[tuple[str, str], TextCell] = {}
    for teacher in teachers:
        column = [cell for cell in cells if cell["teacher"] == teacher]
        for cell, best in zip(column, level_with_best(column, table["higher_is_better"])):
            paper = "" if cell["paper"] is None else f"{cell['paper']:.{digits}f}"
            text = _with_spread(table, cell)
            texts[cell["row"], teacher] = TextCell(text, paper=paper, best=best, shade=cell["shade"])
    rows = [[row_name(row), *(texts.get((row, teacher), "") for teacher in teachers)] for row in strategies]
    marked = strategies.index(LOLS) if LOLS in strategies else None
    columns = ("roll-in / roll-out", *(f"{teacher} teacher" for teacher in teachers))
    return TextTable(columns, rows, TEXTS["learners"].get(learner, learner), marked=marked)


def closeness(table: Values) -> list[float]:
    """How close each cell is to the best of the table: 1 is best, 0 worst.

    The scale is the logarithm of the distance, in units of the median distance, so that the best cells differ visibly
    even where others are far behind.

    >>> cells = [{"mean": 90.0}, {"mean": 88.0}, {"mean": 86.0}, {"mean": 50.0}]
    >>> [round(value, 2) for value in closeness({"cells": cells, "higher_is_better": True})]
    [1.0, 0.81, 0.68, 0.0]
    """
    means = [cell["mean"] for cell in table["cells"]]
    best = max(means) if table["higher_is_better"] else min(means)
    far = [abs(mean - best) for mean in means]
    typical = statistics.median(far) or max(far)
    if not typical:
        return [1.0] * len(far)
    return [1.0 - math.log1p(distance / typical) / math.log1p(max(far) / typical) for distance in far]


def level_with_best(cells: Sequence[Values], higher: bool) -> list[bool]:
    """Which cells are the best, or less than two standard errors behind it.

    >>> level_with_best([{"mean": 1.0, "se": 0.1}, {"mean": 1.2, "se": 0.1}, {"mean": 3.0, "se": 0.1}], False)
    [True, True, False]
    """
    best = (max if higher else min)(cells, key=lambda cell: cell["mean"])
    return [abs(c["mean"] - best["mean"]) <= 2.0 * math.hypot(c["se"], best["se"]) for c in cells]


def _paper_digits(table: Values) -> int:
    """The number of decimals that the paper's figures have."""
    printed = [c["paper"] for c in table["cells"] if c["paper"] is not None]
    return max((len(f"{value:.6g}".partition(".")[2]) for value in printed), default=0)


def shown(table: Values, value: float) -> str:
    """A figure of a table: percentages have two decimals, costs four."""
    return f"{value:.2f}" if table["unit"] == "percent" else f"{value:.4f}"


def _with_spread(table: Values, cell: Values) -> str:
    return shown(table, cell["mean"]) + (f"±{shown(table, cell['sd'])}" if len(cell["values"]) > 1 else "")


def _curves(name: str, table: Values) -> FigureText | None:
    curves = [curve for curve in table["curves"] if len(curve["passes"]) > 1]
    if not curves:
        return None
    passes = max((curve["passes"] for curve in curves), key=len)
    rows = [
        [c["teacher"], c["learner"], row_name(c["row"]), *(shown(table, value) for value in c["values"])]
        for c in curves
    ]
    columns = ("teacher", "learner", "roll-in / roll-out", *(f"pass {number}" for number in passes))
    chart = Chart(f"{name}-curves", "Learning curves", partial(charts.learning_curves, table))
    bands = TEXTS["curves"]["bands"] if any(any(curve["sd"]) for curve in curves) else ""
    return figure("curves", [TextTable(columns, rows, words=3, folded=FIGURES)], chart, bands=bands)


def _betas(name: str, table: Values) -> FigureText | None:
    cells = table["beta"]["cells"] if table["beta"] else []
    if not cells:
        return None
    betas = sorted({cell["beta"] for cell in cells})
    means: dict[tuple[str, str], dict[float, str]] = {}
    for cell in cells:
        means.setdefault((cell["teacher"], cell["learner"]), {})[cell["beta"]] = shown(table, cell["mean"])
    rows = [[*who, *(by_beta.get(beta, "") for beta in betas)] for who, by_beta in means.items()]
    columns = ("teacher", "learner", *(f"β = {beta:g}" for beta in betas))
    chart = Chart(f"{name}-beta", "LOLS by β", partial(charts.beta_sweep, table))
    alike = " All teachers give the same figures: their lines coincide." if _alike(cells) else ""
    bands = TEXTS["curves"]["bands"] if any(cell["sd"] for cell in cells) else ""
    return figure("betas", [TextTable(columns, rows, words=2)], chart, alike=alike, bands=bands)


def _alike(cells: Sequence[Values]) -> bool:
    """Whether several teachers give the same figures for every learner and β."""
    means: dict[tuple[str, float], set[float]] = {}
    for cell in cells:
        means.setdefault((cell["learner"], cell["beta"]), set()).add(cell["mean"])
    return len({cell["teacher"] for cell in cells}) > 1 and all(len(values) == 1 for values in means.values())


def _coins(table: Values) -> FigureText | None:
    """LOLS with one coin for all deviations of a state, and with one for each roll-out."""
    if not table["coins"]:
        return None
    rows = [[TEXTS["coins"][c["coin"]], c["learner"], _with_spread(table, c)] for c in table["coins"]]
    return figure("coins", [TextTable(("LOLS with", "learner", "mean"), rows, words=2)])
