"""Kernels: entry points that run as plain Python when asked to, else as machine code, found on disk or compiled."""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lols.contract.digest import digest_functions
from lols.engine.compile import store
from lols.engine.compile.ahead import COMPILING, wait_for
from lols.engine.compile.dual import TWINS
from lols.engine.compile.layout import Block, Layout, block_of

__all__ = ["DISABLED", "Kernel", "KernelError", "compile_seconds", "kernel"]

# int entry(void *result, void **exception, int64 arguments); ctypes lets other threads run meanwhile
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class KernelError(Exception):
    """A function raised something unknown inside a kernel."""


class Kernel:
    """An entry point. It allocates nothing: what it makes, it writes into arrays that it is given."""

    def __init__(self, function: Any):
        self.plain = function
        self._made: dict[Layout, tuple[Any, Any]] = {}

    def __call__(self, compiled: bool, *arguments: Any) -> Any:
        if not compiled or DISABLED:
            with np.errstate(over="ignore", invalid="ignore"):
                return self.plain(*arguments)
        return self.run(block_of(arguments))

    def on(self, compiled: bool, *arguments: Any) -> Callable[[], Any]:
        """The kernel on these arguments, to be run again and again as what they hold changes."""
        if not compiled or DISABLED:
            return functools.partial(self, False, *arguments)
        block = block_of(arguments)
        entry, unpack = self._made.get(block.layout) or self.prepare(block.layout)
        addresses = block.address, block.address + 8, block.address + 16

        def run() -> Any:
            if entry(*addresses) != 0:
                raise _exception(block)
            return unpack(block.words)[0]

        return run

    def run(self, block: Block) -> Any:
        """Run the machine code on arguments that are laid out already; the first two words are for what comes back."""
        entry, unpack = self._made.get(block.layout) or self.prepare(block.layout)
        address = block.address
        if entry(address, address + 8, address + 16) != 0:
            raise _exception(block)
        return unpack(block.words)[0]

    @staticmethod
    def layout_of(*arguments: Any) -> Layout:
        """How such arguments are laid out."""
        return block_of(arguments).layout

    def has(self, layout: Layout) -> bool:
        """Whether the machine code for arguments of this layout is loaded."""
        return layout in self._made

    @functools.cached_property
    def _digest(self) -> str:
        return digest_functions({"kernel": self.plain})

    def name_for(self, layout: Layout) -> str:
        """The name under which the machine code for arguments of this layout is kept."""
        return store.name_of(f"{self._digest} {layout.name}")

    def prepare(self, layout: Layout) -> tuple[Any, Any]:
        """Find or make the machine code for arguments of this layout."""
        with COMPILING:
            if layout in self._made:
                return self._made[layout]
            name = self.name_for(layout)
            symbol = f"lols_{name}"
            code, letters = store.find(name) or _compiled(self.plain, layout, name, symbol)
            letter, with_numba = letters[0], letters[1] != " "
            address = code if isinstance(code, int) else store.load(code, symbol, with_numba=with_numba)
            unpack = struct.Struct("q" if letter == "x" else letter).unpack_from  # of native size: NumPy's "l" is long
            made = self._made[layout] = ENTRY(address), _nothing if letter == "x" else unpack
        return made


def kernel(function: Any) -> Any:
    """Make a function a kernel that is compiled whenever Python calls it; another kernel takes it in as a part.

    >>> @kernel
    ... def total(numbers):
    ...     made = 0
    ...     for n in range(numbers.size):
    ...         made += numbers[n]
    ...     return made
    >>> total(np.arange(5))
    10
    """
    made = Kernel(function)

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        return made(True, *arguments)

    run.py_func = function  # type: ignore[attr-defined]
    TWINS[run] = function
    return run


def _nothing(_words: Any) -> tuple[None]:
    return (None,)


def _exception(block: Block) -> Exception:
    """What was raised inside a kernel: Numba leaves it as a pickled class and arguments, part of the kernel's code."""
    (address,) = struct.unpack_from("=q", block.words, 8)
    try:
        data, size = ctypes.c_void_p.from_address(address).value, ctypes.c_int32.from_address(address + 8).value
        kind, arguments, *_ = pickle.loads(ctypes.string_at(data or 0, size))
        return kind(*(arguments or ()))
    except Exception:
        return KernelError("a function raised an error")


# --- compiling --------------------------------------------------------------------------------------------------------

_SECONDS = 0.0
_ANNOUNCED = False


def compile_seconds() -> float:
    """Seconds that this process has spent compiling so far."""
    return _SECONDS


def _compiled(function: Any, layout: Layout, name: str, symbol: str) -> tuple[bytes | int, str]:
    """Compile a kernel, say so, and keep it."""
    global _SECONDS
    _announce()
    began = time.perf_counter()
    try:
        found = wait_for(name)
        if found is not None:
            return found
        from lols.engine.compile import backend

        code, letters = backend.compile_kernel(function, layout, symbol)
        if isinstance(code, bytes) and letters[1] != "p":
            store.keep(name, code, letters)
    finally:
        _SECONDS += time.perf_counter() - began
    return code, letters


def _announce() -> None:
    """Say once that something is compiled: a cold start must not look like a hang."""
    global _ANNOUNCED
    forced = os.environ.get("LOLS_ANNOUNCE")
    wanted = forced == "1" if forced else sys.stderr.isatty() or "ipykernel" in sys.modules
    if wanted and not _ANNOUNCED:
        print("lols: compiling the search space (first run only; `lols warmup` does it ahead) ...", file=sys.stderr)
        _ANNOUNCED = True
