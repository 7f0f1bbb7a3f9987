"""Examples in columns: one array per column for the whole data set, so that kernels never touch Python objects."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import index as whole_number
from typing import Any, NamedTuple

import numpy as np

from lols.contract.digest import all_of_library
from lols.contract.frames import as_objects
from lols.contract.frames import objects as objects_of
from lols.contract.records import record_class
from lols.contract.space import Example, SearchSpace
from lols.contract.task import Task, as_space
from lols.contract.user_frames import one_line, user_line
from lols.errors import LolsError, SpaceError, shown

__all__ = ["Examples"]


NO_BOUNDS = np.zeros(0, np.int64)


class Ragged(NamedTuple):
    """An array per example: the values of all examples, and where those of each begin."""

    values: np.ndarray
    offsets: np.ndarray


class Scalar(NamedTuple):
    """A number per example."""

    values: np.ndarray


class Shared(NamedTuple):
    """A setting of the space: the same number or array for every example."""

    value: Any


class Items(NamedTuple):
    """The features of input items, each distinct list stored once: example → items → types → features.

    An item has `parts` types, and its features are the features of all of them: those of a word and of its neighbours
    are stored once per word. Where items have different numbers of types, `bounds` says where each item begins.
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
        lengths = np.diff(self.start)
        if self.bounds.size and lengths.max(initial=0) <= 1:
            return int(np.diff(self.bounds).max(initial=0))
        lengths = lengths[self.types]
        if self.bounds.size:
            sums = np.concatenate([[0], np.cumsum(lengths)])[self.bounds]
            return int(np.diff(sums).max(initial=0))
        return int(lengths.reshape(-1, self.parts).sum(axis=1).max(initial=0))


class Examples:
    """A data set in the columns that the engine reads.

    Parameters
    ----------
    space
        The space (or `Task`) whose `encode`, `sizes` and `settings` are used.
    objects
        The user's objects, each given to `space.encode`; or a frame or a dictionary of columns, see `lols.objects`.
    truth
        Whether the truth is needed: True, False, or None for "where every example has it".

    Examples
    --------
    >>> from lols.datasets.worlds import tagging_space
    >>> examples = Examples(tagging_space(labels=3), [{"words": [4, 5], "tags": [0, 2]}])
    >>> len(examples), examples.example(0)[0].words.tolist()
    (1, [4, 5])

    """

    def __init__(self, space: SearchSpace | Task | type[Task], objects: Iterable[Any], *, truth: bool | None = None):
        space, objects = as_space(space), as_objects(objects)
        with _no_garbage_collection():
            encoded = [_encoded(space, i, obj) for i, obj in enumerate(objects)]
        if not encoded:
            raise SpaceError("there are no examples: give at least one")
        with_truth = [e.y is not None for e in encoded]
        if truth is True and not all(with_truth):
            raise SpaceError(f"example {with_truth.index(False)}: it has no truth `y`, which training needs")
        y = [e.y for e in encoded if e.y is not None] if truth is not False and all(with_truth) else None
        items = None
        if space.items is not None:
            missing = [i for i, e in enumerate(encoded) if e.items is None]
            if missing:
                raise SpaceError(f"example {missing[0]}: the space has `items`, but `encode` gave no item features")
            with _no_garbage_collection():
                items = _items([e.items or [] for e in encoded])
        self._set(space, len(encoded), _columns("x", [e.x for e in encoded]), _columns("y", y) if y else None, items)

    @classmethod
    def from_frame(
        cls,
        space: SearchSpace | Task | type[Task],
        frame: Any,
        *,
        group: str | None = None,
        once: str | Sequence[str] = (),
        truth: bool | None = None,
    ) -> Examples:
        """Take a pandas or polars frame or an Arrow table: a row for each item with a `group`, else one per example.

        `encode` (or the task's `columns`) gets one dictionary for each example, as `lols.objects` makes them.
        """
        return cls(space, objects_of(frame, group=group, once=once), truth=truth)

    @classmethod
    def from_columns(
        cls,
        space: SearchSpace | Task | type[Task],
        count: int,
        x: Mapping[str, Ragged | Scalar],
        y: Mapping[str, Ragged | Scalar] | None = None,
        items: Items | None = None,
        *,
        states: np.ndarray | None = None,
        steps: np.ndarray | None = None,
    ) -> Examples:
        """Take columns as they are, for readers that produce them without Python objects.

        `states` and `steps` are the sizes of each example; without them, `space.sizes` is called for each.
        """
        examples, space = cls.__new__(cls), as_space(space)
        if not all_of_library(space.functions().values()):
            given = {"states": states, "steps": steps}
            sizes = {name: Scalar(values) for name, values in given.items() if values is not None}
            for name, column in {**x, **(y or {}), **sizes}.items():
                _check_column(name, column, count)
            if items is not None:
                _check_items(items, count)
        examples._set(space, count, dict(x), dict(y) if y is not None else None, items, states, steps)
        return examples

    def _set(
        self,
        space: SearchSpace,
        count: int,
        x: dict[str, Any],
        y: dict[str, Any] | None,
        items: Items | None,
        states: np.ndarray | None = None,
        steps: np.ndarray | None = None,
    ) -> None:
        clash = set(x) & set(space.settings)
        if clash:
            raise SpaceError(f"column '{min(clash)}' of x is also a setting of the space: rename one of them")
        x |= {name: Shared(_setting(value)) for name, value in space.settings.items()}
        self.space = space
        self.count = count
        self.x = record_class(tuple(x))(*x.values())
        self.y = record_class(tuple(y or ()))(*(y or {}).values())
        self.has_truth = y is not None
        self.items = items if items is not None else _items([])
        for name, sizes in (("states", states), ("steps", steps)):
            if sizes is not None and sizes.size and sizes.min() < 0:
                raise SpaceError(f"example {int(sizes.argmin())}: {name} is {sizes.min()}; it cannot be negative")
        # the parts of a state lie where its own sizes say, whatever a caller of `from_columns` gives
        self.states = self._sizes("state") if states is None or space.parts is not None else states
        self.steps = self._sizes("steps") if steps is None else steps
        self.actions = self._sizes("actions") if space.fixed_actions is None else None

    def _sizes(self, name: str) -> np.ndarray:
        size = getattr(self.space.sizes, name)
        if not callable(size):
            return np.full(self.count, size, np.int64)
        sizes = np.empty(self.count, np.int64)
        for i in range(self.count):
            try:
                result = size(self.example(i)[0])
                sizes[i] = whole_number(result)
            except Exception as error:
                why = f"failed with {one_line(error)}"
                if isinstance(error, TypeError) and "interpreted as an integer" in str(error):
                    why = f"gave {shown(result)}; it must be a whole number"
                scalars = [n for n, column in zip(self.x._fields, self.x) if isinstance(column, Scalar)]
                if "has no len()" in str(error) and scalars:
                    why += f": column '{scalars[0]}' is one number here; lols.objects(frame, group=...) makes lists"
                raise SpaceError(f"example {i}: Sizes.{name} {why}{user_line(error)}") from error
            if sizes[i] < 0:
                raise SpaceError(f"example {i}: Sizes.{name} gave {sizes[i]}; it cannot be negative")
        return sizes

    def __len__(self) -> int:
        return self.count

    def actions_of(self, index: int) -> int:
        """The number of actions of one example."""
        return int(self.space.sizes.actions if self.actions is None else self.actions[index])  # type: ignore[arg-type]

    @cached_property
    def most_actions(self) -> int:
        """The largest number of actions of an example."""
        return self.actions_of(0) if self.actions is None else int(self.actions.max(initial=1))

    @cached_property
    def widest_item(self) -> int:
        """The most features that one item has."""
        return self.items.widest()

    def example(self, index: int) -> tuple[Any, Any]:
        """Input and truth of one example, as the space's functions see them."""
        x, y = (type(side)(*(view(column, index) for column in side)) for side in (self.x, self.y))
        return x, y

    def output(self, index: int, state: np.ndarray) -> Any:
        """The user's own result for an end state of one example."""
        try:
            return self.space.output(self.example(index)[0], state)
        except Exception as error:
            raise SpaceError(f"`output` failed on example {index}: {one_line(error)}{user_line(error)}") from error

    def nbytes(self) -> int:
        """Memory held by the columns, in bytes."""
        arrays = [a for column in (*self.x, *self.y, self.items) for a in column]
        return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def view(column: Any, index: int) -> Any:
    """One example's part of a column."""
    if isinstance(column, Ragged):
        return column.values[column.offsets[index] : column.offsets[index + 1]]
    return column.values[index] if isinstance(column, Scalar) else column.value


def _check_column(name: str, column: Any, count: int) -> None:
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


def _check_items(items: Items, count: int) -> None:
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


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off: encoding creates many small objects and drops none, so it finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _encoded(space: SearchSpace, index: int, obj: Any) -> Example:
    try:
        encoded = space.encode(obj)
    except LolsError as error:
        raise SpaceError(f"example {index}: {error}{user_line(error)}") from error
    except Exception as error:
        raise SpaceError(f"`encode` failed on example {index}: {one_line(error)}{user_line(error)}") from error
    if isinstance(encoded, Mapping):
        return Example(encoded)
    sides = encoded[:2] if isinstance(encoded, tuple) and 1 <= len(encoded) <= 3 else (None,)
    if not isinstance(sides[0], Mapping) or not all(side is None or isinstance(side, Mapping) for side in sides):
        raise SpaceError(f"example {index}: `encode` gave {type(encoded).__name__}; it must give a lols.Example")
    return Example(*encoded)


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


def _setting(value: Any) -> Any:
    array = np.ascontiguousarray(value)
    return array if np.ndim(value) else array.reshape(1)[0]


def _columns(side: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for i, row in enumerate(rows):
        if set(row) != set(rows[0]):
            raise SpaceError(f"example {i}: {side} has columns {sorted(row)}, but example 0 has {sorted(rows[0])}")
    for name in rows[0]:
        arrays = [_array(f"example {i}: column '{name}' of {side}", row[name]) for i, row in enumerate(rows)]
        ranks = [a.ndim for a in arrays]
        if min(ranks) != max(ranks):
            odd = ranks.index(1 - ranks[0])
            raise SpaceError(
                f"example {odd}: column '{name}' of {side} is a number in some examples and an array in others"
            )
        if ranks[0] == 0:
            columns[name] = Scalar(np.array(arrays))
        else:
            columns[name] = Ragged(np.concatenate(arrays), _offsets([a.size for a in arrays]))
    return columns


def _items(rows: Sequence[Sequence[Any]]) -> Items:
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
    start = _offsets([len(ids) for ids in ids_of])
    for number, pair in enumerate(pairs):
        if pair is not None:
            values[start[number] : start[number + 1]] = pair.values
    return Items(_offsets([len(row) for row in rows]), np.array(of_item, np.int64), start, ids.astype(np.int64), values)


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


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)
