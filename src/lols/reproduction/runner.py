"""Runs cells and other work, in processes beside each other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import Any, NamedTuple

from lols.errors import LolsError

__all__ = ["Work", "compiling_first", "run_work"]


class Work(NamedTuple):
    """Something to run: a function that processes can import, and what it is called with."""

    name: str  # in files
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    kernel: tuple[str, str] | None = None  # a task and a teacher: what is compiled for it
    words: str = ""  # for people, where the name will not do
    seconds: float = 10.0  # about how long it takes


def compiling_first(work: Iterable[Work]) -> list[Work]:
    """The order in which to begin: what compiles a kernel comes before what uses it again.

    >>> names = [("a", "bad"), ("b", "bad"), ("c", "optimal"), ("d", "")]
    >>> made = [Work(name, print, kernel=("tagging", teacher) if teacher else None) for name, teacher in names]
    >>> [one.name for one in compiling_first(made)]
    ['a', 'c', 'd', 'b']
    """
    work = list(work)
    first = {one.kernel: one.name for one in reversed(work)}
    return sorted(work, key=lambda one: one.kernel is not None and first[one.kernel] != one.name)


def run_work(
    work: Iterable[Work], *, jobs: int, keep: Callable[[Work, Any], None], watch: Callable[[list[str]], None]
) -> None:
    """Run work in `jobs` processes; the results do not depend on their number.

    `keep` is called with each work and its result, `watch` with what is running whenever that changes. One job runs in
    this process.
    """
    order = compiling_first(work)
    if jobs == 1 or len(order) < 2:
        for one in order:
            watch([one.words or one.name])
            keep(one, one.function(*one.arguments))
        return
    pool = ProcessPoolExecutor(min(jobs, len(order)), get_context("spawn"), _begin)
    waiting = {pool.submit(one.function, *one.arguments): one for one in order}
    try:
        while waiting:
            watch([one.words or one.name for future, one in waiting.items() if future.running()][:jobs])
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                keep(waiting.pop(future), future.result())
    except BrokenProcessPool:
        raise LolsError("a process was ended from outside, maybe for want of memory: use fewer --jobs") from None
    finally:
        processes = list((pool._processes or {}).values()) if waiting else []
        pool.shutdown(wait=not waiting, cancel_futures=True)
        for process in processes:  # what is still running is wanted by nobody any more
            with suppress(OSError, ValueError):
                process.terminate()


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its processes
    os.environ["LOLS_ANNOUNCE"] = "0"
