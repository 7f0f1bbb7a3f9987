"""The regret of Algorithm 2, exactly: Theorem 3's two sides at the averaged policy, and what a whole run costs.

The averaged policy is one of the run's policies, drawn once and then followed to the end, as in the paper's proof. So
J of it is the mean of their J; and what one other action at step t would cost it, E[Q(s, π)], is the mean over policies
of what that action costs each of them at the states that it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.bandit.bandit import StructuredBandit
from lols.bandit.exploring import theory_epsilon
from lols.bandit.log import Decision, Loss, MemoryLog
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.bandit_worlds import BanditWorld, Exact, tree_reference, tree_space
from lols.reproduction.theory.theorem3 import LeftSide, RightSide

__all__ = [
    "LEARNERS",
    "LeftSide",
    "Lives",
    "Regret",
    "RightSide",
    "Slope",
    "best_deviations",
    "left_side",
    "log_log_slope",
    "printed_regret",
    "right_side",
    "run_algorithm2",
    "run_regret",
    "tables_of",
]

LEARNERS = {
    "ridge": LearnerSettings("csoaa", "ridge", max_features=64),
    "adagrad": LearnerSettings("csoaa", "adagrad", bits=8),
    "nag": LearnerSettings("csoaa", "nag", bits=8),
}
"""Learners to measure, with room for 64 and 256 features. AdaGrad is the bandit's default, NAG the paper's."""

AT_ONCE = 8192  # versions that are averaged in one go
LARGEST = 62  # bits of a policy's code


# --- the two sides of Theorem 3 ---------------------------------------------------------------------------------------


def left_side(world: BanditWorld, tables: np.ndarray, weights: np.ndarray, beta: float) -> LeftSide:
    """Theorem 3's left side for a policy that is one of several, each with a probability, drawn once.

    Two policies may each do best what the other does badly: both are locally optimal, but no one change of an action is
    good for both. The sum over t is then negative, which the paper says it never is.

    >>> world = BanditWorld(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[0, 0, 1]]))
    >>> both = np.array([[[0, 0, 0]], [[1, 1, 1]]])
    >>> left_side(world, both, np.array([0.5, 0.5]), beta=0.5)
    LeftSide(beta=0.5, to_reference=0.0, to_deviations=-0.5, each=0.0)
    """
    exact, weights = world.exact(tables), weights / weights.sum()
    loss, steps = float(weights @ exact.loss), world.steps
    return LeftSide(
        beta=beta,
        to_reference=loss - float(_reference(world).loss[0]),
        to_deviations=steps * loss - float(best_deviations(world, tables, weights).sum()),
        each=steps * loss - float(weights @ (exact.visits * exact.worths.min(axis=-1)).sum(axis=(1, 2))),
    )


def best_deviations(world: BanditWorld, tables: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """min_π E[Q(s, π)] at each step, for the averaged policy: what its best change of that step would cost."""
    exact = world.exact(tables)
    mean = np.einsum("p,pxs,pxsa->xsa", weights / weights.sum(), exact.visits, exact.worths)
    best = mean.min(axis=-1).sum(axis=0)
    return np.array([best[(1 << t) - 1 : (2 << t) - 1].sum() for t in range(world.steps)])


def right_side(world: BanditWorld, tables: np.ndarray, weights: np.ndarray, beta: float) -> RightSide:
    """T δ_N of Theorem 3, and T δ_class of its corollary."""
    exact, teacher, weights = world.exact(tables), _reference(world), weights / weights.sum()
    out = beta * teacher.worths + (1.0 - beta) * exact.worths
    own = np.where(np.asarray(tables, np.bool_), out[..., 1], out[..., 0])
    least = beta * teacher.worths.min(axis=-1) + (1.0 - beta) * exact.worths.min(axis=-1)
    chance = weights[:, np.newaxis, np.newaxis] * exact.visits
    best = (chance[..., np.newaxis] * out).sum(axis=0).min(axis=-1).sum()
    return RightSide(float((chance * (own - least)).sum()), float(best - (chance * least).sum()))


def printed_regret(world: BanditWorld, tables: np.ndarray, weights: np.ndarray, beta: float) -> float:
    """The regret as the paper's section 6 prints it, for one averaged policy: J - β J_ref - (1 - β) Σ_t min_π E[Q].

    J is counted once where Theorem 3 counts it T times. An optimal policy, as the reference is, should have none:

    >>> world = BanditWorld(np.array([[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]]), np.zeros((1, 7), np.int64))
    >>> printed_regret(world, np.zeros((1, 1, 7)), np.ones(1), beta=0.0)
    -1.0
    >>> left_side(world, np.zeros((1, 1, 7)), np.ones(1), beta=0.0).value
    0.0
    """
    loss = float((weights / weights.sum()) @ world.exact(tables).loss)
    deviations = float(best_deviations(world, tables, weights).sum())
    return loss - beta * float(_reference(world).loss[0]) - (1.0 - beta) * deviations


def _reference(world: BanditWorld) -> Exact:
    return world.exact(world.reference[np.newaxis])


# --- a run and its regret ---------------------------------------------------------------------------------------------


class Lives(NamedTuple):
    """The policies of a run in their order, and for how many rounds each was the current one."""

    codes: np.ndarray  # int64: bit k is the action at the k-th of all contexts' states
    rounds: np.ndarray
    epsilon: float


class Regret(NamedTuple):
    """What there is to say of a run."""

    left: LeftSide  # at the average over the current policies of all rounds
    right: RightSide
    whole: float  # as section 6 means it: at each round's own averaged policy, and with what exploring costs
    to_best: float  # J of the averaged policy, less the least J of all
    last: float  # J of the last policy, less the least J of all
    distinct: int  # how many different policies there were
    explored: int


def tables_of(world: BanditWorld, codes: np.ndarray) -> np.ndarray:
    """Policies as tables of actions: policies x contexts x states.

    >>> from lols.reproduction.theory.bandit_worlds import ladder_world
    >>> tables_of(ladder_world((0.8, 0.4), steps=2), np.array([0b100_011])).tolist()
    [[[1, 1, 0], [0, 0, 1]]]
    """
    bits = np.arange(world.contexts * world.states)
    return ((codes[:, np.newaxis] >> bits) & 1).reshape(-1, world.contexts, world.states)


def run_algorithm2(
    world: BanditWorld,
    rounds: int,
    *,
    seed: int,
    beta: float = 0.5,
    learner: LearnerSettings | None = None,
    compiled: bool = True,
) -> Lives:
    """Run the paper's Algorithm 2 in a world, with the exploration of Corollary 2, and record its policies.

    The learner is ridge regression by default.

    >>> from lols.reproduction.theory.bandit_worlds import ladder_world
    >>> lives = run_algorithm2(ladder_world(), 20, seed=1, compiled=False)
    >>> int(lives.rounds.sum()), lives.epsilon
    (20, 1.0)
    """
    if world.contexts * world.states > LARGEST:
        raise ConfigurationError(f"a world of {world.contexts * world.states} states: take at most {LARGEST}")
    epsilon = theory_epsilon(rounds, 2, world.steps, world.policies)
    log = MemoryLog(keep=2)  # a decision and its loss
    bandit = StructuredBandit.algorithm2(
        tree_space(), tree_reference(), epsilon=epsilon, beta=beta, learner=learner or LEARNERS["ridge"], log=log,
        seed=seed, compiled=compiled,
    )  # fmt: skip
    chance = np.random.default_rng((seed, rounds))
    contexts, luck = chance.integers(world.contexts, size=rounds), chance.random(rounds)
    objects, losses = world.objects(), world.losses
    greedy = _Greedy(world)
    codes, lived = [0], [0]
    for i in range(rounds):
        k = int(contexts[i])
        lived[-1] += 1
        shown = bandit.decide(objects[k])
        bandit.learn(shown.id, float(luck[i] < losses[k, shown.output]))
        if shown.explored:
            codes.append(greedy.learned(bandit, next(log.replay())))
            lived.append(0)
    return Lives(np.array(codes, np.int64), np.array(lived, np.int64), epsilon)


def run_regret(world: BanditWorld, lives: Lives, beta: float = 0.5) -> Regret:
    """The exact regret of a run."""
    codes, which = np.unique(lives.codes, return_inverse=True)
    tables = tables_of(world, codes)
    weights = np.bincount(which, weights=lives.rounds) / lives.rounds.sum()
    exact = world.exact(tables)
    return Regret(
        left=left_side(world, tables, weights, beta),
        right=right_side(world, tables, weights, beta),
        whole=_whole(world, exact, which, lives, beta),
        to_best=float(weights @ exact.loss) - world.least,
        last=float(exact.loss[which[-1]]) - world.least,
        distinct=codes.size,
        explored=lives.codes.size - 1,
    )


def _whole(world: BanditWorld, exact: Exact, which: np.ndarray, lives: Lives, beta: float) -> float:
    """The mean over rounds of the left side at the average over all policies so far, and of what exploring costs.

    In a round that exploits, the expected loss is that of the averaged policy; one that explores has the expected loss
    of a uniform deviation instead.
    """
    teacher, steps = _reference(world), world.steps
    out = beta * teacher.worths + (1.0 - beta) * exact.worths
    exploring = (exact.visits * out.mean(axis=-1)).sum(axis=(1, 2)) / steps
    costs = (exact.visits[..., np.newaxis] * exact.worths).reshape(exact.loss.size, -1, 2)
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


class _Greedy:
    """The current policy's table, one state after the other: a round changes the weights of one state only."""

    def __init__(self, world: BanditWorld):
        self._code = 0  # without weights, ties go to the first action
        self._rows: dict[int, int] = {}
        self._states = world.contexts * world.states

    def learned(self, bandit: StructuredBandit, decision: Decision | Loss) -> int:
        """The policy's code after a decision was learned from."""
        assert isinstance(decision, Decision)
        policy, state = bandit.policy(), int(decision.ids[0])
        row = self._rows.get(state)
        if row is None:
            row = int(lookup(policy.shared, state))
            if row < 0 or row in self._rows.values():
                raise ConfigurationError(f"{self._states} states do not fit the learner's table: give it more room")
            self._rows[state] = row
        first, second = policy.stack[0, row]
        self._code = self._code & ~(1 << state) | int(second < first) << state
        return self._code


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
