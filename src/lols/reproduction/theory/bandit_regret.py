"""The regret of Algorithm 2, exactly: Theorem 3's two sides at the averaged policy, and what a whole run costs.

The averaged policy is one of the run's policies, drawn once and then followed to the end, as in the paper's proof. So
J of it is the mean of their J; and what one other action at step t would cost it, E[Q(s, π)], is the mean over policies
of what that action costs each of them at the states that it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.reproduction.theory.runs import Lives, tables_of
from lols.reproduction.theory.small_spaces import Exact, SmallSpace, best_actions
from lols.reproduction.theory.theorem3 import LeftSide, RightSide, sides

__all__ = ["Regret", "Slope", "log_log_slope", "run_regret"]

AT_ONCE = 8192  # versions that are averaged in one go


class Regret(NamedTuple):
    """What there is to say of a run."""

    left: LeftSide  # at the average over the current policies of all rounds
    right: RightSide
    whole: float  # as section 6 means it: at each round's own averaged policy, and with what exploring costs
    to_best: float  # J of the averaged policy, less the least J of all
    last: float  # J of the last policy, less the least J of all
    distinct: int  # how many different policies there were
    explored: int


def run_regret(space: SmallSpace, lives: Lives, beta: float = 0.5) -> Regret:
    """The exact regret of a run."""
    codes, which = np.unique(lives.codes, return_inverse=True)
    tables = tables_of(space, codes)
    weights = np.bincount(which, weights=lives.rounds) / lives.rounds.sum()
    exact, made = space.exact(tables), sides(space, weights, beta, tables)
    least = float(space.exact(best_actions(space.follow, space.losses)[np.newaxis]).loss[0])
    return Regret(
        left=made.left,
        right=made.right,
        whole=_whole(space, exact, which, lives, beta),
        to_best=float(weights @ exact.loss) - least,
        last=float(exact.loss[which[-1]]) - least,
        distinct=codes.size,
        explored=lives.codes.size - 1,
    )


def _whole(space: SmallSpace, exact: Exact, which: np.ndarray, lives: Lives, beta: float) -> float:
    """The mean over rounds of the left side at the average over all policies so far, and of what exploring costs.

    In a round that exploits, the expected loss is that of the averaged policy; one that explores has the expected loss
    of a uniform deviation instead.
    """
    teacher, steps = space.exact(space.reference[np.newaxis]), space.steps
    out = beta * teacher.worths + (1.0 - beta) * exact.worths
    exploring = (exact.visits * out.mean(axis=-1)).sum(axis=1) / steps
    costs = exact.visits[..., np.newaxis] * exact.worths
    loss_before, costs_before, total = 0.0, np.zeros(costs.shape[1:]), 0.0
    for first in range(0, which.size, AT_ONCE):
        part = which[first : first + AT_ONCE]
        so_far = np.arange(first + 1, first + part.size + 1)
        losses = loss_before + np.cumsum(exact.loss[part])
        sums = costs_before + np.cumsum(costs[part], axis=0)
        loss_before, costs_before = losses[-1], sums[-1]
        mean = losses / so_far
        deviations = steps * mean - sums.min(axis=-1).sum(axis=-1) / so_far
        left = beta * (mean - teacher.loss[0]) + (1.0 - beta) * deviations
        spent = left + lives.epsilon * (exploring[part] - mean)
        total += float(lives.rounds[first : first + AT_ONCE] @ spent)
    return total / float(lives.rounds.sum())


# --- the slope --------------------------------------------------------------------------------------------------------


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
