"""A bandit in a world: round after round, beside the rules, chance and a learner that sees the truth; many seeds."""

from __future__ import annotations

import heapq
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.bandit import StructuredBandit
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.log import Log
from lols.bandit.worlds.outcome import Outcome
from lols.bandit.worlds.world import Objects, World
from lols.contract.hashing import mix, unit
from lols.errors import ConfigurationError, LolsError

__all__ = ["WorldPlace", "held_out_yardsticks", "simulate", "simulate_seeds"]

LATE, LOST, ORDER, RANDOM = 31, 32, 33, 34  # purposes of draws
OFTEN = 0.1  # seconds from one word of a process to the next

Watch = Callable[[int, float], None]  # rounds done, and the mean loss so far


class WorldPlace(NamedTuple):
    """Where to find a world again, in another process."""

    name: str
    data: str | tuple[str, ...] | None = None  # a folder or two files, as of `load_world`
    clicks: bool = False  # of pages: whether they are drawn
    held_out: int | None = None  # at most so many objects to compare policies on

    def world(self) -> World:
        """Make the world."""
        if self.held_out is not None and self.held_out < 1:
            raise ConfigurationError(
                f"held_out is {self.held_out}; at least one object is needed to compare policies on"
            )
        world = self._whole_world()
        return replace(world, held_out=world.held_out[: self.held_out])

    def _whole_world(self) -> World:
        if self.name == "layout":
            from lols.bandit.worlds.layout_world import layout_world

            return layout_world(clicks=self.clicks)
        from lols.bandit.worlds.registry import load_world

        return load_world(self.name, self.data)


# --- one seed ---------------------------------------------------------------------------------------------------------


def simulate(
    world: World,
    options: Mapping[str, Any] | None = None,
    rounds: int = 20000,
    seed: int = 0,
    *,
    algorithm2: bool = False,
    delay: int = 0,
    lost: float = 0.0,
    full_information: bool = True,
    log: Log | str | os.PathLike[str] | None = None,
    yardsticks: Callable[[], Mapping[str, float]] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Let a bandit decide and learn for so many rounds, and compare it with what else could have been shown.

    Parameters
    ----------
    world
        Where objects and losses come from.
    options
        Those of `StructuredBandit`; those that are not given are the world's, where it has any.
    rounds, seed
        How many objects arrive, and one number behind all randomness: of arrivals, of noise and of the bandit.
    algorithm2
        Whether to take the bandit as the paper prints it, `StructuredBandit.algorithm2`.
    delay
        Losses come this many rounds later at the earliest, twice as many at the latest and not in the order of their
        decisions. Those that are still on their way in the end never come.
    lost
        The share of losses that never come.
    full_information
        Whether a learner that sees the truth is trained on the same objects, to be compared with.
    log
        Where the bandit writes, a file or a log; it must be empty. It is closed in the end.
    yardsticks
        Gives what `held_out_yardsticks(world)` gave before, for not measuring it again.
    watch
        Called after every round with the number of rounds and the mean loss so far.

    Examples
    --------
    >>> from lols.bandit.worlds.layout_world import layout_world
    >>> outcome = simulate(layout_world(held_out=5), {"compiled": False}, rounds=20, full_information=False)
    >>> outcome.losses.size, sorted(outcome.held_out)
    (20, ['optimum', 'policy', 'random', 'reference'])

    """
    for value, name, least in ((rounds, "rounds", 1), (delay, "delay", 0)):
        if value < least:
            raise ConfigurationError(f"{name} is {value}; it must be at least {least}")
    if not 0.0 <= lost <= 1.0:
        raise ConfigurationError(f"lost is {lost}; it is a share, from 0 to 1")
    make = StructuredBandit.algorithm2 if algorithm2 else StructuredBandit
    options = suited(world, options or {}, algorithm2=algorithm2)
    with make(world.space, world.rules, seed=seed, log=log, **options) as bandit:
        if bandit.log.decisions():
            raise ConfigurationError("the log has decisions already, and a simulation begins with none: give another")
        objects = world.arrivals(rounds, seed)
        losses, rules, chance = _played(world, bandit, objects, seed, _Mail(delay, lost, seed), watch)
        epsilon = epsilon_schedule(bandit.settings.epsilon, world.space.sizes.actions)
        yardsticks = yardsticks or partial(held_out_yardsticks, world, compiled=options.get("compiled", True))
        held = dict(yardsticks())
        held["random"] = _mean_loss(world, [_random(world, obj, seed, -1 - k) for k, obj in enumerate(world.held_out)])
        held["policy"] = _mean_loss(world, [bandit.predict(obj) for obj in world.held_out])
        report = bandit.report()
    if full_information:
        held["full_information"] = _mean_loss(world, world.full_information(objects, seed)(world.held_out))
    margin = _margin(losses - rules, np.array([epsilon(n) for n in range(rounds)]))
    return Outcome(world.name, seed, losses, rules, chance, margin, held, len(world.held_out), report)


def suited(world: World, options: Mapping[str, Any], *, algorithm2: bool = False) -> dict[str, Any]:
    """The options of a bandit in a world: those given, and else those that suit it; Algorithm 2 has its own."""
    own = {} if algorithm2 else dict(world.options)
    if "learner" in options or "update" in options:
        own.pop("learner", None)
    return {**own, **options}


def _played(
    world: World, bandit: StructuredBandit, objects: Objects, seed: int, mail: _Mail, watch: Watch | None
) -> np.ndarray:
    """The losses of all rounds: of the bandit, the rules and chance."""
    made, total = np.zeros((3, len(objects))), 0.0
    for n, obj in enumerate(objects):
        shown = bandit.decide(obj)
        outputs = shown.output, bandit.show_reference(obj), _random(world, obj, seed, n)
        made[:, n] = [world.feedback(obj, output, seed) for output in outputs]
        mail.send(n, shown.id, float(made[0, n]))
        for number, loss in mail.come(n):
            bandit.learn(number, loss)
        if watch is not None:
            total += float(made[0, n])
            watch(n + 1, total / (n + 1))
    return made


def _random(world: World, obj: Any, seed: int, n: int) -> Any:
    return world.at_random(obj, mix(mix(seed, RANDOM), n))


def held_out_yardsticks(world: World, *, compiled: bool = True) -> dict[str, float]:
    """The mean losses on held-out objects that do not depend on a seed: of the rules and, where known, of the best."""
    bandit = StructuredBandit(world.space, world.rules, compiled=compiled)
    made = {"reference": _mean_loss(world, [bandit.show_reference(obj) for obj in world.held_out])}
    if world.best is not None:
        made["optimum"] = _mean_loss(world, [world.best(obj) for obj in world.held_out])
    return made


def _mean_loss(world: World, outputs: Sequence[Any]) -> float:
    return float(np.mean([world.loss(obj, output) for obj, output in zip(world.held_out, outputs, strict=True)]))


def _margin(excess: np.ndarray, allowed: np.ndarray) -> float:
    """The most by which the excess so far is above what exploring and chance account for, over all rounds."""
    return float((excess.cumsum() - allowed.cumsum() - 3.0 * np.sqrt(np.arange(1, excess.size + 1))).max())


class _Mail:
    """Losses on their way."""

    def __init__(self, delay: int, lost: float, seed: int):
        self.delay, self.lost, self.key = delay, lost, mix(seed, LATE)
        self.waiting: list[tuple[int, int, int, float]] = []

    def send(self, n: int, number: int, loss: float) -> None:
        """Put the loss of round n on its way."""
        key = mix(self.key, n)
        if unit(mix(key, LOST)) >= self.lost:
            due = n + self.delay + int(unit(mix(key, LATE)) * (self.delay + 1))
            heapq.heappush(self.waiting, (due, mix(key, ORDER), number, loss))

    def come(self, n: int) -> Iterator[tuple[int, float]]:
        """The losses that are there by the end of round n."""
        while self.waiting and self.waiting[0][0] <= n:
            yield heapq.heappop(self.waiting)[2:]


# --- several seeds ----------------------------------------------------------------------------------------------------


def simulate_seeds(
    place: WorldPlace,
    options: Mapping[str, Any] | None = None,
    rounds: int = 20000,
    seeds: Sequence[int] = (0,),
    *,
    jobs: int = 2,
    watch: Watch | None = None,
    **more: Any,
) -> list[Outcome]:
    """Simulate with several seeds, in processes of their own; the results do not depend on how many there are.

    Parameters
    ----------
    place
        The world by its name: each process makes it anew.
    options, rounds, more
        As of `simulate`.
    seeds
        The seeds.
    jobs
        How many processes at a time. With more than one, a script must guard its own work by
        `if __name__ == "__main__":`, because each process imports it.
    watch
        Called with the number of rounds of all seeds so far, and their mean loss.

    """
    if not seeds:
        raise ConfigurationError("there are no seeds: give at least one")
    if jobs < 1:
        raise ConfigurationError(f"jobs is {jobs}; it must be at least 1")
    tally = _Tally(watch)
    work = [(place, dict(options or {}), rounds, seed, more) for seed in seeds]
    if jobs == 1 or len(seeds) == 1:
        return [_simulated(*given, watch=None if watch is None else tally.of(given[3])) for given in work]
    context = multiprocessing.get_context("spawn")
    words, stop = context.SimpleQueue(), context.Event()
    pool = ProcessPoolExecutor(min(jobs, len(seeds)), context, _begin, (words, stop))
    try:
        running = [pool.submit(_in_process, *given) for given in work]
        while True:
            done, waiting = wait(running, timeout=OFTEN, return_when=FIRST_EXCEPTION)
            while not words.empty():
                tally.add(*words.get())
            for future in done:
                future.result()  # a mistake ends it all
            if not waiting:
                return [future.result() for future in running]
    except BrokenProcessPool:
        raise LolsError("a process was ended from outside, maybe for want of memory: use fewer jobs") from None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _simulated(
    place: WorldPlace, options: dict[str, Any], rounds: int, seed: int, more: dict[str, Any], watch: Watch | None
) -> Outcome:
    world = _world_of(place)
    return simulate(world, options, rounds, seed, yardsticks=lambda: _yardsticks_of(place), watch=watch, **more)


@lru_cache(maxsize=1)
def _world_of(place: WorldPlace) -> World:
    return place.world()


@lru_cache(maxsize=1)
def _yardsticks_of(place: WorldPlace) -> dict[str, float]:
    return held_out_yardsticks(_world_of(place))


class _Tally:
    """How far all seeds are together."""

    def __init__(self, watch: Watch | None):
        self.watch = watch
        self.sums: dict[int, tuple[int, float]] = {}

    def add(self, seed: int, done: int, loss: float) -> None:
        """Take how far a seed is."""
        self.sums[seed] = done, done * loss
        if self.watch is not None:
            rounds = sum(done for done, _ in self.sums.values())
            self.watch(rounds, sum(total for _, total in self.sums.values()) / rounds)

    def of(self, seed: int) -> Watch:
        return lambda done, loss: self.add(seed, done, loss)


class _Stopped(Exception):
    """The others have failed, or nobody waits any more."""


_told: list[Any] = []  # in a process of a pool: where to say how far it is, and when to stop


def _begin(words: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and says when to stop
    _told[:] = [words, stop]


def _in_process(place: WorldPlace, options: dict[str, Any], rounds: int, seed: int, more: dict[str, Any]) -> Outcome:
    words, stop = _told
    last = 0.0

    def watch(done: int, loss: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= OFTEN or done == rounds:
            last = now
            if stop.is_set():
                raise _Stopped
            words.put((seed, done, loss))

    return _simulated(place, options, rounds, seed, more, watch)
