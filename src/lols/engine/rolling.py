"""Who acts at a state, and what a state is worth when someone completes it: teachers, deviations and roll-outs."""

from __future__ import annotations

import numpy as np
from lols.engine.compile.dual import actions, cost, dual, free, has, key, loss, reference_action, reference_costs, step
from lols.engine.scoring import cheapest, draw_component, gather, score
from lols.engine.structures import (
    COMPONENT,
    DRAWN_POLICY,
    ILLEGAL_REFERENCE,
    LEARNED,
    NOT_FINITE,
    NOTHING,
    REFERENCE,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
    Orders,
)
from lols.hashing import mix, unit


@dual
def find_legal(space, x, s, legal):
    """Ask the space for the legal actions; whether there is any."""
    for a in range(legal.size):
        legal[a] = False
    actions(space, x, s, legal)
    for a in range(legal.size):
        if legal[a]:
            return True
    return False


# --- the teacher ------------------------------------------------------------------------------------------------------


@dual
def teacher_costs(reference, x, y, s, legal, out, where):
    """Ask the reference for its closed-form costs; every legal action must get a number."""
    for a in range(legal.size):
        out[a] = np.nan
    reference_costs(reference, x, y, s, out)
    wrong = False
    for a in range(legal.size):
        wrong |= legal[a] and not np.isfinite(out[a])
    if wrong:
        where[0] = NOT_FINITE


@dual
def free_actions(reference, x, y, s, legal, stream, opinion, where):
    """Mark the reference's equally good actions in `opinion.free`."""
    marked = opinion.free
    for a in range(legal.size):
        marked[a] = False
    if has(reference, "free"):
        free(reference, x, y, s, marked)
    elif has(reference, "action"):
        opinion.rng[0] = stream
        a = np.int64(reference_action(reference, x, y, s, opinion.rng))
        if 0 <= a < legal.size:
            marked[a] = True
        else:
            where[0], where[3] = ILLEGAL_REFERENCE, a
    else:
        teacher_costs(reference, x, y, s, legal, opinion.costs, where)
        least = np.inf
        for a in range(legal.size):
            if legal[a]:
                least = min(least, opinion.costs[a])
        for a in range(legal.size):
            marked[a] = legal[a] and opinion.costs[a] == least
    count = 0
    for a in range(legal.size):
        if marked[a] and not legal[a]:
            where[0], where[3] = ILLEGAL_REFERENCE, a
        count += marked[a]
    if count == 0 and where[0] == 0:
        where[0], where[3] = ILLEGAL_REFERENCE, NOTHING


@dual
def teacher_action(reference, x, y, s, legal, stream, opinion, where):
    """The reference's action in a roll-out: the one it names, or the first of its equally good ones; -1 on an error."""
    if has(reference, "action"):
        opinion.rng[0] = stream
        a = np.int64(reference_action(reference, x, y, s, opinion.rng))
        if a < 0 or a >= legal.size or not legal[a]:
            where[0], where[3] = ILLEGAL_REFERENCE, a
            return np.int64(-1)
        return a
    free_actions(reference, x, y, s, legal, stream, opinion, where)
    for a in range(legal.size):
        if opinion.free[a] and legal[a]:
            return np.int64(a)
    return np.int64(-1)


# --- merging ----------------------------------------------------------------------------------------------------------


@dual
def remember(memo, epoch, line, identity, value):
    """Store what a state is worth; a full memo takes no more."""
    mask = memo.mask[0]
    if memo.filled[line] * 2 > mask:
        return
    h = mix(identity, 0) & mask
    while memo.keys[line, h, 0] == epoch:
        if memo.keys[line, h, 1] == identity:
            return
        h = (h + 1) & mask
    memo.keys[line, h, 0] = epoch
    memo.keys[line, h, 1] = identity
    memo.values[line, h] = value
    memo.filled[line] += 1


@dual
def recall(memo, epoch, line, identity):
    """The slot at which a state's worth is stored, or -1."""
    mask = memo.mask[0]
    h = mix(identity, 0) & mask
    while memo.keys[line, h, 0] == epoch:
        if memo.keys[line, h, 1] == identity:
            return h
        h = (h + 1) & mask
    return -1


@dual
def forget(memo, states):
    """Empty the memo for a new example with up to `states` states; a small memo stays in the processor's cache."""
    memo.filled[0] = memo.filled[1] = 0
    size = 2
    while size < 2 * states and size < memo.keys.shape[1]:
        size *= 2
    memo.mask[0] = size - 1


@dual
def merges(plan, who):
    """Whether roll-outs of this policy may be merged: only if it never draws at random."""
    if not plan.merge or plan.horizon > 0 or who == DRAWN_POLICY:
        return False
    return not plan.random_teacher if who == TEACHER_POLICY else not plan.random_ties


@dual
def repeats(plan, components, who):
    """Whether this roll-out policy, put on the roll-in's trajectory, follows it to the end."""
    if plan.horizon > 0:
        return False
    if who == TEACHER_POLICY:
        return plan.roll_in == REFERENCE and not plan.random_teacher and not plan.set_valued
    return who == 0 and plan.roll_in == LEARNED and components == 1 and not plan.random_ties


# --- deviations -------------------------------------------------------------------------------------------------------


@dual
def deviate(
    space, reference, x, y, s, taken, a, limit, policy, who, beta, plan, of, first_item, item_count, stream, scratch
):
    """What it costs to take action `a` at state `s`, after `taken` steps, and let `who` finish: a one-step deviation.

    Where costs do not add up along the way, this is the loss of the end state. Costs are added from the end backwards,
    so that a roll-out that was merged into another gives the very same number as a full one.
    """
    d, legal, path, epoch = scratch.deviation[: s.size], scratch.here, scratch.path, scratch.epoch[0]
    for k in range(min(plan.live, s.size) if plan.live > 0 else s.size):
        d[k] = s[k]
    merged = has(space, "key") and merges(plan, who)
    line = 0 if who == TEACHER_POLICY else 1
    value = 0.0
    path.cost[0] = cost(space, x, y, s, a)
    step(space, x, d, a)
    n = 0
    while scratch.where[0] == 0:
        if not find_legal(space, x, d, legal):
            if not has(space, "cost"):
                value = float(loss(space, x, y, d))
            break
        if plan.horizon > 0 and n >= plan.horizon:
            break
        if merged:
            identity = np.int64(key(space, x, d))
            slot = recall(scratch.memo, epoch, line, identity)
            if slot >= 0:
                value = scratch.memo.values[line, slot]
                break
            path.key[n] = identity
        if taken + n + 1 >= limit:
            scratch.where[0], scratch.where[2] = TOO_MANY_STEPS, limit
            break
        draw = mix(stream, n)
        acting = who
        if who == DRAWN_POLICY:
            teaching = unit(mix(draw, COMPONENT)) < beta
            acting = TEACHER_POLICY if teaching else draw_component(policy.chances, mix(draw, TEACHER))
        if acting == TEACHER_POLICY:
            move = teacher_action(reference, x, y, d, legal, mix(draw, TEACHER), scratch.opinion, scratch.where)
        else:
            gather(space, x, d, item_count, scratch.sight, scratch.where)
            score(
                space,
                x,
                d,
                legal,
                policy,
                acting,
                plan.cache_items,
                of,
                first_item,
                scratch.sight,
                epoch,
                scratch.where,
            )
            move = cheapest(scratch.sight.bits, legal, plan.random_ties, mix(draw, TIE))
        if scratch.where[0] != 0:
            break
        n += 1
        path.cost[n] = cost(space, x, y, d, move)
        step(space, x, d, move)
    for k in range(n, 0, -1):
        value = path.cost[k] + value
        if merged:
            remember(scratch.memo, epoch, line, path.key[k - 1], value)
    if not np.isfinite(value) and scratch.where[0] == 0:
        scratch.where[0] = NOT_FINITE
    return path.cost[0] + value


# --- deviations that are completed elsewhere --------------------------------------------------------------------------


@dual
def ordered(orders, t, a, who, beta, stream, where):
    """Order a deviation's completion, or read what came of it: whoever asks twice asks in the same order."""
    k = orders.filled[0]
    orders.filled[0] += 1
    if not orders.taking[0]:
        return orders.value[k]
    orders.example[k], orders.time[k], orders.action[k] = where[1], t, a
    orders.who[k], orders.beta[k], orders.stream[k] = who, beta, stream
    return 0.0


@dual
def completed(
    space, reference, x, y, s, taken, a, limit, policy, who, beta, plan, of, first_item, item_count, stream, scratch
):
    """What `deviate` gives; where orders stand in for the policy, it is done elsewhere, many deviations together."""
    return deviate(
        space, reference, x, y, s, taken, a, limit, policy, who, beta, plan, of, first_item, item_count, stream, scratch
    )
