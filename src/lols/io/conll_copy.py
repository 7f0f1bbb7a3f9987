"""Kernels that copy the bytes of a token-per-line file with one column replaced."""

from __future__ import annotations

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from lols.io.conll_scan import KERNEL

__all__ = ["fill", "mark_used", "measure"]


def copy(out, target, source, begin, end):
    """Copy a part of one array of bytes into another one."""
    out[target : target + end - begin] = source[begin:end]


@intrinsic
def _copy(typing_context, out, target, source, begin, end):
    def generate(context, builder, signature, arguments):
        into, source = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2))
        target, begin, end = (arguments[k] for k in (1, 3, 4))
        size = builder.sub(end, begin)
        cgutils.raw_memcpy(builder, builder.gep(into, [target]), builder.gep(source, [begin]), size, 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, source, types.int64, types.int64), generate


@overload(copy)
def _overload_copy(out, target, source, begin, end):
    return lambda out, target, source, begin, end: _copy(out, target, source, begin, end)


@njit(**KERNEL)
def mark_used(numbers, used):
    """Mark the labels that have a token; False if there is a number without a label."""
    for t in range(numbers.size):
        if numbers[t] < 0 or numbers[t] >= used.size:
            return False
        used[numbers[t]] = True
    return True


@njit(**KERNEL)
def measure(size, begin, end, numbers, places):
    """The size of what `fill` makes of a buffer of some size."""
    for t in range(numbers.size):
        size += places[numbers[t] + 1] - places[numbers[t]] - (end[t] - begin[t])
    return size


@njit(**KERNEL)
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
