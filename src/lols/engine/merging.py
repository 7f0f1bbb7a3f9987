"""Merging of roll-outs that meet: the cost to go from a state is stored under its key, for teacher and learner.

The lock-step driver has a cache of its own (`RolloutCache`), because its roll-outs meet before their costs are known.
"""

from __future__ import annotations

from lols.engine.structures import DRAWN_POLICY, LEARNED, REFERENCE, TEACHER_POLICY
from lols.kernels.dual import dual, needs
from lols.kernels.hashing import mix


@needs("space", "key")
def remember(search, line, identity, value):
    """Store the cost to go from a state; a full memo ignores it."""
    memo, epoch = search.scratch.memo, search.scratch.epoch[0]
    keys, mask = memo.keys, memo.mask[0]
    if memo.filled[line] * 2 > mask:
        return
    h = mix(identity, 0) & mask
    while keys[line, h, 0] == epoch:
        if keys[line, h, 1] == identity:
            return
        h = (h + 1) & mask
    keys[line, h, 0] = epoch
    keys[line, h, 1] = identity
    memo.values[line, h] = value
    memo.filled[line] += 1


@needs("space", "key", -1)
def recall(search, line, identity):
    """The slot in which the cost to go from a state is stored, or -1."""
    memo, epoch = search.scratch.memo, search.scratch.epoch[0]
    keys, mask = memo.keys, memo.mask[0]
    h = mix(identity, 0) & mask
    while keys[line, h, 0] == epoch:
        if keys[line, h, 1] == identity:
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
    """Whether roll-outs of this policy may be merged: only if it is deterministic."""
    if not plan.merge or plan.horizon > 0 or who == DRAWN_POLICY:
        return False
    return not plan.random_teacher if who == TEACHER_POLICY else not plan.random_ties


@dual
def repeats(plan, components, who):
    """Whether this policy, starting at a state of the roll-in, repeats the roll-in to the end."""
    if plan.horizon > 0:
        return False
    if who == TEACHER_POLICY:
        return plan.roll_in == REFERENCE and not plan.random_teacher and not plan.set_valued
    return who == 0 and plan.roll_in == LEARNED and components == 1 and not plan.random_ties
