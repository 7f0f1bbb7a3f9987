"""The log of a bandit: decisions and losses, written before anybody sees them, and read back in the same order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self

from lols.bandit.entries import Decision, Loss, check, check_loss, copied
from lols.bandit.sqlite_log import SqliteLog

__all__ = ["Decision", "Log", "Loss", "MemoryLog", "SqliteLog", "check_loss"]


class Log(Protocol):
    """What a bandit asks of its log. A server database takes the place of `SqliteLog` by having these methods.

    A log has one writer. It counts each loss once, whatever happens in between: that is the promise to keep.
    """

    def append(self, entry: Decision | Loss) -> bool:
        """Write an entry; it is as durable as promised when this returns.

        False says that the decision has a loss already: the second one is ignored, and counted as a duplicate. An
        error says that nothing was written.
        """

    def replay(self) -> Iterator[Decision | Loss]:
        """All entries that are there when the reading begins, in the order in which they were written."""

    def decisions(self) -> int:
        """How many decisions there are; also the id of the next one."""

    def duplicates(self) -> int:
        """How many losses were ignored because their decision had one."""

    def close(self) -> None:
        """Let go of the log; closing twice does no harm."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class MemoryLog:
    """A log for simulations and tests: it ends with its process.

    >>> import numpy as np
    >>> nothing = [np.empty(0, kind) for kind in ("i8", "f4", "i8", "i8", "i8", "f4", "?", "f4", "i4", "f4")]
    >>> shown = Decision(0, False, -1, -1, False, 1.0, 1.0, 0, -1, False, 1.0, *nothing)
    >>> log = MemoryLog()
    >>> log.append(shown), log.append(Loss(0, 0.25)), log.append(Loss(0, 0.5))
    (True, True, False)
    >>> [type(entry).__name__ for entry in log.replay()], log.duplicates()
    (['Decision', 'Loss'], 1)
    >>> log.append(Loss(17, 0.5))
    Traceback (most recent call last):
    lols.errors.LolsError: unknown decision 17: the log holds 1, 0 to 0; give the id that came with the decision
    """

    def __init__(self) -> None:
        self._entries: list[Decision | Loss] = []
        self._losses: set[int] = set()
        self._duplicates = 0
        self._guard = threading.Lock()

    def append(self, entry: Decision | Loss) -> bool:
        with self._guard:
            check(entry, self.decisions())
            if isinstance(entry, Loss):
                if entry.id in self._losses:
                    self._duplicates += 1
                    return False
                self._losses.add(entry.id)
            self._entries.append(copied(entry))  # the caller's arrays may be used again
        return True

    def replay(self) -> Iterator[Decision | Loss]:
        for k in range(len(self._entries)):
            yield self._entries[k]

    def decisions(self) -> int:
        return len(self._entries) - len(self._losses)

    def duplicates(self) -> int:
        return self._duplicates

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
