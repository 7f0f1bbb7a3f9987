"""Machine code on disk: object files by the digest of what they were made from, loaded without a compiler.

A file is written under a temporary name and renamed, so that two processes that compile the same kernel do not disturb
each other. What cannot be read, or was made for another processor or version, is compiled again; where nothing can be
written, kernels live as long as the process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

__all__ = ["find", "folder", "holds", "keep", "load", "name_of"]

MAGIC = b"lols kernel 2\n"


@functools.cache
def folder() -> Path | None:
    """Where kernels are kept: `LOLS_CACHE`, or `lols` in Numba's or the user's cache folder; None for nowhere."""
    chosen = os.environ.get("LOLS_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(chosen) / "lols"] if chosen else []
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with contextlib.suppress(RuntimeError):
        places.append((Path(home) if home else Path.home() / ".cache") / "lols")
    for place in places:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK | os.X_OK):
                return place
    return None


@functools.cache
def machine() -> str:
    """What machine code depends on besides its source: versions, the processor, the compiler's switches."""
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")]
    processor = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    switches = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name in SWITCHES]
    return "\n".join([sys.version, *versions, *processor, *switches])


SWITCHES = {
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_CPU_NAME"),
    *("NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_DEBUGINFO", "NUMBA_DEBUG_NRT", "LOLS_PLAIN_COMPILER"),
}


def name_of(source: str) -> str:
    """The name under which the machine code of a source is kept on this machine."""
    return hashlib.sha256(f"{machine()}\n{source}".encode()).hexdigest()[:32]


def holds(name: str) -> bool:
    """Whether there is something of this name."""
    place = folder()
    return place is not None and (place / f"{name}.o").exists()


def find(name: str) -> tuple[bytes, str] | None:
    """The object code of this name and the two letters that were kept with it, or None."""
    place = folder()
    if place is None:
        return None
    try:
        whole = (place / f"{name}.o").read_bytes()
    except OSError:
        return None
    head, code = whole[: len(MAGIC) + 32], whole[len(MAGIC) + 32 :]
    return (code[2:], code[:2].decode()) if head == MAGIC + hashlib.sha256(code).digest() else None


def keep(name: str, code: bytes, letters: str) -> None:
    """Put object code on disk with two letters about it, if that is possible."""
    place, code = folder(), letters.encode() + code
    if place is None:
        return
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(prefix=f"{name}.", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(code).digest() + code)
            os.replace(temporary, place / f"{name}.o")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


_ENGINES: list[Any] = []  # what is loaded stays: addresses of it are in use


def load(code: bytes, symbol: str, *, with_numba: bool = False) -> int:
    """Load object code into this process, with what it calls in Numba; the address of a function in it."""
    if with_numba:
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    empty = llvm.parse_assembly("")
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(empty, target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    address = engine.get_function_address(symbol)
    if not address:
        raise OSError(f"no function {symbol} in the object code")
    return int(address)
