"""Machine code on disk: object files named by a digest of their sources, loaded without a compiler.

A file is written under a temporary name and renamed, so that processes that compile the same kernel do not disturb each
other. Files that cannot be read, or that were written for another processor or version, are ignored and compiled again.
Kernels are looked for in all folders that may hold some, and stored in the first one that is writable; the last resort
is a private folder for temporary files. Without any, kernels are kept in memory only. The folder is limited in size:
storing a kernel deletes the least recently used ones beyond `MOST_BYTES`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from lols.errors import warn as warn_user
from lols.kernels.ownership import fault, opened

MAGIC = b"lols kernel 2\n"
MOST_BYTES = 256 << 20  # of all kernels together
LEFT_OVER = 86_400  # seconds after which a temporary file belongs to a process that was killed
FILE = re.compile(r"[0-9a-f]{32}\.(o|\w{8})")  # a kernel or a temporary file


@functools.cache
def usual() -> tuple[Path, ...]:
    """Where kernels may be: `lols` in `LOLS_CACHE` or Numba's cache folder, and in the user's.

    Links are followed once: what they lead to is looked at, and is what is used.
    """
    chosen = os.environ.get("LOLS_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(chosen)] if chosen else []
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with contextlib.suppress(RuntimeError):
        places.append(Path(home) if home else Path.home() / ".cache")
    return tuple(_real(place / "lols") for place in places)


def _real(place: Path) -> Path:
    with contextlib.suppress(OSError, RuntimeError):  # a chain of links that does not end
        return place.resolve()
    return place


@functools.cache
def folder() -> Path | None:
    """The folder in which kernels are stored: the first usual one that is writable, or a private one; None if none is.

    Kernels are machine code, which is loaded and run, so a folder in which others can put files is of no use.
    """
    for place in usual():
        with contextlib.suppress(OSError):
            _make(place, 0o755 if _for_all(place) else 0o700)
            if fault(place) is None and os.access(place, os.W_OK | os.X_OK):
                return place
    return _private()


def _for_all(place: Path) -> bool:
    """Whether other users may read a folder: the one that `LOLS_CACHE` names, as that of a container image."""
    chosen = os.environ.get("LOLS_CACHE")
    return chosen is not None and place == _real(Path(chosen) / "lols")


def _make(place: Path, mode: int) -> None:
    """Make a folder and those above it that are missing; others may write in none of them, whatever the user's mask."""
    for each in (*reversed(place.parents), place):
        if not each.is_dir():
            each.mkdir(mode=mode, exist_ok=True)


def _private() -> Path | None:
    """A folder among temporary files that nobody else may enter; None if there is none, or if it is not ours."""
    user = os.getuid() if hasattr(os, "getuid") else None
    with contextlib.suppress(OSError):
        place = Path(tempfile.gettempdir()) / f"lols-{'cache' if user is None else user}"
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        status = place.lstat()
        ours = user is None or (status.st_uid == user and stat.S_IMODE(status.st_mode) & 0o077 == 0)
        if stat.S_ISDIR(status.st_mode) and ours and fault(place) is None and os.access(place, os.W_OK | os.X_OK):
            return place
    return None


@functools.cache
def places() -> tuple[Path, ...]:
    """All folders in which kernels are looked for. Those that are not writable may come with an installation."""
    own = folder()
    safe = [place for place in usual() if fault(place) is None]
    return tuple(dict.fromkeys([*safe, *([] if own is None else [own])]))


@functools.cache
def warn() -> None:
    """Say once, when a kernel was compiled, that it is not kept where the user may expect it."""
    own, first = folder(), next(iter(usual()), None)
    if own is not None and own == first:
        return
    why = None if first is None or not first.is_dir() else fault(first)
    not_used = f"{first} cannot be written" if why is None else f"{first} is not used, because {why}"
    where = "there is no home for a cache" if first is None else not_used
    kept = "kernels are compiled again in every process" if own is None else f"compiled kernels are kept in {own}"
    warn_user(f"{where}: {kept}; let LOLS_CACHE name a folder of your own", RuntimeWarning)


@functools.cache
def machine() -> str:
    """What machine code depends on besides its source: versions, the processor, settings of the compiler."""
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")]
    processor = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    switches = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name in SWITCHES]
    return "\n".join([sys.version, *versions, *processor, *switches])


SWITCHES = {
    *("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_CPU_NAME"),
    *("NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_DEBUGINFO", "NUMBA_DEBUG_NRT", "LOLS_PLAIN_COMPILER"),
}


def name_of(source: str) -> str:
    """The name under which the machine code of a source is stored on this machine."""
    return hashlib.sha256(f"{machine()}\n{source}".encode()).hexdigest()[:32]


def holds(name: str) -> bool:
    """Whether there is a kernel of this name."""
    for place in places():
        if (file := opened(place / f"{name}.o")) is not None:
            file.close()
            return True
    return False


def find(name: str) -> tuple[bytes, str] | None:
    """The object code of this name and the two letters that were stored with it, or None."""
    for place in places():
        path = place / f"{name}.o"
        if (file := opened(path)) is None:
            continue
        try:
            with file:
                whole = file.read()
        except OSError:
            continue
        with contextlib.suppress(OSError):
            os.utime(path)  # used now, so not the next one to be deleted
        head, code = whole[: len(MAGIC) + 32], whole[len(MAGIC) + 32 :]
        if head == MAGIC + hashlib.sha256(code).digest():
            return code[2:], code[:2].decode()
    return None


def keep(name: str, code: bytes, letters: str) -> None:
    """Write object code and two letters about it to disk, if that is possible."""
    warn()
    place, code = folder(), letters.encode() + code
    if place is None:
        return
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(prefix=f"{name}.", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(code).digest() + code)
            if _for_all(place):
                os.chmod(temporary, 0o644)
            os.replace(temporary, place / f"{name}.o")
            _tidy(place)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _tidy(place: Path) -> None:
    """Delete the least recently used kernels beyond `MOST_BYTES`, and temporary files that were left over.

    Processes may do this at the same time. One that misses a kernel which another has deleted compiles it again.
    """
    kernels, left_over = [], []
    for entry in os.scandir(place):
        with contextlib.suppress(OSError):
            if FILE.fullmatch(entry.name):
                status = entry.stat()
                if entry.name.endswith(".o"):
                    kernels.append((status.st_mtime, status.st_size, entry.path))
                elif status.st_mtime < time.time() - LEFT_OVER:
                    left_over.append(entry.path)
    total = 0
    for _, size, path in sorted(kernels, reverse=True):
        total += size
        if total > MOST_BYTES:
            left_over.append(path)
    for path in left_over:
        with contextlib.suppress(OSError):
            os.unlink(path)


_ENGINES: list[Any] = []  # loaded code is never released: its addresses are in use


def load(code: bytes, symbol: str, *, with_numba: bool = False) -> int:
    """Load object code into this process and return the address of a function; it may call functions of Numba."""
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
