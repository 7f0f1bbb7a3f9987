"""Iterative parameter mixing (McDonald, Hall and Mann, 2010): learners go on from one state, each on its own data.

What each of them changed becomes one state again: weights are averages, adaptive state counts all data once. Only cells
that changed are sent and computed with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.engine.table import is_fixed
from lols.kernels.kernel import Kernel
from lols.learners.changes import BANKS, PARTS, Detour, LearnedChanges, LearnerChanges
from lols.learners.learner import Learner
from lols.learners.structures import ROUNDS, Bank

SQUARES = ("sum", "mean", "independent")


class CellParts(NamedTuple):
    """Parts of cells."""

    weights: np.ndarray
    squares: np.ndarray
    sums: np.ndarray


class Shares(NamedTuple):
    """What counts how much in a mixture: rounds before it and in it, and how learners and their squares count."""

    done: float
    rounds: float
    by_squares: bool
    of_squares: float


def mix_cells(old, new, places, bounds, rounds, shares, work, made):
    """Mix what learners have made of cells.

    Parameters
    ----------
    old
        What the cells were.
    new, places, bounds
        Cells of one learner after the other, where they are among all, and where those of each learner begin and end.
    rounds, shares
        How many rounds each learner has done, and what counts how much.
    work, made
        Working memory, and the result.

    """
    total, moved, averaged = work[0], work[1], work[2]
    squares, sums = old.squares.size > 0, old.sums.size > 0
    done, every = shares.done, shares.rounds
    if squares:
        for i in range(places.size):
            k = places[i]
            total[k] += np.float64(new.squares[i]) - np.float64(old.squares[k])
    for learner in range(rounds.size):
        own = rounds[learner]
        for i in range(bounds[learner], bounds[learner + 1]):
            k, share = places[i], own / every
            weight, before = np.float64(new.weights[i]), np.float64(old.weights[k])
            if shares.by_squares:
                gained = np.float64(new.squares[i]) - np.float64(old.squares[k])
                share = gained / (total[k] if total[k] > 0.0 else 1.0)
            moved[k] += share * (weight - before)
            if sums:
                # the sum of the weights after each round is weights * (rounds + 1) - sums
                seen = before * (done + 1.0) - np.float64(old.sums[k])
                seen = weight * (done + own + 1.0) - np.float64(new.sums[i]) - seen
                averaged[k] += share * (seen / own - before)
    for k in range(old.weights.size):
        before = np.float64(old.weights[k])
        made.weights[k] = before + moved[k]
        if squares:
            made.squares[k] = np.float64(old.squares[k]) + shares.of_squares * total[k]
        if sums:
            seen = before * (done + 1.0) - np.float64(old.sums[k]) + every * (before + averaged[k])
            made.sums[k] = np.float64(made.weights[k]) * (done + every + 1.0) - seen


mix_cells_kernel = Kernel(mix_cells)


def mixed(
    learner: Learner, learners: Sequence[LearnerChanges], *, by: str = "squares", squares: str = "independent"
) -> LearnerChanges:
    """What is to be changed in a learner, so that it becomes the mixture of learners that all went on from it.

    Parameters
    ----------
    learner, learners
        What they began with, and what each changed; those without new rounds do not count.
    by
        What each learner's change of a weight counts: its share of the rounds (`"rounds"`), or of the squared gradients
        that this weight has seen (`"squares"`, where the update keeps them). With shares of rounds a feature that one
        learner in ten has met keeps a tenth of its weight; with shares of gradients it keeps all of it.
    squares
        By what sums of squared gradients grow: by the sum of what the learners added, by its mean, or by the square of
        the mean gradient if those of learners are independent, which is the mean divided by the number of learners
        (`"sum"`, `"mean"`, `"independent"`). A mixture moves as far as one learner, so that with a sum or a mean, steps
        become small before the mixed weights have moved far.

    """
    done = float(learner.counters[ROUNDS])
    learners = [each for each in learners if each.counters[ROUNDS] > done]
    if not learners:
        return Detour(learner).changes()
    if len(learners) == 1:  # nothing to mix, so that nothing is rounded
        return learners[0]
    counters = learner.counters + sum((each.counters - learner.counters for each in learners), np.zeros(6))
    rounds = np.array([float(each.counters[ROUNDS]) for each in learners]) - done
    by_squares = by == "squares" and learner.shared.squares.size > 0
    shares = Shares(done, float(rounds.sum()), by_squares, float(len(learners)) ** -SQUARES.index(squares))
    shared, single = (
        _mixed_bank(getattr(learner, name), [each.banks[k] for each in learners], rounds, shares, learner.compiled)
        for k, name in enumerate(BANKS)
    )
    return LearnerChanges(counters, (shared, single))


def _mixed_bank(
    bank: Bank, parts: Sequence[LearnedChanges], rounds: np.ndarray, shares: Shares, compiled: bool
) -> LearnedChanges:
    """The mixture of what learners changed in one table."""
    known, columns = int(bank.filled[0]), bank.weights.shape[1]
    most = bank.weights.shape[0] if is_fixed(bank.table) else bank.most
    features = _different([part.features for part in parts])
    order = np.argsort(features, kind="stable")
    at, rows, found = [], [], []  # of each learner: cells and scaled rows, as they are in the mixture, and values
    for part in parts:
        places = known + order[np.searchsorted(features, part.features, sorter=order)]
        cells = part.cells.copy()
        added = slice(int(np.searchsorted(cells, known * columns)), None)  # those of new rows
        cells[added] = places[cells[added] // columns - known] * columns + cells[added] % columns
        scaled = part.scaled.copy()
        added = slice(int(np.searchsorted(scaled, known)), None)
        scaled[added] = places[scaled[added] - known]
        kept, kept_rows = cells < most * columns, scaled < most  # what has no room is dropped
        at.append(cells[kept])
        rows.append(scaled[kept_rows])
        found.append(({name: values[kept] for name, values in part.values.items()}, part.scales[kept_rows]))
    features = features[: max(most - known, 0)]
    cells = _sorted(at)
    there = [name for name in PARTS if getattr(bank, name).size]
    nothing = np.zeros(0, np.float32)
    old, new, made = (
        CellParts(*(make(name) if name in there else nothing for name in PARTS))
        for make in (
            lambda name: _before(getattr(bank, name).reshape(-1), cells, known * columns),
            lambda name: np.concatenate([values[name] for values, _ in found]),
            lambda name: np.empty(cells.size, np.float32),
        )
    )
    places, bounds = np.concatenate([np.searchsorted(cells, own) for own in at]), np.cumsum([0, *map(len, at)])
    mix_cells_kernel(compiled, old, new, places, bounds, rounds, shares, np.zeros((3, cells.size)), made)
    values = {name: getattr(made, name) for name in there}
    scaled = _sorted(rows)
    scales = _before(bank.scales, scaled, known)
    for (_, own_scales), own_rows in zip(found, rows, strict=True):
        k = np.searchsorted(scaled, own_rows)
        scales[k] = np.maximum(scales[k], own_scales)
    return LearnedChanges(features, cells, values, scaled, scales)


def _before(array: np.ndarray, places: np.ndarray, known: int) -> np.ndarray:
    """What places of an array held, in order; those of new rows, which are the last, are zero."""
    made = np.zeros(places.size, np.float32)
    there = int(np.searchsorted(places, known))
    made[:there] = array[places[:there]]
    return made


def _sorted(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The different numbers of sorted lists, in order."""
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *lists]), kind="stable")  # which merges what is sorted
    return every[np.concatenate([[True], every[1:] != every[:-1]])] if every.size else every


def _different(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The different features, in the order in which they first occur."""
    every = np.concatenate([np.zeros(0, np.int64), *lists])
    order = np.argsort(every, kind="stable")
    first = np.concatenate([[True], every[order[1:]] != every[order[:-1]]]) if every.size else np.zeros(0, np.bool_)
    return every[np.sort(order[first])]
