"""A world: objects that arrive, a system to improve, and losses that only the world can compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lols.contract.space import Reference, SearchSpace

Objects = Sequence[Any]


@dataclass(frozen=True)
class World:
    """A task for simulations.

    Objects contain their truth, for `loss` and for the learner with full information; a bandit encodes them without it.
    """

    name: str
    space: SearchSpace
    reference: Reference  # the current system; it does not need the truth
    arrivals: Callable[[int, int], Objects]  # a number of objects, in an order that depends on a seed
    held_out: Objects  # to compare policies on
    loss: Callable[[Any, Any], float]  # the expected loss of an output for an object, from 0 to 1
    feedback: Callable[[Any, Any, int], float]  # the loss as a live system receives it, by a seed: it may be noisy
    at_random: Callable[[Any, int], Any]  # an output whose actions are drawn uniformly, by a seed
    full_information: Callable[[Objects, int], Callable[[Objects], list[Any]]]  # learns from the truth, then predicts
    best: Callable[[Any], Any] | None = None  # the best output, if it can be computed
    options: Mapping[str, Any] = field(default_factory=dict)  # options of a bandit for this world


class WorldSpec(NamedTuple):
    """The arguments of `load_world`, to load the same world in another process."""

    name: str
    data: str | tuple[str, ...] | None = None
    clicks: bool = False
    held_out: int | None = None
