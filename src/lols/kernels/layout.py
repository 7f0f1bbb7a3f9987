"""Values as kernels see them: a sequence of 64-bit words behind one pointer.

A number is one word. An array is the address of its data followed by its shape. A named tuple is stored inline. A
`Struct` is the address of words of its own, which are kept, so that what does not change between calls is laid out
once. The layout says what the words mean. It does not need Numba, so that a kernel on disk is found without a compiler.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self, dataclass_transform

import numpy as np

WORD = 8


class Layout:
    """The meaning of a sequence of words. Equal layouts are the same object, so that comparing them is fast."""

    name: str  # describes the layout completely: part of the digest of a kernel
    size: int  # in words
    format: str  # of `struct`, one letter for each word

    def __deepcopy__(self, _memo: Any) -> Self:
        return self


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
    """Functions that a kernel is given: no words, because their code is part of the kernel."""

    def __init__(self, kind: str, digest: str):
        self.kind, self.digest, self.name = kind, digest, f"{kind}:{digest}"
        self.size, self.format = 0, ""


class Fields(Layout):
    """Named values one after the other; a `Struct` among them is one word, the address of its own words."""

    def __init__(self, kind: type, names: tuple[str, ...], layouts: tuple[Layout, ...]):
        self.kind, self.names, self.layouts = kind, names, layouts
        self.by_address = tuple(isinstance(each, Fields) and issubclass(each.kind, Struct) for each in layouts)
        parts = (f"{n}={each.name}" for n, each in zip(names, layouts, strict=True))
        self.name = f"{kind.__module__}.{kind.__name__}({','.join(parts)})"
        self.offsets, at, self.format = {}, 0, ""
        for name, each, by_address in zip(names, layouts, self.by_address, strict=True):
            self.offsets[name] = at
            at += 1 if by_address else each.size
            self.format += "q" if by_address else each.format
        self.size, self.pack_into = at, struct.Struct(f"={self.format}").pack_into


_NUMBERS = {kind: NumberLayout(kind) for kind in ("int", "bool", "float")}
_ARRAYS: dict[Any, ArrayLayout] = {}
_FUNCTIONS: dict[tuple[str, str], FunctionsLayout] = {}
_FIELDS: dict[Any, Fields] = {}
_CALLS: dict[tuple[Layout, ...], Fields] = {}


def functions_layout(kind: str, digest: str) -> FunctionsLayout:
    """The layout of functions that have this digest."""
    return _FUNCTIONS.setdefault((kind, digest), FunctionsLayout(kind, digest))


def digests_in(layout: Layout) -> Iterator[str]:
    """The digests of functions in a layout."""
    if isinstance(layout, FunctionsLayout):
        yield layout.digest
    for each in layout.layouts if isinstance(layout, Fields) else ():
        yield from digests_in(each)


def fields_layout(kind: type, names: tuple[str, ...], layouts: tuple[Layout, ...]) -> Fields:
    """The layout of named values."""
    layout = _FIELDS.get((kind, names, layouts))
    if layout is None:
        layout = _FIELDS.setdefault((kind, names, layouts), Fields(kind, names, layouts))
    return layout


# --- records of columns -----------------------------------------------------------------------------------------------


class Ragged(NamedTuple):
    """An array per example: the values of all examples, and where those of each begin.

    Attributes
    ----------
    values
        The values of all examples, one after the other.
    offsets
        Where those of each example begin, and where the last ones end.

    """

    values: np.ndarray
    offsets: np.ndarray


class Scalar(NamedTuple):
    """A number per example."""

    values: np.ndarray


class Shared(NamedTuple):
    """The same number or array for every example."""

    value: Any


def view(column: Any, index: int) -> Any:
    """One example's part of a column."""
    if isinstance(column, Ragged):
        return column.values[column.offsets[index] : column.offsets[index + 1]]
    return column.values[index] if isinstance(column, Scalar) else column.value


def row(columns: Any, index: int) -> Any:
    """One example's part of a record of columns, as a record of the same class."""
    return type(columns)(*(view(column, index) for column in columns))


# --- words ------------------------------------------------------------------------------------------------------------


class Block:
    """Words in memory, their layout, and references to what they point to."""

    __slots__ = ("_kept", "address", "layout", "words")

    def __init__(self, layout: Fields, values: list[Any], kept: Any, before: int = 0):
        self.layout, self._kept = layout, kept
        self.words = bytearray(WORD * (before + layout.size) or WORD)
        layout.pack_into(self.words, WORD * before, *values)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.words))


@dataclass_transform(frozen_default=True)
class Struct:
    """A record that kernels see behind one pointer, and that plain Python sees as an object with attributes.

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
        """The fields alone are pickled and copied, not their addresses in this process."""
        return {name: getattr(self, name) for name in self.names()}

    @cached_property
    def block(self) -> Block:
        """The words behind the pointer."""
        kind = type(self)
        names = kind.names()
        layouts, values, kept = _lay_out([getattr(self, name) for name in names])
        return Block(fields_layout(kind, names, layouts), values, (self.__dict__.copy(), kept))


class Arguments(Struct):
    """The arguments of a kernel; two words for its result and exception come before them."""


def block_of(values: Any) -> Block:
    """The arguments of a kernel as words.

    >>> block_of((1, np.zeros((2, 3)), True)).layout.name
    'lols.kernels.layout.Arguments(a0=int,a1=<f8[2],a2=bool)'
    """
    layouts, words, kept = _lay_out(values)
    layout = _CALLS.get(layouts)
    if layout is None:
        layout = _CALLS.setdefault(layouts, fields_layout(Arguments, _NAMES[: len(layouts)], layouts))
    return Block(layout, words, (values, kept), before=2)


_NAMES = tuple(f"a{n}" for n in range(64))


def _official_address(array: np.ndarray) -> int:
    """The address of an array's data, by NumPy's public interface."""
    return int(array.__array_interface__["data"][0])


def _read_address(array: np.ndarray) -> int:
    """The same, read from the array object itself, as laid out in NumPy's binary interface: several times faster."""
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


# Every call of a kernel needs several addresses, so the fast way is used where it gives the same result.
_SAMPLE = np.zeros(3)
_address_of = _read_address if _read_address(_SAMPLE) == _official_address(_SAMPLE) else _official_address


def readonly(array: np.ndarray) -> np.ndarray:
    """A read-only view: with it, a kernel that only reads is compiled once for writable and read-only arrays."""
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
    """Append the words of a value, and return its layout."""
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
    if isinstance(value, np.ndarray):  # a subclass, such as an array that is mapped from a file
        kept.append(np.asarray(value))
        return _append(kept[-1], words, kept)
    layout = getattr(value, "layout", None)
    if isinstance(layout, FunctionsLayout):
        return layout
    raise TypeError(f"a kernel cannot be given {kind.__name__}")
