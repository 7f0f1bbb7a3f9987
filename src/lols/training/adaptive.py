"""Adaptive β: follows whichever of teacher and learner has recently completed searches better."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

__all__ = ["AdaptiveBeta"]

MEMORY = 300


@dataclass
class AdaptiveBeta:
    """Running means of the losses of completions by teacher and learner, over about the last 300 examples.

    β is the learner's share of the sum of squared losses: one half if both are equal, near 1 if the teacher's
    completions are much cheaper, near 0 if the learner's are.

    >>> adaptive = AdaptiveBeta()
    >>> adaptive.beta
    0.5
    >>> adaptive.observe(np.array([[0.0, 1.0, 3.0]])); round(adaptive.beta, 3)
    0.9
    """

    teacher: float = 0.0
    learner: float = 0.0
    count: int = 0

    def observe(self, losses: np.ndarray) -> None:
        """Add the losses of a batch: columns 1 and 2 are those of completions by teacher and learner."""
        for teacher, learner in losses[:, 1:3].tolist():
            self.count += 1
            rate = 1.0 / min(self.count, MEMORY)
            self.teacher += rate * (teacher - self.teacher)
            self.learner += rate * (learner - self.learner)

    @property
    def beta(self) -> float:
        """Probability of the teacher in the next roll-outs."""
        teacher, learner = self.teacher**2, self.learner**2
        return learner / (teacher + learner) if teacher + learner > 0.0 else 0.5

    def state(self) -> dict[str, float]:
        """The state for checkpoints; JSON keeps floats exactly."""
        return asdict(self)
