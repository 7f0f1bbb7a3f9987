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
Owner = TypeVar("Owner")


class Lock:
    """The lock of one object, which a thread may take again; the child of a fork has its own."""

    def __init__(self) -> None:
        self._of_processes: dict[int, Any] = {}

    def here(self) -> Any:
        """The lock in this process: after a fork, the thread that may have held it is not there."""
        found = self._of_processes.get(os.getpid())
        return found or self._of_processes.setdefault(os.getpid(), threading.RLock())


class OwnLock:
    """The lock of an object, as an attribute of its class: it is made when it is first asked for."""

    def __get__(self, owner: Any, kind: type) -> Lock:
        found: Lock = vars(owner).setdefault("_lock", Lock())
        return found


def without_lock(owner: Any) -> dict[str, Any]:
    """The attributes of an object that a copy has, too: all but its lock."""
    return {name: value for name, value in vars(owner).items() if name != "_lock"}


def snapshot(owner: Owner) -> Owner:
    """A shallow copy of an object that later changes leave as it is; the object finishes before what waits."""
    shared = cast(Any, owner)
    with shared._lock.here():
        shared._settle()
        made = object.__new__(type(owner))
        vars(made).update(without_lock(owner))
        return made


class Shareable:
    """The base of objects that threads share. Each copy, pickled or not, has a lock of its own."""

    _lock = OwnLock()

    def __getstate__(self) -> dict[str, Any]:
        return without_lock(self)

    def _settle(self) -> None:
        """Finish what waits until somebody reads."""

    def as_it_is(self) -> Self:
        """A shallow copy that later changes leave as it is."""
        return snapshot(self)


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
