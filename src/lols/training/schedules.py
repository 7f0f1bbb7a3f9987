"""Schedules of β over rounds: constant, linear, geometric. (`"auto"` is not a schedule: see `adaptive`.)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lols.errors import ConfigurationError


@dataclass(frozen=True)
class Constant:
    """The same β in every round.

    Parameters
    ----------
    value
        That β.

    """

    value: float

    def __call__(self, rounds: np.ndarray, total: int) -> np.ndarray:
        """β for each of the given rounds, out of `total`."""
        return np.full(rounds.size, self.value)

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True)
class LinearSchedule:
    """From `start` in the first round to `end` in the last.

    Parameters
    ----------
    start
        β in the first round.
    end
        β in the last round.

    Examples
    --------
    >>> LinearSchedule(1.0, 0.0)(np.array([0, 5, 10]), 11).tolist()
    [1.0, 0.5, 0.0]

    """

    start: float
    end: float

    def __call__(self, rounds: np.ndarray, total: int) -> np.ndarray:
        """β for each of the given rounds, out of `total`."""
        return self.start + (self.end - self.start) * np.minimum(rounds / max(total - 1, 1), 1.0)

    def __str__(self) -> str:
        return f"linear:{self.start:g}:{self.end:g}"


@dataclass(frozen=True)
class Geometric:
    """(1 - alpha)**t after t rounds: the reference fades out, as in Searn and in Vowpal Wabbit.

    Parameters
    ----------
    alpha
        The share of β that each round takes away.

    """

    alpha: float

    def __call__(self, rounds: np.ndarray, total: int) -> np.ndarray:
        """β for each of the given rounds, out of `total`."""
        return (1.0 - self.alpha) ** rounds

    def __str__(self) -> str:
        return f"geometric:{self.alpha:g}"


Schedule = Constant | LinearSchedule | Geometric

Linear = LinearSchedule  # its name in 0.2


def schedule(value: float | str | Schedule) -> Schedule:
    """Read a schedule: a number, `"linear:FROM:TO"`, `"geometric:ALPHA"`, or a schedule itself.

    >>> schedule("linear:1:0"), schedule(0.5)
    (LinearSchedule(start=1.0, end=0.0), Constant(value=0.5))
    """
    if isinstance(value, Constant | LinearSchedule | Geometric):
        return value
    name, *numbers = str(value).split(":")
    try:
        if name == "linear":
            parsed: Schedule = LinearSchedule(*(float(n) for n in numbers))
        elif name == "geometric":
            parsed = Geometric(*(float(n) for n in numbers))
        else:
            parsed = Constant(float(name))
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"cannot read beta '{value}': give a number in [0, 1], 'auto', 'linear:FROM:TO' or 'geometric:ALPHA'"
        ) from None
    ends = parsed(np.array([0, 1]), 2)
    if not ((ends >= 0.0) & (ends <= 1.0)).all():
        raise ConfigurationError(f"beta '{value}' leaves [0, 1]: it is the probability of the reference")
    return parsed
