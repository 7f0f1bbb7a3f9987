"""Following a policy to the end: the learned one for prediction, the teacher for comparison."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import dual, has, loss, row, start, step
from lols.engine.compile.kernel import Kernel
from lols.engine.rolling import find_legal, teacher_action
from lols.engine.scoring import cheapest, draw_component, gather, gather_action, in_role, own_items, score, types_of
from lols.engine.structures import COMPONENT, LOSS_NOT_FINITE, NEGATIVE, TEACHER, TIE, TOO_MANY_STEPS
from lols.hashing import mix


@dual
def begin(space, example, x, s, scratch):
    """Put an example's start state where its end state shall be."""
    for k in range(s.size):
        s[k] = 0
    scratch.epoch[0] += 1
    scratch.where[1], scratch.where[2] = example, 0
    start(space, x, s)


@dual
def state_stream(space, x, s, legal, seed, t, of, first_item, sight, where):
    """A stream that depends on seed, step and features only: the same input always gets the same prediction."""
    stream = mix(seed, t)
    for k in range(sight.features.size[0]):
        stream = mix(stream, sight.features.ids[k])
    if has(space, "items"):
        for k in range(sight.items.size[0]):
            low, high = types_of(of, first_item + sight.items.items[k])
            for part in range(low, high):
                for f in range(of.start[of.types[part]], of.start[of.types[part] + 1]):
                    stream = mix(stream, in_role(of.ids[f], sight.items.roles[k]))
    if has(space, "action_features"):
        for a in range(legal.size):
            if legal[a]:
                gather_action(space, x, s, a, sight.action_features, where)
                for k in range(sight.action_features.size[0]):
                    stream = mix(stream, sight.action_features.ids[k])
    return stream


def predict(space, data, policy, plan, scratch, begin_at, end_at, states, first, taken, first_step, scores):
    """Follow the learned policy on examples `begin_at` to `end_at`: end states, actions and their predicted costs."""
    legal, sight = scratch.legal, scratch.sight
    keep_scores = scores.shape[0] > 0
    for example in range(begin_at, end_at):
        first_item, item_count = own_items(data.items.first, example)
        x = row(data.x, example)
        s = states[first[example] : first[example] + data.states[example]]
        begin(space, example, x, s, scratch)
        t = 0
        while find_legal(space, x, s, legal):
            scratch.where[2] = t
            if t >= data.steps[example]:
                scratch.where[0] = TOO_MANY_STEPS
            gather(space, x, s, item_count, sight, scratch.where)
            if scratch.where[0] != 0:
                return scratch.where[0]
            component, stream = 0, np.int64(0)
            if policy.chances.size > 1 or plan.random_ties:
                stream = state_stream(space, x, s, legal, plan.seed, t, data.items, first_item, sight, scratch.where)
                component = draw_component(policy.chances, mix(stream, COMPONENT))
            score(
                space, x, s, legal, policy, component, plan.cache_items, data.items, first_item, sight,
                scratch.epoch[0], scratch.where,
            )  # fmt: skip
            if scratch.where[0] != 0:
                return scratch.where[0]
            a = cheapest(sight.bits, legal, plan.random_ties, mix(stream, TIE))
            taken[first_step[example] + t] = a
            if keep_scores:
                for j in range(legal.size):
                    scores[first_step[example] + t, j] = sight.costs[j] if legal[j] else np.inf
            step(space, x, s, a)
            t += 1
            scratch.where[2] = t
        taken[first_step[example] + t] = -1
    return scratch.where[0]


def follow_teacher(space, reference, data, plan, scratch, begin_at, end_at, states, first):
    """Follow the teacher on examples `begin_at` to `end_at`, to their end states."""
    legal = scratch.legal
    for example in range(begin_at, end_at):
        x, y = row(data.x, example), row(data.y, example)
        s = states[first[example] : first[example] + data.states[example]]
        begin(space, example, x, s, scratch)
        t = 0
        while find_legal(space, x, s, legal):
            scratch.where[2] = t
            if t >= data.steps[example]:
                scratch.where[0] = TOO_MANY_STEPS
                return scratch.where[0]
            stream = mix(mix(mix(plan.seed, example), t), TEACHER)
            a = teacher_action(reference, x, y, s, legal, stream, scratch.opinion, scratch.where)
            if scratch.where[0] != 0:
                return scratch.where[0]
            step(space, x, s, a)
            t += 1
            scratch.where[2] = t
    return scratch.where[0]


def losses(space, data, scratch, states, first, out):
    """The loss of every example's end state."""
    for example in range(out.size):
        scratch.where[1], scratch.where[2] = example, -1
        x, y = row(data.x, example), row(data.y, example)
        out[example] = loss(space, x, y, states[first[example] : first[example] + data.states[example]])
        if not np.isfinite(out[example]):
            scratch.where[0] = LOSS_NOT_FINITE
        elif out[example] < 0.0:
            scratch.where[0] = NEGATIVE
        if scratch.where[0] != 0:
            break
    return scratch.where[0]


predict_kernel = Kernel(predict)
follow_teacher_kernel = Kernel(follow_teacher)
losses_kernel = Kernel(losses)
