"""`lols.Task`: a search space as a class: the contract's functions, and a teacher of its own if it has one."""

from __future__ import annotations

import builtins
import difflib
import dis
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from lols.contract.columns import Columns
from lols.contract.space import Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError

__all__ = ["Task", "as_space", "as_teacher"]

# The contract: each function with what it is given.
NEEDED = {
    "actions": "x, s, legal",
    "step": "x, s, a",
    "features": "x, s, out",
    "loss": "x, y, s",
    "output": "x, s",
}
OPTIONAL = {
    "start": "x, s",
    "encode": "obj",
    "cost": "x, y, s, a",
    "key": "x, s",
    "items": "x, s, out",
    "action_features": "x, s, a, out",
    "reference": "x, y, s",
    "reference_free": "x, y, s, out",
    "reference_costs": "x, y, s, out",
    "sizes": "settings",
}
GIVEN = NEEDED | OPTIONAL
TEACHING = {"action": "reference", "free": "reference_free", "costs": "reference_costs"}
FACTS = ("sizes", "columns", "settings", "nonnegative", "needs_truth")
FIXED = ("space", "teacher")
T = TypeVar("T")


def _start(x: Any, s: Any) -> None:
    pass


def _features(x: Any, s: Any, out: Any) -> None:
    pass


class _Made(Generic[T]):
    """An attribute that is made when it is first asked for: of the class, or of an instance with its settings."""

    def __init__(self, make: Callable[[type[Task], Mapping[str, Any]], T]):
        self.make, self.name = make, ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Task | None, owner: type[Task]) -> T:
        kept: dict[str, T] = vars(owner)["_kept"] if instance is None else instance._kept
        if self.name not in kept:
            kept[self.name] = self.make(owner, owner._defaults() if instance is None else instance.given)
        return kept[self.name]


def _space(cls: type[Task], settings: Mapping[str, Any]) -> SearchSpace:
    functions: dict[str, Any] = {
        name: getattr(cls, name, None) for name in (*SearchSpace.NEEDED, *SearchSpace.OPTIONAL)
    }
    functions["start"] = functions["start"] or _start
    if functions["action_features"] is not None:
        functions["features"] = functions["features"] or _features
    functions["encode"] = _encode(cls)
    missing = [f"{name}({GIVEN[name]})" for name in NEEDED if functions[name] is None]
    missing += ["columns or encode(obj)"] if functions["encode"] is None else []
    missing += [] if hasattr(cls, "sizes") else ["sizes"]
    if missing:
        raise ConfigurationError(f"{cls.__name__} is not complete: it needs {', '.join(missing)}")
    sizes = cls.sizes if isinstance(cls.sizes, Sizes) else cls.sizes(SimpleNamespace(**settings))
    if not isinstance(sizes, Sizes):
        raise ConfigurationError(f"{cls.__name__}: `sizes` gave {type(sizes).__name__}: give lols.Sizes(...)")
    rest: Any = {"settings": settings, "nonnegative": cls.nonnegative, "teacher": _teacher(cls)}
    return SearchSpace(**functions, sizes=sizes, name=_home(cls), **rest)


def _own_teacher(cls: type[Task], _settings: Mapping[str, Any]) -> Reference:
    made = _teacher(cls)
    if made is None:
        raise ConfigurationError(f"{cls.__name__} has no teacher: give it reference(x, y, s)")
    return made


def _teacher(cls: type[Task]) -> Reference | None:
    found = {name: getattr(cls, function, None) for name, function in TEACHING.items()}
    if not any(found.values()):
        return None
    return Reference(**found, needs_truth=cls.needs_truth, name=_home(cls))


def _home(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}".replace(".<locals>", "")


def _encode(cls: type[Task]) -> Callable[[Any], Any] | None:
    """What turns an object into an example: `encode` or `columns`, whichever comes first in the line of classes."""
    for one in cls.__mro__:
        own, columns = vars(one).get("encode"), vars(one).get("columns")
        if own is not None and columns is not None:
            raise ConfigurationError(f"{one.__name__} has both `columns` and `encode`: leave one out")
        if columns is not None:
            return _by_columns(columns)
        if own is not None:
            return own.__func__ if isinstance(own, staticmethod) else own
    return None


def _by_columns(columns: Columns) -> Callable[[Any], Any]:
    return lambda obj: columns.encode(obj)


class Task:
    """A search problem as a class: write the functions of the contract in it, without `self`.

    A task is used wherever a `SearchSpace` is: in `lols.train`, `Examples`, `check_space` and the rest. Its functions
    are compiled, so they see nothing but their arguments and what is defined above the class; docs/contract.md says
    what each is given. `Task.space` is the search space and `Task.teacher` the reference.

    Needed:

    - `sizes`: `lols.Sizes(...)`, or a function of the settings that gives it;
    - `actions(x, s, legal)`, `step(x, s, a)`, `features(x, s, out)`, `loss(x, y, s)`, `output(x, s)`: the functions of
      a search space;
    - `columns`: `lols.Columns(x=..., y=...)` for examples that are dictionaries; or else `encode(obj)`, which gives a
      `lols.Example`.

    Optional:

    - `start(x, s)` writes the start state into `s`, which is all zeros; nothing to do unless given;
    - `features`, where there are `action_features`;
    - `cost(x, y, s, a)`, `key(x, s)`, `items(x, s, out)`, `action_features(x, s, a, out)`, `nonnegative`: as in
      `SearchSpace`;
    - `reference(x, y, s)`, `reference_free(x, y, s, out)`, `reference_costs(x, y, s, out)`, `needs_truth`: the task's
      own teacher, what `Reference` calls `action`, `free` and `costs`. Training uses it unless another one is given;
    - `settings`: numbers and arrays that all examples share, by name, with their default values: `Spelling(width=3)`
      has another value, and the functions see it as `x.width`.

    Examples
    --------
    Cut a text without spaces into words: after each letter, 1 if a word ends there.

    >>> import lols
    >>> class Spelling(lols.Task):
    ...     sizes = lols.Sizes(
    ...         state=lambda x: 1 + len(x.letters), actions=2, features=2, steps=lambda x: len(x.letters))
    ...     columns = lols.Columns(x="letters", y="ends")
    ...     def actions(x, s, legal):
    ...         legal[:] = s[0] < len(x.letters)
    ...     def step(x, s, a):
    ...         s[0] += 1
    ...         s[s[0]] = a
    ...     def features(x, s, out):
    ...         lols.emit(out, lols.feature(0, x.letters[s[0]]))
    ...         lols.emit(out, lols.feature(1, s[s[0]]))
    ...     def loss(x, y, s):
    ...         wrong = 0.0
    ...         for i in range(len(x.letters)):
    ...             wrong += s[1 + i] != y.ends[i]
    ...         return wrong
    ...     def output(x, s):
    ...         return s[1:].tolist()
    ...     def reference(x, y, s):
    ...         return y.ends[s[0]]
    >>> model = lols.train(Spelling, [{"letters": [3, 7, 7], "ends": [0, 1, 1]}] * 9, passes=1, compiled=False)
    >>> model.predict([{"letters": [7, 3]}])
    [[1, 0]]

    """

    space = _Made(_space)
    teacher = _Made(_own_teacher)
    sizes: ClassVar[Any]
    columns: ClassVar[Columns | None] = None
    settings: ClassVar[Mapping[str, Any]] = {}
    nonnegative: ClassVar[bool] = False
    needs_truth: ClassVar[bool] = True
    _kept: dict[str, Any] = {}  # noqa: RUF012  (each class and each instance has its own)

    def __init__(self, **settings: Any):
        self.given = self._defaults()
        for name, value in settings.items():
            if self.given and name not in self.given:
                meant = _meant(name, self.given) or "add it to `settings`"
                raise ConfigurationError(f"{type(self).__name__} has no setting `{name}`: {meant}")
            _check_setting(type(self).__name__, name, value)
        self.given |= settings
        self._kept = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._kept = {}
        for name, value in list(vars(cls).items()):
            if name in FIXED:
                raise ConfigurationError(f"{cls.__name__}: `{name}` is made of the functions: give it another name")
            if name in OPTIONAL and value is None:
                continue  # leaves out what it would inherit
            if name in GIVEN and not (name == "sizes" and isinstance(value, Sizes)):
                setattr(cls, name, staticmethod(_function(cls, name, value)))
            elif isinstance(value, Sizes | Columns) and name not in ("sizes", "columns"):
                wanted = "sizes" if isinstance(value, Sizes) else "columns"
                raise ConfigurationError(f"{cls.__name__}: unknown `{name}`: did you mean `{wanted}`?")
            elif isinstance(value, FunctionType) and not name.startswith("_"):
                meant = _meant(name, GIVEN) or "put helpers above the class"
                raise ConfigurationError(f"{cls.__name__}: unknown function `{name}`: {meant}")
            elif not name.startswith("_") and name not in FACTS:
                close = difflib.get_close_matches(name, FACTS, 1, 0.85)
                if close:
                    raise ConfigurationError(f"{cls.__name__}: unknown `{name}`: did you mean `{close[0]}`?")
        if cls.columns is not None and not isinstance(cls.columns, Columns):
            raise ConfigurationError(f"{cls.__name__}.columns is {type(cls.columns).__name__}: give lols.Columns(...)")
        if not isinstance(cls.settings, Mapping):
            raise ConfigurationError(f"{cls.__name__}.settings is {type(cls.settings).__name__}: give a dictionary")
        for name, value in cls.settings.items():
            _check_setting(cls.__name__, name, value)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The settings of the class and of those that it inherits from."""
        made: dict[str, Any] = {}
        for one in reversed(cls.__mro__):
            made |= vars(one).get("settings", {})
        return made


def as_space(given: Any) -> SearchSpace:
    """The search space that a user gave: itself, or that of a `Task`, class or instance.

    >>> as_space("spelling")
    Traceback (most recent call last):
    lols.errors.ConfigurationError: str is no search space: give a lols.SearchSpace, or a class made from lols.Task
    """
    if isinstance(given, SearchSpace):
        return given
    if isinstance(given, Task) or (isinstance(given, type) and issubclass(given, Task)):
        space: SearchSpace = given.space
        return space
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    raise ConfigurationError(f"{kind} is no search space: give a lols.SearchSpace, or a class made from lols.Task")


def as_teacher(given: Any, space: SearchSpace) -> Reference:
    """The teacher that a user gave: a `Reference`, that of a `Task`, or, if there is none, the space's own."""
    if given is None:
        if space.teacher is None:
            raise ConfigurationError(
                f"there is no teacher: give reference=lols.Reference(...), or {space.name or 'the task'} "
                "a function reference(x, y, s)"
            )
        return space.teacher
    if isinstance(given, Task) or (isinstance(given, type) and issubclass(given, Task)):
        given = given.teacher
    if not isinstance(given, Reference):
        hint = "(action=...)" if isinstance(given, FunctionType) else ""
        raise ConfigurationError(f"the reference is {type(given).__name__}: give a lols.Reference{hint}")
    return given


def _function(cls: type[Task], name: str, value: Any) -> Any:
    """A function of the contract, or what is wrong with it."""
    function = value.__func__ if isinstance(value, staticmethod) else value
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType):
        more = "a function with one argument, or lols.Sizes(...)" if name == "sizes" else "a plain function"
        raise ConfigurationError(f"{cls.__name__}.{name} must be {more}, not {type(value).__name__}")
    found, wanted = list(inspect.signature(plain).parameters), GIVEN[name].split(", ")
    if found[:1] == ["self"] or found[:1] == ["cls"]:
        raise ConfigurationError(f"{cls.__name__}: `{name}` takes ({', '.join(found)}): leave out {found[0]}")
    if len(found) != len(wanted) and not (name == "reference" and len(found) == 4):
        raise ConfigurationError(f"{cls.__name__}: `{name}` takes ({', '.join(found)}); it is given ({GIVEN[name]})")
    for read in _globals_of(plain):
        if hasattr(cls, read) and read not in plain.__globals__ and not hasattr(builtins, read):
            raise ConfigurationError(
                f"{cls.__name__}: `{name}` uses `{read}`, which functions do not see inside the class: define it above "
                "the class, or as one of `settings`"
            )
    return function


def _globals_of(function: FunctionType) -> list[str]:
    return [i.argval for i in dis.get_instructions(function) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]


def _check_setting(owner: str, name: str, value: Any) -> None:
    if not name.isidentifier() or np.asarray(value).dtype.kind not in "iufb" or np.ndim(value) > 1:
        raise ConfigurationError(f"{owner}: setting `{name}` is {value!r}: give a number or one array of numbers")


def _meant(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else ""
