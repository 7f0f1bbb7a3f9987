"""Examples in columns: one array per column for the whole data set, so that kernels never touch Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index as whole_number
from typing import Any

import numpy as np

from lols.contract.arrays import (
    NO_BOUNDS,
    NO_ITEMS,
    Items,
    check_column,
    check_items,
    columns_of,
    items_of,
    setting,
)
from lols.contract.frames import as_objects
from lols.contract.frames import objects as objects_of
from lols.contract.records import record_class
from lols.contract.space import Example, SearchSpace
from lols.contract.task import Task, as_space
from lols.contract.user_frames import user_line
from lols.errors import LolsError, SpaceError, one_line, shown, warn
from lols.kernels.collector import without_collector
from lols.kernels.digest import all_of_library
from lols.kernels.layout import Ragged, Scalar, Shared, row, view

__all__ = ["NO_BOUNDS", "Examples", "Items", "Ragged", "Scalar", "Shared", "view"]


class Examples:
    """A data set in the columns that the engine reads.

    Parameters
    ----------
    space
        The space (or `Task`) whose `encode`, `sizes` and `settings` are used.
    objects
        The user's objects, each given to `space.encode`; or a frame or a dictionary of columns, see `lols.objects`.
    truth
        Whether the truth is needed: True, False, or None for "where every example has it". A space whose `loss` and
        `cost` do not look at `y` needs none.
    decided
        Whether to leave out, with a warning, examples in which nothing is to be decided: `Sizes.steps` gives 0. Nothing
        is learned from them; what is predicted for them is the start state's `output`.

    Examples
    --------
    >>> from lols.datasets.worlds import tagging_space
    >>> examples = Examples(tagging_space(labels=3), [{"words": [4, 5], "tags": [0, 2]}])
    >>> len(examples), examples.example(0)[0].words.tolist()
    (1, [4, 5])

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        objects: Iterable[Any],
        *,
        truth: bool | None = None,
        decided: bool = False,
    ):
        space, objects = as_space(space), as_objects(objects)
        with without_collector():
            encoded = [_encoded(space, i, obj) for i, obj in enumerate(objects)]
        if not encoded:
            raise SpaceError("there are no examples: give at least one")
        self._take(space, encoded, truth)
        if decided and not self.steps.all():
            first, count = int(self.steps.argmin()), int((self.steps == 0).sum())
            if count == len(encoded):
                raise SpaceError("there is nothing to decide in any example: Sizes.steps gives 0 for all of them")
            warn(
                f"{count} of {len(encoded)} examples are left out, because there is nothing to decide in them: "
                f"Sizes.steps gives 0 (the first is example {first})"
            )
            self._take(space, [one for one, steps in zip(encoded, self.steps, strict=True) if steps], truth)

    def _take(self, space: SearchSpace, encoded: list[Example], truth: bool | None) -> None:
        """Store what `encode` gave."""
        with_truth = [e.y is not None for e in encoded]
        if truth is True and not all(with_truth):
            raise SpaceError(f"example {with_truth.index(False)}: it has no truth `y`, which training needs")
        y: list[Any] | None = [e.y for e in encoded if e.y is not None]
        if truth is None and not any(with_truth) and not space.needs_truth:
            y = [{}] * len(encoded)
        elif truth is False or not all(with_truth):
            y = None
        items = None
        if space.items is not None:
            missing = [i for i, e in enumerate(encoded) if e.items is None]
            if missing:
                raise SpaceError(f"example {missing[0]}: the space has `items`, but `encode` gave no item features")
            with without_collector():
                items = items_of([e.items or [] for e in encoded])
        self._set(
            space,
            len(encoded),
            columns_of("x", [e.x for e in encoded]),
            columns_of("y", y) if y is not None else None,
            items,
        )

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

        Parameters
        ----------
        space
            The search space, or a `Task`.
        frame
            A pandas or polars frame, or an Arrow table.
        group
            The column that says which example a row belongs to.
        once
            Columns with one value for each example.
        truth
            Whether the truth is needed; None for where every example has it.

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

        Parameters
        ----------
        space
            The search space, or a `Task`.
        count
            How many examples there are.
        x
            The columns of the input: arrays, or `Ragged` ones.
        y
            The columns of the truth.
        items
            The features of the input's items.
        states
            The length of each example's state.
        steps
            The most steps of each example.

        """
        examples, space = cls.__new__(cls), as_space(space)
        if not all_of_library(space.functions().values()):
            given = {"states": states, "steps": steps}
            sizes = {name: Scalar(values) for name, values in given.items() if values is not None}
            for name, column in {**x, **(y or {}), **sizes}.items():
                check_column(name, column, count)
            if items is not None:
                check_items(items, count)
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
        x |= {name: Shared(setting(value)) for name, value in space.settings.items()}
        self.space = space
        self.count = count
        self.x = record_class(tuple(x))(*x.values())
        self.y = record_class(tuple(y or ()))(*(y or {}).values())
        self.has_truth = y is not None
        self.items = items if items is not None else NO_ITEMS
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
        """The number of actions of one example.

        Parameters
        ----------
        index
            The number of the example, from 0 on.

        """
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
        """Input and truth of one example, as the space's functions see them.

        Parameters
        ----------
        index
            The number of the example, from 0 on.

        """
        return row(self.x, index), row(self.y, index)

    def output(self, index: int, state: np.ndarray) -> Any:
        """The user's own result for an end state of one example.

        Parameters
        ----------
        index
            The number of the example, from 0 on.
        state
            An end state of it.

        """
        try:
            return self.space.output(self.example(index)[0], state)
        except Exception as error:
            raise SpaceError(f"`output` failed on example {index}: {one_line(error)}{user_line(error)}") from error

    def nbytes(self) -> int:
        """Memory held by the columns, in bytes."""
        arrays = [a for column in (*self.x, *self.y, self.items) for a in column]
        return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


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
