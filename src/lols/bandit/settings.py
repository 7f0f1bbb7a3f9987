"""The settings of a bandit: checked once, and written into its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lols.bandit.estimates import check_estimator_name
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.walk import EXPLORATIONS, UNIFORM
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings

BAG, STEPS, DEVIATION = "bag", "steps", "deviation"
KINDS = {"exploration": (*EXPLORATIONS, BAG), "randomise": (DEVIATION, STEPS), "exploit": ("last", "drawn", "average")}
# Options that have an effect beside some values of others only, and their defaults there.
DEPENDENT: dict[str, Any] = {"beta": 0.5, "width": 0.15, "bag": 5, "keep": 10}


def without_effect(
    exploration: str = "plausible", randomise: str = DEVIATION, exploit: str = "average"
) -> dict[str, str]:
    """The options that change nothing beside these three, and why.

    >>> list(without_effect(exploration="uniform"))
    ['width', 'bag', 'keep']
    """
    found = {
        "beta": (randomise == STEPS, "with randomise='steps' every action is drawn, so no deviation is completed"),
        "width": (exploration == "uniform", "exploration is 'uniform'"),
        "bag": (exploration != BAG, f"exploration is '{exploration}', not 'bag'"),
        "keep": (exploit != "drawn", f"exploit is '{exploit}', not 'drawn'"),
    }
    return {name: why for name, (moot, why) in found.items() if moot}


def effective(exploration: str, randomise: str, exploit: str, **given: Any) -> dict[str, Any]:
    """The options of `DEPENDENT`, with defaults for None; one that is given and has no effect is an error."""
    for name, why in without_effect(exploration, randomise, exploit).items():
        if given[name] is not None:
            raise ConfigurationError(f"{name} has no effect: {why}; leave it out")
    return {name: default if given[name] is None else given[name] for name, default in DEPENDENT.items()}


@dataclass(frozen=True)
class BanditSettings:
    """The options of `StructuredBandit` that decisions depend on; see there."""

    epsilon: float | str
    beta: float
    exploration: str
    width: float
    bag: int
    randomise: str
    estimator: str
    exploit: str
    keep: int
    learner: LearnerSettings
    advice: float
    baseline: bool
    patience: int
    seed: int

    def __post_init__(self) -> None:
        for name, kinds in KINDS.items():
            value = getattr(self, name)
            if value not in kinds:
                raise ConfigurationError(f"unknown {name} '{value}': choose {', '.join(kinds)}")
        epsilon_schedule(self.epsilon, actions=2)
        if not 0.0 <= self.beta <= 1.0:
            raise ConfigurationError(f"beta is {self.beta}; it is a probability, from 0 to 1")
        if not self.width > 0.0:
            raise ConfigurationError(f"width is {self.width}; it must be positive")
        if not self.advice >= 0.0:
            raise ConfigurationError(f"advice is {self.advice}; it must not be negative")
        for name, least in (("keep", 1), ("patience", 1), ("bag", 2)):
            if getattr(self, name) < least:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if self.exploration == BAG:
            if self.width > 1.0:
                raise ConfigurationError(f"width is {self.width}; for a bag it is a share, from 0 to 1")
            if self.randomise == STEPS:
                raise ConfigurationError("a bag explores by single deviations: leave randomise='steps' out")
        check_estimator_name(self.estimator, self.learner.reduction)

    @property
    def drawing(self) -> int:
        """How kernels draw actions; for a bag, they are given the chances instead."""
        return EXPLORATIONS.get(self.exploration, UNIFORM)
