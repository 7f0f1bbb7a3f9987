"""Rolling in: which policy acts at each step, and the cost to go from each state of the trajectory."""

from __future__ import annotations

import numpy as np

from lols.engine.calls import cost, key, step
from lols.engine.merging import remember, repeats
from lols.engine.policy import cheapest, draw_component, gather, score
from lols.engine.search import begin, final_loss, goes_on
from lols.engine.structures import (
    CODE,
    COIN,
    COMPONENT,
    MIXTURE,
    NO_ACTIONS,
    REFERENCE,
    ROLL_IN,
    TEACHER,
    TEACHER_POLICY,
    TIE,
)
from lols.engine.teacher import free_actions, teacher_action
from lols.kernels.dual import dual, has
from lols.kernels.hashing import mix, unit


@dual
def teacher_rolls_in(plan, stream, beta_in):
    """Whether the teacher takes this step."""
    return plan.roll_in == REFERENCE or (plan.roll_in == MIXTURE and unit(mix(stream, COIN)) < beta_in)


@dual
def asks_policy(plan, teaching):
    """Whether the policy is needed at this step: not if the teacher names its action, unless actions are pruned."""
    return not teaching or plan.set_valued or plan.prune > 0


@dual
def choose(search, here, s, legal, teaching, bits, stream):
    """The action of this step; of several equally good ones of the teacher, the one of least predicted cost."""
    if teaching and not search.plan.set_valued:
        return teacher_action(search, here, s, legal, mix(stream, TEACHER))
    if teaching:
        free_actions(search, here, s, legal, mix(stream, TEACHER))
        return cheapest(bits, search.scratch.teacher.free, search.plan.random_ties, mix(stream, TIE))
    return cheapest(bits, legal, search.plan.random_ties, mix(stream, TIE))


@dual
def go_on(search, here, s, t, a, trail):
    """Take a step and record it in the trail."""
    trail.action[t] = a
    trail.cost[t] = cost(search.space, here.x, here.y, s, a)
    trail.key[t] = key(search.space, here.x, s)
    step(search.space, here.x, s, a)


@dual
def roll_in(search, here, s, beta_in):
    """Roll in from the start state to an end state; the number of steps taken."""
    policy, plan, scratch = search.policy, search.plan, search.scratch
    legal, view, report, predicted = scratch.legal, scratch.seen, scratch.report, scratch.predicted
    begin(search, here, s)
    t = 0
    while goes_on(search, here, s, t):
        gather(search, here, s, legal)
        stream = mix(mix(here.key, ROLL_IN), t)
        teaching = teacher_rolls_in(plan, stream, beta_in)
        if asks_policy(plan, teaching):
            score(search, here, s, legal, draw_component(policy.chances, mix(stream, COMPONENT)))
            costs = view.costs
            for a in range(legal.size):
                predicted[t, a] = costs[a]
        else:
            predicted[t, 0] = np.nan
        a = choose(search, here, s, legal, teaching, view.bits, stream)
        if report[CODE] != 0:
            break
        go_on(search, here, s, t, a, scratch.base)
        t += 1
    if t == 0 and report[CODE] == 0:
        report[CODE] = NO_ACTIONS
    return t


@dual
def value_trail(search, here, s, steps, trail, components):
    """Compute the cost to go from each state of the roll-in, and store it for later roll-outs; the final loss."""
    plan, report = search.plan, search.scratch.report
    final = final_loss(search.space, here.x, here.y, s, report)
    value = 0.0 if has(search.space, "cost") else final
    for t in range(steps - 1, -1, -1):
        value = trail.cost[t] + value
        trail.value[t] = value
        if has(search.space, "key") and plan.merge:
            if repeats(plan, components, TEACHER_POLICY):
                remember(search, 0, trail.key[t], value)
            if repeats(plan, components, 0):
                remember(search, 1, trail.key[t], value)
    return final
