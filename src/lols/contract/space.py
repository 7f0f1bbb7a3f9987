"""The contract: a search space and a reference, as a handful of ordinary Python functions.

An example has an input `x` and, in training, a truth `y`: records of numbers and arrays. A state is an `int32` vector
`s`. Only the functions that may use the truth receive `y`.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lols.contract.state import State, own_function
from lols.errors import ConfigurationError

LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")  # of arguments, also for nested functions; not of attributes


def reads(function: Any, position: int) -> bool:
    """Whether a function mentions an argument, by position; one that is only passed on counts, too.

    >>> reads(lambda x, y, s: s[0] + x.y[0], 1), reads(lambda x, y, s: y.tags[s[0]], 1)
    (False, True)
    """
    function = own_function(function)
    name = function.__code__.co_varnames[position]
    loads = (i.argval for i in dis.get_instructions(function) if any(kind in i.opname for kind in LOADS))
    return any(name in value if isinstance(value, tuple) else name == value for value in loads)


Function = Callable[..., Any]


class Example(NamedTuple):
    """What `encode` returns: the input, the truth if it is known, and the features of the input items if there are any.

    `x` and `y` map column names to numbers or one-dimensional arrays; `items` holds one list of feature ids per item,
    or one pair of lists (ids, values) per item.

    Attributes
    ----------
    x
        The input, by column.
    y
        The truth, by column; None if it is unknown.
    items
        The features of each item of the input.

    """

    x: Mapping[str, Any]
    y: Mapping[str, Any] | None = None
    items: list[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Upper bounds for the memory. `state`, `steps` and `actions` may differ between examples: functions of `x`, or the
    name of a column of `x` that is the size.

    Parameters
    ----------
    state
        Length of the state vector; or a `lols.State`, which names its parts and may hold real numbers.
    actions
        The number of actions: an action is a number below it. It may depend on `x` if all features are features
        of actions (`action_features`): their weights do not depend on the number, so that a policy that was trained on
        small instances decides larger ones.
    features
        The most features that one call of `features` emits.
    steps
        The most steps from the start state to an end state; a longer search is reported as an endless loop.
    items
        The most items that one call of `items` looks at.
    roles
        The number of roles in which it looks at them.
    action_features
        The most features that one call of `action_features` emits.
    live
        How many leading cells of the state are read by functions other than `output` and `loss`; by default all. In a
        space with `cost`, a deviation copies only these.

    """

    state: int | Callable[[Any], int] | str | State
    actions: int | Callable[[Any], int] | str
    features: int
    steps: int | Callable[[Any], int] | str
    items: int = 0
    roles: int = 1
    action_features: int = 0
    live: int | None = None

    def __post_init__(self) -> None:
        for name in ("state", "actions", "steps", "features", "items", "roles", "action_features"):
            value = getattr(self, name)
            if name in ("state", "steps", "actions"):
                if isinstance(value, str) and value.isidentifier():
                    object.__setattr__(self, name, attrgetter(value))
                    continue
                if callable(value):
                    continue
            if name == "state" and isinstance(value, State):
                if self.live is not None:
                    raise ConfigurationError(
                        "Sizes.live counts cells of a state vector: leave it out with a lols.State"
                    )
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                several = ", a column of x or a function of x" if name in ("state", "steps", "actions") else ""
                raise ConfigurationError(f"Sizes.{name} is {value!r}; it must be a whole number{several}")
            if value < 1 and name in ("state", "actions", "steps"):
                raise ConfigurationError(f"Sizes.{name} is {value}; it must be at least 1")
            if value < 0:
                raise ConfigurationError(f"Sizes.{name} is {value}; it cannot be negative")


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchSpace:
    """A search space: what the states are, how actions lead from one to the next, and what an end state costs.

    Functions are needed up to `encode`. `x` is the input of an example, `y` its truth, `s` a state, `a` an action.

    Parameters
    ----------
    start
        `start(x, s)` writes the start state into `s`, which is all zeros.
    actions
        `actions(x, s, legal)` sets `legal[a] = True` for the legal actions; none left means an end state.
    step
        `step(x, s, a)` is the transition, in place.
    features
        `features(x, s, out)` emits the features of a state: `emit(out, feature(template, ...))`.
    loss
        `loss(x, y, s)` is the loss of an end state, any non-negative number.
    output
        `output(x, s)` is an end state as the user's own result. Always plain Python.
    encode
        `encode(obj)` is the `Example` of a user's object. Always plain Python.
    sizes
        Upper bounds for the memory of all of them.
    action_features
        `action_features(x, s, a, out)` emits the features of one action, for actions that differ from state to state.
    cost
        `cost(x, y, s, a)` is what this action adds to the loss, if the loss is a sum over the steps.
    key
        `key(x, s)` is an integer; states with equal keys have equal futures, and roll-outs that meet are merged.
    items
        `items(x, s, out)` says which input items the state looks at, in which role: `look(out, item, role)`.
    survey
        `survey(x, s, legal)` is called once before the features of a state and its actions are: it writes what they
        share, such as a comparison of the legal actions, into parts of the state that nothing but features reads.
    settings
        Numbers and arrays that all examples share; the functions find them in `x`.
    nonnegative
        Whether `cost` is never negative. Then what a deviation has cost so far is a lower bound of what it costs in
        the end, and many deviations need no roll-out.
    name
        What messages call the space.
    teacher
        The `Reference` that training uses if none is given; a `lols.Task` puts its own here.
    parts
        The `State` of the sizes, if they have one.

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
    ...     return lols.hamming(s[2:], y.tags)
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
    survey: Function | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    nonnegative: bool = False
    name: str = ""
    teacher: Reference | None = None
    parts: State | None = None

    # The functions and their arguments.
    NEEDED: ClassVar = {
        "start": "x, s",
        "actions": "x, s, legal",
        "step": "x, s, a",
        "features": "x, s, out",
        "loss": "x, y, s",
        "output": "x, s",
        "encode": "obj",
    }
    OPTIONAL: ClassVar = {
        "action_features": "x, s, a, out",
        "cost": "x, y, s, a",
        "key": "x, s",
        "items": "x, s, out",
        "survey": "x, s, legal",
    }

    def __post_init__(self) -> None:
        for name, arguments in (self.NEEDED | self.OPTIONAL).items():
            function = getattr(self, name)
            if function is None and name in self.OPTIONAL:
                continue
            _check_arity("SearchSpace", name, function, (len(arguments.split()),))
        if self.items is not None and self.sizes.items < 1:
            raise ConfigurationError("the space has `items`, so Sizes.items must say how many a state looks at")
        if callable(self.sizes.actions) and (self.action_features is None or self.items or self.sizes.features):
            raise ConfigurationError(
                "Sizes.actions is a function, so all features must be features of actions (`action_features`): "
                "those of states (`features`, `items`) have a weight for each action"
            )
        if self.action_features is not None and self.sizes.action_features < 1:
            raise ConfigurationError("the space has `action_features`, so Sizes.action_features must say how many")
        if not self.name:
            object.__setattr__(self, "name", _name_of(self.step))
        if isinstance(self.sizes.state, State):
            self._wrap(self.sizes.state)

    def _wrap(self, state: State) -> None:
        """Let the functions see the parts of a state."""
        own = {name: getattr(self, name) for name in (self.NEEDED | self.OPTIONAL) if name != "encode"}
        for name, function in state.wrapped(own).items():
            object.__setattr__(self, name, function)
        object.__setattr__(self, "parts", state)
        object.__setattr__(self, "teacher", self.teacher.on(state) if self.teacher is not None else None)
        object.__setattr__(self, "sizes", replace(self.sizes, state=state.size))

    @functools.cached_property
    def needs_truth(self) -> bool:
        """Whether `loss` or `cost` reads the truth `y`; otherwise the loss of any result is known."""
        return any(reads(function, 1) for function in (self.loss, self.cost) if function is not None)

    def truth_for(self, reference: Reference | None = None) -> bool | None:
        """What `Examples` is told where losses are computed, and this reference asked: whether the truth is needed.

        Parameters
        ----------
        reference
            A reference, or None.

        """
        return self.needs_truth or (reference is not None and bool(reference.needs_truth)) or None

    @property
    def fixed_actions(self) -> int | None:
        """The number of actions, or None if it differs from example to example."""
        return None if callable(self.sizes.actions) else int(self.sizes.actions)

    @property
    def action_count(self) -> int:
        """The number of actions, where it must be the same for all examples."""
        if callable(self.sizes.actions):
            raise ConfigurationError(
                "Sizes.actions depends on x, and this needs one number of actions for all x: give the most there can "
                "be, and leave the rest illegal"
            )
        return int(self.sizes.actions)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A space that a `Task` made is pickled as the name of that class, and its settings."""
        return vars(self).get("_made_by") or object.__reduce_ex__(self, protocol)

    def functions(self) -> dict[str, Function]:
        """The functions that are compiled, by name; without the optional ones that the space does not have."""
        names = [n for n in (*self.NEEDED, *self.OPTIONAL) if n not in ("output", "encode")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """The reference policy, or teacher: an action, a set of equally good actions, or the cost of each action.

    Give at least one of the three functions. `action(x, y, s)` is deterministic; `action(x, y, s, rng)` may draw random
    numbers with `lols.uniform(rng)`, and then roll-outs are not merged.

    Parameters
    ----------
    action
        The action that the teacher takes.
    free
        `free(x, y, s, out)` sets `out[a] = True` for all equally good actions. The roll-in takes the one with the
        lowest predicted cost, roll-outs take the first.
    costs
        `costs(x, y, s, out)` writes, for every legal action, the loss of taking it and then following this reference,
        up to a constant shared by the actions of the state. Makes roll-outs with the reference unnecessary.
    needs_truth
        Whether the reference looks at `y`: a rule-based system does not, and a bandit needs such a one. None: it
        does if one of its functions mentions `y`.
    name
        What messages call it; by default the name of its first function.
    family
        For the teachers that belong to a task of the library: functions that they share, so that none of them needs a
        compilation of its own.

    Examples
    --------
    >>> import lols
    >>> teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    >>> teacher.random, teacher.needs_truth, lols.Reference(action=lambda x, y, s: 0).needs_truth
    (False, True, False)

    """

    action: Function | None = None
    free: Function | None = None
    costs: Function | None = None
    needs_truth: bool | None = None
    name: str = ""
    family: ReferenceFamily | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        functions = [f for f in (self.action, self.free, self.costs) if f is not None]
        if not functions:
            raise ConfigurationError("a Reference needs at least one of action, free and costs")
        if self.action is not None:
            _check_arity("Reference", "action", self.action, (3, 4))
        for name in ("free", "costs"):
            if getattr(self, name) is not None:
                _check_arity("Reference", name, getattr(self, name), (4,))
        if not self.name:
            object.__setattr__(self, "name", _name_of(functions[0]))
        if self.needs_truth is None:
            object.__setattr__(self, "needs_truth", any(reads(function, 1) for function in functions))

    @property
    def random(self) -> bool:
        """Whether `action` may draw random numbers."""
        return self.action is not None and len(inspect.signature(self.action).parameters) == 4

    def on(self, state: State | None) -> Reference:
        """The same reference for a space with such a state.

        Parameters
        ----------
        state
            The description of the state whose parts the functions name.

        """
        wrapped = self.functions() if state is None else state.wrapped(self.functions())
        if wrapped == self.functions():
            return self
        seeing = replace(self, **wrapped)
        object.__setattr__(seeing, "_plain", self)
        return seeing

    @property
    def plain(self) -> Reference:
        """The reference as it was written, which can be pickled, before it was made to see the parts of a state."""
        plain: Reference = vars(self).get("_plain", self)
        return plain

    def functions(self) -> dict[str, Function]:
        """The functions that are compiled, by name."""
        return {n: getattr(self, n) for n in ("action", "free", "costs") if getattr(self, n) is not None}


class ReferenceFamily(NamedTuple):
    """Functions that implement several references, so that one kernel serves them all: `y.teacher` is the number.

    Besides those of a reference there may be `named(x, y)`: whether this reference has an action, or costs only.
    """

    functions: Mapping[str, Function]
    number: int


def as_family(references: Mapping[str, Reference], **functions: Function) -> dict[str, Reference]:
    """The same references, compiled as these functions, which implement all of them: `y.teacher` is their number."""
    return {
        name: replace(reference, family=ReferenceFamily(functions, number))
        for number, (name, reference) in enumerate(references.items())
    }


def _name_of(function: Function) -> str:
    """Module and class in which a function is defined: identifies a space in messages and model files."""
    qualified = getattr(function, "__qualname__", "space").rpartition(".")[0].replace(".<locals>", "")
    module = getattr(function, "__module__", "") or ""
    return f"{module}:{qualified}" if qualified else module


def _check_arity(owner: str, name: str, function: Function, counts: tuple[int, ...]) -> None:
    if not isinstance(getattr(function, "py_func", function), FunctionType):
        raise ConfigurationError(f"{owner}.{name} must be a plain function, not {type(function).__name__}")
    taken = len(inspect.signature(function).parameters)
    if taken not in counts:
        wanted = " or ".join(str(c) for c in counts)
        raise ConfigurationError(f"{owner}.{name} takes {taken} arguments; the contract gives it {wanted}")
