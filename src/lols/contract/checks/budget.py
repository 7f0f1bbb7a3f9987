"""How much a check may do. Work is counted rather than timed, so that one seed gives the same findings anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from lols.contract.checks.guards import WORK

__all__ = ["Budget", "Pace", "SpentError"]

# A unit of work is a read or write of a guarded array, which is what functions under guard spend their time on; a call
# counts as some of them. Seconds would be simpler, but then a busy machine would find other mistakes than an idle one.
# Common machines do more in a second than this, so that the clock seldom has a say.
WORK_PER_SECOND = 1_300_000

# Walks that come one after the other look at the same steps, for keys are compared between states of one step; after
# these many, the steps in between have their turn. The golden ratio spreads any number of turns evenly.
TURNS = 3
GOLDEN_RATIO = 0.6180339887498949


class SpentError(BaseException):
    """All time or work is spent. Not an `Exception`: what handles mistakes of the functions must let it through."""


class Budget:
    """What a check may do within some seconds, by work and by the clock.

    What is looked at is planned by work alone, and a plan that fits seldom takes half of the time. The clock is for
    functions that are slow in a way that cannot be counted; it has no say in the first half.
    """

    def __init__(self, seconds: float, work: float | None = None):
        self.seconds, self.work = seconds, seconds * WORK_PER_SECOND if work is None else work
        self.begin, self.work_before = monotonic(), WORK[0]

    @property
    def work_done(self) -> int:
        """The work since the beginning."""
        return WORK[0] - self.work_before

    @property
    def used(self) -> float:
        """The part that is used, by the work or the clock, whichever is more."""
        return max(self.work_done / (2 * self.work), (monotonic() - self.begin) / self.seconds)

    def behind(self, done: float) -> bool:
        """Whether more than half is used, and of the second half more than the part that is done."""
        return self.used > 0.5 + 0.5 * done

    def stop_if_spent(self) -> None:
        """Raise a `SpentError` when all is used."""
        if self.used >= 1.0:
            raise SpentError


@dataclass(frozen=True)
class Pace:
    """How closely the walks through one example look: one in `stride` states from all sides, and both ends."""

    budget: Budget
    stride: float = 1.0
    sampled: bool = False

    def due(self, step: int, walk: int = 0) -> bool:
        """Whether this walk looks at the state of a step from all sides.

        >>> pace = Pace(Budget(1.0), stride=4.0)
        >>> [[step for step in range(12) if pace.due(step, walk)] for walk in (0, 1, 3)]
        [[0, 4, 8], [0, 4, 8], [0, 2, 6, 10]]
        """
        shift = (walk // TURNS * GOLDEN_RATIO) % 1.0 * self.stride
        return step == 0 or (step + shift) % self.stride < 1.0
