"""Theorem 4: going from policy to better policy, one decision at a time, can take exponentially many updates.

Policies see nothing but the step they are at, so a policy for T steps of two actions is a corner of the T-dimensional
cube: bit t of its number is its action at step t. Its one-step deviations are the neighbours. A *snake* is a path along
edges of the cube that never comes next to itself: each of its corners has no neighbours on it but the one before and
the one after. If losses fall along a snake, and are largest elsewhere, descent has no choice but to follow it to its
end. Updates are its edges, one fewer than the policies it visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from lols.errors import ConfigurationError

STORED = {
    1: "0",
    2: "01",
    3: "0120",
    4: "0120310",
    5: "0123014021032",
    6: "01231043054013402410431534",
    7: "01203104210350124065042034012403504203401206104210",
}
"""Longest snakes as the steps that change, one after the other. Up to 5 they are found by exhaustive search, which a
test repeats; beyond by our own beam search that keeps the heads with the most free corners in reach. That none is
longer is known from the literature: K. J. Kochut, "Snake-in-the-box codes for dimension 7" (J. Combin. Math. Combin.
Comput. 20, 1996); https://oeis.org/A099155."""


# --- snakes -----------------------------------------------------------------------------------------------------------


def is_snake(path: Sequence[int]) -> bool:
    """Whether neighbours on a path differ in one decision, and all others in at least two.

    >>> is_snake([0b000, 0b001, 0b011, 0b111, 0b110]), is_snake([0b000, 0b001, 0b011, 0b010])
    (True, False)
    """
    return all(
        (distance == 1) if j == i + 1 else (distance >= 2)
        for i, one in enumerate(path)
        for j, other in enumerate(path[i + 1 :], i + 1)
        for distance in [(one ^ other).bit_count()]
    )


def snake(steps: int) -> list[int]:
    """The policies on a longest snake; that it is one is verified.

    >>> [len(snake(steps)) - 1 for steps in (3, 4, 6, 7)]
    [4, 7, 26, 50]
    """
    if not 1 <= steps <= max(STORED):
        raise ConfigurationError(f"no longest snake is known here for T = {steps}: take T from 1 to {max(STORED)}")
    path = list(accumulate(map(int, STORED[steps]), lambda corner, step: corner ^ (1 << step), initial=0))
    if not (is_snake(path) and max(path) < 1 << steps):
        raise AssertionError(f"the path for T = {steps} comes next to itself")
    return path


# --- losses and descent -----------------------------------------------------------------------------------------------


def snake_losses(path: Sequence[int], steps: int) -> np.ndarray:
    """The construction of Theorem 4: the loss of every policy, falling along the path, and 1 elsewhere.

    >>> snake_losses(snake(2), 2).round(2).tolist()
    [0.67, 0.33, 1.0, 0.0]
    """
    losses = np.ones(1 << steps)
    losses[list(path)] = np.arange(len(path) - 1, -1, -1) / len(path)
    return losses


def hamming_losses(target: int, steps: int) -> np.ndarray:
    """The share of decisions that differ from those of a target."""
    return np.array([(policy ^ target).bit_count() / steps for policy in range(1 << steps)])


def descend(losses: np.ndarray, start: int, *, together: bool = False) -> list[int]:
    """The policies that local descent goes through, from a start to a local optimum.

    By default this is the theorem's algorithm: of all one-step deviations it takes the best, while that is better. With
    `together` it is a round of Algorithm 1 with learned roll-outs and a learner that looks at this round only: every
    decision changes whose other action costs less.

    >>> losses = snake_losses(snake(3), 3)
    >>> [f"{policy:03b}" for policy in descend(losses, 0b000)]
    ['000', '001', '011', '111', '110']
    >>> len(descend(hamming_losses(0b101, 3), 0b010)), len(descend(hamming_losses(0b101, 3), 0b010, together=True))
    (4, 2)
    """
    steps = losses.size.bit_length() - 1
    path, seen = [start], {start}
    while True:
        here = path[-1]
        after = np.array([losses[here ^ (1 << step)] for step in range(steps)])
        better = np.flatnonzero(after < losses[here])
        if not better.size:
            return path
        changed = better if together else [after.argmin()]
        path.append(here ^ sum(1 << int(step) for step in changed))
        if path[-1] in seen:
            raise ConfigurationError(f"changes made together come back to policy {path[-1]}: take together=False")
        seen.add(path[-1])


def remember(losses: np.ndarray, start: int) -> list[tuple[int, int]]:
    """Algorithm 1 with a learner that weighs all rounds alike: its policies, and for how many rounds each is current.

    It takes, at each step, the action whose costs summed over all rounds are lowest (the first of equals), as
    regression of the costs does. Old rounds must be outweighed before a decision is taken back: along a snake it comes
    to the same policies in the same order, but stays with each of them longer and longer. Nothing is simulated round by
    round: costs change by the same amount while the policy stays, so a division gives the round of the next change.

    >>> remember(snake_losses(snake(3), 3), 0)
    [(0, 1), (1, 2), (3, 6), (7, 21), (6, 0)]
    """
    steps, whole = losses.size.bit_length() - 1, [Fraction(loss).limit_denominator(10**6) for loss in losses.tolist()]
    policy, lead = start, [Fraction(0)] * steps  # lead: by how much action 1 costs more so far
    lived: list[tuple[int, int]] = []
    while True:
        if all(whole[policy ^ (1 << t)] >= whole[policy] for t in range(steps)):
            return [*lived, (policy, 0)]
        slopes = [whole[policy | (1 << t)] - whole[policy & ~(1 << t)] for t in range(steps)]
        rounds = min(  # action 1 is left when its lead is no longer below 0, and taken when it is
            -(lead[t] // slopes[t]) if policy >> t & 1 else lead[t] // -slopes[t] + 1
            for t in range(steps)
            if slopes[t] and (slopes[t] > 0) == bool(policy >> t & 1)
        )
        lead = [lead[t] + rounds * slopes[t] for t in range(steps)]
        lived.append((policy, rounds))
        policy = sum(1 << t for t in range(steps) if lead[t] < 0)
