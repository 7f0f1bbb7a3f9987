"""`lols.State`: a state of named parts, integers and real numbers, in place of one vector of integers.

The engine keeps every state as one vector of integers. The functions of a space with a `State` are wrapped, so that
they see its parts: views of that vector, in which a real number takes two cells.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lols.contract.records import record_class
from lols.errors import ConfigurationError

Size = int | str | Callable[[Any], int]
CELLS = 2  # of 32 bits, for one real number
AFTER_TRUTH = ("loss", "cost", "action", "free", "costs")  # functions whose arguments are x, y, s, ...


class Reals(NamedTuple):
    """A part of real numbers."""

    size: Size


def reals(size: Size) -> Reals:
    """A part of a `State` that holds real numbers; the size is as for integers.

    >>> reals("machines")
    Reals(size='machines')
    """
    return Reals(size)


class State:
    """The parts of a state by name, each with its size: a number, the name of a column of `x`, or a function of `x`.

    Functions of the space see arrays under these names, all zeros in the beginning. Parts hold integers unless they are
    made with `lols.reals`.

    >>> state = State(done="jobs", count=1, free=reals(lambda x: x.jobs + 1))
    >>> from types import SimpleNamespace
    >>> x = SimpleNamespace(jobs=3)
    >>> s = np.zeros(state.size(x), np.int32)
    >>> parts = state.view(x, s)
    >>> parts.free[3] = 0.5
    >>> parts.done[1] += 2
    >>> parts.free.tolist(), parts.done.tolist(), parts.count.tolist()
    ([0.0, 0.0, 0.0, 0.5], [0, 2, 0], [0])
    """

    def __init__(self, **parts: Size | Reals):
        if not parts:
            raise ConfigurationError("a State needs parts, for example lols.State(done=10, time=lols.reals(1))")
        for name, part in parts.items():
            size = part.size if isinstance(part, Reals) else part
            whole = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 0
            if not (whole or callable(size) or (isinstance(size, str) and size.isidentifier())):
                raise ConfigurationError(
                    f"the size of the state's part `{name}` is {size!r}: give a number, the name of a column of x, or "
                    "a function of x"
                )
            if keyword.iskeyword(name) or name.startswith("_"):
                raise ConfigurationError(f"`{name}` cannot name a part of the state: choose another name")
        # Real numbers come first, so that they are aligned.
        self.parts = dict(sorted(parts.items(), key=lambda part: not isinstance(part[1], Reals)))
        self.bounds = self._bounds()
        self.view = self._view()
        self._wrappers: dict[tuple[str, Any], Any] = {}  # one for each function, so that it is compiled once

    def __repr__(self) -> str:
        return f"State({', '.join(f'{name}={part!r}' for name, part in self.parts.items())})"

    def _bounds(self) -> Callable[[Any], tuple[int, ...]]:
        """A function of `x`: where each part begins, and the end. It is written out, so that it can be compiled."""
        names: dict[str, Any] = {"__name__": f"{__name__}.parts"}
        lines, ends = ["def bounds(x):", "    n0 = 0"], ["n0"]
        for k, part in enumerate(self.parts.values()):
            asked, cells = (part.size, CELLS) if isinstance(part, Reals) else (part, 1)
            names[f"size_{k}"] = asked
            count = f"size_{k}(x)" if callable(asked) else f"x.{asked}" if isinstance(asked, str) else str(asked)
            lines.append(f"    n{k + 1} = n{k} + {cells} * {count}")
            ends.append(f"n{k + 1}")
        exec("\n".join([*lines, f"    return {', '.join(ends)}"]), names)
        bounds: Callable[[Any], tuple[int, ...]] = names["bounds"]
        bounds.identity = self.parts  # type: ignore[attr-defined]  # what it says is what was given
        return bounds

    def _view(self) -> Callable[[Any, Any], Any]:
        """A function of `x` and a state vector that returns its parts; compiled code has its own version."""
        bounds, kind = self.bounds, record_class(tuple(self.parts))
        real = [isinstance(part, Reals) for part in self.parts.values()]

        def view(x: Any, s: Any) -> Any:
            at, wide = bounds(x), s.itemsize // 4  # a real number takes half of its cells if these have 64 bits
            return kind(*(
                s[low : low + (high - low) // wide].view(np.float64) if real[k] else s[low:high]
                for k, (low, high) in enumerate(pairwise(at))
            ))  # fmt: skip

        view.parts_of = self  # type: ignore[attr-defined]
        return view

    def size(self, x: Any) -> int:
        """The number of cells; even, so that real numbers stay aligned where states follow each other."""
        bounds = self.bounds(x)
        for name, (low, high) in zip(self.parts, pairwise(bounds), strict=True):
            if high < low:  # compiled code trusts the bounds
                raise ValueError(f"a negative size of the part `{name}`")
        return bounds[-1] + bounds[-1] % 2

    def wrapped(self, functions: Mapping[str, Any]) -> dict[str, Any]:
        """Functions of a space or reference, by name, that take the vector and pass its parts on."""
        return {name: self._wrap(name, function) for name, function in functions.items() if function is not None}

    def _wrap(self, name: str, own: Any) -> Any:
        if hasattr(own, "sees_parts"):
            return own
        if (name, own) in self._wrappers:
            return self._wrappers[name, own]
        plain = getattr(own, "py_func", own)
        wrapper = (_with_truth if name in AFTER_TRUTH else _without_truth)(own, self.view, plain.__code__.co_argcount)
        wrapper.__name__, wrapper.__qualname__ = plain.__name__, plain.__qualname__
        wrapper.__module__, wrapper.sees_parts = plain.__module__, True
        self._wrappers[name, own] = wrapper
        return wrapper


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
