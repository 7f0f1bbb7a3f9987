"""Along the trails of a log: what another policy would do in the states that they came through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.stored import actions_of, share_of, smooth
from lols.contract.examples import Examples
from lols.contract.hashing import mix
from lols.contract.space import Reference, SearchSpace
from lols.engine.compile.dual import bind, step
from lols.engine.compile.kernel import Kernel
from lols.engine.compile.layout import Struct
from lols.engine.drivers.fused import FusedDriver
from lols.engine.lessons import write_features
from lols.engine.memory import make_batch, make_scratch
from lols.engine.policy import cheapest, gather, new_policy, score
from lols.engine.search import Search, begin, find_legal, turn_to
from lols.engine.structures import AT_EXAMPLE, AT_STEP, CODE, TEACHER, Data, FrozenPolicy, Lessons, Plan, following
from lols.engine.teacher import teacher_action
from lols.errors import ConfigurationError, LolsError
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings

__all__ = ["Followed", "LogFollower"]

MISFIT = 101  # what can be wrong besides the engine's codes: the trail is not one of this object


class Followed(NamedTuple):
    """States of a log, some to each round: their features, and what a target policy would do there."""

    lessons: Lessons  # the costs in its slots are to be filled
    legal: np.ndarray  # [slot, action]
    target: np.ndarray  # [slot, action]: the chance that the target takes it
    taken: np.ndarray  # [slot]: the action that was


class Target(Struct):
    """What is followed: a policy, or the reference, with a share of random actions."""

    policy: FrozenPolicy
    plan: Plan
    by_reference: bool
    epsilon: float


def follow(space, reference, data, target, scratch, made, trail):
    """Walk the logged trails, and write down the features of all states and what the target would do there.

    The actions of round b are `trail[b]`, as many as `made.lessons.filled[b]`. The report says what goes wrong.
    """
    search = Search(space, reference, target.policy, target.plan, data.items, scratch)
    report, legal, lessons, chances = scratch.report, scratch.legal, made.lessons, target.policy.chances
    report[CODE] = 0
    new_policy(scratch.seen)
    for b in range(lessons.first.size):
        here = turn_to(search, data, b, b, 0)
        s = scratch.state[: data.states[b]]
        begin(search, here, s)
        f = lessons.first[b] * lessons.widest
        m = lessons.first[b] * lessons.widest_action * legal.size
        for t in range(lessons.filled[b]):
            report[AT_STEP] = t
            slot, a = lessons.first[b] + t, np.int64(trail[b, t])
            if not find_legal(search, here, s, legal) or a < 0 or a >= legal.size or not legal[a]:
                report[CODE] = MISFIT
            if report[CODE] != 0:
                return report[CODE]
            made.taken[slot] = a
            for k in range(legal.size):
                made.legal[slot, k] = legal[k]
            gather(search, here, s)
            if target.by_reference:
                best = teacher_action(search, here, s, legal, mix(0, TEACHER))
                if best >= 0:
                    made.target[slot, best] = 1.0
            else:
                for c in range(chances.size):
                    score(search, here, s, legal, c)
                    made.target[slot, cheapest(scratch.seen.bits, legal, False, 0)] += share_of(chances, c)
            smooth(made.legal, made.target, slot, target.epsilon / here.limit)
            f, m = write_features(search, here, s, legal, lessons.slots, slot, f, m)
            if report[CODE] != 0:
                return report[CODE]
            step(space, here.x, s, a)
        if find_legal(search, here, s, legal):
            report[CODE], report[AT_STEP] = MISFIT, lessons.filled[b]
            return report[CODE]
    return report[CODE]


follow_kernel = Kernel(follow)


class LogFollower:
    """Takes a target policy, or rules, along the trails of a log.

    Parameters
    ----------
    space
        The search space of the log.
    target
        The weights of a policy, or a reference that needs no truth and draws nothing.
    epsilon
        Shared by as many steps as there may be: the chance with which the target takes a random action instead of its
        own, as a bandit does that draws every step.
    compiled
        False runs the same code as plain Python.

    """

    def __init__(
        self, space: SearchSpace, target: FrozenPolicy | Reference, epsilon: float = 0.0, *, compiled: bool = True
    ):
        self.space, self.epsilon, self.compiled = space, epsilon, compiled
        self.reference = target if isinstance(target, Reference) else None
        if self.reference is not None and (self.reference.needs_truth or self.reference.random):
            raise ConfigurationError(
                "a reference to evaluate must not need the truth, nor draw at random: give needs_truth=False and "
                "action(x, y, s)"
            )
        if isinstance(target, Reference):
            target = Learner(LearnerSettings("csoaa", "gd"), space.sizes.actions, averaged=False).policy()
        elif actions_of(target) != space.sizes.actions:
            raise ConfigurationError(
                f"the policy knows {actions_of(target)} actions and the space has {space.sizes.actions}: give a policy "
                "that was learned in this space"
            )
        self.policy = target
        functions = self.reference.functions() if self.reference is not None else {}
        self._bound = bind("Space", space.functions()), bind("Reference", functions)

    def __call__(self, ids: Sequence[int], objects: Sequence[Any], trails: Sequence[np.ndarray]) -> Followed:
        """Walk along trails, each on its object; `ids` name them where something is wrong."""
        examples = self._encoded(ids, objects)
        filled = np.array([trail.size for trail in trails], np.int64)
        for long in np.flatnonzero(filled > examples.steps):
            raise _misfit(ids[int(long)], int(examples.steps[long]))
        count, actions = len(trails), self.space.sizes.actions
        numbers = np.arange(count)
        lessons = make_batch(None, examples, numbers, numbers, np.zeros(count), np.zeros(count)).lessons
        lessons.filled[:] = filled
        slots = lessons.slots.start.size
        made = Followed(
            lessons, np.zeros((slots, actions), np.bool_), np.zeros((slots, actions)), np.zeros(slots, np.int64)
        )
        trail = np.zeros((count, int(filled.max(initial=1))), np.int32)
        for b, taken in enumerate(trails):
            trail[b, : taken.size] = taken
        data = Data(examples.x, examples.y, examples.items, examples.states, examples.steps)
        scratch = make_scratch(examples, self.policy.chances.size, self.policy.stack.shape[2], self.compiled)
        target = Target(self.policy, following(0, False), self.reference is not None, float(self.epsilon))
        arguments = (*self._bound, data, target, scratch, made, trail)
        error: Exception | None = None
        try:
            follow_kernel(self.compiled, *arguments)
        except Exception as found:
            error = found
        if error is not None or scratch.report[CODE]:
            b = int(scratch.report[AT_EXAMPLE])
            if scratch.report[CODE] == MISFIT:
                raise _misfit(ids[b], int(scratch.report[AT_STEP]))
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)
            said = driver.explain(error, scratch, b, lambda: follow_kernel.plain(*arguments))
            raise type(said)(str(said).replace(f"example {b}", f"decision {ids[b]}", 1)) from error
        return made

    def _encoded(self, ids: Sequence[int], objects: Sequence[Any]) -> Examples:
        """The objects in columns; one that cannot be encoded is named by its decision."""
        try:
            return Examples(self.space, objects, truth=False)
        except LolsError:
            for number, obj in zip(ids, objects):
                try:
                    Examples(self.space, [obj], truth=False)
                except LolsError as error:
                    said = str(error).removeprefix("example 0").lstrip(":, ")
                    raise type(error)(f"the object of decision {number}: {said}") from error
            raise


def _misfit(number: int, at: int) -> LolsError:
    return LolsError(
        f"decision {number}: its trail leaves the space at step {at}: give the object that it was made for, and the "
        "same space"
    )
