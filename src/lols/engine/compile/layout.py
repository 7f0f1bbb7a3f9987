"""Values as kernels see them: everything is a row of 64-bit words behind one pointer.

A number is one word. An array is the address of its data and its shape. A named tuple lies inside what holds it, and a
`Struct` is the address of words of its own, which are kept: what does not change from call to call is laid out once.
The layout says which words mean what; it is known without Numba, so that finding a kernel on disk needs no compiler.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self, dataclass_transform

import numpy as np

__all__ = [
    *("ArrayLayout", "Block", "Fields", "FunctionsLayout", "Layout", "NumberLayout", "Struct"),
    *("block_of", "readonly"),
]

WORD = 8


class Layout:
    """What some words mean. Equal layouts are one object, so that comparing them costs nothing."""

    name: str  # says everything: kernels are found by it
    size: int  # in words
    format: str  # of `struct`, a letter a word


class NumberLayout(Layout):
    """An integer, a truth value or a floating-point number."""

    def __init__(self, kind: str):
        self.name, self.kind, self.size = kind, kind, 1
        self.format = "d" if kind == "float" else "q"


class ArrayLayout(Layout):
    """A C-contiguous array: the address of its data, then its shape."""

    def __init__(self, dtype: np.dtype, ndim: int, writeable: bool):
        self.dtype, self.ndim, self.writeable = dtype, ndim, writeable
        kind = dtype.str if dtype.names is None else str(dtype.descr)
        self.name = f"{'' if writeable else 'const '}{kind}[{ndim}]"
        self.size, self.format = 1 + ndim, "q" * (1 + ndim)


class FunctionsLayout(Layout):
    """The functions of a space or a reference: no words, since their code is part of the kernel."""

    def __init__(self, kind: str, digest: str):
        self.kind, self.digest, self.name = kind, digest, f"{kind}:{digest}"
        self.size, self.format = 0, ""


class Fields(Layout):
    """Named values one after the other; those of a `Struct` lie elsewhere, behind an address of one word."""

    def __init__(self, kind: type, names: tuple[str, ...], layouts: tuple[Layout, ...]):
        self.kind, self.names, self.layouts = kind, names, layouts
        self.by_address = tuple(isinstance(each, Fields) and issubclass(each.kind, Struct) for each in layouts)
        parts = (f"{n}={each.name}" for n, each in zip(names, layouts, strict=True))
        self.name = f"{kind.__module__}.{kind.__name__}({','.join(parts)})"
        self.offsets, at, self.format = {}, 0, ""
        for name, each, apart in zip(names, layouts, self.by_address, strict=True):
            self.offsets[name] = at
            at += 1 if apart else each.size
            self.format += "q" if apart else each.format
        self.size, self.pack_into = at, struct.Struct(f"={self.format}").pack_into


_NUMBERS = {kind: NumberLayout(kind) for kind in ("int", "bool", "float")}
_ARRAYS: dict[Any, ArrayLayout] = {}
_FUNCTIONS: dict[tuple[str, str], FunctionsLayout] = {}
_FIELDS: dict[Any, Fields] = {}
_CALLS: dict[tuple[Layout, ...], Fields] = {}


def functions_layout(kind: str, digest: str) -> FunctionsLayout:
    """The layout of functions that have this digest."""
    return _FUNCTIONS.setdefault((kind, digest), FunctionsLayout(kind, digest))


def fields_layout(kind: type, names: tuple[str, ...], layouts: tuple[Layout, ...]) -> Fields:
    """The layout of named values."""
    found = _FIELDS.get((kind, names, layouts))
    if found is None:
        found = _FIELDS.setdefault((kind, names, layouts), Fields(kind, names, layouts))
    return found


class Block:
    """Words in memory, what they mean, and what they point to."""

    __slots__ = ("_kept", "address", "layout", "words")

    def __init__(self, layout: Fields, values: list[Any], kept: Any, before: int = 0):
        self.layout, self._kept = layout, kept
        self.words = bytearray(WORD * (before + layout.size) or WORD)
        layout.pack_into(self.words, WORD * before, *values)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.words))


@dataclass_transform(frozen_default=True)
class Struct:
    """A record that kernels see behind one pointer, and plain Python as an object with attributes.

    >>> class Point(Struct):
    ...     x: int
    ...     y: float = 0.5
    >>> Point(1)._replace(x=2)
    Point(x=2, y=0.5)
    """

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, eq=False)(cls)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]

    def _replace(self, **changes: Any) -> Self:
        """The same with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __iter__(self) -> Iterator[Any]:
        """The values of the fields, in order."""
        return (getattr(self, name) for name in self.names())

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: the fields, not where they lie in this process."""
        return {name: getattr(self, name) for name in self.names()}

    @cached_property
    def block(self) -> Block:
        """The words behind the pointer."""
        kind = type(self)
        names = kind.names()
        layouts, values, kept = _lay_out([getattr(self, name) for name in names])
        return Block(fields_layout(kind, names, layouts), values, (self.__dict__.copy(), kept))


class Arguments(Struct):
    """What a kernel is called with, behind two words for what comes back."""


def block_of(values: Any) -> Block:
    """The arguments of a kernel in words.

    >>> block_of((1, np.zeros((2, 3)), True)).layout.name
    'lols.engine.compile.layout.Arguments(a0=int,a1=<f8[2],a2=bool)'
    """
    layouts, words, kept = _lay_out(values)
    layout = _CALLS.get(layouts)
    if layout is None:
        layout = _CALLS.setdefault(layouts, fields_layout(Arguments, _NAMES[: len(layouts)], layouts))
    return Block(layout, words, (values, kept), before=2)


_NAMES = tuple(f"a{n}" for n in range(64))


def _said_address(array: np.ndarray) -> int:
    """Where an array's data are, as NumPy says it."""
    return int(array.__array_interface__["data"][0])


def _read_address(array: np.ndarray) -> int:
    """The same, read from where NumPy's binary interface has it, behind the object's head: several times faster."""
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


# Only where that is so: every call of a kernel asks for several addresses.
_SAMPLE = np.zeros(3)
_address_of = _read_address if _read_address(_SAMPLE) == _said_address(_SAMPLE) else _said_address


def readonly(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to: with it, a kernel that only reads is compiled once for both kinds of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def _lay_out(values: Any) -> tuple[tuple[Layout, ...], list[Any], list[Any]]:
    layouts: list[Layout] = []
    words: list[Any] = []
    kept: list[Any] = []
    for value in values:
        layouts.append(_append(value, words, kept))
    return tuple(layouts), words, kept


def _append(value: Any, words: list[Any], kept: list[Any]) -> Layout:
    """Write a value's words, and say what they mean."""
    kind = value.__class__
    if kind is np.ndarray:
        flags = value.flags
        if not flags.c_contiguous:
            raise TypeError("an array that a kernel is given must be C-contiguous")
        key = value.dtype, value.ndim, flags.writeable
        layout = _ARRAYS.get(key)
        if layout is None:
            layout = _ARRAYS.setdefault(key, ArrayLayout(*key))
        words.append(_address_of(value))
        words += value.shape
        return layout
    if isinstance(value, Struct):
        block = value.block
        words.append(block.address)
        kept.append(block)
        return block.layout
    if isinstance(value, bool | np.bool_):
        words.append(int(value))
        return _NUMBERS["bool"]
    if isinstance(value, int | np.integer):
        words.append(int(value))
        return _NUMBERS["int"]
    if isinstance(value, float | np.floating):
        words.append(float(value))
        return _NUMBERS["float"]
    if isinstance(value, tuple):
        names = getattr(kind, "_fields", _NAMES[: len(value)])
        return fields_layout(kind, names, tuple(_append(each, words, kept) for each in value))
    if isinstance(value, np.ndarray):  # of a class of its own, such as one that is mapped from a file
        kept.append(np.asarray(value))
        return _append(kept[-1], words, kept)
    layout = getattr(value, "layout", None)
    if isinstance(layout, FunctionsLayout):
        return layout
    raise TypeError(f"a kernel cannot be given {kind.__name__}")
