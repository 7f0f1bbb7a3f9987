"""Processes of this machine, by joblib's loky: what they share lies in files that all of them map into memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import shutil
import signal
import tempfile
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from lols.contract.threads import cores
from lols.contract.whole_numbers import check_whole
from lols.engines.protocol import MOST_WORKERS, QUIET, Engine, Failed, Function, SharedValue, Workers, attempt
from lols.errors import LolsError, lines_of
from lols.io.whole_file import lock

MOST_DEATHS = 3  # of processes in one call, before it is given up
ALIGNED = 64
MEMORY = Path("/dev/shm")  # of Linux: files that are never written to a disk
PREFIX = "lols-workers-"


@dataclass(frozen=True, kw_only=True)
class Processes(Engine):
    """Processes of this machine, where threads are not enough: programs in plain Python, many cores, several sockets.

    Parameters
    ----------
    workers
        How many processes; by default one for each core.
    sync, shards, legs
        As for `Engine`.

    """

    workers: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers is not None:
            check_whole("workers", self.workers, most=MOST_WORKERS)

    @property
    def count(self) -> int:
        return self.workers or cores()

    def start(self) -> ProcessWorkers:
        return ProcessWorkers(self.count)


class SharedFile(SharedValue):
    """A value in a file: its pickle, then its arrays, which are mapped into memory and not read."""

    def __init__(self, path: str, sizes: list[int]):
        self.path, self.sizes = path, sizes

    def get(self) -> Any:
        with open(self.path, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        parts, at = [], 0
        for size in self.sizes:
            parts.append(mapped[at : at + size])
            at += -(-size // ALIGNED) * ALIGNED
        return pickle.loads(parts[0], buffers=parts[1:])


class ProcessWorkers(Workers):
    """Running processes; one that dies is replaced, and its work is done again."""

    def __init__(self, workers: int):
        self.workers, self._executor = workers, None
        self._folder, handle = _new_folder()
        self._numbers = count()
        self._remove = weakref.finalize(self, _remove_folder, self._folder, handle, os.getpid())

    def _started(self) -> Any:
        if self._executor is None:
            from joblib.externals.loky import ProcessPoolExecutor

            # loky replaces a process that has grown by 300 MB, and then warns of a short timeout, which there is not
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
            self._executor = ProcessPoolExecutor(self.workers, initializer=_begin, initargs=(os.getpid(),))
        return self._executor

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None
        self._remove()

    @property
    def alive(self) -> int:
        return self.workers

    def share(self, value: Any) -> SharedFile:
        import cloudpickle

        buffers: list[pickle.PickleBuffer] = []
        parts: list[Any] = [cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)]
        parts += [buffer.raw() for buffer in buffers]
        path = self._folder / f"{next(self._numbers)}"
        sizes = [memoryview(part).nbytes for part in parts]
        with open(path, "wb") as file:
            for part, size in zip(parts, sizes, strict=True):
                file.write(part)
                file.write(b"\0" * (-size % ALIGNED))
        self.sent += sum(sizes)
        shared = SharedFile(os.fspath(path), sizes)
        weakref.finalize(shared, path.unlink, missing_ok=True)  # who has mapped it keeps it
        return shared

    def outcomes(self, function: Function, items: Iterable[Any], window: int | None) -> Iterator[tuple[int, Any]]:
        upcoming, deaths = enumerate(items), 0
        given: dict[int, Any] = {}  # items that are not completed
        running: dict[Future[Any], int] = {}
        more = True
        while more or running:
            while more and len(running) < self.workers and (window is None or _within(given, window)):
                number, item = next(upcoming, (None, None))
                more = number is not None
                if number is not None:
                    given[number] = item
                    self._submit(running, function, number, item)
            if not running:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(future, None)
                if number is None:
                    continue
                try:
                    outcome = future.result()
                except BrokenExecutor:
                    deaths += 1
                    if deaths > MOST_DEATHS:
                        why = "maybe for want of memory: use fewer workers"
                        raise LolsError(f"processes were ended from outside {deaths} times, {why}") from None
                    self._executor = None
                    running.clear()
                    for again in sorted(given):
                        self._submit(running, function, again, given[again])
                    break
                except Exception as error:  # what could not be sent, there or back
                    outcome = Failed(LolsError(f"a worker's work could not be sent: {lines_of(error)[0]}"))
                del given[number]
                yield number, outcome

    def _submit(self, running: dict[Future[Any], int], function: Function, number: int, item: Any) -> None:
        try:
            future = self._started().submit(attempt, function, item)
        except BrokenExecutor as error:  # it died since the last result
            future = Future()
            future.set_exception(error)
        running[future] = number


def _new_folder() -> tuple[Path, int | None]:
    """A folder for what is shared, and what keeps it locked: as long as it is, its owner lives.

    Folders whose owners were killed before they could remove them are removed.
    """
    if not os.access(MEMORY, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=PREFIX)), None
    for name in os.listdir(MEMORY):
        if name.startswith(PREFIX):
            _sweep(MEMORY / name)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY))
        handle = os.open(folder, os.O_RDONLY)
        lock(handle, wait=True)
        if folder.exists():
            return folder, handle
        os.close(handle)  # swept by another process before it was locked


def _sweep(folder: Path) -> None:
    """Remove a folder of this user if nobody has it locked: not by its name, nor by a process that may be elsewhere."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(handle).st_uid == os.geteuid() and lock(handle, wait=False):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _remove_folder(folder: Path, handle: int | None, owner: int) -> None:
    """Remove a folder, unless this is the child of a fork of its owner."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _within(given: dict[int, Any], window: int) -> bool:
    """Whether one more item may be begun; those that are not completed are `given`."""
    return not given or max(given) - min(given) + 1 < window


def _begin(parent: int) -> None:
    """Prepare a process: only the parent is interrupted, and a process whose parent has died ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(QUIET)

    def watch() -> None:
        stop = threading.Event()
        while os.getppid() == parent or _alive(parent):
            stop.wait(2.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(process, 0)
        return True
    return False
