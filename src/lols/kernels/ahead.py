"""Compiles kernels ahead of time in a second process, since they do not depend on each other.

The second process is a fork that compiles, stores the object code, and exits. A thread that needs one of these kernels
meanwhile waits for it; if the second process fails or takes too long, the kernel is compiled in this one.
`LOLS_COMPILE_AHEAD=0` switches this off.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

from lols.kernels import store
from lols.kernels.layout import Layout

PATIENCE = 120.0  # seconds for one kernel, many times what it takes
COMPILING = threading.RLock()  # held while something is compiled
_UNDER_WAY: dict[str, int] = {}  # kernels that another process compiles, and its process id
_OWN: dict[int, int] = {}  # running processes, and the process that started each


def compile_ahead(work: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    """Prepare kernels for calls with such arguments: the first one in this process, the others in a second one."""
    missing = []
    for kernel, arguments in work:
        layout = kernel.layout_of(*arguments)
        if not kernel.has(layout):
            name = kernel.name_for(layout)
            if name not in _UNDER_WAY and not store.holds(name):
                missing.append((kernel, layout, name))
    if len(missing) < 2 or not possible():
        return
    with COMPILING, warnings.catch_warnings():  # the fork must not inherit a lock that another thread holds
        warnings.simplefilter("ignore", DeprecationWarning)  # the fork has one thread only, which is enough here
        process = os.fork()
    if process == 0:
        _compile_and_end([(kernel, layout) for kernel, layout, _ in missing[1:]])
    _UNDER_WAY.update((name, process) for _, _, name in missing[1:])
    _OWN[process] = os.getpid()
    kernel, layout, _ = missing[0]
    with contextlib.suppress(Exception):  # an error comes up again when the kernel runs
        kernel.prepare(layout)


def prepare_all(work: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    """Load or compile kernels for calls with such arguments, and wait until all are ready."""
    compile_ahead(work)
    for kernel, arguments in work:
        kernel.prepare(kernel.layout_of(*arguments))


def possible() -> bool:
    """Whether there are forks, a second processor, and a folder for kernels."""
    wanted = os.environ.get("LOLS_COMPILE_AHEAD", "1") not in ("", "0")
    wanted = wanted and os.environ.get("LOLS_PLAIN_COMPILER", "0") in ("", "0")  # its code cannot be stored
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return wanted and sys.platform == "linux" and cores > 1 and store.folder() is not None


def wait_for(name: str) -> tuple[bytes, str] | None:
    """The object code of a kernel that another process compiles; None if none does, or if it failed."""
    process = _UNDER_WAY.pop(name, None)
    end = time.monotonic() + PATIENCE
    while process is not None and time.monotonic() < end:
        stored = store.find(name)
        if stored is not None:
            return stored
        if not _ended(process):
            time.sleep(0.01)
            continue
        return store.find(name)
    if process is not None:
        _end(process)
    return None


def _ended(process: int) -> bool:
    """Whether another process has ended; from then on its id may belong to a stranger."""
    if process in _OWN:
        with contextlib.suppress(OSError):
            if os.waitpid(process, os.WNOHANG)[0] == 0:
                return False
        _OWN.pop(process, None)
    return True


def _compile_and_end(missing: list[tuple[Any, Layout]]) -> None:
    """The work of the second process: it prints nothing, and exits without running the handlers of its parent."""
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for kernel, layout in missing:
            kernel.prepare(layout)
    finally:
        os._exit(0)


def _end(process: int) -> None:
    """End another process, and wait for none of its kernels."""
    for name in [name for name, compiling in _UNDER_WAY.items() if compiling == process]:
        del _UNDER_WAY[name]
    if _OWN.get(process) == os.getpid() and not _ended(process):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        _OWN.pop(process, None)


@atexit.register
def _end_all() -> None:
    """Leave no process running."""
    for process in list(_OWN):
        _end(process)
