"""Rolling out: the cost of a one-step deviation, which the teacher or the learner completes."""

from __future__ import annotations

import numpy as np

from lols.engine.calls import cost, key, step
from lols.engine.merging import merges, recall, remember
from lols.engine.policy import cheapest, draw_component, gather, score
from lols.engine.search import final_loss, find_legal
from lols.engine.structures import (
    AT_STEP,
    CODE,
    COMPONENT,
    DRAWN_POLICY,
    NOT_FINITE,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
    FrozenPolicy,
    PendingRollouts,
)
from lols.engine.teacher import teacher_action
from lols.kernels.dual import by_kind, dual, has, not_inlined
from lols.kernels.hashing import mix, unit


@dual
def teacher_rolls_out(who, beta, draw):
    """Whether the teacher takes this step of a roll-out."""
    return who == TEACHER_POLICY or (who == DRAWN_POLICY and unit(mix(draw, COMPONENT)) < beta)


@dual
def copy_state(plan, s, d):
    """Copy the cells of a state that a deviation may read."""
    for k in range(min(plan.live, s.size) if plan.live > 0 else s.size):
        d[k] = s[k]


@not_inlined
@dual
def roll_out(search, here, s, deviation):
    """The cost of a one-step deviation from state `s`; in a space without `cost`, the loss of its end state.

    Costs are added from the end backwards, so that a roll-out that is merged into another gives the same number, bit
    for bit, as a full one.
    """
    space, plan, scratch, who = search.space, search.plan, search.scratch, deviation.who
    d, legal, path, report = scratch.deviation[: s.size], scratch.rollout_legal, scratch.path, scratch.report
    copy_state(plan, s, d)
    merged = has(space, "key") and merges(plan, who)
    line = 0 if who == TEACHER_POLICY else 1
    value = 0.0
    path.cost[0] = cost(space, here.x, here.y, s, deviation.action)
    step(space, here.x, d, deviation.action)
    n = 0
    while report[CODE] == 0:
        if not find_legal(search, here, d, legal):
            if not has(space, "cost"):
                value = final_loss(space, here.x, here.y, d, report)
            break
        if plan.horizon > 0 and n >= plan.horizon:
            break
        if merged:
            identity = np.int64(key(space, here.x, d))
            slot = recall(search, line, identity)
            if slot >= 0:
                value = scratch.memo.values[line, slot]
                break
            path.key[n] = identity
        if deviation.time + n + 1 >= here.limit:
            report[CODE], report[AT_STEP] = TOO_MANY_STEPS, here.limit
            break
        draw = mix(deviation.stream, n)
        if teacher_rolls_out(who, deviation.beta, draw):
            a = teacher_action(search, here, d, legal, mix(draw, TEACHER))
        else:
            component = who if who >= 0 else draw_component(search.policy.chances, mix(draw, TEACHER))
            gather(search, here, d, legal)
            score(search, here, d, legal, component)
            a = cheapest(scratch.seen.bits, legal, plan.random_ties, mix(draw, TIE))
        if report[CODE] != 0:
            break
        n += 1
        path.cost[n] = cost(space, here.x, here.y, d, a)
        step(space, here.x, d, a)
    for k in range(n, 0, -1):
        value = path.cost[k] + value
        if merged:
            remember(search, line, path.key[k - 1], value)
    if not np.isfinite(value) and report[CODE] == 0:
        report[CODE] = NOT_FINITE
    return path.cost[0] + value


@dual
def defer(search, here, s, deviation):
    """Record a deviation for later, or read its cost: a second pass makes the same calls in the same order."""
    pending = search.policy
    k = pending.filled[0]
    pending.filled[0] += 1
    if not pending.asking[0]:
        return pending.value[k]
    pending.example[k], pending.time[k], pending.action[k] = here.number, deviation.time, deviation.action
    pending.who[k], pending.beta[k], pending.stream[k] = deviation.who, deviation.beta, deviation.stream
    return 0.0


@dual
def never(search):
    """With a linear policy, deviations are completed at once."""
    return False


@dual
def asking(search):
    """Whether deviations are only recorded, so that their costs are not known yet."""
    return search.policy.asking[0]


# The cost of a deviation: rolled out at once, or later, many deviations at a time.
complete = by_kind("complete", "policy", {FrozenPolicy: roll_out, PendingRollouts: defer})
deferred = by_kind("deferred", "policy", {FrozenPolicy: never, PendingRollouts: asking})
