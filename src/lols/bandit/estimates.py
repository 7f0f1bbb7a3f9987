"""From the loss of one structure to the costs of all actions: inverse propensity, direct, doubly robust, multi-task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError

__all__ = ["ESTIMATORS", "CostEstimate", "check_estimator_name", "estimate"]

ESTIMATORS = ("ips", "direct", "dr", "mtr")


class CostEstimate(NamedTuple):
    """Costs of the actions, infinite for those that nothing is said of; and how much the example counts."""

    costs: np.ndarray
    weight: float


def check_estimator_name(name: str, reduction: str) -> None:
    """Whether there is such an estimator, and whether the learner can use it."""
    if name not in ESTIMATORS:
        raise ConfigurationError(f"unknown estimator '{name}': choose {', '.join(ESTIMATORS)}")
    if name == "mtr" and reduction != "csoaa":
        raise ConfigurationError(f"the estimator mtr says nothing of other actions: use csoaa, not {reduction}")


def estimate(
    name: str, legal: np.ndarray, action: int, chance: float, loss: float, guess: np.ndarray | None = None
) -> CostEstimate:
    """The costs of the legal actions at a state, where only the loss after one of them was seen.

    Parameters
    ----------
    name
        `"ips"`: the loss over the action's chance, and 0 for all others, as in the paper. `"direct"`: a guess for all.
        `"dr"`, doubly robust: the guess, and for the action what the guess was off by, over its chance. `"mtr"`,
        multi-task regression: the loss for the action only, and the example counts the more, the rarer it was.
    legal
        The legal actions.
    action, chance
        The action that was drawn, and its probability.
    loss
        The loss of what was shown.
    guess
        What the actions seem to cost, from a regression on the losses so far.

    Examples
    --------
    >>> legal = np.array([True, True, False])
    >>> estimate("ips", legal, 1, 0.5, 0.3).costs.tolist()
    [0.0, 0.6, inf]
    >>> estimate("dr", legal, 1, 0.5, 0.3, np.array([0.2, 0.4, 0.0])).costs.round(3).tolist()
    [0.2, 0.2, inf]

    """
    costs = np.full(legal.size, np.inf)
    weight = 1.0
    if name == "mtr":
        costs[action] = loss
        weight = 1.0 / chance
    elif name == "ips":
        costs[legal] = 0.0
        costs[action] = loss / chance
    else:
        assert guess is not None
        costs[legal] = guess[legal]
        if name == "dr":
            costs[action] += (loss - guess[action]) / chance
    return CostEstimate(costs, weight)
