"""Who is compared with whom: which steps and actions are tried, who completes each, and what the actions then cost.

Lines 7 to 10 of Algorithm 1. The first part decides, from coins that are hashes of where they are tossed; drivers of
all kinds ask it (programs with lists in the place of arrays). The second part fills in the cost vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.contract.hashing import mix, unit
from lols.engine.compile.dual import apart, cost, dual, has
from lols.engine.margins import passed_over
from lols.engine.merging import repeats
from lols.engine.roll_out import complete
from lols.engine.search import Deviation, find_legal
from lols.engine.structures import (
    CODE,
    COIN,
    COMPARE,
    DRAWN_POLICY,
    EXAMPLE,
    EXPECTED,
    LEARNED,
    MIXTURE,
    NONE,
    NOT_FINITE,
    REFERENCE,
    ROLLOUT,
    SAMPLE_ACTION,
    SAMPLE_STEP,
    STEP,
    TEACHER,
    TEACHER_POLICY,
)
from lols.engine.teacher import free_actions, teacher_action, teacher_costs

__all__ = [
    "Completion",
    "acting",
    "combined",
    "compare",
    "compared_step",
    "completer",
    "completion",
    "deviates_at",
    "keep_best",
    "keep_sample",
    "must_complete",
    "steps_wanted",
    "teacher_alone",
    "teacher_stream",
]


# --- which steps ------------------------------------------------------------------------------------------------------


@dual
def steps_wanted(plan, steps):
    """At how many of a roll-in's steps deviations are tried."""
    return min(plan.sample_steps, steps) if plan.sample_steps > 0 else steps


@dual
def deviates_at(key, t, steps, wanted):
    """Whether step t is one of the steps that are `wanted` still; each set of steps is equally likely."""
    left = steps - t
    return wanted > 0 and (wanted >= left or unit(mix(mix(key, SAMPLE_STEP), t)) * left < wanted)


@dual
def compared_step(plan, key, wanted):
    """The step at which teacher and learner are compared, counted from the last one that is wanted; -1 for none."""
    return wanted - int(unit(mix(key, COMPARE)) * wanted) if plan.compare else -1


# --- which actions ----------------------------------------------------------------------------------------------------


@dual
def teacher_stream(key, t):
    """The stream of the teacher whose action is kept, whatever else is sampled or pruned at step t."""
    return mix(mix(mix(key, SAMPLE_ACTION), t), TEACHER)


@apart
@dual
def keep_sample(plan, key, t, legal, kept):
    """Thin out `legal` to the actions that are `kept` (the one taken, the teacher's) and random others."""
    stream = mix(mix(key, SAMPLE_ACTION), t)
    need, left = plan.sample_actions, 0
    for a in range(len(legal)):
        if kept[a]:
            need -= 1
        elif legal[a]:
            left += 1
    for a in range(len(legal)):
        if legal[a] and not kept[a]:
            if need > 0 and unit(mix(stream, a)) * left < need:
                kept[a] = True
                need -= 1
            left -= 1
    for a in range(len(legal)):
        legal[a] = kept[a]


@apart
@dual
def keep_best(plan, predicted, legal, kept):
    """Thin out `legal` to the actions that are `kept` and the best-liked ones: no other is worth a roll-out."""
    for _ in range(plan.prune):
        best = -1
        for a in range(len(legal)):
            if legal[a] and (best < 0 or predicted[a] < predicted[best]):
                best = a
        if best < 0:
            break
        legal[best] = False
        kept[best] = True
    for a in range(len(legal)):
        legal[a] = kept[a]


# --- who completes ----------------------------------------------------------------------------------------------------


class Completion(NamedTuple):
    """Who completes the deviations of a state."""

    learned: int  # the policy: its only component, or a draw
    who: int  # whom the coin that they share chose
    beta: float  # the teacher's chance
    stream: int  # shared by the roll-outs that are compared
    own_coin: bool  # each has a coin of its own
    expected: bool  # teacher and learner both complete each of them
    closed: bool  # the teacher's costs are known in closed form


@dual
def toss(plan, learned, beta, coin):
    """Who completes a deviation."""
    if plan.roll_out == REFERENCE:
        return TEACHER_POLICY
    if plan.roll_out == LEARNED:
        return learned
    if plan.mix == STEP:
        return DRAWN_POLICY
    return TEACHER_POLICY if unit(mix(coin, -1)) < beta else learned


@dual
def completion(plan, key, t, components, beta, closed):
    """Who completes the deviations at step t; `closed` says whether the teacher has costs in closed form."""
    mixture = plan.roll_out == MIXTURE
    share = beta if mixture else 0.0
    learned = 0 if components == 1 else DRAWN_POLICY
    stream = mix(mix(key, COIN), t)
    coin = mix(key, COIN) if plan.mix == EXAMPLE else stream
    own_coin = mixture and plan.mix == ROLLOUT
    # Closed-form costs may be off by a constant, which must not be compared with roll-outs of the learner's.
    known = closed and plan.closed_form and plan.horizon == 0 and not own_coin
    who = toss(plan, learned, share, coin)
    return Completion(learned, who, share, stream, own_coin, mixture and plan.mix == EXPECTED, known)


@dual
def teacher_alone(choice):
    """Whether the teacher completes all deviations, and nobody else any."""
    return choice.who == TEACHER_POLICY and not choice.expected and not choice.own_coin


@dual
def completer(plan, choice, a):
    """Who completes action `a`, and the stream of that roll-out."""
    if plan.mix != ROLLOUT:
        return choice.who, choice.stream
    stream = mix(choice.stream, a)
    return toss(plan, choice.learned, choice.beta, stream), stream


@dual
def must_complete(choice, who, by_learner, compared):
    """Whether the teacher, or the learner, has to roll an action out that `who` completes."""
    if not by_learner and choice.closed and not compared:
        return False
    return choice.expected or compared or (who != TEACHER_POLICY) == by_learner


@dual
def acting(choice, who, by_learner):
    """The policy that rolls out: the teacher, or the learner in the way it was drawn."""
    if not by_learner:
        return TEACHER_POLICY
    return who if who != TEACHER_POLICY else choice.learned


@dual
def combined(choice, who, by_teacher, by_learner):
    """The cost of an action, from what teacher and learner made of it."""
    if choice.expected:
        return choice.beta * by_teacher + (1.0 - choice.beta) * by_learner
    return by_teacher if who == TEACHER_POLICY else by_learner


# --- the cost vector --------------------------------------------------------------------------------------------------


@apart
@dual
def immediate_costs(search, here, s, legal, stream):
    """Without roll-outs an action costs what it adds to the loss, or 1 unless the reference would take it."""
    values = search.scratch.values
    if has(search.space, "cost") and not search.plan.imitate:
        for a in range(legal.size):
            if legal[a]:
                values[a] = cost(search.space, here.x, here.y, s, a)
    else:
        free_actions(search, here, s, legal, stream)
        for a in range(legal.size):
            values[a] = 0.0 if search.scratch.teacher.free[a] else 1.0


@dual
def keep_taken(search, here, s, t, among):
    """Mark the action that was taken and the teacher's, which is asked about the actions `among`, in `there`."""
    scratch = search.scratch
    kept = scratch.there
    teacher = teacher_action(search, here, s, among, teacher_stream(here.key, t))
    for a in range(kept.size):
        kept[a] = a in (scratch.base.action[t], teacher)


@apart
@dual
def find_tried(search, here, s, t):
    """The actions that are tried at the roll-in's state of time t, in `legal`; their costs, if none is rolled out."""
    plan, scratch = search.plan, search.scratch
    legal = scratch.legal
    find_legal(search, here, s, legal)
    if plan.roll_out == NONE:
        immediate_costs(search, here, s, legal, mix(mix(here.key, TEACHER), t))
    if plan.sample_actions > 0:
        count = 0
        for a in range(legal.size):
            count += legal[a]
        if count > plan.sample_actions:
            keep_taken(search, here, s, t, legal)
            keep_sample(plan, here.key, t, legal, scratch.there)


@apart
@dual
def deviate(search, here, s, t, choice, comparing, bound):
    """Fill `values` with the costs of the actions in `legal`: what it takes is rolled out.

    With `bound`, what surely costs more than the action that was taken has some such cost, and True is given.
    """
    space, plan, scratch = search.space, search.plan, search.scratch
    legal, values, base = scratch.legal, scratch.values, scratch.base
    components, taken = search.policy.chances.size, base.action[t]
    bounded = bound and has(space, "cost") and not choice.expected and not choice.own_coin
    bounded = bounded and not comparing and repeats(plan, components, choice.who)
    cut = False
    for a in range(legal.size):
        if not legal[a] or scratch.report[CODE] != 0:
            continue
        who, stream = completer(plan, choice, a)
        compared = comparing and a == taken
        by_teacher, by_learner = values[a], 0.0
        for part in range(2):
            if not must_complete(choice, who, part == 1, compared):
                continue
            rolling = acting(choice, who, part == 1)
            if plan.reuse and a == taken and repeats(plan, components, rolling):
                value = base.value[t]
            elif bounded and a != taken and cost(space, here.x, here.y, s, a) > base.value[t]:
                value = cost(space, here.x, here.y, s, a)  # whatever follows, the action that was taken costs less
                cut = True
            else:
                share = choice.beta if plan.mix == STEP else 0.0
                value = complete(search, here, s, Deviation(t, a, rolling, share, stream))
            if compared:
                scratch.completed[part] = value
            if part == 1:
                by_learner = value
            elif not choice.closed:
                by_teacher = value
        values[a] = combined(choice, who, by_teacher, by_learner)
    return cut


@apart
@dual
def relative_costs(scratch, costs):
    """Write the cost vector of a state: what each action costs more than the best one; infinity for those not tried."""
    legal, values, bits = scratch.legal, scratch.values, scratch.value_bits
    wrong, most = False, np.int64(9223372036854775807)
    low = most
    for a in range(legal.size):
        wrong |= legal[a] & (not np.isfinite(values[a]))
        ordered = bits[a] ^ ((bits[a] >> np.int64(63)) & most)
        low = min(low, ordered if legal[a] else most)
    if wrong and scratch.report[CODE] == 0:
        scratch.report[CODE] = NOT_FINITE
    low = low ^ ((low >> np.int64(63)) & most)
    least = np.inf
    for a in range(legal.size):
        if legal[a] and bits[a] == low:
            least = values[a]
            break
    for a in range(legal.size):
        costs[a] = values[a] - least if legal[a] else np.inf


@apart
@dual
def compare(search, here, s, t, beta, comparing, costs):
    """Try the actions at the roll-in's state of time t, and write what each costs; whether it may be passed over."""
    plan, scratch = search.plan, search.scratch
    legal = scratch.legal
    scratch.completed[0] = scratch.completed[1] = 0.0
    find_tried(search, here, s, t)
    closed = has(search.reference, "costs")
    choice = completion(plan, here.key, t, search.policy.chances.size, beta, closed)
    rolled = plan.roll_out != NONE
    if rolled and choice.closed:
        teacher_costs(search, here, s, legal)
        for a in range(legal.size):
            scratch.values[a] = scratch.teacher.costs[a]
        rolled = comparing or not teacher_alone(choice)
    if rolled and plan.prune > 0 and not teacher_alone(choice):
        # The teacher may find actions good that were not sampled, so that it is asked about all legal ones.
        find_legal(search, here, s, scratch.there)
        keep_taken(search, here, s, t, scratch.there)
        keep_best(plan, scratch.predicted[t], legal, scratch.there)
    bound = plan.bound
    while True:
        cut = rolled and deviate(search, here, s, t, choice, comparing, bound)
        relative_costs(scratch, costs)
        over = passed_over(plan, costs, scratch.predicted[t], scratch.predicted_bits[t], scratch.seen)
        if not cut or not plan.exact or over:
            return over
        bound = False  # it is learned from, so that it matters how much each action costs
