"""How much a check may do. Work is counted rather than timed, so that one seed gives the same findings everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from lols.contract.checks.guards import WORK, SpentError

# A unit of work is a read or write of a guarded array, where the functions spend most of their time; a call counts as
# several units. Seconds would be simpler, but then a busy machine would find other mistakes than an idle one. Common
# machines do more than this in a second, so that the clock rarely matters.
WORK_PER_SECOND = 1_300_000

# This many consecutive walks examine the same steps, because keys are compared between states of one step; then the
# steps are shifted. The golden ratio spreads any number of shifts evenly.
TURNS = 3
GOLDEN_RATIO = 0.6180339887498949


class Budget:
    """The work and the time that a check may take.

    The plan follows from the work alone, and usually takes less than half of the time. The clock is for functions that
    are slow in a way that cannot be counted; it is ignored in the first half.
    """

    def __init__(self, seconds: float, work: float | None = None):
        self.seconds, self.work = seconds, seconds * WORK_PER_SECOND if work is None else work
        self.begin, self.work_before = monotonic(), WORK[0]

    @property
    def work_done(self) -> int:
        """The work since the start."""
        return WORK[0] - self.work_before

    @property
    def used(self) -> float:
        """The share that is used up, of the work or of the time, whichever is more."""
        return max(self.work_done / (2 * self.work), (monotonic() - self.begin) / self.seconds)

    def behind(self, done: float) -> bool:
        """Whether more than half is used up, and more of the second half than the share of the plan that is done."""
        return self.used > 0.5 + 0.5 * done

    def stop_if_spent(self) -> None:
        """Raise a `SpentError` if all is used up."""
        if self.used >= 1.0:
            raise SpentError


@dataclass(frozen=True)
class Pace:
    """How many states of the walks through one example are examined: one in `stride`, and both ends."""

    budget: Budget
    stride: float = 1.0
    sampled: bool = False

    def due(self, step: int, walk: int = 0) -> bool:
        """Whether this walk examines the state of a step.

        >>> pace = Pace(Budget(1.0), stride=4.0)
        >>> [[step for step in range(12) if pace.due(step, walk)] for walk in (0, 1, 3)]
        [[0, 4, 8], [0, 4, 8], [0, 2, 6, 10]]
        """
        shift = (walk // TURNS * GOLDEN_RATIO) % 1.0 * self.stride
        return step == 0 or (step + shift) % self.stride < 1.0
