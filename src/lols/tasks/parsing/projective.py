"""Pseudo-projective trees: crossing arcs lifted before parsing, and lowered again afterwards.

After Nivre and Nilsson, "Pseudo-Projective Dependency Parsing" (ACL 2005), with the encoding they call Head: a lifted
word remembers the relation of the head it had to leave. Heads and `offsets` are as in `lols.tasks.parsing.trees`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError
from lols.kernels.dual import dual
from lols.kernels.kernel import kernel
from lols.tasks.parsing.trees import check_heads, check_trees

UNKNOWN, INSIDE, OUTSIDE = range(3)  # whether a word descends from another


class Lifted(NamedTuple):
    """Projective trees, and what it takes to restore the others."""

    heads: np.ndarray
    """int64 [tokens]: the heads after lifting."""
    origin: np.ndarray
    """int64 [tokens]: the relation of the head that a lifted word had at first, -1 for words never lifted."""


def crossing(heads: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which words have a non-projective arc: one that spans a word that does not descend from the head.

    Roots hang on a place before all words, from which all descend: their arcs are projective, and an arc that spans a
    root is not.

    >>> crossing(np.array([-1, 3, 0, 0]), np.array([0, 4])).tolist()
    [False, True, False, False]
    """
    _require_trees(heads, offsets)
    marks = np.zeros(len(heads), np.bool_)
    _mark(np.ascontiguousarray(heads, np.int64), offsets, _room(offsets), marks)
    return marks


def lift(heads: np.ndarray, labels: np.ndarray, offsets: np.ndarray) -> Lifted:
    """Lift arcs until all are projective: always the shortest that is not, from its head to the head of that.

    Among arcs of one length, that of the leftmost dependent comes first. A word can become a root only where there are
    several (see `lols.tasks.parsing.trees.single_root`).

    >>> lifted = lift(np.array([-1, 3, 0, 0]), np.array([0, 1, 2, 3]), np.array([0, 4]))
    >>> lifted.heads.tolist(), lifted.origin.tolist()
    ([-1, 0, 0, 0], [-1, 3, -1, -1])
    """
    _require_trees(heads, offsets, labels=labels)
    before = np.asarray(heads, np.int64)
    made, marks = np.array(before), np.zeros(len(heads), np.bool_)
    _lift(made, offsets, _room(offsets), marks)
    origin = np.full(len(heads), -1)
    moved = np.flatnonzero(made != before)
    starts = offsets[np.searchsorted(offsets, moved, side="right") - 1]
    origin[moved] = np.asarray(labels)[starts + before[moved]]
    return Lifted(made, origin)


def lower(heads: np.ndarray, labels: np.ndarray, origin: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Undo `lift`: give words with an origin the first head of that relation below the head they have.

    The search is breadth-first and from left to right. It does not enter the word's own subtree, so that trees stay
    trees, whatever a model says; where nothing is found, the word stays. Words are lowered one by one, from left to
    right, and each search sees what was lowered before it.

    Parameters
    ----------
    heads, labels
        trees without cycles, and the relations of the words to their heads
    origin
        the relation of the head sought, -1 for words that stay

    >>> lower(np.array([-1, 0, 0, 0]), np.array([0, 1, 2, 3]), np.array([-1, 3, -1, -1]), np.array([0, 4])).tolist()
    [-1, 3, 0, 0]
    """
    _require_trees(heads, offsets, labels=labels, origins=origin)
    made = np.array(heads, np.int64)
    relations, origins = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(origin, np.int64)
    _lower(made, relations, origins, offsets, _room(offsets))
    return made


def _require_trees(heads: np.ndarray, offsets: np.ndarray, **columns: np.ndarray) -> None:
    """Compiled code would climb a cycle for ever."""
    check_heads(heads, offsets, **columns)
    bad = np.flatnonzero(check_trees(heads, offsets).cycles >= 0)
    if len(bad):
        raise ConfigurationError(f"sentence {bad[0]} has a cycle: give trees, see lols.tasks.parsing.trees.check_trees")


def _room(offsets: np.ndarray) -> np.ndarray:
    """Room to work in, enough for the longest sentence."""
    return np.empty((3, int(np.diff(offsets).max(initial=0)) + 2), np.int64)


@dual
def _judge(heads, start, length, head, room, marks):
    """Mark those arcs from one head of a sentence that are non-projective."""
    descent, outside = room[0], room[1]
    first, last = length, -1
    for d in range(length):
        descent[d] = UNKNOWN
        if heads[start + d] == head:
            if last < 0:
                first = d
            last = d
    if head < 0 or last < 0:
        return
    descent[head] = INSIDE
    left, right = first if first < head else head, last if last > head else head
    outside[left] = 0
    # How many words before each one do not descend from the head: that a span has none is seen from its two ends.
    for w in range(left, right):
        at = np.int64(w)
        while at >= 0 and descent[at] == UNKNOWN:
            at = heads[start + at]
        answer = descent[at] if at >= 0 else OUTSIDE
        at = np.int64(w)
        while at >= 0 and descent[at] == UNKNOWN:
            descent[at] = answer
            at = heads[start + at]
        outside[w + 1] = outside[w] + (answer == OUTSIDE)
    for d in range(first, last + 1):
        if heads[start + d] == head:
            marks[start + d] = outside[d] != outside[head]  # they grow from left to right


@kernel
def _mark(heads, offsets, room, marks):
    for k in range(offsets.size - 1):
        length = offsets[k + 1] - offsets[k]
        parents = room[2]
        for d in range(length):
            parents[d] = 0
        for d in range(length):
            if heads[offsets[k] + d] >= 0:
                parents[heads[offsets[k] + d]] = 1
        for head in range(length):
            if parents[head]:
                _judge(heads, offsets[k], length, head, room, marks)


@kernel
def _lift(heads, offsets, room, marks):
    _mark(heads, offsets, room, marks)
    for k in range(offsets.size - 1):
        start, length = offsets[k], offsets[k + 1] - offsets[k]
        while True:
            shortest = -1
            for d in range(length):
                if marks[start + d]:
                    size = abs(heads[start + d] - d)
                    if shortest < 0 or size < abs(heads[start + shortest] - shortest):
                        shortest = d
            if shortest < 0:
                break
            old = heads[start + shortest]
            new = heads[start + old]
            heads[start + shortest] = new
            marks[start + shortest] = False
            # No other head has lost or gained descendants, or dependents.
            _judge(heads, start, length, old, room, marks)
            _judge(heads, start, length, new, room, marks)


@kernel
def _lower(heads, labels, origin, offsets, room):
    first, sibling, queue = room[0], room[1], room[2]
    for k in range(offsets.size - 1):
        start, length = offsets[k], offsets[k + 1] - offsets[k]
        listed = False
        for w in range(length):
            if origin[start + w] < 0:
                continue
            if not listed:
                _list_dependents(heads, start, length, first, sibling)
            found = _search(labels, start, heads[start + w], w, origin[start + w], first, sibling, queue)
            listed = found < 0
            if found >= 0:
                heads[start + w] = found


@dual
def _list_dependents(heads, start, length, first, sibling):
    """The leftmost dependent of each head, at the place after its own, and the next dependent of the same head."""
    for d in range(length + 1):
        first[d] = -1
    for d in range(length - 1, -1, -1):
        sibling[d] = first[heads[start + d] + 1]
        first[heads[start + d] + 1] = d


@dual
def _search(labels, start, top, without, label, first, sibling, queue):
    """The first word of a label below `top`, but not in the subtree of the word `without`; -1 if there is none."""
    filled, taken, at = 0, 0, top
    while True:
        d = first[at + 1]
        while d >= 0:
            if d != without:
                if labels[start + d] == label:
                    return d
                queue[filled] = d
                filled += 1
            d = sibling[d]
        if taken == filled:
            return -1
        at = queue[taken]
        taken += 1
