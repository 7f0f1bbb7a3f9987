"""From weighted losses to values with intervals, and a warning if they cannot be trusted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lols.errors import LolsError
from lols.training.t_distribution import t_quantile

FEW = 30.0  # effective rounds below which an interval is unreliable
THIN = 0.01  # the same as a share of all rounds
LARGEST = 0.1  # the largest acceptable share of one round in all weight
SURE = 4.0  # standard errors by which the mean weight must be below 1 to conclude that actions were never tried


class Estimated(NamedTuple):
    """An estimated value with a confidence interval.

    The interval is clipped to the range of losses; the value by inverse propensity may lie outside.

    Attributes
    ----------
    value
        The estimate.
    low
        The lower end of the interval.
    high
        The upper end.
    rounds
        How many rounds it is from.
    effective
        How many rounds of equal weight would say as much.
    warning
        Why it is not to be trusted, if it is not.

    Examples
    --------
    >>> print(Estimated(0.25, 0.2, 0.3, 400, 133.5, None))
    0.250 (0.200 to 0.300)

    """

    value: float
    low: float  # the ends of the confidence interval
    high: float
    rounds: int  # the number of rounds used
    effective: float  # the effective number: rounds of equal weight that give the same variance
    warning: str | None  # why it may be wrong

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class Evaluated(NamedTuple):
    """Three estimates of a target policy's loss, and the loss of the policy that made the log.

    Attributes
    ----------
    ips
        By inverse propensity scores: unbiased, noisy.
    snips
        The same divided by the mean weight: less noisy, slightly biased in short logs.
    dr
        Doubly robust: a regression's prediction, corrected by its weighted errors.
    logged
        The mean loss of the same rounds in the log.
    difference
        `dr` minus `logged`: below 0 if the target is better.
    left_out
        How many decisions have a loss but could not be used.

    """

    ips: Estimated  # inverse propensity scores: unbiased, noisy
    snips: Estimated  # the same divided by the mean weight: less noisy, slightly biased in short logs
    dr: Estimated  # doubly robust: a regression's prediction, corrected by its weighted errors
    logged: Estimated  # the mean loss of the same rounds in the log
    difference: Estimated  # `dr` minus `logged`: below 0 if the target is better
    left_out: int  # decisions that have a loss but could not be used

    @property
    def rounds(self) -> int:
        """The number of rounds used."""
        return self.logged.rounds

    @property
    def warning(self) -> str | None:
        """Why the estimates may be wrong; None if no problem was found."""
        return self.dr.warning


def summarised(
    weights: np.ndarray, losses: np.ndarray, robust: np.ndarray, left_out: int, confidence: float
) -> Evaluated:
    """The estimates from a weight, a loss and a doubly robust value for each round.

    The doubly robust estimate is a control variate: it uses the share of the regression's predictions, from none to
    all, that minimises the variance. With bad predictions it is close to inverse propensity.

    All intervals are Student's, from the influences of the rounds; for the self-normalised estimate v these are
    w (l - v) over the mean of w. The effective number of rounds, m = (sum w)² / sum w², gives the degrees of freedom.
    Rare losses may be missing from few rounds: as in Wilson's interval for proportions, the middle moves towards one
    half by a step of order 1/m, and the variance grows by 1/m². Intervals are clipped to losses from 0 to 1.

    >>> result = summarised(np.array([3.0, 0, 0, 3]), np.array([0.5, 1, 1, 0.7]), np.zeros(4), 0, 0.95)
    >>> round(result.ips.value, 3), round(result.snips.value, 3), round(result.logged.value, 3), result.snips.effective
    (0.9, 0.6, 0.8, 2.0)
    """
    count, total = losses.size, float(weights.sum())
    if not total > 0.0:
        raise LolsError(
            f"none of {count} rounds showed what this policy would show: explore more, log longer, or choose a "
            "policy closer to the one that made the log"
        )
    effective = total**2 / float(weights @ weights)
    warning = _warning(weights, effective)
    plain = weights * losses
    robust = plain + _share(plain, robust - plain) * (robust - plain)
    ratio = float(plain.sum()) / total

    def estimated(value: float, influences: np.ndarray, least: float = 0.0) -> Estimated:
        ends = _interval(value, influences, effective, confidence, least)
        return Estimated(value, *ends, count, effective, warning)

    def mean(values: np.ndarray, least: float = 0.0) -> Estimated:
        return estimated(float(values.mean()), values - values.mean(), least)

    logged = float(losses.mean())
    in_log = _interval(logged, losses - logged, float(count), confidence, 0.0)
    return Evaluated(
        ips=mean(plain),
        snips=estimated(ratio, (plain - weights * ratio) * (count / total)),
        dr=mean(robust),
        logged=Estimated(logged, *in_log, count, float(count), None),
        difference=mean(robust - losses, -logged),
        left_out=left_out,
    )


def _share(plain: np.ndarray, rest: np.ndarray) -> float:
    """The share of `rest`, whose expectation is 0, to add to the values of rounds for the least variance."""
    rest = rest - rest.mean()
    squares = float(rest @ rest)
    return min(max(-float(plain @ rest) / squares, 0.0), 1.0) if squares > 0.0 else 1.0


def _interval(
    value: float, influences: np.ndarray, effective: float, confidence: float, least: float
) -> tuple[float, float]:
    """The ends of an interval from the influences of the rounds; the value lies from `least` to `least` + 1."""
    if influences.size < 2:
        return least, least + 1.0
    count = influences.size
    variance = float(influences @ influences) / (count - 1) / count
    reach = t_quantile(max(effective - 1.0, 1.0), (1.0 + confidence) / 2.0)
    more = reach**2 / effective
    middle = (value + (least + 0.5) * more) / (1.0 + more)
    half = math.sqrt(reach**2 * variance + more**2 / 4.0)
    return tuple(min(max(end, least), least + 1.0) for end in (middle - half, middle + half))  # type: ignore[return-value]


def _warning(weights: np.ndarray, effective: float) -> str | None:
    """A problem with the overlap of the target and the policy that made the log, in one line."""
    count, total = weights.size, float(weights.sum())
    mean, error = total / count, float(weights.std()) / math.sqrt(count)
    if effective < max(FEW, THIN * count):
        return (
            f"poor overlap: {count} rounds are worth {effective:.0f} rounds of this policy itself: explore more, or "
            "log longer"
        )
    if float(weights.max()) > LARGEST * total:
        return f"poor overlap: one round has {float(weights.max()) / total:.0%} of all weight: explore more"
    # The mean weight is the chance that the target takes only actions that the exploration can take.
    if 1.0 - mean > max(THIN, SURE * error):
        return (
            f"about {1.0 - mean:.0%} of what this policy does was never tried: the estimates are biased; explore "
            "uniformly to avoid it"
        )
    return None
