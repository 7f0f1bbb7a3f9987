"""The file under a `SqliteLog`: its tables, how it is opened for one process only, and what its errors mean."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from lols.bandit.entries import ARRAYS, SCALARS
from lols.bandit.identity import compare, parsed
from lols.errors import LolsError, ModelFileError

__all__ = ["COLUMNS", "DECISION", "LOSS", "explained", "opened"]

FORMAT = 1
APPLICATION = 0x6C6F6C73  # "lols"
DECISION, LOSS = 0, 1  # kinds of entries
COLUMNS = ", ".join(f'"{name}"' for name in [*SCALARS, *ARRAYS])  # "values" means something in SQL
WAIT = 0.5  # seconds for another process to let go of the file

# Columns have no type, so that SQLite keeps every number bit for bit (a REAL column loses the sign of -0.0). Rows are
# never deleted, so that `place` is 1, 2, 3, ... A propensity of NULL is NaN. UNIQUE makes a loss count once.
SCHEMA = [
    f"""CREATE TABLE entries (
        place INTEGER PRIMARY KEY, kind NOT NULL, {COLUMNS}, loss, checksum NOT NULL,
        UNIQUE (kind, id)
    )""",
    "CREATE TABLE repeated (place INTEGER PRIMARY KEY, id NOT NULL, loss NOT NULL)",
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
]


def opened(path: Path, sync: bool, wanted: str | None) -> tuple[sqlite3.Connection, dict[str, Any]]:
    """Take the file for this process, make it or check it; the connection, and the identity of the log."""
    if not path.parent.is_dir():
        raise LolsError(f"{path}: cannot be opened: there is no folder {path.parent}")
    if wanted is None and not path.is_file():
        raise LolsError(f"{path}: there is no such log: give an identity to begin one")
    connection = None
    try:
        # Without isolation level, every statement is a transaction of its own unless one is begun by hand.
        connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        _take(connection, path, sync, wanted)
        row = connection.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
        identity = parsed(row and row[0], path)
        if wanted is not None:
            compare(identity, parsed(wanted, path), path)
        return connection, identity
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise explained(error, path) from error
        raise


def _take(connection: sqlite3.Connection, path: Path, sync: bool, wanted: str | None) -> None:
    """Lock the file and make the tables where there are none; what is not a log stays as it is."""
    run = connection.execute
    run("PRAGMA locking_mode = EXCLUSIVE")  # a lock, once taken, is held until the process closes the file or dies
    application, version, tables = (
        int(run(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    new = application == 0 and tables == 0 and wanted is not None
    if application != APPLICATION and not new:
        raise ModelFileError(f"{path}: another database, not the log of a bandit: give another file")
    if not new and version != FORMAT:
        raise ModelFileError(
            f"{path}: written by another version of lols (format {version}, not {FORMAT}): update lols"
        )
    if run("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise LolsError(f"{path}: SQLite cannot keep a write-ahead log there: give a file on a local disk")
    run(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
    run(f"PRAGMA fullfsync = {int(sync)}")  # on a Mac: past the cache of the disk
    run("BEGIN IMMEDIATE")
    if new:  # a kill before COMMIT leaves a file without tables: new again
        for statement in SCHEMA:
            run(statement)
        run("INSERT INTO about VALUES ('identity', ?)", (wanted,))
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {FORMAT}")
    run("COMMIT")


def explained(error: sqlite3.Error, path: Path) -> LolsError:
    """One line for what SQLite says."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        only = "a log has one writer, so close it there, or give another file"
        return LolsError(f"{path}: another process has this log open, or this one has it open twice: {only}")
    if code == sqlite3.SQLITE_NOTADB:
        return ModelFileError(f"{path}: not the log of a bandit: give another file")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH):
        return ModelFileError(f"{path}: the log is damaged ({error}): restore the file from a copy")
    if code == sqlite3.SQLITE_FULL:
        return LolsError(f"{path}: the disk is full, the entry was not written: make room")
    return LolsError(f"{path}: cannot be read or written: {error}: check the file, its folder and their permissions")
