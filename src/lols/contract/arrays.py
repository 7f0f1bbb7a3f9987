"""The arrays that examples are kept in: how a user's rows become columns, and what is checked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from lols.errors import SpaceError, shown
from lols.kernels.layout import Ragged, Scalar

NO_BOUNDS = np.zeros(0, np.int64)
AT_ONCE = 1 << 20  # types whose lengths are looked at together


class Items(NamedTuple):
    """The features of input items, each distinct list stored once: example → items → types → features.

    An item has `parts` types, and its features are the features of all of them: those of a word and of its neighbours
    are stored once per word. Where items have different numbers of types, `bounds` says where each item begins.

    Attributes
    ----------
    first
        The item at which each example begins.
    types
        The types of each item.
    start
        The feature at which each type begins.
    ids
        The features of all types.
    values
        Their values.
    parts
        How many types an item has.
    lasting
        From this number on, types belong to a single item: their scores are not cached.
    bounds
        Where each item begins, if items have different numbers of types.

    """

    first: np.ndarray  # item at which each example begins
    types: np.ndarray  # [items * parts]
    start: np.ndarray  # feature at which each type begins
    ids: np.ndarray
    values: np.ndarray
    parts: int = 1
    lasting: int = 1 << 62  # types from this number on belong to a single item: their scores are not cached
    bounds: np.ndarray = NO_BOUNDS  # [items + 1], or empty

    def widest(self) -> int:
        """The most features that one item has."""
        if not self.types.size:
            return 0
        lengths = np.diff(self.start)
        if self.bounds.size and lengths.max(initial=0) <= 1:
            return int(np.diff(self.bounds).max(initial=0))
        bounds = self.bounds if self.bounds.size else np.arange(0, self.types.size + 1, self.parts)
        most, together = 0, max(1, AT_ONCE * (bounds.size - 1) // max(self.types.size, 1))
        for low in range(0, bounds.size - 1, together):  # in pieces: lengths of all types would take twice their memory
            some = bounds[low : low + together + 1]
            sums = np.concatenate([[0], np.cumsum(lengths[self.types[some[0] : some[-1]]])])[some - some[0]]
            most = max(most, int(np.diff(sums).max(initial=0)))
        return most


NO_ITEMS = Items(np.zeros(1, np.int64), NO_BOUNDS, np.zeros(1, np.int64), NO_BOUNDS, np.ones(0, np.float32))


def check_column(name: str, column: Any, count: int) -> None:
    """Raise an error unless a column that is taken as it is has a value, or a part of its values, for each example."""
    if isinstance(column, Ragged):
        _check_offsets(f"column '{name}'", column.offsets, count, column.values.size)
    elif not isinstance(column, Scalar):
        raise SpaceError(f"column '{name}' is {type(column).__name__}: give a Ragged or a Scalar")
    elif column.values.shape != (count,):
        raise SpaceError(f"column '{name}' has values of shape {column.values.shape} for {count} examples")


def _check_offsets(what: str, offsets: np.ndarray, count: int, most: int) -> None:
    if offsets.dtype != np.int64 or offsets.shape != (count + 1,):
        raise SpaceError(f"the offsets of {what} must be {count + 1} numbers of type int64")
    if offsets[0] < 0 or offsets[-1] > most or (np.diff(offsets) < 0).any():
        raise SpaceError(f"the offsets of {what} must grow from 0 to {most} at most")


def check_items(items: Items, count: int) -> None:
    """Raise an error unless items, their types and the features of types are all there."""
    held = items.types.size // max(items.parts, 1)
    if items.bounds.size:
        held = items.bounds.size - 1
        _check_offsets("items.bounds", items.bounds, held, items.types.size)
    _check_offsets("items.first", items.first, count, held)
    _check_offsets("items.start", items.start, items.start.size - 1, items.ids.size)
    if items.types.size and not 0 <= items.types.min() <= items.types.max() < items.start.size - 1:
        raise SpaceError(f"items.types must be numbers from 0 to {items.start.size - 2}: items.start has no others")
    if items.values.shape != items.ids.shape:
        raise SpaceError(f"items has {items.ids.size} ids and {items.values.size} values: give one value for each id")
    if not np.isfinite(items.values).all():
        raise SpaceError("items.values holds NaN or infinity: give finite values")


def _array(where: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise SpaceError(f"{where} is a ragged list of lists: flatten it in `encode`") from None
    if array.size == 0 and not isinstance(value, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iufb":
        raise SpaceError(
            f"{where} holds {array.dtype} values; a column must be numbers: hash them with lols.text or number them "
            "with lols.Labels, in `encode`"
        )
    if array.ndim > 1:
        raise SpaceError(
            f"{where} has {array.ndim} dimensions; a column is a number or one array: flatten it in `encode`"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise SpaceError(f"{where} holds NaN or infinity; replace it in `encode`")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 1 << 63:
        raise SpaceError(f"{where} holds numbers beyond 64 signed bits: use `lols.mix` or `lols.feature` to hash")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def setting(value: Any) -> Any:
    array = np.ascontiguousarray(value)
    return array if np.ndim(value) else array.reshape(1)[0]


def columns_of(side: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for i, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise SpaceError(f"example {i}: {side} has columns {sorted(row)}, but example 0 has {sorted(rows[0])}")
    for name in rows[0]:
        arrays = [_array(f"example {i}: column '{name}' of {side}", row[name]) for i, row in enumerate(rows)]
        rank = arrays[0].ndim
        for i, array in enumerate(arrays):
            if array.ndim != rank:
                where = f"example {i}: column '{name}' of {side}"
                raise SpaceError(f"{where} is a number in some examples and an array in others")
        if rank == 0:
            columns[name] = Scalar(np.array(arrays))
        else:
            columns[name] = Ragged(np.concatenate(arrays), _offsets(a.size for a in arrays))
    return columns


def items_of(rows: Sequence[Sequence[Any]]) -> Items:
    """Store each distinct list of item features once: all tokens of a word share them."""
    types: dict[Any, int] = {}
    of_item: list[int] = []
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            try:
                # A tuple of numbers is its own key; a list, or a pair of ids and values, is turned into one.
                plain = type(entry) is tuple and not (len(entry) == 2 and not isinstance(entry[0], int | np.integer))
                key = entry if plain else _item_key(entry)
                of_item.append(types.setdefault(key, len(types)))
            except (TypeError, ValueError) as error:
                raise SpaceError(
                    f"example {i}, item {j}: {error}; an item's features are ids, or ids and values"
                ) from None
    pairs = [key if type(key) is _Pair else None for key in types]
    ids_of = [key if pair is None else pair.ids for key, pair in zip(types, pairs, strict=True)]
    ids = np.array(list(chain.from_iterable(ids_of)) or np.zeros(0, np.int64))
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint64:
        _find_bad_item(rows)
    values = np.ones(ids.size, np.float32)
    start = _offsets(map(len, ids_of))
    for number, pair in enumerate(pairs):
        if pair is not None:
            values[start[number] : start[number + 1]] = pair.values
    return Items(_offsets(map(len, rows)), np.array(of_item, np.int64), start, ids.astype(np.int64), values)


class _Pair(NamedTuple):
    """Ids and values of an item, as a key."""

    ids: tuple[int, ...]
    values: tuple[float, ...]


def _item_key(entry: Any) -> Any:
    if not isinstance(entry, tuple) or len(entry) != 2 or isinstance(entry[0], int | np.integer):
        return tuple(entry)
    ids, values = entry
    if len(values) != len(ids):
        raise ValueError(f"{len(ids)} ids, but {len(values)} values")
    if not np.isfinite(np.array(values, np.float32)).all():
        raise ValueError("a value is NaN or infinite")
    return _Pair(tuple(ids), tuple(values))


def _find_bad_item(rows: Sequence[Sequence[Any]]) -> None:
    """Report the item whose features are not integers; only after a failure, because checking each item is slow."""
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            key = _item_key(entry)
            for identity in key.ids if isinstance(key, _Pair) else key:
                if not isinstance(identity, int | np.integer) or not -(1 << 63) <= identity < 1 << 63:
                    why = f"{shown(identity)} is not a 64-bit integer; an item's features are ids, or ids and values"
                    raise SpaceError(f"example {i}, item {j}: {why}")


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    return np.array([0, *accumulate(lengths)], np.int64)
