"""The records that the learning kernels pass to each other, and the names of reductions and updates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lols.engine.structures import Table
from lols.kernels.layout import Struct

CSOAA, HINGE, SECOC = 0, 1, 2
REDUCTIONS = {"csoaa": CSOAA, "hinge": HINGE, "secoc": SECOC}

NAG, ADAGRAD, GD, RIDGE, PERCEPTRON, SKETCH = range(6)
UPDATES = {"nag": NAG, "adagrad": ADAGRAD, "gd": GD, "ridge": RIDGE, "perceptron": PERCEPTRON, "sketch": SKETCH}
SECOND_ORDER = ("ridge", "sketch")  # they keep more than policies have, and than can be averaged

# Positions in the counters of a learner.
ROUNDS, WEIGHT, NORM, STATES, DROPPED, BAD = 0, 1, 2, 3, 4, 5


class Bank(Struct):
    """Weights by row and column, and further arrays of the update; those that it does not need are empty."""

    table: Table
    weights: np.ndarray  # [row, column]
    squares: np.ndarray  # sums of squared gradients
    sums: np.ndarray  # round-weighted sums of changes, for the averaged policy
    scales: np.ndarray  # largest absolute value of each feature
    base: np.ndarray  # this and the next two are of sketched regression: see `lols.engine.structures.SketchedColumns`
    sketch: np.ndarray
    stamps: np.ndarray
    inverse: np.ndarray  # [column, row, row]: ridge's inverse covariance
    filled: np.ndarray  # rows in use
    most: int

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that grow with the rows."""
        return (*self.first_order(), self.base, self.sketch, self.stamps)

    def first_order(self) -> tuple[np.ndarray, ...]:
        """Those of them that workers send each other."""
        return self.weights, self.squares, self.sums, self.scales


class KernelSettings(Struct):
    """A learner's settings as the kernels see them."""

    reduction: int
    update: int
    rate: float
    margin: float  # -1 for the difference in cost
    weighted: bool  # updates are weighted by the difference in cost
    thresholds: int
    by_action: bool  # actions have their own features
    keep: float = 1.0  # the share of what is known that a turn of a sketch keeps


class LearnerView(NamedTuple):
    """A learner as its kernels see it."""

    shared: Any
    single: Any  # weights of the actions' own features
    recipe: Any
    code: Any  # SECOC's subsets
    work: Any
    counters: Any


class FeaturePart(NamedTuple):
    """Features `first` to `last` of a lesson; their rows in a bank are `rows[0]`, `rows[1]`, ..."""

    bank: Any
    rows: Any
    values: Any
    first: int
    last: int


class Workspace(Struct):
    """Working memory of one learner."""

    rows: np.ndarray
    action_rows: np.ndarray
    columns: np.ndarray
    targets: np.ndarray
    importance: np.ndarray
    gradients: np.ndarray
    sensitivity: np.ndarray
    dense: np.ndarray
    costs: np.ndarray
