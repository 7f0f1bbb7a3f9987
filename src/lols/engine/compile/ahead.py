"""Kernels compiled before they are needed, in a process beside this one: they do not depend on each other.

The other process is a copy of this one that compiles, leaves the object code where kernels are kept, and ends. Whoever
needs one of these kernels meanwhile waits for it; if the other process fails or takes too long, it is compiled here.
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

from lols.engine.compile import store
from lols.engine.compile.layout import Layout

__all__ = ["COMPILING", "compile_ahead", "wait_for"]

PATIENCE = 120.0  # seconds for one kernel, many times what it takes
COMPILING = threading.RLock()  # held by whoever compiles
_UNDER_WAY: dict[str, int] = {}  # kernels that another process compiles
_OWN: dict[int, int] = {}  # such processes that have not ended, and whose they are


def compile_ahead(work: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    """Have kernels ready for calls with such arguments: the first one now, the others beside it."""
    missing = []
    for kernel, arguments in work:
        layout = kernel.layout_of(*arguments)
        if not kernel.has(layout):
            name = kernel.name_for(layout)
            if name not in _UNDER_WAY and not store.holds(name):
                missing.append((kernel, layout, name))
    if len(missing) < 2 or not possible():
        return
    with COMPILING, warnings.catch_warnings():  # a copy must not find the lock taken by a thread that it does not have
        warnings.simplefilter("ignore", DeprecationWarning)  # of several threads it has one, enough for what it does
        process = os.fork()
    if process == 0:
        _compile_and_end([(kernel, layout) for kernel, layout, _ in missing[1:]])
    _UNDER_WAY.update((name, process) for _, _, name in missing[1:])
    _OWN[process] = os.getpid()
    kernel, layout, _ = missing[0]
    with contextlib.suppress(Exception):  # what is wrong will show again when the kernel runs
        kernel.prepare(layout)


def possible() -> bool:
    """Whether there are processes of this kind, a second processor, and a place to put kernels."""
    wanted = os.environ.get("LOLS_COMPILE_AHEAD", "1") not in ("", "0")
    wanted = wanted and os.environ.get("LOLS_PLAIN_COMPILER", "0") in ("", "0")  # whose code cannot be passed on
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return wanted and sys.platform == "linux" and cores > 1 and store.folder() is not None


def wait_for(name: str) -> tuple[bytes, str] | None:
    """The object code of a kernel that another process compiles, if it does; else None."""
    process = _UNDER_WAY.pop(name, None)
    end = time.monotonic() + PATIENCE
    while process is not None and time.monotonic() < end:
        found = store.find(name)
        if found is not None:
            return found
        if not _ended(process):
            time.sleep(0.01)
            continue
        return store.find(name)
    if process is not None:
        _end(process)
    return None


def _ended(process: int) -> bool:
    """Whether another process has ended; then its number may be that of somebody else's."""
    if process in _OWN:
        with contextlib.suppress(OSError):
            if os.waitpid(process, os.WNOHANG)[0] == 0:
                return False
        _OWN.pop(process, None)
    return True


def _compile_and_end(missing: list[tuple[Any, Layout]]) -> None:
    """What the other process does; it says nothing, and leaves without cleaning up what is not its own."""
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
    """End another process, and expect nothing more of it."""
    for name in [name for name, one in _UNDER_WAY.items() if one == process]:
        del _UNDER_WAY[name]
    if _OWN.get(process) == os.getpid() and not _ended(process):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        _OWN.pop(process, None)


@atexit.register
def _end_all() -> None:
    """Leave no process behind."""
    for process in list(_OWN):
        _end(process)
