"""The regret of Algorithm 2, exactly: Theorem 3's two sides at the averaged policy of a run, and how regret falls.

The averaged policy is one of the run's policies, drawn once and then followed to the end, as in the paper's proof. So
J of it is the mean of their J; and what one other action at step t would cost it, E[Q(s, π)], is the mean over policies
of what that action costs each of them at the states that it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.reproduction.theory.runs import Lives, tables_of
from lols.reproduction.theory.small_spaces import SmallSpace
from lols.reproduction.theory.theorem3 import Sides, sides

__all__ = ["Slope", "log_log_slope", "run_sides"]


def run_sides(space: SmallSpace, lives: Lives, beta: float = 0.5) -> Sides:
    """Both sides of Theorem 3 at the average over the current policies of all rounds."""
    codes, which = np.unique(lives.codes, return_inverse=True)
    return sides(space, np.bincount(which, weights=lives.rounds), beta, tables_of(space, codes))


class Slope(NamedTuple):
    """The slope of a straight line through points on logarithmic scales, its height at one round, and an interval."""

    value: float
    height: float
    low: float
    high: float


def log_log_slope(rounds: Sequence[int], regrets: Sequence[Sequence[float]], *, draws: int = 2000) -> Slope:
    """Fit log10 of the mean regret over seeds to log10 N; the 95 % interval is from drawing the seeds again.

    NaN where a mean is not positive: there is no line then.

    >>> made = log_log_slope([10, 100, 1000], [[0.9, 1.1], [0.1, 0.1], [0.012, 0.008]])
    >>> round(made.value, 3), made.low < made.value < made.high
    (-1.0, True)
    """
    means = np.array([np.mean(runs) for runs in regrets])
    chance = np.random.default_rng(0)
    again = np.stack([chance.choice(np.asarray(runs), (draws, len(runs))).mean(axis=1) for runs in regrets])
    if not (means > 0.0).all():
        return Slope(*[float("nan")] * 4)
    x = np.log10(np.asarray(rounds, np.float64))
    value, height = np.polyfit(x, np.log10(means), 1)
    again = again[:, (again > 0.0).all(axis=0)]
    low, high = np.percentile(np.polyfit(x, np.log10(again), 1)[0], [2.5, 97.5])
    return Slope(float(value), float(10.0**height), float(low), float(high))
