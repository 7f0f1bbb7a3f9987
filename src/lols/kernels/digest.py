"""The digest of functions and of everything they reach, which names the object file of a kernel.

It covers the byte code and the modules of functions, the helpers that they call, and the globals and closure cells that
they read; the versions of Python and NumPy; and the sources of this package, which turns them into machine code. So
compiled code is never stale.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

# Packages whose version stands for their code.
TRUSTED = frozenset({"numpy", "numba", "math", "builtins", "cmath", "operator"})
# Modules of this library whose functions have compiled forms of their own: their sources stand for their code.
COVERED = {"lols.kernels.hashing"}


def digest_functions(functions: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change whenever a function, or anything it reaches, changes.

    >>> digest_functions({"f": lambda s: s + 1}) == digest_functions({"f": lambda s: s + 1})
    True
    >>> digest_functions({"f": lambda s: s + 1}) == digest_functions({"f": lambda s: s + 2})
    False
    """
    digest = hashlib.sha256(_library_digest())
    description = Description()
    for name in sorted(functions):
        digest.update(f"\0{name}=".encode())
        for part in description.parts(functions[name]):
            digest.update(part)
    return digest.hexdigest()[:16]


def reached_helpers(function: Any) -> Iterator[types.FunctionType]:
    """All plain Python functions that a function calls, directly or not: they are compiled with it."""
    seen: set[int] = set()
    queue = [plain(function)]
    while queue:
        current = queue.pop()
        for value in _reached(current).values():
            if isinstance(value, types.FunctionType) and id(value) not in seen and not _trusted(value):
                seen.add(id(value))
                queue.append(value)
                yield value


def all_of_library(functions: Iterable[Any]) -> bool:
    """Whether all functions, and all that they call, are part of this library, which tests them with bounds checks.

    >>> all_of_library([plain]), all_of_library([plain, enum.unique])
    (True, False)
    """
    every = (each for function in functions for each in (plain(function), *reached_helpers(function)))
    return all(str(each.__module__).partition(".")[0] == "lols" for each in every)


def plain(function: Any) -> Any:
    """The Python function behind a Numba dispatcher, or the function itself."""
    return getattr(function, "py_func", function)


@functools.cache
def _library_digest() -> bytes:
    digest = hashlib.sha256(f"{sys.version}{np.__version__}".encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()


@functools.cache
def _digest_of_file(module: str) -> bytes:
    return hashlib.sha256(Path(str(sys.modules[module].__file__)).read_bytes()).digest()


def _trusted(value: Any) -> bool:
    """Whether a function is covered by a version or by the source of its module, and compiles without our help."""
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] in TRUSTED or module in COVERED


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all codes within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


@functools.lru_cache(maxsize=4096)
def _read(code: types.CodeType) -> frozenset[str]:
    """The names of globals: attributes may have the same names, such as that of a loop variable of a script."""
    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def _cells(function: types.FunctionType) -> dict[str, Any]:
    """The closure cells of a function that are filled."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = plain(cell.cell_contents)
        except ValueError:
            continue
    return found


def _reached(function: types.FunctionType) -> dict[str, Any]:
    """Globals, closure cells and attributes of modules that a function's code names."""
    codes = list(codes_of(function.__code__))
    names = {name for code in codes for name in code.co_names}
    read = frozenset().union(*map(_read, codes))
    found = {name: function.__globals__[name] for name in read if name in function.__globals__}
    found |= _cells(function)
    pending = list(found.items())
    while pending:
        path, module = pending.pop()
        own = isinstance(module, types.ModuleType) and module.__name__.partition(".")[0] not in TRUSTED
        if own and path.count(".") < 8:
            inner = {f"{path}.{n}": getattr(module, n) for n in names if hasattr(module, n)}
            pending += [(name, value) for name, value in inner.items() if name not in found]
            found |= inner
    return {name: plain(value) for name, value in found.items()}


class Description:
    """Everything about a value that what is made of it may depend on; functions that come again are numbered."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}

    def parts(self, value: Any) -> Iterator[bytes]:
        """The description of a value, in parts."""
        value = plain(value)
        if isinstance(value, types.FunctionType):
            if _trusted(value):
                yield self.name(value).encode()
                yield from self.files(value)
            elif id(value) in self.seen:
                yield f"function {self.seen[id(value)]} again".encode()
            else:
                self.seen[id(value)] = len(self.seen)
                yield from self.function(value)
        elif isinstance(value, np.ndarray):
            yield f"{value.dtype}{value.shape}".encode() + value.tobytes()
        elif isinstance(value, types.ModuleType):
            yield self.module(value)
        elif isinstance(value, enum.EnumMeta):
            yield repr({name: value[name].value for name in value.__members__}).encode()
        elif isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
            yield self.type(value)
        elif isinstance(value, tuple | dict):
            yield f"{type(value).__name__}{getattr(value, '_fields', '')} of {len(value)}".encode()
            for part in value if isinstance(value, tuple) else chain.from_iterable(value.items()):
                yield b","
                yield from self.parts(part)
        else:
            shown = repr(value)
            # an address differs from process to process
            yield f"{type(value).__name__} {'' if ' at 0x' in shown else shown}".encode()

    def name(self, function: types.FunctionType) -> str:
        """The name of a function that is told by its name."""
        return f"{function.__module__}.{function.__qualname__}"

    def files(self, function: types.FunctionType) -> Iterator[bytes]:
        """The source that its code is made from, where that is not what it says: of a covered module, of `parts_of`."""
        if function.__module__ in COVERED:
            yield _digest_of_file(function.__module__)
        if hasattr(function, "parts_of"):
            yield _digest_of_file(type(function.parts_of).__module__)

    def function(self, function: types.FunctionType) -> Iterator[bytes]:
        """A function: its module, its byte code, and what it reads."""
        yield str(function.__module__).encode()
        for code in codes_of(function.__code__):
            constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
            yield repr((code.co_code, constants, code.co_names, code.co_varnames)).encode()
        marks = sorted(getattr(function, "compiled_as", {}).items())
        yield repr((function.__defaults__, function.__kwdefaults__, marks)).encode()
        yield from self.files(function)
        yield from self.reached(function)

    def reached(self, function: types.FunctionType, *, closure_only: bool = False) -> Iterator[bytes]:
        """What a function reads: closure cells, and globals with attributes of modules unless they are left out."""
        reached = _cells(function) if closure_only else _reached(function)
        for name in sorted(reached):
            yield f"\0{name}=".encode()
            yield from self.parts(reached[name])

    def module(self, module: types.ModuleType) -> bytes:
        """A module: its name and version."""
        return f"module {module.__name__} {getattr(module, '__version__', '')}".encode()

    def type(self, kind: Any) -> bytes:
        """A class or a built-in function: its name and fields."""
        fields = getattr(kind, "_fields", ""), getattr(kind, "_field_defaults", "")
        return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__name__', '')}{fields}".encode()
