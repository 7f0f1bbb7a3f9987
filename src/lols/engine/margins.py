"""Margins of the hinge: the pair of actions that violates one most, and the states where none is violated."""

from __future__ import annotations

import numpy as np

from lols.engine.ordering import MOST_32, SIGN_32, ordered
from lols.kernels.dual import dual


@dual
def worst_violation(costs, predicted, margin):
    """The cheapest action of least predicted cost, the worst violator, and how much the margin between them lacks.

    A negative margin stands for one as wide as the difference in cost. Actions that were not evaluated cost infinity.
    """
    least = np.float32(np.inf)
    for a in range(costs.size):
        least = min(least, costs[a])
    good, bad, most = -1, -1, np.float32(-np.inf)
    for a in range(costs.size):
        if not np.isfinite(costs[a]):
            continue
        if costs[a] <= least:
            if good < 0 or predicted[a] < predicted[good]:
                good = a
        else:
            wanted = np.float32(margin) if margin >= 0.0 else costs[a] - least
            if bad < 0 or wanted - predicted[a] > most:
                bad, most = a, wanted - predicted[a]
    return good, bad, predicted[good] + most if bad >= 0 else np.float32(-np.inf)


@dual
def passed_over(plan, costs, predicted, bits, view):
    """Whether the policy that rolled in satisfies the margins of a state by so much that it need not be learned from.

    The same as `worst_violation`, without branches, because every state is tested. The cheapest actions cost 0. `bits`
    are the bits of `predicted`.
    """
    if not np.isfinite(plan.slack):
        return False
    fine = True
    for a in range(predicted.size):
        fine &= np.isfinite(predicted[a])
    if not fine:  # the policy was not asked, or its weights have diverged, which the learner reports
        return False
    if plan.margin < 0.0 or costs.size < 2:
        return worst_violation(costs, predicted, plan.margin)[2] < -plan.slack
    good, bad = MOST_32, MOST_32
    for a in range(costs.size):
        integer = ordered(bits[a], SIGN_32, MOST_32)
        good = min(good, integer if costs[a] == 0.0 else MOST_32)
        bad = min(bad, integer if costs[a] > 0.0 and costs[a] < np.inf else MOST_32)
    if bad == MOST_32:
        return True
    view.bits[0] = ordered(good, SIGN_32, MOST_32)
    view.bits[1] = ordered(bad, SIGN_32, MOST_32)
    return view.costs[0] + (np.float32(plan.margin) - view.costs[1]) < -plan.slack
