"""The gap between the minimum of an average and the average of minima, which Theorem 3's bound keeps for 0 < β < 1.

A roll-out is the reference's with probability β, else the policy's. What an action costs is the average of the two, and
the best action for the average need not be the best for either. A learner that has no regret left chooses well by the
average only, so its policy may stay where it is for ever while

    E[ min_a (β Q_ref + (1 - β) Q) - β min_a Q_ref - (1 - β) min_a Q ]

is above 0. It is 0 for β = 0 and for β = 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lols.datasets.small_worlds import Policy, SmallWorld
from lols.reproduction.theory.small_spaces import SmallSpace
from lols.reproduction.theory.theorem3 import sides, staying

__all__ = ["Stay", "space_gaps", "space_stay", "world_gap", "world_stay"]


class Stay(NamedTuple):
    """Of the policies that a learner without regret may stay with, the one with the largest gap."""

    gap: float
    loss: float  # J
    reference: float  # J of the reference
    left: float  # Theorem 3's left side
    worst: float  # the largest J of all that it may stay with


def world_gap(world: SmallWorld, policy: Policy, beta: Fraction) -> Fraction:
    """The gap of a policy in a world of Figure 3, summed over the states that it comes to.

    >>> from lols.datasets.small_worlds import BLIND
    >>> str(world_gap(BLIND, BLIND.policy(frozenset("bd")), Fraction(1, 4)))
    '1/2'
    """
    total = Fraction(0)
    for state, chance in enumerate(world.visits(policy)):
        teacher, own = (world.action_worths(state, who) for who in (world.reference_policy, policy))
        average = min(beta * r + (1 - beta) * q for r, q in zip(teacher, own, strict=True))
        total += chance * (average - beta * min(teacher) - (1 - beta) * min(own))
    return total


def world_stay(world: SmallWorld, beta: Fraction) -> Stay:
    """The largest gap of a policy that has no cost-sensitive regret under LOLS, in a world of Figure 3.

    In the world `BLIND`, the safe action costs 2. The other leads to 0 if the right one follows, which the reference
    knows and the policy need not: it thinks of 3. The average of both tempts it from β = 1/3 on. Before that it stays,
    worse than the reference by 2, and the gap is 2 β, all of what the theorem still allows.

    >>> from lols.datasets.small_worlds import BLIND
    >>> [round(world_stay(BLIND, Fraction(k, 10)).gap, 3) for k in range(6)]
    [0.0, 0.2, 0.4, 0.6, 0.0, 0.0]
    """
    settled = world.zero_regret("learned", "mixture", beta)
    policy = max(settled, key=lambda p: (world_gap(world, p, beta), world.loss(p)))
    loss, reference = world.loss(policy), world.loss(world.reference_policy)
    local = sum(
        (
            chance * (world.worth(state, policy) - min(world.action_worths(state, policy)))
            for state, chance in enumerate(world.visits(policy))
        ),
        Fraction(0),
    )
    left = beta * (loss - reference) + (1 - beta) * local
    worst = max(world.loss(p) for p in settled)
    return Stay(*(float(value) for value in (world_gap(world, policy, beta), loss, reference, left, worst)))


def space_gaps(space: SmallSpace, beta: float) -> np.ndarray:
    """The gap of each policy of the class of a general small space."""
    own, teacher = space.exact(space.policies), space.exact(space.reference[np.newaxis]).worths
    average = (beta * teacher + (1.0 - beta) * own.worths).min(axis=-1)
    apart = average - beta * teacher.min(axis=-1) - (1.0 - beta) * own.worths.min(axis=-1)
    made: np.ndarray = (own.visits * apart).sum(axis=1)
    return made


def space_stay(space: SmallSpace, beta: float) -> Stay | None:
    """The largest gap of a policy that a learner may stay with; None where there is none in the class.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(2), steps=3, actions=2, limited=False)
    >>> made = [space_stay(space, beta) for beta in (0.0, 0.25, 0.5, 1.0)]
    >>> [round(stay.gap, 3) for stay in made]
    [0.0, 0.143, 0.286, 0.0]
    """
    found = staying(space, beta)
    if not found.size:
        return None
    loss, gaps = space.exact(space.policies).loss, space_gaps(space, beta)
    policy = max(found.tolist(), key=lambda p: (gaps[p], loss[p]))
    made = sides(space, np.eye(len(space.policies))[policy], beta)
    own, worst = float(loss[policy]), float(loss[found].max())
    return Stay(made.gap, own, own - made.left.to_reference, made.left.value, worst)
