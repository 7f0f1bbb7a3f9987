"""A log in one SQLite file. Its entries survive a killed process, and with `durability="power"` a power failure."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from lols.bandit.entries import (
    COLUMNS,
    Decision,
    Entry,
    Event,
    Log,
    Loss,
    Snapshot,
    check,
    check_loss,
    checksum,
    from_row,
    to_row,
    unknown,
)
from lols.bandit.sqlite_file import RESTORE, compare, explained, identity_text, opened, parsed, transaction
from lols.bandit.sqlite_first_format import FORMAT as FIRST
from lols.errors import ConfigurationError, LolsError, ModelFileError, warn

Durability = Literal["process", "power"]

_NAMES = ", ".join(COLUMNS)
_ADD_DECISION = (
    f"INSERT INTO decisions (place, {_NAMES}) VALUES (?, {', '.join('?' * len(COLUMNS))}) ON CONFLICT (id) DO NOTHING"
)
_ADD_OUTCOME = "INSERT INTO outcomes (place, id, step, loss, time, checksum) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_REPEATED = "INSERT INTO repeated (id, step, loss) VALUES (?, ?, ?)"
_ADD_EVENT = "INSERT INTO events (place, kind, value, time) VALUES (?, ?, ?, ?)"
_ADD_SNAPSHOT = "INSERT INTO snapshots (place, version, digest, state, time, checksum) VALUES (?, ?, ?, ?, ?, ?)"
_FIND = f"SELECT {_NAMES} FROM decisions WHERE id = ?"
_KNOWN = "SELECT outcomes.step, loss FROM decisions LEFT JOIN outcomes USING (id) WHERE id = ?"
_PARTS = "SELECT step, loss FROM outcomes WHERE id = ? ORDER BY place, step"
_COUNTS = "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM repeated)"
_LAST = (
    "SELECT max((SELECT coalesce(max(place), 0) FROM decisions), (SELECT coalesce(max(place), 0) FROM outcomes), "
    "(SELECT coalesce(max(place), 0) FROM events))"
)
_BEFORE = "SELECT count(*) FROM decisions WHERE place <= ?"
_RANGE = "WHERE place > ? AND place <= ? ORDER BY place"
_AT_ONCE = 256  # entries that a replay reads at a time


class SqliteLog(Log):
    """A log in one SQLite file, with others beside it (`-wal`, `-shm`, `.lock`) while it is open or after a kill.

    One process at a time writes to a log; any number may read it meanwhile, with this class or by other means. Threads
    may share a log; after a fork it belongs to the parent.

    Parameters
    ----------
    path
        The file; created if it does not exist, continued otherwise.
    durability
        "process": entries survive the death of the process. "power": each entry is synced to the disk before `append`
        returns, and survives a power failure, too; this takes as long as the disk needs.
    identity
        Settings (JSON) that the log depends on. They are written when the log is created, and must be the same when it
        is opened again. None opens a log to read it.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/shown.log"
    >>> with SqliteLog(path, identity={"labels": 3}) as log:
    ...     log.decisions()
    0
    >>> SqliteLog(path, identity={"labels": 4})
    Traceback (most recent call last):
    lols.errors.ConfigurationError: ...shown.log: of another bandit: labels is 3 in the log and 4 here; give the same
    settings, another file, or learn again from its contexts: `lols bandit relearn`
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = "process", identity: Mapping[str, Any] | None
    ):
        if durability not in get_args(Durability):
            raise ConfigurationError(f"durability {durability!r}: give one of {', '.join(get_args(Durability))}")
        self.path = Path(path).absolute()
        wanted = None if identity is None else identity_text(identity)
        self.reading = wanted is None
        self._guard = threading.RLock()
        self._closed = "is closed: open it again"
        self._decisions = self._duplicates = self._place = 0
        self._connection: sqlite3.Connection | None
        self._connection, self._writer, self.identity, note = opened(self.path, durability == "power", wanted)
        _open.add(self)
        try:
            if note is not None:
                warn(note)
            if wanted is not None:
                self._compare(parsed(wanted, self.path), wanted)
            self._count()
        except BaseException:
            self.close()
            raise

    def _compare(self, wanted: dict[str, Any], text: str) -> None:
        """Check that the log has the identity that is wanted; one of lols 0.2 is given it, as far as it is known."""
        if self.about("converted") is None:
            compare(self.identity, wanted, self.path)
        elif self.identity != wanted:
            compare(_in_words_of_today(self.identity, wanted), wanted, self.path)
            self._run("UPDATE about SET value = ? WHERE name = 'identity'", (text,))
            self.identity = wanted

    def about(self, name: str) -> str | None:
        """A note that the log has of itself.

        Parameters
        ----------
        name
            What the note is called.

        """
        with self._guard:
            rows = self._read("SELECT value FROM about WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def note(self, name: str, value: str) -> None:
        """Write a note, in the place of one of this name.

        Parameters
        ----------
        name
            What the note is called.
        value
            Its text.

        """
        with self._guard:
            self._run(
                "INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
            )

    # --- writing ---

    def append(self, entry: Entry) -> bool:
        """Write an entry; whether it is new, or a part of it.

        Parameters
        ----------
        entry
            A decision, losses, or an event.

        """
        with self._guard:
            check(entry, self._decisions)
            if self._connection is not None and self.reading:
                raise LolsError(f"{self.path}: the log was opened to read it: give the identity of its bandit to write")
            try:
                written = self._append(entry)
            except LolsError:
                raise
            except BaseException:  # an interrupt, maybe after writing and before counting
                self._count()
                raise
            return written

    def _append(self, entry: Entry) -> bool:
        place = self._place + 1
        if isinstance(entry, Decision):
            if not self._run(_ADD_DECISION, (place, *to_row(entry))):
                return False
            self._place, self._decisions = place, self._decisions + 1
            return True
        if isinstance(entry, Event):
            self._run(_ADD_EVENT, (place, entry.kind, json.dumps(entry.value, sort_keys=True), float(entry.time)))
            self._place = place
            return True
        known = dict(self._read(_KNOWN, (entry.id,)))  # without losses, one row of nothing
        if not known:
            raise unknown(entry.id)
        new = [_outcome_row(entry, step) for step in sorted(entry.losses) if step not in known]
        again = [(entry.id, step, float(entry.losses[step])) for step in sorted(entry.losses) if step in known]
        if len(new) + len(again) == 1:
            self._run(*((_ADD_OUTCOME, (place, *new[0])) if new else (_ADD_REPEATED, again[0])))
        else:
            with self._transaction():
                for row in new:
                    self._run(_ADD_OUTCOME, (place, *row))
                for repeated in again:
                    self._run(_ADD_REPEATED, repeated)
        self._duplicates += len(again)
        self._place = place if new else self._place
        return bool(new)

    def keep(self, snapshot: Snapshot) -> None:
        """Write a snapshot, in the place of the state of an earlier one.

        Parameters
        ----------
        snapshot
            What was learned up to an entry.

        """
        with self._guard, self._transaction():
            self._run("UPDATE snapshots SET state = NULL", ())
            row = (snapshot.place, snapshot.version, snapshot.digest, snapshot.state, snapshot.time or time.time())
            self._run("DELETE FROM snapshots WHERE place = ?", row[:1])
            self._run(_ADD_SNAPSHOT, (*row, checksum(row[:4])))

    # --- reading ---

    def find(self, id: str) -> Decision | None:
        """The decision with this id; None if there is none.

        Parameters
        ----------
        id
            The id of the decision.

        """
        with self._guard:
            rows = self._read(_FIND, (id,))
        try:
            return from_row(rows[0]) if rows else None
        except ValueError as error:
            raise ModelFileError(f"{self.path}: decision {id} is damaged ({error}): {RESTORE}") from None

    def parts(self, id: str) -> Mapping[int, float]:
        """The losses of a decision so far, by step.

        Parameters
        ----------
        id
            The id of the decision.

        """
        with self._guard:
            return dict(self._read(_PARTS, (id,)))

    def replay(self, after: int = 0) -> Iterator[Entry]:
        """All entries behind a place, in the order in which they were written.

        Parameters
        ----------
        after
            The place of the last entry before those; 0 for all.

        """
        with self._guard:
            ((last,),) = self._read(_LAST)
            ((decisions,),) = self._read(_BEFORE, (after,))
        for begin in range(after, last, _AT_ONCE):
            end = min(begin + _AT_ONCE, last)
            rows = self._rows(begin, end)
            for place in range(begin + 1, end + 1):
                try:
                    entry = _entry(rows.get(place, []))
                    check(entry, decisions)
                except (LolsError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                    raise ModelFileError(
                        f"{self.path}: entry {place} is damaged ({' '.join(str(error).split())}): {RESTORE}"
                    ) from None
                decisions += isinstance(entry, Decision)
                yield entry

    def _rows(self, begin: int, end: int) -> dict[int, list[tuple[str, tuple[Any, ...]]]]:
        """The rows of all tables behind one place, up to another, by place."""
        rows: dict[int, list[tuple[str, tuple[Any, ...]]]] = {}
        with self._guard:
            for table, columns in _TABLES.items():
                for place, *row in self._read(f"SELECT place, {columns} FROM {table} {_RANGE}", (begin, end)):
                    rows.setdefault(place, []).append((table, tuple(row)))
        return rows

    def snapshots(self) -> list[Snapshot]:
        with self._guard:
            rows = self._read("SELECT place, version, digest, state, time, checksum FROM snapshots ORDER BY place")
        found = []
        for place, version, digest, state, when, wanted in rows:
            # the checksum is of the state: one that was taken away by a later snapshot is no longer compared
            if state is not None and checksum((place, version, digest, state)) != wanted:
                raise ModelFileError(f"{self.path}: the snapshot at entry {place} is damaged: {RESTORE}")
            found.append(Snapshot(place, version, digest, state, when))
        return found

    def decisions(self) -> int:
        return self._decisions

    def duplicates(self) -> int:
        return self._duplicates

    def place(self) -> int:
        return self._place

    def close(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            if self._writer is not None:
                self._writer.close()
        _open.discard(self)

    # --- statements ---

    def _run(self, statement: str, values: tuple[Any, ...]) -> int:
        """Execute a statement; the number of rows that it changed."""
        return self._execute(statement, values).rowcount

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        cursor = self._execute(statement, values)
        try:
            return cursor.fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _execute(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._opened().execute(statement, values)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LolsError(f"{self.path}: the log {self._closed}")
        return self._connection

    def _transaction(self) -> Any:
        return _explained_transaction(self._opened(), self.path)

    def _count(self) -> None:
        ((self._decisions, self._duplicates),) = self._read(_COUNTS)
        ((self._place,),) = self._read(_LAST)

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
        if self._writer is not None:
            self._writer.leave()
        self._guard = threading.RLock()


class _explained_transaction:
    """A transaction whose errors are explained."""

    def __init__(self, connection: sqlite3.Connection, path: Path):
        self._inner, self._path = transaction(connection), path

    def __enter__(self) -> None:
        try:
            self._inner.__enter__()
        except sqlite3.Error as error:
            raise explained(error, self._path) from error

    def __exit__(self, *error: Any) -> Any:
        try:
            return self._inner.__exit__(*error)
        except sqlite3.Error as wrong:
            raise explained(wrong, self._path) from wrong


_TABLES = {"decisions": _NAMES, "outcomes": "id, step, loss, time, checksum", "events": "kind, value, time"}


def _outcome_row(entry: Loss, step: int) -> tuple[Any, ...]:
    row = (entry.id, int(step), float(entry.losses[step]) + 0.0, float(entry.time))
    return (*row, checksum(row))


def _entry(rows: list[tuple[str, tuple[Any, ...]]]) -> Entry:
    """The entry of the rows of one place; ValueError if there is none, or if a row was changed."""
    if not rows:
        raise ValueError("it is missing")
    if len({table for table, _ in rows}) > 1:
        raise ValueError("it is there twice")
    table, row = rows[0]
    if table == "decisions":
        return from_row(row)
    if table == "events":
        kind, value, when = row
        return Event(kind, json.loads(value), when)
    for _, each in rows:
        if checksum(each[:-1]) != each[-1] or each[0] != row[0]:
            raise ValueError("the checksum is wrong")
        check_loss(each[2])
    return Loss(row[0], {each[1]: each[2] for _, each in rows}, row[3])


def begun_before(path: Any) -> bool:
    """Whether this is the file of a log that lols 0.2 has begun."""
    if not isinstance(path, (str, os.PathLike)) or not Path(path).is_file():
        return False
    try:
        connection = sqlite3.connect(path)
        try:
            ((version,),) = connection.execute("PRAGMA user_version")
            converted = "SELECT count(*) FROM about WHERE name = 'converted'"
            return bool(version == FIRST or connection.execute(converted).fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error:  # what is wrong with it is said when it is opened
        return False


def _in_words_of_today(held: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """An identity that 0.2 wrote, with what is wanted in place of what it does not say."""
    told = dict(wanted)
    for name, part in wanted.items():
        if isinstance(part, Mapping) and isinstance(held.get(name), dict):
            told[name] = _in_words_of_today(held[name], part)
        elif name in held and name != "source":
            told[name] = held[name]
    return told


_open: weakref.WeakSet[SqliteLog] = weakref.WeakSet()


def _after_fork() -> None:
    for log in list(_open):
        log._leave()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
