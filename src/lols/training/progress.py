"""A progress bar, shown on terminals only."""

from __future__ import annotations

import sys
import time
from typing import Any


def on_terminal() -> bool:
    """Whether standard error is a terminal; it may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Shows progress, speed, the progressive loss and a note; costs nothing if it is off."""

    def __init__(self, wanted: bool | None, total: int, title: str, unit: str = "steps"):
        self.bar: Any = None
        self.shown = 0.0
        if wanted or (wanted is None and on_terminal()):
            from rich import progress
            from rich.console import Console

            self.bar = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TextColumn("{task.fields[speed]:>9} " + unit + "/s  loss {task.fields[loss]:.4g}"),
                progress.TextColumn("{task.fields[note]}", markup=False),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task(title, total=total, speed="", loss=float("nan"), note="")
            self.began = time.perf_counter()

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, done: int, *, loss: float) -> None:
        """Update the bar, at most ten times a second."""
        if self.bar is None or time.perf_counter() - self.shown < 0.1:
            return
        self.shown = time.perf_counter()
        speed = f"{done / max(self.shown - self.began, 1e-9):,.0f}"
        self.bar.update(self.task, completed=done, speed=speed, loss=loss)

    def say(self, note: str) -> None:
        """Show a note beside the bar."""
        if self.bar is not None:
            self.bar.update(self.task, note=note)
