"""Tables of weights: feature ids to rows, by a growing map or by hashing to a fixed number of rows."""

from __future__ import annotations

import numpy as np

from lols.engine.structures import Table
from lols.kernels.dual import dual
from lols.kernels.hashing import spread
from lols.kernels.kernel import Kernel

MARKS = np.array([1, 2, 4, 8, 16, 32, 64, 128], np.uint8)


def growing_table(capacity: int) -> Table:
    """An empty map for up to half of `capacity` features, a power of two."""
    bits = int(capacity).bit_length() - 1
    return Table(64 - bits, np.full((1 << bits, 2), -1, np.int64), np.zeros(1 << bits, np.uint8))


def fixed_table(bits: int) -> Table:
    """A table in which every feature has one of 2**bits rows, shared where hashes collide."""
    return Table(64 - bits, np.zeros((0, 2), np.int64), np.zeros(0, np.uint8))


def is_fixed(table: Table) -> bool:
    """Whether features are hashed to a fixed number of rows."""
    return table.entries.shape[0] == 0


def copied(table: Table) -> Table:
    """A copy that later insertions do not touch."""
    return table._replace(entries=table.entries.copy(), marks=table.marks.copy())


def features_by_row(table: Table, count: int, first: int = 0) -> np.ndarray:
    """The features of rows `first` to `count` - 1 of a growing table, in that order; none for a fixed one."""
    taken = np.flatnonzero(table.rows >= first)
    rows = table.rows[taken]
    if rows.size > count - first:
        taken, rows = taken[rows < count], rows[rows < count]
    features = np.zeros(0 if is_fixed(table) else count - first, np.int64)
    features[rows - first] = table.keys[taken]
    return features


def distinct(features: np.ndarray) -> bool:
    """Whether an array is a list of features, none of them twice; they are often in order."""
    if features.dtype != np.int64 or features.ndim != 1:
        return False
    if (features[1:] > features[:-1]).all():
        return True
    ordered = np.sort(features)  # np.unique is several times slower
    return bool((ordered[1:] != ordered[:-1]).all())


def fill(table: Table, features: np.ndarray, *, compiled: bool = True) -> None:
    """Insert features into an empty map, in the order of their rows; there must be room, and none of them twice."""
    entries = np.stack([features.astype(np.int64), np.arange(features.size)], axis=1)
    rehash_kernel(compiled, table._replace(entries=entries), table)


@dual
def find(table, identity):
    """The slot of a growing table that holds a feature, or the empty slot for it."""
    mask = table.entries.shape[0] - 1
    h = spread(identity, table.shift)
    while table.entries[h, 1] >= 0 and table.entries[h, 0] != identity:
        h = (h + 1) & mask
    return h


@dual
def lookup(table, identity):
    """The row of a feature, or -1 if it has none."""
    if table.entries.shape[0] == 0:
        return spread(identity, table.shift)
    place = spread(identity, table.shift - 3)
    if table.marks[place >> 3] & MARKS[place & 7] == 0:
        return np.int64(-1)
    return table.entries[find(table, identity), 1]


@dual
def mark(table, identity):
    """Mark a feature as possibly present."""
    place = spread(identity, table.shift - 3)
    table.marks[place >> 3] |= MARKS[place & 7]


@dual
def insert(table, identity, count, most):
    """The row of a feature, the next free one if it is new, or -1 if `count[0]`, the rows taken, has reached `most`."""
    if table.entries.shape[0] == 0:
        return spread(identity, table.shift)
    h = find(table, identity)
    if table.entries[h, 1] < 0 and count[0] < most:
        table.entries[h, 0] = identity
        table.entries[h, 1] = count[0]
        count[0] += 1
        mark(table, identity)
    return table.entries[h, 1]


def rehash(old, new):
    """Insert all features into a larger map; their rows stay the same."""
    mask = new.entries.shape[0] - 1
    for k in range(old.entries.shape[0]):
        if old.entries[k, 1] >= 0:
            h = spread(old.entries[k, 0], new.shift)
            while new.entries[h, 1] >= 0:
                h = (h + 1) & mask
            new.entries[h, 0] = old.entries[k, 0]
            new.entries[h, 1] = old.entries[k, 1]
            mark(new, old.entries[k, 0])


rehash_kernel = Kernel(rehash)
