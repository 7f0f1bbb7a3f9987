"""Theorem 3 on general small spaces: both sides, exactly, and what lies between them.

The averaged policy is one of the run's policies, drawn once and then followed to the end. Its right side less its left
side is a sum of three things that are never negative, one for each inequality of the proof:

- `averaging`: one change has to suit all policies that the averaged one may be (the proof has "=" there);
- `limits`: changes have to be policies of the class, the right side allows any action at any state;
- `teacher`: what one better action would gain the reference, at the states where the policies come to.

The right side itself, T δ_N, is a sum of three as well: `regret`, the learner's cost-sensitive regret to the best fixed
policy of the class, which a no-regret learner makes vanish; `unfit`, what that fixed policy costs more than the best
action in each state and round; and `gap`, the minimum of the average less the average of the minima.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError
from lols.reproduction.theory.bandit_worlds import Exact
from lols.reproduction.theory.small_spaces import SmallSpace

__all__ = ["LEARNERS", "LeftSide", "RightSide", "Sides", "run_lols", "sides", "staying"]

LEARNERS = ("hedge", "leader")
TINY = 1e-12  # what rounding may add to equal costs


class LeftSide(NamedTuple):
    """Theorem 3's left side: β (J - J_ref) + (1 - β) Σ_t (J - min_π E[Q(s, π)])."""

    beta: float
    to_reference: float  # J - J_ref: negative where the reference is beaten
    to_deviations: float  # Σ_t (J - min_π E[Q(s, π)]), one π for all policies that the averaged one may be
    each: float  # the same where every policy is compared with its own best π: what the proof bounds

    @property
    def value(self) -> float:
        """The left side as it stands."""
        return self.beta * self.to_reference + (1.0 - self.beta) * self.to_deviations

    @property
    def most(self) -> float:
        """The left side with every policy's own deviations: never less, and what the proof bounds."""
        return self.beta * self.to_reference + (1.0 - self.beta) * self.each


class RightSide(NamedTuple):
    """Theorem 3's right side, and the part of it that no learner in the class could avoid."""

    full: float  # T δ_N
    of_class: float  # T δ_class: what remains of it for the best policy in hindsight


class Sides(NamedTuple):
    """Both sides, and their parts."""

    left: LeftSide
    right: RightSide
    averaging: float
    limits: float
    teacher: float
    regret: float
    unfit: float
    gap: float


def sides(space: SmallSpace, weights: np.ndarray, beta: float) -> Sides:
    """Both sides of Theorem 3 for a policy that is one of the class, drawn once with probabilities by `weights`.

    A reference that no single change improves, a class without limits, and a run that stays with one policy: the proof
    loses nothing, and the two sides are equal.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=3, actions=2, slips=0.0, limited=False)
    >>> made = sides(space, np.eye(len(space.policies))[5], beta=0.5)
    >>> round(made.left.value, 4), round(made.right.full, 4)
    (0.4273, 0.4273)
    """
    exact, teacher = space.exact(space.policies), space.exact(space.reference[np.newaxis])
    shares = weights / weights.sum()
    chance = shares[:, np.newaxis] * exact.visits
    taken, loss = _Class(space), float(shares @ exact.loss)
    out = beta * teacher.worths + (1.0 - beta) * exact.worths

    costs = chance[..., np.newaxis] * exact.worths
    total = space.steps * loss
    one_for_all = taken.by_step(costs.sum(axis=0)).min(axis=0).sum()
    own = taken.by_step(costs[shares > 0.0]).min(axis=1).sum()
    any_action = costs.min(axis=-1).sum()
    left = LeftSide(beta, loss - float(teacher.loss[0]), float(total - one_for_all), float(total - own))

    own_costs = np.take_along_axis(out, space.policies[..., np.newaxis], axis=-1)[..., 0]
    of_minima = float((chance * (beta * teacher.worths.min(axis=-1) + (1.0 - beta) * exact.worths.min(axis=-1))).sum())
    of_average = float((chance * out.min(axis=-1)).sum())
    best_fixed = float(taken.by_step((chance[..., np.newaxis] * out).sum(axis=0)).sum(axis=1).min())
    right = RightSide(float((chance * own_costs).sum()) - of_minima, best_fixed - of_minima)

    at_reference = np.take_along_axis(teacher.worths[0], space.reference[:, np.newaxis], axis=-1)[:, 0]
    return Sides(
        left=left,
        right=right,
        averaging=(1.0 - beta) * float(one_for_all - own),
        limits=(1.0 - beta) * float(own - any_action),
        teacher=beta * float((chance * (at_reference - teacher.worths[0].min(axis=-1))).sum()),
        regret=right.full - right.of_class,
        unfit=best_fixed - of_average,
        gap=of_average - of_minima,
    )


def run_lols(
    space: SmallSpace,
    rounds: int,
    beta: float,
    *,
    rng: np.random.Generator,
    learner: str = "hedge",
    sampled: bool = False,
) -> np.ndarray:
    """Run Algorithm 1 with a learner over the whole class, and count how often each policy was the current one.

    The learner `"hedge"` draws a policy by weights that fall exponentially in its costs so far, so that it has no
    regret whatever the costs; `"leader"` takes the policy with the least costs so far. If `sampled`, a round is one
    start state and one coin at each state on the way, as in the algorithm; else the learner gets expected costs.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=2, actions=2, limited=False)
    >>> counts = run_lols(space, 100, 0.5, rng=np.random.default_rng(0))
    >>> int(counts.sum()), counts.size == len(space.policies)
    (100, True)
    """
    if learner not in LEARNERS:
        raise ConfigurationError(f"no learner is called {learner!r}: take one of {', '.join(LEARNERS)}")
    exact, teacher = space.exact(space.policies), space.exact(space.reference[np.newaxis])
    taken, size = _Class(space), len(space.policies)
    costs = taken.while_current(exact, teacher, beta)
    spread = space.steps * max(float(np.ptp(space.losses)), 1e-12)
    rate = np.sqrt(8.0 * np.log(max(size, 2)) / rounds) / spread
    counts, so_far = np.zeros(size), np.zeros(size)
    for _ in range(rounds):
        if learner == "leader":
            current = int(so_far.argmin())
        else:
            chances = np.cumsum(np.exp(-rate * (so_far - so_far.min())))
            current = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        counts[current] += 1
        if sampled:
            so_far += taken.by_step(_one_example(space, current, beta, exact, teacher, rng)).sum(axis=-1)
        else:
            so_far += costs[current]
    return counts


def staying(space: SmallSpace, beta: float) -> np.ndarray:
    """The policies that a no-regret learner may stay with: while one is current, none of the class costs less.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=2, actions=2, slips=0.0, limited=False)
    >>> found = staying(space, beta=1.0)
    >>> loss = space.exact(space.policies).loss
    >>> set(loss[found]) == {loss.min()}
    True
    """
    exact, teacher = space.exact(space.policies), space.exact(space.reference[np.newaxis])
    costs = _Class(space).while_current(exact, teacher, beta)
    return np.flatnonzero(np.diag(costs) <= costs.min(axis=1) + TINY)


def _one_example(
    space: SmallSpace, current: int, beta: float, exact: Exact, teacher: Exact, rng: np.random.Generator
) -> np.ndarray:
    """The cost vectors of one round, states x actions: zero where the roll-in does not come to."""
    costs = np.zeros(space.follow.shape)
    s = int(rng.choice(space.start.size, p=space.start))
    for _ in range(space.steps):
        costs[s] = teacher.worths[0, s] if rng.random() < beta else exact.worths[current, s]
        s = int(space.follow[s, space.policies[current, s]])
    return costs


class _Class:
    """What each policy of the class costs, given what actions cost at states."""

    def __init__(self, space: SmallSpace):
        doing = (space.policies[..., np.newaxis] == np.arange(space.actions)).astype(np.float64)
        self._layers = [(space.layer == t, doing[:, space.layer == t]) for t in range(space.steps)]

    def by_step(self, costs: np.ndarray) -> np.ndarray:
        """... x policies x steps, from ... x states x actions."""
        made = [np.einsum("...sa,psa->...p", costs[..., here, :], doing) for here, doing in self._layers]
        return np.stack(made, axis=-1)

    def while_current(self, exact: Exact, teacher: Exact, beta: float) -> np.ndarray:
        """A round's expected cost of each policy (columns) while each is the current one (rows)."""
        out = beta * teacher.worths + (1.0 - beta) * exact.worths
        made: np.ndarray = self.by_step(exact.visits[..., np.newaxis] * out).sum(axis=-1)
        return made
