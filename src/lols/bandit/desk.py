"""Where decisions are made one at a time: memory that is kept from one to the next, and what a walk has left there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from lols.bandit.one import OneByOne
from lols.bandit.walk import (
    ACTION,
    ACTION_FEATURES,
    CHANCE_ACTION,
    CHANCE_STEP,
    CHANCES,
    COIN,
    FEATURES,
    NOTES,
    PROPENSITY,
    SHOWN,
    STEP,
    Walked,
    Way,
    walk_kernel,
)
from lols.engine.driver import FusedDriver
from lols.engine.dual import bind
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.structures import Data, Policy, Scratch, Slots
from lols.examples import Examples
from lols.space import Reference, SearchSpace

__all__ = ["Desk", "Features", "Walk"]

NOTHING = np.zeros(0)


class Features(NamedTuple):
    """The features of one state: its own, and for each action those of the action."""

    ids: np.ndarray
    values: np.ndarray
    action_start: np.ndarray
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray


class Walk(NamedTuple):
    """One structure, and what was drawn on the way."""

    output: Any
    trail: np.ndarray
    chances: np.ndarray
    step: int  # of the deviation, -1 if there was none
    action: int
    by_reference: bool
    chance_step: float
    chance_action: float
    propensity: float
    legal: np.ndarray
    predicted: np.ndarray
    features: Features | None


class Desk:
    """Makes structures for one object after the other.

    Parameters
    ----------
    space, reference
        The contract.
    columns
        The columns of the policies' weights.
    compiled
        False runs the same code as plain Python.

    """

    def __init__(self, space: SearchSpace, reference: Reference, columns: int, *, compiled: bool = True):
        self.space, self.reference, self.columns, self.compiled = space, reference, columns, compiled
        self._scratch: Scratch | None = None
        self._slots: Slots | None = None
        self._room = (-1, -1, -1, -1)
        self._bound = bind("Space", space.functions()), bind("Reference", reference.functions())
        self._entries: dict[tuple[Any, ...], Any] = {}
        self._encode = OneByOne(space)

    def walk(self, obj: Any, policy: Policy, way: Way) -> Walk:
        """Make a structure for an object."""
        examples = self._encode(obj)
        data = Data(examples.x, examples.y, examples.items, examples.states, examples.steps)
        scratch, slots = self._memory(examples)
        actions, steps = self.space.sizes.actions, int(examples.steps[0])
        out = Walked(
            state=np.zeros(int(examples.states[0]), state_type(self.compiled)),
            trail=np.zeros(steps + 1, np.int32),
            chances=np.ones(steps + 1, np.float64),
            note=np.zeros(NOTES, np.int64),
            chance=np.ones(CHANCES),
            legal=np.zeros(actions, np.bool_),
            predicted=np.zeros(actions, np.float32),
            weights=np.zeros(actions),
        )
        self._run(examples, (*self._bound, data, policy, way, scratch, slots, out))
        note, shown = out.note, int(out.note[SHOWN])
        deviated = int(note[STEP]) >= 0
        return Walk(
            examples.output(0, out.state),
            out.trail[:shown],
            out.chances[:shown],
            int(note[STEP]),
            int(note[ACTION]),
            bool(note[COIN]),
            float(out.chance[CHANCE_STEP]),
            float(out.chance[CHANCE_ACTION]),
            float(out.chance[PROPENSITY]),
            out.legal,
            out.predicted,
            _features(slots, int(note[FEATURES]), int(note[ACTION_FEATURES])) if deviated else None,
        )

    def _run(self, examples: Examples, arguments: tuple[Any, ...]) -> None:
        """Run the kernel; what goes wrong is said in words."""
        scratch = arguments[5]
        kinds = tuple(getattr(column, "values", NOTHING).dtype for column in examples.x)
        entry = self._entries.get(kinds)
        error: Exception | None = None
        try:
            if entry is not None:
                entry(*arguments)
            else:
                walk_kernel(self.compiled, *arguments)
                self._entries[kinds] = self._entry(arguments)
        except Exception as found:
            error = found
        if error is not None or scratch.where[0]:
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)
            raise driver.explain(error, scratch, 0, lambda: walk_kernel.plain(*arguments)) from error

    def _entry(self, arguments: tuple[Any, ...]) -> Any:
        """The compiled kernel itself: to find out again and again which one it is would take most of the time."""
        overloads = getattr(walk_kernel.compiled, "overloads", None)
        if not self.compiled or not overloads:
            return lambda *given: walk_kernel(self.compiled, *given)
        return overloads[tuple(typeof(argument) for argument in arguments)].entry_point

    def _memory(self, examples: Examples) -> tuple[Scratch, Slots]:
        """Working memory, made anew only where an object is larger than all before."""
        items = examples.items
        need = (
            int(examples.states[0]),
            int(examples.steps[0]),
            int(items.first[-1] - items.first[0]) if items.first.size > 1 else 0,
            examples.widest_item + int(items.start.size),
        )
        if self._scratch is None or self._slots is None or any(n > r for n, r in zip(need, self._room, strict=True)):
            self._room = tuple(max(n, r) for n, r in zip(need, self._room, strict=True))  # type: ignore[assignment]
            self._scratch = make_scratch(examples, 1, self.columns, self.compiled)
            one = np.zeros(1, np.int64)
            self._slots = make_batch(None, examples, one, one, np.zeros(1), np.zeros(1)).slots
        return self._scratch, self._slots


def _features(slots: Slots, count: int, action_count: int) -> Features:
    rows = slots.action_start.shape[0]
    start, stop = (a[0].copy() if rows else np.zeros(0, np.int64) for a in (slots.action_start, slots.action_stop))
    shared = slots.ids[:count].copy(), slots.values[:count].copy()
    return Features(
        *shared, start, stop, slots.action_ids[:action_count].copy(), slots.action_values[:action_count].copy()
    )
