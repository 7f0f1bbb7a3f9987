"""`python -m tests.fuzz.soak`: trainings, bandits and workers are killed at random, models shared: nothing is lost."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lols.cli.optimise import INTERRUPTED
from lols.training import trainer
from tests.bandit.killed_bandits import KINDS
from tests.bandit.test_bandit_kills import Source, Story, wait_for_more
from tests.cli.calling import run
from tests.cli.option_files import write_files
from tests.cli.test_stops import given
from tests.fuzz.judging import Lost
from tests.fuzz.soak_ray import RayKills
from tests.fuzz.soak_threads import SharedModels, SharedNetworks

TRAININGS = ("tagger", "parser", "classifier", "pipeline", "tagger that goes on")
KINDS_OF_RUNS = (*TRAININGS, "bandit", "optimise", "threads", "networks", "ray")
PASSES = 12  # a training of a second or so, with a checkpoint after each batch
OPTIONS = ("--minutes", 0.02, "--best-of", 2)  # of an optimisation of two seconds or so
PAYING = "from tests.heuristics.paying import PAYING, draw\n"
KILLS = 8  # of a bandit, before it begins with a new log


class Training:
    """One training, undisturbed once, then killed and resumed until it is done, time after time."""

    def __init__(self, kind: str, folder: Path):
        self.kind, self.folder, self.output = kind, folder, folder / "m.lols"
        self.arguments = ("train", *self.given(), "-o", self.output)
        self.kills = self.done = 0
        assert run(*self.arguments).code == 0  # compiles, if need be
        self.output.unlink()
        began = time.monotonic()
        assert self.ends(600.0)
        self.seconds = time.monotonic() - began
        self.wanted = self.output.read_bytes()
        self.files = sorted(os.listdir(folder))
        self.output.unlink()

    def given(self) -> tuple[Any, ...]:
        """All arguments but the output."""
        if self.kind == "pipeline":
            data = write_files(self.folder) / "data.conllu"
            return "pipeline", data, "--folds", 2, "--passes", 4, "--dev", data
        arguments, held = given(self.kind.partition(" ")[0], self.folder)
        more = ("--passes", PASSES, "--dev", held, "--keep-state")
        if " " in self.kind:
            assert run("train", *arguments, "--keep-state", "-o", self.folder / "first.lols").code == 0
            more = (*more, "--from", self.folder / "first.lols", "--replay", f"{held}:0.5")
        return (*arguments, *more)

    def start(self) -> int:
        """Resume the training in a process of its own, forked from this one, whose kernels are loaded."""
        pid = os.fork()
        if pid == 0:
            try:
                ran = run(*self.arguments, "--resume")
                print(ran.err, end="", file=sys.stderr, flush=True)
                os._exit(ran.code)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        return pid

    def ends(self, seconds: float) -> bool:
        """Whether the training comes to its end in so many seconds; otherwise it is killed."""
        pid, limit = self.start(), time.monotonic() + seconds
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
            time.sleep(0.001)
        if ended[0] == 0:
            os.kill(pid, signal.SIGKILL)
            ended = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(ended[1])
        if code not in (0, -signal.SIGKILL):
            raise Lost(f"{self.kind}: exit code {code}")
        self.kills += code != 0
        return code == 0

    def once(self, rng: random.Random) -> None:
        """Kill the training until one of its processes comes to the end, and compare what it leaves."""
        longest = 0.6 * self.seconds
        while not self.ends(rng.uniform(0.0, longest)):
            longest *= 1.05  # on a machine that has become busy, it would never come to an end
        if self.output.read_bytes() != self.wanted:
            raise Lost(f"{self.kind}: the model is not that of an undisturbed run; see {self.folder}")
        if sorted(os.listdir(self.folder)) != self.files:
            raise Lost(f"{self.kind}: files are left in {self.folder}: {os.listdir(self.folder)}")
        self.output.unlink()
        self.done += 1

    def line(self) -> str:
        """What was done."""
        return f"{self.kind}: {self.kills} kills in {self.done} trainings, all with the bytes of the first"


class Bandits:
    """Bandits with a SQLite log that are killed while they decide and learn."""

    def __init__(self, folder: Path):
        self.folder, self.source = folder, Source()
        self.kills = self.logs = self.entries = 0

    def once(self, rng: random.Random) -> None:
        """Kill the processes on one log; after each, all that was acknowledged must be there, once and in order."""
        own = self.folder / f"log-{self.logs}"
        own.mkdir()
        kind = rng.choice(list(KINDS))
        story = Story(kind, own / "shown.log")
        for k in range(KILLS):
            self.source.start("work", kind, story.path, rng.randrange(1 << 30))
            try:
                if k % 2:  # every second one comes to work before the time runs
                    wait_for_more(story.path)
                time.sleep(rng.uniform(0.0, 0.1))
                self.source.kill()
                story.goes_on()
            except AssertionError as error:
                raise Lost(f"bandit '{kind}': its log does not hold what was acknowledged; see {own}") from error
            self.kills += 1
        self.logs, self.entries = self.logs + 1, self.entries + len(story.entries)
        shutil.rmtree(own)

    def line(self) -> str:
        """What was done."""
        return f"bandit: {self.kills} kills on {self.logs} logs, {self.entries} entries, none lost"


class Optimisations:
    """`lols optimise`, interrupted and killed at random, and gone on from what it has written."""

    def __init__(self, folder: Path):
        self.folder, self.output, self.source = folder, folder / "m.lols", folder / "pay.py"
        self.source.write_text(PAYING, "utf-8")
        self.interruptions = self.kills = self.done = 0
        assert self.ends(600.0, signal.SIGKILL) == 0  # compiles, if need be

    def ends(self, seconds: float, number: int) -> int:
        """The exit code of a run that gets a signal after so many seconds, unless it ends before."""
        more = ("--resume", self.output) if self.output.exists() else ()
        pid, limit = os.fork(), time.monotonic() + seconds
        if pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                os._exit(run("optimise", self.source, *OPTIONS, "-o", self.output, *more).code)
            except KeyboardInterrupt:
                os._exit(INTERRUPTED)  # before the command has begun
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
            time.sleep(0.001)
        if ended[0] == 0:
            os.kill(pid, number)
            ended = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(ended[1])

    def once(self, rng: random.Random) -> None:
        """One run: the model file is whole, and after an interruption it is there."""
        number = rng.choice((signal.SIGINT, signal.SIGKILL))
        code = self.ends(rng.uniform(0.0, 2.5), number)
        if code not in (0, INTERRUPTED if number == signal.SIGINT else -signal.SIGKILL):
            raise Lost(f"optimise: exit code {code}; see {self.folder}")
        self.interruptions, self.kills = self.interruptions + (code == INTERRUPTED), self.kills + (code < 0)
        if self.output.exists():
            assert run("inspect", self.output).code == 0
        elif code == 0:
            raise Lost(f"optimise: no model was written; see {self.folder}")
        if code == 0:
            self.done += 1
            self.output.unlink()

    def line(self) -> str:
        """What was done."""
        counts = f"{self.interruptions} interruptions, {self.kills} kills, {self.done} ends"
        return f"optimise: {counts}, all with a whole model"


def made(kind: str, folder: Path, stack: contextlib.ExitStack) -> Any:
    """What is soaked, by its name."""
    own = folder / kind
    own.mkdir()
    if kind in TRAININGS:
        return Training(kind, own)
    if kind == "bandit":
        bandits = Bandits(own)
        stack.callback(bandits.source.close)
        return bandits
    if kind == "optimise":
        return Optimisations(own)
    if kind == "ray":
        return RayKills()
    return SharedModels(own) if kind == "threads" else SharedNetworks(own)


def soak(seconds: float, seed: int, folder: Path, kinds: Sequence[str]) -> list[str]:
    """Kill or share them in turn until the time is over; a line on each."""
    rng = random.Random(seed)
    with contextlib.ExitStack() as stack:
        soaked = [made(kind, folder, stack) for kind in kinds]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for each in soaked:
                each.once(rng)
    return [each.line() for each in soaked]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the kills; by default the time")
    parser.add_argument("--only", choices=KINDS_OF_RUNS, help="one kind of runs alone")
    chosen = parser.parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    trainer.Trainer.fit.__kwdefaults__["checkpoint_every"] = 0.0  # a checkpoint after each batch
    folder = Path(tempfile.mkdtemp(prefix="lols-soak-"))
    try:
        kinds = KINDS_OF_RUNS if chosen.only is None else [chosen.only]
        print(*soak(60 * chosen.minutes, seed, folder, kinds), sep="\n")
    except Lost as error:
        print(f"{error} (seed {seed})")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
