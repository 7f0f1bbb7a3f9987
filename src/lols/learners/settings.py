"""The settings of a learner: reduction, update, rate, margin and table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lols.contract.whole_numbers import check_number
from lols.errors import ConfigurationError, short
from lols.learners.structures import REDUCTIONS, UPDATES

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
    ("csoaa", "sketch"): 1.0,
    ("secoc", "ridge"): 1.0,
}

MARGINS = ("unit", "cost", "weighted", "auto")


@dataclass(frozen=True)
class LearnerSettings:
    """How the learner turns cost vectors into a policy.

    Parameters
    ----------
    reduction
        `"hinge"`, `"csoaa"` (the paper's) or `"secoc"`.
    update
        `"adagrad"`, `"nag"` (normalized adaptive invariant: the paper's), `"gd"`, `"ridge"`, `"sketch"` or
        `"perceptron"`. Ridge regression keeps a matrix of all features; `"sketch"` is ridge regression that keeps a few
        directions of it beside each weight. It takes more time and memory than a gradient, and learns much more from
        few examples; it has no average, as it needs none.
    rate
        Step size; the default depends on reduction and update. For ridge and sketch, the regularisation.
    margin
        Margin of the hinge: `"unit"`; `"cost"`, as wide as the difference in cost; or `"weighted"`, a unit margin with
        updates weighted by that difference. A unit margin depends on how often an action is worse, not on by how much:
        it tolerates noisy costs better, but need not find the action that is best in expectation. `"auto"` looks at the
        costs of the first examples: `"unit"` if they count mistakes, as those of labels do; else `"cost"`.
    directions
        How many directions a sketch keeps of each regression: of each action, or of all together if actions have their
        own features. A weight takes two numbers for each.
    decay
        For a sketch: the share of what is known that each example makes forgotten, so that weights follow a world that
        changes. 0.001 remembers about a thousand examples; 0 forgets nothing.
    bits
        None for a table that grows with the features seen, or the base-2 logarithm of a fixed number of rows.
    max_features
        The most rows of a growing table; further features are dropped and counted.
    thresholds
        Thresholds per subset, for SECOC.
    slack
        For the hinge: skip states that the policy of the batch already classifies with a margin of at least the
        required one plus this; None learns from all. Saves much of the time and changes little.
    scale
        Costs are divided by it before they are learned from. None is the mean cost in the first examples, or 1 if costs
        count mistakes: regression and margins as wide as costs learn well from costs of about 1.

    Examples
    --------
    >>> LearnerSettings("csoaa", "nag").step
    0.5
    >>> LearnerSettings("csoaa", "perceptron")
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: csoaa cannot use perceptron: choose one of adagrad, gd, nag, ridge, sketch

    """

    reduction: str = "hinge"
    update: str = "adagrad"
    rate: float | None = None
    margin: str = "unit"
    directions: int = 20
    decay: float = 0.0
    bits: int | None = None
    max_features: int = 1 << 26
    thresholds: int = 4
    slack: float | None = None
    scale: float | None = 1.0

    def __post_init__(self) -> None:
        for value, names, what in (
            (self.reduction, REDUCTIONS, "learner"),
            (self.update, UPDATES, "update"),
            (self.margin, MARGINS, "margin"),
        ):
            if not isinstance(value, str) or value not in names:
                raise ConfigurationError(f"unknown {what} '{short(value)}': choose one of {', '.join(sorted(names))}")
        for name in ("rate", "bits", "slack", "scale", "max_features", "thresholds", "directions", "decay"):
            check_number(name, getattr(self, name))
        if (self.reduction, self.update) not in DEFAULT_RATES:
            able = sorted(u for r, u in DEFAULT_RATES if r == self.reduction)
            raise ConfigurationError(f"{self.reduction} cannot use {self.update}: choose one of {', '.join(able)}")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ConfigurationError(f"the learning rate is {self.rate}; it must be positive")
        if self.bits is not None and not 1 <= self.bits <= 30:
            raise ConfigurationError(f"bits is {self.bits}; it must be between 1 and 30")
        if self.slack is not None and (self.reduction != "hinge" or not 0 <= self.slack < math.inf):
            raise ConfigurationError(f"slack is {self.slack}; it must be a number from 0 on, for the hinge only")
        if self.scale is not None and not 0 < self.scale < math.inf:
            raise ConfigurationError(f"scale is {self.scale}; it must be positive")
        if not 1 <= self.directions <= 256:
            raise ConfigurationError(f"directions is {self.directions}; it must be between 1 and 256")
        if not 0 <= self.decay < 1:
            raise ConfigurationError(f"decay is {self.decay}; it is a share, from 0 on and below 1")
        if self.max_features < 1 or self.thresholds < 1:
            raise ConfigurationError("max_features and thresholds must be at least 1")
        self._check_effects()

    def _check_effects(self) -> None:
        """Refuse what would change nothing beside the other settings."""
        hinge, perceptron = self.reduction == "hinge", self.update == "perceptron"
        for name, fits, why in (
            ("rate", not perceptron, "every step of a perceptron has size 1"),
            ("margin", hinge, f"{self.reduction} has no margin, only the hinge has"),
            ("margin", not perceptron or self.margin == "weighted", "the margin of a perceptron is 0"),
            ("thresholds", self.reduction == "secoc", f"{self.reduction} has none, only secoc has"),
            ("directions", self.update == "sketch", f"{self.update} keeps none, only sketch does"),
            ("decay", self.update == "sketch", f"{self.update} forgets nothing, only sketch can"),
            ("max_features", self.bits is None, "bits gives the number of rows"),
        ):
            if not fits and getattr(self, name) != type(self).__dataclass_fields__[name].default:
                raise ConfigurationError(f"{name} has no effect: {why}; leave it out")

    @property
    def open(self) -> bool:
        """Whether margin or scale are to follow from the costs."""
        return self.margin == "auto" or self.scale is None

    @property
    def by_size(self) -> bool:
        """Whether it matters how large costs are: for regression, and for margins as wide as costs."""
        return self.reduction == "csoaa" or self.width < 0.0

    def unscaled(self) -> LearnerSettings:
        """The same with a scale that is left open."""
        return replace(self, scale=None)

    def settled(self, costs: np.ndarray, steps: int) -> LearnerSettings:
        """The settings for costs such as these, all above 0, in searches of this many steps.

        Costs that are whole numbers, and no larger than the number of steps, count mistakes.

        >>> LearnerSettings(margin="auto").settled(np.array([1.0, 2.0, 1.0]), steps=5).margin
        'unit'
        >>> settled = LearnerSettings(margin="auto", scale=None).settled(np.array([30.0, 12.5, 7.5]), steps=5)
        >>> settled.margin, round(settled.scale, 3)
        ('cost', 16.667)
        """
        counts = bool(((costs == np.rint(costs)) & (costs <= steps)).all())
        margin = self.margin if self.margin != "auto" else "unit" if counts or self.reduction != "hinge" else "cost"
        scale = self.scale or (1.0 if counts else float(costs.mean()))
        return replace(self, margin=margin, scale=scale)

    @property
    def width(self) -> float:
        """The width of the hinge's margin; -1 for the difference in cost."""
        return 0.0 if self.update == "perceptron" else -1.0 if self.margin in ("cost", "auto") else 1.0

    @property
    def only_order(self) -> bool:
        """Whether learning depends only on which actions are cheapest, not by how much."""
        return self.reduction == "hinge" and self.margin == "unit"

    @property
    def keep(self) -> float:
        """What a turn of a sketch keeps of what is known: it comes after as many examples as there are directions."""
        return (1.0 - self.decay) ** self.directions

    @property
    def step(self) -> float:
        """The rate, or its default."""
        return DEFAULT_RATES[self.reduction, self.update] if self.rate is None else self.rate
