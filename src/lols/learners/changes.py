"""What a learner has changed since it was equal to another: found, taken back, and made elsewhere, cell by cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.engine.structures import Lessons
from lols.engine.table import features_by_row, fill, find, growing_table, insert, lookup
from lols.kernels.dual import dual
from lols.kernels.kernel import Kernel
from lols.learners.learner import Learner
from lols.learners.structures import Bank

BANKS = ("shared", "single")
BLOCK = 1024  # rows that are compared at once, so that copies of them stay in the cache
PARTS = ("weights", "squares", "sums")  # by cell; those that the update does without are empty


class LearnedChanges(NamedTuple):
    """Cells of a table that have changed; the rows of new features follow those that were there."""

    features: np.ndarray  # the new ones
    cells: np.ndarray  # row * columns + column, in order
    values: dict[str, np.ndarray]  # [cell] of each part
    scaled: np.ndarray  # rows with other scales
    scales: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        arrays = (self.features, self.cells, *self.values.values(), self.scaled, self.scales)
        return sum(array.nbytes for array in arrays)


class LearnerChanges(NamedTuple):
    """What a learner has changed, and its counters after that."""

    counters: np.ndarray
    banks: tuple[LearnedChanges, LearnedChanges]

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        return sum(bank.nbytes for bank in self.banks)


def find_touched(lessons, single, table, seen, rows, ends):
    """The rows that learning from lessons may change, as far as they have not been seen."""
    slots, found = lessons.slots, 0
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            if slots.weight[slot] <= 0.0:
                continue
            if not single:
                found = note_rows(table, slots.ids, slots.start[slot], slots.stop[slot], seen, rows, found)
                continue
            for a in range(slots.action_start.shape[1]):
                start, stop = slots.action_start[slot, a], slots.action_stop[slot, a]
                found = note_rows(table, slots.action_ids, start, stop, seen, rows, found)
    ends[0] = found


@dual
def note_rows(table, ids, start, stop, seen, rows, found):
    """Note the rows of features that were there at first, each once; how many there are now."""
    for k in range(start, stop):
        row = lookup(table, ids[k])
        if 0 <= row < seen.size and not seen[row]:
            seen[row] = True
            rows[found] = row
            found += 1
    return found


def find_new(lessons, single, table, known, features):
    """The features that have got rows from `known` on by learning from lessons."""
    slots = lessons.slots
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            if slots.weight[slot] <= 0.0:
                continue
            if not single:
                note_new(table, slots.ids, slots.start[slot], slots.stop[slot], known, features)
                continue
            for a in range(slots.action_start.shape[1]):
                start, stop = slots.action_start[slot, a], slots.action_stop[slot, a]
                note_new(table, slots.action_ids, start, stop, known, features)


@dual
def note_new(table, ids, start, stop, known, features):
    """Note features by row."""
    for k in range(start, stop):
        row = lookup(table, ids[k])
        if row >= known:
            features[row - known] = ids[k]


def remove_features(table, features, slots):
    """Empty the slots of the features that came last; each has only filled an empty one."""
    for k in range(features.size):
        slots[k] = find(table, features[k])
    for k in range(features.size):
        table.entries[slots[k], 1] = -1


def append_features(table, features, count):
    """Give new features the next rows."""
    for k in range(features.size):
        insert(table, features[k], count, np.int64(1) << 62)


find_touched_kernel = Kernel(find_touched)
find_new_kernel = Kernel(find_new)
remove_features_kernel = Kernel(remove_features)
append_features_kernel = Kernel(append_features)


class Detour:
    """What a learner changes from now on, so that it can be sent, and taken back."""

    def __init__(self, learner: Learner):
        self.learner, self.counters = learner, learner.counters.copy()
        self.banks = [BankDetour(getattr(learner, name), name == "single", learner.compiled) for name in BANKS]

    def before(self, lessons: Lessons) -> None:
        """Must be called before the learner learns from lessons."""
        for bank, name in zip(self.banks, BANKS, strict=True):
            bank.before(lessons, getattr(self.learner, name))

    def after(self, lessons: Lessons) -> None:
        """Must be called after it."""
        for bank, name in zip(self.banks, BANKS, strict=True):
            bank.after(lessons, getattr(self.learner, name))

    def changes(self) -> LearnerChanges:
        """What has changed so far."""
        found = [bank.changes(getattr(self.learner, name)) for bank, name in zip(self.banks, BANKS, strict=True)]
        return LearnerChanges(self.learner.counters.copy(), (found[0], found[1]))

    def take_back(self) -> None:
        """Make the learner what it was."""
        for bank, name in zip(self.banks, BANKS, strict=True):
            setattr(self.learner, name, bank.taken_back(getattr(self.learner, name)))
        self.learner.counters[:] = self.counters


class BankDetour:
    """The same for one table."""

    def __init__(self, bank: Bank, single: bool, compiled: bool):
        self.single, self.compiled, self.entries = single, compiled, bank.table.entries
        self.known = int(bank.filled[0])
        self.seen = np.zeros(self.known, np.bool_)
        self.saved: list[tuple[np.ndarray, list[np.ndarray]]] = []  # rows, and what they were
        self.new: list[np.ndarray] = []  # features, in the order of their rows

    def before(self, lessons: Lessons, bank: Bank) -> None:
        """Keep the rows that learning from lessons may change."""
        if self.known and not (self.single and not lessons.slots.action_start.size):
            rows, ends = np.empty(self.known, np.int64), np.zeros(1, np.int64)
            find_touched_kernel(self.compiled, lessons, self.single, bank.table, self.seen, rows, ends)
            rows = rows[: ends[0]].copy()
            self.saved.append((rows, [array[rows] if array.size else array for array in bank.first_order()]))

    def after(self, lessons: Lessons, bank: Bank) -> None:
        """Note the features that learning from lessons has added."""
        first = self.known + sum(features.size for features in self.new)
        if int(bank.filled[0]) > first:
            features = np.zeros(int(bank.filled[0]) - first, np.int64)
            find_new_kernel(self.compiled, lessons, self.single, bank.table, first, features)
            self.new.append(features)

    def changes(self, bank: Bank) -> LearnedChanges:
        """Cells that are different now, and all of new rows that are not zero."""
        filled, columns = int(bank.filled[0]), bank.weights.shape[1]
        parts = [getattr(bank, part).view(np.int32) for part in PARTS]  # as bits
        fresh = np.zeros((filled - self.known, columns), np.bool_)
        for now in (each for each in parts if each.size):
            fresh |= now[self.known : filled] != 0
        cells = [self.known * columns + np.flatnonzero(fresh)]
        scaled = [self.known + np.flatnonzero(bank.scales[self.known : filled])]
        for rows, (*before, scales) in self.saved:
            for first in range(0, rows.size, BLOCK):
                some = slice(first, first + BLOCK)
                changed = np.zeros((rows[some].size, columns), np.bool_)
                for now, old in zip(parts, before, strict=True):
                    if now.size:
                        changed |= now[rows[some]] != old[some].view(np.int32)
                row, column = np.divmod(np.flatnonzero(changed), columns)
                cells.append(rows[some][row] * columns + column)
            scaled.append(rows[scales != bank.scales[rows]] if scales.size else rows[:0])
        chosen = np.sort(np.concatenate(cells))
        values = {p: getattr(bank, p).reshape(-1)[chosen] for p in PARTS if getattr(bank, p).size}
        rows = np.sort(np.concatenate(scaled))
        features = np.concatenate([np.zeros(0, np.int64), *self.new])
        if features.size < filled - self.known:  # they did not come by lessons
            features = features_by_row(bank.table, filled, self.known)
        return LearnedChanges(features, chosen, values, rows, bank.scales[rows])

    def taken_back(self, bank: Bank) -> Bank:
        """The table as it was; what has grown stays large."""
        for rows, old in self.saved:
            for array, before in zip(bank.first_order(), old, strict=True):
                if array.size:
                    array[rows] = before
        filled = int(bank.filled[0])
        if filled == self.known:
            return bank
        for array in bank.arrays():
            array[self.known : filled] = 0
        bank.filled[0] = self.known
        if bank.table.entries is self.entries:
            features = np.concatenate(self.new)
            slots = np.zeros(features.size, np.int64)
            remove_features_kernel(self.compiled, bank.table, features, slots)
            return bank
        table = growing_table(bank.table.entries.shape[0])
        fill(table, features_by_row(bank.table, self.known), compiled=self.compiled)
        return bank._replace(table=table)


def apply_changes(learner: Learner, changes: LearnerChanges) -> None:
    """Change in a learner what has changed in one that was equal to it."""
    for name, found in zip(BANKS, changes.banks, strict=True):
        bank = getattr(learner, name)
        if found.features.size:
            bank = learner.with_room(bank, found.features.size)
            append_features_kernel(learner.compiled, bank.table, np.array(found.features), bank.filled)
            setattr(learner, name, bank)
        for part, values in found.values.items():
            getattr(bank, part).reshape(-1)[found.cells] = values
        bank.scales[found.scaled] = found.scales
    learner.counters[:] = changes.counters
