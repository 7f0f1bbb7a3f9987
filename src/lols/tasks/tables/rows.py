"""Encoded rows: lists of feature types, and features with values of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.contract.examples import Items
from lols.kernels.hashing import mix

KEPT = 1 << 16  # the most contributions of types, over all nodes, that are kept: more would not fit into the cache
NOTHING_UNKNOWN = np.zeros(0, np.int64)


class Rows(NamedTuple):
    """Rows as lists of feature types, and as features that only one row has (scaled values)."""

    bounds: np.ndarray  # [rows + 1]: where a row's types begin
    types: np.ndarray  # int32
    start: np.ndarray  # [rows + 1], or empty: where its own features begin
    ids: np.ndarray
    values: np.ndarray
    unknown: np.ndarray = NOTHING_UNKNOWN  # [columns]: the number of cells whose text was not in training

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.bounds.size) - 1

    @property
    def nbytes(self) -> int:
        """The number of bytes in memory."""
        return sum(array.nbytes for array in self)

    def cut(self, begin: int, end: int) -> Rows:
        """The rows from one number to another."""
        bounds, start = self.bounds[begin : end + 1], self.start[begin : end + 1]
        own = slice(int(start[0]), int(start[-1])) if start.size else slice(0)
        types = self.types[int(bounds[0]) : int(bounds[-1])]
        return Rows(bounds - bounds[0], types, start - start[:1], self.ids[own], self.values[own])

    def take(self, chosen: np.ndarray) -> Rows:
        """Some of the rows, by their numbers."""
        at, bounds = _runs(self.bounds, chosen)
        if not self.start.size:
            return Rows(bounds, self.types[at], self.start, self.ids, self.values)
        own, start = _runs(self.start, chosen)
        return Rows(bounds, self.types[at], start, self.ids[own], self.values[own])


def _runs(bounds: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of some of the runs between `bounds`, and the bounds of these runs when they are put together."""
    lengths = np.diff(bounds)[chosen]
    made = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.repeat(bounds[:-1][chosen] - made[:-1], lengths) + np.arange(made[-1]), made


def type_ids(kinds: int) -> np.ndarray:
    """The features of the types."""
    return np.fromiter((mix(k, 0x7AB1E) for k in range(kinds)), np.int64, kinds)


def items_of(rows: Rows, kinds: int, nodes: int) -> Items:
    """Rows as items: a feature for each of the `kinds` of feature type, and those of the row."""
    ids = type_ids(kinds)
    start, values, types, bounds = np.arange(kinds + 1), np.ones(kinds, np.float32), rows.types, rows.bounds
    if rows.start.size:
        start = np.concatenate([start, kinds + rows.start[1:]])
        ids, values = np.concatenate([ids, rows.ids]), np.concatenate([values, rows.values])
        types = np.insert(types, bounds[1:], kinds + np.arange(rows.rows, dtype=np.int32))
        bounds = bounds + np.arange(rows.rows + 1)
    # With many nodes, few rows of a batch share one: keeping the contributions of types there would not pay.
    lasting = kinds if kinds * nodes <= KEPT else 0
    return Items(np.arange(rows.rows + 1), types, start, ids, values, lasting=lasting, bounds=bounds)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]

    def shifted(name: str) -> np.ndarray:
        arrays = [getattr(part, name) for part in parts]
        if not arrays[0].size:
            return np.zeros(0, np.int64)
        ends = np.cumsum([0] + [int(a[-1]) for a in arrays])
        return np.concatenate([[0], *(a[1:] + end for a, end in zip(arrays, ends[:-1], strict=True))]).astype(np.int64)

    flat = [np.concatenate([getattr(part, name) for part in parts]) for name in ("types", "ids", "values")]
    return Rows(shifted("bounds"), flat[0], shifted("start"), flat[1], flat[2])
