"""Dependency trees in columns: heads read from a file, checked for cycles, given a single root.

The head of a word is the number of another word of its sentence, from 0, or -1 for a root. The words of all sentences
are in one array; `offsets` says where sentences begin, and where the last one ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError
from lols.io.conll_tokens import Sentences
from lols.kernels.kernel import kernel

FINE, NUMBER, RANGE, ITSELF = range(4)  # what can be wrong with a head in a file
HYPHEN, ZERO = 45, 48


class TreeCheck(NamedTuple):
    """What `check_trees` finds in each sentence: a tree has one root and no cycle."""

    roots: np.ndarray
    """int64 [sentences]: how many words are roots."""
    cycles: np.ndarray
    """int64 [sentences]: the first word that is on a cycle, by its number within the sentence; -1 if none is."""


# --- heads in files ---------------------------------------------------------------------------------------------------


def read_heads(sentences: Sentences, column: int) -> np.ndarray:
    """The heads in a column, which a file writes as numbers from 1, and 0 for a root.

    That a head is a word of the sentence, and another one, is checked here; `require_trees` looks for cycles.

    Parameters
    ----------
    sentences
        a file, or a piece of one; errors count the sentences of the piece
    column
        which of the columns asked for when it was read, from 0

    Returns
    -------
    np.ndarray
        int64 [tokens]

    >>> from lols.io import conll
    >>> read_heads(conll.parse(b"The 2\\ncat 0\\n\\nGo 0\\n", ["form", "2"]), 1).tolist()
    [1, -1, -1]
    """
    begin, end = sentences.begin[column], sentences.end[column]
    heads = np.empty(begin.size, np.int64)
    place = np.zeros(2, np.int64)
    code = _read(sentences.buffer, begin, end, sentences.offsets, heads, place)
    if code == FINE:
        return heads
    number, token = place.tolist()
    where = f"{sentences.path}, line {sentences.lines[token]}:"
    text = sentences.buffer[begin[token] : min(end[token], begin[token] + 40)].tobytes().decode(errors="replace")
    length = int(sentences.offsets[number + 1] - sentences.offsets[number])
    if code == NUMBER:
        what = f"the head {text!r} is not a number" if text else "there is no head"
        raise LolsError(f"{where} {what}; give the number of a word of the sentence, or 0 for the root")
    if code == RANGE:
        which = f"sentence {number + 1} (of length {length})"
        raise LolsError(
            f"{where} the head {text!r} is not a word of {which}; give a number from 0 (the root) to {length}"
        )
    which = f"word {token - sentences.offsets[number] + 1} of sentence {number + 1}"
    raise LolsError(f"{where} {which} is its own head; give another word, or 0 for the root")


@kernel
def _read(buffer, begin, end, offsets, heads, place):
    """Fill `heads`; gives the code of the first mistake, and as its place sentence and token."""
    for k in range(offsets.size - 1):
        length = offsets[k + 1] - offsets[k]
        for t in range(offsets[k], offsets[k + 1]):
            place[0], place[1] = k, t
            at = begin[t]
            negative = at < end[t] and buffer[at] == HYPHEN
            if negative:
                at += 1
            if at == end[t]:
                return NUMBER
            head = np.int64(0)
            while at < end[t]:
                digit = np.int64(buffer[at]) - ZERO
                if digit < 0 or digit > 9:
                    return NUMBER
                head = 10 * head + digit
                if head > length:  # or else a very long number might come round again
                    head = length + 1
                at += 1
            if negative or head > length:
                return RANGE
            if head - 1 == t - offsets[k]:
                return ITSELF
            heads[t] = head - 1
    return FINE


def require_trees(heads: np.ndarray, sentences: Sentences) -> None:
    """Raise an error if there is a cycle in a sentence of a file. More than one root is for `single_root` to mend.

    >>> from lols.io import conll
    >>> two = conll.parse(b"Go 0\\n\\nThe 2\\ncat 1\\n", ["2"], path="cats.txt")
    >>> require_trees(read_heads(two, 0), two)
    Traceback (most recent call last):
    lols.errors.LolsError: cats.txt, line 3: word 1 of sentence 2 is on a cycle; give a word of it a head outside ...
    """
    cycles = check_trees(heads, sentences.offsets).cycles
    if not (cycles >= 0).any():
        return
    number = int(np.flatnonzero(cycles >= 0)[0])
    word = int(cycles[number])
    where = f"{sentences.path}, line {sentences.lines[sentences.offsets[number] + word]}:"
    what = f"word {word + 1} of sentence {number + 1} is on a cycle"
    raise LolsError(f"{where} {what}; give a word of it a head outside of it, or 0 for the root")


# --- heads in arrays --------------------------------------------------------------------------------------------------


def check_heads(heads: np.ndarray, offsets: np.ndarray, **columns: np.ndarray) -> None:
    """Raise an error if heads are not words of their sentences, or other columns not as long: kernels do not look.

    >>> check_heads(np.array([1, -1]), np.array([0, 2]), labels=np.array([0, 0]))
    >>> check_heads(np.array([1, -1]), np.array([0, 1, 2]))
    Traceback (most recent call last):
    lols.errors.ConfigurationError: word 0 of sentence 0 has head 1: give one from 0 to 0, or -1 for a root
    """
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(heads) or (np.diff(offsets) < 0).any():
        raise ConfigurationError(f"offsets must rise from 0 to the number of words, which is {len(heads)}")
    for name, column in columns.items():
        if len(column) != len(heads):
            raise ConfigurationError(f"{len(heads)} heads but {len(column)} {name}: give both for every word")
    bad = np.flatnonzero((heads < -1) | (heads >= np.repeat(np.diff(offsets), np.diff(offsets))))
    if len(bad):
        number = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        word, last = bad[0] - offsets[number], offsets[number + 1] - offsets[number] - 1
        what = f"word {word} of sentence {number} has head {heads[bad[0]]}"
        raise ConfigurationError(f"{what}: give one from 0 to {last}, or -1 for a root")


def check_trees(heads: np.ndarray, offsets: np.ndarray) -> TreeCheck:
    """Count the roots of every sentence, and look for cycles. A word may be its own head here: that is a cycle.

    >>> check_trees(np.array([1, -1, -1, 2, 1]), np.array([0, 2, 5]))
    TreeCheck(roots=array([1, 1]), cycles=array([-1,  1]))
    """
    check_heads(heads, offsets)
    roots, cycles = np.zeros(len(offsets) - 1, np.int64), np.full(len(offsets) - 1, -1)
    _check(np.ascontiguousarray(heads, np.int64), offsets, np.full(len(heads), -1), roots, cycles)
    return TreeCheck(roots, cycles)


@kernel
def _check(heads, offsets, seen, roots, cycles):
    """Climb from every word to the first one seen before: on a cycle, if seen in the same climb."""
    for k in range(offsets.size - 1):
        start = offsets[k]
        for t in range(start, offsets[k + 1]):
            if heads[t] < 0:
                roots[k] += 1
            at = t
            while seen[at] < 0:
                seen[at] = t
                if heads[at] < 0:
                    break
                at = start + heads[at]
            else:
                if seen[at] == t:
                    first = at
                    around = start + heads[at]
                    while around != at:
                        if around < first:
                            first = around
                        around = start + heads[around]
                    if cycles[k] < 0 or first - start < cycles[k]:
                        cycles[k] = first - start


def single_root(heads: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attach all roots of a sentence but its first to that one; labels are the caller's to change.

    Returns
    -------
    tuple[np.ndarray, np.ndarray]
        the heads, as a new array, and the numbers of the sentences that are not as they were

    >>> new, changed = single_root(np.array([-1, -1, 3, -1, -1]), np.array([0, 1, 5]))
    >>> new.tolist(), changed.tolist()
    ([-1, -1, 3, 0, 0], [1])
    """
    check_heads(heads, offsets)
    made = np.array(heads, np.int64)
    tokens = np.flatnonzero(made < 0)
    numbers = np.searchsorted(offsets, tokens, side="right") - 1
    first = np.ones(len(tokens), np.bool_)
    first[1:] = numbers[1:] != numbers[:-1]
    # Each root's place in the list of first roots is the number of them up to it.
    kept = (tokens - offsets[numbers])[first]
    made[tokens[~first]] = kept[np.cumsum(first) - 1][~first]
    return made, np.unique(numbers[~first])
