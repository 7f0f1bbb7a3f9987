"""Objects that threads share: what changes one runs alone, and what reads it works on a snapshot.

A method marked `@exclusive` holds the lock of its object from beginning to end. One marked `@on_snapshot` holds it only
while a shallow copy is taken: it waits for a change that is under way, and changes that come later are not seen.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Lock:
    """The lock of one object, which a thread may take again; the child of a fork has its own."""

    def __init__(self) -> None:
        self._of_processes: dict[int, Any] = {}

    def here(self) -> Any:
        """The lock in this process: after a fork, the thread that may have held it is not there."""
        found = self._of_processes.get(os.getpid())
        return found or self._of_processes.setdefault(os.getpid(), threading.RLock())


class Shareable:
    """The base of objects that threads share. Each copy, pickled or not, has a lock of its own."""

    _lock: Lock

    def __new__(cls, *_given: Any, **_options: Any) -> Self:
        made = super().__new__(cls)
        made._lock = Lock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def _settle(self) -> None:
        """Finish what waits until somebody reads."""

    def as_it_is(self) -> Self:
        """A shallow copy that later changes leave as it is."""
        with self._lock.here():
            self._settle()
            made = type(self).__new__(type(self))
            vars(made).update(Shareable.__getstate__(self))
            return made


def exclusive(method: Method) -> Method:
    """Let a method run while nothing else changes or copies its object."""

    @functools.wraps(method)
    def run(self: Any, *given: Any, **options: Any) -> Any:
        with self._lock.here():
            return method(self, *given, **options)

    return cast(Method, run)


def on_snapshot(method: Method) -> Method:
    """Let a method run on its object as it is now."""

    @functools.wraps(method)
    def run(self: Any, *given: Any, **options: Any) -> Any:
        return method(self.as_it_is(), *given, **options)

    return cast(Method, run)
