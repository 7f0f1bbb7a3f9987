"""A campaign of the fuzzer: cases run in a child process, so that a crash, too, is noticed, and its case is known."""

from __future__ import annotations

import importlib
import json
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.bandit.log_entries import ENVIRONMENT

TARGETS = "tests.fuzz.targets"  # the module whose targets are run
SECONDS = 20.0  # that a case may take
BYTES = 768 << 20  # by which a case may let the process grow
SILENCE = 60.0  # seconds after which a case hangs
START = 600.0  # the same for a target that is made, which may compile
CHILD = "from tests.fuzz.campaign import work; work(*{})"
ROUND = 300  # cases of a target before the next one's turn


class Finding(NamedTuple):
    """A case in which the library broke its promise."""

    target: str
    case: int
    what: str


class Tally(NamedTuple):
    """How the cases of a target ended."""

    taken: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def cases(self) -> int:
        return sum(self)


# --- the child ---


def generator(seed: int, target: str, case: int) -> Random:
    """All that is random in a case."""
    return Random(f"{seed} {target} {case}")


def peak(*, reset: bool = False) -> int:
    """The most memory that this process has taken since the last reset, in bytes; where it cannot be reset, ever."""
    status = Path("/proc/self/status")
    if reset:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def attempt(target: Any, rng: Random) -> str:
    """Run one case: `taken`, `refused`, or what is wrong."""
    before, began = peak(reset=True), time.monotonic()
    try:
        ended = "taken" if target.case(rng) else "refused"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        return f"{type(error).__name__}: {str(error)[:600]} ({where})"
    if time.monotonic() - began > SECONDS:
        return f"it took {time.monotonic() - began:.0f} seconds"
    if peak() - before > BYTES:
        return f"it took {(peak() - before) >> 20} MB"
    return ended


def work(module: str, name: str, folder: str, seed: int, first: int, count: int) -> None:
    """Run cases of a target, and say on standard output which begins and how it ended."""

    def tell(*what: Any) -> None:
        print(json.dumps(what), file=out, flush=True)

    out = sys.stdout
    target = importlib.import_module(module).TARGETS[name](Path(folder))
    for case in range(first, first + count):
        tell("begins", case)
        tell("ended", case, attempt(target, generator(seed, name, case)))


# --- the parent ---


def events(child: subprocess.Popen[bytes], silence: float) -> Iterator[list[Any]]:
    """What a child tells, until it ends; one that is silent for too long is killed."""
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        rest, patience = b"", START
        while True:
            if not selector.select(patience):
                child.kill()
                yield ["hangs"]
                return
            piece = child.stdout.read1(1 << 16)  # type: ignore[attr-defined]
            if not piece:
                return
            patience = silence
            *whole, rest = (rest + piece).split(b"\n")
            yield from map(json.loads, whole)


class Campaign:
    """Cases of some targets, all of which follow from one seed."""

    def __init__(self, seed: int, *, module: str = TARGETS, silence: float = SILENCE):
        self.seed, self.module, self.silence = seed, module, silence
        self.tallies: dict[str, Tally] = {}
        self.findings: list[Finding] = []

    def run(self, name: str, first: int, count: int) -> None:
        """Run cases of a target; after a crash, go on behind it with a new process."""
        last = first + count
        while first < last:
            first = self._until_crash(name, first, last - first)

    def run_for(self, names: Sequence[str], seconds: float) -> None:
        """Run all targets in turn until the time is over."""
        end, first = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for name in names:
                if time.monotonic() < end:
                    self.run(name, first, ROUND)
            first += ROUND

    def _until_crash(self, name: str, first: int, count: int) -> int:
        """The next case to run."""
        begun, done, hangs = first - 1, first - 1, False
        with (
            tempfile.TemporaryDirectory(prefix="lols-fuzz-") as folder,  # here: a child that crashes leaves it
            tempfile.TemporaryFile() as err,
            subprocess.Popen(
                [
                    *(sys.executable, "-X", "faulthandler", "-c"),
                    CHILD.format((self.module, name, folder, self.seed, first, count)),
                ],
                stdout=subprocess.PIPE,
                stderr=err,
                env=ENVIRONMENT,
            ) as child,
        ):
            for event in events(child, self.silence):
                if event[0] == "begins":
                    begun = event[1]
                elif event[0] == "ended":
                    done = event[1]
                    self._count(name, done, event[2])
                else:
                    hangs = True
            code = child.wait()
            err.seek(0)
            said = err.read().decode("utf-8", "replace").partition("\nExtension modules:")[0][-1500:]
        if begun == done and code == 0 and not hangs:
            return done + 1
        if begun == done:
            raise RuntimeError(f"target {name} cannot be run (exit code {code}): {said}")
        self._count(name, begun, f"hangs for {self.silence:g} seconds" if hangs else f"exit code {code}: {said}")
        return begun + 1

    def _count(self, name: str, case: int, ended: str) -> None:
        known = self.tallies.setdefault(name, Tally())
        which = ended if ended in ("taken", "refused") else "failed"
        self.tallies[name] = known._replace(**{which: getattr(known, which) + 1})
        if which == "failed":
            self.findings.append(Finding(name, case, ended))
