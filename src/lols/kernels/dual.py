"""Dual functions: plain Python when called from Python, compiled when called from a kernel.

Functions of the user are passed to a kernel, bound together, as an empty value whose *layout* carries their digest.
What `call_of` makes then calls one of them, so that any edit of one, or of a helper that it calls, gives another
kernel. Nothing here needs Numba: `backend` registers these functions with it when something has to be compiled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from lols.kernels.digest import all_of_library, digest_functions, plain, reached_helpers
from lols.kernels.layout import FunctionsLayout, functions_layout

# Functions that kernels call, and the function that is compiled in place of each: usually the same one.
TWINS: dict[Any, Any] = {}


def dual(function: Any) -> Any:
    """Make a function dual: kernels compile it as it is written, and Python calls it as usual."""
    TWINS[function] = function
    return function


def in_kernels(compiled: Any) -> Any:
    """Make a function dual for which kernels call another one: `compiled`, with the same arguments."""

    def mark(function: Any) -> Any:
        TWINS[function] = compiled
        return function

    return mark


NOT_INLINED: set[Any] = set()


def not_inlined(function: Any) -> Any:
    """Mark a large function that is never inlined: optimising it inside its callers costs more than the calls."""
    NOT_INLINED.add(function)
    return _marked(function, not_inlined=True)


def _marked(function: Any, **marks: Any) -> Any:
    """Record on a function how it is compiled, which is part of its digest."""
    function.compiled_as = getattr(function, "compiled_as", {}) | marks
    return function


# Functions that are compiled only if an optional function is bound: the field with it, its name, the value otherwise.
NEEDS: dict[Any, tuple[str, str, Any]] = {}


def needs(field: str, name: str, absent: Any = None) -> Any:
    """Mark a function that is called only if function `name` is bound in this field of its first argument.

    Otherwise it is compiled as a function that returns `absent`: a branch that is never taken is not compiled.
    """

    def mark(function: Any) -> Any:
        NEEDS[function] = (field, name, absent)
        return _marked(function, needs=(field, name, absent))

    return mark


class Bound:
    """Functions that belong together, ready to be passed to a kernel, compiled or not."""

    def __init__(self, kind: str, functions: Mapping[str, Any], name: str = ""):
        self.name = name
        self.functions = {name: plain(function) for name, function in functions.items()}
        self.checked = _needs_checks(self.functions.values())
        digest = digest_functions(functions) + (" checked" if self.checked else "")
        self.layout: FunctionsLayout = functions_layout(kind, digest)
        CHECKED.update((*self.functions.values(), *self.helpers()) if self.checked else ())
        BOUND.setdefault(self.digest, self)

    @property
    def digest(self) -> str:
        """The digest of the functions and of everything they reach, and whether their indices are checked."""
        return self.layout.digest

    def helpers(self) -> Any:
        """The plain functions that these call; they are compiled, too."""
        for function in self.functions.values():
            yield from reached_helpers(function)


def _needs_checks(functions: Iterable[Any]) -> bool:
    """Whether functions are compiled with bounds checks: by default if any of them is not part of this library.

    `LOLS_CHECK=1` checks the indices in all such functions, `LOLS_CHECK=0` those in none.
    """
    wanted = os.environ.get("LOLS_CHECK", "")
    if wanted in ("0", "1"):
        return wanted == "1"
    return not all_of_library(functions)


CHECKED: set[Any] = set()  # functions whose indices are checked when they are compiled
BOUND: dict[str, Bound] = {}  # by digest, which is all that a layout has


def bind(kind: str, functions: Mapping[str, Any], name: str = "") -> Bound:
    """Prepare functions for the kernels; messages call them by this name, if they have one."""
    return Bound(kind, functions, name)


# --- functions that a kernel is given ---------------------------------------------------------------------------------


def has(bound: Any, name: str) -> bool:
    """Whether there is a function of this name among those that are bound; a constant in compiled code."""
    return name in bound.functions


CALLS: dict[Any, tuple[str, Any]] = {}  # functions that call one of those that are bound: its name, the value if absent


def call_of(name: str, absent: Any = None) -> Any:
    """A function that calls the function of this name among those that are bound, its first argument.

    >>> area = call_of("area")
    >>> area(bind("Shape", {"area": lambda a, b: a * b}), 2, 3), area(bind("Shape", {}), 2, 3)
    (6, None)
    """

    def call(bound: Any, *arguments: Any) -> Any:
        function = bound.functions.get(name)
        return function(*arguments) if function is not None else absent

    call.__name__ = call.__qualname__ = name
    CALLS[call] = (name, absent)
    return call


def shortened_call_of(name: str, absent: Any = None) -> Any:
    """The same, for a function that may take one argument less: it is given the last one only if it names that many.

    >>> area = shortened_call_of("area")
    >>> area(bind("Shape", {"area": lambda a: a * a}), 2, 3), area(bind("Shape", {"area": lambda *sides: sides}), 2, 3)
    (4, (2,))
    """

    def call(bound: Any, *arguments: Any) -> Any:
        function = bound.functions.get(name)
        if function is None:
            return absent
        return function(*arguments) if function.__code__.co_argcount == len(arguments) else function(*arguments[:-1])

    call.__name__ = call.__qualname__ = name
    CALLS[call] = (name, absent)
    return call


# --- one name, several functions --------------------------------------------------------------------------------------

KINDS: dict[Any, tuple[str, dict[type, Any]]] = {}  # for each function below: the field that decides, the functions


def by_kind(name: str, field: str, functions: dict[type, Any]) -> Any:
    """A function that calls one of several, by the class of a field of its first argument."""

    def call(record: Any, *arguments: Any) -> Any:
        return functions[type(getattr(record, field))](record, *arguments)

    call.__name__ = call.__qualname__ = name
    KINDS[call] = (field, functions)
    return call


# --- threads ----------------------------------------------------------------------------------------------------------


def take(counter: Any) -> int:
    """Take the next number of a counter shared by threads; in compiled code one atomic operation."""
    counter[0] += 1
    return int(counter[0]) - 1
