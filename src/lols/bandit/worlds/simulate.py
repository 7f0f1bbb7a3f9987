"""Simulations of a bandit in a world, compared with the reference, chance and a learner that sees the truth."""

from __future__ import annotations

import heapq
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from typing import Any

import numpy as np

from lols.bandit.bandit import StructuredBandit
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.log import Log
from lols.bandit.settings import KINDS, without_effect
from lols.bandit.worlds.outcome import Outcome
from lols.bandit.worlds.world import Objects, World, WorldSpec
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix, unit

LATE, LOST, ORDER, RANDOM = 31, 32, 33, 34  # purposes of draws
OFTEN = 0.1  # seconds between reports of a process

Watch = Callable[[int, float], None]  # called with the number of rounds and the mean loss so far


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
    baselines: Callable[[], Mapping[str, float]] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Let a bandit decide and learn for a number of rounds, and compare it with other policies.

    Parameters
    ----------
    world
        The source of objects and losses.
    options
        Options of `StructuredBandit`; the defaults are the world's, if it has any.
    rounds
        The number of objects.
    seed
        The seed of all random numbers: of arrivals, of noise and of the bandit.
    algorithm2
        Whether to use the bandit as printed in the paper, `StructuredBandit.algorithm2`.
    delay
        Each loss arrives after `delay` to 2 `delay` rounds, not in the order of the decisions. Losses that are still
        due at the end never arrive.
    lost
        The share of losses that never arrive.
    full_information
        Whether to train a learner that sees the truth on the same objects, for comparison.
    log
        The log of the bandit, a file or a log; it must be empty. It is closed at the end.
    baselines
        Returns the result of `held_out_baselines(world)`, if it has been computed before.
    watch
        Called after every round with the number of rounds and the mean loss so far.

    Examples
    --------
    >>> from lols.bandit.worlds.layout import layout_world
    >>> outcome = simulate(layout_world(held_out=5), {"compiled": False}, rounds=20, full_information=False)
    >>> outcome.losses.size, sorted(outcome.held_out)
    (20, ['optimum', 'policy', 'random', 'reference'])

    """
    for value, name, least in ((rounds, "rounds", 1), (delay, "delay", 0)):
        check_whole(name, value, least)
    if not 0.0 <= lost <= 1.0:
        raise ConfigurationError(f"lost is {lost}; it is a share, from 0 to 1")
    make = StructuredBandit.algorithm2 if algorithm2 else StructuredBandit
    options = with_defaults(world, options or {}, algorithm2=algorithm2)
    with make(world.space, world.reference, seed=seed, log=log, **options) as bandit:
        if bandit.log.decisions():
            raise ConfigurationError("the log is not empty, and a simulation needs a new one: give another")
        objects = world.arrivals(rounds, seed)
        losses, reference, chance = _played(world, bandit, objects, seed, _Deliveries(delay, lost, seed), watch)
        epsilon = epsilon_schedule(bandit.settings.epsilon, world.space.action_count)
        baselines = baselines or partial(held_out_baselines, world, compiled=options.get("compiled", True))
        held = dict(baselines())
        held["random"] = _mean_loss(world, [_random(world, obj, seed, -1 - k) for k, obj in enumerate(world.held_out)])
        held["policy"] = _mean_loss(world, [bandit.predict(obj) for obj in world.held_out])
        report = bandit.report()
    if full_information:
        held["full_information"] = _mean_loss(world, world.full_information(objects, seed)(world.held_out))
    margin = _margin(losses - reference, np.array([epsilon(n) for n in range(rounds)]))
    return Outcome(world.name, seed, losses, reference, chance, margin, held, len(world.held_out), report)


def with_defaults(world: World, options: Mapping[str, Any], *, algorithm2: bool = False) -> dict[str, Any]:
    """The options of a bandit, with the world's defaults for those that are not given; Algorithm 2 has its own."""
    own = {} if algorithm2 else dict(world.options)
    if "learner" in options or "update" in options:
        own.pop("learner", None)
    moot = without_effect(**{name: value for name, value in {**own, **options}.items() if name in KINDS})
    return {name: value for name, value in own.items() if name not in moot} | dict(options)


def _played(
    world: World, bandit: StructuredBandit, objects: Objects, seed: int, deliveries: _Deliveries, watch: Watch | None
) -> np.ndarray:
    """The losses of all rounds: of the bandit, the reference and chance."""
    losses, total = np.zeros((3, len(objects))), 0.0
    for n, obj in enumerate(objects):
        shown = bandit.decide(obj)
        outputs = shown.output, bandit.show_reference(obj), _random(world, obj, seed, n)
        losses[:, n] = [world.feedback(obj, output, seed) for output in outputs]
        deliveries.send(n, shown.id, float(losses[0, n]))
        for number, loss in deliveries.due(n):
            bandit.learn(number, loss)
        if watch is not None:
            total += float(losses[0, n])
            watch(n + 1, total / (n + 1))
    return losses


def _random(world: World, obj: Any, seed: int, n: int) -> Any:
    return world.at_random(obj, mix(mix(seed, RANDOM), n))


def held_out_baselines(world: World, *, compiled: bool = True) -> dict[str, float]:
    """Mean losses on held-out objects that do not depend on a seed: of the reference, and of the best outputs."""
    bandit = StructuredBandit(world.space, world.reference, compiled=compiled)
    losses = {"reference": _mean_loss(world, [bandit.show_reference(obj) for obj in world.held_out])}
    if world.best is not None:
        losses["optimum"] = _mean_loss(world, [world.best(obj) for obj in world.held_out])
    return losses


def _mean_loss(world: World, outputs: Sequence[Any]) -> float:
    return float(np.mean([world.loss(obj, output) for obj, output in zip(world.held_out, outputs, strict=True)]))


def _margin(excess: np.ndarray, allowed: np.ndarray) -> float:
    """The largest excess so far, over all rounds, above what exploration and chance account for."""
    return float((excess.cumsum() - allowed.cumsum() - 3.0 * np.sqrt(np.arange(1, excess.size + 1))).max())


class _Deliveries:
    """Losses that arrive later, or never."""

    def __init__(self, delay: int, lost: float, seed: int):
        self.delay, self.lost, self.key = delay, lost, mix(seed, LATE)
        self.waiting: list[tuple[int, int, str, float]] = []

    def send(self, n: int, id: str, loss: float) -> None:
        """Schedule the loss of round n."""
        key = mix(self.key, n)
        if unit(mix(key, LOST)) >= self.lost:
            due = n + self.delay + int(unit(mix(key, LATE)) * (self.delay + 1))
            heapq.heappush(self.waiting, (due, mix(key, ORDER), id, loss))

    def due(self, n: int) -> Iterator[tuple[str, float]]:
        """The losses that arrive by the end of round n."""
        while self.waiting and self.waiting[0][0] <= n:
            yield heapq.heappop(self.waiting)[2:]


# --- several seeds ----------------------------------------------------------------------------------------------------


def simulate_seeds(
    world: WorldSpec,
    options: Mapping[str, Any] | None = None,
    rounds: int = 20000,
    seeds: Sequence[int] = (0,),
    *,
    jobs: int = 2,
    watch: Watch | None = None,
    **more: Any,
) -> list[Outcome]:
    """Simulate with several seeds, in separate processes; the results do not depend on the number of processes.

    Parameters
    ----------
    world
        How to load the world: each process does so.
    options, rounds, more
        See `simulate`.
    seeds
        The seeds.
    jobs
        The number of processes. With more than one, a script must guard its main part by `if __name__ == "__main__":`,
        because each process imports it.
    watch
        Called with the number of rounds of all seeds so far, and their mean loss.

    """
    if not seeds:
        raise ConfigurationError("there are no seeds: give at least one")
    if jobs < 1:
        raise ConfigurationError(f"jobs is {jobs}; it must be at least 1")
    sums: dict[int, tuple[int, float]] = {}  # of each seed: rounds so far, and their loss

    def advance(seed: int, done: int, loss: float) -> None:
        sums[seed] = done, done * loss
        if watch is not None:
            rounds, total = (sum(column) for column in zip(*sums.values(), strict=True))
            watch(int(rounds), total / rounds)

    run = partial(_simulate_seed, world, dict(options or {}), rounds, more)
    if jobs == 1 or len(seeds) == 1:
        return [run(seed, None if watch is None else partial(advance, seed)) for seed in seeds]
    context = multiprocessing.get_context("spawn")
    reports, stop = context.SimpleQueue(), context.Event()
    pool = ProcessPoolExecutor(min(jobs, len(seeds)), context, _begin, (reports, stop))
    try:
        running = [pool.submit(_in_process, run, rounds, seed) for seed in seeds]
        while True:
            done, waiting = wait(running, timeout=OFTEN, return_when=FIRST_EXCEPTION)
            while not reports.empty():
                advance(*reports.get())
            for future in done:
                future.result()  # raises the error of a process
            if not waiting:
                return [future.result() for future in running]
    except BrokenProcessPool:
        raise LolsError("a process was killed, maybe because memory ran out: use fewer jobs") from None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _simulate_seed(
    spec: WorldSpec, options: dict[str, Any], rounds: int, more: dict[str, Any], seed: int, watch: Watch | None
) -> Outcome:
    return simulate(_world_of(spec), options, rounds, seed, baselines=partial(_baselines_of, spec), watch=watch, **more)


@lru_cache(maxsize=1)
def _world_of(spec: WorldSpec) -> World:
    """The world, kept for the next seed of the same process."""
    from lols.bandit.worlds.registry import load_world

    return load_world(*spec)


@lru_cache(maxsize=1)
def _baselines_of(spec: WorldSpec) -> dict[str, float]:
    return held_out_baselines(_world_of(spec))


class _Stopped(Exception):
    """The simulation was interrupted, or another process has failed."""


_parent: list[Any] = []  # in a process of the pool: the queue for reports, and the event to stop


def _begin(reports: Any, stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts, and sets `stop`
    _parent[:] = [reports, stop]


def _in_process(run: Callable[[int, Watch], Outcome], rounds: int, seed: int) -> Outcome:
    reports, stop = _parent
    last = 0.0

    def watch(done: int, loss: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= OFTEN or done == rounds:
            last = now
            if stop.is_set():
                raise _Stopped
            reports.put((seed, done, loss))

    return run(seed, watch)
