"""Lessons: what the search passes to the learner, ⟨cost vector, Φ(x, s)⟩ for each state; and their predicted costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.contract.space import Sizes
from lols.engine.policy import gather_action, in_role, score_lesson, types_of
from lols.engine.structures import FrozenPolicy, Lessons, Slots
from lols.kernels.dual import dual, has, needs, not_inlined
from lols.kernels.kernel import Kernel


@not_inlined
@dual
def write_features(search, here, s, legal, slots, slot, f, m):
    """Write the gathered features of a state from place `f` on (those of its items first), and of its actions from `m`.

    Returns the next free places.
    """
    own, ids, values = search.scratch.seen.features, slots.ids, slots.values
    slots.start[slot] = f
    if has(search.space, "items"):
        f = write_items(search, here, ids, values, f)
    for k in range(own.size[0]):
        ids[f] = own.ids[k]
        values[f] = own.values[k]
        f += 1
    slots.stop[slot] = f
    if has(search.space, "action_features"):
        m = write_actions(search, here, s, legal, slots, slot, m)
    return f, m


@needs("space", "items", 0)
def write_items(search, here, ids, values, f):
    """Write the features of the items that a state looks at, each in its role; the next free place."""
    of, looked = search.items, search.scratch.seen.items
    for k in range(looked.size[0]):
        low, high = types_of(of, here.first_item + looked.items[k])
        for part in range(low, high):
            for n in range(of.start[of.types[part]], of.start[of.types[part] + 1]):
                ids[f] = in_role(of.ids[n], looked.roles[k])
                values[f] = of.values[n]
                f += 1
    return f


@needs("space", "action_features", 0)
def write_actions(search, here, s, legal, slots, slot, m):
    """Write the features of the legal actions; the next free place."""
    own = search.scratch.seen.action_features
    for a in range(legal.size):
        slots.action_start[slot, a] = m
        if legal[a]:
            gather_action(search, here, s, a)
            for k in range(own.size[0]):
                slots.action_ids[m] = own.ids[k]
                slots.action_values[m] = own.values[k]
                m += 1
        slots.action_stop[slot, a] = m
    return m


def make_slots(sizes: Sizes, actions: int, room: int, widest: int) -> Slots:
    """Memory for `room` states of at most `widest` features, with this many actions."""
    by_action = actions * sizes.action_features
    action_shape = (room if by_action else 0, actions)
    return Slots(
        start=np.zeros(room, np.int64),
        stop=np.zeros(room, np.int64),
        ids=np.zeros(room * widest, np.int64),
        values=np.zeros(room * widest, np.float32),
        costs=np.zeros((room, actions), np.float32),
        weight=np.zeros(room, np.float32),
        action_start=np.zeros(action_shape, np.int64),
        action_stop=np.zeros(action_shape, np.int64),
        action_ids=np.zeros(room * by_action, np.int64),
        action_values=np.zeros(room * by_action, np.float32),
    )


class FeatureRuns(NamedTuple):
    """Features of states, or of their actions: run i has the features `start[i]` to `stop[i]`."""

    start: np.ndarray
    stop: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    @property
    def widest(self) -> int:
        """The length of the longest run."""
        return int((self.stop - self.start).max(initial=0))

    @classmethod
    def between(cls, bounds: np.ndarray, ids: np.ndarray, values: np.ndarray) -> FeatureRuns:
        """Adjacent runs: run i has the features `bounds[i]` to `bounds[i + 1]`."""
        return cls(bounds[:-1], bounds[1:], ids, values)

    @classmethod
    def joined(cls, parts: Sequence[FeatureRuns]) -> FeatureRuns:
        """The concatenation of several runs."""
        if len(parts) == 1:
            return parts[0]
        sizes = [part.ids.size for part in parts]
        before = np.cumsum([0, *sizes])
        start = np.concatenate([part.start + at for part, at in zip(parts, before)])
        stop = np.concatenate([part.stop + at for part, at in zip(parts, before)])
        return cls(start, stop, np.concatenate([part.ids for part in parts]), np.concatenate([p.values for p in parts]))


_NONE = np.zeros(0, np.int64)
NO_FEATURES = FeatureRuns(_NONE, _NONE, _NONE, np.zeros(0, np.float32))


def slots_of(seen: FeatureRuns, costs: np.ndarray, weight: np.ndarray, by_action: FeatureRuns = NO_FEATURES) -> Slots:
    """Slots for states with these features, costs and weights; `by_action` has a run for each state and action."""
    shape = (-1 if by_action.start.size else 0, costs.shape[1])
    return Slots(
        start=np.ascontiguousarray(seen.start, np.int64),
        stop=np.ascontiguousarray(seen.stop, np.int64),
        ids=seen.ids,
        values=seen.values,
        costs=costs,
        weight=weight,
        action_start=np.ascontiguousarray(by_action.start, np.int64).reshape(shape),
        action_stop=np.ascontiguousarray(by_action.stop, np.int64).reshape(shape),
        action_ids=by_action.ids,
        action_values=by_action.values,
    )


def lessons_of(
    slots: Slots, first: np.ndarray, filled: np.ndarray, *, example: np.ndarray, widest: int, widest_action: int = 0
) -> Lessons:
    """The lessons of some rounds: round i has `filled[i]` slots from `first[i]` on."""
    return Lessons(example, first, filled, widest, widest_action, slots)


# --- predicted costs --------------------------------------------------------------------------------------------------


def score_lessons(lessons, policy, component, rows, columns, out):
    """Predict the costs of all actions in all slots of some lessons."""
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            score_lesson(policy, component, lessons.slots, slot, rows, columns, out[slot])


score_kernel = Kernel(score_lessons)


def predicted_costs(lessons: Lessons, policy: FrozenPolicy, component: int = 0, *, compiled: bool = True) -> np.ndarray:
    """The predicted costs [slot, action] of one component of a policy; 0 in slots that the lessons do not use."""
    out = np.zeros_like(lessons.slots.costs, np.float32)
    # With any number of actions, a policy has no weights of states, and a column of zeros for each action will do.
    any_number = policy.stack.shape[2] == 1 and policy.thresholds == 0
    columns = np.zeros(out.shape[1] if any_number else policy.stack.shape[2], np.float32)
    rows = np.zeros(lessons.widest, np.int64)
    score_kernel(compiled, lessons, policy, component, rows, columns, out)
    return out
