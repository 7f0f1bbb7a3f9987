"""Word vectors that were learned elsewhere, from a file of text or of NumPy."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lols.errors import LolsError, short, shown
from lols.io.arrays import ArrayFile
from lols.io.opening import read_text

MOST = 100_000  # of a file that are kept beside those of the data: files have the most frequent words first
LARGEST = 4096  # numbers of a vector


class WordVectors(NamedTuple):
    """Words and their vectors, scaled so that numbers have a standard deviation of 1."""

    words: list[str]
    values: np.ndarray  # float32 [word, number]


def read_vectors(path: str, wanted: Collection[str]) -> WordVectors:
    """The vectors of the first words of a file, and of all words that are wanted.

    In a text file, each line has a word and its numbers, with spaces between them; a first line with the number of
    words and the length of vectors, as word2vec and fastText write it, is passed over. `NAME.npy` has a row for each
    word of `NAME.txt`, which has a word on each line.

    >>> import tempfile; name = tempfile.mkdtemp() + "/vectors"
    >>> _ = open(name, "w").write("dog 1 -1\\ncat -1 1\\n")
    >>> read_vectors(name, ["dog"])
    WordVectors(words=['dog', 'cat'], values=array([[ 1., -1.],
           [-1.,  1.]], dtype=float32))
    """
    rows = _of_array(path, wanted) if str(path).endswith(".npy") else _of_text(path, wanted)
    vectors = dict(rows)
    if not vectors:
        raise LolsError(f"{path}: there are no vectors in it: write a word and its numbers on each line")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, and are refused below
        values = np.stack(list(vectors.values())).astype(np.float32)
    if not np.isfinite(values).all():
        wrong = list(vectors)[int(np.argmin(np.isfinite(values).all(1)))]
        raise LolsError(f"{path}: the vector of '{short(wrong)}' has NaN or infinity: leave the word out")
    return WordVectors(list(vectors), values / max(float(values.std()), 1e-12))


def _known(wanted: Collection[str]) -> set[str]:
    return {*wanted, *(word.lower() for word in wanted)}


def _of_text(path: str, wanted: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
    known, size = _known(wanted), 0
    for number, line in enumerate(read_text(path).split("\n"), 1):
        cells = line.rstrip().split(" ")
        if cells == [""] or (number == 1 and len(cells) == 2 and all(map(str.isdigit, cells))):
            continue
        size = size or len(cells) - 1
        if not 1 <= size <= LARGEST:
            raise LolsError(f"{path}, line {number}: {size} numbers; write a word and 1 to {LARGEST:,} numbers")
        word = " ".join(cells[:-size])  # which may have spaces in it
        if len(cells) <= size or any(map(_is_number, cells[1:-size])):
            raise LolsError(
                f"{path}, line {number}: {len(cells) - 1} numbers, and {size} in the lines before: all vectors must "
                "have the same length"
            )
        if number <= MOST or word in known:
            try:
                yield word, np.array(cells[-size:], np.float64)
            except ValueError:
                raise LolsError(f"{path}, line {number}: not all cells after the word are numbers") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _of_array(path: str, wanted: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
    names = str(Path(path).with_suffix(".txt"))
    with contextlib.ExitStack() as stack:
        try:
            table = ArrayFile.of(stack.enter_context(open(path, "rb")))
        except Exception as error:  # whatever a damaged header leads to
            raise _unreadable(path, error) from None
        words = [line.rstrip("\r") for line in read_text(names).removesuffix("\n").split("\n")]
        shape = table.shape
        if len(shape) != 2 or table.dtype.kind not in "fiu" or not 1 <= shape[1] <= LARGEST:
            raise LolsError(f"{path}: has {table.dtype} of shape {shape}; give a row of numbers for each word")
        if len(words) != shape[0]:
            raise LolsError(f"{path}: has {shape[0]:,} rows, and {names} {len(words):,} words: give as many of each")
        known = _known(wanted)
        chosen = [k for k, word in enumerate(words) if k < MOST or word in known]
        try:
            values = table.rows(np.array(chosen, np.int64))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
    for k, row in zip(chosen, values, strict=True):
        yield words[k], np.asarray(row, np.float64)


def _unreadable(path: str, error: Exception) -> LolsError:
    return LolsError(f"{path}: cannot be read ({shown(str(error))}); give a .npy file of numbers")
