"""From weighted losses to values with intervals, and a word on how far they can be trusted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from lols.errors import LolsError

__all__ = ["Estimated", "Evaluated", "summarised"]

FEW = 30.0  # effective rounds below which an interval is hardly one
THIN = 0.01  # the same as a share of all rounds
LARGEST = 0.1  # the most that one round should have of all weight
SURE = 4.0  # standard errors by which weights must fall short of 1 on average to say that something was never tried


class Estimated(NamedTuple):
    """A value that a log gives an estimate of.

    The interval is cut to what a loss can be; a value by inverse propensity may lie outside.

    >>> print(Estimated(0.25, 0.2, 0.3, 400, 133.5, None))
    0.250 (0.200 to 0.300)
    """

    value: float
    low: float  # the ends of the confidence interval
    high: float
    rounds: int  # of the log that it was estimated from
    effective: float  # as many rounds of equal weight would say as much
    warning: str | None  # why not to trust it

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class Evaluated(NamedTuple):
    """What a log says of a target policy, in three ways, and of the policy that logged it."""

    ips: Estimated  # inverse propensity scores: no bias, much noise
    snips: Estimated  # the same divided by the mean weight: a little bias in short logs, less noise
    dr: Estimated  # doubly robust: a regression's guess, and the weighted loss only of what it is off by
    logged: Estimated  # the mean loss of the same rounds as they were logged
    difference: Estimated  # `dr` less `logged`: below 0 where the target is better
    left_out: int  # decisions that have a loss but could not be used

    @property
    def rounds(self) -> int:
        """How many rounds of the log were used."""
        return self.logged.rounds

    @property
    def warning(self) -> str | None:
        """Why not to trust the estimates; None if nothing speaks against it."""
        return self.dr.warning


def summarised(
    weights: np.ndarray, losses: np.ndarray, robust: np.ndarray, left_out: int, confidence: float
) -> Evaluated:
    """The estimates from a weight, a loss and a doubly robust value for each round.

    The doubly robust estimate is a control variate: of a regression's guesses it uses the share, up to all of them,
    that leaves the least noise. With good guesses that is all, with bad ones little: then it is inverse propensity.

    All intervals are Student's, around a mean of the rounds' influences: what one more round like it changes. Of the
    self-normalised estimate v that is w (l - v) over the mean of w. The effective number of rounds, m = (sum w)² / sum
    w², gives the degrees of freedom. Losses that are rare may not have been met at all in few rounds: as in Wilson's
    interval for shares, the middle moves towards one half by a step of order 1/m, and the variance grows by 1/m². What
    cannot be, a loss below 0 or above 1, is cut off.

    >>> made = summarised(np.array([3.0, 0, 0, 3]), np.array([0.5, 1, 1, 0.7]), np.zeros(4), 0, 0.95)
    >>> round(made.ips.value, 3), round(made.snips.value, 3), round(made.logged.value, 3), made.snips.effective
    (0.9, 0.6, 0.8, 2.0)
    """
    count, total = losses.size, float(weights.sum())
    if not total > 0.0:
        raise LolsError(
            f"in none of {count} rounds was shown what this policy would show: explore more, log longer, or choose a "
            "policy nearer to the one that logged"
        )
    effective = total**2 / float(weights @ weights)
    warning = _warning(weights, effective)
    plain = weights * losses
    robust = plain + _share(plain, robust - plain) * (robust - plain)
    ratio = float(plain.sum()) / total

    def made(value: float, influences: np.ndarray, effective: float, warning: str | None, least: float) -> Estimated:
        ends = _interval(value, influences, effective, confidence, least)
        return Estimated(value, *ends, count, effective, warning)

    def mean(values: np.ndarray, least: float = 0.0) -> Estimated:
        return made(float(values.mean()), values - values.mean(), effective, warning, least)

    logged = float(losses.mean())
    return Evaluated(
        ips=mean(plain),
        snips=made(ratio, (plain - weights * ratio) * (count / total), effective, warning, 0.0),
        dr=mean(robust),
        logged=made(logged, losses - logged, float(count), None, 0.0),
        difference=mean(robust - losses, -logged),
        left_out=left_out,
    )


def _share(plain: np.ndarray, rest: np.ndarray) -> float:
    """How much of `rest`, whose mean is 0 but for chance, to add to the values of rounds for the least variance."""
    rest = rest - rest.mean()
    squares = float(rest @ rest)
    return min(max(-float(plain @ rest) / squares, 0.0), 1.0) if squares > 0.0 else 1.0


def _interval(
    value: float, influences: np.ndarray, effective: float, confidence: float, least: float
) -> tuple[float, float]:
    """The ends of an interval from the influences of the rounds; what is estimated lies within `least` and 1 more."""
    if influences.size < 2:
        return least, least + 1.0
    count = influences.size
    variance = float(influences @ influences) / (count - 1) / count
    reach = float(stdtrit(max(effective - 1.0, 1.0), (1.0 + confidence) / 2.0))
    more = reach**2 / effective
    middle = (value + (least + 0.5) * more) / (1.0 + more)
    half = math.sqrt(reach**2 * variance + more**2 / 4.0)
    return tuple(min(max(end, least), least + 1.0) for end in (middle - half, middle + half))  # type: ignore[return-value]


def _warning(weights: np.ndarray, effective: float) -> str | None:
    """What is wrong with the overlap of the target and the policy that logged, in one line."""
    count, total = weights.size, float(weights.sum())
    mean, error = total / count, float(weights.std()) / math.sqrt(count)
    if effective < max(FEW, THIN * count):
        return (
            f"poor overlap: {count} rounds say as much as {effective:.0f} would that this policy had shown: explore "
            "more, or log longer"
        )
    if float(weights.max()) > LARGEST * total:
        return f"poor overlap: one round has {float(weights.max()) / total:.0%} of all weight: explore more"
    # The mean weight is the chance that the target stays where the exploration goes.
    if 1.0 - mean > max(THIN, SURE * error):
        return (
            f"about {1.0 - mean:.0%} of what this policy does was never tried: the estimates are biased, "
            "explore uniformly to mend it"
        )
    return None
