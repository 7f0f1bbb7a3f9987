"""Examples from frames and columns: one dictionary for each example, which is what `encode` and `Columns` take.

pandas, polars and pyarrow are never imported here: a frame that somebody gives is asked by its own methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lols.errors import SpaceError

__all__ = ["as_objects", "column_of", "objects"]


def objects(
    data: Any, *, group: str | None = None, offsets: Any = None, once: str | Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Turn a frame or a dictionary of columns into one dictionary for each example.

    Where a frame has no value, the dictionary has no entry; within an example, either all values of a column are there
    or none.

    Parameters
    ----------
    data
        A pandas or polars frame or an Arrow table; or a dictionary of columns.
    group
        Of a frame with a row for each item (word, letter, ...): the column that says which example a row belongs to.
        The rows of an example need not stand together: they keep their order, and examples come in the order of their
        first rows. Without it, a row is an example, and cells may hold lists.
    offsets
        Of columns that hold the items of all examples one after the other: where each example begins, and the end.
        Without it, a column has an entry for each example, which may be a list or an array.
    once
        Columns that have one value for each example: the same in all its rows or, with `offsets`, one per example.

    Examples
    --------
    >>> columns = {"words": [7, 8, 9], "tags": [0, 1, 0]}
    >>> [made["words"].tolist() for made in objects(columns, offsets=[0, 2, 3])]
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


def as_objects(given: Any) -> Iterable[Any]:
    """What the user gave as a list of objects: frames with an example in each row, and columns, are turned into one."""
    if is_frame(given):
        return objects(given)
    if isinstance(given, Mapping):
        if not any(
            _is_ragged(column) or (_is_list(column) and any(map(_is_list, column))) for column in given.values()
        ):
            raise SpaceError(
                "a dictionary alone is one example: give a list of them, or columns in which every example has a list"
            )
        return objects(given)
    if isinstance(given, str | bytes):
        raise SpaceError("one string is given in the place of a list of examples: give [it] if it is an example")
    if not isinstance(given, Iterable):
        raise SpaceError(f"{type(given).__name__} is given in the place of examples: give a list of them, or a frame")
    objects_given: Iterable[Any] = given
    return objects_given


def column_of(data: Any, name: str) -> Iterable[Any]:
    """The entries of one column, of a frame, columns or a list of dictionaries; those that are missing left out."""
    if is_frame(data):
        values, missing = _column(data, name)
        return [value for value, gone in zip(values, missing, strict=True) if not gone]
    if isinstance(data, Mapping):
        if name not in data:
            raise _no_column(name, data)
        values = data[name].values if _is_ragged(data[name]) else data[name]
        return list(values)
    rows = list(data)
    found = [row[name] for row in rows if isinstance(row, Mapping) and name in row]
    if rows and not found:
        raise _no_column(name, rows[0] if isinstance(rows[0], Mapping) else {})
    return found


def is_frame(data: Any) -> bool:
    """Whether this is a frame of pandas or polars or an Arrow table."""
    home = type(data).__module__.partition(".")[0]
    if home == "polars" and type(data).__name__ == "LazyFrame":
        raise SpaceError("a polars LazyFrame has no rows yet: give frame.collect()")
    return home in ("pandas", "polars", "pyarrow") and type(data).__name__ in ("DataFrame", "Table")


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
    if hasattr(column, "to_pylist"):
        values = column.to_pylist()
    else:
        values = column.to_list()
    # only numbers become an array; in those with gaps, what stands in the gaps does not matter
    kinds = {type(value) for value, gone in zip(values, missing.tolist(), strict=True) if not gone}
    if kinds and kinds <= {int, float, bool}:
        filled = [0 if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]
        return np.array(filled), missing
    return values, missing


def _rows(frame: Any) -> list[dict[str, Any]]:
    """An example in each row."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(frame))]
    for name in _names(frame):
        values, missing = _column(frame, name)
        for row, value, gone in zip(rows, _plain(values), missing.tolist(), strict=True):
            if not gone:
                row[name] = value
    return rows


def _groups(frame: Any, group: str, once: tuple[str, ...]) -> list[dict[str, Any]]:
    """An example from the rows that have the same value in one column."""
    given, missing = _column(frame, group)
    if missing.any():
        raise SpaceError(f"column '{group}', row {int(missing.argmax())}: no group: fill it in, or drop the row")
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(value, len(numbers)) for value in _plain(given)], np.int64)
    except TypeError:
        raise SpaceError(f"column '{group}' holds lists: a group is a number or a string") from None
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(numbers) + 1))
    made: list[dict[str, Any]] = [{group: value} for value in numbers]
    for name in once:
        if name not in _names(frame):
            raise _no_column(name, _names(frame))
    for name in (name for name in _names(frame) if name != group):
        values, missing = _column(frame, name)
        for number, row in enumerate(made):
            at = order[bounds[number] : bounds[number + 1]]
            gone = missing[at]
            if gone.all():
                continue
            if gone.any():
                where = f"column '{name}', row {int(at[gone.argmax()])} (group {row[group]!r})"
                raise SpaceError(f"{where}: the value is missing: fill it in, or drop the row")
            some = values[at] if isinstance(values, np.ndarray) else [values[k] for k in at]
            row[name] = _same(some, name, at, row[group]) if name in once else some
    return made


def _same(values: Any, name: str, rows: np.ndarray, group: Any) -> Any:
    """The one value of a column in all rows of a group."""
    plain = _plain(values)
    for value, row in zip(plain, rows.tolist(), strict=True):
        if value != plain[0]:
            raise SpaceError(
                f"column '{name}', row {row} (group {group!r}): {value!r}, but the group began with {plain[0]!r}: a "
                "column that comes once has the same value in all rows of a group"
            )
    return plain[0]


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
    sizes = {name: len(column) for name, column in items.items()}
    for name, size in sizes.items():
        if size != next(iter(sizes.values())):
            first = next(iter(sizes))
            raise SpaceError(
                f"column '{name}' has {size} values, but '{first}' has {sizes[first]}: offsets cut all of them alike, "
                "except those named by once"
            )
    bounds = _bounds("offsets", offsets, next(iter(sizes.values()), 0))
    for name in once:
        if len(columns[name]) != len(bounds) - 1:
            raise SpaceError(
                f"column '{name}' has {len(columns[name])} values, but there are {len(bounds) - 1} examples"
            )
    whole = {name: c if not isinstance(c, list) or not _numbers(c) else np.array(c) for name, c in items.items()}
    made = []
    for number, (begin, end) in enumerate(pairwise(bounds)):
        row = {name: column[begin:end] for name, column in whole.items()}
        made.append(row | {name: _plain(columns[name])[number] for name in once})
    return made


def _bounds(what: str, offsets: Any, size: int) -> list[int]:
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or bounds.size < 2:
        raise SpaceError(f"{what}: offsets are whole numbers, one more than there are examples")
    if bounds[0] != 0 or bounds[-1] != size or (np.diff(bounds.astype(np.int64)) < 0).any():
        raise SpaceError(f"{what}: offsets begin with 0, never fall, and end with the number of values, here {size}")
    made: list[int] = bounds.tolist()
    return made


def _numbers(values: list[Any]) -> bool:
    return {type(value) for value in values} <= {int, float, bool}


def _plain(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _is_ragged(column: Any) -> bool:
    return isinstance(column, tuple) and getattr(column, "_fields", ()) == ("values", "offsets")


def _is_list(column: Any) -> bool:
    return isinstance(column, Sequence | np.ndarray) and not isinstance(column, str | bytes)


def _no_column(name: str, known: Iterable[Any]) -> SpaceError:
    listed = ", ".join(f"'{one}'" for one in list(known)[:8]) or "none"
    return SpaceError(f"there is no column '{name}': it has {listed} (an index becomes a column by reset_index())")
