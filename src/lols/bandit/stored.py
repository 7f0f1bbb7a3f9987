"""Policies in the states of a log: from stored features to what actions seem to cost, and which ones are chosen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.engine.compile.dual import dual
from lols.engine.compile.kernel import Kernel
from lols.engine.policy import cheapest, score_lesson
from lols.engine.structures import FrozenPolicy, Lessons

__all__ = ["actions_of", "costs_in", "target_in"]


@dual
def smooth(legal, target, slot, epsilon):
    """Mix the chances of actions with uniform ones."""
    count = 0
    for a in range(target.shape[1]):
        count += legal[slot, a]
    for a in range(target.shape[1]):
        target[slot, a] *= 1.0 - epsilon
        if legal[slot, a]:
            target[slot, a] += epsilon / count


@dual
def share_of(chances, component):
    """The chance of one component of a policy, from the cumulative ones."""
    return chances[component] - (chances[component - 1] if component > 0 else 0.0)


def look(lessons, policy, rows, columns, out):
    """The costs of the actions in all slots, one component only: a regression has no more."""
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            score_lesson(policy, 0, lessons.slots, slot, rows, columns, out[slot])


def choose(lessons, policy, epsilon, legal, rows, columns, costs, target):
    """The chance that a policy takes each action, in all slots; `costs` holds them, and the same memory as integers."""
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            for c in range(policy.chances.size):
                score_lesson(policy, c, lessons.slots, slot, rows, columns, costs.values)
                target[slot, cheapest(costs.bits, legal[slot], False, 0)] += share_of(policy.chances, c)
            smooth(legal, target, slot, epsilon)


look_kernel = Kernel(look)
choose_kernel = Kernel(choose)


class StoredCosts(NamedTuple):
    """Predicted costs, and the same memory as integers."""

    values: np.ndarray
    bits: np.ndarray


def costs_in(lessons: Lessons, policy: FrozenPolicy, *, compiled: bool = True) -> np.ndarray:
    """What actions cost as a regression predicts it, from the features in the slots."""
    columns, rows = np.zeros(policy.stack.shape[2], np.float32), np.zeros(lessons.widest, np.int64)
    out = np.zeros(lessons.slots.costs.shape, np.float32)
    look_kernel(compiled, lessons, policy, rows, columns, out)
    return out


def target_in(
    lessons: Lessons, policy: FrozenPolicy, legal: np.ndarray, epsilon: float = 0.0, *, compiled: bool = True
) -> np.ndarray:
    """What a policy would do, from the features in the slots.

    These are the actions of a walk through the space, up to the rounding of sums where the space has `items`.
    """
    columns, rows = np.zeros(policy.stack.shape[2], np.float32), np.zeros(lessons.widest, np.int64)
    values, target = np.zeros(legal.shape[1], np.float32), np.zeros(legal.shape)
    costs = StoredCosts(values, values.view(np.int32))
    choose_kernel(compiled, lessons, policy, epsilon, legal, rows, columns, costs, target)
    return target


def actions_of(policy: FrozenPolicy) -> int:
    """How many actions a policy knows."""
    return int(policy.code.shape[1] if policy.code.size else policy.stack.shape[2])
