"""One object as columns, at once: what `Examples` does for a data set, without what only data sets need."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples, Items, Ragged, Scalar, view
from lols.contract.records import record_class
from lols.contract.space import SearchSpace

__all__ = ["OneByOne"]

NO_ITEMS = Items(
    np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.ones(0, np.float32)
)


class One(Examples):
    """A data set of one example, without truth, as the space's functions see it."""

    seen: Any

    def example(self, index: int) -> tuple[Any, Any]:
        return self.seen, self.y


class OneByOne:
    """Encodes one object after the other.

    Whatever is not as usual goes through `Examples`, which says what is wrong.
    """

    def __init__(self, space: SearchSpace):
        self.space = space
        self._settings = Examples.from_columns(space, 0, {}).x
        self._nothing = record_class(())()
        self._classes: dict[tuple[str, ...], type] = {}  # of examples with these columns

    def __call__(self, obj: Any) -> Examples:
        """An object as a data set of one, without truth."""
        made = self._quick(obj)
        return Examples(self.space, [obj], truth=False) if made is None else made

    def _quick(self, obj: Any) -> Examples | None:
        space = self.space
        try:
            encoded = space.encode(obj)
            x = encoded if isinstance(encoded, dict) else encoded[0]
            columns = [_column(value) for value in x.values()]
        except Exception:
            return None
        if None in columns or space.items is not None:
            return None
        made_of = self._class(tuple(x))
        if made_of is None:
            return None
        made = One.__new__(One)
        made.space, made.count, made.has_truth = space, 1, False
        made.x = made_of(*columns, *self._settings)
        made.y, made.items = self._nothing, NO_ITEMS
        made.widest_item = 0
        try:
            made.seen = made_of(*[view(column, 0) for column in made.x])
            made.states, made.steps = (_size(size, made.seen) for size in (space.sizes.state, space.sizes.steps))
        except Exception:
            return None
        return made if made.states[0] >= 0 and made.steps[0] >= 0 else None

    def _class(self, columns: tuple[str, ...]) -> type | None:
        """The class of examples with these columns; None where they clash with settings."""
        found = self._classes.get(columns)
        if found is None:
            names = (*columns, *self._settings._fields)
            if len(set(names)) != len(names):
                return None
            found = self._classes[columns] = record_class(names)
        return found


def _column(value: Any) -> Ragged | Scalar | None:
    """A column of one example; None for what needs a closer look."""
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
