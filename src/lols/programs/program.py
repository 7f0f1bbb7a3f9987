"""A program: a decoder as a plain Python function that calls `search.predict` or `search.choose` to decide."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from lols.contract.identity import said_by
from lols.contract.space import Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError


class Program:
    """A search problem written as a program.

    Parameters
    ----------
    run
        `run(search, x)` decodes one of your objects: it calls `search.predict` or `search.choose` for each decision and
        `search.loss` for the loss, and returns its result. With the same actions it must do the same again: it must
        not draw random numbers or keep anything from one call to the next.
    actions
        The number of actions, numbered from 0, among which `predict` decides. A program that calls `choose` leaves
        out `actions` and `labels`: it names its candidates, with their features, at each decision.
    labels
        Names of the actions, used instead of numbers by `predict`, `legal` and `reference`.
    steps
        The most decisions of one run; a longer run is an error.
    name
        The name in the model file; by default the module and name of the function.

    Examples
    --------
    >>> import lols
    >>> def run(search, x):
    ...     tags = []
    ...     for i, word in enumerate(x["words"]):
    ...         truth = x["tags"][i] if search.truth else None
    ...         tag = search.predict([("w", word), ("before", *tags[-1:])], reference=truth)
    ...         search.loss(tag != truth)
    ...         tags.append(tag)
    ...     return tags
    >>> data = [{"words": ["the", noun], "tags": ["DET", "NOUN"]} for noun in ("cat", "dog", "tree")] * 3
    >>> tagging = lols.Program(run, labels=["DET", "NOUN"])
    >>> model = lols.train(tagging, data, passes=2, seed=1, compiled=False)
    >>> model.predict([{"words": ["the", "dog"]}]), model.evaluate(data)
    ([['DET', 'NOUN']], 0.0)

    """

    def __init__(
        self,
        run: Callable[..., Any],
        actions: int | None = None,
        *,
        labels: Sequence[Any] | None = None,
        steps: int = 100_000,
        name: str = "",
    ):
        if not callable(run):
            raise ConfigurationError(f"a program is a function run(search, x), not a {type(run).__name__}")
        _check_arguments(run)
        if labels is not None:
            if isinstance(labels, set | frozenset):
                raise ConfigurationError("labels is a set, whose order differs between processes: give a list")
            labels = list(labels)
            if actions is not None and actions != len(labels):
                raise ConfigurationError(f"there are {len(labels)} labels for {actions} actions: give only labels")
            actions = len(labels)
        for what, number in (("actions", 1 if actions is None else actions), ("steps", steps)):
            if not (isinstance(number, int | np.integer) and number >= 1):
                raise ConfigurationError(f"{what} is {number!r}; it must be a whole number, at least 1")
        self.run, self.labels, self.steps = run, labels, int(steps)
        self.actions = None if actions is None else int(actions)
        qualified = getattr(run, "__qualname__", type(run).__name__).replace(".<locals>", "")
        self.name = name or f"{getattr(run, '__module__', '')}:{qualified}"

    @property
    def source(self) -> str:
        """Sixteen hexadecimal digits that change with what the program says, not with what its helpers do."""
        return hashlib.sha256(said_by(self.run).encode()).hexdigest()[:16]

    @property
    def digest(self) -> str:
        """What files of 0.2 have in place of `source`: a digest of the byte code."""
        code = getattr(self.run, "__code__", None) or getattr(type(self.run).__call__, "__code__", None)
        return hashlib.sha256(repr(_described(code)).encode()).hexdigest()[:16]

    @functools.cached_property
    def space(self) -> SearchSpace:
        """A placeholder for training and model files, which read the actions and the name of a space."""
        nothing: dict[str, Any] = dict.fromkeys(("start", "output"), _two)
        nothing |= dict.fromkeys(("actions", "step", "features", "loss"), _three)
        if self.actions is None:
            sizes = Sizes(state=1, actions=_one, features=0, steps=1, action_features=1)
            nothing["action_features"] = _four
        else:
            sizes = Sizes(state=1, actions=self.actions, features=1, steps=1)
        return SearchSpace(**nothing, cost=_four, encode=_one, sizes=sizes, name=self.name)

    @functools.cached_property
    def teacher(self) -> Reference:
        """A placeholder: the program gives its reference at each decision."""
        return Reference(action=_three, name=self.name)


def _check_arguments(run: Callable[..., Any]) -> None:
    """Make sure that a program can be called as run(search, x)."""
    try:
        signature = inspect.signature(run)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError:
        name = getattr(run, "__name__", type(run).__name__)
        raise ConfigurationError(f"the program `{name}` takes {signature}; it is given (search, x)") from None


def _described(code: CodeType | None) -> Any:
    if code is None:
        return None
    constants = [_described(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames


def _one(a):
    pass


def _two(a, b):
    pass


def _three(a, b, c):
    pass


def _four(a, b, c, d):
    pass
