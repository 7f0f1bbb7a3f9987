"""Say when Numba compiles, and how long it took: a cold start must not look like a hang."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from numba.core import event

__all__ = ["compile_seconds"]


class _Announcer(event.Listener):  # type: ignore[misc]
    """Counts the seconds of outermost compilations and announces the first of each run of them."""

    def __init__(self) -> None:
        self.depth = 0
        self.began = 0.0
        self.seconds = 0.0
        self.announced = False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
            if not self.announced and _wanted():
                print(
                    "lols: compiling the search space (first run only; `lols warmup` does it ahead) ...",
                    file=sys.stderr,
                )
                self.announced = True
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began


def _wanted() -> bool:
    forced = os.environ.get("LOLS_ANNOUNCE")
    return forced == "1" if forced else sys.stderr.isatty() or "ipykernel" in sys.modules


_ANNOUNCER = _Announcer()
event.register("numba:compile", _ANNOUNCER)


def compile_seconds() -> float:
    """Seconds that this process has spent compiling so far."""
    return _ANNOUNCER.seconds
