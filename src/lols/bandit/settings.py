"""The settings of a bandit: checked once, and written into its log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lols.bandit.estimates import check_estimator_name
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.walk import EXPLORATIONS, UNIFORM
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings

BAG, STEPS, DEVIATION = "bag", "steps", "deviation"
SAFE, FREE = "safe", "free"
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


# Options of bandits whose every step is drawn by inverse gap weighting, and of those that deviate once in a round. An
# option that is not given is that of the algorithm; one that only another algorithm has is an error, or chooses that.
GAPS: dict[str, Any] = {
    "epsilon": 1.0,
    "exploration": "gap",
    "randomise": STEPS,
    "estimator": "all",
    "exploit": "last",
    "baseline": False,
    "learner": LearnerSettings("csoaa", "sketch", directions=32),
}
DEVIATIONS: dict[str, Any] = {
    "epsilon": 0.1,
    "exploration": "plausible",
    "randomise": DEVIATION,
    "exploit": "average",
    "baseline": True,
}
PAPER = DEVIATIONS | {"exploration": "uniform", "estimator": "ips", "exploit": "drawn", "baseline": False}
ALGORITHMS = {"gaps": GAPS, "deviations": DEVIATIONS, "paper": PAPER}
ONLY_GAPS = ("gap", "optimism", "pace")
ONLY_DEVIATIONS = ("exploration", "randomise", "estimator", "exploit", *DEPENDENT)
GUARDED = 0.1  # epsilon with a guard
RATE, ADVICE = 0.1, 0.1


def algorithm_of(given: Mapping[str, Any]) -> str:
    """The algorithm that options are of: the default one, unless they say something else.

    >>> algorithm_of({}), algorithm_of({"randomise": "steps"}), algorithm_of({"learner": "hinge"})
    ('gaps', 'deviations', 'deviations')
    """
    learner, update = given.get("learner"), given.get("update")
    if isinstance(learner, LearnerSettings):
        update = learner.update
    other = (learner is not None or update is not None) and update != "sketch"
    return "deviations" if other or any(name in given for name in ONLY_DEVIATIONS) else "gaps"


def settings_of(algorithm: str | None, *, by_rules: bool, guard: bool, **options: Any) -> BanditSettings:
    """The settings of a bandit, from the options that are not None.

    `by_rules` says whether its reference names one action, and does not draw at random.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if algorithm is None:
        algorithm = algorithm_of(given)
    if algorithm not in ALGORITHMS:
        raise ConfigurationError(f"unknown algorithm '{algorithm}': choose {', '.join(ALGORITHMS)}")
    gaps = algorithm == "gaps"
    for name in ONLY_DEVIATIONS if gaps else ONLY_GAPS:
        if name in given:
            raise ConfigurationError(f"{name} has no effect: the algorithm is '{algorithm}'; leave it out")
    if algorithm == "paper":
        own = [name for name in (*ONLY_DEVIATIONS[:4], "baseline", "advice") if name in given] + ["guard"] * guard
        if own:
            raise ConfigurationError(f"{own[0]} is part of Algorithm 2: leave it out, or choose another algorithm")
    chosen = ALGORITHMS[algorithm] | {"epsilon": GUARDED if guard else ALGORITHMS[algorithm]["epsilon"]} | given
    chosen["learner"] = _learner(algorithm, chosen.get("learner"), chosen.pop("update", None))
    chosen.setdefault("estimator", "mtr" if chosen["learner"].reduction == "csoaa" else "dr")
    if chosen["estimator"] == "auto":
        chosen["estimator"] = "mtr" if chosen["learner"].reduction == "csoaa" else "dr"
    chosen.setdefault("advice", ADVICE if by_rules and algorithm == "deviations" else 0.0)
    chosen.setdefault("pace", SAFE if gaps else FREE)
    dependent = {name: chosen.pop(name, None) for name in DEPENDENT}
    kinds = (chosen["exploration"], chosen["randomise"], chosen["exploit"])
    return BanditSettings(**chosen, **effective(*kinds, **dependent))


def _learner(algorithm: str, learner: Any, update: str | None) -> LearnerSettings:
    """The settings of a learner, from a name and an update, or as they are."""
    if isinstance(learner, LearnerSettings) and learner is not GAPS["learner"]:
        if update is not None:
            raise ConfigurationError("update has no effect: set it in the LearnerSettings")
        return learner
    if algorithm == "gaps" and update in (None, "sketch"):
        found: LearnerSettings = GAPS["learner"]
        return found
    name = "csoaa" if learner is None or isinstance(learner, LearnerSettings) else learner
    calm = name == "csoaa" and update in (None, "nag")
    return LearnerSettings(name, update or ("nag" if calm else "adagrad"), rate=RATE if calm else None)


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
    gap: float = 50.0
    optimism: float = 0.3
    pace: str = FREE

    def __post_init__(self) -> None:
        for name, kinds in KINDS.items():
            value = getattr(self, name)
            if value not in kinds:
                raise ConfigurationError(f"unknown {name} '{value}': choose {', '.join(kinds)}")
        epsilon_schedule(self.epsilon, actions=2)
        if not 0.0 <= self.beta <= 1.0:
            raise ConfigurationError(f"beta is {self.beta}; it is a probability, from 0 to 1")
        for name in ("gap", "optimism"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; it must be a number from 0 on")
        if self.pace not in (SAFE, FREE):
            raise ConfigurationError(f"unknown pace '{self.pace}': choose {SAFE} or {FREE}")
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
