"""From runs to tables: means and standard deviations over seeds, the paper's figures beside them, curves, β."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from lols.reproduction.cells import Run
from lols.reproduction.data import DataPlace
from lols.reproduction.paper import LOLS, PAPER, paper_figure, sampling_error
from lols.reproduction.plan import COIN, CURVES, Cell, TableSpec, beta_row, run_as


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
