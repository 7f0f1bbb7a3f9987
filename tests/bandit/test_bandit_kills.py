"""A bandit that is killed at any moment: nothing acknowledged is lost or counted twice, and it goes on all the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lols.bandit.log import Decision, Entry, Loss
from lols.errors import LolsError
from tests.bandit.killed_bandits import (
    KINDS,
    Entries,
    Twin,
    assert_alike,
    assert_once,
    bandit,
    bits,
    by_hand,
    loss,
    request,
)
from tests.bandit.log_entries import ENVIRONMENT, assert_same

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Source:
    """A process with warm kernels, of which others are forked, to work on a log."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tests.bandit import killed_bandits; killed_bandits.main()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
        )  # fmt: skip
        self.running = 0
        assert self.line() == "warm"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self, job: str, kind: str, path: Path, seed: int = 0) -> None:
        """Let a process work on a log."""
        assert self.process.stdin is not None
        told = path.with_suffix(".told")
        told.unlink(missing_ok=True)
        self.process.stdin.write(f"{job} {kind} {path} {told} {seed}\n")
        self.process.stdin.flush()
        self.running = int(self.line())

    def ended(self) -> int:
        """How the process ended, once it has."""
        status, self.running = int(self.line()), 0
        return status

    def kill(self) -> None:
        os.kill(self.running, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL  # not by an error of its own

    def close(self) -> None:
        if self.running:  # a test has failed
            self.kill()
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    made = Source()
    yield made
    made.close()


def told(path: Path) -> list[list[str]]:
    file = path.with_suffix(".told")
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def acknowledged(path: Path) -> int:
    return sum(line[0] in ("decided", "learned") for line in told(path))


def wait_for_more(path: Path) -> None:
    """Until one more decision or loss is acknowledged."""
    before, limit = acknowledged(path), time.monotonic() + 20
    while acknowledged(path) == before:
        assert time.monotonic() < limit
        time.sleep(0.001)


def copied(path: Path) -> Path:
    """A copy of a log: the next process finds the log itself as the killed one left it."""
    folder = path.parent / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in path.parent.glob(path.name + "*"):
        shutil.copy(file, folder)
    return folder / path.name


def event(entry: Entry) -> list[Any]:
    if isinstance(entry, Decision):
        return ["decided", entry.number, int(entry.explored), *entry.actions.tolist()]
    assert isinstance(entry, Loss)
    return ["learned", int(entry.id)]


class Story:
    """What is known of a log over all processes that worked on it, checked after each of them."""

    def __init__(self, kind: str, path: Path):
        self.kind, self.path, self.twin = kind, path, Twin(kind)
        self.entries: Entries = []
        self.bits, self.duplicates = bits(self.twin.bandit), 0
        self.worked = 0

    def goes_on(self) -> None:
        lines = told(self.path)
        for line in lines:
            if line[0] == "opened":  # the killed process had found the same policy as this one
                assert line[2] == self.bits
        self.worked += any(line[0] in ("decided", "learned") for line in lines)
        with bandit(self.kind, log=copied(self.path)) as again:
            entries, duplicates = list(again.log.replay()), again.log.duplicates()
            assert_once(entries)
            assert_same(entries[: len(self.entries)], self.entries)
            self.check_acknowledged(lines, [event(entry) for entry in entries[len(self.entries) :]], duplicates)
            self.twin.follow(entries)
            assert_alike(again, self.twin.bandit)
            self.entries, self.bits, self.duplicates = entries, bits(again), duplicates

    def check_acknowledged(self, lines: list[list[str]], found: list[list[Any]], duplicates: int) -> None:
        """All that was acknowledged is there, in order, and beyond it at most what was being written."""
        settled = {int(entry.id) for entry in self.entries if isinstance(entry, Loss)}
        wanted, twice = [], self.duplicates
        for what, *rest in lines:
            numbers = [int(number) for number in rest if what in ("decided", "learned")]
            if what == "learned" and numbers[0] in settled:
                twice += 1
            elif what in ("decided", "learned"):
                wanted.append([what, *numbers])
                settled |= {numbers[0]} if what == "learned" else set()
        assert found[: len(wanted)] == wanted and duplicates >= twice
        begun = lines[-1] if lines else ["nothing"]
        if found[len(wanted) :]:
            assert len(found) == len(wanted) + 1 and duplicates == twice
            assert found[-1][0] == {"deciding": "decided", "learning": "learned"}[begun[0]]
            assert begun[0] == "deciding" or found[-1][1] == int(begun[1])
        elif duplicates > twice:
            assert duplicates == twice + 1 and begun[0] == "learning" and int(begun[1]) in settled


@pytest.mark.slow
@forking
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_it_goes_on_as_if_nothing_had_happened(source: Source, tmp_path: Path, kind: str) -> None:
    kills = 8 if kind == "power" else 11
    rng, path = random.Random(kind), tmp_path / "shown.log"
    story = Story(kind, path)
    for seed in range(kills):
        source.start("work", kind, path, seed)
        if seed % 2:  # every second one comes to work before the time runs
            wait_for_more(path)
        time.sleep(rng.uniform(0.0, 0.06 if seed % 2 else 0.15))
        source.kill()
        story.goes_on()
    assert story.worked >= kills // 2
    assert_alike(by_hand(kind, story.entries), story.twin.bandit)
    with bandit(kind, log=path) as again:
        ahead, twin = again.report()["decisions"], story.twin.bandit
        for k in range(ahead, ahead + 20):
            shown = again.decide(request(k))
            assert shown == twin.decide(request(k))
            for one in (again, twin):
                one.learn(k, loss(k, shown.output))
        assert_same(list(again.log.replay()), list(twin.log.replay()))
        assert_alike(again, twin)


@forking
def test_a_second_process_is_refused_and_the_first_goes_on(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    story = Story("default", path)
    source.start("work", "default", path)
    wait_for_more(path)
    with pytest.raises(LolsError, match=r"shown\.log: another process is writing to this log") as refused:
        bandit("default", log=path)
    assert "\n" not in str(refused.value)
    wait_for_more(path)
    source.kill()
    story.goes_on()
    with bandit("default", log=path) as made:
        with pytest.raises(LolsError, match="this one has it open twice"):
            bandit("default", log=path)
        assert_same(list(made.log.replay()), story.entries)
        assert made.decide(request(made.report()["decisions"])).id == str(story.twin.log.decisions())


@forking
def test_a_full_disk_loses_nothing(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    source.start("fill", "default", path)
    assert source.ended() == 0
    *refused, last = path.with_suffix(".told").read_text().splitlines()
    assert len(refused) == 9 and all("shown.log: cannot be read or written" in line for line in refused)
    with bandit("default", log=path) as again:
        entries = list(again.log.replay())
        assert_once(entries)
        assert len(entries) > 100 and bits(again) == last
        twin = Twin("default")
        twin.follow(entries)
        assert_alike(again, twin.bandit)
