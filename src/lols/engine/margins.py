"""The hinge's margins: which pair of actions violates one most, and which states have them all."""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import apart, dual

__all__ = ["passed_over", "worst_violation"]


@apart
@dual
def worst_violation(costs, predicted, margin):
    """The best-liked cheapest action, the worst violator, and by how much the margin between them is too small.

    A negative margin means one as wide as the difference in cost. Actions that were not evaluated cost infinity.
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


@apart
@dual
def passed_over(plan, costs, predicted, bits, view):
    """Whether the policy that rolled in has a state so right that learning from it would change nothing.

    What `worst_violation` says, without branches: this is asked of every state. The cheapest actions cost 0. `bits` is
    the memory of `predicted`.
    """
    if not np.isfinite(plan.slack):
        return False
    fine = True
    for a in range(predicted.size):
        fine &= np.isfinite(predicted[a])
    if not fine:  # nobody asked, or the weights ran away, which the learner will report
        return False
    if plan.margin < 0.0 or costs.size < 2:
        return worst_violation(costs, predicted, plan.margin)[2] < -plan.slack
    most = np.int32(2147483647)
    good, bad = most, most
    for a in range(costs.size):
        ordered = bits[a] ^ ((bits[a] >> np.int32(31)) & most)
        good = min(good, ordered if costs[a] == 0.0 else most)
        bad = min(bad, ordered if costs[a] > 0.0 and costs[a] < np.inf else most)
    if bad == most:
        return True
    view.bits[0] = good ^ ((good >> np.int32(31)) & most)
    view.bits[1] = bad ^ ((bad >> np.int32(31)) & most)
    return view.costs[0] + (np.float32(plan.margin) - view.costs[1]) < -plan.slack
