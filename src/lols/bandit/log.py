"""The log of a bandit: decisions and losses, written before they take effect, and read back in the same order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from lols.bandit.entries import Decision, Log, Loss, check, check_loss
from lols.bandit.sqlite_log import SqliteLog

__all__ = ["Decision", "Log", "Loss", "MemoryLog", "SqliteLog", "check_loss"]


class MemoryLog(Log):
    """A log in memory, for simulations and tests.

    It keeps the arrays of its entries without copying them: do not change them.

    Parameters
    ----------
    keep
        The number of latest entries to keep; None for all.

    Examples
    --------
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

    def __init__(self, keep: int | None = None) -> None:
        self._entries: deque[Decision | Loss] = deque(maxlen=keep)
        self._settled = bytearray()  # for each decision, whether it has a loss
        self._duplicates = 0
        self._guard = threading.Lock()

    def append(self, entry: Decision | Loss) -> bool:
        """Keep an entry; whether it is new.

        Parameters
        ----------
        entry
            A decision, or the loss of one.

        """
        with self._guard:
            check(entry, len(self._settled))
            if isinstance(entry, Decision):
                self._settled.append(0)
            elif self._settled[entry.id]:
                self._duplicates += 1
                return False
            else:
                self._settled[entry.id] = 1
            self._entries.append(entry)
        return True

    def replay(self) -> Iterator[Decision | Loss]:
        return iter(list(self._entries))

    def decisions(self) -> int:
        return len(self._settled)

    def duplicates(self) -> int:
        return self._duplicates

    def close(self) -> None:
        pass
