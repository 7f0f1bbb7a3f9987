"""The protocol: an engine is settings, its workers run functions; and the engine that is this process."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError

SYNCS = ("exact", "pass")
MOST_WORKERS = 1 << 16
QUIET = {
    "LOLS_ANNOUNCE": "0",
    "LOLS_COMPILE_AHEAD": "0",
}  # in workers: nothing is said, nobody forks

Function = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Engine(ABC):
    """Who does the work of a run.

    Parameters
    ----------
    sync
        `"exact"`: workers search parts of each batch, and one learner goes through their lessons in order, so that the
        result is that of one process, bit for bit. `"pass"`: each shard of the data trains a learner of its own, and
        their weights are averaged several times in a pass; the result depends on the number of shards, not on that of
        workers.
    shards
        With `sync="pass"`: how many parts the data are cut into; by default as many as there are workers.
    legs
        With `sync="pass"`: how often weights are averaged in a pass; in the first pass eight times as often. By default
        half as often as there are shards, at most four times, and 32 times in the first pass. More often costs more
        traffic, and is nearer to one learner.

    """

    sync: str = "exact"
    shards: int | None = None
    legs: int | None = None

    LOCAL: ClassVar[bool] = False  # whether everything happens in this process

    def __post_init__(self) -> None:
        if self.sync not in SYNCS:
            raise ConfigurationError(f"unknown sync '{self.sync}': choose {' or '.join(SYNCS)}")
        for name in ("shards", "legs"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), most=MOST_WORKERS)
                if self.sync != "pass":
                    raise ConfigurationError(f"{name} has no effect: there are {name} with sync='pass' only")

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of workers."""

    @abstractmethod
    def start(self) -> AbstractContextManager[Workers]:
        """Start the workers, for a `with` statement, which ends them."""


class SharedValue(ABC):
    """A value that was given to all workers: small to send, and the value itself where it arrives."""

    @abstractmethod
    def get(self) -> Any:
        """The value."""


class Failed(NamedTuple):
    """What came of a call that raised an error."""

    error: BaseException
    trace: str = ""

    def again(self) -> BaseException:
        """The error, to be raised here; the trace of a bug goes with it."""
        if not isinstance(self.error, LolsError) and self.trace:
            self.error.add_note(f"in a worker:\n{self.trace}")
        return self.error


def attempt(function: Function, item: Any) -> Any:
    """The result of a call, or `Failed`: workers catch all errors, because only the caller knows which one comes first.

    >>> attempt(len, [1, 2]), attempt(len, 3).error
    (2, TypeError("object of type 'int' has no len()"))
    """
    try:
        return function(item)
    except Exception as error:
        return Failed(error, traceback.format_exc())


class Workers(ABC):
    """Workers that have been started."""

    sent, received = 0, 0  # bytes, where they are counted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    @abstractmethod
    def share(self, value: Any) -> SharedValue:
        """Give a value to all workers.

        Parameters
        ----------
        value
            What all workers shall have, sent once.

        """

    @property
    @abstractmethod
    def alive(self) -> int:
        """How many workers can be given work now."""

    @abstractmethod
    def outcomes(self, function: Function, items: Iterable[Any], window: int | None) -> Iterator[tuple[int, Any]]:
        """The number of each item and its result or `Failed`, as they are completed.

        The function must be one that workers can import, and it may run twice on an item. No item is begun whose number
        is that of the first unfinished one plus `window`, or more.

        Parameters
        ----------
        function
            What is done with each item.
        items
            What is to be worked on.
        window
            How many items may be ahead of the result that is due.

        """

    def completed(self, function: Function, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """The number of each item and its result, as they are completed.

        Parameters
        ----------
        function
            What is done with each item.
        items
            What is to be worked on.

        """
        for number, outcome in self.outcomes(function, items, None):
            if isinstance(outcome, Failed):
                raise outcome.again()
            yield number, outcome

    def map(self, function: Function, items: Iterable[Any], window: int | None = None) -> Iterator[Any]:
        """The results in the order of the items; an error is that of the first item that has one.

        At most `window` items are begun beyond the next result, by default two for each worker, so that memory is
        bounded whatever the number of items.

        Parameters
        ----------
        function
            What is done with each item.
        items
            What is to be worked on.
        window
            How many items may be ahead of the result that is due.

        """
        waiting: dict[int, Any] = {}
        following = 0
        for number, outcome in self.outcomes(function, items, window or 2 * max(self.alive, 1) + 2):
            waiting[number] = outcome
            while following in waiting:
                result = waiting.pop(following)
                if isinstance(result, Failed):
                    raise result.again()
                following += 1
                yield result


@dataclass(frozen=True, kw_only=True)
class InProcess(Engine):
    """This process, with its threads: the default.

    Parameters
    ----------
    sync
        `"exact"` for the result of one process, `"pass"` for shards that are averaged.
    shards
        How many shards the data are cut into, with `"pass"`.
    legs
        How many times in a pass the shards are averaged; None for a number that follows from them.

    Examples
    --------
    >>> with InProcess().start() as workers:
    ...     list(workers.map(abs, [-1, -2]))
    [1, 2]

    """

    LOCAL: ClassVar[bool] = True

    @property
    def count(self) -> int:
        return 1

    def start(self) -> InProcessWorkers:
        return InProcessWorkers()


class Kept(NamedTuple):
    """A value in this process."""

    value: Any

    def get(self) -> Any:
        """The value."""
        return self.value


SharedValue.register(Kept)


class InProcessWorkers(Workers):
    """This process as its own only worker."""

    alive = 1

    def close(self) -> None:
        pass

    def share(self, value: Any) -> Any:
        return Kept(value)

    def outcomes(self, function: Function, items: Iterable[Any], window: int | None) -> Iterator[tuple[int, Any]]:
        for number, item in enumerate(items):
            yield number, attempt(function, item)
