"""The costs that a policy predicts in states that are known by their features only: lessons, or the states of a log."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.kernel import Kernel
from lols.engine.policy import score_lesson
from lols.engine.structures import FrozenPolicy, Lessons


def score_lessons(lessons, policy, component, rows, columns, out):
    """Predict the costs of all actions in all slots of some lessons."""
    for b in range(lessons.first.size):
        for slot in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
            score_lesson(policy, component, lessons.slots, slot, rows, columns, out[slot])


score_kernel = Kernel(score_lessons)


def predicted_costs(lessons: Lessons, policy: FrozenPolicy, component: int = 0, *, compiled: bool = True) -> np.ndarray:
    """The predicted costs [slot, action] of one component of a policy; 0 in slots that the lessons do not use."""
    out = np.zeros_like(lessons.slots.costs, np.float32)
    # With any number of actions, a policy has no weights of states, and a column of zeros for each action will do.
    any_number = policy.stack.shape[2] == 1 and policy.thresholds == 0
    columns = np.zeros(out.shape[1] if any_number else policy.stack.shape[2], np.float32)
    rows = np.zeros(lessons.widest, np.int64)
    score_kernel(compiled, lessons, policy, component, rows, columns, out)
    return out
