"""The costs that a policy predicts in states that are known by their features only: lessons, or the states of a log."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.kernel import Kernel
from lols.engine.policy import score_lesson
from lols.engine.structures import FrozenPolicy, Lessons

__all__ = ["predicted_costs"]


def score_lessons(lessons, policy, component, rows, columns, out):
    """Predict the costs of all actions in all slots of some lessons."""
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            score_lesson(policy, component, lessons.slots, slot, rows, columns, out[slot])


score_kernel = Kernel(score_lessons)


def predicted_costs(lessons: Lessons, policy: FrozenPolicy, component: int = 0, *, compiled: bool = True) -> np.ndarray:
    """The predicted costs [slot, action] of one component of a policy; 0 in slots that the lessons do not use."""
    columns, rows = np.zeros(policy.stack.shape[2], np.float32), np.zeros(lessons.widest, np.int64)
    out = np.zeros(lessons.slots.costs.shape, np.float32)
    score_kernel(compiled, lessons, policy, component, rows, columns, out)
    return out
