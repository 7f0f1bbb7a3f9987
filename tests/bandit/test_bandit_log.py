"""The log of a bandit: what it acknowledges is there, once and bit for bit, whatever happens to the process."""

from __future__ import annotations

import math
import random
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lols.bandit.log import Decision, Log, Loss, MemoryLog
from lols.errors import ConfigurationError, LolsError, ModelFileError
from tests.bandit.log_entries import IDENTITY, assert_same, decision, loss, made, same, sqlite_log

LONGS, FLOATS = np.zeros(0, np.int64), np.zeros(0, np.float32)
PLAIN = Decision(
    *(0, False, -1, -1, False, 1.0, 1.0, 0, -1, False, math.nan),
    *(LONGS, FLOATS, LONGS, LONGS, LONGS, FLOATS, np.zeros(0, np.bool_), FLOATS, np.zeros(0, np.int32), FLOATS),
)


@pytest.fixture(params=["memory", "process", "power"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    kind = request.param
    with MemoryLog() if kind == "memory" else sqlite_log(tmp_path / "a.log", durability=kind) as one:
        yield one


# --- what goes in comes out ---


@st.composite
def decisions(draw: st.DrawFn, k: int) -> Decision:
    def array(kind: type, size: int | None = None) -> np.ndarray:
        return draw(arrays(kind, draw(st.integers(0, 9)) if size is None else size))

    chance, number = st.floats(0, 1) | st.just(-0.0), st.integers(-(2**63), 2**63 - 1)
    ids, action_ids, legal, trail = array(np.int64), array(np.int64), array(np.bool_), array(np.int32)
    explored, by_action, actions = bool(legal.any()) and draw(st.booleans()), draw(st.booleans()), len(legal)
    if explored:
        step, action = draw(st.integers(0, 2**63 - 1)), draw(st.sampled_from(np.flatnonzero(legal).tolist()))
        chance = st.floats(1e-15, 1)
    else:
        step, action = draw(number), draw(number)
    bounds = np.sort(draw(arrays(np.int64, 2 * actions * by_action, elements=st.integers(0, len(action_ids)))))
    step_chance = st.floats(0, 1, exclude_min=True, width=32)
    return Decision(
        *(k, explored, step, action, draw(st.booleans()), draw(chance), draw(chance)),
        *(draw(number), draw(number), draw(st.booleans()), draw(chance | st.just(math.nan) | st.just(-math.nan))),
        *(ids, array(np.float32, len(ids)), bounds[::2].copy(), bounds[1::2].copy()),
        *(action_ids, array(np.float32, len(action_ids)), legal, array(np.float32, actions)),
        *(trail, draw(arrays(np.float32, draw(st.sampled_from([0, len(trail)])), elements=step_chance))),
    )


def without_sign_of_nan(entry: Decision | Loss) -> Decision | Loss:
    return (
        entry._replace(propensity=math.nan) if isinstance(entry, Decision) and math.isnan(entry.propensity) else entry
    )


@given(st.data())
@settings(max_examples=60)
def test_all_fields_come_back_bit_for_bit(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, entries, open_ids = Path(folder) / "a.log", [], []
        memory, sqlite = MemoryLog(), sqlite_log(Path(folder) / "a.log")
        for _ in range(data.draw(st.integers(0, 6))):
            entry: Decision | Loss
            if open_ids and data.draw(st.booleans()):
                which = data.draw(st.sampled_from(open_ids))
                open_ids.remove(which)
                entry = Loss(which, data.draw(st.floats(0, 1) | st.just(-0.0)))
            else:
                entry = data.draw(decisions(memory.decisions()))
                open_ids.append(entry.id)
            entries.append(without_sign_of_nan(entry))
            assert memory.append(entry) and sqlite.append(entry)
        assert_same(list(sqlite.replay()), entries)
        assert_same([without_sign_of_nan(entry) for entry in memory.replay()], entries)
        sqlite.close()
        with sqlite_log(path) as again:
            assert_same(list(again.replay()), entries)
            assert again.decisions() == memory.decisions()


def test_numbers_of_numpy_become_plain_ones(tmp_path: Path) -> None:
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN._replace(id=np.int64(0), guarded=np.True_, chance_step=np.float32(0.25), step=np.int32(2)))
        log.append(Loss(np.int64(0), np.float32(0.1)))  # type: ignore[arg-type]
        first, second = log.replay()
    assert same(first, PLAIN._replace(guarded=True, chance_step=0.25, step=2))
    assert same(second, Loss(0, float(np.float32(0.1))))


def test_arrays_are_written_at_once(tmp_path: Path) -> None:
    buffer = np.arange(5, dtype=np.int32)
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN._replace(trail=buffer[::2]))
        buffer[:] = 0
        (found,) = log.replay()
        assert isinstance(found, Decision) and found.trail.tolist() == [0, 2, 4]
        found.trail[0] = 7  # the reader's own


def test_a_log_in_memory_may_forget() -> None:
    log = MemoryLog(keep=3)
    for k in range(4):
        log.append(PLAIN._replace(id=k))
        assert log.append(Loss(k, 0.5)) and not log.append(Loss(0, 0.5))
    assert log.decisions() == 4 and log.duplicates() == 4
    assert [entry.id for entry in log.replay()] == [2, 3, 3]


def test_replay_in_the_order_of_writing_however_long(tmp_path: Path) -> None:
    wanted: list[Decision | Loss] = []
    with sqlite_log(tmp_path / "a.log") as log:
        for k in range(400):
            wanted.append(decision(k))
            if k % 3 == 2:
                wanted += [loss(k), loss(k - 2)]
            for entry in wanted[-1 if k % 3 < 2 else -3 :]:
                assert log.append(entry)
        assert_same(list(log.replay()), wanted)


def test_replay_ends_with_what_was_there_when_it_began(log: Log) -> None:
    for k in range(3):
        log.append(PLAIN._replace(id=k))
    for entry in log.replay():
        log.append(Loss(entry.id, 0.5))
    assert [type(entry) for entry in log.replay()] == [Decision] * 3 + [Loss] * 3


def test_a_second_loss_is_ignored_and_counted(log: Log) -> None:
    log.append(PLAIN)
    assert [log.append(Loss(0, value)) for value in (0.25, 0.25, 1.0)] == [True, False, False]
    assert [entry.loss for entry in log.replay() if isinstance(entry, Loss)] == [0.25]
    assert log.duplicates() == 2 and log.decisions() == 1


def test_duplicates_are_known_after_reopening(tmp_path: Path) -> None:
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN)
        log.append(Loss(0, 0.25))
        log.append(Loss(0, 0.5))
    with sqlite_log(tmp_path / "a.log") as log:
        assert not log.append(Loss(0, 0.75))
        assert log.duplicates() == 2
        assert [entry.loss for entry in log.replay() if isinstance(entry, Loss)] == [0.25]


def test_threads_share_a_log(log: Log) -> None:
    for k in range(20):
        log.append(PLAIN._replace(id=k))
    counted: list[bool] = []
    threads = [
        threading.Thread(target=lambda: counted.extend(log.append(Loss(k, 0.5)) for k in range(20))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counted) == 20 and log.duplicates() == 60
    assert len(list(log.replay())) == 40


# --- bad use: an error, and nothing is written ---


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, -math.inf, None, "0.5", [0.5], 1j])
def test_a_loss_is_a_number_from_0_to_1(log: Log, value: Any) -> None:
    log.append(PLAIN)
    with pytest.raises(LolsError, match="give a number from 0 to 1"):
        log.append(Loss(0, value))
    assert len(list(log.replay())) == 1
    assert log.append(Loss(0, 0.5))


@pytest.mark.parametrize("number", [-1, 1, 17, 2**70, "0", None, 0.0])
def test_unknown_decision(log: Log, number: Any) -> None:
    log.append(PLAIN)
    with pytest.raises(LolsError, match=f"unknown decision {number!r}: the log holds 1, 0 to 0; give the id"):
        log.append(Loss(number, 0.5))
    assert len(list(log.replay())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 3}, "decision 3 is out of order: the log holds 0, so the next is 0"),
        ({"chance_step": math.nan}, "chance_step is nan"),
        ({"chance_action": 1.5}, "chance_action is 1.5"),
        ({"propensity": -0.5}, "propensity is -0.5"),
        ({"step": 2**70}, "a number cannot be written"),
        ({"version": 0.5}, "a number cannot be written"),
        ({"policy": None}, "a number cannot be written"),
        ({"ids": [1, 2]}, "ids is list: give a 1-d array of int64"),
        ({"values": np.zeros(0)}, "values is float64, 1-d: give a 1-d array of float32"),
        ({"legal": np.zeros((2, 2), np.bool_)}, "legal is bool, 2-d: give a 1-d array of bool"),
        ({"ids": np.zeros(2, np.int64)}, "ids and values differ in length"),
        ({"chances": np.zeros(2, np.float32)}, "2 chances for 0 actions"),
    ],
)
def test_a_decision_that_would_not_come_back(log: Log, change: dict[str, Any], message: str) -> None:
    with pytest.raises(LolsError, match=message):
        log.append(PLAIN._replace(**change))
    assert list(log.replay()) == [] and log.decisions() == 0


def test_other_things_are_refused(log: Log) -> None:
    with pytest.raises(LolsError, match="a Decision or a Loss, not tuple"):
        log.append((0, 0.5))  # type: ignore[arg-type]


def test_closed(tmp_path: Path) -> None:
    log = sqlite_log(tmp_path / "a.log")
    log.append(PLAIN)
    log.close()
    log.close()
    for use in (lambda: log.append(Loss(0, 0.5)), lambda: list(log.replay())):
        with pytest.raises(LolsError, match=r"a\.log: the log is closed: open it again"):
            use()


# --- whose log it is ---


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (IDENTITY | {"epsilon": 0.2}, "epsilon is 0.1 in the log and 0.2 here; give the same"),
        (IDENTITY | {"seed": 1}, "seed is not given in the log and 1 here;"),
        ({"epsilon": 0.1}, 'space.digest is "ab12" in the log and not given here, space.name is "layout"'),
        ({"epsilon": True, "space": {"name": "layout", "digest": "x" * 99}}, r'and true here, .* and "xx*\.\.\. here'),
        ({str(k): k for k in range(9)}, "7 more; give"),
    ],
)
def test_another_identity(tmp_path: Path, identity: dict[str, Any], message: str) -> None:
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN)
    with pytest.raises(ConfigurationError, match=rf"a\.log: of another bandit: .*{message}"):
        sqlite_log(tmp_path / "a.log", identity=identity)
    with sqlite_log(tmp_path / "a.log") as log:  # as it was, and open to its own bandit
        assert log.decisions() == 1


def test_the_same_identity_in_other_words(tmp_path: Path) -> None:
    sqlite_log(tmp_path / "a.log", identity={"b": (1, 2), "a": 0.1}).close()
    for identity in ({"a": 0.1, "b": [1, 2]}, None):
        with sqlite_log(tmp_path / "a.log", identity=identity) as log:
            assert log.identity == {"a": 0.1, "b": [1, 2]}


def test_bad_options(tmp_path: Path) -> None:
    for options, message in [
        ({"durability": "eternal"}, "durability 'eternal': give one of process, power"),
        ({"identity": {"a": object()}}, "must be JSON"),
        ({"identity": {"a": math.nan}}, "must be JSON"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            sqlite_log(tmp_path / "a.log", **options)
    with pytest.raises(LolsError, match="there is no such log"):
        sqlite_log(tmp_path / "a.log", identity=None)
    with pytest.raises(LolsError, match="there is no folder"):
        sqlite_log(tmp_path / "b" / "a.log")
    with pytest.raises(LolsError, match="cannot be read or written"):
        sqlite_log(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- damaged and foreign files ---


def test_foreign_files_stay_as_they_are(tmp_path: Path) -> None:
    text, other = tmp_path / "a.txt", tmp_path / "other.db"
    text.write_text("x\ty\n" * 1000)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path, message in [(text, "not the log of a bandit"), (other, "a database, but not the log of a bandit")]:
        before = path.read_bytes()
        with pytest.raises(ModelFileError, match=rf"{path.name}: {message}"):
            sqlite_log(path)
        assert path.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "other.db"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entries SET ids = x'0102030405060708' WHERE place = 7", "entry 7 is damaged"),
        ("UPDATE entries SET loss = 0.123 WHERE place = 8", "entry 8 is damaged"),
        ("UPDATE entries SET chance_step = 'x' WHERE place = 9", "entry 9 is damaged"),
        ("DELETE FROM entries WHERE place = 10", "59 entries and the last is 60"),
        ("UPDATE entries SET place = 70 WHERE place = 60", "60 entries and the last is 70"),
        ("DROP TABLE entries", "the log is damaged .its tables are not those of a log"),
        ("DELETE FROM about", "the identity of the log is damaged"),
        ("PRAGMA user_version = 9", "written by another version of lols"),
    ],
)
def test_an_edited_log(whole: Path, tmp_path: Path, statement: str, message: str) -> None:
    path = Path(shutil.copy(whole, tmp_path))
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(ModelFileError, match=rf"a\.log: {message}"), sqlite_log(path) as log:
        list(log.replay())


def test_a_damaged_file_gives_an_error_or_the_same_entries(whole: Path, tmp_path: Path) -> None:
    content, rng = whole.read_bytes(), random.Random(0)
    wanted = [made(kind, k) for k in range(30) for kind in ("decision", "loss")]
    refused = 0
    for k in range(150):
        damaged = bytearray(content)
        if k % 10 == 0:
            del damaged[rng.randrange(1, len(content)) :]
        else:  # headers of pages are where it hurts
            page = rng.randrange(len(content) // 4096) * 4096
            damaged[page + rng.randrange(rng.choice([30, 300, 4096]))] ^= 1 << rng.randrange(8)
        path = tmp_path / f"{k}.log"
        path.write_bytes(damaged)
        try:
            with sqlite_log(path) as log:
                assert_same(list(log.replay()), wanted)
        except LolsError as error:
            assert "\n" not in str(error) and path.name in str(error)
            refused += 1
    assert refused > 50
