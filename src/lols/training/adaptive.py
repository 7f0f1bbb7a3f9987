"""Adaptive β: the teacher completes searches until the learner has been shown to do it better."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

__all__ = ["AdaptiveBeta"]

MEMORY = 300
SURE = 2.0  # standard errors by which the learner must be better


@dataclass
class AdaptiveBeta:
    """Running means of the losses of completions by teacher and learner, over about the last 300 examples.

    β is 1 unless the learner's completions are cheaper by two standard errors of the difference, on the same examples.
    Then it is the learner's share of the sum of squared losses: a little below one half if it is a little better, near
    0 if it is much better.

    >>> adaptive = AdaptiveBeta()
    >>> adaptive.observe(np.tile([[0.0, 1.0, 3.0], [0.0, 2.0, 1.0]], (10, 1))); adaptive.beta
    1.0
    >>> adaptive.observe(np.tile([0.0, 3.0, 1.0], (200, 1))); round(adaptive.beta, 2)
    0.13
    """

    teacher: float = 0.0
    learner: float = 0.0
    count: int = 0
    squares: float = 0.0  # of the differences

    def observe(self, losses: np.ndarray) -> None:
        """Add the losses of a batch: columns 1 and 2 are those of completions by teacher and learner."""
        for teacher, learner in losses[:, 1:3].tolist():
            self.count += 1
            rate = 1.0 / min(self.count, MEMORY)
            self.teacher += rate * (teacher - self.teacher)
            self.learner += rate * (learner - self.learner)
            self.squares += rate * ((teacher - learner) ** 2 - self.squares)

    @property
    def beta(self) -> float:
        """Probability of the teacher in the next roll-outs."""
        gain = self.teacher - self.learner
        error = math.sqrt(max(self.squares - gain**2, 0.0) / max(min(self.count, MEMORY), 1))
        if gain <= SURE * error:
            return 1.0
        return self.learner**2 / (self.teacher**2 + self.learner**2)

    def state(self) -> dict[str, float]:
        """The state for checkpoints; JSON keeps floats exactly."""
        return asdict(self)
