"""A policy on another machine: its weights once, then only what changes in them, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.engine.structures import FrozenPolicy, Table
from lols.engine.table import (
    features_by_row,
    fill,
    fixed_table,
    growing_table,
    is_fixed,
    lookup,
    rehash_kernel,
)
from lols.kernels.dual import dual
from lols.kernels.kernel import Kernel
from lols.learners.changes import append_features_kernel


class BankSnapshot(NamedTuple):
    """A table of weights: those of the features, row after row; or the rows of a fixed table that are not zero."""

    bits: int  # of a fixed table; 0 for one that grows
    features: np.ndarray  # by row; for a fixed table the numbers of the rows
    weights: np.ndarray  # [component, row, column]

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        return self.features.nbytes + self.weights.nbytes


class PolicySnapshot(NamedTuple):
    """A linear policy as it is."""

    shared: BankSnapshot
    single: BankSnapshot
    chances: np.ndarray
    code: np.ndarray
    thresholds: int

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        return self.shared.nbytes + self.single.nbytes


class BankChanges(NamedTuple):
    """What changed in a table: new rows, and single cells of all rows."""

    features: np.ndarray  # of the new rows
    weights: np.ndarray  # [component, new row, column], but for the first component
    cells: np.ndarray  # row * columns + column, of the first component
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        return sum(array.nbytes for array in self)


class PolicyChanges(NamedTuple):
    """What changed in a policy between two batches."""

    shared: BankChanges
    single: BankChanges

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        return self.shared.nbytes + self.single.nbytes


class Touched(NamedTuple):
    """The features of some lessons, which are the only ones that learning from them changes: rows, and new features."""

    rows: np.ndarray
    new: np.ndarray


@dual
def find_touched(table, ids, seen, turn, rows, new, ends):
    """The different rows of features, and the features that have none, which may be there twice."""
    known, unknown = 0, 0
    for k in range(ids.size):
        row = lookup(table, ids[k])
        if row < 0:
            new[unknown] = ids[k]
            unknown += 1
        elif seen[row] != turn:
            seen[row] = turn
            rows[known] = row
            known += 1
    ends[0], ends[1] = known, unknown


@dual
def look_up(table, features, rows):
    """The row of each feature, or -1."""
    for k in range(features.size):
        rows[k] = lookup(table, features[k])


@dual
def find_changed(weights, rows, before, first, count, cells, ends):
    """The cells of rows that are different from what they were, and those of new rows that are not zero."""
    found, columns = 0, weights.shape[1]
    for k in range(rows.size):
        for j in range(columns):
            if weights[rows[k], j] != before[k, j]:
                cells[found] = rows[k] * columns + j
                found += 1
    for row in range(first, first + count):
        for j in range(columns):
            if weights[row, j] != 0:
                cells[found] = row * columns + j
                found += 1
    ends[0] = found


find_touched_kernel = Kernel(find_touched)
find_changed_kernel = Kernel(find_changed)
look_up_kernel = Kernel(look_up)


def different(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The different numbers of some lists, in order."""
    every = np.sort(np.concatenate(lists))  # np.unique is several times slower
    return every[np.concatenate([[True], every[1:] != every[:-1]])] if every.size else every


def banks(policy: FrozenPolicy) -> tuple[tuple[Table, np.ndarray], tuple[Table, np.ndarray]]:
    """The two tables of a policy, with their weights as [component, row, column]."""
    return (policy.shared, policy.stack), (policy.single, policy.single_stack[:, :, np.newaxis])


def rows_in(table: Table, stack: np.ndarray) -> int:
    """How many rows are in use."""
    return int(stack.shape[1] if is_fixed(table) else (table.rows >= 0).sum())


def bank_snapshot(table: Table, stack: np.ndarray) -> BankSnapshot:
    """A table of weights as it is now."""
    if is_fixed(table):
        rows = np.flatnonzero(stack.any(axis=(0, 2)))
        return BankSnapshot(64 - table.shift, rows, stack[:, rows])
    count = rows_in(table, stack)
    return BankSnapshot(0, features_by_row(table, count), stack[:, :count].copy())


def snapshot(policy: FrozenPolicy) -> PolicySnapshot:
    """A policy as it is now."""
    shared, single = (bank_snapshot(*bank) for bank in banks(policy))
    return PolicySnapshot(shared, single, policy.chances, policy.code, policy.thresholds)


class ReplicaBank:
    """A table of weights that follows another one."""

    def __init__(self, taken: BankSnapshot, compiled: bool):
        self.compiled, count = compiled, taken.features.size
        components, _, columns = taken.weights.shape
        rows = 1 << taken.bits if taken.bits else max(1, count + count // 2)
        self.stack = np.zeros((components, rows, columns), np.float32)
        self.count = np.array([rows if taken.bits else count], np.int64)
        if taken.bits:
            self.table = fixed_table(taken.bits)
            self.stack[:, taken.features] = taken.weights
        else:
            self.table = growing_table(1 << max(10, int(4 * count).bit_length()))
            fill(self.table, np.ascontiguousarray(taken.features), compiled=compiled)
            self.stack[:, :count] = taken.weights
        self.seen, self.turn = np.zeros(rows, np.int64), 0

    def apply(self, changes: BankChanges) -> None:
        """Change what has changed in the other one."""
        if changes.features.size:
            first = int(self.count[0])
            self._room(first + changes.features.size)
            append_features_kernel(self.compiled, self.table, np.array(changes.features), self.count)
            self.stack[1:, first : first + changes.features.size] = changes.weights
        self.stack[0].reshape(-1)[changes.cells] = changes.values

    def _room(self, rows: int) -> None:
        if rows > self.stack.shape[1]:
            stack = np.zeros((self.stack.shape[0], 2 * rows, self.stack.shape[2]), np.float32)
            stack[:, : self.stack.shape[1]] = self.stack
            self.stack, self.seen = stack, np.concatenate([self.seen, np.zeros(2 * rows - self.seen.size, np.int64)])
        if 2 * rows > self.table.entries.shape[0]:
            table = growing_table(1 << int(4 * rows).bit_length())
            rehash_kernel(self.compiled, self.table, table)
            self.table = table

    def touched(self, ids: np.ndarray) -> Touched:
        """The rows that learning from states with these features may change, and the features without a row."""
        self.turn += 1
        rows, new, ends = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64), np.zeros(2, np.int64)
        find_touched_kernel(self.compiled, self.table, ids, self.seen, self.turn, rows, new, ends)
        return Touched(rows[: ends[0]].astype(np.int32), different([new[: ends[1]]]))


class Replica:
    """A linear policy that follows another one."""

    def __init__(self, taken: PolicySnapshot, *, compiled: bool = True):
        self.shared, self.single = (ReplicaBank(bank, compiled) for bank in (taken.shared, taken.single))
        self._rest = np.array(taken.chances), np.array(taken.code), taken.thresholds

    def apply(self, changes: PolicyChanges) -> None:
        """Change what has changed in the other one."""
        self.shared.apply(changes.shared)
        self.single.apply(changes.single)

    def policy(self) -> FrozenPolicy:
        """The policy; it changes with the replica."""
        single = self.single.stack.reshape(self.single.stack.shape[0], -1)
        return FrozenPolicy(self.shared.table, self.shared.stack, self.single.table, single, *self._rest)


class Tracked:
    """Finds out what learning changes in a policy: weights of touched rows before it and after it."""

    def __init__(self, policy: FrozenPolicy, *, compiled: bool = True):
        self.compiled = compiled
        self.rows = [rows_in(*bank) for bank in banks(policy)]
        self._before: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def before(self, policy: FrozenPolicy, touched: tuple[list[Touched], list[Touched]]) -> None:
        """Note the weights of the rows that lessons touch, before the policy learns from them."""
        self._before = []
        for (_, stack), parts in zip(banks(policy), touched, strict=True):
            rows, new = (different(each) for each in zip(*parts))
            self._before.append((rows, stack[0][rows], new))

    def after(self, policy: FrozenPolicy) -> PolicyChanges | None:
        """What has changed since; None if it is more than learning from those lessons changes."""
        changes = []
        for k, ((table, stack), (rows, before, new)) in enumerate(zip(banks(policy), self._before, strict=True)):
            found = np.empty(new.size, np.int64)
            look_up_kernel(self.compiled, table, new, found)
            added = found >= 0
            order = np.argsort(found[added])
            first, features = self.rows[k], new[added][order]
            if not np.array_equal(found[added][order], first + np.arange(features.size)):
                return None
            self.rows[k] += features.size
            bits = stack[0].view(np.int32)  # of numbers, so that -0.0 is not 0.0
            cells, ends = np.empty((rows.size + features.size) * stack.shape[2], np.int64), np.zeros(1, np.int64)
            bounds = first, features.size
            find_changed_kernel(self.compiled, bits, rows, before.view(np.int32), *bounds, cells, ends)
            cells = cells[: ends[0]].astype(np.int32 if stack[0].size < 1 << 31 else np.int64)
            rest = stack[1:, first : first + features.size].copy()
            changes.append(BankChanges(features, rest, cells, stack[0].reshape(-1)[cells]))
        self._before = []
        return PolicyChanges(*changes)
