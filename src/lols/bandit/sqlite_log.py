"""A log in one SQLite file. Its entries survive a killed process, and with `durability="power"` a power failure."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from lols.bandit.entries import Decision, Log, Loss, check, from_row, to_row
from lols.bandit.sqlite_file import COLUMNS, DECISION, LOSS, RESTORE, explained, identity_text, opened
from lols.errors import ConfigurationError, LolsError, ModelFileError

Durability = Literal["process", "power"]

_MARKS = ", ".join("?" * len(Decision._fields))
_ADD_DECISION = f"INSERT INTO entries (kind, {COLUMNS}, checksum) VALUES ({DECISION}, {_MARKS}, ?)"
_ADD_LOSS = f"INSERT INTO entries (kind, id, loss, checksum) VALUES ({LOSS}, ?, ?, ?) ON CONFLICT (kind, id) DO NOTHING"
_ADD_REPEATED = "INSERT INTO repeated (id, loss) VALUES (?, ?)"
# Decisions are counted, and `replay` finds ids that do not count them: an id in a damaged file may be any number.
_COUNTS = f"SELECT (SELECT count(*) FROM entries WHERE kind = {DECISION}), (SELECT count(*) FROM repeated)"
# the last entry by the table, and the number of entries by the index of the UNIQUE columns
_LAST = "SELECT (SELECT coalesce(max(place), 0) FROM entries), (SELECT count(*) FROM entries WHERE kind >= 0)"
_ROWS = f"SELECT place, kind, loss, {COLUMNS}, checksum FROM entries WHERE place > ? AND place <= ? ORDER BY place"
_AT_ONCE = 256  # rows that a replay reads at a time


class SqliteLog(Log):
    """A log in one SQLite file, with a second one beside it, ending in `-wal`, while it is open or after a kill.

    Only one process can have a log open. Threads may share it; after a fork it belongs to the parent. While a log is
    open, do not open its file by other means in the same process (to copy it, for example): closing it there would
    release the lock.

    Parameters
    ----------
    path
        The file; created if it does not exist, continued otherwise.
    durability
        "process": entries survive the death of the process. "power": each entry is synced to the disk before `append`
        returns, and survives a power failure, too; this takes as long as the disk needs.
    identity
        Settings (JSON) that the log depends on. They are written when the log is created, and must be the same when it
        is opened again. None accepts those of the file, to read a log.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/shown.log"
    >>> with SqliteLog(path, identity={"epsilon": 0.1}) as log:
    ...     log.decisions()
    0
    >>> SqliteLog(path, identity={"epsilon": 0.2})
    Traceback (most recent call last):
    lols.errors.ConfigurationError: ...shown.log: of another bandit: epsilon is 0.1 in the log and 0.2 here; give the
    same settings, or another file
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = "process", identity: Mapping[str, Any] | None
    ):
        if durability not in get_args(Durability):
            raise ConfigurationError(f"durability {durability!r}: give one of {', '.join(get_args(Durability))}")
        self.path = Path(path).absolute()
        wanted = None if identity is None else identity_text(identity)
        self._guard = threading.Lock()
        self._closed = "is closed: open it again"
        self._connection: sqlite3.Connection | None
        self._connection, self.identity = opened(self.path, durability == "power", wanted)
        _open.add(self)
        try:
            self._count()
        except BaseException:
            self.close()
            raise

    def append(self, entry: Decision | Loss) -> bool:
        """Write an entry; it is durable when this returns. Whether it is new.

        Parameters
        ----------
        entry
            A decision, or the loss of one.

        """
        with self._guard:
            check(entry, self._decisions)
            row = to_row(entry)
            try:
                if isinstance(entry, Decision):
                    self._run(_ADD_DECISION, row)
                    self._decisions += 1
                    return True
                if self._run(_ADD_LOSS, row):
                    return True
                self._run(_ADD_REPEATED, row[:-1])
                self._duplicates += 1
                return False
            except BaseException as error:
                if not isinstance(error, LolsError):  # an interrupt, maybe after writing and before counting
                    self._count()
                raise

    def replay(self) -> Iterator[Decision | Loss]:
        with self._guard:
            ((last, indexed),) = self._read(_LAST)
        if last != indexed:
            raise ModelFileError(f"{self.path}: {indexed} entries and the last is {last}: {RESTORE}")
        decisions = 0
        for begin in range(0, last, _AT_ONCE):
            end = min(begin + _AT_ONCE, last)
            with self._guard:
                rows = self._read(_ROWS, (begin, end))
            for place, row in itertools.zip_longest(range(begin + 1, end + 1), rows):
                try:
                    entry = _entry(row, place)
                    check(entry, decisions)
                except ValueError as error:
                    raise ModelFileError(f"{self.path}: entry {place} is damaged ({error}): {RESTORE}") from None
                decisions += isinstance(entry, Decision)
                yield entry

    def decisions(self) -> int:
        return self._decisions

    def duplicates(self) -> int:
        return self._duplicates

    def close(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
        _open.discard(self)

    def _run(self, statement: str, values: tuple[Any, ...]) -> int:
        """Execute a statement; the number of rows that it changed."""
        return self._execute(statement, values, lambda cursor: cursor.rowcount)

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._execute(statement, values, sqlite3.Cursor.fetchall)

    def _execute(self, statement: str, values: tuple[Any, ...], result: Callable[[sqlite3.Cursor], Any]) -> Any:
        if self._connection is None:
            raise LolsError(f"{self.path}: the log {self._closed}")
        try:
            return result(self._connection.execute(statement, values))
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _count(self) -> None:
        ((self._decisions, self._duplicates),) = self._read(_COUNTS)

    def _leave(self) -> None:
        """In the child of a fork: leave the log to the parent.

        The child must not close its copy of the connection, because SQLite would remove the `-wal` file that the parent
        uses. So the copy is never freed.
        """
        import ctypes

        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
            self._closed = "belongs to the process that opened it, before the fork: open it after forking"
        self._guard = threading.Lock()


def _entry(row: tuple[Any, ...] | None, place: int) -> Decision | Loss:
    """The entry of a row of the table; ValueError if the row is missing or was changed."""
    if row is None or row[0] != place:
        raise ValueError("it is missing")
    _, kind, loss, *fields = row
    if kind not in (DECISION, LOSS):
        raise ValueError("it is neither a decision nor a loss")
    return from_row((fields[0], loss, fields[-1]) if kind == LOSS else tuple(fields))


_open: weakref.WeakSet[SqliteLog] = weakref.WeakSet()


def _after_fork() -> None:
    for log in list(_open):
        log._leave()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
