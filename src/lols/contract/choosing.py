"""Draw examples by a seed, and cut them out of the columns of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import NO_BOUNDS, Examples, Items, Ragged, Scalar, Shared
from lols.kernels.hashing import mix


class Draw:
    """Draws at most `limit` examples from a data set that is read in pieces; with None, all of them.

    Each example has the same chance. The result depends on the seed and the number of examples, not on the pieces.

    >>> draw = Draw(3, seed=1)
    >>> draw.more(5), draw.more(5)
    (array([0, 1, 2, 3, 4]), array([0]))
    >>> draw.chosen()
    array([0, 2, 5])
    """

    def __init__(self, limit: int | None, seed: int):
        self.limit, self.count = limit, 0
        self._stream = np.random.Philox(key=mix(seed, 0xCE27) & ((1 << 64) - 1))
        self._keys, self._numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def more(self, count: int) -> np.ndarray:
        """Read the next piece; the examples in it, counted from 0, that may still be drawn."""
        keys = np.asarray(self._stream.random_raw(count), np.uint64).reshape(-1)
        kept = np.arange(count)
        if self.limit is not None and self._keys.size >= self.limit:
            kept = np.flatnonzero(keys < np.partition(self._keys, self.limit - 1)[self.limit - 1])
        self._keys = np.concatenate([self._keys, keys[kept]])
        self._numbers = np.concatenate([self._numbers, self.count + kept])
        self.count += count
        return kept

    def chosen(self) -> np.ndarray:
        """The drawn examples, as ascending positions among all that `more` returned."""
        if self.limit is None or self._keys.size <= self.limit:
            return np.arange(self._keys.size)
        return np.sort(np.argsort(self._keys, kind="stable")[: self.limit])


def drawn(count: int, limit: int | None, seed: int) -> np.ndarray:
    """At most `limit` of the numbers below `count`, in ascending order.

    >>> drawn(10, 3, seed=1)
    array([0, 2, 5])
    """
    draw = Draw(limit, seed)
    draw.more(count)
    return draw.chosen()


def offsets_within(lengths: np.ndarray) -> np.ndarray:
    """Where each of several runs begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def some(examples: Examples, chosen: np.ndarray) -> Examples:
    """A part of a data set, with copies of its columns; the features of item types are shared.

    >>> from lols.datasets.worlds import tagging_data, tagging_space
    >>> every = Examples(tagging_space(labels=12), tagging_data(5))
    >>> part = some(every, np.array([3, 1]))
    >>> [part.example(k)[0].words.tolist() == every.example(n)[0].words.tolist() for k, n in enumerate([3, 1])]
    [True, True]
    """
    x, y = (
        {
            name: _cut(column, chosen)
            for name, column in zip(side._fields, side, strict=True)
            if not isinstance(column, Shared)
        }
        for side in (examples.x, examples.y)
    )
    return Examples.from_columns(
        examples.space,
        chosen.size,
        x,
        y if examples.has_truth else None,
        _items(examples.items, chosen),
        states=examples.states[chosen],
        steps=examples.steps[chosen],
    )


def _cut(column: Any, chosen: np.ndarray) -> Any:
    if isinstance(column, Scalar):
        return Scalar(column.values[chosen])
    at, offsets = runs(column.offsets, chosen)
    return Ragged(column.values[at], offsets)


def numbers_within(begin: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All numbers of the runs that begin at `begin`, one run after the other."""
    offsets = offsets_within(lengths)
    return np.repeat(begin - offsets[:-1], lengths) + np.arange(offsets[-1])


def runs(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of some of the runs between `offsets`, and the offsets of these runs when they are put together."""
    lengths = np.diff(offsets)[chosen]
    return numbers_within(offsets[:-1][chosen], lengths), offsets_within(lengths)


def _items(items: Items, chosen: np.ndarray) -> Items | None:
    if items.first.size <= 1:
        return None
    at, first = runs(items.first, chosen)
    if items.bounds.size:
        parts, bounds = runs(items.bounds, at)
        return items._replace(first=first, types=items.types[parts], bounds=bounds)
    types = items.types.reshape(-1, items.parts)[at].reshape(-1)
    return items._replace(first=first, types=types, bounds=NO_BOUNDS)
