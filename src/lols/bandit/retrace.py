"""The states of a logged decision, from its object and its actions: what is learned from needs no place in the log."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from lols.bandit.entries import Decision
from lols.bandit.one import MOST, OneByOne, admitted
from lols.bandit.seen import Seen
from lols.contract.examples import Examples
from lols.contract.space import SearchSpace
from lols.engine.calls import bind_space, step
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.mistakes import explain
from lols.engine.lessons import lessons_of, make_slots, write_features
from lols.engine.memory import make_scratch
from lols.engine.policy import gather
from lols.engine.search import Search, begin, find_legal, turn_to
from lols.engine.structures import AT_STEP, CODE, Lessons, Scratch, following
from lols.errors import LolsError
from lols.kernels.kernel import Kernel

MISFIT = 101  # an error code besides the engine's: actions do not belong to the object
FOLLOWING = following(0, False)


def retrace(space, data, scratch, plan, slots, legal_in, actions, every):
    """Walk along the actions, and write the features of each state: of every legal action, or of the one taken."""
    search = Search(space, None, None, plan, data.items, scratch)
    report, legal = scratch.report, scratch.legal
    report[CODE] = 0
    here = turn_to(search, data, 0, 0, 0)
    s = scratch.state[: data.states[0]]
    begin(search, here, s)
    f, m = 0, 0
    for t in range(actions.size):
        report[AT_STEP] = t
        a = np.int64(actions[t])
        if not find_legal(search, here, s, legal) or a < 0 or a >= legal.size or not legal[a]:
            report[CODE] = MISFIT
            return report[CODE]
        for k in range(legal.size):
            legal_in[t, k] = legal[k]
        gather(search, here, s, legal)
        if not every:
            for k in range(legal.size):
                legal[k] = k == a
        f, m = write_features(search, here, s, legal, slots, t, f, m)
        if report[CODE] != 0:
            return report[CODE]
        step(space, here.x, s, a)
    if find_legal(search, here, s, legal):
        report[CODE], report[AT_STEP] = MISFIT, actions.size
    return report[CODE]


retrace_kernel = Kernel(retrace)


class Retracer:
    """Finds the states of decisions in a space, one decision at a time.

    `every` says whether the features of all legal actions are needed, or only those of the actions taken. With
    `brief`, states are valid until the next decision of the same thread, whose states may be in the same memory.
    """

    def __init__(self, space: SearchSpace, *, every: bool = True, brief: bool = False, compiled: bool = True):
        self.space, self.every, self.brief, self.compiled = space, every, brief, compiled
        self._bound = bind_space(space)
        self._encode = OneByOne(space)
        self._memories = threading.local()

    def __call__(self, decision: Decision) -> Seen:
        """The states of a decision whose step and chances are known: all of them, or the one in which it deviated."""
        if decision.seen is not None:
            return decision.seen
        seen = self.trace(decision, self.encoded(decision))
        if decision.chances.size or not decision.explored:
            return seen
        one = seen.only(decision.step)
        return one._replace(chances=np.array([decision.chance_action]))

    def encoded(self, decision: Decision) -> Examples:
        """The object of a decision, as it is in the log."""
        if decision.context is None:
            raise LolsError(f"decision {decision.id}: the log does not hold its object, which was not JSON")
        return self._encode(decision.object)

    def end(self, decision: Decision, examples: Examples) -> np.ndarray:
        """The end state of a decision for an object that is encoded already."""
        self.trace(decision, examples)
        return self._memory(examples).state[: examples.states[0]].copy()

    def trace(self, decision: Decision, examples: Examples) -> Seen:
        """All states of a decision for an object that is encoded already."""
        actions = decision.actions
        length, width = actions.size, examples.most_actions
        if length > examples.steps[0]:
            raise misfit(decision, int(examples.steps[0]))
        widest = self.space.sizes.features + self.space.sizes.items * examples.widest_item
        of = vars(self._memories).setdefault("by_size", {}) if self.brief else {}
        known = of.get((length, width, widest))
        if known is None:
            if len(of) >= MOST:
                of.clear()
            known = of[length, width, widest] = self._states(length, width, widest)
        lessons, legal, steps = known
        slots = lessons.slots
        slots.costs[:], slots.weight[:] = np.inf, 1.0
        data = admitted(examples, None, (self._bound,), compiled=self.compiled)
        arguments = (self._bound, data, self._memory(examples), FOLLOWING, slots, legal, actions, self.every)
        self._run(decision, examples, arguments)
        chances = decision.chances if decision.chances.size else np.ones(length)
        return Seen(lessons, legal[:length], actions.astype(np.int64), chances.astype(np.float64), steps)

    def _states(self, length: int, width: int, widest: int) -> tuple[Lessons, np.ndarray, np.ndarray]:
        """Memory for the states of a structure: their features, legal actions, and numbers."""
        sizes = self.space.sizes
        lessons = lessons_of(
            make_slots(sizes, width, max(length, 1), widest),
            np.zeros(1, np.int64),
            np.array([length]),
            example=np.zeros(1, np.int64),
            widest=widest,
            widest_action=sizes.action_features,
        )
        return lessons, np.zeros((max(length, 1), width), np.bool_), np.arange(length)

    def _run(self, decision: Decision, examples: Examples, arguments: tuple[Any, ...]) -> None:
        scratch, error = arguments[2], None
        try:
            retrace_kernel(self.compiled, *arguments)
        except Exception as raised:
            error = raised
        if error is None and scratch.report[CODE] == MISFIT:
            raise misfit(decision, int(scratch.report[AT_STEP]))
        if error is not None or scratch.report[CODE]:
            driver = FusedDriver(self.space, examples, None, compiled=self.compiled)
            explained = explain(driver, error, scratch, 0, lambda: retrace_kernel.plain(*arguments))
            raise type(explained)(str(explained).replace("example 0", f"decision {decision.id}", 1)) from error

    def _memory(self, examples: Examples) -> Scratch:
        items, of = examples.items, vars(self._memories).setdefault("by_width", {})
        need = (
            int(examples.states[0]),
            int(items.first[-1] - items.first[0]) if items.first.size > 1 else 0,
            int(items.start.size),
            examples.widest_item,
        )
        width = examples.most_actions
        known = of.get(width)
        if known is None or any(n > r for n, r in zip(need, known[0], strict=True)):
            known = of[width] = need, make_scratch(examples, 1, width, self.compiled)
        scratch: Scratch = known[1]
        return scratch


def misfit(decision: Decision, at: int) -> LolsError:
    """The error for actions that do not belong to their object."""
    return LolsError(
        f"decision {decision.id}: its actions leave the space at step {at}: give the object of this decision, and the "
        "same space"
    )
