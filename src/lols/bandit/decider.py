"""Decisions one at a time, in memory that is kept from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lols.bandit.entries import NOTHING, Decision
from lols.bandit.one import OneByOne
from lols.bandit.walk import CHANCES, COIN, EXPLORE, NOTES, RANDOMISED, Walked, WalkPlan, deviate_kernel, walk_kernel
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.compile.dual import bind
from lols.engine.compile.kernel import Kernel
from lols.engine.door import admit, look_over
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.mistakes import explain
from lols.engine.lessons import FeatureRuns, lessons_of, slots_of
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.structures import CODE, FrozenPolicy, Lessons, Scratch, Slots

ROOMS = 1000  # the most sizes of objects to keep memory for

Votes = Callable[[Decision], np.ndarray]


def lessons_in(decisions: Sequence[Decision]) -> Lessons:
    """The states in which decisions explored, one for each round; their costs and weights are still to be filled in."""
    count, actions = len(decisions), decisions[0].legal.size
    seen = FeatureRuns.joined([FeatureRuns(np.array([0]), np.array([d.ids.size]), d.ids, d.values) for d in decisions])
    own = FeatureRuns.joined(
        [FeatureRuns(d.action_start, d.action_stop, d.action_ids, d.action_values) for d in decisions]
    )
    slots = slots_of(seen, np.full((count, actions), np.inf, np.float32), np.ones(count, np.float32), own)
    numbers, ones = np.arange(count), np.ones(count, np.int64)
    return lessons_of(slots, numbers, ones, example=numbers, widest=seen.widest, widest_action=own.widest)


class Decider:
    """Makes structures for one object at a time.

    `columns` is the number of columns of the policies' weights. `votes`, for the exploration by a bag, gives the chance
    of each action in the state in which a decision explores. `checks` says whether functions are checked on the first
    object.
    """

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        columns: int,
        *,
        votes: Votes | None = None,
        compiled: bool = True,
        checks: bool = False,
    ):
        self.space, self.reference, self.columns = space, reference, columns
        self.votes, self.compiled, self._unchecked = votes, compiled, checks
        self._scratch: Scratch | None = None
        self._slots: Slots | None = None
        self._room = (-1, -1, -1, -1)  # the sizes that the memory was made for
        self._rooms: dict[tuple[int, int], Walked] = {}
        self._bound = bind("Space", space.functions(), space.name), bind("Reference", reference.functions())
        self._encode = OneByOne(space)

    def walk(self, obj: Any, policy: FrozenPolicy, plan: WalkPlan) -> tuple[Any, Decision]:
        """Make a structure for an object: the output, and the entry for the log, which the bandit completes."""
        examples = self._encode(obj)
        if self._unchecked:
            look_over(self.space, self.reference, examples, self._bound)
            self._unchecked = False
        data = admit(self.space, self.reference, examples, examples.y, self._bound, compiled=self.compiled)
        scratch, slots = self._memory(examples)
        out = self._out(int(examples.states[0]), int(examples.steps[0]), policy.sketched.sketches.along.size)
        arguments = (*self._bound, data, policy, plan, scratch, slots, out)
        self._run(walk_kernel, examples, arguments)
        decision = NOTHING
        length, step, action, coin, count, action_count = out.note.tolist()
        if step >= 0:
            decision = decision._replace(
                ids=slots.ids[:count].copy(),
                values=slots.values[:count].copy(),
                action_start=slots.action_start[:1].flatten(),
                action_stop=slots.action_stop[:1].flatten(),
                action_ids=slots.action_ids[:action_count].copy(),
                action_values=slots.action_values[:action_count].copy(),
                legal=out.legal.copy(),
                predicted=out.predicted.copy(),
            )
        if plan.mode == EXPLORE:
            if self.votes is not None:
                out.weights[:] = self.votes(decision)
            self._run(deviate_kernel, examples, arguments)
            length, step, action, coin = out.note[: COIN + 1].tolist()
        chance_step, chance_action, propensity = out.chance.tolist()
        decision = decision._replace(
            explored=step >= 0,
            step=step,
            action=action,
            by_reference=bool(coin),
            chance_step=chance_step,
            chance_action=chance_action,
            trail=out.trail[:length].copy(),
        )
        if plan.mode == RANDOMISED:
            chances = out.chances[:length].astype(np.float32)
            decision = decision._replace(propensity=propensity, chances=chances)
        return examples.output(0, out.state), decision

    def _run(self, kernel: Kernel, examples: Examples, arguments: tuple[Any, ...]) -> None:
        """Run a kernel, and explain its errors."""
        scratch, error = arguments[5], None
        try:
            kernel(self.compiled, *arguments)
        except Exception as raised:
            error = raised
        if error is not None or scratch.report[CODE]:
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)

            def again() -> None:
                scratch.report[CODE] = 0
                kernel.plain(*arguments)

            raise explain(driver, error, scratch, 0, again) from error

    def _out(self, states: int, steps: int, rows: int) -> Walked:
        """Memory for the results of a walk, kept for the next object of this size; a sketch has so many rows."""
        assert self._slots is not None
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
                low=np.zeros(actions),
                rows=np.zeros(self._slots.ids.size, np.int64),
                along=np.zeros(rows),
                gain=np.zeros(rows),
                column=np.zeros(rows, np.float32),
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
            self._rooms.clear()
            self._room = need
        assert self._scratch is not None and self._slots is not None
        return self._scratch, self._slots
