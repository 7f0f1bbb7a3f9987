"""The file of a `SqliteLog`: tables, opening by one process only, the identity of its bandit, and error messages.

The identity of a log are the settings that its entries depend on, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lols.bandit.entries import ARRAYS, SCALARS
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.opening import reason

FORMAT = 1
APPLICATION = 0x6C6F6C73  # "lols"
DECISION, LOSS = 0, 1  # kinds of entries
COLUMNS = ", ".join(f'"{name}"' for name in [*SCALARS, *ARRAYS])  # "values" means something in SQL
RESTORE = "restore the file from a copy"
WAIT = 0.5  # seconds to wait for the lock of another process
SHOWN = 60  # characters of a value in a message
MOST = 5  # differences in a message

# Columns have no type, so that SQLite keeps every number bit for bit (a REAL column loses the sign of -0.0). Rows are
# never deleted, so that `place` is 1, 2, 3, ... A propensity of NULL is NaN. UNIQUE makes each loss count once.
SCHEMA = [
    f"""CREATE TABLE entries (
        place INTEGER PRIMARY KEY, kind NOT NULL, {COLUMNS}, loss, checksum NOT NULL,
        UNIQUE (kind, id)
    )""",
    "CREATE TABLE repeated (place INTEGER PRIMARY KEY, id NOT NULL, loss NOT NULL)",
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
]


def opened(path: Path, sync: bool, wanted: str | None) -> tuple[sqlite3.Connection, dict[str, Any]]:
    """Open the file for this process only, and create or check it; the connection, and the identity of the log."""
    if not path.parent.is_dir():
        raise LolsError(f"{path}: cannot be opened: there is no folder {path.parent}")
    if wanted is None and not path.is_file():
        raise LolsError(f"{path}: there is no such log: give an identity to begin one")
    connection = None
    try:
        # Without isolation level, every statement is its own transaction unless BEGIN is executed.
        connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        _take(connection, path, sync, wanted)
        row = connection.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
        identity = parsed(row and row[0], path)
        if wanted is not None:
            asked = parsed(wanted, path)
            identity, before = _in_words_of_today(identity, asked), identity
            compare(identity, asked, path)
            if identity != before:
                connection.execute("UPDATE about SET value = ? WHERE name = 'identity'", (wanted,))
                warnings.warn(
                    f"{path}: begun by lols 0.2, which noted byte code in place of sources: whether the functions have "
                    "changed since then is not known",
                    stacklevel=4,
                )
        return connection, identity
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise explained(error, path) from error
        if isinstance(error, RecursionError | UnicodeDecodeError):
            part = "identity of the log" if isinstance(error, RecursionError) else "log"
            raise ModelFileError(f"{path}: the {part} is damaged: {RESTORE}") from None
        raise


def _take(connection: sqlite3.Connection, path: Path, sync: bool, wanted: str | None) -> None:
    """Lock the file, and create the tables if it is new; a file that is not a log is not changed."""
    run = connection.execute
    run("PRAGMA locking_mode = EXCLUSIVE")  # the lock is held until the process closes the file or dies
    application, version, tables = (
        int(run(query).fetchone()[0])
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    new = application == 0 and tables == 0 and wanted is not None
    if application != APPLICATION and not new:
        raise ModelFileError(f"{path}: a database, but not the log of a bandit: give another file")
    if not new and version != FORMAT:
        raise ModelFileError(
            f"{path}: written by another version of lols (format {version}, not {FORMAT}): update lols"
        )
    # Nothing else: a view, a trigger or a computed column would run, and could make gigabytes of nothing.
    if not new and {row[0] for row in run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")} != {*SCHEMA}:
        raise ModelFileError(f"{path}: the log is damaged (its tables are not those of a log): {RESTORE}")
    if run("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise LolsError(f"{path}: SQLite cannot keep a write-ahead log there: give a file on a local disk")
    run(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
    run(f"PRAGMA fullfsync = {int(sync)}")  # macOS: flush the cache of the disk, too
    run("BEGIN IMMEDIATE")
    if new:  # if killed before COMMIT, the file has no tables and is new again
        for statement in SCHEMA:
            run(statement)
        run("INSERT INTO about VALUES ('identity', ?)", (wanted,))
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {FORMAT}")
    run("COMMIT")


def explained(error: sqlite3.Error, path: Path) -> LolsError:
    """An error of SQLite as one line with a fix."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        fix = "close it there, or give another file, since a log has one writer"
        return LolsError(f"{path}: another process has this log open, or this one has it open twice: {fix}")
    if code == sqlite3.SQLITE_NOTADB:
        return ModelFileError(f"{path}: not the log of a bandit: give another file")
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


def _in_words_of_today(held: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """An identity that 0.2 wrote, with what is wanted in place of its digests of byte code, which nothing can check."""
    if "learning" in held or "learning" not in wanted:
        return held
    parts = {name: held[name] for name in ("space", "reference") if isinstance(held.get(name), dict)}
    told = {
        name: {key: value for key, value in part.items() if key != "digest"} | {"source": wanted[name]["source"]}
        for name, part in parts.items()
    }
    return {**held, **told, "learning": wanted["learning"]}


def compare(held: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Raise an error that names the differences if a log has other settings.

    >>> compare({"space": {"labels": 3}, "seed": 1}, {"space": {"labels": 4}, "seed": 1}, Path("shown.log"))
    Traceback (most recent call last):
    lols.errors.ConfigurationError: shown.log: of another bandit: space.labels is 3 in the log and 4 here; give the same
    settings, or another file
    """
    there, here = dict(_leaves(held)), dict(_leaves(wanted))
    different = [name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name)]
    if different:
        named = [
            f"{name} is {_shown(there, name)} in the log and {_shown(here, name)} here" for name in different[:MOST]
        ]
        if len(different) > MOST:
            named.append(f"{len(different) - MOST} more")
        fix = "give the same settings, or another file"
        if all(name.endswith(".source") for name in different):
            fix = "its functions have changed: use those of the log, or give another file"
        elif different == ["learning"]:
            fix = "lols learns in another way since then: use that version, or give another file"
        raise ConfigurationError(f"{path}: of another bandit: {', '.join(named)}; {fix}")


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
