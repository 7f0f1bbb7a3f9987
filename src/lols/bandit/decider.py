"""Decisions one at a time, in memory that is kept from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.entries import Decision
from lols.bandit.one import OneByOne
from lols.bandit.walk import CHANCES, COIN, EXPLORE, NOTES, RANDOMISED, Walked, WalkPlan, deviate_kernel, walk_kernel
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.compile.dual import bind
from lols.engine.compile.kernel import Kernel
from lols.engine.door import admit
from lols.engine.drivers.fused import FusedDriver
from lols.engine.lessons import FeatureRuns, lessons_of, slots_of
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.structures import CODE, FrozenPolicy, Lessons, Scratch, Slots

ROOMS = 1000  # the most sizes of objects to keep memory for

Votes = Callable[["DecisionFeatures", np.ndarray], np.ndarray]


class DecisionFeatures(NamedTuple):
    """The features of one state, and those of each of its actions."""

    ids: np.ndarray
    values: np.ndarray
    action_start: np.ndarray
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray

    @classmethod
    def of(cls, decision: Decision) -> DecisionFeatures:
        """The features that a log holds of a decision."""
        return cls(*(getattr(decision, name) for name in cls._fields))

    def runs(self) -> tuple[FeatureRuns, FeatureRuns]:
        """The features of the state, and of its actions, in the form that lessons take."""
        own = FeatureRuns.between(np.array([0, self.ids.size]), self.ids, self.values)
        return own, FeatureRuns(self.action_start, self.action_stop, self.action_ids, self.action_values)


def lessons_in(states: Sequence[DecisionFeatures], actions: int) -> Lessons:
    """States as lessons, one for each round; their costs and weights are still to be filled in."""
    runs = [state.runs() for state in states]
    seen, own = runs[0] if len(runs) == 1 else map(FeatureRuns.joined, zip(*runs, strict=True))
    numbers, ones = np.arange(len(runs)), np.ones(len(runs), np.int64)
    costs, weight = np.full((len(runs), actions), np.inf, np.float32), np.ones(len(runs), np.float32)
    slots = slots_of(seen, costs, weight, own)
    return lessons_of(slots, numbers, ones, example=numbers, widest=seen.widest, widest_action=own.widest)


def _empty(kind: Any) -> np.ndarray:
    """An empty array to be shared, so read-only."""
    array = np.zeros(0, kind)
    array.flags.writeable = False
    return array


_IDS, _VALUES = _empty(np.int64), _empty(np.float32)
NO_FEATURES = DecisionFeatures(_IDS, _VALUES, _IDS, _IDS, _IDS, _VALUES)
NO_LEGAL = _empty(np.bool_)


class DecisionWalk(NamedTuple):
    """One structure, what was drawn for it, and the state to learn from, if there is one."""

    output: Any
    trail: np.ndarray
    chances: np.ndarray  # of each action, if they were drawn step by step
    step: int  # -1 if there is nothing to learn from
    action: int
    by_reference: bool
    chance_step: float
    chance_action: float
    propensity: float  # of the whole structure, if it was drawn step by step; NaN otherwise
    legal: np.ndarray
    predicted: np.ndarray
    features: DecisionFeatures

    def decision(self, id: int, *, version: int, policy: int, guarded: bool) -> Decision:
        """The entry for the log."""
        return Decision(
            id,
            self.step >= 0,
            *(self.step, self.action, self.by_reference, self.chance_step, self.chance_action),
            *(version, policy, guarded, self.propensity),
            *self.features,
            *(self.legal, self.predicted, self.trail, self.chances),
        )


class Decider:
    """Makes structures for one object at a time.

    `columns` is the number of columns of the policies' weights. `votes`, for the exploration by a bag, gives the chance
    of each action from the features and the legal actions of a state.
    """

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        columns: int,
        *,
        votes: Votes | None = None,
        compiled: bool = True,
    ):
        self.space, self.reference, self.columns = space, reference, columns
        self.votes, self.compiled = votes, compiled
        self._scratch: Scratch | None = None
        self._slots: Slots | None = None
        self._room = (-1, -1, -1, -1)  # the sizes that the memory was made for
        self._rooms: dict[tuple[int, int], Walked] = {}
        self._bound = bind("Space", space.functions(), space.name), bind("Reference", reference.functions())
        self._encode = OneByOne(space)

    def walk(self, obj: Any, policy: FrozenPolicy, plan: WalkPlan) -> DecisionWalk:
        """Make a structure for an object."""
        examples = self._encode(obj)
        data = admit(self.space, self.reference, examples, examples.y, self._bound, compiled=self.compiled)
        scratch, slots = self._memory(examples)
        out = self._out(int(examples.states[0]), int(examples.steps[0]))
        arguments = (*self._bound, data, policy, plan, scratch, slots, out)
        self._run(walk_kernel, examples, arguments)
        features, legal, predicted = NO_FEATURES, NO_LEGAL, _VALUES
        length, step, action, coin, count, action_count = out.note.tolist()
        if step >= 0:
            features, legal, predicted = _features(slots, count, action_count), out.legal.copy(), out.predicted.copy()
        if plan.mode == EXPLORE:
            if self.votes is not None:
                out.weights[:] = self.votes(features, legal)
            self._run(deviate_kernel, examples, arguments)
            length, step, action, coin = out.note[: COIN + 1].tolist()
        chance_step, chance_action, propensity = out.chance.tolist()
        randomised = plan.mode == RANDOMISED
        return DecisionWalk(
            examples.output(0, out.state),
            out.trail[:length].copy(),
            out.chances[:length].astype(np.float32) if randomised else _VALUES,
            step,
            action,
            bool(coin),
            chance_step,
            chance_action,
            propensity if randomised else float("nan"),
            legal,
            predicted,
            features,
        )

    def _run(self, kernel: Kernel, examples: Examples, arguments: tuple[Any, ...]) -> None:
        """Run a kernel, and explain its errors."""
        scratch, error = arguments[5], None
        try:
            kernel(self.compiled, *arguments)
        except Exception as raised:
            error = raised
        if error is not None or scratch.report[CODE]:
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)
            raise driver.explain(error, scratch, 0, lambda: kernel.plain(*arguments)) from error

    def _out(self, states: int, steps: int) -> Walked:
        """Memory for the results of a walk, kept for the next object of this size."""
        walked = self._rooms.get((states, steps))
        if walked is None:
            if len(self._rooms) >= ROOMS:
                self._rooms.clear()
            actions = self.space.action_count
            walked = self._rooms[states, steps] = Walked(
                state=np.zeros(states, state_type(self.compiled)),
                trail=np.zeros(steps + 1, np.int32),
                chances=np.ones(steps + 1, np.float64),
                note=np.zeros(NOTES, np.int64),
                chance=np.ones(CHANCES),
                legal=np.zeros(actions, np.bool_),
                predicted=np.zeros(actions, np.float32),
                weights=np.zeros(actions),
            )
        return walked

    def _memory(self, examples: Examples) -> tuple[Scratch, Slots]:
        """Working memory, allocated again when an object does not fit."""
        items = examples.items
        need = (
            min(int(examples.steps[0]), 1),
            int(items.first[-1] - items.first[0]) if items.first.size > 1 else 0,
            int(items.start.size),
            examples.widest_item,
        )
        if any(n > r for n, r in zip(need, self._room, strict=True)):
            self._scratch = make_scratch(examples, 1, self.columns, self.compiled)
            one = np.zeros(1, np.int64)
            self._slots = make_batch(None, examples, one, one, np.zeros(1), np.zeros(1)).lessons.slots
            self._room = need
        assert self._scratch is not None and self._slots is not None
        return self._scratch, self._slots


def _features(slots: Slots, count: int, action_count: int) -> DecisionFeatures:
    rows = slots.action_start.shape[0]
    start, stop = (a[0].copy() if rows else _IDS for a in (slots.action_start, slots.action_stop))
    shared = slots.ids[:count].copy(), slots.values[:count].copy()
    return DecisionFeatures(
        *shared, start, stop, slots.action_ids[:action_count].copy(), slots.action_values[:action_count].copy()
    )
