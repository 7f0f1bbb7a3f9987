"""Losses of scores, given the costs of actions; a score is the better, the higher it is.

Each takes scores and costs, both [state, action], and which costs are known; it returns a loss for each state. Actions
whose cost is unknown have no influence. The least cost of a state is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
SAME = 1e-6  # costs that differ by less are equal


def log_loss(scores: torch.Tensor, costs: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Minus the logarithm of the probability of the cheapest actions together, in a softmax of the scores."""
    cheapest = known & (costs <= SAME)
    return _total(scores, known) - _total(scores, cheapest)


def kl_loss(scores: torch.Tensor, costs: torch.Tensor, known: torch.Tensor, scale: float = 8.0) -> torch.Tensor:
    """The Kullback-Leibler divergence of the softmax of scores from that of minus the costs (SeaRNN).

    Costs are divided by the mean of those above 0, and multiplied by `scale`. The larger it is, the less probable are
    actions that are not the cheapest. For another one, give `functools.partial(lols.torch.losses.kl_loss, scale=20.0)`.
    """
    above = known & (costs > SAME)
    unit = (torch.where(above, costs, 0.0).sum() / above.sum().clamp(min=1)).clamp(min=SAME)
    wanted = (-scale / unit * costs).masked_fill(~known, -torch.inf).log_softmax(1)
    given = scores - _total(scores, known)[:, None]
    share = wanted.exp()
    return torch.where(known, share * (wanted.masked_fill(~known, 0.0) - given), 0.0).sum(1)


def hinge_loss(scores: torch.Tensor, costs: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """By how much an action's score plus its cost exceeds the best score of a cheapest action."""
    cheapest = known & (costs <= SAME)
    worst = (scores + costs).masked_fill(~known, -torch.inf).amax(1)
    return worst - scores.masked_fill(~cheapest, -torch.inf).amax(1)


def regression_loss(scores: torch.Tensor, costs: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """The mean squared difference of costs and minus the scores."""
    wrong = torch.where(known, scores + costs, 0.0)
    return wrong.square().sum(1) / known.sum(1).clamp(min=1)


def _total(scores: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(~chosen, -torch.inf).logsumexp(1)


LOSSES: dict[str, Loss] = {"log": log_loss, "kl": kl_loss, "hinge": hinge_loss, "regression": regression_loss}
