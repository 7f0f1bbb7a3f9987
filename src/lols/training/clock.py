"""Time without compilation: that a run was the first one says nothing about how fast the work is."""

from __future__ import annotations

import time


class Clock:
    """Counts the seconds since it was made, and those of them that went into compilation."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), _compile_seconds()

    def total(self) -> float:
        """All seconds."""
        return time.perf_counter() - self._began

    def compiling(self) -> float:
        """The seconds of compilation."""
        return _compile_seconds() - self._compiled

    def working(self, reading: float = 0.0) -> float:
        """All others, less those of reading; never quite none."""
        return max(self.total() - self.compiling() - reading, 1e-9)

    def facts(self, reading: float) -> dict[str, float]:
        """What a command reports."""
        return {"seconds_reading": reading, "seconds_compiling": self.compiling(), "seconds_total": self.total()}


def _compile_seconds() -> float:
    from lols.kernels.kernel import compile_seconds

    return compile_seconds()
