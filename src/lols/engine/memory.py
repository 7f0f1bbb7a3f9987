"""Allocates the working memory: scratch for a thread, slots for a batch. Kernels allocate nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.features import feature_buffer, item_buffer
from lols.engine.lessons import lessons_of, make_slots
from lols.engine.structures import LOSSES, REPORT_CELLS, Batch, Memo, Scratch, Slots, StateView, TeacherView, Trail

MEMO_MOST = 1 << 16
TYPES_MOST = 1 << 17


def state_type(compiled: bool) -> Any:
    """The type of a state's cells: compiled code computes in 64 bits anyway, plain Python only with 64-bit cells."""
    return np.int32 if compiled else np.int64


def make_scratch(
    examples: Examples, components: int, columns: int, compiled: bool = True, old: StateView | None = None
) -> Scratch:
    """Working memory of one thread for any example of a data set; scores of types are taken over from an `old` one."""
    states, steps = int(examples.states.max(initial=1)), int(examples.steps.max(initial=1))
    memo, actions = 1, examples.most_actions
    if examples.space.key is not None:
        memo = min(MEMO_MOST, 1 << (2 * steps * actions).bit_length())
    values = np.zeros(actions + 1, np.float64)
    predicted = np.zeros((steps + 1, actions), np.float32)
    return Scratch(
        state=np.zeros(states, state_type(compiled)),
        deviation=np.zeros(states, state_type(compiled)),
        legal=np.zeros(actions, np.bool_),
        all_legal=np.zeros(actions, np.bool_),
        kept=np.zeros(actions, np.bool_),
        rollout_legal=np.zeros(actions, np.bool_),
        predicted=predicted,
        predicted_bits=predicted.view(np.int32),
        values=values,
        value_bits=values.view(np.int64),
        completed=np.zeros(2),
        turn=np.zeros(2, np.int64),
        seen=_view(examples, components, columns, old),
        teacher=TeacherView(np.zeros(actions, np.bool_), np.zeros(actions), np.zeros(1, np.int64)),
        memo=Memo(np.zeros((2, memo, 2), np.int64), np.zeros((2, memo)), np.zeros(2, np.int64), np.zeros(1, np.int64)),
        base=_trail(steps + 1),
        path=_trail(steps + 1),
        epoch=np.zeros(1, np.int64),
        report=np.zeros(REPORT_CELLS, np.int64),
    )


def _view(examples: Examples, components: int, columns: int, old: StateView | None) -> StateView:
    sizes = examples.space.sizes
    item_count = int(np.diff(examples.items.first).max(initial=0))
    costs = np.zeros(examples.most_actions, np.float32)
    type_scores, type_places, type_clock = _type_memory(examples, components, columns, old)
    return StateView(
        features=feature_buffer(sizes.features),
        action_features=feature_buffer(sizes.action_features),
        items=item_buffer(sizes.items),
        rows=np.zeros(max(sizes.features, int(np.diff(examples.items.start).max(initial=0))), np.int64),
        columns=np.zeros(columns, np.float32),
        part=np.zeros(columns, np.float32),
        costs=costs,
        bits=costs.view(np.int32),
        item_scores=np.zeros((components, sizes.roles, item_count, columns), np.float32),
        item_epochs=np.zeros((components, sizes.roles, item_count), np.int64),
        type_scores=type_scores,
        type_places=type_places,
        type_clock=type_clock,
        whole=np.zeros(columns, np.float32),
    )


def _type_memory(
    examples: Examples, components: int, columns: int, old: StateView | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, places and clock for the types of a data set; if there are more types than before, the memory doubles."""
    lasting, roles = min(examples.items.lasting, examples.items.start.size - 1), examples.space.sizes.roles
    known = 0 if old is None else old.type_places.shape[2]
    if old is not None and lasting <= known:
        return old.type_scores, old.type_places, old.type_clock
    lasting = max(lasting, 2 * known)
    places = max(1, min(components * roles * lasting, TYPES_MOST))
    scores = np.zeros((places + 1, columns), np.float32)
    where = np.zeros((components, roles, lasting), np.int64)
    if old is None:
        return scores, where, np.array([places, 0], np.int64)
    filled = int(old.type_clock[1])
    scores[:filled], where[:, :, :known] = old.type_scores[:filled], old.type_places
    return scores, where, old.type_clock


def _trail(steps: int) -> Trail:
    return Trail(np.zeros(steps, np.int64), np.zeros(steps), np.zeros(steps), np.zeros(steps, np.int64))


def make_batch(
    old: Slots | None, examples: Examples, indices: np.ndarray, rounds: np.ndarray, beta: Any, beta_in: Any
) -> Batch:
    """Slots for the lessons of a batch, in the memory of `old` ones if that is large enough."""
    sizes = examples.space.sizes
    steps = examples.steps[indices]
    widest = sizes.features + sizes.items * examples.widest_item
    room = int(steps.sum())
    if old is None or old.start.size < room or old.costs.shape[1] != examples.most_actions:
        old = make_slots(sizes, examples.most_actions, room + room // 4, widest)
    first, filled = np.cumsum(steps) - steps, np.zeros(indices.size, np.int64)
    return Batch(
        round=rounds,
        beta=beta,
        beta_in=beta_in,
        order=np.argsort(-steps, kind="stable"),
        losses=np.zeros((indices.size, LOSSES)),
        lessons=lessons_of(old, first, filled, example=indices, widest=widest, widest_action=sizes.action_features),
    )
