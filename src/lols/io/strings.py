"""Strings in columns: slices of one buffer of bytes, and the numbering of distinct ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Column", "Texts", "intern", "texts_of"]


class Texts(NamedTuple):
    """Strings as slices of one buffer of UTF-8 bytes."""

    buffer: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def strings(self) -> list[str]:
        """The strings themselves."""
        whole = self.buffer.tobytes()
        return [whole[b:e].decode() for b, e in zip(self.begin.tolist(), self.end.tolist(), strict=True)]


class Column(NamedTuple):
    """A column of strings, each distinct one kept once."""

    numbers: np.ndarray  # int64 [tokens]
    texts: Texts  # of the distinct strings, in the order of their first appearance


def texts_of(strings: Iterable[str]) -> Texts:
    """Put Python strings into one buffer.

    >>> texts_of(["to", "", "bé"]).strings()
    ['to', '', 'bé']
    """
    strings = list(strings)
    whole = "\n".join(strings)
    content = whole.encode()
    if len(content) == len(whole):
        lengths = np.fromiter(map(len, strings), np.int64, len(strings))
    else:
        lengths = np.fromiter((len(s.encode()) for s in strings), np.int64, len(strings))
    end = np.cumsum(lengths + 1) - 1
    return Texts(np.frombuffer(content, np.uint8), end - lengths, end)


def intern(texts: Texts) -> Column:
    """Number the distinct strings in the order in which they appear.

    >>> column = intern(texts_of(["a", "b", "a"]))
    >>> column.numbers.tolist(), column.texts.strings()
    ([0, 1, 0], ['a', 'b'])
    """
    with np.errstate(over="ignore"):  # hashes wrap around
        numbers, first = _intern(texts.buffer, texts.begin, texts.end)
    return Column(numbers, Texts(texts.buffer, texts.begin[first], texts.end[first]))


@njit(cache=True, nogil=True)
def _intern(buffer, begin, end):
    """Open addressing over the strings seen so far: slots hold a string's hash and its number plus one."""
    count = begin.size
    size = 1 << 12
    hashes, slots = np.zeros(size, np.int64), np.zeros(size, np.int64)
    numbers, first = np.empty(count, np.int64), np.empty(count, np.int64)
    seen = 0
    for t in range(count):
        low, high = begin[t], end[t]
        code = high - low
        for k in range(low, high):
            code = (code ^ np.int64(buffer[k])) * 1099511628211
        code = code ^ (code >> 29)
        h = code & (size - 1)
        while True:
            number = slots[h] - 1
            if number < 0:
                break
            if hashes[h] == code and _same(buffer, begin[first[number]], end[first[number]], low, high):
                break
            h = (h + 1) & (size - 1)
        if number < 0:
            number = seen
            first[number] = t
            hashes[h], slots[h] = code, number + 1
            seen += 1
            if 2 * seen > size:
                size *= 4
                hashes, slots = _rehashed(hashes, slots, size)
        numbers[t] = number
    return numbers, first[:seen].copy()


@njit(cache=True, nogil=True)
def _same(buffer, begin, end, low, high):
    if end - begin != high - low:
        return False
    for k in range(end - begin):
        if buffer[begin + k] != buffer[low + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _rehashed(hashes, slots, size):
    new_hashes, new_slots = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for k in range(slots.size):
        if slots[k] > 0:
            h = hashes[k] & (size - 1)
            while new_slots[h] > 0:
                h = (h + 1) & (size - 1)
            new_hashes[h], new_slots[h] = hashes[k], slots[k]
    return new_hashes, new_slots
