"""The time that an optimisation has, and what it says while it lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from lols.kernels.kernel import compile_seconds
from lols.training.progress import Progress, on_terminal

OFTEN, RARELY = 5.0, 30.0  # seconds between the lines of one training, on a terminal and elsewhere


class OutOfTime(Exception):
    """A training has taken much longer than was planned for it."""


class TimeBudget:
    """A clock that stands still while something is compiled.

    >>> budget = TimeBudget(60.0)
    >>> 0.0 <= budget.spent() < 1.0, budget.left() > 59.0
    (True, True)
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._began, self._compiled = time.perf_counter(), compile_seconds()

    def compiling(self) -> float:
        """Seconds that went into compiling."""
        return compile_seconds() - self._compiled

    def total(self) -> float:
        """Seconds so far, with those of compiling."""
        return time.perf_counter() - self._began

    def spent(self) -> float:
        """Seconds that count."""
        return self.total() - self.compiling()

    def left(self) -> float:
        """Seconds that are left."""
        return max(self.seconds - self.spent(), 0.0)

    def timed(self, work: Callable[[], Any]) -> float:
        """How long it takes, without compiling."""
        began = self.spent()
        work()
        return self.spent() - began


class Lines:
    """What is said while an optimisation lasts: each line with the seconds that were spent of all."""

    def __init__(self, wanted: bool | None, budget: TimeBudget):
        terminal = on_terminal()
        self.wanted = (terminal if wanted is None else bool(wanted)) and sys.stderr is not None
        self.pause = OFTEN if terminal else RARELY
        self._budget, self._said = budget, budget.total()

    def say(self, text: str) -> None:
        """Print a line."""
        self._said = self._budget.total()
        if self.wanted:
            seconds = f"{self._budget.spent():.0f} of {self._budget.seconds:.3g} s"
            print(f"{seconds:>12}  {text}", file=sys.stderr, flush=True)

    def whisper(self, text: str) -> None:
        """Print a line if nothing was said for a while."""
        if self._budget.total() - self._said >= self.pause:
            self.say(f"  {text}")


class Watch(Progress):
    """Follows a training: says now and then how far it is, and ends it if it takes far too long."""

    def __init__(self, name: str, budget: TimeBudget, lines: Lines, until: float):
        super().__init__(False, 0, name)
        self._name, self._budget, self._lines, self._until = name, budget, lines, until

    def advance(self, done: int, *, loss: float) -> None:
        """Called after every batch."""
        self._lines.whisper(f"{self._name}: learning, loss {loss:.4g} so far")
        if self._budget.spent() > self._until:
            raise OutOfTime
