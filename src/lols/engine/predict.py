"""Following a policy to an end state: the learned one for prediction, the teacher for comparison."""

from __future__ import annotations

import math

import numpy as np

from lols.engine.calls import step
from lols.engine.policy import cheapest, draw_component, gather, gather_action, in_role, score, types_of
from lols.engine.search import Search, begin, final_loss, goes_on, turn_to
from lols.engine.structures import AT_EXAMPLE, AT_STEP, CODE, COMPONENT, TEACHER, TIE
from lols.engine.teacher import teacher_action
from lols.kernels.dual import dual, has, needs, not_inlined
from lols.kernels.hashing import mix
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct, row


class Ends(Struct):
    """The results of all examples: end states, actions and predicted costs."""

    states: np.ndarray
    first: np.ndarray  # [example]: its first cell
    taken: np.ndarray  # actions, and -1 after the last one
    first_step: np.ndarray  # [example]: its first action
    scores: np.ndarray  # [action taken, action], or empty
    shares: np.ndarray  # [action taken]: its share in a softmax of the costs, or empty
    temperature: float  # of that softmax


@dual
def state_stream(search, here, s, legal, t):
    """A random stream that depends on seed, step and features only, so that equal inputs get equal predictions."""
    own = search.scratch.seen.features
    stream = mix(search.plan.seed, t)
    for k in range(own.size[0]):
        stream = mix(stream, own.ids[k])
    if has(search.space, "items"):
        stream = mix_items(search, here, stream)
    if has(search.space, "action_features"):
        stream = mix_actions(search, here, s, legal, stream)
    return stream


@needs("space", "items", 0)
def mix_items(search, here, stream):
    """Mix the features of the items that a state looks at into a stream."""
    of, looked = search.items, search.scratch.seen.items
    for k in range(looked.size[0]):
        low, high = types_of(of, here.first_item + looked.items[k])
        for part in range(low, high):
            for f in range(of.start[of.types[part]], of.start[of.types[part] + 1]):
                stream = mix(stream, in_role(of.ids[f], looked.roles[k]))
    return stream


@needs("space", "action_features", 0)
def mix_actions(search, here, s, legal, stream):
    """Mix the features of the legal actions into a stream."""
    own = search.scratch.seen.action_features
    for a in range(legal.size):
        if legal[a]:
            gather_action(search, here, s, a)
            for k in range(own.size[0]):
                stream = mix(stream, own.ids[k])
    return stream


@dual
def record_step(ends, example, t, a, legal, costs):
    """Record a step: the action, and the predicted costs if they are wanted."""
    ends.taken[ends.first_step[example] + t] = a
    if ends.scores.shape[0] > 0:
        for j in range(legal.size):
            ends.scores[ends.first_step[example] + t, j] = costs[j] if legal[j] else np.float32(np.inf)
    if ends.shares.size > 0:
        ends.shares[ends.first_step[example] + t] = share(ends.temperature, a, legal, costs)


@not_inlined
@dual
def share(temperature, a, legal, costs):
    """The share of an action in a softmax of the costs of the legal ones. Not inlined: it is seldom asked for."""
    total = 0.0
    for j in range(legal.size):
        if legal[j]:
            total += math.exp(min((np.float64(costs[a]) - np.float64(costs[j])) / temperature, 700.0))
    return 1.0 / total


def predict(space, data, policy, plan, scratch, begin_at, end_at, ends):
    """Follow the learned policy on examples `begin_at` to `end_at`."""
    search = Search(space, None, policy, plan, data.items, scratch)
    legal, view, report = scratch.legal, scratch.seen, scratch.report
    for example in range(begin_at, end_at):
        here = turn_to(search, data, example, example, 0)
        s = ends.states[ends.first[example] : ends.first[example] + data.states[example]]
        begin(search, here, s)
        t = 0
        while goes_on(search, here, s, t):
            gather(search, here, s, legal)
            if report[CODE] != 0:
                return report[CODE]
            component, stream = 0, np.int64(0)
            if policy.chances.size > 1 or plan.random_ties:
                stream = state_stream(search, here, s, legal, t)
                component = draw_component(policy.chances, mix(stream, COMPONENT))
            score(search, here, s, legal, component)
            if report[CODE] != 0:
                return report[CODE]
            a = cheapest(view.bits, legal, plan.random_ties, mix(stream, TIE))
            record_step(ends, example, t, a, legal, view.costs)
            step(space, here.x, s, a)
            t += 1
        if report[CODE] != 0:
            return report[CODE]
        ends.taken[ends.first_step[example] + t] = -1
    return report[CODE]


def follow_teacher(space, reference, data, plan, scratch, begin_at, end_at, ends):
    """Follow the teacher on examples `begin_at` to `end_at`."""
    search = Search(space, reference, None, plan, data.items, scratch)
    legal, report = scratch.legal, scratch.report
    for example in range(begin_at, end_at):
        here = turn_to(search, data, example, example, example)
        s = ends.states[ends.first[example] : ends.first[example] + data.states[example]]
        begin(search, here, s)
        t = 0
        while goes_on(search, here, s, t):
            a = teacher_action(search, here, s, legal, mix(mix(here.key, t), TEACHER))
            if report[CODE] != 0:
                return report[CODE]
            step(space, here.x, s, a)
            t += 1
        if report[CODE] != 0:
            break
    return report[CODE]


def losses(space, data, scratch, ends, out):
    """The loss of every example's end state."""
    report = scratch.report
    for example in range(out.size):
        report[AT_EXAMPLE], report[AT_STEP] = example, -1
        s = ends.states[ends.first[example] : ends.first[example] + data.states[example]]
        out[example] = final_loss(space, row(data.x, example), row(data.y, example), s, report)
        if report[CODE] != 0:
            break
    return report[CODE]


predict_kernel = Kernel(predict)
follow_teacher_kernel = Kernel(follow_teacher)
losses_kernel = Kernel(losses)
