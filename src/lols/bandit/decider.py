"""Where decisions are made one at a time: memory that is kept from one to the next, and what a walk has left there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.one import OneByOne
from lols.bandit.walk import (
    CHANCES,
    COIN,
    EXPLORE,
    NOTES,
    RANDOMISED,
    Walked,
    WalkPlan,
    deviate_kernel,
    walk_kernel,
)
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.compile.dual import bind
from lols.engine.compile.kernel import Kernel
from lols.engine.drivers.fused import FusedDriver
from lols.engine.lessons import FeatureRuns
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.structures import CODE, Data, FrozenPolicy, Scratch, Slots

__all__ = ["Decider", "DecisionWalk", "Features"]

ROOMS = 1000  # sizes of objects that memory is kept for

Votes = Callable[["Features", np.ndarray], np.ndarray]


class Features(NamedTuple):
    """The features of one state: its own, and for each action those of the action."""

    ids: np.ndarray
    values: np.ndarray
    action_start: np.ndarray
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray

    @classmethod
    def of(cls, decision: Any) -> Features:
        """Those that a log has of a decision."""
        return cls(*(getattr(decision, name) for name in cls._fields))

    def runs(self) -> tuple[FeatureRuns, FeatureRuns]:
        """The same as lessons take them: of the state, and of its actions."""
        own = FeatureRuns.between(np.array([0, self.ids.size]), self.ids, self.values)
        return own, FeatureRuns(self.action_start, self.action_stop, self.action_ids, self.action_values)


def no_array(kind: Any) -> np.ndarray:
    """An empty array that many may share."""
    made = np.zeros(0, kind)
    made.flags.writeable = False
    return made


_IDS, _VALUES = no_array(np.int64), no_array(np.float32)
NO_FEATURES = Features(_IDS, _VALUES, _IDS, _IDS, _IDS, _VALUES)
NO_LEGAL = no_array(np.bool_)


class DecisionWalk(NamedTuple):
    """One structure, and what was drawn on the way; of the state to learn from, if there is one."""

    output: Any
    trail: np.ndarray
    chances: np.ndarray  # of each action, where they were drawn step by step
    step: int  # -1 if there is nothing to learn from
    action: int
    by_reference: bool
    chance_step: float
    chance_action: float
    propensity: float  # of the whole, where it was drawn step by step; NaN elsewhere
    legal: np.ndarray
    predicted: np.ndarray
    features: Features


class Decider:
    """Makes structures for one object after the other.

    Parameters
    ----------
    space, reference
        The contract.
    columns
        The columns of the policies' weights.
    votes
        For explorations that kernels do not know: the chance of each action, from the features and the legal actions.
    compiled
        False runs the same code as plain Python.

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
        self._room = (-1, -1, -1, -1)  # what the memory was made for
        self._rooms: dict[tuple[int, int], Walked] = {}
        self._bound = bind("Space", space.functions()), bind("Reference", reference.functions())
        self._encode = OneByOne(space)

    def walk(self, obj: Any, policy: FrozenPolicy, way: WalkPlan) -> DecisionWalk:
        """Make a structure for an object."""
        examples = self._encode(obj)
        data = Data(examples.x, examples.y, examples.items, examples.states, examples.steps)
        scratch, slots = self._memory(examples)
        out = self._out(int(examples.states[0]), int(examples.steps[0]))
        arguments = (*self._bound, data, policy, way, scratch, slots, out)
        self._run(walk_kernel, examples, arguments)
        features, legal, predicted = NO_FEATURES, NO_LEGAL, _VALUES
        length, step, action, coin, count, action_count = out.note.tolist()
        if step >= 0:
            features, legal, predicted = _features(slots, count, action_count), out.legal.copy(), out.predicted.copy()
        if way.mode == EXPLORE:
            if self.votes is not None:
                out.weights[:] = self.votes(features, legal)
            self._run(deviate_kernel, examples, arguments)
            length, step, action, coin = out.note[: COIN + 1].tolist()
        chance_step, chance_action, propensity = out.chance.tolist()
        randomised = way.mode == RANDOMISED
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
        """Run a kernel; what goes wrong is said in words."""
        scratch, error = arguments[5], None
        try:
            kernel(self.compiled, *arguments)
        except Exception as found:
            error = found
        if error is not None or scratch.report[CODE]:
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)
            raise driver.explain(error, scratch, 0, lambda: kernel.plain(*arguments)) from error

    def _out(self, states: int, steps: int) -> Walked:
        """Room for what a walk leaves behind, kept for the next object of this size."""
        made = self._rooms.get((states, steps))
        if made is None:
            if len(self._rooms) >= ROOMS:
                self._rooms.clear()
            actions = self.space.sizes.actions
            made = self._rooms[states, steps] = Walked(
                state=np.zeros(states, state_type(self.compiled)),
                trail=np.zeros(steps + 1, np.int32),
                chances=np.ones(steps + 1, np.float64),
                note=np.zeros(NOTES, np.int64),
                chance=np.ones(CHANCES),
                legal=np.zeros(actions, np.bool_),
                predicted=np.zeros(actions, np.float32),
                weights=np.zeros(actions),
            )
        return made

    def _memory(self, examples: Examples) -> tuple[Scratch, Slots]:
        """Working memory, made anew where an object does not fit into what is there."""
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


def _features(slots: Slots, count: int, action_count: int) -> Features:
    rows = slots.action_start.shape[0]
    start, stop = (a[0].copy() if rows else _IDS for a in (slots.action_start, slots.action_stop))
    shared = slots.ids[:count].copy(), slots.values[:count].copy()
    return Features(
        *shared, start, stop, slots.action_ids[:action_count].copy(), slots.action_values[:action_count].copy()
    )
