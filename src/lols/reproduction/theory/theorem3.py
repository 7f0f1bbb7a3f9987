"""Theorem 3 on general small spaces: both sides, exactly, and what lies between them.

The averaged policy is one of the run's policies, drawn once and then followed to the end. Its right side less its left
side is a sum of three things that are never negative, one for each inequality of the proof:

- `averaging`: one change has to suit all policies that the averaged one may be (the proof has "=" there);
- `limits`: changes have to be policies of the class, the right side allows any action at any state;
- `teacher`: what one better action would gain the reference, at the states where the policies come to.

The right side itself, T δ_N, is a sum of three as well: `regret`, the learner's cost-sensitive regret to the best fixed
policy of the class, which a no-regret learner makes vanish; `unfit`, what that fixed policy costs more than the best
action in each state and round; and `gap`, the minimum of the average less the average of the minima,

    E[ min_a (β Q_ref + (1 - β) Q) - β min_a Q_ref - (1 - β) min_a Q ].

A roll-out is the reference's with probability β, else the policy's. What an action costs is the average of the two, and
the best action for the average need not be the best for either. A learner that has no regret left chooses well by the
average only, so its policy may stay where it is forever while the gap is above 0. It is 0 for β = 0 and for β = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.datasets.small_spaces import Exact, SmallSpace

TINY = 1e-12  # what rounding may add to equal costs


class Sides(NamedTuple):
    """Both sides of Theorem 3, and their parts; Σ_t (J - min_π E[Q(s, π)]) is the regret to deviations."""

    left: float  # β (J - J_ref) + (1 - β) Σ_t (J - min_π E[Q(s, π)])
    right: float  # T δ_N
    to_reference: float  # J - J_ref: negative where the reference is beaten
    to_deviations: float  # with one π for all policies that the averaged one may be
    each: float  # to deviations, where every policy is compared with its own best π: what the proof bounds
    most: float  # the left side with that: never less
    of_class: float  # T δ_class: what remains of the right side for the best policy of the class in hindsight
    averaging: float
    limits: float
    teacher: float
    regret: float
    unfit: float
    gap: float


def sides(space: SmallSpace, weights: np.ndarray, beta: float, tables: np.ndarray | None = None) -> Sides:
    """Both sides of Theorem 3 for a policy that is one of several, drawn once with probabilities by `weights`.

    The policies are `tables`, by default all of the class. A reference that no single change improves, a class without
    limits, and a run that stays with one policy: the proof loses nothing, and the two sides are equal.

    >>> from lols.datasets.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=3, actions=2, slips=0.0, limited=False)
    >>> made = sides(space, np.eye(len(space.policies))[5], beta=0.5)
    >>> round(made.left, 4), round(made.right, 4)
    (0.4273, 0.4273)

    Two policies may each do best what the other does badly: both are locally optimal, but no one change of an action is
    good for both. The sum over t is then negative, which the paper says it never is.

    >>> from lols.datasets.small_spaces import tree_space
    >>> space = tree_space(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[0, 0, 1]]))
    >>> sides(space, np.ones(2), beta=0.5, tables=np.array([[0, 0, 0], [1, 1, 1]])).to_deviations
    -0.5
    """
    tables = space.listed if tables is None else tables
    exact, teacher = space.exact(tables), space.exact(space.reference[np.newaxis])
    shares = weights / weights.sum()
    chance = shares[:, np.newaxis] * exact.visits
    taken, loss = _Class(space), float(shares @ exact.loss)
    out = beta * teacher.worths + (1.0 - beta) * exact.worths

    costs = chance[..., np.newaxis] * exact.worths
    total = space.steps * loss
    one_for_all = float(taken.least_by_step(costs.sum(axis=0)).sum())
    own = float(taken.least_by_step(costs[shares > 0.0]).sum())
    any_action = float(costs.min(axis=-1).sum())
    to_reference = loss - float(teacher.loss[0])

    own_costs = np.take_along_axis(out, tables[..., np.newaxis], axis=-1)[..., 0]
    of_minima = float((chance * (beta * teacher.worths.min(axis=-1) + (1.0 - beta) * exact.worths.min(axis=-1))).sum())
    of_average = float((chance * out.min(axis=-1)).sum())
    best_fixed = taken.least((chance[..., np.newaxis] * out).sum(axis=0))
    right, of_class = float((chance * own_costs).sum()) - of_minima, best_fixed - of_minima

    at_reference = np.take_along_axis(teacher.worths[0], space.reference[:, np.newaxis], axis=-1)[:, 0]
    return Sides(
        left=beta * to_reference + (1.0 - beta) * (total - one_for_all),
        right=right,
        to_reference=to_reference,
        to_deviations=total - one_for_all,
        each=total - own,
        most=beta * to_reference + (1.0 - beta) * (total - own),
        of_class=of_class,
        averaging=(1.0 - beta) * (one_for_all - own),
        limits=(1.0 - beta) * (own - any_action),
        teacher=beta * float((chance * (at_reference - teacher.worths[0].min(axis=-1))).sum()),
        regret=right - of_class,
        unfit=best_fixed - of_average,
        gap=of_average - of_minima,
    )


def run_lols(
    space: SmallSpace, rounds: int, beta: float, *, rng: np.random.Generator, sampled: bool = False
) -> np.ndarray:
    """Run Algorithm 1 with a learner over the whole class, and count how often each policy was the current one.

    The learner is hedge: it draws a policy by weights that fall exponentially in its costs so far, so that it has no
    regret whatever the costs. If `sampled`, a round is one start state and one coin at each state on the way, as in the
    algorithm; else the learner gets expected costs.
    """
    exact, teacher = space.exact(space.listed), space.exact(space.reference[np.newaxis])
    taken, size = _Class(space), len(space.listed)
    costs = taken.while_current(exact, teacher, beta)
    spread = space.steps * max(float(np.ptp(space.losses)), 1e-12)
    rate = np.sqrt(8.0 * np.log(max(size, 2)) / rounds) / spread
    counts, so_far = np.zeros(size), np.zeros(size)
    for _ in range(rounds):
        chances = np.cumsum(np.exp(-rate * (so_far - so_far.min())))
        current = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
        counts[current] += 1
        if sampled:
            so_far += taken.by_step(_one_example(space, current, beta, exact, teacher, rng)).sum(axis=-1)
        else:
            so_far += costs[current]
    return counts


def _one_example(
    space: SmallSpace, current: int, beta: float, exact: Exact, teacher: Exact, rng: np.random.Generator
) -> np.ndarray:
    """The cost vectors of one round, states x actions: zero where the roll-in does not come to."""
    costs = np.zeros(space.follow.shape)
    s = int(rng.choice(space.start.size, p=space.start))
    for _ in range(space.steps):
        costs[s] = teacher.worths[0, s] if rng.random() < beta else exact.worths[current, s]
        s = int(space.follow[s, space.listed[current, s]])
    return costs


class _Class:
    """What policies of the class cost, given what actions cost at states."""

    def __init__(self, space: SmallSpace):
        self._steps = [space.layer == t for t in range(space.steps)]
        self._doing = None
        if space.policies is not None:
            self._doing = (space.policies[..., np.newaxis] == np.arange(space.actions)).astype(np.float64)

    def by_step(self, costs: np.ndarray) -> np.ndarray:
        """Of each policy: ... x policies x steps, from ... x states x actions."""
        assert self._doing is not None
        made = [np.einsum("...sa,psa->...p", costs[..., here, :], self._doing[:, here]) for here in self._steps]
        return np.stack(made, axis=-1)

    def least_by_step(self, costs: np.ndarray) -> np.ndarray:
        """Of the policy that is best at a step: ... x steps."""
        if self._doing is not None:
            return self.by_step(costs).min(axis=-2)
        return np.stack([costs[..., here, :].min(axis=-1).sum(axis=-1) for here in self._steps], axis=-1)

    def least(self, costs: np.ndarray) -> float:
        """Of the policy that is best over all steps."""
        return float(costs.min(axis=-1).sum() if self._doing is None else self.by_step(costs).sum(axis=-1).min())

    def while_current(self, exact: Exact, teacher: Exact, beta: float) -> np.ndarray:
        """A round's expected cost of each policy (columns) while each is the current one (rows)."""
        out = beta * teacher.worths + (1.0 - beta) * exact.worths
        made: np.ndarray = self.by_step(exact.visits[..., np.newaxis] * out).sum(axis=-1)
        return made


# --- the gap ----------------------------------------------------------------------------------------------------------


class Stay(NamedTuple):
    """Of the policies that a learner without regret may stay with, the one with the largest gap."""

    gap: float
    loss: float  # J
    reference: float  # J of the reference
    left: float  # Theorem 3's left side
    worst: float  # the largest J of all that it may stay with


def staying(space: SmallSpace, beta: float) -> np.ndarray:
    """The policies that a no-regret learner may stay with: while one is current, none of the class costs less.

    >>> from lols.datasets.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=2, actions=2, slips=0.0, limited=False)
    >>> found = staying(space, beta=1.0)
    >>> loss = space.exact(space.policies).loss
    >>> set(loss[found]) == {loss.min()}
    True
    """
    exact, teacher = space.exact(space.listed), space.exact(space.reference[np.newaxis])
    costs = _Class(space).while_current(exact, teacher, beta)
    return np.flatnonzero(np.diag(costs) <= costs.min(axis=1) + TINY)


def gaps(space: SmallSpace, beta: float) -> np.ndarray:
    """The gap of each policy of the class, summed over the states that it comes to."""
    own, teacher = space.exact(space.listed), space.exact(space.reference[np.newaxis]).worths
    average = (beta * teacher + (1.0 - beta) * own.worths).min(axis=-1)
    apart = average - beta * teacher.min(axis=-1) - (1.0 - beta) * own.worths.min(axis=-1)
    made: np.ndarray = (own.visits * apart).sum(axis=1)
    return made


def stay(space: SmallSpace, beta: float) -> Stay | None:
    """The largest gap of a policy that a learner may stay with; None where there is none in the class.

    In the world `BLIND`, the safe action costs 2. The other leads to 0 if the right one follows, which the reference
    knows and the policy need not: it thinks of 3. The average of both tempts it from β = 1/3 on. Before that it stays,
    worse than the reference by 2, and the gap is 2 β, all of what the theorem still allows.

    >>> from lols.datasets.small_worlds import BLIND
    >>> from lols.datasets.small_spaces import figure3_space
    >>> [round(stay(figure3_space(BLIND), beta / 10).gap, 3) for beta in range(6)]
    [0.0, 0.2, 0.4, 0.6, 0.0, 0.0]
    """
    found = staying(space, beta)
    if not found.size:
        return None
    loss, rounded = space.exact(space.listed).loss, gaps(space, beta).round(12)  # so that equal gaps are equal
    policy = max(found.tolist(), key=lambda p: (rounded[p], loss[p]))
    made = sides(space, np.eye(loss.size)[policy], beta)
    own, worst = float(loss[policy]), float(loss[found].max())
    return Stay(made.gap, own, own - made.to_reference, made.left, worst)
