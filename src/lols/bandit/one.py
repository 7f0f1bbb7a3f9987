"""A single object as a data set: what `Examples` does, with less overhead."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from lols.contract.arrays import NO_ITEMS
from lols.contract.examples import Examples
from lols.contract.records import record_class
from lols.contract.space import Reference, SearchSpace
from lols.engine.door import admit
from lols.engine.structures import Data
from lols.kernels.dual import Bound
from lols.kernels.layout import Ragged, Scalar, view

MOST = 256  # sizes of objects whose memory each thread keeps


class One(Examples):
    """A data set of one example, without truth.

    Its memory is used again for the next object of the same sizes in the same thread, so that kernels find it where it
    was: an object is encoded when it is needed, not before.
    """

    seen: Any
    data: Data | None  # as kernels read it, once it was admitted


def admitted(
    examples: Examples, reference: Reference | None, bound: tuple[Bound | None, ...], *, compiled: bool
) -> Data:
    """One example as kernels read it, after a check of its sizes if they are new."""
    data = examples.data if isinstance(examples, One) else None
    if data is None:
        data = admit(examples.space, reference, examples, examples.y, bound, compiled=compiled)
        if isinstance(examples, One):
            examples.data = data
    return data


class OneByOne:
    """Encodes one object at a time. Unusual and invalid objects go through `Examples`, which explains errors."""

    def __init__(self, space: SearchSpace):
        self.space = space
        self._settings = Examples.from_columns(space, 0, {}).x
        self._nothing = record_class(())()
        self._memories = threading.local()

    def __call__(self, obj: Any) -> Examples:
        """An object as a data set of one, without truth."""
        return self._quick(obj) or Examples(self.space, [obj], truth=False)

    def _quick(self, obj: Any) -> Examples | None:
        space = self.space
        if space.items is not None:
            return None
        try:
            encoded = space.encode(obj)
            x = encoded if isinstance(encoded, dict) else encoded[0]
            arrays = [array for array in map(_array, x.values()) if array is not None]
            if len(arrays) < len(x):
                return None
            kind = (*x, *[(array.dtype.char, array.size, array.ndim) for array in arrays])
            known = vars(self._memories).setdefault("by_kind", {})
            one = known.get(kind)
            if one is None:
                if len(known) >= MOST:
                    known.clear()
                one = known[kind] = self._new(tuple(x), arrays)
            for column, array in zip(one.x, arrays, strict=False):
                column.values[...] = array
            return one if self._measured(one) else None
        except Exception:
            return None

    def _new(self, names: tuple[str, ...], arrays: list[np.ndarray]) -> One:
        columns = [
            Ragged(array, np.array([0, array.size])) if array.ndim else Scalar(array.reshape(1)) for array in arrays
        ]
        one = One.__new__(One)
        one.space, one.count, one.has_truth = self.space, 1, False
        one.x = record_class((*names, *self._settings._fields))(*columns, *self._settings)
        one.y, one.items, one.data = self._nothing, NO_ITEMS, None
        one.widest_item = 0
        one.states, one.steps = np.full(1, -1), np.full(1, -1)
        one.actions = None if self.space.fixed_actions is not None else np.full(1, -1)
        return one

    def _measured(self, one: One) -> bool:
        """Write the sizes of an example; False if one is negative. With other sizes, it has to be admitted again."""
        sizes = self.space.sizes
        one.seen = type(one.x)(*[view(column, 0) for column in one.x])
        for size, held in ((sizes.state, one.states), (sizes.steps, one.steps), (sizes.actions, one.actions)):
            if held is None:
                continue
            number: Any = size(one.seen) if callable(size) else size
            if number < 0:
                return False
            if held[0] != number:
                held[0] = number
                one.data = None
                vars(one).pop("most_actions", None)
        return True


def _array(value: Any) -> np.ndarray | None:
    """The values of a column of one example, an array of its own; None for unusual values."""
    kind = type(value)
    if kind is int or kind is bool:
        return np.array(value, np.int64)
    if kind is float:
        return np.array(value) if np.isfinite(value) else None
    array = np.array(value)
    if array.ndim != 1 or array.size == 0:
        return None
    if array.dtype.kind in "ib":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and np.isfinite(array).all():
        return array.astype(np.float64, copy=False)
    return None
