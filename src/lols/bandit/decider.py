"""Decisions one at a time, from a policy and the id of the event alone, in memory that each thread keeps."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.entries import Decision, check_id, context_of
from lols.bandit.one import OneByOne, admitted
from lols.bandit.policy import CURRENT, MEMBER, BanditPolicy
from lols.bandit.retrace import Retracer
from lols.bandit.seen import Seen, seen_of
from lols.bandit.settings import BAG, STEPS
from lols.bandit.walk import (
    CHANCES,
    COIN,
    EXPLOIT,
    EXPLORE,
    GAP,
    NOTES,
    RANDOMISED,
    REFERENCE,
    Walked,
    WalkPlan,
    deviate_kernel,
    walk_kernel,
)
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.engine.calls import bind_space
from lols.engine.door import look_over
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.mistakes import explain
from lols.engine.lessons import predicted_costs
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.structures import CODE, NO_ACTIONS, FrozenPolicy, Scratch, Slots
from lols.kernels.dual import bind
from lols.kernels.hashing import mix, unit
from lols.kernels.kernel import Kernel

BY_REFERENCE = WalkPlan(REFERENCE, 0, 0.0, 0.0, 0, 1.0)
ROOMS = 1000  # the most sizes of objects to keep memory for
DECIDING, EXPLORING = 0xBA4D, 21  # purposes of draws


Vote = Callable[[Seen], np.ndarray]


class Shown(NamedTuple):
    """A structure to show, and the id under which its loss is to be reported.

    Attributes
    ----------
    id
        What `learn` takes with the loss.
    output
        The structure to show.
    explored
        Whether something is to be learned from its loss.
    chances
        The probability of each action; empty if they were not drawn step by step.

    """

    id: str
    output: Any
    explored: bool
    chances: tuple[float, ...] = ()  # the probability of each action; empty if they were not drawn step by step


class Decider:
    """Decides by a `BanditPolicy`: without a lock, a log or a learner. Threads may share it.

    The random numbers of a decision come from the seed of the policy's settings and the id of the event, so that the
    same policy gives the same answer again.

    Parameters
    ----------
    space
        The search space that the weights are for: `bandit.space`.
    reference
        The current system: `bandit.reference`.
    compiled
        False runs the same code as plain Python.
    checks
        Whether functions of your own are checked on the first object: see `lols.Trainer`.

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        reference: Reference | None = None,
        *,
        compiled: bool = True,
        checks: bool = False,
    ):
        self.space = as_space(space)
        self.reference = as_teacher(reference, self.space)
        self.compiled, self._unchecked = compiled, checks
        functions = bind_space(self.space)
        self._bound = functions, bind("Reference", self.reference.functions())
        self._encode = OneByOne(self.space)
        self._retracer = Retracer(self.space, compiled=compiled)
        self._memories = threading.local()
        self._names_action = self.reference.action is not None and not self.reference.random

    def decide(self, obj: Any, policy: BanditPolicy, id: Any, *, active: bool = True) -> tuple[Shown, Decision]:
        """Make a structure for an object: what to show, and what to write to the log.

        The number of the decision, which depends on the log, is 0.

        Parameters
        ----------
        obj
            What the space encodes.
        policy
            The policy to decide by.
        id
            The id of the event, from which all random numbers follow.
        active
            Whether the structure is shown at once.

        """
        id = check_id(id)
        stream = mix(mix(policy.settings.seed, DECIDING), number_of(id))
        mode = _mode(policy, stream)
        weights, which = (policy.weights[CURRENT], -1) if mode == EXPLORE else policy.exploiting(stream)
        settings = policy.settings
        plan = _plan(policy, mode, stream)
        examples = self._examples(obj)
        vote = partial(votes, policy, compiled=self.compiled) if settings.exploration == BAG else None
        output, decision = self._walked(examples, weights, plan, vote)
        decision = decision._replace(
            id=id,
            time=time.time(),
            context=context_of(obj),
            baseline=self._baseline(examples, weights, plan, decision),
            version=policy.version,
            policy=which,
            guarded=mode == REFERENCE,
            active=active,
        )
        if decision.context is None and (decision.explored or settings.estimator == "all"):
            seen = self._retracer.trace(decision, examples)
            one = decision.explored and not decision.chances.size
            decision = decision._replace(seen=_one(seen, decision) if one else seen)
        return shown_of(decision, output), decision

    def again(self, obj: Any, decision: Decision) -> Shown:
        """The answer of an earlier decision on this object.

        Parameters
        ----------
        obj
            The object of that decision.
        decision
            The decision, as it is in the log.

        """
        examples = self._examples(obj)
        state = self._retracer.end(decision, examples)
        return shown_of(decision, examples.output(0, state))

    def predict(self, obj: Any, weights: FrozenPolicy, *, by_reference: bool = False) -> Any:
        """The structure for an object without exploration; or that of the reference.

        Parameters
        ----------
        obj
            What the space encodes.
        weights
            The weights to follow, such as `policy.final`.
        by_reference
            Whether to follow the reference instead.

        """
        plan = WalkPlan(REFERENCE if by_reference else EXPLOIT, 0, 0.0, 0.0, 0, 1.0)
        examples = self._examples(obj)
        out, arguments = self._walk(examples, weights, plan)
        self._run(walk_kernel, examples, arguments)
        return examples.output(0, out.state)

    # --- one walk ---

    def walk(self, obj: Any, weights: FrozenPolicy, plan: WalkPlan, vote: Vote | None = None) -> tuple[Any, Decision]:
        """Make a structure for an object: the output, and what is to be said of it as far as it follows from the walk.

        Parameters
        ----------
        obj
            What the space encodes.
        weights
            The weights to follow.
        plan
            How to walk.
        vote
            The chance of each action in the state in which a walk deviates, as a function of that state.

        """
        return self._walked(self._examples(obj), weights, plan, vote)

    def _examples(self, obj: Any) -> Examples:
        examples = self._encode(obj)
        if self._unchecked:
            look_over(self.space, self.reference, examples, self._bound)
            self._unchecked = False
        return examples

    def _walked(
        self, examples: Examples, weights: FrozenPolicy, plan: WalkPlan, vote: Vote | None
    ) -> tuple[Any, Decision]:
        out, arguments = self._walk(examples, weights, plan)
        self._run(walk_kernel, examples, arguments)
        if plan.mode == EXPLORE and out.note[0]:
            if vote is not None:
                out.weights[:] = vote(_standing(out, arguments[6]))
            self._run(deviate_kernel, examples, arguments)
        length, step, action, coin = out.note[: COIN + 1].tolist()
        chance_step, chance_action, propensity = out.chance.tolist()
        drawn = plan.mode == RANDOMISED
        decision = Decision(
            id="",
            number=0,
            time=0.0,
            context=None,
            actions=out.trail[:length].copy(),
            chances=out.chances[: length if drawn else 0].astype(np.float32),
            baseline=None,
            step=step,
            action=action,
            by_reference=bool(coin),
            chance_step=chance_step,
            chance_action=chance_action,
            version=0,
            policy=-1,
            guarded=False,
            propensity=propensity if drawn else np.nan,
            active=True,
            seen=None,
        )
        return examples.output(0, out.state), decision

    def _baseline(
        self, examples: Examples, weights: FrozenPolicy, plan: WalkPlan, decision: Decision
    ) -> np.ndarray | None:
        """What the reference would have shown; None if it draws at random, or has no answer."""
        if not self._names_action:
            return None
        if plan.mode == REFERENCE:
            return decision.actions
        out, arguments = self._walk(examples, weights, BY_REFERENCE)
        try:
            walk_kernel(self.compiled, *arguments)
        except Exception:
            return None
        wrong = arguments[5].report[CODE] not in (0, NO_ACTIONS)
        return None if wrong else out.trail[: out.note[0]].copy()

    def _walk(self, examples: Examples, weights: FrozenPolicy, plan: WalkPlan) -> tuple[Walked, tuple[Any, ...]]:
        """The arguments of the kernels for one walk, and where they write its results."""
        data = admitted(examples, self.reference, self._bound, compiled=self.compiled)
        memory = vars(self._memories).setdefault("memory", None)
        if memory is None:
            memory = self._memories.memory = _Memory(self.compiled)
        scratch, slots, out = memory.of(examples, weights)
        return out, (*self._bound, data, weights, plan, scratch, slots, out)

    def _run(self, kernel: Kernel, examples: Examples, arguments: tuple[Any, ...]) -> None:
        """Run a kernel, and explain its errors. Where nothing is allowed, nothing is shown: that is no error."""
        scratch, error = arguments[5], None
        try:
            kernel(self.compiled, *arguments)
        except Exception as raised:
            error = raised
        if error is None and scratch.report[CODE] == NO_ACTIONS:
            return
        if error is not None or scratch.report[CODE]:
            driver = FusedDriver(self.space, examples, self.reference, compiled=self.compiled)

            def again() -> None:
                scratch.report[CODE] = 0
                kernel.plain(*arguments)

            raise explain(driver, error, scratch, 0, again) from error


class _Memory:
    """Working memory of one thread."""

    def __init__(self, compiled: bool):
        self.compiled = compiled
        self._by_width: dict[tuple[int, int, int], tuple[tuple[int, ...], Scratch, Slots]] = {}
        self._rooms: dict[tuple[int, ...], Walked] = {}

    def of(self, examples: Examples, weights: FrozenPolicy) -> tuple[Scratch, Slots, Walked]:
        """Memory for an object, allocated again when it does not fit into that for others with as many actions."""
        items, actions = examples.items, examples.most_actions
        columns = weights.stack.shape[2] if examples.space.fixed_actions is not None else actions
        need = (
            min(int(examples.steps[0]), 1),
            int(items.first[-1] - items.first[0]) if items.first.size > 1 else 0,
            int(items.start.size),
            examples.widest_item,
        )
        kind = actions, columns, weights.chances.size
        known = self._by_width.get(kind)
        if known is None or any(n > r for n, r in zip(need, known[0], strict=True)):
            if len(self._by_width) >= ROOMS:
                self._by_width.clear()
            one = np.zeros(1, np.int64)
            scratch = make_scratch(examples, weights.chances.size, columns, self.compiled)
            slots = make_batch(None, examples, one, one, np.zeros(1), np.zeros(1)).lessons.slots
            known = self._by_width[kind] = need, scratch, slots
        size = int(examples.states[0]), int(examples.steps[0]), actions
        widths = known[2].ids.size, weights.sketched.sketches.along.size
        return known[1], known[2], self._out(*size, *widths)

    def _out(self, states: int, steps: int, actions: int, features: int, rows: int) -> Walked:
        """Memory for the results of a walk, kept for the next object of this size; a sketch has so many rows."""
        walked = self._rooms.get((states, steps, actions, features, rows))
        if walked is None:
            if len(self._rooms) >= ROOMS:
                self._rooms.clear()
            walked = self._rooms[states, steps, actions, features, rows] = Walked(
                state=np.zeros(states, state_type(self.compiled)),
                trail=np.zeros(steps + 1, np.int32),
                chances=np.ones(steps + 1, np.float64),
                note=np.zeros(NOTES, np.int64),
                chance=np.ones(CHANCES),
                legal=np.zeros(actions, np.bool_),
                predicted=np.zeros(actions, np.float32),
                weights=np.zeros(actions),
                low=np.zeros(actions),
                rows=np.zeros(features, np.int64),
                along=np.zeros(rows),
                gain=np.zeros(rows),
                column=np.zeros(rows, np.float32),
            )
        return walked


def shown_of(decision: Decision, output: Any) -> Shown:
    """The answer of a decision."""
    return Shown(decision.id, output, decision.explored, tuple(decision.chances.tolist()))


def number_of(id: str) -> int:
    """A number of 64 bits for the id of an event: that of a number is the number itself.

    >>> number_of("17"), number_of("017") == 17
    (17, False)
    """
    if id.isascii() and id.isdecimal() and len(id) < 19 and (id == "0" or id[0] != "0"):
        return int(id)
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little", signed=True)


def _mode(policy: BanditPolicy, stream: int) -> int:
    """The mode of a round: exploring, by the learned policy, or by the reference."""
    u = unit(mix(stream, EXPLORING))
    if policy.trusted is None and policy.settings.drawing == GAP:
        mode = REFERENCE if u < policy.compared else EXPLORE
    elif policy.trusted is None:
        mode = EXPLORE if u < policy.epsilon else EXPLOIT
    elif u < policy.epsilon / 2:
        mode = EXPLORE
    else:
        other_one = u < policy.epsilon
        mode = EXPLOIT if policy.trusted != other_one else REFERENCE
    return RANDOMISED if policy.settings.randomise == STEPS and mode != REFERENCE else mode


def _plan(policy: BanditPolicy, mode: int, stream: int) -> WalkPlan:
    """How to walk by a policy."""
    settings, pace = policy.settings, math.inf if policy.pace is None else policy.pace
    epsilon = 1.0 if policy.trusted is not None and settings.drawing == GAP else policy.epsilon
    gap = settings.gap * math.sqrt(policy.version + 1)
    return WalkPlan(
        mode, stream, settings.beta, epsilon, settings.drawing, settings.width, gap, settings.optimism, pace
    )


def votes(policy: BanditPolicy, seen: Seen, *, compiled: bool) -> np.ndarray:
    """The chance of each action: `width` is shared by all, the rest goes by the votes of the bag's members."""
    legal, members, width = seen.legal[0], policy.numbered(MEMBER), policy.settings.width
    chances = np.where(legal, width / legal.sum(), 0.0)
    for member in members:
        costs = predicted_costs(seen.lessons, member, compiled=compiled)[0]
        chances[int(np.argmin(np.where(legal, costs, np.inf)))] += (1.0 - width) / len(members)
    return chances


def _standing(out: Walked, slots: Slots) -> Seen:
    """The state in which a walk stopped to deviate."""
    return seen_of(
        start=slots.start[:1],
        stop=slots.stop[:1],
        ids=slots.ids,
        values=slots.values,
        action_start=slots.action_start[:1],
        action_stop=slots.action_stop[:1],
        action_ids=slots.action_ids,
        action_values=slots.action_values,
        legal=out.legal.reshape(1, -1),
        taken=np.array([out.legal.argmax()]),
        chances=np.ones(1),
        steps=out.note[1:2],
    )


def _one(seen: Seen, decision: Decision) -> Seen:
    """The state in which a decision deviated."""
    return seen.only(decision.step)._replace(chances=np.array([decision.chance_action]))
