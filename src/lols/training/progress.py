"""Progress of long work: a bar on terminals, else lines where they are wanted."""

from __future__ import annotations

import sys
import time
from typing import Any

OFTEN = 30.0  # seconds after which a line says how far it is, also within a pass
SELDOM = 1.0  # seconds between two lines, at least: short trainings print none


def on_terminal() -> bool:
    """Whether standard error is a terminal; it may be closed."""
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Shows progress, speed, the progressive loss and a note; costs nothing if it is off.

    Parameters
    ----------
    wanted
        True for a bar on a terminal, or else for a line after every pass and every half minute, but at most one a
        second; None for terminals only; False for nothing.
    total
        How many steps there are, in all passes.
    title
        What is done.
    unit
        What the steps are.
    passes
        In how many passes.

    """

    def __init__(self, wanted: bool | None, total: int, title: str, unit: str = "steps", passes: int = 1):
        self.total, self.title, self.unit, self.passes = total, title, unit, passes
        self.bar: Any = None
        self.shown = 0.0
        self.done, self.note = 0, ""
        self.began = self.said = time.perf_counter()
        self.before = 0  # steps that were done before it began
        terminal = on_terminal()
        self.lines = bool(wanted) and not terminal and sys.stderr is not None
        if terminal and wanted is not False:
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
                redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # else it belongs into its file
            )
            self.task = self.bar.add_task(title, total=total, speed="", loss=float("nan"), note="")

    def __enter__(self) -> Progress:
        self.began = self.said = time.perf_counter()
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, done: int, *, loss: float) -> None:
        """Update the bar, at most ten times a second; or say how far it is, if that was not said for long."""
        now, self.done = time.perf_counter(), done
        if self.bar is not None and now - self.shown >= 0.1:
            self.shown = now
            self.bar.update(self.task, completed=done, speed=f"{self._speed(now):,.0f}", loss=loss)
        elif self.lines and now - self.said >= OFTEN:
            share = 100 * done // max(self.total, 1)
            self._print(f"{self.title}, {share} % done: loss {loss:.4g}", now)

    def end_pass(self, number: int, *, loss: float) -> None:
        """Say how a pass went, counted from 1."""
        now = time.perf_counter()
        if self.lines and now - self.said >= SELDOM:
            note = f", {self.note}" if self.note else ""
            what = f"{self.title}, pass {number} of {self.passes}: loss {loss:.4g}{note}"
            self._print(what, now, ended=number == self.passes)

    def say(self, note: str) -> None:
        """Show a note beside the bar, or in the line of the pass."""
        self.note = note
        if self.bar is not None:
            self.bar.update(self.task, note=note)

    def tell(self, line: str) -> None:
        """Print a line that stays, wherever progress is shown."""
        if self.bar is not None or self.lines:
            print(f"lols: {line}", file=sys.stderr, flush=True)

    def go_on(self, done: int, passes: int) -> None:
        """Begin where an interrupted run stood: after some steps, in the pass after so many."""
        self.before = self.done = done
        place = f"in pass {passes + 1} of {self.passes}" if passes < self.passes else "after its last pass"
        self.tell(f"{self.title} goes on {place}")

    def _speed(self, now: float) -> float:
        return (self.done - self.before) / max(now - self.began, 1e-9)

    def _print(self, what: str, now: float, *, ended: bool = False) -> None:
        """A line with the time it took so far, and about how much is left if all passes are taken."""
        self.said = now
        left = max(self.total - self.done, 0) / max(self._speed(now), 1e-9)
        ahead = "done" if ended else f"about {duration(left)} left"
        print(f"lols: {what}; {duration(now - self.began)}, {ahead}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(8.31), duration(75.2), duration(12000.0)
    ('8.3 s', '1 min 15 s', '3 h 20 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
