"""The file of a `SqliteLog`: its tables, opening, the lock of its writer, the identity of its bandit, error messages.

The identity of a log are the settings that its entries depend on, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lols.bandit import sqlite_first_format
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.opening import reason

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
APPLICATION = 0x6C6F6C73  # "lols"
RESTORE = "restore the file from a copy"
WAIT = 5.0  # seconds to wait for the end of a transaction of another process
SHOWN = 60  # characters of a value in a message
MOST = 5  # differences in a message

# SQLite and PostgreSQL take these statements as they are. A decision, a call of `learn` and an event have one `place`
# each: 1, 2, 3, ..., in the order in which they were learned from. Rows are never deleted. UNIQUE makes each decision
# and each loss count once. In `outcomes`, step -1 is the loss of the whole structure.
SCHEMA = [
    """CREATE TABLE decisions (
        place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, number BIGINT NOT NULL, time DOUBLE PRECISION NOT NULL,
        context BYTEA, actions TEXT NOT NULL, chances TEXT NOT NULL, baseline TEXT,
        step BIGINT NOT NULL, action BIGINT NOT NULL, by_reference SMALLINT NOT NULL,
        chance_step DOUBLE PRECISION NOT NULL, chance_action DOUBLE PRECISION NOT NULL,
        version BIGINT NOT NULL, policy BIGINT NOT NULL, guarded SMALLINT NOT NULL, propensity DOUBLE PRECISION,
        active SMALLINT NOT NULL, features BYTEA, checksum BIGINT NOT NULL
    )""",
    """CREATE TABLE outcomes (
        place INTEGER NOT NULL, id TEXT NOT NULL, step BIGINT NOT NULL, loss DOUBLE PRECISION NOT NULL,
        time DOUBLE PRECISION NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (place, step), UNIQUE (id, step)
    )""",
    """CREATE TABLE events (
        place INTEGER PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, time DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE snapshots (
        place INTEGER PRIMARY KEY, version BIGINT NOT NULL, digest TEXT NOT NULL, state BYTEA,
        time DOUBLE PRECISION NOT NULL, checksum BIGINT NOT NULL
    )""",
    "CREATE TABLE repeated (id TEXT NOT NULL, step BIGINT NOT NULL, loss DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
]


class Writer:
    """The right to write to a log, as long as this process has the file `NAME.lock` beside it locked."""

    def __init__(self, path: Path):
        self.path = path.with_name(path.name + ".lock")
        self._handle: int | None = None
        while fcntl is not None:
            handle = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                raise LolsError(
                    f"{path}: another process is writing to this log, or this one has it open twice: close it there, "
                    "give another file, or open it with identity=None to read it"
                ) from None
            except OSError:  # a file system without locks
                pass
            if os.fstat(handle).st_nlink:
                self._handle = handle
                return
            os.close(handle)  # deleted by another writer before it was locked

    def close(self) -> None:
        """Give the right back."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            self.leave()

    def leave(self) -> None:
        """In the child of a fork: the parent keeps the right."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def opened(
    path: Path, sync: bool, wanted: str | None
) -> tuple[sqlite3.Connection, Writer | None, dict[str, Any], str | None]:
    """Open the file to write to it, or, if no identity is wanted, to read it.

    Returns the connection, the lock of the writer, the identity of the log, and a note on what was converted.
    """
    if not path.parent.is_dir():
        raise LolsError(f"{path}: cannot be opened: there is no folder {path.parent}")
    if wanted is None and not path.is_file():
        raise LolsError(f"{path}: there is no such log: give an identity to begin one")
    if path.is_dir():
        raise LolsError(f"{path}: cannot be read or written: it is a folder: give a file")
    connection, writer, note = None, None, None
    try:
        writer = None if wanted is None else Writer(path)
        # Without isolation level, every statement is its own transaction unless BEGIN is executed.
        connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        if _format(connection, path, new=wanted is not None) == sqlite_first_format.FORMAT:
            converting = writer or Writer(path)
            try:
                note = _convert(connection, path)
            finally:
                if writer is None:
                    converting.close()
        _take(connection, path, sync, wanted)
        row = connection.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
        return connection, writer, parsed(row and row[0], path), note
    except BaseException as error:
        if connection is not None:
            connection.close()
        if writer is not None:
            writer.close()
        if isinstance(error, sqlite3.Error):
            raise explained(error, path) from error
        if isinstance(error, OSError):
            why = f"{reason(error)}: check the folder and its permissions"
            raise LolsError(f"{path}: cannot be opened: {why}") from None
        if isinstance(error, RecursionError | UnicodeDecodeError):
            part = "identity of the log" if isinstance(error, RecursionError) else "log"
            raise ModelFileError(f"{path}: the {part} is damaged: {RESTORE}") from None
        raise


def _format(connection: sqlite3.Connection, path: Path, *, new: bool) -> int:
    """The format of the file; 0 if it is new. A file that is not a log is not changed."""
    run = connection.execute
    application, version, tables = (
        int(run(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application == 0 and tables == 0 and new:
        return 0
    if application != APPLICATION:
        raise ModelFileError(f"{path}: a database, but not the log of a bandit: give another file")
    if version not in (FORMAT, sqlite_first_format.FORMAT):
        raise ModelFileError(
            f"{path}: written by another version of lols (format {version}, not {FORMAT}): update lols"
        )
    # Nothing else: a view, a trigger or a computed column would run, and could make gigabytes of nothing.
    schema = SCHEMA if version == FORMAT else sqlite_first_format.SCHEMA
    if {row[0] for row in run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")} != {*schema}:
        raise ModelFileError(f"{path}: the log is damaged (its tables are not those of a log): {RESTORE}")
    return version


def _take(connection: sqlite3.Connection, path: Path, sync: bool, wanted: str | None) -> None:
    """Set how the file is written, and create the tables if it is new."""
    run = connection.execute
    if wanted is None:
        run("PRAGMA query_only = 1")
        return
    if run("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise LolsError(f"{path}: SQLite cannot keep a write-ahead log there: give a file on a local disk")
    run(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
    run(f"PRAGMA fullfsync = {int(sync)}")  # macOS: flush the cache of the disk, too
    if _format(connection, path, new=True) == 0:
        with transaction(connection):  # if killed before its end, the file has no tables and is new again
            _create(connection)
            run("INSERT INTO about VALUES ('identity', ?)", (wanted,))


def _create(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _convert(connection: sqlite3.Connection, path: Path) -> str:
    """Turn a log of lols 0.2 into one of today, in one transaction; what to tell the user."""
    with transaction(connection):
        try:
            entries = sqlite_first_format.begin(connection)
            _create(connection)
            count = 0
            for table, rows in entries:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
                count += len(rows)
            sqlite_first_format.end(connection)
        except ValueError as error:
            raise ModelFileError(f"{path}: {error}: {RESTORE}") from None
    return (
        f"{path}: begun by lols 0.2, and converted ({count} rows): it has features in the place of contexts, so that "
        "`lols bandit relearn` cannot use them, and does not say whether functions have changed since then"
    )


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def explained(error: sqlite3.Error, path: Path) -> LolsError:
    """An error of SQLite as one line with a fix."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LolsError(f"{path}: another process is writing to this log: a log has one writer; close it there")
    if code == sqlite3.SQLITE_NOTADB:
        return ModelFileError(f"{path}: not the log of a bandit: give another file")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return LolsError(f"{path}: another process has written to this log: a log has one writer; open it again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH):
        return ModelFileError(f"{path}: the log is damaged ({reason(error)}): {RESTORE}")
    if code == sqlite3.SQLITE_FULL:
        return LolsError(f"{path}: the disk is full, the entry was not written: make room")
    return LolsError(
        f"{path}: cannot be read or written: {reason(error)}: check the file, its folder and their permissions"
    )


# --- the identity of a log --------------------------------------------------------------------------------------------


def identity_text(identity: Mapping[str, Any]) -> str:
    """The identity as text for the log."""
    try:
        return json.dumps(dict(identity), sort_keys=True, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the identity of a log must be JSON: {error}") from error


def _number(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def parsed(text: Any, path: Path) -> dict[str, Any]:
    """The identity from its text."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise ModelFileError(f"{path}: the identity of the log is damaged: {RESTORE}")
    return value


def compare(held: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Raise an error that names the differences if a log has another identity.

    >>> compare({"space": {"labels": 3}, "seed": 1}, {"space": {"labels": 4}, "seed": 1}, Path("shown.log"))
    Traceback (most recent call last):
    lols.errors.ConfigurationError: shown.log: of another bandit: space.labels is 3 in the log and 4 here; give the same
    settings, another file, or learn again from its contexts: `lols bandit relearn`
    """
    there, here = dict(_leaves(held)), dict(_leaves(wanted))
    different = [name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name)]
    if different:
        named = [
            f"{name} is {_shown(there, name)} in the log and {_shown(here, name)} here" for name in different[:MOST]
        ]
        if len(different) > MOST:
            named.append(f"{len(different) - MOST} more")
        fix = "give the same settings, another file"
        if all(name.endswith(".source") for name in different):
            fix = "its functions have changed: use those of the log, give another file"
        elif different == ["learning"]:
            fix = "lols learns in another way since then: use that version, give another file"
        again = "or learn again from its contexts: `lols bandit relearn`"
        raise ConfigurationError(f"{path}: of another bandit: {', '.join(named)}; {fix}, {again}")


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Each setting by its full name (`learner.rate`), as JSON, in which 1, 1.0 and true differ."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}", json.dumps(inner, ensure_ascii=False)


def _shown(leaves: Mapping[str, str], name: str) -> str:
    text = leaves.get(name, "not given")
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
