"""Iterative parameter mixing (McDonald, Hall and Mann, 2010): learners go on from one state, each on its own data.

What each of them changed becomes one state again: weights are averages, adaptive state counts all data once. Only rows
that changed are sent and computed with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lols.learners.structures import ROUNDS

__all__ = ["LearnerChanges", "changes_since", "mixed"]

State = Mapping[str, np.ndarray]
PARTS = ("weights", "squares", "sums", "scales")
BLOCK = 1 << 15  # rows that are computed at a time


class RowChanges(NamedTuple):
    """Rows of a table that have changed, and new ones after them."""

    rows: np.ndarray  # that were there before
    features: np.ndarray  # of the new ones
    arrays: dict[str, np.ndarray]  # of all of these


class LearnerChanges(NamedTuple):
    """What a learner has changed since a state."""

    counters: np.ndarray
    banks: dict[str, RowChanges]

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        arrays = [a for bank in self.banks.values() for a in (bank.rows, bank.features, *bank.arrays.values())]
        return sum(array.nbytes for array in arrays)


def changes_since(base: State, state: State) -> LearnerChanges:
    """What has changed between two states of a learner; rows are only ever added."""
    banks = {}
    for name in ("shared", "single"):
        known = base[f"{name}.weights"].shape[0]
        different = np.zeros(known, np.bool_)
        for part in PARTS:
            old, new = base[f"{name}.{part}"], state[f"{name}.{part}"]
            if old.size:
                bits = old.view(np.int32) != new[:known].view(np.int32)
                different |= bits if bits.ndim == 1 else bits.any(axis=1)
        rows = np.flatnonzero(different)
        every = np.concatenate([rows, np.arange(known, state[f"{name}.weights"].shape[0])])
        arrays = {part: state[f"{name}.{part}"][every] for part in PARTS if state[f"{name}.{part}"].size}
        banks[name] = RowChanges(rows, state[f"{name}.features"][known:], arrays)
    return LearnerChanges(state["counters"], banks)


def mixed(
    base: State, learners: Sequence[LearnerChanges], *, by: str = "squares", squares: str = "mean"
) -> dict[str, np.ndarray]:
    """One state from what learners that all began with `base` have changed.

    Parameters
    ----------
    base, learners
        What they began with, as `Learner.state` gives it, and what each changed; those without new rounds do not count.
    by
        What each learner's change of a weight counts: its share of the rounds (`"rounds"`), or of the squared gradients
        that this weight has seen (`"squares"`, where the update keeps them). With shares of rounds a feature that one
        learner in ten has met keeps a tenth of its weight; with shares of gradients it keeps all of it.
    squares
        Whether sums of squared gradients grow by the mean of what the learners added, or by its sum (`"sum"`): then
        steps become small before the mixed weights have moved far.

    """
    done = float(base["counters"][ROUNDS])
    learners = [each for each in learners if each.counters[ROUNDS] > done]
    if not learners:
        return dict(base)
    rounds = np.array([float(each.counters[ROUNDS]) for each in learners]) - done
    made = {"counters": base["counters"] + np.sum([each.counters - base["counters"] for each in learners], axis=0)}
    for name in ("shared", "single"):
        mixing = _Mixing(name, base, [each.banks[name] for each in learners], rounds, by == "squares")
        made |= mixing.result(1.0 if squares == "sum" else 1.0 / len(learners))
    return made


class _Mixing:
    """Mixes one table."""

    def __init__(self, name: str, base: State, banks: Sequence[RowChanges], rounds: np.ndarray, by_squares: bool):
        self.name, self.banks, self.rounds = name, banks, rounds
        self.done = float(base["counters"][ROUNDS])
        known = base[f"{name}.features"]
        self.features = np.concatenate([known, _different([bank.features for bank in banks])])
        self.added = self.features.size - known.size
        rows = base[f"{name}.weights"].shape[0]
        order = np.argsort(self.features[known.size :], kind="stable")
        self.at = []  # the row of each change
        for bank in banks:
            new = np.searchsorted(self.features[known.size :], bank.features, sorter=order)
            self.at.append(np.concatenate([bank.rows, rows + order[new]]) if bank.features.size else bank.rows)
        self.arrays = {part: self._room(part, base[f"{name}.{part}"]) for part in PARTS}
        self.by_squares = by_squares and self.arrays["squares"].size > 0

    def _room(self, part: str, array: np.ndarray) -> np.ndarray:
        """A copy with room for new rows; arrays that the update does without stay empty."""
        used = any(part in bank.arrays for bank in self.banks)
        return np.concatenate([array, np.zeros((self.added if used else 0, *array.shape[1:]), array.dtype)])

    def result(self, share_of_squares: float) -> dict[str, np.ndarray]:
        """The arrays of the mixed table."""
        ordered = [np.argsort(at, kind="stable") for at in self.at]
        last = max((int(at.max(initial=-1)) for at in self.at), default=-1) + 1
        for low in range(0, last, BLOCK):
            parts = []
            for at, order, bank in zip(self.at, ordered, self.banks, strict=True):
                begin, end = np.searchsorted(at, [low, low + BLOCK], sorter=order)
                chosen = order[begin:end]
                parts.append((at[chosen], {name: array[chosen] for name, array in bank.arrays.items()}))
            self._mix(parts, share_of_squares)
        return {f"{self.name}.features": self.features} | {f"{self.name}.{p}": self.arrays[p] for p in PARTS}

    def _mix(self, parts: Sequence[tuple[np.ndarray, dict[str, np.ndarray]]], share_of_squares: float) -> None:
        """Mix some rows: of each learner its rows and their new values."""
        if len(parts) == 1:  # nothing to mix, so that nothing is rounded
            for part, array in parts[0][1].items():
                self.arrays[part][parts[0][0]] = array
            return
        rows = np.unique(np.concatenate([at for at, _ in parts]))
        if not rows.size:
            return
        old = self.arrays["weights"][rows].astype(np.float64)
        moved, total = np.zeros_like(old), np.zeros_like(old)
        averaged, squares = np.zeros_like(old), self.arrays["squares"]
        sums = self.arrays["sums"][rows].astype(np.float64) if self.arrays["sums"].size else None
        before = squares[rows].astype(np.float64) if squares.size else None
        for (at, new), own in zip(parts, self.rounds, strict=True):
            k = np.searchsorted(rows, at)
            change = new["weights"] - old[k]
            gained = new["squares"] - before[k] if before is not None and "squares" in new else None
            share = gained if self.by_squares and gained is not None else own / self.rounds.sum()
            moved[k] += share * change
            if gained is not None:
                total[k] += gained
            if sums is not None:
                # the sum of the weights after each round is weights * (rounds + 1) - sums
                whole = new["weights"] * (self.done + own + 1.0) - new["sums"] - (old[k] * (self.done + 1.0) - sums[k])
                averaged[k] += share * (whole / own - old[k])
            if "scales" in new:
                self.arrays["scales"][at] = np.maximum(self.arrays["scales"][at], new["scales"])
        if self.by_squares:
            divided = np.where(total > 0.0, total, 1.0)
            moved, averaged = moved / divided, averaged / divided
        weights = (old + moved).astype(np.float32)
        self.arrays["weights"][rows] = weights
        if before is not None:
            squares[rows] = before + share_of_squares * total
        if sums is not None:
            seen = old * (self.done + 1.0) - sums + self.rounds.sum() * (old + averaged)
            self.arrays["sums"][rows] = weights * (self.done + self.rounds.sum() + 1.0) - seen


def _different(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The different features, in the order in which they first occur."""
    every = np.concatenate(lists)
    _, first = np.unique(every, return_index=True)
    return every[np.sort(first)]
