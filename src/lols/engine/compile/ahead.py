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
import time
import warnings
from collections.abc import Sequence
from typing import Any

from lols.engine.compile import store
from lols.engine.compile.layout import Layout

__all__ = ["compile_ahead", "wait_for"]

PATIENCE = 120.0  # seconds for one kernel, many times what it takes
_UNDER_WAY: dict[str, int] = {}  # kernels that another process compiles


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
    with warnings.catch_warnings():
        # A copy of a process with several threads has one: enough for what it does.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        _compile_and_end([(kernel, layout) for kernel, layout, _ in missing[1:]])
    _UNDER_WAY.update((name, process) for _, _, name in missing[1:])
    atexit.register(_end, process)
    kernel, layout, _ = missing[0]
    with contextlib.suppress(Exception):  # what is wrong will show again when the kernel runs
        kernel.prepare(layout)


def possible() -> bool:
    """Whether there are processes of this kind, a second processor, and a place to put kernels."""
    wanted = os.environ.get("LOLS_COMPILE_AHEAD", "1") not in ("", "0")
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
        with contextlib.suppress(OSError):
            if os.waitpid(process, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
                continue
        return store.find(name)
    return None


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
    """Do not leave the other process behind."""
    with contextlib.suppress(OSError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
