"""The arguments of `choose`: candidates and the reference's answers, checked and numbered; features, encoded."""

from __future__ import annotations

import numbers
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.contract.features import LARGEST
from lols.errors import SpaceError
from lols.programs.choices import ActionChoices, Legal, Teacher
from lols.programs.feature_ids import Ids

ANY: Sequence[int] = range(1 << 62)


class CandidateChoices(ActionChoices):
    """Reads the candidates of a decision, which are its actions: an action is the place of a candidate among them.

    Candidates may be objects that a program makes anew in each run, so nothing keeps them beyond the decision.

    >>> choices = CandidateChoices()
    >>> choices.legal({"ann": {}, "bob": {}}).actions, choices.reference("bob"), choices.reference({"bob", "ann"})
    ([0, 1], (1, None), (0, [0, 1]))
    >>> choices.reference("eve")
    Traceback (most recent call last):
        ...
    lols.errors.SpaceError: the reference is 'eve': it is not one of the candidates
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.names, self.labelled = ANY, True  # `most` is the most candidates of a decision so far
        # Equal sets are the same object as long as a roll-in remembers it.
        self._by_count = weakref.WeakValueDictionary({1: self.all})

    def legal(self, given: Any) -> Legal:
        """All candidates of the decision that is made now."""
        self.numbers = {candidate: number for number, candidate in enumerate(given)}
        count = self.count = len(self.numbers)
        if count == self.all.count:
            return self.all
        if count == 0:
            raise SpaceError("there are no candidates: do not call choose when there is nothing to decide")
        if count > self.most:
            self.most = count
            self.named += [Teacher(a, None, None) for a in range(len(self.named), count)]
        legal = self._by_count.get(count)
        if legal is None:
            legal = self._by_count[count] = Legal(range(count), count)
        self.all = legal
        return legal

    def among(self, actions: Iterable[int], legal: Legal) -> Legal:
        """Some of the candidates."""
        return Legal(frozenset(actions), legal.count)

    def _shown(self, action: int) -> str:
        return repr(list(self.numbers)[action])

    def _expected(self) -> str:
        return "it is not one of the candidates"


class EncodedCandidates(NamedTuple):
    """The features of candidates: those of candidate i are from `bounds[i]` to `bounds[i + 1]`."""

    ids: list[int]
    values: list[float]
    bounds: list[int]


def encode_candidates(ids: Ids, candidates: Mapping[Any, Any], shared: Any) -> EncodedCandidates:
    """Ids and values of the features of candidates.

    With `shared` features, each feature of a candidate is there again in combination with each of those.

    >>> encoded = encode_candidates(Ids(), {"ann": {1: 0.5, "van": True}, "bob": [("van", False)]}, {2: 3.0})
    >>> [encoded.ids[0], *encoded.values], encoded.bounds
    ([1, 0.5, 1.0, 1.5, 3.0, 1.0, 3.0], [0, 4, 6])
    >>> encoded.ids[2] == Ids()[1, 2]
    True
    """
    found, values, bounds = list[int](), list[float](), [0]
    beside: tuple[list[int], list[float]] = [], []
    if shared:
        _encode(ids, "shared", shared, *beside)
    for candidate, features in candidates.items():
        first = bounds[-1]
        _encode(ids, candidate, features, found, values)
        if beside[0]:
            own = list(zip(found[first:], values[first:], strict=True))
            found += [ids[identity, other] for identity, _ in own for other in beside[0]]
            values += [_within(candidate, value * factor) for _, value in own for factor in beside[1]]
        bounds.append(len(found))
    return EncodedCandidates(found, values, bounds)


def _encode(ids: Ids, owner: Any, features: Any, found: list[int], values: list[float]) -> None:
    """Append ids and values. A number is the value of its feature; anything else is a category, and has the value 1."""
    if callable(features):
        features = features()
    try:
        if not hasattr(features, "items"):
            if features.__class__ is str:
                raise TypeError
            named = [ids[feature] for feature in features]
            found += named
            values += [1.0] * len(named)
            return
        for name, value in features.items():
            kind = value.__class__
            if (kind is float or kind is int) and -LARGEST <= value <= LARGEST:
                found.append(ids[name])
                values.append(value)
            elif kind is not bool and isinstance(value, numbers.Number):
                found.append(ids[name])
                values.append(_number(owner, name, value))
            else:
                found.append(ids[name, bool(value) if kind is np.bool_ else value])
                values.append(1.0)
    except TypeError as error:
        if features.__class__ is str or not isinstance(features, Iterable):
            raise SpaceError(
                f"the features of {owner!r} are {features!r}: give a dict from names to values, or a list"
            ) from None
        if "unhashable" in str(error):
            raise SpaceError(f"a feature of {owner!r} cannot be looked up ({error}): give numbers or strings") from None
        raise


def _within(owner: Any, value: float) -> float:
    if abs(value) <= LARGEST:
        return value
    raise SpaceError(f"a feature of {owner!r} in combination with `shared` is {value}: keep it within 32-bit floats")


def _number(owner: Any, name: Any, value: Any) -> float:
    try:
        number = float(value)
        if abs(number) <= LARGEST:
            return number
    except (OverflowError, TypeError):
        pass
    raise SpaceError(f"feature {name!r} of {owner!r} is {value!r}: give a finite number, within 32-bit floats")
