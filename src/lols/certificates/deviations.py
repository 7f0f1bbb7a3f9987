"""All one-step deviations from a frozen policy, as cost-sensitive examples collected by the engine.

Nothing is pruned, sampled or cut short here: every legal action of every state is rolled out to the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lols.contract.choosing import numbers_within, offsets_within, runs
from lols.contract.space import Reference
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.lock_step import LockStepDriver
from lols.engine.lessons import NO_FEATURES, FeatureRuns, lessons_of, predicted_costs, slots_of
from lols.engine.states import States
from lols.engine.structures import ROLLED_IN, Lessons, Slots
from lols.errors import LolsError
from lols.training.algorithms import Algorithm
from lols.training.deviation_costs import TOGETHER, DeviationCosts, MeasuredPart, exact_plan
from lols.training.model import Model
from lols.training.progress import Progress

NO_ACTIONS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Deviations:
    """The states of some trajectories, one after the other: features, and what each action costs there.

    Costs are those of the whole result, relative to the best action of the state; illegal actions cost infinity.
    `first` says where each example's states begin, and `losses` are those of the trajectories themselves.
    """

    slots: Slots
    first: np.ndarray
    losses: np.ndarray
    compiled: bool = True
    actions: int | None = None  # None if they differ from example to example

    def __len__(self) -> int:
        return self.first.size - 1

    @property
    def costs(self) -> np.ndarray:
        """By state and action."""
        return self.slots.costs

    @cached_property
    def example(self) -> np.ndarray:
        """The example of each state."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def step(self) -> np.ndarray:
        """The step of each state in its example, from 0 on."""
        return np.arange(self.first[-1]) - self.first[:-1][self.example]

    def with_costs(self, costs: np.ndarray) -> Deviations:
        """The same states with other costs, again relative to the best action."""
        relative = (costs - costs.min(axis=1, keepdims=True)).astype(np.float32)
        return replace(self, slots=self.slots._replace(costs=relative))

    def regrets(self, actions: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        """How much more the given actions cost than the best ones, at some states or at all."""
        at = np.arange(actions.size) if states is None else states
        return self.costs[at, actions].astype(np.float64)

    def by_example(self, values: np.ndarray) -> np.ndarray:
        """Sums over the states of each example."""
        return np.bincount(self.example, weights=values, minlength=len(self))

    @cached_property
    def features(self) -> np.ndarray:
        """All features that occur, in order; those of actions among them."""
        parts = [self.slots.ids[: int(self.slots.stop.max(initial=0))]]
        if self.slots.action_stop.size:
            parts.append(self.slots.action_ids[: int(self.slots.action_stop.max())])
        return np.unique(np.concatenate(parts))

    def states_of(self, chosen: np.ndarray) -> np.ndarray:
        """The states of some examples, one after the other."""
        return runs(self.first, chosen)[0]

    def choices(self, policy: Any, states: np.ndarray | None = None, *, best: bool = False) -> np.ndarray:
        """The actions of a policy at each of some states, or at all; with `best`, chosen among the best actions only.

        Of equally cheap actions the first one is taken.
        """
        at = np.arange(self.first[-1]) if states is None else states
        allowed = self.costs[at] <= (0.0 if best else np.finfo(np.float32).max)
        return np.where(allowed, self.predicted(policy, at), np.inf).argmin(axis=1)

    def predicted(self, policy: Any, at: np.ndarray) -> np.ndarray:
        """What a policy predicts for the actions of some states."""
        lessons = lessons_of(self.slots, at, np.ones_like(at), example=at, widest=self.widest)
        return predicted_costs(lessons, policy, compiled=self.compiled)[at]

    @cached_property
    def widest(self) -> int:
        """The most features that a state has."""
        return int((self.slots.stop - self.slots.start).max(initial=0))

    def lessons(self, chosen: np.ndarray) -> Lessons:
        """Some examples in this order, for a learner."""
        own = int((self.slots.action_stop - self.slots.action_start).max(initial=0))
        filled = np.diff(self.first)[chosen]
        return lessons_of(self.slots, self.first[chosen], filled, example=chosen, widest=self.widest, widest_action=own)


@dataclass(frozen=True, kw_only=True)
class OwnDeviations(Deviations):
    """Those of a policy that is not linear. It sees the states again, by the actions that led to them."""

    driver: LockStepDriver
    taken: np.ndarray  # by the roll-ins, example after example

    def predicted(self, policy: Any, at: np.ndarray) -> np.ndarray:
        """What a policy predicts for the actions of some states; those of an example must lie side by side."""
        changes = np.flatnonzero(np.diff(self.example[at], prepend=-1))
        parts = np.split(at, changes[TOGETHER::TOGETHER])
        return np.concatenate([self.driver.costs_of(policy, self.states(part)) for part in parts])

    def states(self, at: np.ndarray) -> States:
        """Some states, as a policy sees them."""
        example = self.example[at]
        return self.driver.states_along(example, self.first[example], self.step[at], self.taken)

    def lesson(self, chosen: np.ndarray) -> tuple[States, np.ndarray, np.ndarray]:
        """Some examples in this order, for a policy to learn from."""
        at = self.states_of(chosen)
        return self.states(at), self.costs[at], self.slots.weight[at]


def collect_deviations(
    model: Model,
    driver: FusedDriver,
    reference: Reference,
    algorithm: Algorithm,
    *,
    beta: float = 0.0,
    beta_in: float = 0.0,
    seed: int = 0,
    bar: Progress | None = None,
    done: int = 0,
) -> Deviations:
    """Roll in and out under the model's policy, as the algorithm says, on all examples of a driver.

    The bar, if there is one, is moved on from `done` steps.
    """
    plan = exact_plan(model.space, reference, algorithm, seed)
    measure = DeviationCosts(driver, model.policy, plan, beta, beta_in)
    pieces: list[_Piece] = []
    loss, count = 0.0, 0
    for part in measure.parts(np.arange(len(driver.examples))):
        pieces.append(_piece(driver, part))
        loss, count = loss + float(pieces[-1].losses.sum()), count + part.filled.size
        if bar is not None:
            done += int(driver.examples.steps[part.batch.lessons.example].sum())
            bar.advance(done, loss=loss / count)
    features, own, costs, filled, losses, taken = zip(*pieces, strict=True)
    all_costs = np.concatenate(costs)
    weight = np.ones(all_costs.shape[0], np.float32)
    slots = slots_of(FeatureRuns.joined(features), all_costs, weight, FeatureRuns.joined(own))
    first, space = offsets_within(np.concatenate(filled)), model.space
    found = slots, first, np.concatenate(losses), model.compiled, space.fixed_actions
    if isinstance(driver, LockStepDriver):
        return OwnDeviations(*found, driver=driver, taken=np.concatenate(taken))
    return Deviations(*found)


class _Piece(NamedTuple):
    """The states of one batch, without the unused room between its examples."""

    features: FeatureRuns
    own: FeatureRuns  # the features of actions
    costs: np.ndarray
    filled: np.ndarray  # how many states each example has
    losses: np.ndarray
    taken: np.ndarray  # the actions, if the policy is not linear


def _piece(driver: FusedDriver, part: MeasuredPart) -> _Piece:
    slots, at = part.batch.lessons.slots, numbers_within(part.batch.lessons.first, part.filled)
    if (part.weight != 1.0).any():
        raise LolsError("a state was left out: deviations must be collected without sampling")
    own = NO_FEATURES
    if slots.action_start.size:
        own = _packed(slots.action_start[at], slots.action_stop[at], slots.action_ids, slots.action_values)
    features = _packed(slots.start[at], slots.stop[at], slots.ids, slots.values)
    taken = driver.taken(part.batch) if isinstance(driver, LockStepDriver) else NO_ACTIONS
    return _Piece(features, own, part.costs, part.filled, part.batch.losses[:, ROLLED_IN].copy(), taken)


def _packed(start: np.ndarray, stop: np.ndarray, ids: np.ndarray, values: np.ndarray) -> FeatureRuns:
    """Copy runs of features, one directly after the other."""
    lengths = (stop - start).ravel()
    at = numbers_within(start.ravel(), lengths)
    return FeatureRuns.between(offsets_within(lengths), ids[at], values[at])
