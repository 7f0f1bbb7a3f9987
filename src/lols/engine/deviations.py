"""Deviations, lines 7 to 10 of Algorithm 1: which steps and actions are tried, who completes them, what they cost.

The first part makes the decisions, from coins that are hashes of where they are tossed. All drivers call it, programs
with lists in place of arrays. The second part computes the cost vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.engine.calls import cost
from lols.engine.margins import passed_over
from lols.engine.merging import repeats
from lols.engine.ordering import MOST_64, SIGN_64, ordered
from lols.engine.roll_out import complete
from lols.engine.search import Deviation, find_legal
from lols.engine.structures import (
    CODE,
    COIN,
    COMPARE,
    DRAWN_POLICY,
    EXAMPLE,
    EXPECTED,
    LARGEST_COST,
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
from lols.kernels.dual import dual, has, not_inlined
from lols.kernels.hashing import mix, unit

# --- which steps ------------------------------------------------------------------------------------------------------


@dual
def steps_wanted(plan, steps):
    """At how many steps of a roll-in deviations are tried."""
    return min(plan.sample_steps, steps) if plan.sample_steps > 0 else steps


@dual
def deviates_at(key, t, steps, wanted):
    """Whether deviations are tried at step t, if `wanted` steps are still to be chosen; all sets are equally likely."""
    left = steps - t
    return wanted > 0 and (wanted >= left or unit(mix(mix(key, SAMPLE_STEP), t)) * left < wanted)


@dual
def compared_step(plan, key, wanted):
    """The chosen step at which teacher and learner are compared, counted from the last one; -1 for none."""
    return wanted - int(unit(mix(key, COMPARE)) * wanted) if plan.compare else -1


# --- which actions ----------------------------------------------------------------------------------------------------


@dual
def teacher_stream(key, t):
    """The random stream of the teacher whose action is always kept when actions are sampled or pruned at step t."""
    return mix(mix(mix(key, SAMPLE_ACTION), t), TEACHER)


@not_inlined
@dual
def keep_sample(plan, key, t, legal, kept):
    """Reduce `legal` to the actions that are `kept` (the one taken, the teacher's) and random others."""
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


@not_inlined
@dual
def keep_best(plan, predicted, legal, kept):
    """Reduce `legal` to the actions that are `kept` and those of least predicted cost."""
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

    learned: int  # the learned policy: its only component, or a draw
    who: int  # the choice of the coin that the deviations share
    beta: float  # probability of the teacher
    stream: int  # shared by the roll-outs that are compared
    own_coin: bool  # each deviation has its own coin
    expected: bool  # teacher and learner both complete each deviation
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
    # Closed-form costs may be off by a constant, so they must not be compared with roll-outs of the learner.
    closed = closed and plan.closed_form and plan.horizon == 0 and not own_coin
    who = toss(plan, learned, share, coin)
    return Completion(learned, who, share, stream, own_coin, mixture and plan.mix == EXPECTED, closed)


@dual
def teacher_alone(choice):
    """Whether the teacher alone completes all deviations."""
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
    """Whether the teacher, or the learner, has to roll out an action that `who` completes."""
    if not by_learner and choice.closed and not compared:
        return False
    return choice.expected or compared or (who != TEACHER_POLICY) == by_learner


@dual
def acting(choice, who, by_learner):
    """The policy that rolls out: the teacher, or the learner as it was drawn."""
    if not by_learner:
        return TEACHER_POLICY
    return who if who != TEACHER_POLICY else choice.learned


@dual
def combined(choice, who, by_teacher, by_learner):
    """The cost of an action, from its costs when teacher and learner complete it."""
    if choice.expected:
        return choice.beta * by_teacher + (1.0 - choice.beta) * by_learner
    return by_teacher if who == TEACHER_POLICY else by_learner


# --- the cost vector --------------------------------------------------------------------------------------------------


@dual
def immediate_costs(search, here, s, legal, stream):
    """Costs without roll-outs: what an action adds to the loss, or 1 unless the reference would take it."""
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
    """Mark the action taken and the teacher's in `kept`; the teacher chooses among the legal actions `among`."""
    scratch = search.scratch
    kept = scratch.kept
    teacher = teacher_action(search, here, s, among, teacher_stream(here.key, t))
    for a in range(kept.size):
        kept[a] = a in (scratch.base.action[t], teacher)


@dual
def find_tried(search, here, s, t):
    """Write the actions that are tried at step t of the roll-in into `legal`, and their costs if none is rolled out."""
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
            keep_sample(plan, here.key, t, legal, scratch.kept)


@not_inlined
@dual
def deviate(search, here, s, t, choice, comparing, bound):
    """Write the costs of the actions in `legal` into `values`, with the roll-outs that they need.

    With `bound`, an action that certainly costs more than the one taken is not rolled out: it gets a lower bound of its
    cost that is above the cost of the one taken. Returns whether there was such an action.
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
                value = cost(space, here.x, here.y, s, a)  # whatever follows, the action taken costs less
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


@dual
def relative_costs(scratch, costs):
    """Write the cost vector of a state: how much more than the best each action costs; infinity if it was not tried."""
    legal, values, bits = scratch.legal, scratch.values, scratch.value_bits
    wrong, low = False, MOST_64
    for a in range(legal.size):
        wrong |= legal[a] & (not np.abs(values[a]) <= LARGEST_COST)  # nor is NaN
        low = min(low, ordered(bits[a], SIGN_64, MOST_64) if legal[a] else MOST_64)
    if wrong and scratch.report[CODE] == 0:
        scratch.report[CODE] = NOT_FINITE
    bits[legal.size] = ordered(low, SIGN_64, MOST_64)  # the extra cell turns bits back into a number
    least = values[legal.size]
    for a in range(legal.size):
        costs[a] = values[a] - least if legal[a] else np.inf


@dual
def compare(search, here, s, t, beta, comparing, costs):
    """Try the actions at step t of the roll-in and write their costs; whether the state may be passed over."""
    plan, scratch = search.plan, search.scratch
    legal = scratch.legal
    scratch.completed[0] = scratch.completed[1] = 0.0
    find_tried(search, here, s, t)
    closed = has(search.reference, "costs")
    choice = completion(plan, here.key, t, search.policy.chances.size, beta, closed)
    rolled = plan.roll_out != NONE
    if rolled and choice.closed:
        teacher_costs(search, here, s, scratch.values[: legal.size])
        rolled = comparing or not teacher_alone(choice)
    if rolled and plan.prune > 0 and not teacher_alone(choice):
        # The teacher chooses among all legal actions, which need not have been sampled.
        find_legal(search, here, s, scratch.all_legal)
        keep_taken(search, here, s, t, scratch.all_legal)
        keep_best(plan, scratch.predicted[t], legal, scratch.kept)
    bound = plan.bound
    while True:
        cut = rolled and deviate(search, here, s, t, choice, comparing, bound)
        relative_costs(scratch, costs)
        over = passed_over(plan, costs, scratch.predicted[t], scratch.predicted_bits[t], scratch.seen)
        if not cut or not plan.exact or over:
            return over
        bound = False  # the state is learned from, so the exact costs are needed
