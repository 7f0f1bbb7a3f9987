"""`lols.Task`: a search space as a class, with the functions of the contract and, if it has one, a reference."""

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

NEEDED = ("actions", "step", "features", "loss", "output")
# The functions that a task may have, and their arguments.
ARGUMENTS = SearchSpace.NEEDED | SearchSpace.OPTIONAL
ARGUMENTS |= {"reference": "x, y, s", "reference_free": "x, y, s, out", "reference_costs": "x, y, s, out"}
ARGUMENTS |= {"sizes": "settings"}
REFERENCE_FUNCTIONS = {"action": "reference", "free": "reference_free", "costs": "reference_costs"}
ATTRIBUTES = ("sizes", "columns", "settings", "nonnegative", "needs_truth")
DERIVED = ("space", "teacher")
T = TypeVar("T")


def _start(x: Any, s: Any) -> None:
    pass


def _features(x: Any, s: Any, out: Any) -> None:
    pass


class _Lazy(Generic[T]):
    """An attribute that is computed on first access: for the class, or for an instance with its settings."""

    def __init__(self, compute: Callable[[type[Task], Mapping[str, Any]], T]):
        self.compute, self.name = compute, ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Task | None, owner: type[Task]) -> T:
        cache: dict[str, T] = vars(owner)["_cache"] if instance is None else instance._cache
        if self.name not in cache:
            cache[self.name] = self.compute(owner, owner._defaults() if instance is None else instance._values)
        return cache[self.name]


def _space(cls: type[Task], settings: Mapping[str, Any]) -> SearchSpace:
    functions: dict[str, Any] = {
        name: getattr(cls, name, None) for name in (*SearchSpace.NEEDED, *SearchSpace.OPTIONAL)
    }
    functions["start"] = functions["start"] or _start
    if functions["action_features"] is not None:
        functions["features"] = functions["features"] or _features
    functions["encode"] = _encode(cls)
    missing = [f"{name}({ARGUMENTS[name]})" for name in NEEDED if functions[name] is None]
    missing += ["columns or encode(obj)"] if functions["encode"] is None else []
    missing += [] if hasattr(cls, "sizes") else ["sizes"]
    if missing:
        raise ConfigurationError(f"{cls.__name__} is not complete: it needs {', '.join(missing)}")
    sizes = cls.sizes if isinstance(cls.sizes, Sizes) else cls.sizes(SimpleNamespace(**settings))
    if not isinstance(sizes, Sizes):
        raise ConfigurationError(f"{cls.__name__}: `sizes` gave {type(sizes).__name__}: give lols.Sizes(...)")
    rest: Any = {"settings": settings, "nonnegative": cls.nonnegative, "teacher": _teacher(cls)}
    space = SearchSpace(**functions, sizes=sizes, name=_qualified_name(cls), **rest)
    object.__setattr__(space, "_made_by", (_space, (cls, dict(settings))))
    return space


def _own_teacher(cls: type[Task], _settings: Mapping[str, Any]) -> Reference:
    reference = _teacher(cls)
    if reference is None:
        raise ConfigurationError(f"{cls.__name__} has no teacher: give it reference(x, y, s)")
    return reference.on(cls.space.parts)


def _teacher(cls: type[Task]) -> Reference | None:
    functions = {name: getattr(cls, function, None) for name, function in REFERENCE_FUNCTIONS.items()}
    if not any(functions.values()):
        return None
    return Reference(**functions, needs_truth=cls.needs_truth, name=_qualified_name(cls))


def _qualified_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}".replace(".<locals>", "")


def _encode(cls: type[Task]) -> Callable[[Any], Any] | None:
    """The function that encodes an object: `encode` or `columns`, whichever comes first in the order of inheritance."""
    for base in cls.__mro__:
        encode, columns = vars(base).get("encode"), vars(base).get("columns")
        if encode is not None and columns is not None:
            raise ConfigurationError(f"{base.__name__} has both `columns` and `encode`: leave one out")
        if columns is not None:
            return lambda obj: columns.encode(obj)
        if encode is not None:
            return encode.__func__ if isinstance(encode, staticmethod) else encode
    return None


class Task:
    """A search problem as a class: write the functions of the contract in it, without `self`.

    A task can be used wherever a `SearchSpace` can: in `lols.train`, `Examples`, `check_space` and so on. Its functions
    are compiled, so they may use only their arguments and what is defined above the class; docs/contract.md describes
    the arguments. `Task.space` is the search space and `Task.teacher` the reference.

    Needed:

    - `sizes`: `lols.Sizes(...)`, or a function of the settings that returns it;
    - `actions(x, s, legal)`, `step(x, s, a)`, `features(x, s, out)`, `loss(x, y, s)`, `output(x, s)`: the functions of
      a search space;
    - `columns`: `lols.Columns(x=..., y=...)` for examples that are dictionaries; otherwise `encode(obj)`, which returns
      a `lols.Example`.

    Optional:

    - `start(x, s)` writes the start state into `s`; without it, the start state is all zeros;
    - `features`, if there are `action_features`;
    - `cost(x, y, s, a)`, `key(x, s)`, `items(x, s, out)`, `action_features(x, s, a, out)`, `survey(x, s, legal)`,
      `nonnegative`: as in `SearchSpace`;
    - `reference(x, y, s)`, `reference_free(x, y, s, out)`, `reference_costs(x, y, s, out)`, `needs_truth`: the task's
      teacher, what `Reference` calls `action`, `free` and `costs`. Training uses it unless another one is given;
    - `settings`: numbers and arrays that all examples share, by name, with their default values: `Spelling(width=3)`
      sets another value, which the functions see as `x.width`.

    Parameters
    ----------
    **settings
        Other values of the task's settings, by name.

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
    ...         return lols.hamming(s[1:], y.ends)
    ...     def output(x, s):
    ...         return s[1:].tolist()
    ...     def reference(x, y, s):
    ...         return y.ends[s[0]]
    >>> model = lols.train(Spelling, [{"letters": [3, 7, 7], "ends": [0, 1, 1]}] * 9, passes=1, compiled=False)
    >>> model.predict([{"letters": [7, 3]}])
    [[1, 0]]

    """

    space = _Lazy(_space)
    teacher = _Lazy(_own_teacher)
    sizes: ClassVar[Any]
    columns: ClassVar[Columns | None] = None
    settings: ClassVar[Mapping[str, Any]] = {}
    nonnegative: ClassVar[bool] = False
    needs_truth: ClassVar[bool | None] = None
    _cache: dict[str, Any] = {}  # noqa: RUF012  (each class and each instance has its own)

    def __init__(self, **settings: Any):
        defaults = self._defaults()
        for name, value in settings.items():
            if defaults and name not in defaults:
                meant = _meant(name, defaults) or "add it to `settings`"
                raise ConfigurationError(f"{type(self).__name__} has no setting `{name}`: {meant}")
            _check_setting(type(self).__name__, name, value)
        self._values = defaults | settings
        self._cache = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._cache = {}
        for name, value in list(vars(cls).items()):
            if name in DERIVED:
                raise ConfigurationError(f"{cls.__name__}: `{name}` follows from the functions: use another name")
            if value is None and name in ARGUMENTS and name not in NEEDED:
                continue  # does not inherit it
            if name in ARGUMENTS and not (name == "sizes" and isinstance(value, Sizes)):
                setattr(cls, name, staticmethod(_function(cls, name, value)))
            elif isinstance(value, Sizes | Columns) and name not in ("sizes", "columns"):
                wanted = "sizes" if isinstance(value, Sizes) else "columns"
                raise ConfigurationError(f"{cls.__name__}: unknown `{name}`: did you mean `{wanted}`?")
            elif isinstance(value, FunctionType) and not name.startswith("_"):
                meant = _meant(name, ARGUMENTS) or "put helpers above the class"
                raise ConfigurationError(f"{cls.__name__}: unknown function `{name}`: {meant}")
            elif not name.startswith("_") and name not in ATTRIBUTES:
                close = difflib.get_close_matches(name, ATTRIBUTES, 1, 0.85)
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
        """The settings of the class and of the classes that it inherits from."""
        values: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            values |= vars(base).get("settings", {})
        return values


def _is_task(value: Any) -> bool:
    return isinstance(value, Task) or (isinstance(value, type) and issubclass(value, Task))


def as_space(value: Any) -> SearchSpace:
    """The search space itself, or that of a `Task`, class or instance.

    >>> as_space("spelling")
    Traceback (most recent call last):
    lols.errors.ConfigurationError: str is not a search space: give a lols.SearchSpace, or a class made from lols.Task
    """
    if isinstance(value, SearchSpace):
        return value
    if _is_task(value):
        space: SearchSpace = value.space
        return space
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    raise ConfigurationError(f"{kind} is not a search space: give a lols.SearchSpace, or a class made from lols.Task")


def as_teacher(value: Any, space: SearchSpace) -> Reference:
    """A `Reference` itself, that of a `Task`, or, for None, the one of the space."""
    if value is None:
        if space.teacher is None:
            raise ConfigurationError(
                f"there is no teacher: give reference=lols.Reference(...), or {space.name or 'the task'} "
                "a function reference(x, y, s)"
            )
        return space.teacher.on(space.parts)
    if _is_task(value):
        value = value.teacher
    if not isinstance(value, Reference):
        hint = "(action=...)" if isinstance(value, FunctionType) else ""
        raise ConfigurationError(f"the reference is {type(value).__name__}: give a lols.Reference{hint}")
    return value.on(space.parts)


def _function(cls: type[Task], name: str, value: Any) -> Any:
    """A function of the contract, checked."""
    function = value.__func__ if isinstance(value, staticmethod) else value
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType):
        more = "a function with one argument, or lols.Sizes(...)" if name == "sizes" else "a plain function"
        raise ConfigurationError(f"{cls.__name__}.{name} must be {more}, not {type(value).__name__}")
    parameters, wanted = list(inspect.signature(plain).parameters), ARGUMENTS[name].split(", ")
    takes = f"{cls.__name__}: `{name}` takes ({', '.join(parameters)})"
    if parameters[:1] in (["self"], ["cls"]):
        raise ConfigurationError(f"{takes}: leave out {parameters[0]}")
    if len(parameters) != len(wanted) and not (name == "reference" and len(parameters) == 4):
        raise ConfigurationError(f"{takes}; it is given ({ARGUMENTS[name]})")
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


def _meant(name: str, names: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f"did you mean `{close[0]}`?" if close else ""
