"""Logs whose rows were forged, with the right checksums: refused in one line, before anything is read or allocated."""

from __future__ import annotations

import shutil
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lols.bandit.entries import COLUMNS, WHOLE, Decision, Entry, Loss, checksum, to_row
from lols.bandit.log import MemoryLog, SqliteLog
from lols.bandit.off_policy import deviations
from lols.bandit.seen import Seen
from lols.errors import LolsError, ModelFileError
from tests.bandit.log_entries import IDENTITY, decision, sqlite_log, states
from tests.bandit.small_bandit import bandit, run

FORGED = 6  # a decision of the log below, its entry 13
FAR = 10**12


def forge(path: Path, entry: Decision) -> None:
    """Write a decision in the place of the one with number FORGED."""
    names = ", ".join(f"{name} = ?" for name in COLUMNS)
    with sqlite3.connect(path) as connection:
        statement = f"UPDATE decisions SET {names} WHERE number = {FORGED}"
        assert connection.execute(statement, to_row(entry)).rowcount == 1
    connection.close()


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path))


def states_of(d: Decision, k: int = 3, width: int = 3) -> Seen:
    seen = states(k, d.actions.size, width)
    seen.taken[d.step] = d.action
    seen.legal[d.step, d.action] = True
    return seen


def with_slots(d: Decision, **change: Any) -> dict[str, Any]:
    """The states of a decision, whose slots have other arrays."""
    seen = states_of(d)
    lessons = seen.lessons._replace(slots=seen.lessons.slots._replace(**change))
    return {"seen": seen._replace(lessons=lessons), "context": None}


def slots(d: Decision) -> Any:
    return states_of(d).lessons.slots


CHANGES: dict[str, tuple[Callable[[Decision], dict[str, Any]], str]] = {
    "features behind the array": (lambda d: with_slots(d, action_stop=slots(d).action_stop + FAR), "out of bounds"),
    "features from stop to start": (
        lambda d: with_slots(d, action_start=slots(d).action_stop, action_stop=slots(d).action_start - 1),
        "out of bounds",
    ),
    "features of fewer actions": (
        lambda d: with_slots(d, action_start=slots(d).action_start[:, :1], action_stop=slots(d).action_stop[:, :1]),
        "not as many lists of features",
    ),
    "features that are no numbers": (lambda d: with_slots(d, values=slots(d).values * np.float32(np.nan)), "is NaN"),
    "an action beyond": (lambda d: {"seen": states_of(d)._replace(taken=states_of(d).taken + FAR)}, "is not legal"),
    "a negative action": (lambda d: {"seen": states_of(d)._replace(taken=states_of(d).taken - FAR)}, "is not legal"),
    "no legal action": (lambda d: {"seen": states_of(d)._replace(legal=~np.ones((7, 3), np.bool_))}, "is not legal"),
    "steps out of order": (lambda d: {"seen": states_of(d)._replace(steps=np.arange(7)[::-1].copy())}, "out of order"),
    "chances of states": (lambda d: {"seen": states_of(d)._replace(chances=np.zeros(7))}, "cannot have been taken"),
    "another action": (lambda d: {"action": FAR}, "its action 1000000000000 is not the one at step"),
    "a step beyond": (lambda d: {"step": FAR}, "is not the one at step 1000000000000"),
    "no such state": (lambda d: {"seen": states_of(d).only(0)}, "it has not the state of step 6"),
    "a chance of zero": (lambda d: {"chance_action": 0.0}, "cannot have been taken with the chance 0.0"),
    "a step's chance of zero": (lambda d: {"chance_step": 0.0}, "cannot have been taken with the chance 0.0"),
    "a chance next to zero": (lambda d: {"chance_action": 1e-40}, "cannot have been taken with the chance 1e-40"),
    "an infinite chance": (lambda d: {"chance_action": float("inf")}, "chance_action is inf"),
    "chances of zero": (
        lambda d: {"chances": np.zeros(d.actions.size, np.float32)},
        "cannot have been taken with the chances",
    ),
    "fewer chances": (lambda d: {"chances": np.ones(2, np.float32)}, "2 chances for 7 actions"),
    "another number": (lambda d: {"number": FAR}, "decision 1000000000000 is out of order"),
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


def test_a_loss_before_its_decision_is_refused(logged: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(logged, tmp_path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE decisions SET place = 14 WHERE place = 13")
        connection.execute("UPDATE outcomes SET place = 13 WHERE place = 14")
    connection.close()
    with pytest.raises(LolsError, match="unknown decision '6'"):
        bandit(epsilon=1.0, advice=0.1, log=path, compiled=False)


# --- at the bandit, where kernels read what the log has ---


class Entries(MemoryLog):
    """A log of one's own, which checks nothing."""

    def __init__(self, entries: list[Entry]):
        super().__init__()
        self._entries.extend(entries)
        self._by_id = {entry.id: entry for entry in entries if isinstance(entry, Decision)}
        self._place = len(entries)

    def decisions(self) -> int:
        return len(self._by_id)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logged") / "a.log"
    with bandit(epsilon=1.0, advice=0.1, log=path, compiled=False) as made:
        run(made, 10)
    return path


@pytest.fixture(scope="module")
def entries(logged: Path) -> list[Entry]:
    with SqliteLog(logged, identity=None) as log:
        return list(log.replay())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"actions": d.actions + 10**6, "action": d.action + 10**6}, "its actions leave the space at step 0"),
        (lambda d: {"actions": d.actions[:-1], "chances": d.chances[:-1]}, "its actions leave the space at step"),
        (lambda d: {"context": None}, "the log does not hold its object"),
        (lambda d: {"context": '{"words": []}'}, "its actions leave the space|length"),
        (lambda d: {"context": '{"other": 1}'}, "failed on"),
        (lambda d: {"chance_action": 0.0}, "cannot have been taken with the chance 0.0"),
        (lambda d: {"chance_action": float("inf")}, "chance_action is inf"),
        (lambda d: {"seen": states_of(d, k=2), "context": None}, "decision 6: only the space has features of"),
        (lambda d: {"seen": states_of(d, width=4), "context": None}, "decision 6 has 4 actions and the space 3"),
    ],
)
def test_a_bandit_refuses_a_forged_log(
    change: Any, message: str, logged: Path, entries: list[Entry], tmp_path: Path
) -> None:
    path, rows = Path(shutil.copy(logged, tmp_path)), list(entries)
    forged = rows[2 * FORGED]
    assert isinstance(forged, Decision)
    rows[2 * FORGED] = forged = forged._replace(**change(forged))
    forge(path, forged)
    for log in (path, Entries(rows)):
        with pytest.raises(LolsError, match=message) as caught:
            bandit(epsilon=1.0, advice=0.1, log=log, compiled=False)
        assert "\n" not in str(caught.value)


def test_a_loss_of_a_log_that_checks_nothing(entries: list[Decision | Loss]) -> None:
    with pytest.raises(LolsError, match="loss nan: give a number"):
        bandit(epsilon=1.0, advice=0.1, log=Entries([*entries[:1], Loss("0", {WHOLE: float("nan")})]), compiled=False)


# --- files that would cost more than they have ---


@pytest.mark.parametrize(
    "statements",
    [
        "DROP TABLE outcomes; CREATE VIEW outcomes AS WITH RECURSIVE n(place) AS (SELECT 1 UNION ALL SELECT 1 FROM n) "
        "SELECT place, '1' AS id, 1 AS loss, -1 AS step, 0 AS time, 1 AS checksum FROM n",
        "DROP TABLE repeated; CREATE TABLE repeated (id, loss AS (zeroblob(900000000)))",
        "CREATE TRIGGER more AFTER INSERT ON decisions BEGIN INSERT INTO repeated VALUES ('1', 1, 1); END",
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
    forge(copied, decision(FORGED)._replace(number=FAR))
    tracemalloc.start()
    try:
        with sqlite_log(copied) as log, pytest.raises(ModelFileError, match="is out of order"):
            assert log.decisions() == 30
            deviations(log, lambda d: int(d.action))
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_small_row_does_not_fill_the_memory(copied: Path) -> None:
    packed = zlib.compress(bytes(1 << 29), 9)
    row = list(to_row(decision(FORGED)))
    row[COLUMNS.index("context")] = packed
    row[-1] = checksum(tuple(row[:-1]))
    with sqlite3.connect(copied) as connection:
        connection.execute(
            f"UPDATE decisions SET context = ?, checksum = ? WHERE number = {FORGED}",
            (row[COLUMNS.index("context")], row[-1]),
        )
    connection.close()
    with sqlite_log(copied) as log, pytest.raises(ModelFileError, match="a packed value has no end"):
        list(log.replay())


def test_what_sqlite_says_of_a_damaged_schema_is_one_line(copied: Path) -> None:
    damaged = copied.read_bytes().replace(b"CREATE TABLE decisions (", b'CREATE TABLE decisions\n"', 1)
    assert damaged != copied.read_bytes()
    copied.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="the log is damaged \\(malformed database schema") as caught:
        sqlite_log(copied)
    assert "\n" not in str(caught.value)


def test_a_schema_that_is_not_utf_8_is_one_line(copied: Path) -> None:
    whole = copied.read_bytes()
    named = whole.replace(
        b"tabledecisionsdecisions", b"table\xd4ecisionsdecisions", 1
    )  # SQLite's message repeats the name
    damaged = named.replace(b"CREATE TABLE decisions (", b'CREATE TABLE decisions\n"', 1)
    assert whole != named != damaged
    copied.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="the log is damaged: "):
        sqlite_log(copied)


@pytest.mark.parametrize("identity", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "{", ""])
def test_an_identity_that_cannot_be_read(identity: str, copied: Path) -> None:
    with sqlite3.connect(copied) as connection:
        connection.execute("UPDATE about SET value = ? WHERE name = 'identity'", (identity,))
    connection.close()
    for wanted in (IDENTITY, None):
        with pytest.raises(ModelFileError, match="the identity of the log is damaged"):
            sqlite_log(copied, identity=wanted)
