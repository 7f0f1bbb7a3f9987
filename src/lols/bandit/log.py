"""The log of a bandit: decisions and losses, written before they take effect, and read back in the same order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping

from lols.bandit.entries import WHOLE, Decision, Entry, Event, Log, Loss, check, check_loss, unknown
from lols.bandit.sqlite_log import SqliteLog

__all__ = ["WHOLE", "Decision", "Entry", "Event", "Log", "Loss", "MemoryLog", "SqliteLog", "check_loss"]


class MemoryLog(Log):
    """A log in memory, for simulations and tests.

    It keeps the arrays of its entries without copying them: do not change them.

    Parameters
    ----------
    keep
        The number of latest entries to keep, and of latest decisions that a loss may still be reported for; None for
        all.

    Examples
    --------
    >>> log = MemoryLog()
    >>> log.append(Event("settings", {"epsilon": 0.1})), log.place(), log.decisions()
    (True, 1, 0)
    >>> log.append(Loss("17", {WHOLE: 0.5}))
    Traceback (most recent call last):
    lols.errors.LolsError: unknown decision '17': give the id that came with the decision
    """

    def __init__(self, keep: int | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._keep, self._by_id = keep, dict[str, Decision]()
        self._parts: dict[str, dict[int, float]] = {}
        self._decisions = self._duplicates = self._place = 0
        self._guard = threading.Lock()

    def append(self, entry: Entry) -> bool:
        """Write an entry; whether it is new, or a part of it.

        Parameters
        ----------
        entry
            A decision, losses, or an event.

        """
        with self._guard:
            check(entry, self._decisions)
            if isinstance(entry, Decision):
                if entry.id in self._by_id:
                    return False
                self._by_id[entry.id] = entry
                self._decisions += 1
                if self._keep is not None and len(self._by_id) > self._keep:
                    oldest = next(iter(self._by_id))
                    del self._by_id[oldest]
                    self._parts.pop(oldest, None)
            elif isinstance(entry, Loss):
                if entry.id not in self._by_id:
                    raise unknown(entry.id)
                known = self._parts.setdefault(entry.id, {})
                new = {step: float(loss) for step, loss in sorted(entry.losses.items()) if step not in known}
                self._duplicates += len(entry.losses) - len(new)
                known.update(new)
                if not new:
                    return False
                entry = entry._replace(losses=new)
            self._entries.append(entry)
            self._place += 1
        return True

    def find(self, id: str) -> Decision | None:
        """The decision with this id; None if there is none.

        Parameters
        ----------
        id
            The id of the decision.

        """
        return self._by_id.get(id)

    def parts(self, id: str) -> Mapping[int, float]:
        """The losses of a decision so far, by step.

        Parameters
        ----------
        id
            The id of the decision.

        """
        return dict(self._parts.get(id, {}))

    def replay(self, after: int = 0) -> Iterator[Entry]:
        """All entries behind a place, in the order in which they were written.

        Parameters
        ----------
        after
            The place of the last entry before those; 0 for all.

        """
        entries = list(self._entries)
        return iter(entries[max(after - (self._place - len(entries)), 0) :])

    def decisions(self) -> int:
        return self._decisions

    def duplicates(self) -> int:
        return self._duplicates

    def place(self) -> int:
        return self._place

    def close(self) -> None:
        pass
