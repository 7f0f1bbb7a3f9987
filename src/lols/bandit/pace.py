"""How fast a new policy takes over from the reference: as fast as its losses allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

START, LEAST, GROWTH = 0.1, 0.01, 1.5  # steps
COMPARED = 0.05  # the share of rounds of the reference alone while it is not clear that the policy is better
ALLOWED, ROUNDS = 0.01, 1000  # the share of the reference's loss that may be lost to it, and of how many rounds at once


class SafePace:
    """In how many steps of a structure the learned policy acts, on average; in the others it is the reference.

    The policy begins with a tenth of a step. It gets more steps with every loss, as long as the rounds in which it
    acted did not lose more than `ALLOWED` of what the reference would have lost in all rounds so far, or in the first
    `ROUNDS`. If they did, and chance does not explain it, it gets fewer. The loss of the reference is that of the
    rounds in which it alone acted, which chance decides.

    >>> pace = SafePace()
    >>> for _ in range(40): pace.saw(0.5, by_reference=True, steps=3)
    >>> pace.steps
    3.0
    >>> for _ in range(20): pace.saw(1.0, by_reference=False, steps=3)
    >>> pace.steps < 1.0
    True
    """

    def __init__(self) -> None:
        self.steps, self.compared = START, COMPARED
        self.most = 1.0  # steps of the longest structure so far
        self.rounds = self.reference = 0  # all, and those in which the reference alone acted
        self.total = self.reference_total = self.squares = 0.0

    def saw(self, loss: float, *, by_reference: bool, steps: int) -> None:
        """Record the loss of a structure, and whether the reference alone made it."""
        self.rounds += 1
        self.most = max(self.most, float(steps))
        self.squares += loss * loss
        if by_reference:
            self.reference += 1
            self.reference_total += loss
        else:
            self.total += loss
        if not self.reference:
            return
        mean, acted = self.reference_total / self.reference, self.rounds - self.reference
        excess = self.total - mean * acted
        allowed = ALLOWED * mean * max(self.rounds, ROUNDS)
        noise = math.sqrt(self.variance * acted * (1.0 + acted / self.reference))
        self.compared = 0.0 if excess < -2.0 * noise else COMPARED
        if excess > allowed + noise:
            self.steps = max(self.steps / GROWTH, LEAST)
        elif excess <= allowed:
            self.steps = min(self.steps * GROWTH, self.most)

    @property
    def variance(self) -> float:
        """The variance of losses."""
        mean = (self.total + self.reference_total) / self.rounds
        return max(self.squares / self.rounds - mean * mean, 0.0)

    def state(self) -> dict[str, Any]:
        """What was seen so far, as values of JSON."""
        return dict(vars(self))

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what was seen."""
        vars(self).update(state)
