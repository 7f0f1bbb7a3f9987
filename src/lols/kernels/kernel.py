"""Kernels: entry points that run as machine code, loaded from disk or compiled, or as plain Python on request."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pickle
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from lols.errors import LolsError, one_line
from lols.kernels import store
from lols.kernels.ahead import COMPILING, wait_for
from lols.kernels.arithmetic import as_compiled
from lols.kernels.digest import digest_functions
from lols.kernels.dual import BOUND, TWINS
from lols.kernels.layout import Block, Layout, block_of, digests_in

# int entry(void *result, void **exception, int64 arguments); ctypes releases the interpreter lock meanwhile
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class KernelError(Exception):
    """A function raised an unknown exception inside a kernel."""


class CompilerError(RuntimeError):
    """A kernel could not be compiled or loaded, for a reason other than the functions that it consists of."""


class Kernel:
    """An entry point. It allocates nothing and writes its results into arrays that are passed to it."""

    def __init__(self, function: Any):
        self.plain = function
        self._loaded: dict[Layout, tuple[Any, Any]] = {}

    def __call__(self, compiled: bool, *arguments: Any) -> Any:
        if not compiled or DISABLED:
            with as_compiled():
                return self.plain(*arguments)
        block = block_of(arguments)
        entry, unpack = self._loaded.get(block.layout) or self.prepare(block.layout)
        address = block.address  # the first two words are for the result and the exception
        if entry(address, address + 8, address + 16) != 0:
            raise _exception(block)
        return unpack(block.words)[0]

    def on(self, compiled: bool, *arguments: Any) -> Callable[[], Any]:
        """A function that runs the kernel on these arguments, again and again as their contents change."""
        if not compiled or DISABLED:
            return functools.partial(self, False, *arguments)
        block = block_of(arguments)
        entry, unpack = self._loaded.get(block.layout) or self.prepare(block.layout)
        addresses = block.address, block.address + 8, block.address + 16

        def run() -> Any:
            if entry(*addresses) != 0:
                raise _exception(block)
            return unpack(block.words)[0]

        return run

    @staticmethod
    def layout_of(*arguments: Any) -> Layout:
        """The layout of such arguments."""
        return block_of(arguments).layout

    def has(self, layout: Layout) -> bool:
        """Whether the machine code for arguments of this layout is loaded."""
        return layout in self._loaded

    @functools.cached_property
    def _digest(self) -> str:
        return digest_functions({"kernel": self.plain})

    def name_for(self, layout: Layout) -> str:
        """The name under which the machine code for arguments of this layout is stored."""
        return store.name_of(f"{self._digest} {layout.name}")

    def prepare(self, layout: Layout) -> tuple[Any, Any]:
        """Load the machine code for arguments of this layout, or compile it: the entry, and what reads its result."""
        with COMPILING, _compiler_errors(self.plain):
            if layout not in self._loaded:
                name = self.name_for(layout)
                stored, loaded = store.find(name), None
                if stored is not None:
                    with contextlib.suppress(OSError, RuntimeError):  # what cannot be loaded is compiled again
                        loaded = _loaded(*stored, name)
                self._loaded[layout] = loaded or _loaded(*_compiled(self.plain, layout, name), name)
            return self._loaded[layout]


def kernel(function: Any) -> Any:
    """Make a function a kernel, which is compiled when Python calls it; inside another kernel it is a dual function.

    >>> @kernel
    ... def total(numbers):
    ...     total = 0
    ...     for n in range(numbers.size):
    ...         total += numbers[n]
    ...     return total
    >>> import numpy as np
    >>> total(np.arange(5))
    10
    """
    compiled = Kernel(function)

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        return compiled(True, *arguments)

    run.py_func = function  # type: ignore[attr-defined]
    TWINS[run] = function
    return run


def _nothing(_words: Any) -> tuple[None]:
    return (None,)


def _exception(block: Block) -> Exception:
    """The exception raised inside a kernel, whose class and arguments Numba pickles into the kernel's code."""
    (address,) = struct.unpack_from("=q", block.words, 8)
    try:
        data, size = ctypes.c_void_p.from_address(address).value, ctypes.c_int32.from_address(address + 8).value
        kind, arguments, *_ = pickle.loads(ctypes.string_at(data or 0, size))
        return kind(*(arguments or ()))
    except Exception:
        return KernelError("a function raised an error")


# --- compiling --------------------------------------------------------------------------------------------------------

_SECONDS = 0.0
_ANNOUNCED: set[str] = set()


def compile_seconds() -> float:
    """Seconds that this process has spent compiling so far."""
    return _SECONDS


@contextlib.contextmanager
def _compiler_errors(function: Any) -> Iterator[None]:
    """Turn errors of the compiler and the loader into a `CompilerError`; errors about a user's function stay."""
    try:
        yield
    except LolsError:
        raise
    except Exception as error:
        if type(error).__module__.startswith("numba"):
            raise
        raise CompilerError(
            f"the kernel `{function.__name__}` could not be compiled or loaded: {one_line(error)}. compiled=False runs "
            "it as plain Python"
        ) from error


def _symbol(name: str) -> str:
    return f"lols_{name}"


def _loaded(code: bytes | int, letters: str, name: str) -> tuple[Any, Any]:
    """The entry of a kernel and the function that reads its result, from object code or an address in this process."""
    letter, with_numba = letters[0], letters[1] != " "
    address = code if isinstance(code, int) else store.load(code, _symbol(name), with_numba=with_numba)
    if letter == "x":
        return ENTRY(address), _nothing
    return ENTRY(address), struct.Struct(letter).unpack_from  # of native size: NumPy's "l" is C's long


def _compiled(function: Any, layout: Layout, name: str) -> tuple[bytes | int, str]:
    """Compile a kernel, announce it, and store it: the object code and two letters about it."""
    global _SECONDS
    _announce(layout)
    began = time.perf_counter()
    try:
        stored = wait_for(name)
        if stored is not None:
            return stored
        from lols.kernels import backend

        code, letters = backend.compile_kernel(function, layout, _symbol(name))
        if isinstance(code, bytes) and letters[1] != "p":
            store.keep(name, code, letters)
    finally:
        _SECONDS += time.perf_counter() - began
    return code, letters


def _announce(layout: Layout) -> None:
    """Say what is about to be compiled, once for each set of functions, so that a cold start does not look like a hang.

    This goes to standard error, whatever it is: a terminal, a notebook, a log, a pipe. `LOLS_ANNOUNCE=0` is silence.
    """
    bound = next((BOUND[digest].name for digest in digests_in(layout) if BOUND[digest].name), None)
    what = bound or "kernels of lols"
    if what in _ANNOUNCED or os.environ.get("LOLS_ANNOUNCE") == "0" or sys.stderr is None:
        return
    _ANNOUNCED.add(what)
    seconds = "about 10 s" if bound else "a few seconds"
    with contextlib.suppress(OSError, ValueError):  # it may be full, or closed
        line = f"lols: compiling {what} ({seconds}, first run only; warm_up() or `lols warmup` does it ahead) ..."
        print(line, file=sys.stderr, flush=True)
