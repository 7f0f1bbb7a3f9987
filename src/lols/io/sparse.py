"""Weights without their zeros: most of a margin learner's weights were never changed."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.kernel import kernel
from lols.errors import ModelFileError

__all__ = ["pack", "unpack"]


def pack(stack: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The rows of `[component, row, column]` that have any weight, by number, and their weights without zeros.

    >>> stack = np.array([[[0, 0], [0, 2], [3, 4]]], np.float32)
    >>> kept, arrays = pack(stack, np.array([2, 0, 1]))
    >>> kept.tolist(), arrays["counts"].tolist(), arrays["columns"].tolist(), arrays["values"].tolist()
    ([0, 2], [[2, 1]], [0, 1, 1], [3.0, 4.0, 2.0])
    >>> unpack(arrays, 2).tolist()
    [[[3.0, 4.0], [0.0, 2.0]]]
    """
    counts = np.empty(stack.shape[:2], np.int32)
    stack = np.ascontiguousarray(stack)
    _count(stack, counts)
    counts = counts[:, rows]
    kept = np.flatnonzero(counts.any(axis=0))
    counts = np.ascontiguousarray(counts[:, kept])
    small = np.uint8 if stack.shape[2] <= 256 else np.int32
    ends = np.cumsum(counts)
    first = np.full(stack.shape[:2], -1, np.int64)
    first[:, rows[kept]] = ends.reshape(counts.shape) - counts
    columns, values = np.empty(int(counts.sum()), small), np.empty(int(counts.sum()), np.float32)
    _gather(stack, first, columns, values)
    return kept, {"counts": counts, "columns": columns, "values": values}


def unpack(arrays: dict[str, np.ndarray], columns: int) -> np.ndarray:
    """The weights as they were; arrays that do not fit together are an error."""
    counts, at, values = arrays["counts"], arrays["columns"], arrays["values"]
    if counts.ndim != 2 or counts.dtype != np.int32 or at.ndim != 1 or at.dtype not in (np.uint8, np.int32):
        raise ModelFileError("the weights' places have the wrong shape")
    if values.shape != at.shape or values.dtype != np.float32 or (counts < 0).any():
        raise ModelFileError("the weights have the wrong shape")
    if int(counts.sum(dtype=np.int64)) != at.size or (at.size and not 0 <= int(at.min()) <= int(at.max()) < columns):
        raise ModelFileError("the weights do not fit their places")
    stack = np.zeros((*counts.shape, columns), np.float32)
    _scatter(counts, at, values, stack)
    return stack


@kernel
def _count(stack, counts):
    for c in range(stack.shape[0]):
        for k in range(stack.shape[1]):
            count = np.int32(0)
            for j in range(stack.shape[2]):
                count += np.int32(stack[c, k, j] != 0.0)
            counts[c, k] = count


@kernel
def _gather(stack, first, columns, values):
    """Write the weights of each row to their places, row after row as they are in memory; -1 for none."""
    for c in range(stack.shape[0]):
        for k in range(stack.shape[1]):
            n = first[c, k]
            if n < 0:
                continue
            for j in range(stack.shape[2]):
                if stack[c, k, j] != 0.0:
                    columns[n] = j
                    values[n] = stack[c, k, j]
                    n += 1


@kernel
def _scatter(counts, columns, values, stack):
    n = 0
    for c in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            for _ in range(counts[c, k]):
                stack[c, k, columns[n]] = values[n]
                n += 1
