"""Worlds to try a bandit in: objects that arrive, rules that run today, and a loss that only the world can compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lols.contract.space import Reference, SearchSpace

__all__ = ["World"]

Objects = Sequence[Any]


@dataclass(frozen=True)
class World:
    """What a simulation needs to know of a task.

    Objects carry their truth, for `loss` and for the learner with full information; a bandit encodes them without it.
    """

    name: str
    space: SearchSpace
    rules: Reference  # what runs today; it does not need the truth
    arrivals: Callable[[int, int], Objects]  # so many objects, in the order of a seed
    held_out: Objects  # to compare policies on
    loss: Callable[[Any, Any], float]  # of an output for an object, from 0 to 1, in expectation
    feedback: Callable[[Any, Any, int], float]  # the same as a live system sees it, for one seed: it may be noisy
    at_random: Callable[[Any, int], Any]  # an output whose actions are drawn uniformly, for one seed
    full_information: Callable[[Objects, int], Callable[[Objects], list[Any]]]  # learns with the truth, then predicts
    best: Callable[[Any], Any] | None = None  # the best output of all, where it can be found
    options: Mapping[str, Any] = field(default_factory=dict)  # of a bandit that suits it, where defaults do not
