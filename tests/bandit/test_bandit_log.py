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

from lols.bandit.entries import context_of
from lols.bandit.log import WHOLE, Decision, Entry, Event, Log, Loss, MemoryLog
from lols.errors import ConfigurationError, LolsError, ModelFileError
from tests.bandit.log_entries import IDENTITY, assert_same, decision, loss, made, same, sqlite_log, states

PLAIN = Decision(
    id="0",
    number=0,
    time=0.0,
    context=None,
    actions=np.zeros(0, np.int32),
    chances=np.zeros(0, np.float32),
    baseline=None,
    step=-1,
    action=-1,
    by_reference=False,
    chance_step=1.0,
    chance_action=1.0,
    version=0,
    policy=-1,
    guarded=False,
    propensity=math.nan,
    active=True,
    seen=None,
)


def plain(k: int) -> Decision:
    return PLAIN._replace(id=str(k), number=k)


def whole_loss(k: int, value: Any) -> Loss:
    return Loss(str(k), {WHOLE: value})


@pytest.fixture(params=["memory", "process", "power"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    kind = request.param
    with MemoryLog() if kind == "memory" else sqlite_log(tmp_path / "a.log", durability=kind) as one:
        yield one


# --- what goes in comes out ---


@st.composite
def decisions(draw: st.DrawFn, k: int) -> Decision:
    chance, number = st.floats(0, 1), st.integers(-(2**63), 2**63 - 1)
    actions = draw(arrays(np.int32, draw(st.integers(0, 9))))
    explored = draw(st.booleans()) and actions.size > 0
    at = draw(st.integers(0, actions.size - 1)) if explored else -1
    if explored:
        chance = st.floats(1e-4, 1)
    step_chance = st.floats(0, 1, exclude_min=True, width=32)
    context = draw(st.none() | st.dictionaries(st.text(), st.floats(allow_nan=False) | st.text()).map(context_of))
    return Decision(
        id=f"{k}{draw(st.text(st.characters(codec='utf-8', categories=['L', 'N', 'P']), max_size=9))}",
        number=k,
        time=draw(st.floats(-1e12, 1e12)),
        context=context,
        actions=actions,
        chances=draw(arrays(np.float32, draw(st.sampled_from([0, len(actions)])), elements=step_chance)),
        baseline=draw(st.none() | arrays(np.int32, 3)),
        step=at,
        action=int(actions[at]) if explored else draw(number),
        by_reference=draw(st.booleans()),
        chance_step=draw(chance),
        chance_action=draw(chance),
        version=draw(number),
        policy=draw(number),
        guarded=draw(st.booleans()),
        propensity=draw(chance | st.just(math.nan)),
        active=draw(st.booleans()),
        seen=None if explored else draw(st.none() | st.builds(states, *[st.integers(1, 4)] * 3)),
    )


@given(st.data())
@settings(max_examples=60)
def test_all_fields_come_back_bit_for_bit(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, entries, open_ids = Path(folder) / "a.log", [], []
        memory, sqlite = MemoryLog(), sqlite_log(Path(folder) / "a.log")
        for _ in range(data.draw(st.integers(0, 6))):
            entry: Entry
            if open_ids and data.draw(st.booleans()):
                which = data.draw(st.sampled_from(open_ids))
                open_ids.remove(which)
                steps = st.dictionaries(st.integers(WHOLE, 5), st.floats(0, 1), min_size=1)
                entry = Loss(which, data.draw(steps))
            elif data.draw(st.booleans()):
                entry = Event("settings", {"epsilon": data.draw(st.floats(0, 1))})
            else:
                entry = data.draw(decisions(memory.decisions()))
                open_ids.append(entry.id)
            entries.append(entry)
            assert memory.append(entry) and sqlite.append(entry)
        assert_same(list(sqlite.replay()), entries)
        assert_same(list(memory.replay()), entries)
        for k in range(len(entries)):
            assert_same(list(sqlite.replay(k)), entries[k:])
            assert_same(list(memory.replay(k)), entries[k:])
        sqlite.close()
        with sqlite_log(path) as again:
            assert_same(list(again.replay()), entries)
            assert again.decisions() == memory.decisions() and again.place() == memory.place() == len(entries)
            for entry in entries:
                if isinstance(entry, Decision):
                    assert same(again.find(entry.id), entry) and same(memory.find(entry.id), entry)
                    assert again.parts(entry.id) == memory.parts(entry.id)


def test_numbers_of_numpy_become_plain_ones(tmp_path: Path) -> None:
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(
            PLAIN._replace(number=np.int64(0), guarded=np.True_, chance_step=np.float32(0.25), policy=np.int32(2))
        )
        log.append(Loss("0", {WHOLE: np.float32(0.1)}))  # type: ignore[dict-item]
        first, second = log.replay()
    assert same(first, PLAIN._replace(guarded=True, chance_step=0.25, policy=2))
    assert same(second, whole_loss(0, float(np.float32(0.1))))


def test_arrays_are_written_at_once(tmp_path: Path) -> None:
    buffer = np.arange(5, dtype=np.int32)
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN._replace(actions=buffer[::2]))
        buffer[:] = 0
        (found,) = log.replay()
        assert isinstance(found, Decision) and found.actions.tolist() == [0, 2, 4]
        found.actions[0] = 7  # the reader's own


def test_a_log_in_memory_may_forget() -> None:
    log = MemoryLog(keep=3)
    for k in range(4):
        log.append(plain(k))
        assert log.append(whole_loss(k, 0.5)) and not log.append(whole_loss(k, 0.5))
    assert log.decisions() == 4 and log.duplicates() == 4 and log.place() == 8
    assert [entry.id for entry in log.replay() if not isinstance(entry, Event)] == ["2", "3", "3"]
    assert log.find("0") is None and log.find("1") is not None
    with pytest.raises(LolsError, match="unknown decision '0'"):
        log.append(whole_loss(0, 0.5))


def test_replay_in_the_order_of_writing_however_long(tmp_path: Path) -> None:
    wanted: list[Entry] = []
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
        log.append(plain(k))
    for entry in log.replay():
        assert isinstance(entry, Decision)
        log.append(Loss(entry.id, {WHOLE: 0.5}))
    assert [type(entry) for entry in log.replay()] == [Decision] * 3 + [Loss] * 3


def test_a_second_loss_is_ignored_and_counted(log: Log) -> None:
    log.append(PLAIN)
    assert [log.append(whole_loss(0, value)) for value in (0.25, 0.25, 1.0)] == [True, False, False]
    assert [entry.losses for entry in log.replay() if isinstance(entry, Loss)] == [{WHOLE: 0.25}]
    assert log.duplicates() == 2 and log.decisions() == 1


def test_duplicates_are_known_after_reopening(tmp_path: Path) -> None:
    with sqlite_log(tmp_path / "a.log") as log:
        log.append(PLAIN)
        log.append(whole_loss(0, 0.25))
        log.append(whole_loss(0, 0.5))
    with sqlite_log(tmp_path / "a.log") as log:
        assert not log.append(whole_loss(0, 0.75))
        assert log.duplicates() == 2
        assert [entry.losses for entry in log.replay() if isinstance(entry, Loss)] == [{WHOLE: 0.25}]


def test_threads_share_a_log(log: Log) -> None:
    for k in range(20):
        log.append(plain(k))
    counted: list[bool] = []
    threads = [
        threading.Thread(target=lambda: counted.extend(log.append(whole_loss(k, 0.5)) for k in range(20)))
        for _ in range(4)
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
        log.append(whole_loss(0, value))
    assert len(list(log.replay())) == 1
    assert log.append(whole_loss(0, 0.5))


@pytest.mark.parametrize("id", ["-1", "1", "00", "0 ", "another"])
def test_unknown_decision(log: Log, id: str) -> None:
    log.append(PLAIN)
    with pytest.raises(LolsError, match=f"unknown decision '{id}': give the id that came with the decision"):
        log.append(Loss(id, {WHOLE: 0.5}))
    assert len(list(log.replay())) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": 3}, "decision 3 is out of order: the log holds 0, so the next is 0"),
        ({"id": ""}, "the id of a decision is ''"),
        ({"id": "a\0"}, "the id of a decision is"),
        ({"chance_step": math.nan}, "chance_step is nan"),
        ({"chance_action": 1.5}, "chance_action is 1.5"),
        ({"propensity": -0.5}, "propensity is -0.5"),
        ({"step": 2**70}, "step is .*; it must be a whole number of 64 bits"),
        ({"version": 0.5}, "version is 0.5; it must be a whole number"),
        ({"policy": None}, "policy is None; it must be a whole number"),
        ({"time": math.inf}, "its time is inf"),
        ({"actions": [1, 2]}, "actions is list: give a 1-d array of int32"),
        ({"chances": np.zeros(0)}, "chances is float64, 1-d: give a 1-d array of float32"),
        ({"baseline": np.zeros((2, 2), np.int32)}, "baseline is int32, 2-d: give a 1-d array of int32"),
        ({"chances": np.zeros(2, np.float32)}, "2 chances for 0 actions"),
    ],
)
def test_a_decision_that_would_not_come_back(log: Log, change: dict[str, Any], message: str) -> None:
    with pytest.raises(LolsError, match=message):
        log.append(PLAIN._replace(**change))
    assert list(log.replay()) == [] and log.decisions() == 0


def test_other_things_are_refused(log: Log) -> None:
    with pytest.raises(LolsError, match="a Decision, a Loss or an Event, not tuple"):
        log.append((0, 0.5))  # type: ignore[arg-type]


def test_closed(tmp_path: Path) -> None:
    log = sqlite_log(tmp_path / "a.log")
    log.append(PLAIN)
    log.close()
    log.close()
    for use in (lambda: log.append(whole_loss(0, 0.5)), lambda: list(log.replay())):
        with pytest.raises(LolsError, match=r"a\.log: the log is closed: open it again"):
            use()


# --- whose log it is ---


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (IDENTITY | {"labels": 4}, "labels is 3 in the log and 4 here; give the same"),
        (IDENTITY | {"seed": 1}, "seed is not given in the log and 1 here;"),
        ({"labels": 3}, 'space.name is "layout" in the log and not given here, space.source is "ab12"'),
        ({"labels": True, "space": {"name": "layout", "source": "x" * 99}}, r'and true here, .* and "xx*\.\.\. here'),
        (
            IDENTITY | {"space": {"name": "layout", "source": "x"}},
            "its functions have changed: use .*relearn",
        ),
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
        ("UPDATE decisions SET actions = '[0]' WHERE place = 7", "entry 7 is damaged"),
        ("UPDATE outcomes SET loss = 0.123 WHERE place = 8", "entry 8 is damaged"),
        ("UPDATE decisions SET chance_step = 'x' WHERE place = 9", "entry 9 is damaged"),
        ("UPDATE decisions SET context = x'00' WHERE place = 13", "entry 13 is damaged"),
        ("DELETE FROM outcomes WHERE place = 10", "entry 10 is damaged .it is missing"),
        ("UPDATE decisions SET place = 70 WHERE place = 59", "entry 59 is damaged .it is missing"),
        ("UPDATE outcomes SET place = 59 WHERE place = 60", "entry 59 is damaged .it is there twice"),
        ("DROP TABLE outcomes", "the log is damaged .its tables are not those of a log"),
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
    assert refused > 30
