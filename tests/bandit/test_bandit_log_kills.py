"""The log of a bandit and processes: one at a time, forked, out of room, and killed at any moment."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lols.bandit.log import Decision, Entry, Loss, SqliteLog
from lols.errors import LolsError
from tests.bandit.log_entries import ENVIRONMENT, assert_same, decision, loss, made, sqlite_log


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=ENVIRONMENT)


# --- one process at a time ---

HOLDER = """
from tests.bandit.log_entries import IDENTITY, SqliteLog, decision, loss
import sys, time
log = SqliteLog(sys.argv[1], identity=IDENTITY)
log.append(decision(log.decisions()))
print("open", flush=True)
time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    sqlite_log(path).close()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, env=ENVIRONMENT) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        with pytest.raises(LolsError, match=r"a\.log: another process is writing to this log"):
            sqlite_log(path)
        assert holder.poll() is None
        holder.kill()
    with sqlite_log(path) as log:
        assert_same(list(log.replay()), [decision(0)])
        with pytest.raises(LolsError, match=r"a\.log: .* or this one has it open twice"):
            sqlite_log(path)
        log.append(decision(1))
    with sqlite_log(path) as log:
        assert log.decisions() == 2


FORKING = """
from tests.bandit.log_entries import SqliteLog, decision, loss
import os, sys
log = SqliteLog(sys.argv[1], identity={})
log.append(decision(0))
pid = os.fork()
if pid == 0:
    try:
        log.append(decision(1))
    except ValueError as error:
        print(error)
    log.close()
    sys.exit()  # with all that Python tidies up then
os.waitpid(pid, 0)
for k in range(1, 5):
    log.append(decision(k))
    log.append(loss(k))
sys.stdout.flush()
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_leaves_the_log_to_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    done = run(FORKING, str(path))
    assert done.returncode == -signal.SIGKILL and done.stderr == ""
    assert "belongs to the process that opened it, before the fork: open it after forking" in done.stdout
    with sqlite_log(path, identity={}) as log:
        entries = list(log.replay())
    assert_same(entries, [decision(0)] + [made(kind, k) for k in range(1, 5) for kind in ("decision", "loss")])


FULL = """
from tests.bandit.log_entries import SqliteLog, decision, loss
import resource, sys
log = SqliteLog(sys.argv[1], identity={})
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
try:
    while True:
        log.append(decision(log.decisions()))
        log.append(loss(log.decisions() - 1))
except ValueError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(loss(log.decisions() - 1))  # perhaps the one that failed
for k in range(5):
    log.append(decision(log.decisions()))
    log.append(loss(log.decisions() - 1))
print(log.decisions(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
def test_a_full_disk_is_an_error_and_the_log_goes_on_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    done = run(FULL, str(path))
    assert done.stderr == ""
    message, count = done.stdout.splitlines()
    assert "a.log: cannot be read or written" in message
    with sqlite_log(path, identity={}) as log:
        assert_same(list(log.replay()), [made(kind, k) for k in range(int(count)) for kind in ("decision", "loss")])
    assert int(count) > 40


# --- killed at any moment ---

# For each line of input a new child works on the log of that name until it is killed, and writes down what was
# acknowledged. The children are forked, so that they start in no time.
KILLED = """
from tests.bandit.log_entries import SqliteLog, decision, loss
import os, random, sys
assert "numba" not in sys.modules

def work(path, told, seed, durability):
    rng = random.Random(int(seed))
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with SqliteLog(path, durability=durability, identity={"a": 1}) as log:
        while True:
            count = log.decisions()
            k = rng.randrange(count + 1)
            if k == count or rng.random() < 0.5:
                log.append(decision(count))
                os.write(out, b"decision %d\\n" % count)
            else:
                k = max(k, count - 50) if rng.random() < 0.8 else k
                os.write(out, b"%s %d\\n" % (b"loss" if log.append(loss(k)) else b"repeated", k))

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            work(*line.split())
        finally:
            os._exit(1)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Victims:
    """Processes that work on a log, each killed after a while."""

    def __init__(self, folder: Path, durability: str):
        self.told, self.durability = folder / "told", durability
        self.source = subprocess.Popen(
            [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )

    def run(self, path: Path, seed: int, seconds: float) -> list[str]:
        """What was acknowledged until the kill; every second child comes to its first entry before the time runs."""
        assert self.source.stdin is not None and self.source.stdout is not None
        self.told.unlink(missing_ok=True)
        self.source.stdin.write(f"{path} {self.told} {seed} {self.durability}\n")
        self.source.stdin.flush()
        pid = int(self.source.stdout.readline())
        limit = time.monotonic() + 20
        while seed % 2 == 1 and not (self.told.exists() and self.told.stat().st_size) and time.monotonic() < limit:
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        assert int(self.source.stdout.readline()) == -signal.SIGKILL  # not ended by an error of its own
        return self.told.read_text().splitlines() if self.told.exists() else []

    def __enter__(self) -> Victims:
        return self

    def __exit__(self, *_: object) -> None:
        with self.source:
            assert self.source.stdin is not None
            self.source.stdin.close()


def found_in_a_copy(path: Path, folder: Path) -> tuple[list[Entry], int]:
    """What a log holds, read from a copy: the next process finds the log as the killed one left it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in path.parent.glob(path.name + "*"):
        shutil.copy(file, folder)
    with SqliteLog(folder / path.name, identity={"a": 1}) as log:
        return list(log.replay()), log.duplicates()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("durability", "kills", "after"), [("process", 60, 0.02), ("power", 12, 0.05)])
def test_killed_at_random_nothing_acknowledged_is_lost_or_counted_twice(
    tmp_path: Path, durability: str, kills: int, after: float
) -> None:
    rng, path = random.Random(kills), tmp_path / "a.log"
    before: list[Entry] = []
    repeated = at_work = 0
    with Victims(tmp_path, durability) as victims:
        for k in range(kills):
            told = victims.run(path, k, min(rng.expovariate(1 / after), 0.2))
            entries, duplicates = found_in_a_copy(path, tmp_path / "copy")
            events = [(kind, int(which)) for kind, which in (line.split() for line in told)]
            wanted = before + [made(kind, which) for kind, which in events if kind != "repeated"]
            repeated += sum(len(loss(which).losses) for kind, which in events if kind == "repeated")
            more = (len(entries) - len(wanted)) + (duplicates - repeated)
            assert len(entries) >= len(wanted) and duplicates >= repeated and more <= 3
            assert_same(entries[: len(wanted)], wanted)
            losses = [entry.id for entry in entries if isinstance(entry, Loss)]
            assert len(losses) == len(set(losses))
            ids = [entry.number for entry in entries if isinstance(entry, Decision)]
            assert ids == list(range(len(ids)))
            before, repeated = entries, duplicates
            at_work += bool(events)
    assert at_work >= kills // 2


# Children that are killed before their first, second, ... statement.
DYING = """
from tests.bandit.log_entries import SqliteLog, decision, loss
import functools, os, sqlite3, sys

class Dying(sqlite3.Connection):
    left = 0

    def execute(self, *what):
        if Dying.left == 0:
            os.kill(os.getpid(), 9)
        Dying.left -= 1
        return super().execute(*what)

sqlite3.connect = functools.partial(sqlite3.connect, factory=Dying)
for k in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        Dying.left = k
        with SqliteLog(f"{sys.argv[1]}/{k}.log", identity={"a": 1}) as log:
            log.append(decision(0))
            log.append(loss(0))
            log.append(decision(1))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_between_any_two_statements_of_making_the_log(tmp_path: Path) -> None:
    count = 40
    done = run(DYING, str(tmp_path), str(count))
    killed = [int(line) for line in done.stdout.splitlines()]
    needed = killed.index(0)  # statements of a child that comes to its end
    assert done.stderr == "" and killed == [-signal.SIGKILL] * needed + [0] * (count - needed) and needed > 10
    wanted = [decision(0), loss(0), decision(1)]
    for k in range(count):
        entries, _ = found_in_a_copy(tmp_path / f"{k}.log", tmp_path / "copy")
        assert_same(entries, wanted[: sum(k > needed - before for before in (4, 2, 1))])  # a loss reads first
