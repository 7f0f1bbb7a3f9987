"""Where regret arises: by step of the trajectory, and by decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lols.certificates.deviations import Deviations
from lols.certificates.intervals import Estimate, estimates
from lols.tasks.problem import Naming

TENTHS = 10


@dataclass(frozen=True)
class StepRow:
    """A step, or a tenth of a trajectory, and its share of the regrets per example."""

    step: str
    decisions: int
    hindsight: Estimate
    in_class: Estimate


@dataclass(frozen=True)
class DecisionRow:
    """All states where one action was taken and another would have been best.

    `in_class` is the part of the hindsight regret that policies fitted on the other half of the examples avoid.
    """

    taken: str
    better: str
    decisions: int
    hindsight: Estimate
    in_class: Estimate
    share: float  # of all hindsight regret


def by_step(
    deviations: Deviations, hindsight: np.ndarray, in_class: np.ndarray, seed: int, resamples: int
) -> list[StepRow]:
    """Regrets by step, or by tenths of a trajectory if any has more than ten steps."""
    lengths = np.diff(deviations.first)
    longest = int(lengths.max(initial=0))
    if longest <= TENTHS:
        part, names = deviations.step, [str(k + 1) for k in range(longest)]
    else:
        part = deviations.step * TENTHS // lengths[deviations.example]
        names = [f"{100 * k // TENTHS}-{100 * (k + 1) // TENTHS} %" for k in range(TENTHS)]
    rows = _estimated(deviations, [part == k for k in range(len(names))], hindsight, in_class, seed, resamples)
    return [StepRow(name, *row) for name, row in zip(names, rows, strict=True)]


def by_decision(
    deviations: Deviations,
    taken: np.ndarray,
    better: np.ndarray,
    hindsight: np.ndarray,
    in_class: np.ndarray,
    naming: Naming,
    top: int,
    seed: int,
    resamples: int,
) -> list[DecisionRow]:
    """The pairs of an action taken and a better one with the largest total regret, the worst first."""
    wrong = np.flatnonzero(hindsight > 0.0)
    if wrong.size == 0 or top == 0:
        return []
    places = np.zeros(taken.size, np.int64) if naming.places is None else naming.places(deviations, taken)
    pairs, group = np.unique(
        np.stack([places[wrong], taken[wrong], better[wrong]], axis=1), axis=0, return_inverse=True
    )
    group = group.reshape(-1)
    sums = np.bincount(group, weights=hindsight[wrong])
    worst = np.argsort(-sums, kind="stable")[:top]
    masks = [np.isin(np.arange(taken.size), wrong[group == k]) for k in worst]
    regrets = _estimated(deviations, masks, hindsight, in_class, seed, resamples)
    total = float(sums.sum())
    rows = []
    for k, row in zip(worst, regrets, strict=True):
        place, did, best = pairs[k].tolist()
        share = float(sums[k]) / total
        rows.append(DecisionRow(naming.name(place, did), naming.name(place, best), *row, share))
    return rows


def _estimated(
    deviations: Deviations,
    masks: Sequence[np.ndarray],
    hindsight: np.ndarray,
    in_class: np.ndarray,
    seed: int,
    resamples: int,
) -> list[tuple[int, Estimate, Estimate]]:
    """The size of each set of states, and its share of both regrets per example."""
    columns = [deviations.by_example(values * mask) for mask in masks for values in (hindsight, in_class)]
    means = estimates(columns, seed, resamples)
    return [(int(mask.sum()), means[2 * k], means[2 * k + 1]) for k, mask in enumerate(masks)]
