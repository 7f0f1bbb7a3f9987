"""What another policy would do in the states of a log: from stored features, or along logged trails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.retrace import MISFIT
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.calls import bind_space, step
from lols.engine.door import admit
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.mistakes import explain
from lols.engine.lessons import predicted_costs, write_features
from lols.engine.memory import make_batch, make_scratch
from lols.engine.policy import cheapest, gather, new_policy, score
from lols.engine.search import Search, begin, find_legal, turn_to
from lols.engine.structures import AT_EXAMPLE, AT_STEP, CODE, TEACHER, FrozenPolicy, Lessons, Plan, following
from lols.engine.teacher import teacher_action
from lols.errors import ConfigurationError, LolsError
from lols.kernels.dual import bind
from lols.kernels.hashing import mix
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings


class Followed(NamedTuple):
    """States of a log, with the target policy's chances of actions there."""

    lessons: Lessons  # the costs in their slots are still to be filled in
    legal: np.ndarray  # [slot, action]
    target: np.ndarray  # [slot, action]: the chance that the target takes it
    taken: np.ndarray  # [slot]: the action that was taken


def actions_of(policy: FrozenPolicy) -> int:
    """The number of actions of a policy."""
    return int(policy.code.shape[1] if policy.code.size else policy.stack.shape[2])


def target_in(
    lessons: Lessons, policy: FrozenPolicy, legal: np.ndarray, epsilon: float = 0.0, *, compiled: bool = True
) -> np.ndarray:
    """The chances [slot, action] of a policy's actions, from the features of lessons that use all slots.

    These are the actions of a walk through the space, up to the rounding of sums in spaces with `items`.
    """
    target, every = np.zeros(legal.shape), np.arange(legal.shape[0])
    for component, share in enumerate(_shares(policy)):
        costs = predicted_costs(lessons, policy, component, compiled=compiled)
        target[every, np.where(legal, costs, np.inf).argmin(axis=1)] += share
    return _smoothed(target, legal, epsilon)


def _shares(policy: FrozenPolicy) -> np.ndarray:
    """The chance of each component of a policy."""
    return np.diff(policy.chances, prepend=0.0)


def _smoothed(target: np.ndarray, legal: np.ndarray, epsilon: float | np.ndarray) -> np.ndarray:
    """Mix chances with uniform ones, whose share is epsilon."""
    uniform = epsilon / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return target * (1.0 - epsilon) + np.where(legal, uniform, 0.0)


class Target(Struct):
    """The policy to evaluate, or the reference."""

    policy: FrozenPolicy
    shares: np.ndarray  # the chances of its components
    plan: Plan
    by_reference: bool


def follow(space, reference, data, target, scratch, followed, trail):
    """Walk the logged trails; write the features of all states and the target's actions to `followed`.

    The actions of round b are the first `followed.lessons.filled[b]` of `trail[b]`. Errors are in the report.
    """
    search = Search(space, reference, target.policy, target.plan, data.items, scratch)
    report, legal, lessons = scratch.report, scratch.legal, followed.lessons
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
            followed.taken[slot] = a
            for k in range(legal.size):
                followed.legal[slot, k] = legal[k]
            gather(search, here, s, legal)
            if target.by_reference:
                best = teacher_action(search, here, s, legal, mix(0, TEACHER))
                if best >= 0:
                    followed.target[slot, best] = 1.0
            else:
                for c in range(target.shares.size):
                    score(search, here, s, legal, c)
                    followed.target[slot, cheapest(scratch.seen.bits, legal, False, 0)] += target.shares[c]
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
    """Follows the trails of a log, and asks a target policy, or a reference, in each state.

    `epsilon`, shared by the most steps that there may be, is the chance that the target takes a random action instead
    of its own, like a bandit with `randomise="steps"`.
    """

    def __init__(
        self, space: SearchSpace, target: FrozenPolicy | Reference, epsilon: float = 0.0, *, compiled: bool = True
    ):
        self.space, self.epsilon, self.compiled = space, epsilon, compiled
        self.reference = target if isinstance(target, Reference) else None
        if self.reference is not None and (self.reference.needs_truth or self.reference.random):
            raise ConfigurationError(
                "a reference to evaluate must not need the truth or draw at random: give needs_truth=False and "
                "action(x, y, s)"
            )
        if isinstance(target, Reference):
            target = Learner(LearnerSettings("csoaa", "gd"), space.fixed_actions, averaged=False).policy()
        elif actions_of(target) != (space.fixed_actions or 1):
            raise ConfigurationError(
                f"the policy has {actions_of(target)} actions and the space has {space.fixed_actions}: give a policy "
                "that was learned in this space"
            )
        self.policy = target
        functions = self.reference.functions() if self.reference is not None else {}
        self._bound = bind_space(space), bind("Reference", functions)

    def __call__(self, ids: Sequence[Any], objects: Sequence[Any], trails: Sequence[np.ndarray]) -> Followed:
        """Follow trails, each for its object; errors name the decision by its id."""
        examples = self._encoded(ids, objects)
        filled = np.array([trail.size for trail in trails], np.int64)
        for long in np.flatnonzero(filled > examples.steps):
            raise _misfit(ids[int(long)], int(examples.steps[long]))
        count, actions = len(trails), examples.most_actions
        numbers = np.arange(count)
        lessons = make_batch(None, examples, numbers, numbers, np.zeros(count), np.zeros(count)).lessons
        lessons.filled[:] = filled
        slots = lessons.slots.start.size
        followed = Followed(
            lessons, np.zeros((slots, actions), np.bool_), np.zeros((slots, actions)), np.zeros(slots, np.int64)
        )
        trail, epsilon = np.zeros((count, int(filled.max(initial=1))), np.int32), np.zeros((slots, 1))
        for b, taken in enumerate(trails):
            trail[b, : taken.size] = taken
            epsilon[lessons.first[b] : lessons.first[b] + taken.size] = self.epsilon / examples.steps[b]
        data = admit(self.space, self.reference, examples, examples.y, self._bound, compiled=self.compiled)
        scratch = make_scratch(examples, self.policy.chances.size, self._columns(examples), self.compiled)
        target = Target(self.policy, _shares(self.policy), following(0, False), self.reference is not None)
        arguments = (*self._bound, data, target, scratch, followed, trail)
        error: Exception | None = None
        try:
            follow_kernel(self.compiled, *arguments)
        except Exception as raised:
            error = raised
        if error is not None or scratch.report[CODE]:
            b = int(scratch.report[AT_EXAMPLE])
            if scratch.report[CODE] == MISFIT:
                raise _misfit(ids[b], int(scratch.report[AT_STEP]))
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)
            explained = explain(driver, error, scratch, b, lambda: follow_kernel.plain(*arguments))
            raise type(explained)(str(explained).replace(f"example {b}", f"decision {ids[b]}", 1)) from error
        return followed._replace(target=_smoothed(followed.target, followed.legal, epsilon))

    def _columns(self, examples: Examples) -> int:
        """The columns of scores: those of the weights, or one for each action if only actions have features."""
        return examples.most_actions if self.space.fixed_actions is None else int(self.policy.stack.shape[2])

    def _encoded(self, ids: Sequence[Any], objects: Sequence[Any]) -> Examples:
        """The objects in columns; an error names the decision of an object that cannot be encoded."""
        try:
            return Examples(self.space, objects, truth=False)
        except LolsError:
            for number, obj in zip(ids, objects):
                try:
                    Examples(self.space, [obj], truth=False)
                except LolsError as error:
                    reason = str(error).removeprefix("example 0").lstrip(":, ")
                    raise type(error)(f"the object of decision {number}: {reason}") from error
            raise


def _misfit(number: Any, at: int) -> LolsError:
    return LolsError(
        f"decision {number}: its trail leaves the space at step {at}: give the object of this decision, and the same "
        "space"
    )
