"""Weights without their zeros: most weights of a margin learner are zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.errors import ModelFileError
from lols.io.room import Room


def pack(stack: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The rows of `[component, row, column]` that have any weight, by number, and their weights without zeros.

    >>> stack = np.array([[[0, 0], [0, 2], [3, 4]]], np.float32)
    >>> kept, arrays = pack(stack, np.array([2, 0, 1]))
    >>> kept.tolist(), arrays["counts"].tolist(), arrays["columns"].tolist(), arrays["values"].tolist()
    ([0, 2], [[2, 1]], [0, 1, 1], [3.0, 4.0, 2.0])
    >>> unpack(arrays, 2).tolist()
    [[[3.0, 4.0], [0.0, 2.0]]]
    """
    kept = np.flatnonzero(np.any(stack, axis=(0, 2), keepdims=True)[0, rows, 0])
    chosen = stack[:, rows[kept]]
    nonzero = chosen != 0.0
    at = np.flatnonzero(nonzero)
    columns = (at % stack.shape[2]).astype(np.uint8 if stack.shape[2] <= 256 else np.int32)
    counts = nonzero.sum(axis=2, dtype=np.int32)
    return kept, {"counts": counts, "columns": columns, "values": chosen.reshape(-1)[at]}


def unpack(
    arrays: Mapping[str, np.ndarray], columns: int, room: Room | None = None, rows: tuple[np.ndarray, int] | None = None
) -> np.ndarray:
    """The weights as they were; arrays that do not fit together are an error.

    They may take what is left in `room`. With the numbers of the rows that `pack` kept, and how many rows there were,
    the others are put back, too.
    """
    counts, at, values = arrays["counts"], arrays["columns"], arrays["values"]
    if counts.ndim != 2 or counts.dtype != np.int32 or at.ndim != 1 or at.dtype not in (np.uint8, np.int32):
        raise ModelFileError("the weights' places have the wrong shape")
    if values.shape != at.shape or values.dtype != np.float32 or (counts < 0).any():
        raise ModelFileError("the weights have the wrong shape")
    if int(counts.sum(dtype=np.int64)) != at.size or (at.size and not 0 <= int(at.min()) <= int(at.max()) < columns):
        raise ModelFileError("the weights do not fit their places")
    components, kept = counts.shape
    numbers, count = (np.arange(kept), kept) if rows is None else rows
    if numbers.size != kept or (kept and not 0 <= int(numbers.min()) <= int(numbers.max()) < count):
        raise ModelFileError("the rows of the weights are beyond the table")
    if components * count * columns >= 1 << 62:
        raise ModelFileError("the weights are too many")
    row = (np.arange(components)[:, np.newaxis] * count + numbers).reshape(-1)
    places = np.repeat(row, counts.reshape(-1)) * columns + at
    stack = (room or Room(arrays)).zeros((components, count, columns), places)
    stack.reshape(-1)[places] = values
    return stack
