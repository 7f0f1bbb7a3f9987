"""Trials of settings, and the file in which a training that may be killed keeps those that are done."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.best_pass import trials_beside
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.targets import Targets

Settings = dict[str, Any]


class Trial(NamedTuple):
    """Settings, and what the predictions of a model trained with them cost on rows held out, by passes."""

    settings: Settings
    costs: dict[int, float]

    @property
    def cost(self) -> float:
        """The least cost."""
        return min(self.costs.values())

    @property
    def passes(self) -> int:
        """The fewest passes with the least cost."""
        return min(self.costs, key=lambda passes: (self.costs[passes], passes))

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return self.settings | {"passes": self.passes, "cost": self.cost}


class KeptTrials:
    """What trials cost, by a digest of all that they depend on; in a file beside the checkpoint, if there is one."""

    def __init__(self, checkpoint: str | os.PathLike[str] | None, *, resume: bool = False):
        self.path = None if checkpoint is None else trials_beside(checkpoint)
        self.costs: dict[str, dict[str, float]] = {}
        if self.path is not None and resume and Path(self.path).exists():
            costs = read_tensors(self.path, "trials")[0].get("costs")
            if not isinstance(costs, dict) or not all(_are_costs(each) for each in costs.values()):
                raise ModelFileError(f"{self.path}: damaged; delete it, and resume again")
            self.costs = costs

    def key(self, estimator: Any, settings: Settings, rows: Rows, targets: Targets) -> str | None:
        """What a trial is found by; None where nothing is kept."""
        if self.path is None:
            return None
        given = [estimator._options(), settings, [str(name) for name in targets.classes]]
        made = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode())
        for array in (*rows, targets.labels, targets.matrix, targets.vectors, targets.weights):
            made.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        return made.hexdigest()

    def find(self, key: str | None) -> dict[int, float] | None:
        """What a trial cost, by passes, if it is done."""
        return {int(passes): cost for passes, cost in self.costs[key].items()} if key in self.costs else None

    def keep(self, key: str | None, costs: dict[int, float]) -> None:
        """Write down what a trial cost."""
        if self.path is not None and key is not None and key not in self.costs:
            self.costs[key] = {str(passes): cost for passes, cost in costs.items()}
            write_tensors(self.path, "trials", {"costs": self.costs}, {})


def _are_costs(given: Any) -> bool:
    """Whether these are costs by numbers of passes."""
    return (
        isinstance(given, dict)
        and len(given) > 0
        and all(passes.isdecimal() and len(passes) < 8 for passes in given)
        and all(isinstance(cost, float) and np.isfinite(cost) for cost in given.values())
    )
