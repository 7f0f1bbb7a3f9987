"""A single object as a data set: what `Examples` does, with less overhead."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.arrays import NO_ITEMS, Ragged, Scalar, view
from lols.contract.examples import Examples
from lols.contract.records import record_class
from lols.contract.space import SearchSpace


class One(Examples):
    """A data set of one example, without truth."""

    seen: Any

    def example(self, index: int) -> tuple[Any, Any]:
        return self.seen, self.y


class OneByOne:
    """Encodes one object at a time. Unusual and invalid objects go through `Examples`, which explains errors."""

    def __init__(self, space: SearchSpace):
        self.space = space
        self._settings = Examples.from_columns(space, 0, {}).x
        self._nothing = record_class(())()

    def __call__(self, obj: Any) -> Examples:
        """An object as a data set of one, without truth."""
        return self._quick(obj) or Examples(self.space, [obj], truth=False)

    def _quick(self, obj: Any) -> Examples | None:
        space = self.space
        try:
            encoded = space.encode(obj)
            x = encoded if isinstance(encoded, dict) else encoded[0]
            columns = [_column(value) for value in x.values()]
            record = record_class((*x, *self._settings._fields))
        except Exception:
            return None
        if None in columns or space.items is not None:
            return None
        one = One.__new__(One)
        one.space, one.count, one.has_truth = space, 1, False
        one.x = record(*columns, *self._settings)
        one.y, one.items = self._nothing, NO_ITEMS
        one.widest_item = 0
        try:
            one.seen = record(*[view(column, 0) for column in one.x])
            one.states, one.steps = (_size(size, one.seen) for size in (space.sizes.state, space.sizes.steps))
            one.actions = _size(space.sizes.actions, one.seen) if space.fixed_actions is None else None
        except Exception:
            return None
        sizes = (one.states, one.steps, one.states if one.actions is None else one.actions)
        return one if all(size[0] >= 0 for size in sizes) else None


def _column(value: Any) -> Ragged | Scalar | None:
    """A column of one example; None for unusual values."""
    kind = type(value)
    if kind is int or kind is bool:
        return Scalar(np.array([value], np.int64))
    if kind is float:
        return Scalar(np.array([value])) if np.isfinite(value) else None
    array = np.asarray(value)
    if array.ndim != 1 or array.size == 0:
        return None
    if array.dtype.kind == "i" or array.dtype.kind == "b":
        return Ragged(array.astype(np.int64), np.array([0, array.size]))
    if array.dtype.kind == "f" and np.isfinite(array).all():
        return Ragged(array.astype(np.float64), np.array([0, array.size]))
    return None


def _size(size: Any, x: Any) -> np.ndarray:
    return np.array([size(x) if callable(size) else size], np.int64)
