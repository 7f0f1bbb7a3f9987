"""Runs cells and other work, in processes beside each other: each kind of kernel is compiled once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import Any, NamedTuple

from lols.errors import LolsError
from lols.reproduction.cells import measure
from lols.reproduction.data import DataPlace
from lols.reproduction.plan import TABLES, Cell

__all__ = ["Item", "Queue", "Work", "run_items"]

Kind = tuple[str, str]  # a task and a teacher: what a kernel is compiled for


class Work(NamedTuple):
    """Something else than a cell: a function that processes can import, and what it is called with."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    kind: Kind | None = None  # of the cells whose kernels it uses, too

    @property
    def words(self) -> str:
        """What it is, for people."""
        return self.name


Item = Cell | Work
Keep = Callable[[Item, Any], None]
Watch = Callable[[list[str]], None]


def kind_of(item: Item) -> Kind | None:
    """What must be compiled for it; work without a kind has to see to itself."""
    return (TABLES[item.table].task, item.teacher) if isinstance(item, Cell) else item.kind


class Queue:
    """Cells in the order in which they may begin: the first one of a kind compiles, and the others wait for it.

    >>> pairs = [(row, teacher) for teacher in ("bad", "optimal") for row in ("searn", "auto")]
    >>> queue = Queue([Cell("table3", *pair, "hinge", 0) for pair in pairs])
    >>> first, second = queue.next(), queue.next()
    >>> first.teacher, second.teacher, queue.next()
    ('bad', 'optimal', None)
    >>> queue.done(first); queue.next().words
    'table3 auto, bad teacher, hinge, seed 0'
    """

    def __init__(self, items: Iterable[Item]):
        self.waiting = list(items)
        self.begun: set[Kind] = set()
        self.ready: set[Kind | None] = {None}

    def next(self) -> Item | None:
        """What may begin now, or None."""
        chosen = next((item for item in self.waiting if kind_of(item) in self.ready), None)
        if chosen is None:
            chosen = next((item for item in self.waiting if kind_of(item) not in self.begun), None)
        if chosen is not None:
            self.waiting.remove(chosen)
            if (kind := kind_of(chosen)) is not None:
                self.begun.add(kind)
        return chosen

    def words(self, item: Item) -> str:
        """What is running, for people; the first one of a kind may take a while."""
        return item.words if kind_of(item) in self.ready else f"{item.words} (compiling, first run only)"

    def done(self, item: Item) -> None:
        """A cell is finished, so that its kind is compiled."""
        self.ready.add(kind_of(item))


def run_items(
    items: Iterable[Item], places: Mapping[str, DataPlace], *, jobs: int, keep: Keep, watch: Watch | None = None
) -> None:
    """Run cells and other work in `jobs` processes; the results do not depend on their number.

    `places` has the data of each table, `keep` is called with an item and its result, `watch` with what is running
    whenever that changes. One job runs in this process.
    """
    queue = Queue(items)
    if jobs == 1 or len(queue.waiting) < 2:
        while (item := queue.next()) is not None:
            if watch is not None:
                watch([queue.words(item)])
            keep(item, _do(item, places))
            queue.done(item)
        return
    pool = ProcessPoolExecutor(min(jobs, len(queue.waiting)), get_context("spawn"), _begin)
    running: dict[Future[Any], Item] = {}
    try:
        while queue.waiting or running:
            while len(running) < jobs and (item := queue.next()) is not None:
                own = {item.table: places[item.table]} if isinstance(item, Cell) else {}
                running[pool.submit(_do, item, own)] = item
            if watch is not None:
                watch([queue.words(item) for item in running.values()])
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                keep(item, future.result())
                queue.done(item)
    except BrokenProcessPool:
        raise LolsError("a process was ended from outside, maybe for want of memory: use fewer --jobs") from None
    finally:
        _end(pool, running)


def _do(item: Item, places: Mapping[str, DataPlace]) -> Any:
    return measure(item, places[item.table]) if isinstance(item, Cell) else item.function(*item.arguments)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its processes
    os.environ["LOLS_ANNOUNCE"] = "0"


def _end(pool: ProcessPoolExecutor, running: Mapping[Future[Any], Item]) -> None:
    """Leave; what is still running is wanted by nobody any more."""
    processes = list((getattr(pool, "_processes", None) or {}).values()) if running else []
    pool.shutdown(wait=not running, cancel_futures=True)
    for process in processes:
        with suppress(OSError, ValueError):
            process.terminate()
