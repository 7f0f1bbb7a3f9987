"""The search of one example: the records that all functions of the engine receive, and the first calls at a state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lols.engine.calls import actions, loss, start
from lols.engine.structures import AT_ACTION, AT_EXAMPLE, AT_STEP, CODE, LOSS_NOT_FINITE, NEGATIVE, TOO_MANY_STEPS
from lols.kernels.dual import dual, take
from lols.kernels.hashing import mix
from lols.kernels.layout import row


class Search(NamedTuple):
    """What all examples share; a part that a kernel does not need is None."""

    space: Any
    reference: Any  # π^ref
    policy: Any  # π̂_i, frozen
    plan: Any
    items: Any  # features of input items
    scratch: Any


class Instance(NamedTuple):
    """One example (x_i, y_i) in one round."""

    number: int  # its position in the batch
    x: Any
    y: Any
    first_item: int
    item_count: int
    limit: int  # the most steps
    key: int  # of the random streams of this round


class Deviation(NamedTuple):
    """A one-step deviation: an action at one state of the roll-in, and the policy that completes it."""

    time: int  # the step of the roll-in
    action: int
    who: int  # the teacher, a component of the policy, or a draw at every step
    beta: float  # probability of the teacher in such draws
    stream: int


@dual
def instance(data, example, number, key):
    """An example of a data set."""
    first, first_item, item_count = data.items.first, 0, 0
    if first.size > 1:
        first_item, item_count = first[example], first[example + 1] - first[example]
    x, y = row(data.x, example), row(data.y, example)
    return Instance(number, x, y, first_item, item_count, data.steps[example], key)


@dual
def turn_to(search, data, example, number, round_number):
    """An example of a data set, to be searched now: reports refer to it, and scores of earlier examples are invalid."""
    report = search.scratch.report
    report[AT_EXAMPLE], report[AT_STEP], report[AT_ACTION] = number, 0, -1
    search.scratch.epoch[0] += 1
    return instance(data, example, number, mix(search.plan.seed, round_number))


@dual
def take_example(batch, turn, counter):
    """Take the next example of a batch that threads share; whether there is one.

    In a large batch a thread takes several neighbouring examples at a time, so that threads rarely write to the same
    cache line.
    """
    count = batch.order.size
    if turn[0] == turn[1]:
        few = 1 + count // 32 if count >= 256 else 1
        turn[0] = take(counter) * few
        turn[1] = min(turn[0] + few, count)
    turn[0] += 1
    return turn[0] <= count


@dual
def begin(search, here, s):
    """Write the start state."""
    for k in range(s.size):
        s[k] = 0
    start(search.space, here.x, s)


@dual
def find_legal(search, here, s, legal):
    """Write the legal actions A(s); whether there is any."""
    for a in range(legal.size):
        legal[a] = False
    actions(search.space, here.x, s, legal)
    for a in range(legal.size):
        if legal[a]:
            return True
    return False


@dual
def goes_on(search, here, s, t):
    """Whether there is a step `t` from here, with its legal actions written; one that is too many is reported."""
    report = search.scratch.report
    report[AT_STEP] = t
    if not find_legal(search, here, s, search.scratch.legal):
        return False
    if t >= here.limit:
        report[CODE] = TOO_MANY_STEPS
    return report[CODE] == 0


@dual
def final_loss(space, x, y, s, report):
    """The loss of an end state; one that is not a number from 0 on is reported."""
    final = float(loss(space, x, y, s))
    if not np.isfinite(final):
        report[CODE] = LOSS_NOT_FINITE
    elif final < 0.0:
        report[CODE] = NEGATIVE
    return final
