"""Policies in the states of a log: from stored features to what actions seem to cost, and which ones are chosen."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import dual
from lols.engine.compile.kernel import Kernel
from lols.engine.scoring import add_row, cheapest, decode
from lols.engine.structures import Batch, Policy
from lols.engine.table import lookup
from lols.learners.learner import LIBRARY

__all__ = ["actions_of", "costs_in", "padded", "target_in"]


@dual
def slot_costs(slots, slot, policy, component, legal, columns, costs):
    """What the actions of a slot cost in the eyes of a policy."""
    for j in range(columns.size):
        columns[j] = 0.0
    for k in range(slots.start[slot], slots.stop[slot]):
        place = lookup(policy.shared, slots.ids[k])
        if place >= 0:
            add_row(columns, policy.stack, component, place, slots.values[k])
    decode(policy.code, policy.thresholds, columns, costs)
    if slots.action_start.shape[0] > 0:
        for a in range(costs.size):
            if legal[slot, a]:
                for k in range(slots.action_start[slot, a], slots.action_stop[slot, a]):
                    place = lookup(policy.single, slots.action_ids[k])
                    if place >= 0:
                        costs[a] += slots.action_values[k] * policy.single_stack[component, place]


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


def look(library, batch, policy, legal, columns, out):
    """The costs of the actions in all slots, one component only: a regression has no more."""
    for b in range(batch.first.size):
        for slot in range(batch.first[b], batch.first[b] + batch.filled[b]):
            slot_costs(batch.slots, slot, policy, 0, legal, columns, out[slot])


def choose(library, batch, policy, epsilon, legal, columns, costs, bits, target):
    """The chance that a policy takes each action, in all slots; `bits` is the memory of `costs`."""
    for b in range(batch.first.size):
        for slot in range(batch.first[b], batch.first[b] + batch.filled[b]):
            for c in range(policy.chances.size):
                slot_costs(batch.slots, slot, policy, c, legal, columns, costs)
                target[slot, cheapest(bits, legal[slot], False, 0)] += share_of(policy.chances, c)
            smooth(legal, target, slot, epsilon)


look_kernel = Kernel(look)
choose_kernel = Kernel(choose)


def costs_in(batch: Batch, policy: Policy, legal: np.ndarray, *, compiled: bool = True) -> np.ndarray:
    """What actions cost in the eyes of a regression, from the features in the slots."""
    columns = np.zeros(policy.stack.shape[2], np.float32)
    out = np.zeros(legal.shape, np.float32)
    look_kernel(compiled, LIBRARY, batch, policy, legal, columns, out)
    return out


def target_in(
    batch: Batch, policy: Policy, legal: np.ndarray, epsilon: float = 0.0, *, compiled: bool = True
) -> np.ndarray:
    """What a policy would do, from the features in the slots.

    These are the actions of a walk through the space, up to the rounding of sums where the space has `items`.
    """
    columns, costs = np.zeros(policy.stack.shape[2], np.float32), np.zeros(legal.shape[1], np.float32)
    target = np.zeros(legal.shape)
    choose_kernel(compiled, LIBRARY, batch, policy, epsilon, legal, columns, costs, costs.view(np.int32), target)
    return target


def padded(parts: list[np.ndarray], size: int) -> np.ndarray:
    """Arrays one after the other in one of at least this size, with zeros at its end."""
    made = np.zeros(max(size, sum(part.size for part in parts)), parts[0].dtype)
    at = 0
    for part in parts:
        made[at : at + part.size] = part
        at += part.size
    return made


def actions_of(policy: Policy) -> int:
    """How many actions a policy knows."""
    return int(policy.code.shape[1] if policy.code.size else policy.stack.shape[2])
