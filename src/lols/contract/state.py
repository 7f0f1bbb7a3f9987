"""`lols.State`: a state of named parts, integers and real numbers, in place of one vector of integers.

The engine keeps every state as one vector of integers. The functions of a space with a `State` are wrapped, so that
they see its parts: numbers, and arrays that are views of that vector. A real number takes two of its cells.
"""

from __future__ import annotations

import difflib
import functools
import keyword
from collections.abc import Callable, Mapping
from itertools import pairwise
from operator import index
from typing import Any, NamedTuple

import numpy as np

from lols.contract.records import record_class
from lols.errors import ConfigurationError, shown

Size = int | str | Callable[[Any], int]
CELLS = 2  # of 32 bits, for one real number
WHOLE = np.iinfo(np.int32)  # what a cell keeps
AFTER_TRUTH = ("loss", "cost", "action", "free", "costs")  # functions whose arguments are x, y, s, ...


class Reals(NamedTuple):
    """A part of real numbers."""

    size: Size


def reals(size: Size) -> Reals:
    """A part of a `State` that holds real numbers; the size is as for integers.

    Parameters
    ----------
    size
        How many numbers: a number, the name of a column of `x`, or a function of `x`.

    Examples
    --------
    >>> reals("machines")
    Reals(size='machines')

    """
    return Reals(size)


class StatePart(NamedTuple):
    """How a part of a state is kept: its size, whether it holds real numbers, and whether it is one number."""

    size: Size
    real: bool
    number: bool

    @property
    def cells(self) -> int:
        """The cells of one entry."""
        return CELLS if self.real else 1

    @property
    def one_cell(self) -> bool:
        """Whether it is an array that always has one entry, which is easily taken for a number."""
        return not self.number and not callable(self.size) and self.size == 1


class State:
    """The parts of a state by name: what each of them is.

    - `int` and `float` are one number: `t=int` is read and written as `s.t`;
    - a size is an array of whole numbers: a number, the name of a column of `x`, or a function of `x`;
    - `lols.reals(size)` is an array of real numbers.

    All are zero in the beginning. Whole numbers have 32 bits; a number that they cannot keep is refused, and so is a
    real number, as in `s.t = 0.5`.

    Parameters
    ----------
    **parts
        The parts: `int`, `float`, a size, or `lols.reals(size)` for each name.

    Examples
    --------
    >>> state = State(done="jobs", count=int, now=float, free=reals(lambda x: x.jobs + 1))
    >>> from types import SimpleNamespace
    >>> x = SimpleNamespace(jobs=3)
    >>> s = np.zeros(state.size(x), np.int32)
    >>> parts = state.view(x, s)
    >>> parts.free[3] = 0.5
    >>> parts.done[1] += 2
    >>> parts.count += 1
    >>> parts.now = parts.free[3] + parts.count
    >>> parts
    State(done=[0, 2, 0], count=1, now=1.5, free=[0.0, 0.0, 0.0, 0.5])
    """

    def __init__(self, **parts: Size | Reals | type[int] | type[float]):
        if not parts:
            raise ConfigurationError("a State needs parts, for example lols.State(t=int, now=float, done=10)")
        for name in parts:
            if keyword.iskeyword(name) or name.startswith("_"):
                raise ConfigurationError(f"`{name}` cannot name a part of the state: choose another name")
        record_class(tuple(parts))  # which other names are refused
        self.declared = parts
        kept = {name: _part(name, given) for name, given in parts.items()}
        # Real numbers come first, so that they are aligned; numbers before arrays, so that their places are constants.
        self.parts = dict(sorted(kept.items(), key=lambda item: (not item[1].real, not item[1].number)))
        self.bounds = self._bounds()
        self.view = self._view(_class_of_parts(self, strict=True))
        self._lenient_view = self._view(_class_of_parts(self, strict=False))
        self._wrappers: dict[tuple[str, Any], Any] = {}  # one for each function, so that it is compiled once

    def __repr__(self) -> str:
        shown_parts = (
            f"{name}={given.__name__ if isinstance(given, type) else repr(given)}"
            for name, given in self.declared.items()
        )
        return f"State({', '.join(shown_parts)})"

    def _bounds(self) -> Callable[[Any], tuple[int, ...]]:
        """A function of `x`: where each part begins, and the end. It is written out, so that it can be compiled."""
        names: dict[str, Any] = {"__name__": f"{__name__}.parts"}
        lines, ends = ["def bounds(x):", "    n0 = 0"], ["n0"]
        for k, part in enumerate(self.parts.values()):
            asked = names[f"size_{k}"] = part.size
            count = f"size_{k}(x)" if callable(asked) else f"x.{asked}" if isinstance(asked, str) else str(asked)
            lines.append(f"    n{k + 1} = n{k} + {part.cells} * {count}")
            ends.append(f"n{k + 1}")
        exec("\n".join([*lines, f"    return {', '.join(ends)}"]), names)
        bounds: Callable[[Any], tuple[int, ...]] = names["bounds"]
        bounds.identity = {name: self.declared[name] for name in self.parts}  # type: ignore[attr-defined]  # all it says
        return bounds

    def _view(self, kind: type) -> Callable[[Any, Any], Any]:
        """A function of `x` and a state vector that returns its parts; compiled code has its own version."""
        bounds, real = self.bounds, [part.real for part in self.parts.values()]

        def view(x: Any, s: Any) -> Any:
            at, wide = bounds(x), s.itemsize // 4  # a real number takes half of its cells if these have 64 bits
            return kind(*(
                s[low : low + (high - low) // wide].view(np.float64) if real[k] else s[low:high]
                for k, (low, high) in enumerate(pairwise(at))
            ))  # fmt: skip

        view.parts_of, view.identity = self, bounds.identity  # type: ignore[attr-defined]
        return view

    def size(self, x: Any) -> int:
        """The number of cells; even, so that real numbers stay aligned where states follow each other."""
        bounds = self.bounds(x)
        for name, (low, high) in zip(self.parts, pairwise(bounds), strict=True):
            if high < low:  # compiled code trusts the bounds
                raise ValueError(f"a negative size of the part `{name}`")
        return bounds[-1] + bounds[-1] % 2

    # --- the functions of a space -------------------------------------------------------------------------------------

    def wrapped(self, functions: Mapping[str, Any]) -> dict[str, Any]:
        """Functions of a space or reference, by name, that take the vector and pass its parts on."""
        return {name: self._wrap(name, function) for name, function in functions.items() if function is not None}

    def _wrap(self, name: str, own: Any) -> Any:
        if hasattr(own, "sees_parts"):
            return own
        if (name, own) in self._wrappers:
            return self._wrappers[name, own]
        plain = getattr(own, "py_func", own)
        view = (
            self._lenient_view if name == "output" else self.view
        )  # `output` is never compiled: arrays mean what they do
        wrapper = (_with_truth if name in AFTER_TRUTH else _without_truth)(own, view, plain.__code__.co_argcount)
        wrapper.__name__, wrapper.__qualname__ = plain.__name__, plain.__qualname__
        wrapper.__module__, wrapper.sees_parts = plain.__module__, (plain, self)
        self._wrappers[name, own] = wrapper
        return wrapper

    # --- what is said about mistakes ----------------------------------------------------------------------------------

    def kept(self, name: str, value: Any) -> int | float:
        """A value for a part that is a number, or an error: no half becomes a whole in silence."""
        part = self.parts[name]
        if part.real:
            if isinstance(value, REAL_KINDS):
                return float(value)
        elif isinstance(value, WHOLE_KINDS):
            if not WHOLE.min <= value <= WHOLE.max:
                raise OverflowError(self.too_large(name))
            return int(value)
        raise TypeError(self.not_kept(name, shown(value.item() if isinstance(value, np.generic) else value)))

    def not_kept(self, name: str, given: str) -> str:
        """What is said where a part is given something that it cannot keep."""
        part = self.parts[name]
        if not part.number:
            return self.one_cell(name) if part.one_cell else self.an_array(name)
        if part.real:
            return f"`{name}` of the state is a number, and is given {given}"
        return (
            f"`{name}` of the state is a whole number, and is given {given}: write int(...), or declare it as "
            f"`{name}=float`"
        )

    def too_large(self, name: str) -> str:
        """What is said where a whole number is given more than its cell keeps."""
        return f"`{name}` of the state is given a number beyond 32 bits: scale it, or declare it as `{name}=float`"

    def one_cell(self, name: str) -> str:
        """What is said where an array of one cell is taken for a number."""
        kind = "float" if self.parts[name].real else "int"
        return f"`s.{name}` has one cell: write `s.{name}[0]`, or declare it as a number, lols.State({name}={kind})"

    def an_array(self, name: str) -> str:
        """What is said where a longer array is taken for a number."""
        return f"`s.{name}` is an array: name one of its cells, `s.{name}[i]`, or write to all of them, `s.{name}[:]`"

    def a_number(self, name: str) -> str:
        """What is said where a number is taken for an array."""
        return f"`s.{name}` is a number: write `s.{name}`, without an index"

    def no_vector(self) -> str:
        """What is said where the state itself is taken for an array."""
        return f"the state has named parts: write `s.{next(iter(self.declared))}`, not `s[...]`"

    def absent(self, name: str) -> str:
        """What is said about a part that is not there."""
        close = difflib.get_close_matches(name, self.parts, 1)
        meant = f": did you mean `s.{close[0]}`?" if close else ""
        return f"the state has no part `{name}`, only {', '.join(self.declared)}{meant}"


WHOLE_KINDS = (int, np.integer, np.bool_)
REAL_KINDS = (*WHOLE_KINDS, float, np.floating)


def _part(name: str, given: Any) -> StatePart:
    """What is declared for a part."""
    if given is int or given is float:
        return StatePart(1, given is float, number=True)
    size = given.size if isinstance(given, Reals) else given
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0
    function = callable(size) and not isinstance(size, type)
    if not (whole or function or (isinstance(size, str) and size.isidentifier())):
        kind = size.__name__ if isinstance(size, type) else shown(size)
        raise ConfigurationError(
            f"the size of the state's part `{name}` is {kind}: give a number, the name of a column of x, or a function "
            f"of x; one number is `{name}=int` or `{name}=float`"
        )
    return StatePart(size, isinstance(given, Reals), number=False)


# --- parts, as plain Python sees them ---------------------------------------------------------------------------------


def _class_of_parts(state: State, *, strict: bool) -> type:
    """A class with an attribute for each part: a number, or an array.

    If it is strict, arrays of one cell are refused where they are taken for numbers, as compiled code refuses them.
    """
    slots = {name: f"_{name}" if part.number else name for name, part in state.parts.items()}
    tight = [name for name, part in state.parts.items() if strict and part.one_cell]

    def build(parts: Any, *arrays: Any) -> None:
        for fill, array in zip(fills, arrays, strict=True):
            fill(parts, array)
        for name in tight:
            array = getattr(parts, name)
            cell = array.view(_one_cell(array.__class__))
            cell.says = state.one_cell(name)
            places[name].__set__(parts, cell)

    def write(parts: Any, name: str, value: Any) -> None:
        if name not in slots:
            raise AttributeError(state.absent(name))
        if not state.parts[name].number:
            raise TypeError(state.not_kept(name, shown(value)))
        getattr(parts, slots[name])[0] = state.kept(name, value)

    def missing(_parts: Any, name: str) -> Any:
        raise AttributeError(state.absent(name))

    def no_entry(_parts: Any, _index: Any) -> Any:
        raise TypeError(state.no_vector())

    def show(parts: Any) -> str:
        values = {name: getattr(parts, name) for name in state.declared}
        listed = (
            f"{name}={value.tolist() if isinstance(value, np.ndarray) else value}" for name, value in values.items()
        )
        return f"State({', '.join(listed)})"

    def number(slot: str) -> property:
        return property(lambda parts: getattr(parts, slot)[0].item())

    members = {"__slots__": tuple(slots.values()), "__init__": build, "__setattr__": write, "__getattr__": missing}
    members |= {
        "__getitem__": no_entry,
        "__setitem__": lambda parts, index, _: no_entry(parts, index),
        "__repr__": show,
    }
    # The digest of a function covers what its state is made of; sizes that are functions are described elsewhere.
    members["_fields"] = tuple((name, part.real, part.number, part.one_cell) for name, part in state.parts.items())
    members |= {name: number(slot) for name, slot in slots.items() if slot != name}
    kind = type("Parts", (), members)
    places = {name: vars(kind)[slot] for name, slot in slots.items()}
    fills = [place.__set__ for place in places.values()]
    return kind


@functools.cache
def _one_cell(kind: type) -> type:
    """A class of arrays, with what refuses them as numbers."""
    return type("OneCell", (OneCell, kind), {})


class OneCell:
    """An array of one cell that says where it is used as a number; parts and copies of it are ordinary arrays."""

    says = ""

    def _number(self) -> Any:
        if self.says:
            raise TypeError(self.says)
        return self.item()  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __index__(self) -> int:
        return index(self._number())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if self.says and method == "__call__" and "out" not in options:
            raise TypeError(self.says)
        if "out" in options:
            options["out"] = tuple(_ordinary(array) for array in options["out"])
        return getattr(ufunc, method)(*map(_ordinary, inputs), **options)


def _ordinary(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, OneCell) else value


# --- wrappers ---------------------------------------------------------------------------------------------------------


def own_function(function: Any) -> Any:
    """The user's own function, where a `State` has wrapped it."""
    plain = getattr(function, "py_func", function)
    return plain.sees_parts[0] if hasattr(plain, "sees_parts") else plain


def parts_seen(function: Any) -> State | None:
    """The `State` whose parts a function sees; None if it sees a vector."""
    return function.sees_parts[1] if hasattr(function, "sees_parts") else None


def _without_truth(own: Any, view: Any, count: int) -> Any:
    """A function of x, s and up to two more arguments; compiled functions must have their arguments written out."""

    def two(x, s):
        return own(x, view(x, s))

    def three(x, s, last):
        return own(x, view(x, s), last)

    def four(x, s, a, out):
        return own(x, view(x, s), a, out)

    return {2: two, 3: three, 4: four}[count]


def _with_truth(own: Any, view: Any, count: int) -> Any:
    """A function of x, y, s and perhaps one more argument."""

    def three(x, y, s):
        return own(x, y, view(x, s))

    def four(x, y, s, last):
        return own(x, y, view(x, s), last)

    return {3: three, 4: four}[count]
