"""The results of simulations: losses by round, means and intervals over seeds, and the curve to plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.training.t_distribution import t_quantile

POINTS = 50  # the most points of a curve
FEW, LEAST = 10, 100  # the fewest points, and the rounds that each further one needs
LAST = 10  # the final loss is over the last rounds: one in this many
SURE = 0.95  # the confidence of intervals


@dataclass(frozen=True)
class Outcome:
    """The result of one seed.

    `held_out` has mean losses on held-out objects, by the source of the outputs: `random`, `reference`, `policy` (the
    bandit's last one, without exploration) and, if available, `full_information` and `optimum`.
    """

    world: str
    seed: int
    losses: np.ndarray  # of the bandit, by round
    reference: np.ndarray  # of the reference for the same objects
    random: np.ndarray  # of random outputs for the same objects
    guard_margin: float  # the largest excess over all n of losses over the reference's + the sum of epsilon + 3 sqrt(n)
    held_out: Mapping[str, float]
    held_out_objects: int
    report: Mapping[str, Any]  # the bandit's report

    def figures(self) -> dict[str, float | None]:
        """The figures to compare."""
        held, last = self.held_out, max(1, self.losses.size // LAST)
        return {
            "random_loss": float(self.random.mean()),
            "reference_loss": float(self.reference.mean()),
            "full_information_loss": held.get("full_information"),
            "final_loss": float(self.losses[-last:].mean()),
            "final_reference_loss": float(self.reference[-last:].mean()),
            "total_loss": float(self.losses.sum()),
            "mean_loss": float(self.losses.mean()),
            "policy_loss": held["policy"],
            "optimum_loss": held.get("optimum"),
            "gap_closed": self.gap_closed,
            **{f"held_out_{name}_loss": held[name] for name in ("random", "reference")},
        }

    @property
    def gap_closed(self) -> float | None:
        """The part of the gap between reference and full information that the policy has closed; None without a gap."""
        if "full_information" not in self.held_out:
            return None
        gap = self.held_out["reference"] - self.held_out["full_information"]
        return (self.held_out["reference"] - self.held_out["policy"]) / gap if gap > 0.0 else None


def windows(rounds: int) -> np.ndarray:
    """The bounds of windows with about the same number of rounds.

    >>> windows(50).tolist()
    [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    >>> [windows(n).size - 1 for n in (3, 2000, 20000)]
    [3, 20, 50]
    """
    count = min(rounds, POINTS, max(FEW, rounds // LEAST))
    return np.round(np.linspace(0, rounds, count + 1)).astype(np.int64)


def interval(values: Sequence[float] | np.ndarray) -> float | None:
    """Half the width of the 95 % confidence interval of the mean (Student's t).

    >>> round(interval([0.5, 0.6, 0.7]), 3), interval([0.5])
    (0.248, None)
    """
    if len(values) < 2:
        return None
    quantile = t_quantile(len(values) - 1, 0.5 + SURE / 2)
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def summarise(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Means over seeds, half the widths of their intervals, the curve, and the figures of each seed, as JSON.

    Parameters
    ----------
    outcomes
        What `simulate` returned, one for each seed.

    Examples
    --------
    >>> outcomes = [
    ...     Outcome("layout", seed, np.full(20, 0.5 + seed / 10), np.full(20, 0.6), np.full(20, 0.8), -1.0,
    ...             {"random": 0.8, "reference": 0.6, "policy": 0.5, "full_information": 0.4}, 7, {})
    ...     for seed in (0, 1)
    ... ]
    >>> result = summarise(outcomes)
    >>> round(result["final_loss"], 3), round(result["total_loss"], 3), round(result["gap_closed"], 3)
    (0.55, 11.0, 0.5)

    """
    first = outcomes[0]
    seeds = [outcome.figures() for outcome in outcomes]
    means, intervals = dict[str, float | None](), dict[str, float | None]()
    for name in seeds[0]:
        values = [value for figures in seeds if (value := figures[name]) is not None]
        means[name] = float(np.mean(values)) if len(values) == len(seeds) else None
        intervals[name] = interval(values) if len(values) == len(seeds) else None
    return {
        "world": first.world,
        "rounds": int(first.losses.size),
        "held_out_objects": first.held_out_objects,
        "seeds": [outcome.seed for outcome in outcomes],
        **means,
        "intervals": intervals,
        "curve": _curve(outcomes),
        "by_seed": [
            {"seed": outcome.seed, **figures, "guard_margin": outcome.guard_margin, "report": dict(outcome.report)}
            for outcome, figures in zip(outcomes, seeds)
        ],
    }


def _curve(outcomes: Sequence[Outcome]) -> dict[str, list[float]]:
    """Losses by window and cumulative, and half the widths of intervals over seeds (0 for one seed)."""
    edges = windows(outcomes[0].losses.size)
    curve: dict[str, list[float]] = {"rounds": edges[1:].tolist()}
    for name, all_losses in (("loss", [o.losses for o in outcomes]), ("reference", [o.reference for o in outcomes])):
        sums = np.array([np.add.reduceat(losses, edges[:-1]) for losses in all_losses])
        by_window = sums / np.diff(edges)
        curve[name] = by_window.mean(axis=0).tolist()
        curve[f"{name}_interval"] = [interval(column) or 0.0 for column in by_window.T]
        curve[f"{name}_so_far"] = (sums.cumsum(axis=1) / edges[1:]).mean(axis=0).tolist()
    return curve
