"""The contract: a search space and a reference, as a handful of ordinary Python functions.

An example is an input `x`, always there, and a truth `y`, there in training only: records of numbers and arrays. A
state is an `int32` vector `s`. Only the functions that may know the truth receive `y`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lols.errors import ConfigurationError

__all__ = ["Example", "Reference", "SearchSpace", "Sizes"]

Function = Callable[..., Any]


class Example(NamedTuple):
    """What `encode` gives: the input, the truth if it is known, and the features of each input item if there are items.

    `x` and `y` map column names to numbers or one-dimensional arrays; `items` holds one list of feature ids per item,
    or one pair of lists (ids, values) per item.
    """

    x: Mapping[str, Any]
    y: Mapping[str, Any] | None = None
    items: list[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large things get. `state` and `steps` may be functions of `x`, so that long examples do not cost short ones.

    Parameters
    ----------
    state
        Length of the state vector.
    actions
        Most actions: an action is a number below it.
    features
        Most features that one call of `features` emits.
    steps
        Most steps from the start state to an end state; a search that goes on is reported as an endless loop.
    items, roles
        Most items that one call of `items` looks at, and the number of roles.
    action_features
        Most features that one call of `action_features` emits.
    live
        The leading cells of the state that any function but `output` and `loss` reads; all of them unless given.
        With `cost`, a deviation then copies no more than these.

    """

    state: int | Callable[[Any], int]
    actions: int
    features: int
    steps: int | Callable[[Any], int]
    items: int = 0
    roles: int = 1
    action_features: int = 0
    live: int | None = None

    def __post_init__(self) -> None:
        for name in ("state", "actions", "steps"):
            value = getattr(self, name)
            if callable(value) and name != "actions":
                continue
            if not _is_whole(value):
                raise ConfigurationError(f"Sizes.{name} is {value!r}; it must be a whole number")
            if value < 1:
                raise ConfigurationError(f"Sizes.{name} is {value}; it must be at least 1")
        for name in ("features", "items", "roles", "action_features"):
            value = getattr(self, name)
            if not _is_whole(value):
                raise ConfigurationError(f"Sizes.{name} is {value!r}; it must be a whole number")
            if value < 0:
                raise ConfigurationError(f"Sizes.{name} is {value}; it cannot be negative")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchSpace:
    """A search space: what the states are, how actions lead from one to the next, and what an end state costs.

    Needed functions
    ----------------
    start(x, s)
        Writes the start state into `s`, which is all zeros.
    actions(x, s, legal)
        Sets `legal[a] = True` for the legal actions; none left means an end state.
    step(x, s, a)
        The transition, in place.
    features(x, s, out)
        The features of a state: `emit(out, feature(template, ...))`.
    loss(x, y, s)
        The loss of an end state, any non-negative number.
    output(x, s)
        An end state as the user's own result. Always plain Python.
    encode(obj)
        One `Example` from a user's object. Always plain Python.

    Optional functions
    ------------------
    action_features(x, s, a, out)
        The features of one action, for action sets that change from state to state.
    cost(x, y, s, a)
        What this action adds to the loss, where the loss adds up along the way.
    key(x, s)
        An integer; states with equal keys have equal futures, and roll-outs that meet are merged.
    items(x, s, out)
        Which input items the state looks at, in which role: `look(out, item, role)`.

    Further
    -------
    settings
        Numbers and arrays that all examples share: the functions see them in `x`.
    nonnegative
        That `cost` is never negative. What a deviation has cost already then bounds what it will cost in the end, and
        many need no roll-out.
    teacher
        A `Reference` of the space's own, for training where none is given. A `lols.Task` has it here.

    Examples
    --------
    Tagging with the previous tag as the only history:

    >>> import lols
    >>> def start(x, s): pass
    >>> def actions(x, s, legal):
    ...     if s[0] < len(x.words):
    ...         legal[:] = True
    >>> def step(x, s, a):
    ...     s[2 + s[0]] = a
    ...     s[1] = a + 1
    ...     s[0] += 1
    >>> def features(x, s, out):
    ...     lols.emit(out, lols.feature(0, x.words[s[0]]))
    ...     lols.emit(out, lols.feature(1, s[1]))
    >>> def loss(x, y, s):
    ...     wrong = 0.0
    ...     for i in range(len(x.words)):
    ...         wrong += s[2 + i] != y.tags[i]
    ...     return wrong
    >>> def output(x, s): return s[2 : 2 + len(x.words)].tolist()
    >>> def encode(obj):
    ...     return lols.Example({"words": obj["words"]}, {"tags": obj["tags"]} if "tags" in obj else None)
    >>> space = lols.SearchSpace(
    ...     start=start, actions=actions, step=step, features=features, loss=loss, output=output, encode=encode,
    ...     sizes=lols.Sizes(state=lambda x: 2 + len(x.words), actions=3, features=2, steps=lambda x: len(x.words)))
    >>> teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    >>> data = [{"words": [i % 5, (i + 1) % 5], "tags": [i % 5 % 3, (i + 1) % 5 % 3]} for i in range(20)]
    >>> model = lols.train(space, data, teacher, compiled=False, seed=1)
    >>> model.predict([{"words": [3, 4]}])
    [[0, 1]]

    """

    start: Function
    actions: Function
    step: Function
    features: Function
    loss: Function
    output: Function
    encode: Function
    sizes: Sizes
    action_features: Function | None = None
    cost: Function | None = None
    key: Function | None = None
    items: Function | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    nonnegative: bool = False
    name: str = ""
    teacher: Reference | None = None

    NEEDED: ClassVar = {"start": 2, "actions": 3, "step": 3, "features": 3, "loss": 3, "output": 2, "encode": 1}
    OPTIONAL: ClassVar = {"action_features": 4, "cost": 4, "key": 2, "items": 3}

    def __post_init__(self) -> None:
        for name, count in (self.NEEDED | self.OPTIONAL).items():
            function = getattr(self, name)
            if function is None and name in self.OPTIONAL:
                continue
            _check_arity("SearchSpace", name, function, (count,))
        if self.items is not None and self.sizes.items < 1:
            raise ConfigurationError("the space has `items`, so Sizes.items must say how many a state looks at")
        if self.action_features is not None and self.sizes.action_features < 1:
            raise ConfigurationError("the space has `action_features`, so Sizes.action_features must say how many")
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.step))

    def functions(self) -> dict[str, Function]:
        """The functions that run compiled, by name; those that the space does not have are left out."""
        names = [n for n in (*self.NEEDED, *self.OPTIONAL) if n not in ("output", "encode")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """A teacher: at any state, an action, a set of equally good actions, or the cost of every action.

    Give at least one of the three functions. `action(x, y, s)` never draws at random; `action(x, y, s, rng)` may, with
    `lols.uniform(rng)`, and then roll-outs are not merged.

    Parameters
    ----------
    action
        The action the teacher takes.
    free
        `free(x, y, s, out)` sets `out[a] = True` for all equally good actions. The roll-in takes the one of them that
        the learner likes best, roll-outs the first.
    costs
        `costs(x, y, s, out)` writes, for every legal action, the loss of taking it and then following this reference,
        up to a constant shared by the actions of the state. Saves the reference's roll-outs.
    needs_truth
        False for a rule-based system, which must not look at `y`: the only kind of reference that a bandit may have.

    Examples
    --------
    >>> import lols
    >>> teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    >>> teacher.random
    False

    """

    action: Function | None = None
    free: Function | None = None
    costs: Function | None = None
    needs_truth: bool = True
    name: str = ""
    together: Together | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = [f for f in (self.action, self.free, self.costs) if f is not None]
        if not given:
            raise ConfigurationError("a Reference needs at least one of action, free and costs")
        if self.action is not None:
            _check_arity("Reference", "action", self.action, (3, 4))
        for name in ("free", "costs"):
            if getattr(self, name) is not None:
                _check_arity("Reference", name, getattr(self, name), (4,))
        if not self.name:
            object.__setattr__(self, "name", _name_of(given[0]))

    @property
    def random(self) -> bool:
        """Whether the teacher may draw at random."""
        return self.action is not None and len(inspect.signature(self.action).parameters) == 4

    def functions(self) -> dict[str, Function]:
        """The functions that run compiled, by name."""
        return {n: getattr(self, n) for n in ("action", "free", "costs") if getattr(self, n) is not None}


class Together(NamedTuple):
    """Functions that are several teachers at once, so that one kernel serves them all: `y.teacher` says which it is.

    Besides those of a reference there may be `named(x, y)`: whether this teacher names an action, or has costs only.
    """

    functions: Mapping[str, Function]
    number: int


def taught_together(references: Mapping[str, Reference], **functions: Function) -> dict[str, Reference]:
    """The same teachers, each of which is compiled as one of all: `y.teacher` is its number in this order."""
    return {
        name: replace(reference, together=Together(functions, number))
        for number, (name, reference) in enumerate(references.items())
    }


def _name_of(function: Function) -> str:
    """Import path of a function's home: identifies a space in messages and model files."""
    qualified = getattr(function, "__qualname__", "space").rpartition(".")[0].replace(".<locals>", "")
    module = getattr(function, "__module__", "") or ""
    return f"{module}:{qualified}" if qualified else module


def _check_arity(owner: str, name: str, function: Function, counts: tuple[int, ...]) -> None:
    if not isinstance(getattr(function, "py_func", function), FunctionType):
        raise ConfigurationError(f"{owner}.{name} must be a plain function, not {type(function).__name__}")
    found = len(inspect.signature(function).parameters)
    if found not in counts:
        wanted = " or ".join(str(c) for c in counts)
        raise ConfigurationError(f"{owner}.{name} takes {found} arguments; the contract gives it {wanted}")
