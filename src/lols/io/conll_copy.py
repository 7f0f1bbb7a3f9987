"""Kernels that copy the bytes of a token-per-line file with one column replaced."""

from __future__ import annotations

from lols.engine.compile.kernel import kernel
from lols.engine.compile.words import copy

__all__ = ["fill", "mark_used", "measure"]


@kernel
def mark_used(numbers, used):
    """Mark the labels that have a token; False if there is a number without a label."""
    for t in range(numbers.size):
        if numbers[t] < 0 or numbers[t] >= used.size:
            return False
        used[numbers[t]] = True
    return True


@kernel
def measure(size, begin, end, numbers, places):
    """The size of what `fill` makes of a buffer of some size."""
    for t in range(numbers.size):
        size += places[numbers[t] + 1] - places[numbers[t]] - (end[t] - begin[t])
    return size


@kernel
def fill(buffer, begin, end, numbers, labels, places, out):
    """Copy the buffer, with the label `labels[places[n]:places[n + 1]]` for the text of a token with number n."""
    source, target = 0, 0
    for t in range(numbers.size):
        copy(out, target, buffer, source, begin[t])
        target += begin[t] - source
        start = places[numbers[t]]
        length = places[numbers[t] + 1] - start
        for k in range(length):  # some letters: a call would take longer
            out[target + k] = labels[start + k]
        target += length
        source = end[t]
    copy(out, target, buffer, source, buffer.size)
