"""Dual functions: plain Python when called from Python, compiled when called from a kernel.

A user's space is passed to a kernel as an empty value whose *layout* carries a digest. The functions of the contract
(`step(space, ...)`, `features(space, ...)`) then call the user's own, so that any edit of one of them, or of a helper
that it calls, gives another kernel. Nothing here needs Numba: `lols.engine.compile.backend` registers these functions
with it when something has to be compiled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lols.contract import features
from lols.contract.digest import all_of_library, digest_functions, plain, reached_helpers
from lols.contract.examples import view
from lols.engine.compile.layout import FunctionsLayout, functions_layout

# Functions that kernels call, and the function that is compiled in place of each: usually the same one.
TWINS: dict[Any, Any] = {
    function: function
    for function in (
        features.above_least,
        features.append,
        features.emit,
        features.emit_curve,
        features.emit_surface,
        features.hamming,
        features.look,
        features.uniform,
    )
} | {features.refuse: features.mark_refused}


def dual(function: Any) -> Any:
    """Make a function dual: kernels compile it as it is written, and Python calls it as usual."""
    TWINS[function] = function
    return function


NOT_INLINED: set[Any] = {features.mark_refused}


def not_inlined(function: Any) -> Any:
    """Mark a large function that is never inlined: optimising it inside its callers costs more than the calls."""
    NOT_INLINED.add(function)
    return _marked(function, not_inlined=True)


def _marked(function: Any, **marks: Any) -> Any:
    """Record on a function how it is compiled, which is part of its digest."""
    function.compiled_as = getattr(function, "compiled_as", {}) | marks
    return function


# Functions that are compiled only if a space or reference has an optional function: field, its name, value otherwise.
NEEDS: dict[Any, tuple[str, str, Any]] = {}


def needs(field: str, name: str, absent: Any = None) -> Any:
    """Mark a function of a search that is called only if its `field`, the space or reference, has function `name`.

    For others it is compiled as a function that returns `absent`: a branch that is never taken is not compiled.
    """

    def mark(function: Any) -> Any:
        NEEDS[function] = (field, name, absent)
        return _marked(function, needs=(field, name, absent))

    return mark


class Bound:
    """The functions of one space or reference, ready to be passed to a kernel, compiled or not."""

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

    `LOLS_CHECK=1` checks the indices of all search spaces, `LOLS_CHECK=0` those of none.
    """
    wanted = os.environ.get("LOLS_CHECK", "")
    if wanted in ("0", "1"):
        return wanted == "1"
    return not all_of_library(functions)


CHECKED: set[Any] = set()  # functions whose indices are checked when they are compiled
BOUND: dict[str, Bound] = {}  # by digest, which is all that a layout has


def bind(kind: str, functions: Mapping[str, Any], name: str = "") -> Bound:
    """Prepare functions for the kernels; messages call them by their name."""
    return Bound(kind, functions, name)


# --- the user's functions ---------------------------------------------------------------------------------------------


def has(bound: Any, name: str) -> bool:
    """Whether the space or reference has an optional function; a constant in compiled code."""
    return name in bound.functions


CONTRACT: dict[Any, tuple[str, Any]] = {}  # for each function below: its name in the contract, its value if absent


def _generic(name: str, absent: Any = None) -> Any:
    """The plain version of one function of the contract."""

    def call(bound: Any, *arguments: Any) -> Any:
        function = bound.functions.get(name)
        return function(*arguments) if function is not None else absent

    call.__name__ = call.__qualname__ = name
    CONTRACT[call] = (name, absent)
    return call


start = _generic("start")
actions = _generic("actions")
step = _generic("step")
features_of = _generic("features")
loss = _generic("loss", 0.0)
action_features = _generic("action_features")
cost = _generic("cost", 0.0)
key = _generic("key", 0)
items = _generic("items")
survey = _generic("survey")
free = _generic("free")
reference_costs = _generic("costs")
names_action = _generic("named", True)


def reference_action(bound: Any, x: Any, y: Any, s: Any, rng: Any) -> int:
    """The action of a reference, with or without a random stream."""
    function = bound.functions["action"]
    return function(x, y, s, rng) if function.__code__.co_argcount == 4 else function(x, y, s)


FAR = float(1 << 62)


def near(number: Any) -> Any:
    """The whole number that a number is cut to; one that no action has for NaN, infinity and those beyond 64 bits."""
    return np.int64(number) if abs(np.float64(number)) <= FAR else np.int64(-FAR)


# --- one name, several functions --------------------------------------------------------------------------------------

KINDS: dict[Any, tuple[str, dict[type, Any]]] = {}  # for each function below: the field that decides, the functions


def by_kind(name: str, field: str, functions: dict[type, Any]) -> Any:
    """A function that calls one of several, by the class of a field of its first argument."""

    def call(record: Any, *arguments: Any) -> Any:
        return functions[type(getattr(record, field))](record, *arguments)

    call.__name__ = call.__qualname__ = name
    KINDS[call] = (field, functions)
    return call


# --- examples ---------------------------------------------------------------------------------------------------------


def row(columns: Any, index: int) -> Any:
    """One example's part of a record of columns, as a record of the same class."""
    return type(columns)(*(view(column, index) for column in columns))


# --- threads ----------------------------------------------------------------------------------------------------------


def take(counter: Any) -> int:
    """Take the next number of a counter shared by threads; in compiled code one atomic operation."""
    counter[0] += 1
    return int(counter[0]) - 1
