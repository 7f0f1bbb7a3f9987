"""What a policy says that the actions of a state cost, from features that were written down."""

from __future__ import annotations

import numpy as np

from lols.bandit.desk import Features
from lols.engine.dual import Kernel
from lols.engine.scoring import add_row, decode
from lols.engine.structures import Policy
from lols.engine.table import lookup

__all__ = ["appraise"]


def appraise(policy: Policy, features: Features, legal: np.ndarray, *, compiled: bool = True) -> np.ndarray:
    """The predicted cost of each legal action; infinite for the others."""
    costs = np.zeros(legal.size, np.float32)
    columns = np.zeros(policy.stack.shape[2], np.float32)
    appraise_kernel(compiled, policy, features, legal, columns, costs)
    return costs


def _appraise(policy, features, legal, columns, costs):
    for k in range(features.ids.size):
        row = lookup(policy.shared, features.ids[k])
        if row >= 0:
            add_row(columns, policy.stack, 0, row, features.values[k])
    decode(policy.code, policy.thresholds, columns, costs)
    for a in range(legal.size):
        if not legal[a]:
            costs[a] = np.float32(np.inf)
        elif features.action_start.size > 0:
            for k in range(features.action_start[a], features.action_stop[a]):
                row = lookup(policy.single, features.action_ids[k])
                if row >= 0:
                    costs[a] += features.action_values[k] * policy.single_stack[0, row]


appraise_kernel = Kernel(_appraise)
