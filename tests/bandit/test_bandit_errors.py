"""A bandit and its log through errors, interrupts and threads: nothing lost, nothing twice, the same policy."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.guard import Guard
from lols.bandit.log import Decision, Entry
from lols.errors import LolsError
from tests.bandit.killed_bandits import KINDS, Twin, assert_alike, assert_once, bandit, bits, by_hand, known
from tests.bandit.log_entries import assert_same
from tests.bandit.small_bandit import FAR, RULES, SPACE, UNKNOWN, request


class Unreliable(MemoryLog):
    """A log that now and then writes nothing and says so."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(5)

    def append(self, entry: Entry) -> bool:
        if self.rng.random() < 0.3:
            raise LolsError("the disk is full")
        return super().append(entry)


@pytest.mark.parametrize("kind", ["default", "drawn", "steps"])
def test_after_a_log_that_fails_the_same_decision_is_made_again(kind: str) -> None:
    log = Unreliable()
    made, twin = bandit(kind, log=log), Twin(kind)
    failures = 0
    for k in range(40):
        for job in (lambda k=k: made.decide(request(k)), lambda k=k: made.learn(k, 0.25 * (k % 5))):
            while True:
                before = known(made), bits(made)
                try:
                    job()
                    break
                except LolsError:
                    failures += 1
                    assert (known(made), bits(made)) == before
    assert failures > 10
    twin.follow(list(log.replay()))
    assert_alike(made, twin.bandit)
    assert_alike(made, by_hand(kind, list(log.replay())))


def stumbling(obj: Any) -> Any:
    if "words" not in obj:
        raise KeyError("no words there")
    return {"words": obj["words"]}


@pytest.mark.parametrize("kind", ["default", "guard", "bag", "steps"])
def test_an_error_in_encode_or_in_the_rules_leaves_no_trace(tmp_path: Path, kind: str) -> None:
    space, options = replace(SPACE, encode=stumbling), {"epsilon": 0.6, "seed": 4, **KINDS[kind]}
    errors, twin = [], StructuredBandit(space, RULES, log=MemoryLog(), **options)
    with StructuredBandit(space, RULES, log=tmp_path / "shown.log", **options) as made:
        for k in range(40):
            for obj in ({"text": k}, {"words": [1, 2, UNKNOWN]}, {"words": [1, 2, FAR]}, request(k)):
                before = made.report(), bits(made)
                try:
                    shown = made.decide(obj)  # the rules are asked only where they complete a deviation, or are shown
                except LolsError as error:
                    errors.append(str(error))
                    assert obj != request(k) and (made.report(), bits(made)) == before
                    continue
                assert shown == twin.decide(obj)
                for one in (made, twin):
                    one.learn(shown.id, int(shown.id) % 5 / 4)
        assert_same(list(made.log.replay()), list(twin.log.replay()))
        assert_alike(made, twin)
    assert not any("\n" in error for error in errors)
    assert sum("no words there" in error for error in errors) == 40
    unknown = sum("no rule for this word" in error for error in errors)
    far = sum("failed with IndexError: index 1002 is out of bounds" in error for error in errors)
    assert unknown > 5 and far > 5 and unknown + far == len(errors) - 40


# --- interrupted between writing and taking ---


class InterruptedMemory(MemoryLog):
    """A log that writes an entry, and is interrupted before it can say so."""

    interrupt: type[BaseException] | None = None

    def append(self, entry: Entry) -> bool:
        written = super().append(entry)
        if self.interrupt is not None:
            raise self.interrupt
        return written


class InterruptedFile(SqliteLog):
    """The same in a file, interrupted after the statement."""

    interrupt: type[BaseException] | None = None

    def _run(self, statement: str, values: tuple[Any, ...]) -> int:
        changed = super()._run(statement, values)
        if self.interrupt is not None and statement.startswith("INSERT"):
            raise self.interrupt
        return changed


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", ["default", "guard", "bag"])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("in_file", [False, True])
def test_interrupted_after_writing_the_entry_is_not_lost(
    tmp_path: Path, kind: str, interrupt: type[BaseException], in_file: bool
) -> None:
    log = InterruptedFile(tmp_path / "shown.log", identity={}) if in_file else InterruptedMemory()
    with bandit(kind, log=log) as made:
        for k in range(24):
            for job in (lambda k=k: made.decide(request(k)), lambda k=k: made.learn(k, 0.25 * (k % 5))):
                log.interrupt = interrupt if k % 4 == 1 else None
                try:
                    job()
                except interrupt:
                    log.interrupt = None
        twin, entries = Twin(kind), list(log.replay())
        twin.follow(entries)
        assert_alike(made, twin.bandit)
        assert len(entries) == 48 and made.report()["losses"] == 24


def test_interrupted_while_learning_the_loss_is_learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    made, twin = bandit("default", log=log), Twin("default")
    learn = made._student.learner.learn

    def interrupted(batch: Any) -> None:
        learn(batch)
        raise KeyboardInterrupt

    for k in range(20):
        made.decide(request(k))
        with monkeypatch.context() as patch:
            if k % 3 == 2:
                patch.setattr(made._student.learner, "learn", interrupted)
            try:
                made.learn(k, 0.5)
            except KeyboardInterrupt:
                continue
    made.decide(request(20))
    twin.follow(list(log.replay()))
    assert_alike(made, twin.bandit)


# --- what a rebuilt bandit must not depend on ---


def test_second_losses_are_counted_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    for ignored in (2, 4):
        with bandit("default", log=path) as made:
            shown = made.decide(request(0))
            for _ in range(3):
                made.learn(shown.id, 0.5)
            assert made.report()["ignored"] == made.log.duplicates() == ignored


@pytest.mark.parametrize("number", [np.float32, np.float64, float, np.float16])
def test_losses_of_any_kind_of_number(tmp_path: Path, number: type) -> None:
    logs = [tmp_path / "shown.log", MemoryLog()]
    made = [bandit("default", log=log) for log in logs]
    for k in range(30):
        for one in made:
            one.decide(request(k))
            one.learn(np.int64(k), number(k % 7 / 7))  # type: ignore[arg-type]
    assert_alike(*made)
    made[0].close()
    again = [bandit("default", log=log) for log in logs]
    for other in again:
        assert_alike(made[1], other)
        assert type(other.report()["loss"]) is float
    again[0].close()


def test_a_guard_that_was_used_before_begins_anew() -> None:
    guard, log = Guard(confidence=0.6, memory=50), MemoryLog()
    made = bandit("guard", guard=guard, log=log)
    for k in range(80):
        made.learn(made.decide(request(k)).id, k % 4 / 3)
    assert made.guard is not None
    before = {**vars(made.guard.learned)}, {**vars(made.guard.reference)}, made.guard.trusted
    again = bandit("guard", guard=guard, log=log)
    for one in (made, again):
        assert one.guard is not None
        assert (vars(one.guard.learned), vars(one.guard.reference), one.guard.trusted) == before


# --- threads ---


@pytest.mark.parametrize("kind", ["default", "drawn", "guard"])
def test_threads_share_a_bandit(tmp_path: Path, kind: str) -> None:
    path, failed = tmp_path / "shown.log", []
    objects: dict[str, Any] = {}
    outputs: dict[str, list[int]] = {}

    def serve(made: StructuredBandit, seed: int) -> None:
        rng, mine = random.Random(seed), []
        try:
            for k in range(seed * 1000, seed * 1000 + 30):
                shown = made.decide(request(k))
                assert shown.id not in objects
                objects[shown.id], outputs[shown.id] = request(k), shown.output
                mine.append(shown.id)
                for _ in range(2):
                    made.learn(rng.choice(mine if rng.random() < 0.5 else list(outputs)), rng.random())
                made.predict(request(k))
                made.report()
                made.policy()
        except BaseException as error:
            failed.append(error)

    with bandit(kind, log=path) as made:
        threads = [threading.Thread(target=serve, args=(made, seed)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = list(made.log.replay())
        assert failed == [] and sorted(map(int, objects)) == list(range(180))
        assert_once(entries)
        assert {d.id: d.actions.tolist() for d in entries if isinstance(d, Decision)} == outputs
        assert made.report()["losses"] + made.log.duplicates() == 360
        twin = Twin(kind, lambda number: objects[str(number)])
        twin.follow(entries)
        assert_alike(made, twin.bandit)
    with bandit(kind, log=path) as again:
        assert_alike(again, twin.bandit)


class Reading(lols.Task):
    """A task whose `encode` passes on whatever columns a request has."""

    sizes = lols.Sizes(state=1, actions=2, features=2, steps=1)
    needs_truth = False

    def encode(request):
        return lols.Example(request)

    def actions(x, s, legal):
        legal[:] = s[0] < 1

    def step(x, s, a):
        s[0] += 1

    def features(x, s, out):
        lols.emit(out, lols.feature(x.reader, x.topic))

    def loss(x, y, s):
        return 0.0

    def output(x, s):
        return int(s[0])

    def reference(x, y, s):
        return 0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_request_without_a_column_is_told_which(compiled: bool) -> None:
    made = StructuredBandit(Reading, compiled=compiled)
    with pytest.raises(LolsError, match=r"no column .topic.") as caught:
        made.decide({"reader": 1})
    assert "Record" not in str(caught.value) and "reader" in str(caught.value) and "\n" not in str(caught.value)
    assert made.decide({"reader": 1, "topic": 2}).id == "0"  # nothing was logged before
