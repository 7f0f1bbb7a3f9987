"""Logs whose rows were forged, with the right checksums: refused in one line, before anything is read or allocated."""

from __future__ import annotations

import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit.entries import ARRAYS, SCALARS, Decision, Loss, to_row
from lols.bandit.log import MemoryLog, SqliteLog
from lols.bandit.off_policy import deviations
from lols.errors import LolsError, ModelFileError
from tests.bandit.log_entries import IDENTITY, decision, sqlite_log
from tests.bandit.small_bandit import bandit, run

FORGED = 6  # a decision of the log below, its entry 13
FAR = 10**12


def forge(path: Path, entry: Decision) -> None:
    """Write a decision in the place of the one with number FORGED."""
    names = ", ".join(f'"{name}" = ?' for name in (*SCALARS, *ARRAYS))
    with sqlite3.connect(path) as connection:
        statement = f"UPDATE entries SET {names}, checksum = ? WHERE kind = 0 AND id = {FORGED}"
        assert connection.execute(statement, to_row(entry)).rowcount == 1
    connection.close()


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path))


CHANGES: dict[str, tuple[Callable[[Decision], dict[str, Any]], str]] = {
    "features before the array": (lambda d: {"action_start": d.action_start - FAR}, "out of bounds"),
    "features behind the array": (lambda d: {"action_stop": d.action_stop + FAR}, "out of bounds"),
    "features from stop to start": (lambda d: {"action_stop": d.action_start - 1}, "out of bounds"),
    "features of fewer actions": (
        lambda d: {"action_start": d.action_start[:1], "action_stop": d.action_stop[:1]},
        "has 3 actions, but not as many",
    ),
    "fewer values": (lambda d: {"values": d.values[:-1]}, "ids and values differ in length"),
    "fewer values of actions": (lambda d: {"action_values": d.action_values[:-1]}, "differ in length"),
    "an action beyond": (lambda d: {"action": FAR}, "its action 1000000000000 is not legal"),
    "a negative action": (lambda d: {"action": -FAR}, "its action -1000000000000 is not legal"),
    "no legal action": (lambda d: {"legal": np.zeros(3, np.bool_)}, "its action 0 is not legal"),
    "no actions": (lambda d: {"legal": np.zeros(0, np.bool_)}, "its action 0 is not legal"),
    "a negative step": (lambda d: {"step": -1}, "explored at step -1"),
    "a chance of zero": (lambda d: {"chance_action": 0.0}, "cannot have been taken with the chance 0.0"),
    "a step's chance of zero": (lambda d: {"chance_step": 0.0}, "cannot have been taken with the chance 0.0"),
    "a chance next to zero": (lambda d: {"chance_action": 1e-40}, "cannot have been taken with the chance 1e-40"),
    "an infinite chance": (lambda d: {"chance_action": float("inf")}, "chance_action is inf"),
    "chances of zero": (lambda d: {"chances": d.chances * 0}, "cannot have been taken with the chances"),
    "chances that are no numbers": (lambda d: {"chances": d.chances * np.float32(np.nan)}, "with the chances"),
    "fewer chances": (lambda d: {"chances": d.chances[:-1]}, "chances for 7 actions"),
    "fewer predictions": (lambda d: {"predicted": d.predicted[:1]}, "has 3 actions, but not as many predicted"),
    "another number": (lambda d: {"id": FAR}, "decision 1000000000000 is out of order"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_forged_decision_is_refused(what: str, copied: Path) -> None:
    change, message = CHANGES[what]
    forge(copied, decision(FORGED)._replace(**change(decision(FORGED))))
    with sqlite_log(copied) as log, pytest.raises(ModelFileError) as caught:
        list(log.replay())
    line = str(caught.value)
    assert f"{copied}: entry 13 is damaged (" in line and message in line and "\n" not in line
    with MemoryLog() as other:  # as it is refused when it is written
        for k in range(FORGED):
            other.append(decision(k))
        with pytest.raises(LolsError, match=message):
            other.append(decision(FORGED)._replace(**change(decision(FORGED))))


def test_a_loss_before_its_decision_is_refused(copied: Path) -> None:
    with sqlite3.connect(copied) as connection:
        connection.execute("UPDATE entries SET place = -place WHERE place IN (13, 14)")
        connection.execute("UPDATE entries SET place = 27 + place WHERE place < 0")  # -13 and -14 change places
    connection.close()
    with sqlite_log(copied) as log, pytest.raises(ModelFileError, match=r"entry 13 is damaged \(unknown decision 6"):
        list(log.replay())


# --- at the bandit, where kernels read what the log has ---


class Entries(MemoryLog):
    """A log of one's own, which checks nothing."""

    def __init__(self, entries: list[Decision | Loss]):
        super().__init__()
        self._entries.extend(entries)

    def decisions(self) -> int:
        return sum(isinstance(entry, Decision) for entry in self._entries)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logged") / "a.log"
    with bandit(epsilon=1.0, log=path, compiled=False) as made:
        run(made, 10)
    return path


@pytest.fixture(scope="module")
def entries(logged: Path) -> list[Decision | Loss]:
    with SqliteLog(logged, identity=None) as log:
        return list(log.replay())


BY_ACTION = ("action_start", "action_stop", "action_ids", "action_values")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"action_start": d.action_start - FAR}, "the features of its actions are out of bounds"),
        (lambda d: {"action_stop": d.action_stop + FAR}, "the features of its actions are out of bounds"),
        (lambda d: {"action": FAR}, "its action 1000000000000 is not legal"),
        (lambda d: {"chance_action": 0.0}, "cannot have been taken with the chance 0.0"),
        (lambda d: {"chance_action": float("inf")}, "chance_action is inf"),
        (lambda d: {name: getattr(d, name)[:0] for name in BY_ACTION}, "decision 6: only the space has features of"),
    ],
)
def test_a_bandit_refuses_a_forged_log(
    change: Any, message: str, logged: Path, entries: list[Decision | Loss], tmp_path: Path
) -> None:
    path, rows = Path(shutil.copy(logged, tmp_path)), list(entries)
    forged = rows[2 * FORGED]
    assert isinstance(forged, Decision) and forged.action_start.size
    rows[2 * FORGED] = forged = forged._replace(**change(forged))
    forge(path, forged)
    for log in (path, Entries(rows)):
        with pytest.raises(LolsError, match=message):
            bandit(epsilon=1.0, log=log, compiled=False)
    with pytest.raises(LolsError, match=f"{message}|has other actions than those before it"):
        deviations(Entries(rows), lambda d: int(d.action), compiled=False)


def test_a_loss_of_a_log_that_checks_nothing(entries: list[Decision | Loss]) -> None:
    with pytest.raises(LolsError, match="loss nan: give a number"):
        bandit(epsilon=1.0, log=Entries([*entries[:1], Loss(0, float("nan"))]), compiled=False)


# --- files that would cost more than they have ---


@pytest.mark.parametrize(
    "statements",
    [
        "DROP TABLE entries; CREATE VIEW entries AS WITH RECURSIVE n(place) AS (SELECT 1 UNION ALL SELECT 1 FROM n) "
        "SELECT place, 1 AS kind, 1 AS id, 1 AS loss, 1 AS checksum FROM n",
        "DROP TABLE repeated; CREATE TABLE repeated (id, loss AS (zeroblob(900000000)))",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN INSERT INTO repeated (id, loss) VALUES (1, 1); END",
    ],
    ids=["a view without end", "a column of nothing", "a trigger"],
)
def test_tables_that_compute_are_refused(statements: str, copied: Path) -> None:
    connection = sqlite3.connect(copied)
    connection.executescript(statements)
    connection.close()
    with pytest.raises(ModelFileError, match="its tables are not those of a log"):
        sqlite_log(copied)


def test_a_number_in_the_file_allocates_nothing(copied: Path) -> None:
    forge(copied, decision(FORGED)._replace(id=FAR))
    tracemalloc.start()
    try:
        with sqlite_log(copied) as log, pytest.raises(ModelFileError, match="is out of order"):
            assert log.decisions() == 30
            deviations(log, lambda d: int(d.action))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_what_sqlite_says_of_a_damaged_schema_is_one_line(copied: Path) -> None:
    damaged = copied.read_bytes().replace(b"CREATE TABLE entries (", b'CREATE TABLE entries\n"', 1)
    assert damaged != copied.read_bytes()
    copied.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="the log is damaged \\(malformed database schema") as caught:
        sqlite_log(copied)
    assert "\n" not in str(caught.value)


def test_a_schema_that_is_not_utf_8_is_one_line(copied: Path) -> None:
    whole = copied.read_bytes()
    named = whole.replace(b"tableentriesentries", b"table\xd4ntriesentries", 1)  # SQLite's message repeats the name
    damaged = named.replace(b"CREATE TABLE entries (", b'CREATE TABLE entries\n"', 1)
    assert whole != named != damaged
    copied.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="the log is damaged: "):
        sqlite_log(copied)


@pytest.mark.parametrize("identity", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "{", ""])
def test_an_identity_that_cannot_be_read(identity: str, copied: Path) -> None:
    with sqlite3.connect(copied) as connection:
        connection.execute("UPDATE about SET value = ?", (identity,))
    connection.close()
    for wanted in (IDENTITY, None):
        with pytest.raises(ModelFileError, match="the identity of the log is damaged"):
            sqlite_log(copied, identity=wanted)
