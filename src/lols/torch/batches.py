"""What a network receives: examples of a batch, and states of a level, as tensors on its device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from lols.contract.examples import Examples, Ragged, Scalar, Shared
from lols.engine.states import States, column_of
from lols.errors import LolsError

MOST_PAGEABLE = 1 << 16  # bytes; the copy of more to a GPU waits for all work there, unless the memory is pinned


class Bags(NamedTuple):
    """Lists of numbered features, one after the other: bag i has those from `start[i]` to `start[i + 1]`.

    `width` bags belong to each state: 1, or the number of actions. These are arrays of NumPy in `inputs` of a network,
    and tensors in its `forward`.

    Attributes
    ----------
    start
        Where each bag begins; one more than there are bags.
    ids
        The numbered features.
    values
        Their values.
    width
        How many bags belong to each state.

    """

    start: Any
    ids: Any
    values: Any
    width: int = 1

    def select(self, rows: np.ndarray) -> Bags:
        """The bags of some states.

        Parameters
        ----------
        rows
            The numbers of the states.

        """
        bags = (rows[:, np.newaxis] * self.width + np.arange(self.width)).ravel()
        lengths = np.diff(self.start)[bags]
        at = spans(self.start[:-1][bags], lengths)
        return Bags(np.concatenate([[0], np.cumsum(lengths)]), self.ids[at], self.values[at], self.width)

    @staticmethod
    def joined(parts: Sequence[Bags]) -> Bags:
        """The bags of several batches, one after the other.

        Parameters
        ----------
        parts
            The bags to put after each other.

        """
        before = np.cumsum([0, *(part.ids.size for part in parts)])
        starts = [part.start[:-1] + at for part, at in zip(parts, before)]
        ids, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        return Bags(np.concatenate([*starts, before[-1:]]), ids, values, parts[0].width)


Inputs = np.ndarray | Bags


def hashed_bags(states: States, columns: int, *, of_actions: bool = False) -> Bags:
    """The features of states, or of their actions, hashed to this many columns: for `inputs` of a network.

    Parameters
    ----------
    states
        The states.
    columns
        To how many columns features are hashed.
    of_actions
        Whether the features of actions are meant.

    """
    if of_actions:
        if states.action_start.size <= 1:
            raise LolsError("the space has no features of actions: give it `action_features`")
        ids, start, values = states.action_ids, states.action_start, states.action_values
        return Bags(start, column_of(ids, columns), values.copy(), states.actions)
    return Bags(states.start, column_of(states.ids, columns), states.values.copy())


def spans(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers from `first[i]` on, `lengths[i]` of them, for each i in turn.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    return np.repeat(first - ends + lengths, lengths) + np.arange(int(ends[-1]) if ends.size else 0)


def on_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array as a tensor: floating-point numbers with 32 bits, other numbers as they are."""
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    made = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "cuda" and array.nbytes > MOST_PAGEABLE:
        made = made.pin_memory()
    return made.to(device, non_blocking=True)


class ExampleBatch:
    """Examples that a network encodes together.

    Attributes
    ----------
    examples
        The data set.
    indices
        The numbers of the batch's examples in the data set.
    device
        Where the network is.

    """

    def __init__(self, examples: Examples, indices: np.ndarray, device: torch.device):
        self.examples, self.indices, self.device = examples, np.asarray(indices, np.int64), device

    def __len__(self) -> int:
        return self.indices.size

    @property
    def has_truth(self) -> bool:
        """Whether the truth is known: it is in training."""
        return self.examples.has_truth

    def column(self, name: str) -> Any:
        """A column of x, or else of y, for the whole data set; `x.NAME` and `y.NAME` are of that side only.

        Parameters
        ----------
        name
            The name of the column.

        """
        sides = {"x": self.examples.x, "y": self.examples.y}
        side, dot, plain = name.rpartition(".")
        for chosen in (sides.get(side),) if dot else sides.values():
            if chosen is not None and plain in chosen._fields:
                return getattr(chosen, plain)
        known = ", ".join((*self.examples.x._fields, *self.examples.y._fields))
        raise LolsError(f"the examples have no column '{name}': there are {known}")

    def lengths(self, name: str) -> np.ndarray:
        """How many values each example has in a column.

        Parameters
        ----------
        name
            The name of the column.

        """
        return np.diff(self._ragged(name).offsets)[self.indices]

    def array(self, name: str) -> np.ndarray:
        """The values of a column, example after example, as an array of NumPy.

        Parameters
        ----------
        name
            The name of the column.

        """
        column = self.column(name)
        if isinstance(column, Scalar):
            return column.values[self.indices]
        if isinstance(column, Shared):
            return np.asarray(column.value)
        offsets = column.offsets
        return column.values[spans(offsets[self.indices], np.diff(offsets)[self.indices])]

    def flat(self, name: str) -> torch.Tensor:
        """The values of a column, example after example; for a setting of the space, its value.

        Parameters
        ----------
        name
            The name of the column, or of a setting.

        """
        return on_device(self.array(name), self.device)

    def padded(self, name: str, fill: float = 0, width: int = 1) -> torch.Tensor:
        """The values of a column as a tensor [example, place], filled up behind the last value.

        With a `width`, that many values belong to a place, and the tensor is [example, place, width].

        Parameters
        ----------
        name
            The name of the column.
        fill
            What is put behind the last value of a shorter example.
        width
            How many values make up a place.

        """
        lengths = self.lengths(name) // width
        values = self.array(name).reshape(-1, width)
        made = np.full((lengths.size, int(lengths.max(initial=0)), width), fill, values.dtype)
        made[np.arange(made.shape[1]) < lengths[:, np.newaxis]] = values
        return on_device(made[:, :, 0] if width == 1 else made, self.device)

    def _ragged(self, name: str) -> Ragged:
        column = self.column(name)
        if not isinstance(column, Ragged):
            raise LolsError(f"column '{name}' has one value for each example: use flat('{name}')")
        return column


class StateBatch:
    """States that a network scores together.

    Attributes
    ----------
    actions
        The number of actions.
    device
        Where the network is.
    rows
        The example of each state, by its place in the batch that was encoded, as an array of NumPy.
    given
        What `inputs` of the network gave, by default the state vectors, as NumPy has it.

    """

    def __init__(self, rows: np.ndarray, given: Inputs, legal: np.ndarray, device: torch.device):
        self.actions, self.device = legal.shape[1], device
        self.rows, self._legal = rows, legal
        self.given: Any = given

    def __len__(self) -> int:
        return self._legal.shape[0]

    @cached_property
    def _both(self) -> tuple[torch.Tensor, Any]:
        given = self.given
        if isinstance(given, np.ndarray) and given.dtype.kind in "iub" and given.ndim == 2:  # one transfer for both
            both = on_device(np.concatenate([self.rows[:, np.newaxis], given], axis=1).astype(np.int64), self.device)
            return both[:, 0], both[:, 1:]
        if isinstance(given, Bags):
            start, ids, values = (on_device(array, self.device) for array in given[:3])
            return on_device(self.rows, self.device), Bags(start, ids, values, given.width)
        return on_device(self.rows, self.device), on_device(given, self.device)

    @property
    def row(self) -> torch.Tensor:
        """The example of each state, by its place in the batch that was encoded."""
        return self._both[0]

    @property
    def inputs(self) -> Any:
        """What `inputs` of the network gave, as tensors; by default the state vectors."""
        return self._both[1]

    @cached_property
    def legal(self) -> torch.Tensor:
        """Which actions are legal, [state, action]."""
        return on_device(self._legal, self.device)
