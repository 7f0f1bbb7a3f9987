"""Functions with two lives: plain Python when called from Python, compiled when called from a kernel.

A user's space enters a kernel as a value without content whose *layout* carries a digest; the functions of the contract
(`step(space, ...)`, `features(space, ...)`) are then the user's own, so that any edit of one of them, or of a helper
that it calls, gives another kernel. Nothing here needs Numba: `lols.engine.compile.backend` gives these functions their
second life when something has to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lols.contract import features
from lols.contract.digest import digest_functions, plain, reached_helpers
from lols.contract.examples import view
from lols.engine.compile.layout import FunctionsLayout, functions_layout

__all__ = [
    "APART",
    "CONTRACT",
    "KINDS",
    "NEEDS",
    "TWINS",
    "Bound",
    "apart",
    "bind",
    "by_kind",
    "dual",
    "has",
    "needs",
    "row",
    "take",
]

# What kernels call by name, and the function that is compiled in its place: mostly the same one.
TWINS: dict[Any, Any] = {function: function for function in (features.emit, features.look, features.uniform)}


def dual(function: Any) -> Any:
    """Compile a function as it stands when a kernel calls it; from Python it stays what it is."""
    TWINS[function] = function
    return function


APART: set[Any] = set()


def apart(function: Any) -> Any:
    """Mark a function that stays a call of its own in machine code: optimising it within its caller takes longer than
    the calls do, because it is large.
    """
    APART.add(function)
    return _marked(function, apart=True)


def _marked(function: Any, **marks: Any) -> Any:
    """Note on a function how it is compiled, so that its digest tells."""
    function.compiled_as = getattr(function, "compiled_as", {}) | marks
    return function


NEEDS: dict[
    Any, tuple[str, str, Any]
] = {}  # functions that are compiled only for a space or reference that has another


def needs(field: str, name: str, absent: Any = None) -> Any:
    """Mark a function of a search that is called only where its `field`, the space or reference, has function `name`.

    For others it is compiled as one that gives `absent`: a branch that is never taken need not be compiled.
    """

    def mark(function: Any) -> Any:
        NEEDS[function] = (field, name, absent)
        return _marked(function, needs=(field, name, absent))

    return mark


class Bound:
    """The functions of one space or reference, ready to be passed to a kernel, compiled or not."""

    def __init__(self, kind: str, functions: Mapping[str, Any]):
        self.functions = {name: plain(function) for name, function in functions.items()}
        self.layout: FunctionsLayout = functions_layout(kind, digest_functions(functions))
        BOUND.setdefault(self.digest, self)

    @property
    def digest(self) -> str:
        """The digest of the functions and of all they reach."""
        return self.layout.digest

    def helpers(self) -> Any:
        """The plain functions that these call: they are compiled, too."""
        for function in self.functions.values():
            yield from reached_helpers(function)


BOUND: dict[str, Bound] = {}  # by digest: a kernel knows no more of them


def bind(kind: str, functions: Mapping[str, Any]) -> Bound:
    """Prepare functions for the kernels."""
    return Bound(kind, functions)


# --- the user's functions ---------------------------------------------------------------------------------------------


def has(bound: Any, name: str) -> bool:
    """Whether the space or reference has an optional function; a constant in compiled code."""
    return name in bound.functions


CONTRACT: dict[Any, tuple[str, Any]] = {}  # of each function below: its name in the contract, its value if absent


def _generic(name: str, absent: Any = None) -> Any:
    """Make the plain version of one function of the contract."""

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
free = _generic("free")
reference_costs = _generic("costs")
names_action = _generic("named", True)


def reference_action(bound: Any, x: Any, y: Any, s: Any, rng: Any) -> int:
    """The action of a reference, whether or not it wants a random stream."""
    function = bound.functions["action"]
    return function(x, y, s, rng) if function.__code__.co_argcount == 4 else function(x, y, s)


# --- one name, several functions --------------------------------------------------------------------------------------

KINDS: dict[Any, tuple[str, dict[type, Any]]] = {}  # of each function below: the field that decides, and the functions


def by_kind(name: str, field: str, functions: dict[type, Any]) -> Any:
    """A function that is one of several, by the class of a field of its first argument."""

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
    """Take the next number of a counter shared by threads; compiled, as one atomic operation."""
    counter[0] += 1
    return int(counter[0]) - 1
