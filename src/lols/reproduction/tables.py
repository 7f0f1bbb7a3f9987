"""From runs to tables: means and standard deviations over seeds, the paper's figures beside them, curves, β."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lols.reproduction.cells import Run
from lols.reproduction.data import DataPlace
from lols.reproduction.paper import PAPER, paper_figure, sampling_error
from lols.reproduction.plan import COIN, CURVES, Cell, TableSpec, beta_row, run_as

__all__ = ["make_table"]


def make_table(
    place: DataPlace,
    runs: Mapping[str, Run],
    *,
    seeds: int,
    betas: Sequence[float],
    command: str = "",
) -> dict[str, Any]:
    """A table as plain values; cells that have not run yet are left out."""
    spec = place.spec
    look = _Look(spec, runs, seeds)
    of_paper = PAPER[spec.paper]
    made: dict[str, Any] = {
        "title": spec.title,
        "task": spec.task,
        "metric": spec.metric,
        "unit": "cost" if spec.metric == "cost" else "percent",
        "higher_is_better": spec.higher,
        "points": spec.points,
        "paper_table": of_paper.number,
        "paper_name": spec.paper,
        "data": place.about,
        "passes": place.passes,
        "teachers": list(spec.teachers),
        "learners": list(spec.learners),
        "rows": list(spec.rows),
        "items": max((run.items for key, run in runs.items() if key.startswith(f"{spec.name}|")), default=0),
        "cells": [],
        "curves": [],
        "beta": None,
        "coins": None,
        "command": command,
    }
    for teacher in spec.teachers:
        for learner in spec.learners:
            for row in spec.rows:
                found = look.figures(row, teacher, learner)
                if found is None:
                    continue
                printed = paper_figure(spec.paper, teacher, row)
                made["cells"].append({"row": row, "teacher": teacher, "learner": learner, **found, "paper": printed})
                if row in CURVES:
                    curve = look.curve(row, teacher, learner)
                    passes = list(range(1, len(curve) + 1))
                    made["curves"].append(
                        {"row": row, "teacher": teacher, "learner": learner, "passes": passes, "values": curve}
                    )
    if betas:
        cells = [
            {"teacher": teacher, "beta": beta, "learner": learner, **found}
            for teacher in spec.teachers
            for learner in spec.learners
            for beta in betas
            if (found := look.figures(beta_row(beta), teacher, learner)) is not None
        ]
        made["beta"] = {"teachers": list(spec.teachers), "betas": list(betas), "cells": cells}
    if spec.coins:
        made["coins"] = [
            {"coin": coin, "teacher": "optimal", "learner": learner, **found}
            for learner in spec.learners
            for coin, row in (("state", "learned/mixture"), ("rollout", COIN))
            if (found := look.figures(row, "optimal", learner)) is not None
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

    def figures(self, row: str, teacher: str, learner: str) -> dict[str, Any] | None:
        """Values, mean, standard deviation and standard error; None where nothing has run."""
        runs = self.found(row, teacher, learner)
        if not runs:
            return None
        values = [run.values[-1] * self.spec.scale for run in runs]
        mean = statistics.fmean(values)
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        if len(values) > 1:
            error = max(sd, self.usual(teacher, learner)) / len(values) ** 0.5
        else:
            error = sampling_error(mean / self.spec.scale, runs[0].items, runs[0].most) * self.spec.scale
        seconds = statistics.fmean(run.seconds for run in runs)
        return {"values": values, "mean": mean, "sd": sd, "se": error, "seconds": seconds}

    def usual(self, teacher: str, learner: str) -> float:
        """The standard deviation over seeds of all strategies together: a few seeds may agree by chance."""
        known = [[run.values[-1] for run in self.found(row, teacher, learner)] for row in self.spec.rows]
        spread = [statistics.variance(values) for values in known if len(values) > 1]
        return statistics.fmean(spread) ** 0.5 * self.spec.scale if spread else 0.0

    def curve(self, row: str, teacher: str, learner: str) -> list[float]:
        """The mean after each pass."""
        runs = self.found(row, teacher, learner)
        return [statistics.fmean(run.values[k] for run in runs) * self.spec.scale for k in range(len(runs[0].values))]
