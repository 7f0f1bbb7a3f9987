"""Columns of texts: every word is a feature, whose number is a hash of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from lols.contract.texts import text as hashed
from lols.kernels.hashing import mix
from lols.tasks.tables.cells import Cells, as_texts
from lols.tasks.tables.meanings import MISSING

WORD = re.compile(r"\w+")
MOST_TEXTS = 1 << 8  # columns of texts: the last bits of a word's number say which it is in


def words_of(cells: Cells, column: int, missing: Sequence[str] = MISSING) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The features of the words in each cell: where those of a row begin, their numbers, and their values.

    A word counts once in a cell, in lower case; the squares of the values in a cell add up to 1, so that long texts
    count as much as short ones. `column` is the number of the column among those of texts.

    >>> start, ids, values = words_of(Cells(codes=np.array([1, -1, 0, 1]), texts=["Good one!", "so so"]), 0)
    >>> start.tolist(), (values**2).round(3).tolist()
    ([0, 1, 1, 3, 4], [1.0, 0.5, 0.5, 1.0])
    """
    cells = as_texts(cells)
    assert cells.codes is not None
    codes = cells.codes
    known: dict[str, int] = {}
    lists: list[list[int]] = []
    for given, count in zip(cells.texts, cells.counts().tolist(), strict=True):
        found = [] if not count or given in missing else sorted({*WORD.findall(given.lower())})
        for word in found:
            if word not in known:
                known[word] = word_id(word, column)
        lists.append([known[word] for word in found])
    lengths = np.array([*map(len, lists), 0], np.int64)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.array([number for each in lists for number in each], np.int64)
    of_row = lengths[codes]  # code -1, a missing text, is the last one
    start = np.concatenate([[0], np.cumsum(of_row)]).astype(np.int64)
    at = np.repeat(begin[codes] - start[:-1], of_row) + np.arange(start[-1])
    values = (1.0 / np.sqrt(np.maximum(of_row, 1))).astype(np.float32)
    return start, flat[at], np.repeat(values, of_row)


def word_id(word: str, column: int) -> int:
    """The feature of a word in a column of texts.

    >>> text_column_of(word_id("good", 3))
    3
    """
    return (mix(hashed(word), 0x30BD5) & ~(MOST_TEXTS - 1)) | column


def text_column_of(identity: int) -> int:
    """The number of the column of texts that a word is in."""
    return identity & (MOST_TEXTS - 1)
