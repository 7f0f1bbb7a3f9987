"""Calibrated confidence: from predicted costs to the probability that a decision is right, fitted on held-out data.

The raw confidence in a decision is its share in a softmax of the predicted costs. A temperature makes these shares
likely on held-out decisions, and a rising line through a few points says what part of them was right, by isotonic
regression. A model file keeps these few numbers.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from lols.errors import ConfigurationError

BINS = 15  # of a reliability diagram, equally wide
MOST_KNOTS = 30
EACH = 100  # decisions of a knot, at least; with fewer than three knots the shares stay as they are
FEWEST = 30  # decisions that a model is calibrated with later on
MOST_JUDGED = 1 << 16  # decisions that a calibration is fitted to
MOST_CELLS = 1 << 25  # of their costs
MOST_NUMBERS = 1 << 20  # that a model file may hold
MOST_SHARP = 1e100  # what a file may multiply or divide costs by: far more than any fit comes to
NOTHING = np.zeros(0)


class Judged(NamedTuple):
    """Decisions on held-out data: what they seemed to cost, and whether they were right."""

    costs: np.ndarray  # [decision, action]: infinite for what was not allowed
    taken: np.ndarray  # [decision]
    right: np.ndarray  # [decision]
    true: np.ndarray | None = None  # [decision]: the right action, where others may be taken because mistakes differ


def together(found: Sequence[Judged]) -> Judged:
    """Several lots of decisions as one."""
    true = None if found[0].true is None else np.concatenate([each.true for each in found if each.true is not None])
    costs, taken, right = (np.concatenate([each[k] for each in found]) for k in range(3))
    return Judged(costs, taken, right, true)


@dataclass(frozen=True)
class Calibration:
    """How predicted costs become probabilities.

    Parameters
    ----------
    temperature
        What costs are divided by.
    knots
        Shares of a softmax, in rising order. Empty: the shares are probabilities as they are.
    values
        For each knot, the part of such decisions that was right; it rises, too.
    source
        The data that it was fitted to: `"dev data"`, `"held-out data"` or `"given data"`.
    decisions
        How many there were.
    bias
        What is added for each action before the softmax, or nothing.

    Examples
    --------
    >>> made = Calibration(0.5, np.array([0.5, 1.0]), np.array([0.4, 0.9]))
    >>> made.confidence(np.array([0.3, 0.75, 1.0])).round(3).tolist()
    [0.4, 0.65, 0.9]
    >>> made.probabilities(np.array([[0.0, 9.0, 9.0]])).round(3).tolist()
    [[0.9, 0.05, 0.05]]

    """

    temperature: float
    knots: np.ndarray = field(default_factory=lambda: NOTHING)
    values: np.ndarray = field(default_factory=lambda: NOTHING)
    source: str = "given data"
    decisions: int = 0
    bias: np.ndarray = field(default_factory=lambda: NOTHING)

    def shares(self, costs: np.ndarray) -> np.ndarray:
        """A softmax of costs `[decision, action]`: the cheaper, the larger the share; none for what is not allowed."""
        if costs.shape[0] == 0:
            return np.zeros(costs.shape)
        logits = costs.astype(np.float64) / -self.temperature
        if self.bias.size:
            logits = logits + self.bias
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        made: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
        return made

    def confidence(self, shares: np.ndarray) -> np.ndarray:
        """The probability that decisions with these shares are right.

        Parameters
        ----------
        shares
            The share of each decision in the softmax of predicted costs.

        """
        return np.interp(shares, self.knots, self.values) if self.knots.size else shares

    def confidence_in(self, judged: Judged) -> np.ndarray:
        """The probability of each of these decisions to be right."""
        return self.confidence(self.shares(judged.costs)[np.arange(judged.taken.size), judged.taken])

    def probabilities(self, costs: np.ndarray, taken: np.ndarray | None = None) -> np.ndarray:
        """The probability of each action; that of the action `taken` is its confidence, by default of the cheapest.

        The others share the rest. Without a bias, the action taken is never less probable than another.

        Parameters
        ----------
        costs
            Predicted costs, `[decision, action]`.
        taken
            The action that was taken in each decision.

        """
        made = self.shares(costs)
        if made.shape[1] < 2 or not self.knots.size:
            return made
        rows = np.arange(made.shape[0])
        taken = costs.argmin(axis=1) if taken is None else taken
        share = made[rows, taken]
        sure = self.confidence(share)
        made[rows, taken] = 0.0
        none = share >= 1.0  # the others are equally improbable
        made[none] = np.isfinite(costs[none])
        made[rows, taken] = 0.0
        rest = made.sum(axis=1)
        rest[rest == 0.0] = np.inf  # there was no choice
        made /= rest[:, np.newaxis]
        if not self.bias.size:
            most = made.max(axis=1)
            sure = np.maximum(sure, most / (1.0 + most))
        sure = np.where(np.isinf(rest), 1.0, sure)
        made *= (1.0 - sure)[:, np.newaxis]
        made[rows, taken] = sure
        return made

    # --- model files ---

    def describe(self) -> dict[str, Any]:
        """Plain values, for model files."""
        arrays = {name: getattr(self, name).tolist() for name in ("knots", "values", "bias")}
        return {"temperature": self.temperature, "source": self.source, "decisions": self.decisions, **arrays}

    @classmethod
    def from_description(cls, facts: Mapping[str, Any], actions: int | None) -> Self:
        """What `describe` described, for this many actions; damage is a `ValueError`."""
        temperature, source, decisions = float(facts["temperature"]), facts["source"], facts["decisions"]
        finite = 1.0 / MOST_SHARP <= temperature <= MOST_SHARP
        if not finite or not isinstance(source, str) or type(decisions) is not int:
            raise ValueError("the calibration is damaged")
        arrays = []
        for name in ("knots", "values", "bias"):
            given = facts[name]
            if not isinstance(given, list) or len(given) > MOST_NUMBERS:
                raise ValueError(f"the {name} of the calibration are not a list of numbers")
            arrays.append(np.array(given, np.float64))
            if arrays[-1].ndim != 1 or not np.isfinite(arrays[-1]).all():
                raise ValueError(f"the {name} of the calibration are not a list of numbers")
        knots, values, bias = arrays
        rising = (np.diff(knots) > 0.0).all() and (np.diff(values) >= 0.0).all()
        within = not values.size or 0.0 <= values[0] <= values[-1] <= 1.0
        biased = not bias.size or (bias.size == actions and np.abs(bias).max() <= MOST_SHARP)
        if knots.size != values.size or not rising or not within or not biased:
            raise ValueError("the calibration is damaged")
        return cls(temperature, knots, values, source, decisions, bias)


# --- fitting ----------------------------------------------------------------------------------------------------------


def most_judged(actions: int) -> int:
    """How many decisions a calibration is fitted to: many, but their costs must fit into memory."""
    return max(1000, min(MOST_JUDGED, MOST_CELLS // max(actions, 1)))


def fit_calibration(judged: Judged, source: str) -> Calibration:
    """The calibration that suits held-out decisions."""
    if judged.right.size == 0:
        raise ConfigurationError("there are no decisions to calibrate with: give some labelled data")
    plain = Calibration(_temperature(judged), source=source, decisions=int(judged.right.size))
    if judged.true is not None:
        plain = _with_bias(plain, judged.costs, judged.true)
    knots, values = _rising(plain.confidence_in(judged), judged.right)
    return Calibration(plain.temperature, knots, values, source, plain.decisions, plain.bias)


class Refit(NamedTuple):
    """A new calibration of a trained model, and what was seen of the old one, if there was one."""

    calibration: Calibration
    accuracy: float  # of the decisions that it was fitted to
    error_before: float | None  # the calibration error of the old one on them

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        seen = {"decisions": self.calibration.decisions, "accuracy": self.accuracy}
        return seen if self.error_before is None else seen | {"calibration_error_before": self.error_before}


class UnfitSample(ConfigurationError):
    """Data that a model cannot be calibrated with."""


def refitted(judged: Judged, before: Calibration | None) -> Refit:
    """The calibration for decisions on data that a user gives for it."""
    check_enough(judged.right.size)
    if not judged.right.any():
        count = f"none of the {judged.right.size:,} decisions agrees with the labels to calibrate with"
        raise UnfitSample(f"{count}: give data with labels, of the kind that the model predicts")
    error = None if before is None else Reliability.of(before.confidence_in(judged), judged.right).error
    return Refit(fit_calibration(judged, "given data"), float(judged.right.mean()), error)


def check_enough(decisions: int) -> None:
    """Raise an error if there are too few decisions to calibrate a model with."""
    if decisions < FEWEST:
        what = f"there are only {decisions:,} decisions" if decisions else "there are no decisions"
        raise UnfitSample(f"{what} to calibrate with: give at least {FEWEST}; some thousands are better")


def _temperature(judged: Judged) -> float:
    """The temperature under which it is likeliest that those decisions were right that were, by two grids.

    Few decisions prove nothing for certain: as Platt (1999) does, one more is taken to be right, and one to be wrong.
    """
    at, costs = np.arange(judged.taken.size), judged.costs.astype(np.float64)
    costs = costs - costs[at, judged.taken][:, np.newaxis]
    above = costs[np.isfinite(costs) & (costs > 0.0)]
    middle = float(np.median(above)) if above.size else 1.0
    count = int(judged.right.sum())
    chance = np.where(judged.right, (count + 1) / (count + 2), 1.0 / (judged.right.size - count + 2))

    def surprise(temperature: float) -> float:
        with np.errstate(over="ignore"):
            share = 1.0 / np.exp(np.minimum(-costs / temperature, 700.0)).sum(axis=1)
        sure, doubt = (np.log(np.maximum(each, 1e-6)) for each in (share, 1.0 - share))
        return float(-(chance * sure + (1.0 - chance) * doubt).mean())

    best, step = np.log(middle), np.log(1000.0) / 10
    for _ in range(2):
        options = best + step * np.arange(-10, 11)
        best = options[int(np.argmin([surprise(float(np.exp(t))) for t in options]))]
        step /= 10
    return float(np.exp(best))


class NoSciPy(ConfigurationError):
    """A calibration needs SciPy, and it is not installed."""


def _with_bias(plain: Calibration, costs: np.ndarray, true: np.ndarray) -> Calibration:
    """With another temperature, and a bias for each action: what is cheapest need not be likeliest."""
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise NoSciPy(
            "the confidence of a classifier with costs needs SciPy: pip install 'lols[sklearn]', or train without "
            "(calibrate=False, --no-calibrate)"
        ) from None
    at, count = np.arange(true.size), costs.shape[1]
    costs = costs.astype(np.float64)

    def surprise(free: np.ndarray) -> tuple[float, np.ndarray]:
        sharpness = np.exp(free[0])
        shares = Calibration(1.0 / sharpness, bias=free[1:]).shares(costs)
        off = shares.copy()
        off[at, true] -= 1.0
        value = -np.log(np.maximum(shares[at, true], 1e-12)).mean() + 1e-3 * (free[1:] ** 2).mean()
        slope = (off * -costs).sum() * sharpness / true.size
        return float(value), np.concatenate([[slope], off.mean(axis=0) + 2e-3 * free[1:] / count])

    begin = np.concatenate([[-np.log(plain.temperature)], np.zeros(count)])
    bounds = [(begin[0] - 7.0, begin[0] + 7.0)] + [(-20.0, 20.0)] * count
    found = minimize(surprise, begin, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(float(np.exp(-found[0])), source=plain.source, decisions=plain.decisions, bias=found[1:])


def _rising(shares: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line that rises with the shares, through the part of equally many decisions each that was right."""
    parts = min(MOST_KNOTS, shares.size // EACH)
    if parts < 3:
        return NOTHING, NOTHING
    order = np.array_split(np.argsort(shares, kind="stable"), parts)
    sizes = np.array([part.size for part in order])
    middle = np.array([shares[part].mean() for part in order])
    rate = np.array([(right[part].sum() + 0.5) / (part.size + 1.0) for part in order])  # nothing is quite certain
    knots, same = np.unique(middle, return_inverse=True)
    weights = np.bincount(same, weights=sizes)
    values = isotonic(np.bincount(same, weights=rate * sizes) / weights, weights)
    level = (np.diff(values, prepend=-1.0) == 0.0) & (np.diff(values, append=2.0) == 0.0)
    return knots[~level], values[~level]


def isotonic(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The numbers nearest to some rates that do not fall: neighbours that do are averaged (isotonic regression).

    >>> isotonic(np.array([0.1, 0.5, 0.3, 0.9]), np.ones(4)).round(3).tolist()
    [0.1, 0.4, 0.4, 0.9]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight and number of rates
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        mean, count = rate, 1
        while blocks and blocks[-1][0] >= mean:
            before, heavy, many = blocks.pop()
            mean, weight, count = (before * heavy + mean * weight) / (heavy + weight), heavy + weight, many + count
        blocks.append((mean, weight, count))
    return np.repeat([mean for mean, _, _ in blocks], [count for _, _, count in blocks])


def not_calibrated(what: str) -> ConfigurationError:
    """The error for a model that was asked for confidence, and has none."""
    return ConfigurationError(
        f"{what} is not calibrated, so its confidence is unknown: train with dev data or calibrate=True (--dev, "
        "--calibrate), or calibrate it with labelled data (calibrate_with, lols calibrate)"
    )


# --- how good it is ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reliability:
    """How often decisions were right, by confidence, in equally wide bins.

    Parameters
    ----------
    counts
        How many decisions are in each bin.
    sure
        The sum of their confidences.
    right
        How many of them were right.
    spread
        The variance of how many would be right if each confidence were exact.

    Examples
    --------
    >>> seen = Reliability.of(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False]))
    >>> last = seen.rows()[-1]
    >>> round(seen.error, 3), last["accuracy"]
    (0.05, 1.0)

    """

    counts: np.ndarray  # [bin]
    sure: np.ndarray  # sums of confidence
    right: np.ndarray
    spread: np.ndarray  # sums of the variances that right or wrong would have

    @classmethod
    def of(cls, confidence: np.ndarray, right: np.ndarray) -> Self:
        """What is seen on some decisions.

        Parameters
        ----------
        confidence
            The confidence of each decision.
        right
            Whether it was right.

        """
        bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        columns = (np.ones(bins.size), confidence, right, confidence * (1.0 - confidence))
        return cls(*(np.bincount(bins, weights=column, minlength=BINS) for column in columns))

    def __add__(self, other: Reliability) -> Reliability:
        pairs = ((getattr(each, name) for each in (self, other)) for name in ("counts", "sure", "right", "spread"))
        return Reliability(*(first + second for first, second in pairs))

    @property
    def error(self) -> float:
        """The expected calibration error: how far confidence is from accuracy in a bin, on average over decisions."""
        return float(np.abs(self.sure - self.right).sum() / max(self.counts.sum(), 1.0))

    @property
    def by_chance(self) -> float:
        """About the error that is to be expected even if every confidence were exact, because decisions are few."""
        each = np.minimum(2.0 * self.spread, np.sqrt(2.0 / np.pi * self.spread))  # the mean of the absolute deviation
        return float(each.sum() / max(self.counts.sum(), 1.0))

    def rows(self) -> list[dict[str, float]]:
        """Mean confidence, accuracy and number of decisions of each bin that has any."""
        return [
            {"confidence": float(s / n), "accuracy": float(r / n), "count": int(n)}
            for n, s, r in zip(self.counts, self.sure, self.right, strict=True)
            if n
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        found = {"calibration_error": self.error, "calibration_error_by_chance": self.by_chance}
        return found | {"reliability": self.rows()}


def added(parts: Iterable[Reliability | None]) -> Reliability | None:
    """What is seen on all parts; None if it is unknown of one."""
    every = list(parts)
    known = [part for part in every if part is not None]
    return functools.reduce(operator.add, known) if known and len(known) == len(every) else None
