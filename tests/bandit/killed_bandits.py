"""Bandits for tests of what outlives a process: twins, and processes that work on a log until they are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lols.bandit import MemoryLog, StructuredBandit
from lols.bandit.log import WHOLE, Decision, Entry, Loss
from lols.errors import LolsError
from tests.bandit.log_entries import same
from tests.bandit.small_bandit import RULES, SPACE, loss, request

Entries = list[Entry]
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "drawn": {"estimator": "ips", "exploit": "drawn", "keep": 4, "baseline": False},
    "guard": {"guard": True, "exploit": "last"},
    "bag": {"exploration": "bag", "bag": 3},
    "steps": {"randomise": "steps", "epsilon": 0.4, "guard": True},
    "impatient": {"estimator": "dr", "patience": 25, "epsilon": "decay:1:0.2", "exploration": "plausible"},
    "snapshots": {"snapshot_every": 20},
    "power": {"durability": "power"},
}


def bandit(kind: str, **options: Any) -> StructuredBandit:
    chosen = {"epsilon": 0.6, "seed": 4, **KINDS[kind], **options}
    if options.get("log") is None or not isinstance(options["log"], (str, Path)):
        chosen.pop("durability", None)
    return StructuredBandit(SPACE, RULES, **chosen)


def bits(made: StructuredBandit) -> str:
    """A digest of all bits of the policy."""
    return made.policy().digest()


# --- what must be the same ---


def known(made: StructuredBandit) -> dict[str, Any]:
    """The report but for second losses: their number is that of the log."""
    return {name: value for name, value in made.report().items() if name != "ignored"}


def assert_alike(one: StructuredBandit, other: StructuredBandit) -> None:
    assert bits(one) == bits(other) and known(one) == known(other)


def report(made: StructuredBandit, entry: Loss) -> None:
    """Tell a bandit what a log says."""
    steps = {step: value for step, value in entry.losses.items() if step != WHOLE}
    made.learn(entry.id, entry.losses.get(WHOLE), steps or None)


class Twin:
    """A bandit that was never interrupted, in memory; it is given the objects and losses of a log in their order."""

    def __init__(self, kind: str, objects: Callable[[int], Any] = request):
        self.log, self.objects = MemoryLog(), objects
        self.bandit = bandit(kind, log=self.log)

    def follow(self, entries: Entries) -> None:
        """Decide and learn as a log says; what is decided must be the same bit for bit."""
        for entry in entries[len(self.log._entries) :]:
            if isinstance(entry, Decision):
                shown = self.bandit.decide(self.objects(entry.number))
                assert shown[:3] == (entry.id, entry.actions.tolist(), entry.explored)
                assert same(self.log._entries[-1], entry)
            elif isinstance(entry, Loss):
                report(self.bandit, entry)


def by_hand(kind: str, entries: Entries) -> StructuredBandit:
    """A bandit that takes what a log says, entry by entry."""
    log = MemoryLog()
    for entry in entries:
        log.append(entry)
    return bandit(kind, log=log)


def assert_once(entries: Entries) -> None:
    ids = [entry.id for entry in entries if isinstance(entry, Decision)]
    losses = [entry.id for entry in entries if isinstance(entry, Loss)]
    assert ids == list(map(str, range(len(ids)))) and len(losses) == len(set(losses))


# --- processes that decide and learn; they write down each step before it and after it ---


class World:
    """What is outside of a bandit: what was shown, and of what a loss is known. A new process reads it from the log."""

    def __init__(self, made: StructuredBandit, seed: int):
        self.bandit, self.rng = made, random.Random(seed)
        self.shown: list[list[int]] = []
        self.open: list[int] = []
        self.settled: list[int] = []
        for entry in made.log.replay():
            if isinstance(entry, Decision):
                self.open.append(entry.number)
                self.shown.append(entry.actions.tolist())
            elif isinstance(entry, Loss):
                self.open.remove(int(entry.id))
                self.settled.append(int(entry.id))

    def next_loss(self) -> tuple[int, float] | None:
        """A loss to report now, late and in any order, perhaps for the second time; None where it is time to decide."""
        rng = self.rng
        if not self.open or rng.random() < 0.5:
            return None
        if self.settled and rng.random() < 0.15:
            k = rng.choice(self.settled)
        else:
            k = rng.choice(self.open[-30:] if rng.random() < 0.8 else self.open)
        return k, loss(k, self.shown[k])

    def learned(self, k: int) -> None:
        if k in self.open:
            self.open.remove(k)
            self.settled.append(k)


def work(kind: str, path: str, told: str, seed: str) -> None:
    """Decide and learn until the end."""
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def tell(*what: Any) -> None:
        os.write(out, (" ".join(map(str, what)) + "\n").encode())

    tell("opening")
    with bandit(kind, log=path) as made:
        tell("opened", made.report()["decisions"], bits(made))
        world = World(made, int(seed))
        while True:
            step(world, tell)


def step(world: World, tell: Any) -> None:
    """One decision or one loss."""
    reported = world.next_loss()
    if reported is None:
        tell("deciding")
        shown = world.bandit.decide(request(len(world.shown)))
        tell("decided", shown.id, int(shown.explored), *shown.output)
        world.open.append(int(shown.id))
        world.shown.append(shown.output)
    else:
        tell("learning", reported[0])
        world.bandit.learn(*reported)
        tell("learned", reported[0])
        world.learned(reported[0])


def fill(kind: str, path: str, told: str, seed: str) -> None:
    """Decide and learn on a disk that is full after a while, three times, and go on when there is room again."""
    import resource

    with bandit(kind, log=path) as made, open(told, "w") as out:
        world = World(made, int(seed))
        for room in (500_000, 1_500_000, 2_500_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            refused = 0
            while refused < 3:
                before = made.report(), bits(made)
                try:
                    step(world, lambda *what: None)
                except LolsError as error:
                    refused += 1
                    print(error, file=out)
                    assert (made.report(), bits(made)) == before
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            for _ in range(50):
                step(world, lambda *what: None)
        print(bits(made), file=out)
    os._exit(0)


def main() -> None:
    """Fork a process for each line of input, and say how it ended."""
    for kind in KINDS:  # loads the kernels; what is forked from here has them
        made = bandit(kind)
        for k in range(30):
            shown = made.decide(request(k))
            made.learn(shown.id, loss(k, shown.output))
    print("warm", flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # it must end, also where nobody is left to kill it
            try:
                {"work": work, "fill": fill}[name](*arguments)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
