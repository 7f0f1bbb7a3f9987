"""A learner's settings: reduction, update, rate, margin and table, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lols.errors import ConfigurationError
from lols.learners.structures import REDUCTIONS, UPDATES

__all__ = ["LearnerSettings"]

DEFAULT_RATES = {
    ("csoaa", "nag"): 0.5,
    ("csoaa", "adagrad"): 0.1,
    ("csoaa", "gd"): 0.05,
    ("hinge", "nag"): 0.5,
    ("hinge", "adagrad"): 0.1,
    ("hinge", "gd"): 2.0,
    ("hinge", "perceptron"): 1.0,
    ("secoc", "nag"): 0.5,
    ("secoc", "adagrad"): 0.1,
    ("secoc", "gd"): 0.05,
    ("secoc", "perceptron"): 1.0,
    ("csoaa", "ridge"): 1.0,
    ("secoc", "ridge"): 1.0,
}


@dataclass(frozen=True)
class LearnerSettings:
    """How costs become a policy.

    Parameters
    ----------
    reduction
        `"hinge"`, `"csoaa"` (the paper's) or `"secoc"`.
    update
        `"adagrad"`, `"nag"` (normalized adaptive invariant: the paper's), `"gd"`, `"ridge"` or `"perceptron"`.
    rate
        Step size; by default one that suits reduction and update. For ridge, the regularisation.
    margin
        The hinge's margin: `"unit"`; `"cost"`, as wide as the difference in cost; or `"weighted"`, a unit margin whose
        updates are weighted by that difference. Without weights it counts how often an action is worse, not by how
        much: it stands noisy costs better, but need not find the action that is best in expectation.
    bits
        None for a table that grows with the features seen, or the base-2 logarithm of a fixed number of rows.
    max_features
        The most rows a growing table takes; features beyond it are dropped and counted.
    thresholds
        SECOC's thresholds per subset.
    slack
        The hinge's: a state that the policy of its batch had right by this much more than the margin is passed over
        without another look; None looks at all. Saves much of the time and changes little.

    Examples
    --------
    >>> LearnerSettings("csoaa", "nag").step
    0.5
    >>> LearnerSettings("csoaa", "perceptron")
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: csoaa cannot use perceptron: choose one of adagrad, gd, nag, ridge

    """

    reduction: str = "hinge"
    update: str = "adagrad"
    rate: float | None = None
    margin: str = "unit"
    bits: int | None = None
    max_features: int = 1 << 26
    thresholds: int = 4
    slack: float | None = None

    def __post_init__(self) -> None:
        for value, names, what in (
            (self.reduction, REDUCTIONS, "learner"),
            (self.update, UPDATES, "update"),
            (self.margin, ("unit", "cost", "weighted"), "margin"),
        ):
            if value not in names:
                raise ConfigurationError(f"unknown {what} '{value}': choose one of {', '.join(sorted(names))}")
        if (self.reduction, self.update) not in DEFAULT_RATES:
            able = sorted(u for r, u in DEFAULT_RATES if r == self.reduction)
            raise ConfigurationError(f"{self.reduction} cannot use {self.update}: choose one of {', '.join(able)}")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ConfigurationError(f"the learning rate is {self.rate}; it must be positive")
        if self.bits is not None and not 1 <= self.bits <= 30:
            raise ConfigurationError(f"bits is {self.bits}; it must be between 1 and 30")
        if self.slack is not None and (self.reduction != "hinge" or not 0 <= self.slack < math.inf):
            raise ConfigurationError(f"slack is {self.slack}; it must be a number from 0 on, for the hinge only")
        if self.max_features < 1 or self.thresholds < 1:
            raise ConfigurationError("max_features and thresholds must be at least 1")

    @property
    def width(self) -> float:
        """How wide the hinge's margin is; -1 if as wide as the difference in cost."""
        return 0.0 if self.update == "perceptron" else -1.0 if self.margin == "cost" else 1.0

    @property
    def only_order(self) -> bool:
        """Whether it only matters which actions are cheapest, not by how much."""
        return self.reduction == "hinge" and self.margin == "unit"

    @property
    def step(self) -> float:
        """The rate in force."""
        return DEFAULT_RATES[self.reduction, self.update] if self.rate is None else self.rate
