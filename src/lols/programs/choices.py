"""The arguments of `predict`: legal actions and the reference's answers, checked and numbered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, SpaceError

MOST = 1 << 16  # the most sets of legal actions to keep
SETS = (list, tuple, set, frozenset, range, np.ndarray)
HASHABLE = (tuple, frozenset, range)


class Legal:
    """A set of legal actions. Equal sets are the same object."""

    __slots__ = ("__weakref__", "actions", "count", "mask", "members", "ones")

    def __init__(self, members: Collection[int], count: int):
        self.members, self.count = members, count
        self.actions = sorted(members)
        self.mask = np.zeros(count, np.bool_)
        self.mask[self.actions] = True
        self.ones = np.where(self.mask, 1.0, np.inf)  # costs of 1 for every legal action


class Teacher(NamedTuple):
    """The reference's answer at one decision."""

    first: int  # the action in a roll-out
    free: list[int] | None  # all of them, if there are several equally good ones
    costs: list[float] | None  # in closed form


class ActionChoices:
    """Reads the arguments `legal`, `reference` and `costs` of `predict`, for numbered or named actions.

    >>> choices = ActionChoices(3, ["noun", "verb", "other"])
    >>> choices.legal(["verb", "noun"]) is choices.legal({"noun", "verb"}), choices.legal(None).actions
    (True, [0, 1, 2])
    >>> choices.reference("verb"), choices.reference(["verb", "noun"])
    ((1, None), (0, [0, 1]))
    """

    def __init__(self, actions: int, labels: Sequence[Any] | None = None):
        self.count = self.most = actions
        self.names: Sequence[Any] = list(range(actions)) if labels is None else list(labels)
        self.labelled = labels is not None
        try:
            self.numbers: dict[Any, int] = {name: number for number, name in enumerate(self.names)}
        except TypeError:
            raise ConfigurationError("labels must be hashable: strings, numbers or tuples of those") from None
        if len(self.numbers) < actions:
            raise ConfigurationError("labels has the same label twice")
        self.all = Legal(frozenset(range(actions)), actions)
        self.named = [Teacher(a, None, None) for a in range(actions)]  # references with one action
        self._sets: dict[frozenset[int], Legal] = {frozenset(self.all.members): self.all}
        self._known: dict[Any, Legal] = {None: self.all}

    def legal(self, given: Any) -> Legal:
        """The set given as `legal`: any iterable of actions, None for all."""
        kind = given.__class__
        if kind is not range and kind is not tuple and given is not None:
            try:
                given = tuple(given)
            except TypeError:
                raise SpaceError(f"`legal` is {given!r}: give a list of actions, or None for all") from None
        try:
            return self._known[given]
        except KeyError:
            return self._new(given)
        except TypeError:
            raise SpaceError(f"`legal` has something that is not an action: {self._expected()}") from None

    def _new(self, given: Iterable[Any]) -> Legal:
        members = frozenset(self.number(name, "`legal` has") for name in given)
        if not members:
            raise SpaceError("`legal` is empty: do not call predict when there is nothing to decide")
        if len(self._known) >= MOST:
            self._known.clear()
            self._known[None] = self.all
            self._sets = {frozenset(self.all.members): self.all}
        legal = self._known[given] = self._numbered(members)
        return legal

    def among(self, actions: Iterable[int], legal: Legal) -> Legal:
        """The set of these action numbers, which are some of the legal ones."""
        return self._numbered(frozenset(actions))

    def _numbered(self, members: frozenset[int]) -> Legal:
        return self._sets.setdefault(members, Legal(members, self.count))

    def number(self, name: Any, where: str) -> int:
        """The number of an action."""
        try:
            return self.numbers[name]
        except (KeyError, TypeError):
            raise SpaceError(f"{where} {name!r}: {self._expected()}") from None

    def _expected(self) -> str:
        return "it is not one of the labels" if self.labelled else f"actions are numbers from 0 to {self.count - 1}"

    def reference(self, given: Any) -> tuple[int, list[int] | None]:
        """The reference's first action, and all of them in order if there are several equally good ones."""
        if not isinstance(given, SETS) or (self.labelled and isinstance(given, HASHABLE) and given in self.numbers):
            return self.number(given, "the reference is"), None
        free = sorted({self.number(name, "the reference has") for name in given})
        if not free:
            raise SpaceError("the reference has no action")
        return free[0], free if len(free) > 1 else None

    def costs(self, given: Any, legal: Legal) -> list[float]:
        """Closed-form costs by action: from a sequence as long as there are actions, or a mapping from actions."""
        costs = [float("nan")] * self.count
        try:
            if hasattr(given, "items"):
                for name, cost in given.items():
                    costs[self.number(name, "`costs` has")] = float(cost)
            else:
                costs = [float(cost) for cost in given]
        except SpaceError:
            raise
        except (TypeError, ValueError):
            raise SpaceError(f"`costs` is {given!r}: give a number for each action, or a dict") from None
        if len(costs) != self.count:
            raise SpaceError(f"`costs` has {len(costs)} numbers for {self.count} actions: give one each, or a dict")
        for a in legal.actions:
            if not -np.inf < costs[a] < np.inf:
                raise SpaceError(f"`costs` has {costs[a]} for action {self._shown(a)}, which is legal there")
        return costs

    def _shown(self, action: int) -> str:
        return repr(self.names[action])


def takes(function: Any) -> int:
    """The number of required arguments of a reference that is a function.

    >>> takes(lambda: 1), takes(lambda rng: 1), takes(lambda rng, gold=3: 1), takes([].pop)
    (0, 1, 1, 0)
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return 0
    own = getattr(function, "__self__", None) is not None
    return int(code.co_argcount) - len(function.__defaults__ or ()) - own
