"""Estimates of the costs of all actions, from the loss of one structure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError

ESTIMATORS = ("ips", "direct", "dr", "mtr", "all")


class CostEstimate(NamedTuple):
    """Costs of the actions, infinite where there is no estimate; and the weight of the example."""

    costs: np.ndarray
    weight: float


def check_estimator_name(name: str, reduction: str) -> None:
    """Check that an estimator exists, and that the learner can use it."""
    if name not in ESTIMATORS:
        raise ConfigurationError(f"unknown estimator '{name}': choose {', '.join(ESTIMATORS)}")
    if name in ("mtr", "all") and reduction != "csoaa":
        raise ConfigurationError(f"the estimator {name} gives a cost for one action only: use csoaa, not {reduction}")


def estimate(
    name: str, legal: np.ndarray, action: int, chance: float, loss: float, guess: np.ndarray | None = None
) -> CostEstimate:
    """Estimate the costs of the legal actions at a state from the loss after one of them.

    Parameters
    ----------
    name
        `"ips"`: the loss divided by the action's chance, and 0 for all others, as in the paper. `"direct"`: a
        regression's guess for all actions. `"dr"`, doubly robust: the guess, corrected for the action by its error
        divided by the chance. `"mtr"`, multi-task regression: the loss for the action only, weighted by 1 / chance.
    legal
        The legal actions.
    action, chance
        The action that was drawn, and its probability.
    loss
        The loss of the structure that was shown.
    guess
        The costs of the actions, predicted by a regression on the losses so far.

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
