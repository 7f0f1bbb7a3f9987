"""Runs cells and other work, by the workers of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lols.engines import Engine, InProcess, Processes

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
    work: Iterable[Work],
    *,
    jobs: int,
    keep: Callable[[Work, Any], None],
    watch: Callable[[list[str]], None],
    engine: Engine | None = None,
) -> None:
    """Run work by an engine, by default in `jobs` processes; the results do not depend on it.

    `keep` is called with each work and its result, `watch` with what is running whenever that changes. One job runs in
    this process.
    """
    order = compiling_first(work)
    if engine is None:
        alone = jobs == 1 or len(order) < 2
        engine = InProcess() if alone else Processes(workers=min(jobs, len(order)))
    running: dict[int, str] = {}

    def begun() -> Iterator[Work]:
        for number, one in enumerate(order):
            running[number] = one.words or one.name
            watch(list(running.values()))
            yield one

    with engine.start() as workers:
        for number, found in workers.completed(_done, begun()):
            del running[number]
            keep(order[number], found)


def _done(work: Work) -> Any:
    return work.function(*work.arguments)
