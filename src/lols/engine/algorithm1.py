"""Algorithm 1 of the paper, lines 2 to 13: roll in, deviate at every step, roll out; one lesson for each state.

The learner has lines 1, 14 and 16: π̂_0 has no weights, `Learner.learn` is Train(π̂_i, Γ), and the average policy is
returned in the end. All examples of a batch are searched with the same π̂_i; a batch of one example is the paper's loop.
The lessons are learned in order, so that threads may share a batch.
"""

from __future__ import annotations

import numpy as np

from lols.engine.calls import step
from lols.engine.deviations import compare, compared_step, deviates_at, steps_wanted
from lols.engine.lessons import write_features
from lols.engine.merging import forget
from lols.engine.policy import gather, new_policy
from lols.engine.roll_in import roll_in, value_trail
from lols.engine.roll_out import deferred
from lols.engine.search import Search, begin, find_legal, take_example, turn_to
from lols.engine.structures import AT_STEP, BY_LEARNER, BY_TEACHER, CODE, ROLLED_IN
from lols.kernels.dual import dual
from lols.kernels.kernel import Kernel


def algorithm1(space, reference, data, policy, plan, scratch, batch, counter):
    """Γ for the examples of a batch; threads share one counter and take a few examples at a time."""
    search = Search(space, reference, policy, plan, data.items, scratch)
    new_policy(scratch.seen)
    scratch.turn[0] = scratch.turn[1] = 0
    while scratch.report[CODE] == 0 and take_example(batch, scratch.turn, counter):  # line 2: for all i
        b = batch.order[scratch.turn[0] - 1]
        example = batch.lessons.example[b]
        here = turn_to(search, data, example, b, batch.round[b])  # line 3: (x_i, y_i), and with y_i π^ref
        s = scratch.state[: data.states[example]]
        forget(scratch.memo, here.limit * scratch.legal.size)
        steps = roll_in(search, here, s, batch.beta_in[b])  # line 6, for all t at once
        if scratch.report[CODE] == 0:
            lessons, first = batch.lessons, batch.lessons.first[b]
            lessons.filled[b] = steps  # line 4: Γ = ∅, with room for these states
            batch.losses[b, ROLLED_IN] = value_trail(search, here, s, steps, scratch.base, policy.chances.size)
            by_action = lessons.widest_action * scratch.legal.size
            search_around(search, here, s, batch, first * lessons.widest, first * by_action)
    return scratch.report[CODE]


@dual
def search_around(search, here, s, batch, f, m):
    """Deviate from the states of the roll-in and write lessons, features from `f` and `m` on; the next free places."""
    plan, scratch, lessons, b = search.plan, search.scratch, batch.lessons, here.number
    slots, steps = lessons.slots, lessons.filled[b]
    wanted = steps_wanted(plan, steps)
    weight, compared = np.float32(steps / wanted), compared_step(plan, here.key, wanted)
    begin(search, here, s)
    for t in range(steps):  # line 5: for all t
        if scratch.report[CODE] != 0:
            break
        scratch.report[AT_STEP] = t
        slot = lessons.first[b] + t
        slots.start[slot] = slots.stop[slot] = f
        slots.weight[slot] = 0.0
        if deviates_at(here.key, t, steps, wanted):
            # lines 7 to 10: for all a ∈ A(s_t), the cost c_{i,t}(a) of rolling out with π^out. By default one coin
            # chooses π^out for all actions of a state; mix="rollout" tosses one for each, as in line 8.
            measured = wanted == compared  # teacher against learner, for β = auto
            over = compare(search, here, s, t, batch.beta[b], measured, slots.costs[slot])
            if measured:
                batch.losses[b, BY_TEACHER], batch.losses[b, BY_LEARNER] = scratch.completed[0], scratch.completed[1]
            wanted -= 1
            if not over and not deferred(search):
                slots.weight[slot] = weight
                find_legal(search, here, s, scratch.legal)
                gather(search, here, s, scratch.legal)  # line 11: Φ(x_i, s_t)
                f, m = write_features(search, here, s, scratch.legal, slots, slot, f, m)  # line 12: into Γ
        step(search.space, here.x, s, scratch.base.action[t])  # line 6: on to s_{t+1}
    return f, m


algorithm1_kernel = Kernel(algorithm1)
