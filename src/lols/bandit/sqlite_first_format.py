"""Logs of lols 0.2: one table of entries, with the features of the state to learn from in the place of the object."""

from __future__ import annotations

import json
import math
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from lols.bandit.entries import WHOLE, Decision, check_fields, checksum, to_row
from lols.bandit.seen import seen_of
from lols.errors import LolsError

FORMAT = 1

_SCALARS = (
    *("id", "explored", "step", "action", "by_reference", "chance_step", "chance_action"),
    *("version", "policy", "guarded", "propensity"),
)
_PACKED = struct.Struct("<q?qq?ddqq?d")
_ARRAYS = {
    **{"ids": "<i8", "values": "<f4", "action_start": "<i8", "action_stop": "<i8"},
    **{"action_ids": "<i8", "action_values": "<f4", "legal": "?", "predicted": "<f4", "trail": "<i4", "chances": "<f4"},
}
_LOSS = struct.Struct("<qd")
_COLUMNS = ", ".join(f'"{name}"' for name in [*_SCALARS, *_ARRAYS])
_TABLES = ("entries", "repeated", "about")
_AT_ONCE = 256  # rows that are read at a time

SCHEMA = [
    f"""CREATE TABLE entries (
        place INTEGER PRIMARY KEY, kind NOT NULL, {_COLUMNS}, loss, checksum NOT NULL,
        UNIQUE (kind, id)
    )""",
    "CREATE TABLE repeated (place INTEGER PRIMARY KEY, id NOT NULL, loss NOT NULL)",
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
]


def begin(connection: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Set the old tables aside; the rows of the new ones are then read from them."""
    for name in _TABLES:
        connection.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
    return _rows(connection)


def end(connection: sqlite3.Connection) -> None:
    """Drop the old tables."""
    for name in _TABLES:
        connection.execute(f"DROP TABLE old_{name}")


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Rows of the new tables; ValueError if an old one is damaged."""
    query = f"SELECT place, kind, loss, {_COLUMNS}, checksum FROM old_entries WHERE place > ? ORDER BY place LIMIT ?"
    decisions = last = 0
    while rows := connection.execute(query, (last, _AT_ONCE)).fetchall():
        new: dict[str, list[tuple[Any, ...]]] = {"decisions": [], "outcomes": []}
        for place, kind, loss, *fields in rows:
            if place != last + 1:
                raise ValueError(f"entry {last + 1} is damaged (it is missing)")
            last = place
            try:
                if kind == 0:
                    decision = _decision(tuple(fields), decisions)
                    decisions += 1
                    id, *rest = to_row(decision)
                    new["decisions"].append((place, id, *rest))
                else:
                    new["outcomes"].append((place, *_outcome(fields[0], loss, fields[-1], decisions)))
            except (LolsError, TypeError, ValueError, struct.error, OverflowError) as error:
                raise ValueError(f"entry {place} is damaged ({' '.join(str(error).split())})") from None
        yield from ((table, rows) for table, rows in new.items() if rows)
    repeated = [(str(id), WHOLE, loss) for id, loss in connection.execute("SELECT id, loss FROM old_repeated")]
    if repeated:
        yield "repeated", repeated
    yield "about", _about(connection)


def _about(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The identity, in which settings that may change are apart."""
    row = connection.execute("SELECT value FROM old_about WHERE name = 'identity'").fetchone()
    try:
        identity = json.loads(row[0])
        settings = {"settings": identity.get("settings", {}), "guard": identity.get("guard")}
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise ValueError("the identity of the log is damaged") from None
    return [
        ("identity", json.dumps(identity)),
        ("settings", json.dumps(settings)),
        ("converted", "from format 1"),
    ]


def _outcome(number: Any, loss: Any, wanted: Any, decisions: int) -> tuple[Any, ...]:
    packed = _LOSS.pack(number, loss)
    if zlib.crc32(packed) != wanted:
        raise ValueError("the checksum is wrong")
    if not 0 <= number < decisions:
        raise ValueError(f"unknown decision {number}")
    row = (str(number), WHOLE, loss + 0.0, 0.0)
    return (*row, checksum(row))


def _decision(fields: tuple[Any, ...], count: int) -> Decision:
    scalars, blobs = list(fields[: len(_SCALARS)]), fields[len(_SCALARS) : -1]
    scalars[-1] = math.nan if scalars[-1] is None else scalars[-1]
    packed = _PACKED.pack(*scalars)
    if zlib.crc32(b"".join([packed, *blobs])) != fields[-1]:
        raise ValueError("the checksum is wrong")
    old: dict[str, Any] = dict(zip(_SCALARS, scalars, strict=True))
    for (name, kind), blob in zip(_ARRAYS.items(), blobs, strict=True):
        old[name] = np.frombuffer(blob, kind).astype(np.dtype(kind).newbyteorder("="))
    if old["id"] != count:
        raise ValueError(f"decision {old['id']} is out of order")
    explored = bool(old["explored"])
    decision = Decision(
        id=str(count),
        number=count,
        time=0.0,
        context=None,
        actions=old["trail"],
        chances=old["chances"],
        baseline=None,
        step=old["step"] if explored else -1,
        action=old["action"] if explored else -1,
        by_reference=bool(old["by_reference"]),
        chance_step=old["chance_step"],
        chance_action=old["chance_action"],
        version=old["version"],
        policy=old["policy"],
        guarded=bool(old["guarded"]),
        propensity=old["propensity"],
        active=True,
        seen=None,
    )
    if explored:
        by_action = bool(old["action_start"].size)
        shape = (int(by_action), -1) if by_action else (0, old["legal"].size)
        seen = seen_of(
            start=np.zeros(1, np.int64),
            stop=np.array([old["ids"].size]),
            ids=old["ids"],
            values=old["values"],
            action_start=old["action_start"].reshape(shape),
            action_stop=old["action_stop"].reshape(shape),
            action_ids=old["action_ids"],
            action_values=old["action_values"],
            legal=old["legal"].reshape(1, -1),
            taken=np.array([old["action"]]),
            chances=np.array([old["chance_action"]]),
            steps=np.array([old["step"]]),
        )
        decision = decision._replace(seen=seen)
    check_fields(decision)
    return decision
