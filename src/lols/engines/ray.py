"""Ray: workers are actors on the machines of a cluster, or of a local Ray that is started for the run."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import socket
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from lols._version import __version__
from lols.contract.threads import cores
from lols.contract.whole_numbers import check_whole
from lols.engines.protocol import MOST_WORKERS, QUIET, Engine, Function, SharedValue, Workers, attempt
from lols.errors import ConfigurationError, LolsError, lines_of


def versions() -> dict[str, str]:
    """The versions here, and the name of this machine.

    >>> sorted(versions())
    ['NumPy', 'Numba', 'Python', 'host', 'lols']
    """
    return {
        "lols": __version__,
        "Python": platform.python_version(),
        "NumPy": metadata.version("numpy"),
        "Numba": metadata.version("numba"),
        "host": socket.gethostname(),
    }


def check_versions(here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Raise an error that names both sides if a version differs.

    >>> check_versions({"Numba": "0.65", "host": "a"}, {"Numba": "0.62", "host": "b"})
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: a has Numba 0.65, and the worker on b has Numba 0.62: install the same on both
    """
    different = [name for name in here if name != "host" and here[name] != there.get(name)]
    if different:
        sides = (", ".join(f"{name} {side.get(name, 'unknown')}" for name in different) for side in (here, there))
        ours, theirs = sides
        raise ConfigurationError(
            f"{here['host']} has {ours}, and the worker on {there['host']} has {theirs}: install the same on both"
        )


MOST_DEATHS = 3  # of workers at the same item, beyond as many as there are, before it is given up
SLOW, SLOW_LEAST = 5.0, 2.0  # times the usual duration, and seconds, after which an idle worker does an item again
CONNECTING = 5.0  # seconds to reach an address
LOOK = 1.0  # seconds between two looks at the time


@dataclass(frozen=True, kw_only=True)
class Ray(Engine):
    """A Ray cluster, or a local Ray that is started for a run and stopped after it: `pip install 'lols[ray]'`.

    Parameters
    ----------
    address
        The cluster: `"auto"` for the one that this machine is part of, or `"HOST:PORT"`, or `"ray://HOST:10001"` from
        outside it. None uses the connection of this process if it has one, else starts a local Ray.
    workers
        How many workers, each an actor with `cpus` processors; by default as many as the cluster has room for. Workers
        that find no room at first join when a node is added.
    cpus
        The processors of one worker.
    patience
        Seconds to wait for a first worker, and without any result, before the run ends with an error.
    sync
        `"exact"`: the result is that of one process, bit for bit. `"pass"`: each shard of the data trains a learner of
        its own, and their weights are averaged several times in a pass.
    shards
        With `sync="pass"`: how many parts the data are cut into; by default as many as there are workers.
    legs
        With `sync="pass"`: how often weights are averaged in a pass; by default half as often as there are shards, at
        most four times, and more often in the first pass.

    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers is not None:
            check_whole("workers", self.workers, most=MOST_WORKERS)
        for name in ("cpus", "patience"):
            if not getattr(self, name) > 0.0:
                raise ConfigurationError(f"{name} is {getattr(self, name)}: give a number above 0")

    @property
    def count(self) -> int:
        return self.workers or cores()

    def start(self) -> RayWorkers:
        return RayWorkers(self)


def imported() -> Any:
    """Ray; if it is not installed, an error that says how to."""
    try:
        import ray
    except ImportError:
        raise ConfigurationError("engine 'ray' needs Ray: pip install 'lols[ray]'") from None
    return ray


def connect(ray: Any, engine: Ray) -> bool:
    """Connect this process with Ray; whether that started or joined one, which has to be left in the end."""
    if ray.is_initialized():
        if engine.address not in (None, "auto", ray.get_runtime_context().gcs_address):
            raise ConfigurationError(
                f"this process is connected with another Ray than {engine.address}: leave out address, or call "
                "ray.shutdown() first"
            )
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if engine.address is None:
        here: dict[str, Any] = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            ray.init(address="local", num_cpus=max(1, round(engine.count * engine.cpus)), **here, **quiet)
        except Exception as error:  # of any class: its processes did not start, or not in time
            ray.shutdown()
            raise LolsError(f"Ray did not start on this machine ({lines_of(error)[0]}): try again") from error
        return True
    reach(engine.address)
    try:
        ray.init(address=engine.address, **quiet)
    except Exception as error:  # of any class, here too
        raise LolsError(
            f"there is no Ray at {engine.address} ({lines_of(error)[0]}): start one, or leave out address"
        ) from None
    return True


def reach(address: str) -> None:
    """Raise an error if nothing answers at `HOST:PORT`, rather than wait for it for minutes."""
    host, found, port = address.removeprefix("ray://").rpartition(":")
    if not found:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECTING).close()
    except (OSError, ValueError) as error:
        raise LolsError(f"there is no Ray at {address} ({error}): start one, or leave out address") from None


class Actor:
    """What a worker is on its side."""

    def hello(self) -> dict[str, str]:
        """Say which versions this worker has."""
        os.environ.update(QUIET)
        return versions()

    def run(self, function: Function, item: Any) -> Any:
        """Call a function."""
        return attempt(function, item)


class SharedObject(SharedValue):
    """A value in Ray's object store: once on each machine."""

    def __init__(self, reference: Any):
        self.reference = reference

    def get(self) -> Any:
        import ray

        return ray.get(self.reference)


@dataclass(eq=False)
class Call:
    """A call that runs on a worker."""

    number: int
    worker: Any
    began: float = field(default_factory=time.monotonic)
    wanted: bool = True  # whether its result is still awaited


class RayWorkers(Workers):
    """Running actors; one that dies is replaced, and its work is done again, by the first that is idle."""

    def __init__(self, engine: Ray):
        self._ray, self._engine = imported(), engine
        self._joined = connect(self._ray, engine)
        self._class = self._ray.remote(Actor).options(
            num_cpus=engine.cpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        self._coming: dict[Any, Any] = {}  # workers that have not yet said hello, by its reference
        self._idle: list[Any] = []
        self._busy: dict[Any, Call] = {}  # by the reference of the result
        self._here = versions()
        try:
            with self._in_one_line():
                room = self._ray.cluster_resources().get("CPU", 1)
                self._wanted = engine.workers or max(1, int(room // engine.cpus))
                for _ in range(self._wanted):
                    self._start_one()
                self._first_worker()
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def _in_one_line(self) -> Iterator[None]:
        """Say in one line what Ray itself reports: a store that is full, a cluster that is gone."""
        try:
            yield
        except self._ray.exceptions.RayError as error:
            why = f"{type(error).__name__}: {lines_of(error)[0]}"
            raise LolsError(f"Ray has failed ({why}): see its logs, by default in /tmp/ray/session_latest") from error

    def _start_one(self) -> None:
        worker = self._class.remote()
        self._coming[worker.hello.remote()] = worker

    def _first_worker(self) -> None:
        end = time.monotonic() + self._engine.patience
        while not self._idle:
            self._look([], LOOK)
            if time.monotonic() > end:
                raise LolsError(self._no_answer())

    def _no_answer(self) -> str:
        free = self._ray.available_resources().get("CPU", 0.0)
        return (
            f"no worker has answered for {self._engine.patience:g} s; {self.alive} of {self._wanted} are alive, and "
            f"{free:g} processors of the cluster are free: add a node, or ask for fewer cpus"
        )

    def close(self) -> None:
        for worker in (*self._coming.values(), *self._idle, *(call.worker for call in self._busy.values())):
            with contextlib.suppress(Exception):
                self._ray.kill(worker)
        self._coming, self._idle, self._busy = {}, [], {}
        if self._joined:
            self._ray.shutdown()
            self._joined = False

    @property
    def alive(self) -> int:
        return len(self._idle) + len(self._busy)

    def share(self, value: Any) -> SharedObject:
        with self._in_one_line():
            return SharedObject(self._ray.put(value))

    def outcomes(self, function: Function, items: Iterable[Any], window: int | None) -> Iterator[tuple[int, Any]]:
        with self._in_one_line():
            yield from self._outcomes(function, items, window)

    def _outcomes(self, function: Function, items: Iterable[Any], window: int | None) -> Iterator[tuple[int, Any]]:
        upcoming, more = enumerate(items), True
        given: dict[int, Any] = {}  # items that are not completed
        again: list[int] = []  # those whose workers died
        deaths: dict[int, int] = {}
        calls: dict[Any, Call] = {}
        seconds: list[float] = []
        heard = time.monotonic()
        while more or given:
            while self._idle and (again or more):
                if again:
                    number = again.pop(0)
                elif window is not None and given and max(given) - min(given) + 1 >= window:
                    break
                else:
                    number, item = next(upcoming, (-1, None))
                    more = number >= 0
                    if not more:
                        break
                    given[number] = item
                self._call(calls, function, number, given[number])
            if not given:
                continue
            if not more and not again:
                self._help(calls, function, given, seconds)
            for reference, call in self._look(calls, LOOK):
                heard = time.monotonic()
                del calls[reference]
                try:
                    outcome = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._died(call, error)
                    if call.number in given and not any(c.number == call.number for c in calls.values()):
                        deaths[call.number] = deaths.get(call.number, 0) + 1
                        if deaths[call.number] > MOST_DEATHS + self._wanted:
                            raise LolsError(
                                f"{deaths[call.number]} workers died at the same work, maybe for want of memory: "
                                f"{type(error).__name__}"
                            ) from None
                        again.append(call.number)
                    continue
                seconds.append(heard - call.began)
                if call.number in given:
                    del given[call.number]
                    yield call.number, outcome
                    heard = time.monotonic()
            if time.monotonic() - heard > self._engine.patience:
                raise LolsError(self._no_answer())

    def _call(self, calls: dict[Any, Call], function: Function, number: int, item: Any) -> None:
        worker = self._idle.pop(0)
        reference = worker.run.remote(function, item)
        calls[reference] = self._busy[reference] = Call(number, worker)

    def _help(self, calls: dict[Any, Call], function: Function, given: dict[int, Any], seconds: list[float]) -> None:
        """Let idle workers do again what takes much longer than usual: its worker may be slow, or lost."""
        limit = max(SLOW_LEAST, SLOW * statistics.median(seconds)) if seconds else None
        for number in list(given) if limit is not None and self._idle else ():
            mine = [call for call in calls.values() if call.number == number]
            late = len(mine) == 1 and time.monotonic() - mine[0].began > (limit or 0.0)
            if late and self._idle:
                self._call(calls, function, number, given[number])

    def _look(self, calls: Iterable[Any], timeout: float) -> list[tuple[Any, Call]]:
        """Wait for results and for workers that say hello; the calls among `calls` that are completed."""
        references = [*self._coming, *self._busy]
        if not references:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait(references, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        done, mine = [], set(calls)
        for reference in ready:
            if reference in self._coming:
                self._welcome(reference)
                continue
            call = self._busy.pop(reference)
            self._idle.append(call.worker)
            if reference in mine:
                done.append((reference, call))
            else:  # of an earlier map, which did without it
                with contextlib.suppress(self._ray.exceptions.RayTaskError):
                    try:
                        self._ray.get(reference)
                    except self._ray.exceptions.RayError as error:
                        self._died(call, error)
        return sorted(done, key=lambda pair: pair[1].number)

    def _welcome(self, reference: Any) -> None:
        worker = self._coming.pop(reference)
        try:
            there = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._start_one()
            return
        check_versions(self._here, there)
        self._idle.append(worker)

    def _died(self, call: Call, error: Exception) -> None:
        """Replace a worker that has died."""
        if isinstance(error, self._ray.exceptions.RayTaskError):  # its work could not be sent; the worker is fine
            raise LolsError(f"a worker's work could not be sent: {lines_of(error)[-1]}") from None
        self._idle.remove(call.worker)
        with contextlib.suppress(Exception):
            self._ray.kill(call.worker)
        self._start_one()
