"""How many threads work: as many as were asked for, or what is fastest on this machine. Results do not depend on it."""

from __future__ import annotations

import os

from lols.contract.whole_numbers import MOST_THREADS, check_whole
from lols.errors import ConfigurationError

Threads = int | str | None
AUTO = "auto"
# Measured on 16 cores, for training and prediction of tagger, parser, classifier and two own tasks: more threads than
# this were slower for all of them (docs/results/performance.md).
FASTEST = 6
SMALL = 1 << 12  # steps, below which threads take longer to start than they save


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_threads(threads: Threads) -> None:
    """Raise an error if this is no number of threads; None and "auto" stand for what is fastest.

    >>> check_threads("many")
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: threads is 'many'; it must be a whole number, or auto
    """
    if isinstance(threads, str) and threads != AUTO:
        raise ConfigurationError(f"threads is '{threads}'; it must be a whole number, or auto")
    if threads is not None and threads != AUTO:
        check_whole("threads", threads, most=MOST_THREADS)


def chosen_threads(threads: Threads, steps: int | None = None, together: int | None = None) -> int:
    """The number of threads that was asked for; else what is fastest for work of this many steps.

    `together` is how many examples threads can share at a time.

    >>> chosen_threads(3, steps=10), chosen_threads(None, steps=10), chosen_threads("auto", together=1)
    (3, 1, 1)
    """
    check_threads(threads)
    if threads is not None and threads != AUTO:
        return int(threads)
    if steps is not None and steps < SMALL:
        return 1
    return max(1, min(cores(), FASTEST, FASTEST if together is None else together))
