"""What changes in the course of a run, and all workers follow: a whole state once in a while, then only changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from lols.engines.protocol import SharedValue, Workers

RECENT = 8  # changes that go along with each call; earlier ones are one value, because each costs a reference
MANY, MOST_CHANGES = 4, 1 << 26  # times a whole state, or bytes, of changes before a whole state is sent again


class Version(NamedTuple):
    """A version of the state: a whole one, and what has changed since."""

    number: int
    whole: SharedValue | None  # version `since`; None for what workers begin with
    since: int
    older: SharedValue | None  # changes to `since` + 1, ..., `recent`, which few workers have missed
    recent: int
    changes: tuple[SharedValue, ...]  # to `recent` + 1, + 2, ...

    def follow(self, number: int | None, load: Callable[[Any], None], apply: Callable[[Any], None]) -> int:
        """Bring a copy of another version, or none, to this one; the number of this one."""
        if number is None or not self.since <= number <= self.number:
            assert self.whole is not None
            load(self.whole.get())
            number = self.since
        if self.older is not None and number < self.recent:
            for changes in islice(self.older.get(), number - self.since, None):
                apply(changes.get())
        for changes in self.changes[max(number - self.recent, 0) :]:
            apply(changes.get())
        return self.number


class History:
    """The versions so far, on the side of the driver."""

    def __init__(self, workers: Workers):
        self.workers, self.sent = workers, 0  # bytes
        self._whole: SharedValue | None = None
        self._older: SharedValue | None = None  # the first `_bundled` changes
        self._changes: list[SharedValue] = []
        self._number = self._since = self._bundled = self._changed_bytes = 0

    @property
    def now(self) -> Version:
        """The newest version."""
        recent = self._since + self._bundled
        return Version(
            self._number, self._whole, self._since, self._older, recent, tuple(self._changes[self._bundled :])
        )

    def has_room(self, size: int, whole: int) -> bool:
        """Whether changes of so many bytes are better sent than a whole state of so many."""
        return self._changed_bytes + size <= max(MANY * whole, MOST_CHANGES)

    def add(self, changes: Any, size: int) -> None:
        """Go on to the next version by changes."""
        self._changes.append(self.workers.share(changes))
        if len(self._changes) - self._bundled > 2 * RECENT:
            self._bundled = len(self._changes) - RECENT
            self._older = self.workers.share(tuple(self._changes[: self._bundled]))
        self._number += 1
        self._changed_bytes += size
        self.sent += size

    def begin(self, whole: Any, size: int) -> None:
        """Go on to the next version by a whole state."""
        self._number += 1
        self._whole, self._since = self.workers.share(whole), self._number
        self._changes, self._older, self._bundled, self._changed_bytes = [], None, 0, 0
        self.sent += size
