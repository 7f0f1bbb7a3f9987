"""Adaptive β: the probability, by what was measured, that the teacher completes searches better than the learner."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

RECENT = 3.0  # what the newest example weighs, compared with the mean of all: first attempts are forgotten
MEMORY = 300  # examples; the newest one never weighs less than one of this many


@dataclass
class AdaptiveBeta:
    """Running means of the losses of completions by teacher and learner on the same examples, the newest ones first.

    β is the probability that the teacher's completions are cheaper, if the mean difference is normally distributed with
    the standard error that was seen. So each of the two is chosen as often as it is likely to be the better one
    (Thompson sampling). It is 1 until there are two examples.

    >>> adaptive = AdaptiveBeta()
    >>> adaptive.beta
    1.0
    >>> adaptive.observe(np.tile([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]], (10, 1))); round(adaptive.beta, 1)
    0.4
    >>> adaptive.observe(np.tile([0.0, 2.0, 1.0], (10, 1))); adaptive.beta < 0.01
    True
    """

    teacher: float = 0.0
    learner: float = 0.0
    squares: float = 0.0  # of the differences
    weights: float = 1.0  # the sum of the squared weights of all examples: 1/n for n that weigh the same
    count: int = 0

    def observe(self, losses: np.ndarray) -> None:
        """Add the losses of a batch: columns 1 and 2 are those of completions by teacher and learner."""
        for teacher, learner in losses[:, 1:3].tolist():
            self.count += 1
            rate = max(RECENT / (self.count + RECENT - 1.0), 1.0 / MEMORY)
            self.teacher += rate * (teacher - self.teacher)
            self.learner += rate * (learner - self.learner)
            self.squares += rate * ((teacher - learner) ** 2 - self.squares)
            self.weights += rate * (rate - (2.0 - rate) * self.weights)

    @property
    def beta(self) -> float:
        """Probability of the teacher in the next roll-outs."""
        if self.weights >= 1.0:
            return 1.0
        gain = self.teacher - self.learner
        error = math.sqrt(max(self.squares - gain**2, 0.0) * self.weights / (1.0 - self.weights))
        if error == 0.0:
            return 0.5 if gain == 0.0 else float(gain < 0.0)
        return 0.5 * math.erfc(gain / (error * math.sqrt(2.0)))

    def state(self) -> dict[str, float]:
        """The state for checkpoints; JSON keeps floats exactly."""
        return asdict(self)
