"""What the actions of a state cost: which of them are tried, who completes each, and what is made of the values."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import cost, dual, has
from lols.engine.rolling import completed, find_legal, free_actions, repeats, teacher_action, teacher_costs
from lols.engine.structures import (
    COIN,
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
    STEP,
    TEACHER,
    TEACHER_POLICY,
)
from lols.hashing import mix, unit


@dual
def immediate_costs(space, reference, x, y, s, legal, imitate, stream, values, opinion, where):
    """Without roll-outs an action costs what it adds to the loss, or 1 unless the reference would take it."""
    if has(space, "cost") and not imitate:
        for a in range(legal.size):
            if legal[a]:
                values[a] = cost(space, x, y, s, a)
    else:
        free_actions(reference, x, y, s, legal, stream, opinion, where)
        for a in range(legal.size):
            values[a] = 0.0 if opinion.free[a] else 1.0


@dual
def sample_actions(reference, x, y, s, legal, most, taken, stream, kept, opinion, where):
    """Thin out `legal` to the action taken, the teacher's, and random others."""
    count = 0
    for a in range(legal.size):
        count += legal[a]
        kept[a] = a == taken
    if count <= most:
        return
    teacher = teacher_action(reference, x, y, s, legal, mix(stream, TEACHER), opinion, where)
    if teacher >= 0:
        kept[teacher] = True
    need, left = most, count
    for a in range(legal.size):
        if kept[a]:
            need -= 1
            left -= 1
    for a in range(legal.size):
        if legal[a] and not kept[a]:
            if need > 0 and unit(mix(stream, a)) * left < need:
                kept[a] = True
                need -= 1
            left -= 1
    for a in range(legal.size):
        legal[a] = kept[a]


@dual
def prune(space, reference, x, y, s, legal, most, taken, predicted, stream, kept, opinion, where):
    """Thin out `legal` to the best-liked actions, the one taken and the teacher's: no other is worth a roll-out.

    The teacher may find actions good that were not sampled, so that it is asked about all legal ones; with the stream
    of `sample_actions` it names the action that was kept there.
    """
    find_legal(space, x, s, kept)
    teacher = teacher_action(reference, x, y, s, kept, mix(stream, TEACHER), opinion, where)
    for a in range(legal.size):
        kept[a] = a in (taken, teacher)
    for _ in range(most):
        best = -1
        for a in range(legal.size):
            if legal[a] and (best < 0 or predicted[a] < predicted[best]):
                best = a
        if best < 0:
            break
        legal[best] = False
        kept[best] = True
    for a in range(legal.size):
        legal[a] = kept[a]


@dual
def toss(plan, learned, beta, shared_stream, own_stream):
    """Who completes a deviation; the coin lies in the stream that `plan.mix` says."""
    if plan.roll_out == REFERENCE:
        return TEACHER_POLICY
    if plan.roll_out == LEARNED:
        return learned
    if plan.mix == STEP:
        return DRAWN_POLICY
    stream = own_stream if plan.mix == ROLLOUT else shared_stream
    return TEACHER_POLICY if unit(mix(stream, -1)) < beta else learned


@dual
def evaluate(
    space, reference, x, y, s, t, limit, legal, policy, plan, of, first_item, item_count, round_key, comparing, bound,
    scratch, batch, b,
):  # fmt: skip
    """Fill `scratch.values` with the cost of every chosen action at the roll-in's state at time t.

    With `bound`, what surely costs more than the action that was taken has some such cost, and True is given.
    """
    base, where = scratch.base, scratch.where
    beta = batch.beta[b] if plan.roll_out == MIXTURE else 0.0
    learned = 0 if policy.chances.size == 1 else DRAWN_POLICY
    expected = plan.roll_out == MIXTURE and plan.mix == EXPECTED
    closed = plan.closed_form and has(reference, "costs") and plan.horizon == 0
    if plan.roll_out == MIXTURE and plan.mix == ROLLOUT:
        closed = False  # teacher's and learner's values are compared, and closed-form ones may be off by a constant
    state_stream = mix(mix(round_key, COIN), t)
    shared_stream = mix(round_key, COIN) if plan.mix == EXAMPLE else state_stream
    if closed:
        teacher_costs(reference, x, y, s, legal, scratch.opinion.costs, where)
        for a in range(legal.size):
            scratch.values[a] = scratch.opinion.costs[a]
    shared = toss(plan, learned, beta, shared_stream, state_stream)
    apart = plan.roll_out == MIXTURE and plan.mix == ROLLOUT
    teacher_alone = shared == TEACHER_POLICY and not expected and not apart
    if closed and teacher_alone and not comparing:
        return False
    if plan.prune > 0 and not teacher_alone:  # whether the teacher's costs are known in closed form or not
        stream = mix(mix(round_key, SAMPLE_ACTION), t)
        prune(
            space, reference, x, y, s, legal, plan.prune, base.action[t], scratch.predicted[t], stream, scratch.here,
            scratch.opinion, where,
        )  # fmt: skip
    bounded = bound and has(space, "cost") and not expected and not apart
    bounded = bounded and not comparing and repeats(plan, policy.chances.size, shared)
    cut = False
    for a in range(legal.size):
        if not legal[a] or where[0] != 0:
            continue
        stream, who = state_stream, shared
        if plan.mix == ROLLOUT:
            stream = mix(state_stream, a)
            who = toss(plan, learned, beta, shared_stream, stream)
        compared = comparing and a == base.action[t]
        by_teacher, by_learner = scratch.values[a], 0.0
        for part in range(2):
            acting = TEACHER_POLICY if part == 0 else (who if who != TEACHER_POLICY else learned)
            needed = expected or compared or (who == TEACHER_POLICY) == (part == 0)
            if not needed or (part == 0 and closed and not compared):
                continue
            if plan.reuse and a == base.action[t] and repeats(plan, policy.chances.size, acting):
                value = base.value[t]
            elif bounded and a != base.action[t] and cost(space, x, y, s, a) > base.value[t]:
                value = cost(space, x, y, s, a)  # whatever follows, it costs more than the action that was taken
                cut = True
            else:
                share = beta if plan.mix == STEP else 0.0
                value = completed(
                    space, reference, x, y, s, t, a, limit, policy, acting, share, plan, of, first_item, item_count,
                    stream, scratch,
                )  # fmt: skip
            if compared:
                batch.losses[b, 1 + part] = value
            if part == 1:
                by_learner = value
            elif not closed:
                by_teacher = value
        if expected:
            scratch.values[a] = beta * by_teacher + (1.0 - beta) * by_learner
        else:
            scratch.values[a] = by_teacher if who == TEACHER_POLICY else by_learner
    return cut


@dual
def weigh(
    space, reference, x, y, s, t, limit, policy, plan, of, first_item, item_count, round_key, comparing, scratch, batch,
    b,
):  # fmt: skip
    """Fill `scratch.values` with the cost of every action that is tried at the roll-in's state at time t.

    `scratch.legal` says which are. True if some are bounds only.
    """
    legal, where = scratch.legal, scratch.where
    find_legal(space, x, s, legal)
    if plan.roll_out == NONE:
        stream = mix(mix(round_key, TEACHER), t)
        immediate_costs(space, reference, x, y, s, legal, plan.imitate, stream, scratch.values, scratch.opinion, where)
    if plan.sample_actions > 0:
        stream = mix(mix(round_key, SAMPLE_ACTION), t)
        sample_actions(
            reference, x, y, s, legal, plan.sample_actions, scratch.base.action[t], stream, scratch.here,
            scratch.opinion, where,
        )  # fmt: skip
    if plan.roll_out == NONE:
        return False
    return evaluate(
        space, reference, x, y, s, t, limit, legal, policy, plan, of, first_item, item_count, round_key, comparing,
        plan.bound, scratch, batch, b,
    )  # fmt: skip


@dual
def relative_costs(legal, values, bits, costs, slot, where):
    """Write the cost vector of a state: what each action costs more than the best one; `bits` are `values`."""
    wrong, most = False, np.int64(9223372036854775807)
    low = most
    for a in range(legal.size):
        wrong |= legal[a] & (not np.isfinite(values[a]))
        ordered = bits[a] ^ ((bits[a] >> np.int64(63)) & most)
        low = min(low, ordered if legal[a] else most)
    if wrong and where[0] == 0:
        where[0] = NOT_FINITE
    low = low ^ ((low >> np.int64(63)) & most)
    least = np.inf
    for a in range(legal.size):
        if legal[a] and bits[a] == low:
            least = values[a]
            break
    for a in range(legal.size):
        costs[slot, a] = values[a] - least if legal[a] else np.inf
