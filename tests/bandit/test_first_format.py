"""Logs of lols 0.2 are converted: the same entries, and the same policy."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit import SqliteLog, StructuredBandit
from lols.bandit.log import WHOLE, Decision, Loss
from lols.bandit.retrace import Retracer
from lols.bandit.sqlite_first_format import SCHEMA
from lols.errors import ConfigurationError, ModelFileError
from tests.bandit.killed_bandits import KINDS
from tests.bandit.small_bandit import bandit, request, run

BEFORE: list[dict[str, Any]] = [{}, {"algorithm": "deviations"}]  # the only one of the time, in these logs the default
NOTHING = {"ids": "i8", "values": "f4", "action_start": "i8", "action_stop": "i8", "action_ids": "i8"}
NOTHING |= {"action_values": "f4", "legal": "?"}


def as_before(made: StructuredBandit, path: Path, **settings: Any) -> None:
    """Write the log of a bandit as lols 0.2 would have."""
    retracer = Retracer(made.space, compiled=False)
    with sqlite3.connect(path) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        for entry in made.log.replay():
            if isinstance(entry, Loss):
                packed = struct.pack("<qd", int(entry.id), entry.losses[WHOLE])
                connection.execute(
                    "INSERT INTO entries (kind, id, loss, checksum) VALUES (1, ?, ?, ?)",
                    (int(entry.id), entry.losses[WHOLE], zlib.crc32(packed)),
                )
            elif isinstance(entry, Decision):
                row = row_of(entry, retracer)
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO entries VALUES (NULL, 0, {marks}, NULL, 0)", row)
                packed = struct.pack("<q?qq?ddqq?d", *row[:10], np.nan if row[10] is None else row[10])
                connection.execute(
                    "UPDATE entries SET checksum = ? WHERE place = last_insert_rowid()",
                    (zlib.crc32(b"".join([packed, *row[11:]])),),
                )
        of_settings = json.loads(json.dumps(vars(made.settings) | {"learner": vars(made.settings.learner)}))
        identity = {
            "space": {"name": made.space.name, "actions": made.space.action_count, "settings": {}, "digest": "0f"},
            "reference": {"name": "rule", "digest": "0e"},
            "settings": of_settings | settings,
            "guard": made.guard and made.guard.identity(),
        }
        connection.execute("INSERT INTO about VALUES ('identity', ?)", (json.dumps(identity),))
        connection.execute("INSERT INTO repeated (id, loss) VALUES (3, 0.5)")
        connection.execute("PRAGMA application_id = 1819241587")
        connection.execute("PRAGMA user_version = 1")
    connection.close()


def row_of(entry: Decision, retracer: Retracer) -> list[Any]:
    arrays = {name: np.zeros(0, kind) for name, kind in NOTHING.items()}
    if entry.explored:
        seen = retracer(entry).only(entry.step).compact()
        arrays = {name: seen[name].reshape(-1) for name in NOTHING}
    blobs = [array.tobytes() for array in arrays.values()]
    blobs += [np.zeros(arrays["legal"].size, "f4").tobytes(), entry.actions.tobytes(), entry.chances.tobytes()]
    propensity = None if np.isnan(entry.propensity) else entry.propensity
    numbers = [entry.number, entry.explored, entry.step, entry.action, entry.by_reference, entry.chance_step]
    return [*numbers, entry.chance_action, entry.version, entry.policy, entry.guarded, propensity, *blobs]


@pytest.mark.parametrize("kind", ["default", "drawn", "guard", "bag", "steps"])
def test_a_log_of_before_is_converted(tmp_path: Path, kind: str) -> None:
    options = {**KINDS[kind], "compiled": False}
    made, path = bandit(**options, **BEFORE[kind == "default"]), tmp_path / "shown.log"
    run(made, 30)
    as_before(made, path)
    with pytest.warns(UserWarning, match="begun by lols 0.2, and converted"), bandit(log=path, **options) as again:
        assert again.policy().digest() == made.policy().digest()
        assert again.report() == made.report() | {"ignored": 1}
        run(made, 10, 30)
        run(again, 10, 30)
        same_but_repeated(made, again)
    with bandit(log=path, **options) as again:  # without a word
        same_but_repeated(made, again)
        assert again.decide(request(0)).id == "40"


def same_but_repeated(made: StructuredBandit, again: StructuredBandit) -> None:
    assert again.policy().digest() == made.policy().digest()
    assert again.report() == made.report() | {"ignored": 1}


def test_a_log_of_before_may_be_read_first(tmp_path: Path) -> None:
    made, path = bandit(algorithm="deviations", compiled=False), tmp_path / "shown.log"
    run(made, 5)
    as_before(made, path)
    with pytest.warns(UserWarning, match="converted"), SqliteLog(path, identity=None) as log:
        assert log.decisions() == 5 and log.duplicates() == 1
    with bandit(log=path, compiled=False) as again:
        assert again.policy().digest() == made.policy().digest()


def test_a_log_of_another_bandit_of_before_is_refused(tmp_path: Path) -> None:
    made, path = bandit(algorithm="deviations", compiled=False), tmp_path / "shown.log"
    run(made, 5)
    as_before(made, path, advice=0.7)
    with (
        pytest.warns(UserWarning, match="converted"),
        pytest.raises(ConfigurationError, match=r"settings.advice is 0.7 in the log and 0.1 here"),
    ):
        bandit(log=path, compiled=False)


def test_a_damaged_log_of_before_stays_as_it_is(tmp_path: Path) -> None:
    made, path = bandit(algorithm="deviations", compiled=False), tmp_path / "shown.log"
    run(made, 5)
    as_before(made, path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET loss = 0.125 WHERE place = 4")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"shown\.log: entry 4 is damaged .the checksum is wrong"):
        bandit(log=path, compiled=False)
    assert path.read_bytes() == before
