"""Where weights live: feature ids to rows, by a growing map or hashed to a fixed number of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from lols.engine.dual import dual
from lols.engine.structures import Table
from lols.hashing import spread

__all__ = ["fixed_table", "growing_table", "insert", "lookup", "rehash"]


def growing_table(capacity: int) -> Table:
    """An empty map for up to half of `capacity` features, a power of two."""
    bits = int(capacity).bit_length() - 1
    return Table(64 - bits, np.zeros(1 << bits, np.int64), np.full(1 << bits, -1, np.int32))


def fixed_table(bits: int) -> Table:
    """A table in which every feature has one of 2**bits rows, shared where hashes collide."""
    return Table(64 - bits, np.zeros(0, np.int64), np.zeros(0, np.int32))


@dual
def lookup(table, identity):
    """The row of a feature, or -1 where it has none."""
    h = spread(identity, table.shift)
    if table.keys.size == 0:
        return h
    mask = table.keys.size - 1
    while table.rows[h] >= 0:
        if table.keys[h] == identity:
            return np.int64(table.rows[h])
        h = (h + 1) & mask
    return np.int64(-1)


@dual
def insert(table, identity, count, most):
    """The row of a feature, the next free one if it is new, or -1 when all `most` rows are taken (`count[0]` are)."""
    h = spread(identity, table.shift)
    if table.keys.size == 0:
        return h
    mask = table.keys.size - 1
    while table.rows[h] >= 0:
        if table.keys[h] == identity:
            return np.int64(table.rows[h])
        h = (h + 1) & mask
    row = count[0]
    if row >= most:
        return np.int64(-1)
    table.keys[h] = identity
    table.rows[h] = row
    count[0] = row + 1
    return np.int64(row)


@njit(cache=True)
def rehash(old, new):
    """Move all features to a larger map; rows stay."""
    mask = new.keys.size - 1
    for k in range(old.keys.size):
        if old.rows[k] >= 0:
            h = spread(old.keys[k], new.shift)
            while new.rows[h] >= 0:
                h = (h + 1) & mask
            new.keys[h] = old.keys[k]
            new.rows[h] = old.rows[k]
