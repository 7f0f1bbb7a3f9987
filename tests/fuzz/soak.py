"""`python -m tests.fuzz.soak`: trainings and bandits are killed at random, resumed, and must lose nothing."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lols.training import trainer
from tests.bandit.killed_bandits import KINDS
from tests.bandit.test_bandit_kills import Source, Story, wait_for_more
from tests.cli.calling import run
from tests.cli.option_files import write_files
from tests.cli.test_stops import given

TRAININGS = ("tagger", "parser", "classifier", "pipeline", "tagger that goes on")
NETWORK = ("--policy", "neural", "--width", 8, "--layers", 1)
PASSES = 12  # a training of a second or so, with a checkpoint after each batch
KILLS = 8  # of a bandit, before it begins with a new log


class Lost(Exception):
    """A run that was killed has lost something."""


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


class SharedNetworks:
    """Threads that share neural models: each must be told what one thread is told."""

    def __init__(self, folder: Path):
        import lols

        self.models = []
        for kind in ("tagger", "parser"):
            (folder / f"shared {kind}").mkdir()
            path = folder / f"shared {kind}" / "m.lols"
            arguments, _ = given(kind, path.parent)
            assert run("train", *arguments, *NETWORK, "-o", path).code == 0
            self.models.append((kind, lols.load(path)))
        self.threads = self.asked = 0

    def once(self, rng: random.Random) -> None:
        """Ask a model with several threads at a time."""
        from tests.torch.sharing import asked_by_threads

        (kind, model), threads = rng.choice(self.models), rng.randint(2, 8)
        words = ("The", "cat", "sees", "a", "dog")
        inputs = [[rng.choices(words, k=rng.randint(1, 9)) for _ in range(rng.randint(1, 4))] for _ in range(10)]
        wanted = [model.predict(given) for given in inputs]
        if any(told != wanted for told in asked_by_threads(model.predict, inputs, threads)):
            raise Lost(f"neural {kind}: threads that share it are told something else than one thread")
        self.threads, self.asked = self.threads + threads, self.asked + threads * len(inputs)


def soak(seconds: float, seed: int, folder: Path) -> list[str]:
    """Kill trainings and bandits in turn, and share networks, until the time is over; a line on each."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    trainings = []
    for kind in TRAININGS:
        (folder / kind).mkdir()
        trainings.append(Training(kind, folder / kind))
    bandits, networks = Bandits(folder), SharedNetworks(folder) if find_spec("torch") else None
    try:
        while time.monotonic() < end:
            for each in (*trainings, bandits, *([networks] if networks else [])):
                each.once(rng)
    finally:
        bandits.source.close()
    lines = [f"{t.kind}: {t.kills} kills in {t.done} trainings, all with the bytes of the first" for t in trainings]
    lines.append(f"bandit: {bandits.kills} kills on {bandits.logs} logs, {bandits.entries} entries, none lost")
    if networks is None:
        return [*lines, "shared networks: skipped, because torch cannot be imported"]
    return [*lines, f"shared networks: {networks.asked} calls by {networks.threads} threads, as by a single one"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the kills; by default the time")
    chosen = parser.parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    trainer.Trainer.fit.__kwdefaults__["checkpoint_every"] = 0.0  # a checkpoint after each batch
    folder = Path(tempfile.mkdtemp(prefix="lols-soak-"))
    try:
        print(*soak(60 * chosen.minutes, seed, folder), sep="\n")
    except Lost as error:
        print(f"{error} (seed {seed})")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
