"""Columns of strings: slices of one buffer of bytes, and the numbering of distinct strings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from lols.kernels.dual import dual
from lols.kernels.kernel import kernel
from lols.kernels.layout import readonly


class Texts(NamedTuple):
    """Strings as slices of one buffer of UTF-8 bytes."""

    buffer: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    @classmethod
    def from_ends(cls, buffer: np.ndarray, end: np.ndarray) -> Texts:
        """Strings that lie one after the other, a byte apart, as `texts_of` puts them; ValueError if they do not.

        >>> made = texts_of(["to", "bé"])
        >>> Texts.from_ends(made.buffer, made.end).strings()
        ['to', 'bé']
        """
        if buffer.dtype != np.uint8 or end.dtype != np.int64 or not buffer.ndim == end.ndim == 1:
            raise ValueError("texts are not of bytes and their ends")
        begin = np.concatenate([[0], end[:-1] + 1]) if end.size else end
        if ((end < begin) | (end > buffer.size)).any() or (end.size and end[-1] != buffer.size):
            raise ValueError("texts do not lie one after the other")
        return cls(buffer, begin, end)

    def strings(self) -> list[str]:
        """The strings themselves."""
        return [text.decode() for text in self.pieces()]

    def pieces(self) -> list[bytes]:
        """The strings as bytes."""
        whole = self.buffer.tobytes()
        return [whole[b:e] for b, e in zip(self.begin.tolist(), self.end.tolist(), strict=True)]


class Column(NamedTuple):
    """A column of strings, as numbers of its distinct strings."""

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
    return Interner().number(texts)


class Pile:
    """An array that grows at its end."""

    def __init__(self, dtype: Any, width: tuple[int, ...] = ()):
        self.size = 0
        self._array = np.empty((0, *width), dtype)

    @property
    def filled(self) -> np.ndarray:
        """The elements."""
        return self._array[: self.size]

    def room(self, count: int) -> np.ndarray:
        """The elements and room for `count` more behind them; what is written there is not kept."""
        need = self.size + count
        if need > self._array.shape[0]:
            grown = np.empty((max(need, 2 * self._array.shape[0]), *self._array.shape[1:]), self._array.dtype)
            grown[: self.size] = self.filled
            self._array = grown
        return self._array[:need]

    def add(self, rows: np.ndarray) -> None:
        """Append elements."""
        self.room(rows.shape[0])[self.size :] = rows
        self.size += rows.shape[0]


class Interner:
    """Numbers the strings of one piece of data after the other; a string keeps its number.

    >>> names = Interner()
    >>> [names.number(texts_of(strings)).numbers.tolist() for strings in (["a", "b"], ["c", "a"])]
    [[0, 1], [2, 0]]
    """

    def __init__(self) -> None:
        self._table = np.zeros((1 << 12, 2), np.int64)
        self._bytes, self._ends = Pile(np.uint8), Pile(np.int64)
        self._ends.add(np.zeros(1, np.int64))

    def number(self, texts: Texts) -> Column:
        """Number more strings; the texts of the column are all distinct strings so far."""
        numbers = np.empty(texts.begin.size, np.int64)
        kept = self._bytes.room(int((texts.end - texts.begin).sum()))
        ends = self._ends.room(numbers.size)
        begin, end = np.ascontiguousarray(texts.begin), np.ascontiguousarray(texts.end)
        progress = np.array([0, self._ends.size], np.int64)
        while not _intern(readonly(texts.buffer), begin, end, self._table, kept, ends, progress, numbers):
            self.grow()
        self._ends.size = int(progress[1])
        ends = self._ends.filled
        self._bytes.size = int(ends[-1])
        return Column(numbers, Texts(self._bytes.filled, ends[:-1], ends[1:]))

    def grow(self) -> None:
        """Make room for more strings."""
        wider = np.zeros((4 * self._table.shape[0], 2), np.int64)
        _rehash(self._table, wider)
        self._table = wider


@kernel
def _intern(buffer, begin, end, table, kept, ends, progress, numbers):
    """Open addressing over the strings seen so far: slots hold a string's hash and its number plus one.

    `progress` holds the number of strings done, and the number of distinct ones plus one. The result is False if the
    table gets too full: call again with a larger one.
    """
    mask = table.shape[0] - 1
    seen = progress[1]
    for t in range(progress[0], begin.size):
        if 2 * seen > mask:
            progress[0], progress[1] = t, seen
            return False
        low, high = begin[t], end[t]
        code = high - low
        for k in range(low, high):
            code = (code ^ np.int64(buffer[k])) * 1099511628211
        code = code ^ (code >> 29)
        h = code & mask
        while True:
            number = table[h, 1] - 1
            if number < 0:
                break
            if table[h, 0] == code and _same(kept, ends[number], ends[number + 1], buffer, low, high):
                break
            h = (h + 1) & mask
        if number < 0:
            number = seen - 1
            start = ends[number]
            for k in range(high - low):
                kept[start + k] = buffer[low + k]
            ends[seen] = start + high - low
            table[h, 0], table[h, 1] = code, seen
            seen += 1
        numbers[t] = number
    progress[1] = seen
    return True


@dual
def _same(kept, begin, end, buffer, low, high):
    if end - begin != high - low:
        return False
    for k in range(end - begin):
        if kept[begin + k] != buffer[low + k]:
            return False
    return True


@kernel
def _rehash(table, new):
    """Move all entries to a larger table."""
    for k in range(table.shape[0]):
        if table[k, 1] > 0:
            h = table[k, 0] & (new.shape[0] - 1)
            while new[h, 1] > 0:
                h = (h + 1) & (new.shape[0] - 1)
            new[h, 0], new[h, 1] = table[k, 0], table[k, 1]
