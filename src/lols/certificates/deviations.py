"""All one-step deviations from a frozen policy, as cost-sensitive examples: what stage 1 of the engine leaves behind.

Nothing is pruned, sampled or cut short here: every legal action of every state is rolled out to the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lols.contract.space import Reference
from lols.engine.compile.kernel import Kernel
from lols.engine.drivers.fused import FusedDriver
from lols.engine.lessons import NO_FEATURES, FeatureRuns, lessons_of, slots_of
from lols.engine.policy import score_lesson
from lols.engine.structures import Batch, FrozenPolicy, Lessons, Plan, Slots
from lols.errors import LolsError
from lols.tasks.choosing import offsets_within, runs
from lols.training.algorithms import Algorithm
from lols.training.model import Model
from lols.training.progress import Progress
from lols.training.trainer import Trainer

__all__ = ["Deviations", "collect_deviations"]

TOGETHER = 256  # examples that are worked on at a time


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
        """The same states under other costs, which are made relative to the best action again."""
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

    def choices(self, policy: FrozenPolicy, states: np.ndarray | None = None, *, best: bool = False) -> np.ndarray:
        """What a policy does at each of some states, or at all; or which of the `best` actions there it likes most."""
        at = np.arange(self.first[-1]) if states is None else states
        made = np.zeros(at.size, np.int64)
        columns, costs = (np.zeros(policy.stack.shape[2], np.float32), np.zeros(self.costs.shape[1], np.float32))
        rows = np.zeros(self.widest, np.int64)
        most = float(0.0 if best else np.finfo(np.float32).max)
        choose_kernel(self.compiled, self.slots, policy, most, at, rows, columns, costs, made)
        return made

    @cached_property
    def widest(self) -> int:
        """The most features that a state has."""
        return int((self.slots.stop - self.slots.start).max(initial=0))

    def lessons(self, chosen: np.ndarray) -> Lessons:
        """Some examples in this order, for a learner."""
        own = int((self.slots.action_stop - self.slots.action_start).max(initial=0))
        filled = np.diff(self.first)[chosen]
        return lessons_of(self.slots, self.first[chosen], filled, example=chosen, widest=self.widest, widest_action=own)


def choose(slots, policy, most, states, rows, columns, costs, out):
    """The action that seems cheapest to a policy at each of some states, the first one if there are several.

    Only actions are considered that cost at most so much more than the best; illegal ones cost infinity.
    """
    for n in range(states.size):
        slot = states[n]
        score_lesson(policy, 0, slots, slot, rows, columns, costs)
        best = -1
        for a in range(costs.size):
            if slots.costs[slot, a] <= most and (best < 0 or costs[a] < costs[best]):
                best = a
        out[n] = best


choose_kernel = Kernel(choose)


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
    plan = exact_plan(Trainer(model.space, reference, algorithm=algorithm, seed=seed, compiled=model.compiled).plan)
    count = len(driver.examples)
    pieces: list[_Piece] = []
    loss = 0.0
    for begin in range(0, count, TOGETHER):
        numbers = np.arange(begin, min(begin + TOGETHER, count))
        shares = np.full(numbers.size, beta), np.full(numbers.size, beta_in)
        batch = driver.collect(numbers, numbers, model.policy, plan, *shares)
        pieces.append(_Piece(batch))
        loss += float(batch.losses[:, 0].sum())
        if bar is not None:
            done += int(driver.examples.steps[numbers].sum())
            bar.advance(done, loss=loss / (numbers[-1] + 1))
    return _joined(pieces, model.compiled)


def exact_plan(plan: Plan) -> Plan:
    """A plan that looks at every state, and knows the cost of every action exactly."""
    return plan._replace(compare=False, slack=np.inf, bound=False, random_ties=False)


class _Piece:
    """What one batch leaves behind, without the room between the examples."""

    def __init__(self, batch: Batch):
        slots, self.filled = batch.lessons.slots, batch.lessons.filled.copy()
        self.losses = batch.losses[:, 0].copy()
        within = offsets_within(self.filled)
        at = np.repeat(batch.lessons.first - within[:-1], self.filled) + np.arange(within[-1])
        if (slots.weight[at] != 1.0).any():
            raise LolsError("a state was left out: deviations must be collected without sampling")
        self.costs = slots.costs[at]
        self.features = (slots.stop[at] - slots.start[at]).astype(np.int64)
        self.ids, self.values = _gathered(slots.start[at], self.features, slots.ids, slots.values)
        self.own: np.ndarray | None = None
        if slots.action_start.size:
            begin = slots.action_start[at]
            self.own = (slots.action_stop[at] - begin).astype(np.int64)
            self.action_ids, self.action_values = _gathered(
                begin.ravel(), self.own.ravel(), slots.action_ids, slots.action_values
            )


def _gathered(begin: np.ndarray, lengths: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
    """Runs of arrays, one after the other."""
    made = offsets_within(lengths)
    at = np.repeat(begin - made[:-1], lengths) + np.arange(made[-1])
    return [array[at] for array in arrays]


def _joined(pieces: list[_Piece], compiled: bool) -> Deviations:
    features = np.concatenate([p.features for p in pieces])
    start = offsets_within(features)
    ids, values = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("ids", "values"))
    by_action = NO_FEATURES
    if pieces[0].own is not None:
        bounds = offsets_within(np.concatenate([p.own.ravel() for p in pieces if p.own is not None]))
        own = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("action_ids", "action_values"))
        by_action = FeatureRuns.between(bounds, *own)
    costs, weight = np.concatenate([p.costs for p in pieces]), np.ones(features.size, np.float32)
    slots = slots_of(FeatureRuns.between(start, ids, values), costs, weight, by_action)
    first = offsets_within(np.concatenate([p.filled for p in pieces]))
    return Deviations(slots, first, np.concatenate([p.losses for p in pieces]), compiled)
