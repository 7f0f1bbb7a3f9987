"""Examples from frames and columns: one dictionary for each example, as `encode` and `Columns` take them.

pandas, polars and pyarrow are never imported here; frames are read through their own methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lols.errors import SpaceError


def objects(
    data: Any, *, group: str | None = None, offsets: Any = None, once: str | Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Turn a frame or a dictionary of columns into one dictionary for each example.

    A missing value leaves out the entry of the dictionary. Within one example, a column must have all its values or
    none of them.

    Parameters
    ----------
    data
        A pandas or polars frame or an Arrow table; or a dictionary of columns.
    group
        For a frame with a row for each item (word, letter, ...): the column that says which example a row belongs to.
        The rows of an example need not be adjacent; they keep their order, and examples come in the order of their
        first rows. Without `group`, each row is an example, and cells may hold lists.
    offsets
        For columns that hold the items of all examples one after the other: where each example begins, and the end.
        Without `offsets`, a column has an entry for each example, which may be a list or an array.
    once
        Columns with one value for each example: equal in all its rows or, with `offsets`, one entry per example.

    Examples
    --------
    >>> columns = {"words": [7, 8, 9], "tags": [0, 1, 0]}
    >>> [example["words"].tolist() for example in objects(columns, offsets=[0, 2, 3])]
    [[7, 8], [9]]
    >>> objects({"words": [[7, 8], [9]], "year": [2014, 2015]})
    [{'words': [7, 8], 'year': 2014}, {'words': [9], 'year': 2015}]

    """
    single = (once,) if isinstance(once, str) else tuple(once)
    if is_frame(data):
        if offsets is not None:
            raise SpaceError("offsets are for a dictionary of columns: name the frame's group column instead")
        if group is None and single:
            raise SpaceError("once has no effect: without a group, every column has one value for each example")
        return _rows(data) if group is None else _groups(data, group, single)
    if not isinstance(data, Mapping):
        raise SpaceError(f"{type(data).__name__} is neither a frame nor a dictionary of columns: give a list as it is")
    if group is not None:
        raise SpaceError("group is for frames: give offsets, or a list for each example")
    if offsets is None and single:
        raise SpaceError("once has no effect: without offsets, every column has one entry for each example")
    return _entries(data) if offsets is None else _cut(data, offsets, single)


def as_objects(data: Any) -> Iterable[Any]:
    """The user's data as a list of objects: a frame has an example in each row, columns an entry for each example."""
    if is_frame(data):
        return objects(data)
    if isinstance(data, Mapping):
        if not any(_is_ragged(column) or (_is_list(column) and any(map(_is_list, column))) for column in data.values()):
            raise SpaceError(
                "a single dictionary is one example: give a list of them, or columns in which every example has a list"
            )
        return objects(data)
    if isinstance(data, str | bytes):
        raise SpaceError("a string is given instead of a list of examples: give [it] if it is an example")
    if not isinstance(data, Iterable):
        raise SpaceError(f"{type(data).__name__} is given instead of examples: give a list of them, or a frame")
    listed: Iterable[Any] = data
    return listed


def column_of(data: Any, name: str) -> Iterable[Any]:
    """The entries of one column of a frame, of columns or of a list of dictionaries, without missing values."""
    if is_frame(data):
        values, missing = _column(data, name)
        return [value for value, is_missing in zip(values, missing, strict=True) if not is_missing]
    if isinstance(data, Mapping):
        if name not in data:
            raise _no_column(name, data)
        values = data[name].values if _is_ragged(data[name]) else data[name]
        return list(values)
    rows = list(data)
    entries = [row[name] for row in rows if isinstance(row, Mapping) and name in row]
    if rows and not entries:
        raise _no_column(name, rows[0] if isinstance(rows[0], Mapping) else {})
    return entries


def is_frame(data: Any) -> bool:
    """Whether this is a frame of pandas or polars or an Arrow table."""
    package = type(data).__module__.partition(".")[0]
    if package == "polars" and type(data).__name__ == "LazyFrame":
        raise SpaceError("a polars LazyFrame has no rows yet: give frame.collect()")
    return package in ("pandas", "polars", "pyarrow") and type(data).__name__ in ("DataFrame", "Table")


# --- frames -----------------------------------------------------------------------------------------------------------


def _names(frame: Any) -> list[str]:
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [str(name) for name in names]


def _column(frame: Any, name: str) -> tuple[np.ndarray | list[Any], np.ndarray]:
    """Values of a column, and which of them are missing."""
    if _names(frame).count(name) != 1:
        if name in _names(frame):
            raise SpaceError(f"the frame has several columns '{name}': rename one of them")
        raise _no_column(name, _names(frame))
    column = frame[name]
    missing = np.asarray((column.isna() if hasattr(column, "isna") else column.is_null()).to_numpy(), bool)
    values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    kinds = {type(value) for value, is_missing in zip(values, missing.tolist(), strict=True) if not is_missing}
    if kinds and kinds <= {int, float, bool}:  # only numbers become an array; missing ones may have any value
        values = np.array([0 if is_missing else value for value, is_missing in zip(values, missing.tolist())])
    return values, missing


def _rows(frame: Any) -> list[dict[str, Any]]:
    """An example in each row."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(frame))]
    for name in _names(frame):
        values, missing = _column(frame, name)
        for row, value, is_missing in zip(rows, _plain(values), missing.tolist(), strict=True):
            if not is_missing:
                row[name] = value
    return rows


def _groups(frame: Any, group: str, once: tuple[str, ...]) -> list[dict[str, Any]]:
    """An example from the rows that have the same value in one column."""
    labels, missing = _column(frame, group)
    if missing.any():
        raise SpaceError(f"column '{group}', row {int(missing.argmax())}: no group: fill it in, or drop the row")
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(value, len(numbers)) for value in _plain(labels)], np.int64)
    except TypeError:
        raise SpaceError(f"column '{group}' holds lists: a group is a number or a string") from None
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(numbers) + 1))
    examples: list[dict[str, Any]] = [{group: value} for value in numbers]
    for name in once:
        if name not in _names(frame):
            raise _no_column(name, _names(frame))
    for name in (name for name in _names(frame) if name != group):
        values, missing = _column(frame, name)
        for number, example in enumerate(examples):
            rows = order[bounds[number] : bounds[number + 1]]
            absent = missing[rows]
            if absent.all():
                continue
            if absent.any():
                where = f"column '{name}', row {int(rows[absent.argmax()])} (group {example[group]!r})"
                raise SpaceError(f"{where}: the value is missing: fill it in, or drop the row")
            items = values[rows] if isinstance(values, np.ndarray) else [values[k] for k in rows]
            example[name] = _single_value(items, name, rows, example[group]) if name in once else items
    return examples


def _single_value(values: Any, name: str, rows: np.ndarray, group: Any) -> Any:
    """The value that a column has in all rows of a group."""
    values = _plain(values)
    for value, row in zip(values, rows.tolist(), strict=True):
        if value != values[0]:
            raise SpaceError(
                f"column '{name}', row {row} (group {group!r}): {value!r}, but the group began with {values[0]!r}: a "
                "column named by once has the same value in all rows of a group"
            )
    return values[0]


# --- columns ----------------------------------------------------------------------------------------------------------


def _entries(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns that have an entry for each example."""
    if not columns:
        raise SpaceError("there are no columns: give at least one")
    parts = {name: _pieces(name, column) for name, column in columns.items()}
    first = next(iter(parts))
    for name, part in parts.items():
        if len(part) != len(parts[first]):
            raise SpaceError(
                f"column '{name}' has {len(part)} entries, but '{first}' has {len(parts[first])}: "
                "one for each example, or give offsets"
            )
    return [dict(zip(parts, entries, strict=True)) for entries in zip(*parts.values(), strict=True)]


def _pieces(name: str, column: Any) -> list[Any]:
    if _is_ragged(column):
        bounds = _bounds(f"column '{name}'", column.offsets, len(column.values))
        return [column.values[a:b] for a, b in pairwise(bounds)]
    if not _is_list(column):
        raise SpaceError(f"column '{name}' is {type(column).__name__}: give a list with an entry for each example")
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iufb":
        return list(column.tolist())
    return list(column)


def _cut(columns: Mapping[str, Any], offsets: Any, once: tuple[str, ...]) -> list[dict[str, Any]]:
    """Columns of all items, cut where each example begins."""
    for name in once:
        if name not in columns:
            raise _no_column(name, columns)
    items = {name: column for name, column in columns.items() if name not in once}
    first, count = next(((name, len(column)) for name, column in items.items()), ("", 0))
    for name, column in items.items():
        if len(column) != count:
            raise SpaceError(
                f"column '{name}' has {len(column)} values, but '{first}' has {count}: offsets apply to all columns, "
                "except those named by once"
            )
    bounds = _bounds("offsets", offsets, count)
    for name in once:
        if len(columns[name]) != len(bounds) - 1:
            raise SpaceError(
                f"column '{name}' has {len(columns[name])} values, but there are {len(bounds) - 1} examples"
            )
    whole = {name: np.array(c) if isinstance(c, list) and _numbers(c) else c for name, c in items.items()}
    examples = []
    for number, (begin, end) in enumerate(pairwise(bounds)):
        example = {name: column[begin:end] for name, column in whole.items()}
        examples.append(example | {name: _plain(columns[name])[number] for name in once})
    return examples


def _bounds(what: str, offsets: Any, size: int) -> list[int]:
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or bounds.size < 2:
        raise SpaceError(f"{what}: offsets are whole numbers, one more than there are examples")
    if bounds[0] != 0 or bounds[-1] != size or (np.diff(bounds.astype(np.int64)) < 0).any():
        raise SpaceError(f"{what}: offsets begin with 0, never fall, and end with the number of values, here {size}")
    return [int(bound) for bound in bounds]


def _numbers(values: list[Any]) -> bool:
    return {type(value) for value in values} <= {int, float, bool}


def _plain(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _is_ragged(column: Any) -> bool:
    return isinstance(column, tuple) and getattr(column, "_fields", ()) == ("values", "offsets")


def _is_list(column: Any) -> bool:
    return isinstance(column, Sequence | np.ndarray) and not isinstance(column, str | bytes)


def _no_column(name: str, columns: Iterable[Any]) -> SpaceError:
    listed = ", ".join(f"'{column}'" for column in list(columns)[:8]) or "none"
    return SpaceError(f"there is no column '{name}', only {listed} (reset_index() turns an index into a column)")
