"""The search space of a `Ranker`: slots are filled one after the other from candidates with features of their own.

The features of a candidate are hashed; so are they together with each feature of the context (a cross), and with the
slot. Texts and truth values are features by themselves (`colour=red`), numbers are values of a feature (`price`). A
list has several; a dictionary's names come before those in it (`shop.city`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lols.contract.features import emit, feature
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.errors import LolsError, shown

ALONE, IN_SLOT, CROSSED = 0, 1, 2  # templates of features
DEEPEST = 8  # dictionaries within each other
ID = "id"  # the name under which a candidate says who it is; no feature


def _start(x, s):
    pass


def _actions(x, s, legal):
    for a in range(x.count):
        legal[a] = s[0] < x.slots and not x.excluded[a]
    for k in range(s[0]):
        legal[s[1 + k]] = False


def _step(x, s, a):
    s[1 + s[0]] = a
    s[0] += 1


def _features(x, s, out):
    pass


def _action_features(x, s, a, out):
    for f in range(x.first[a], x.first[a + 1]):
        emit(out, feature(ALONE, x.features[f]), x.values[f])
        emit(out, feature(IN_SLOT, x.features[f], s[0]), x.values[f])
        for c in range(len(x.context)):
            emit(out, feature(CROSSED, x.features[f], x.context[c]), x.values[f] * x.amounts[c])


def _loss(x, y, s):
    return 0.0


def _output(x, s):
    return [int(a) for a in s[1 : 1 + s[0]]]


def _first(x, y, s):
    """The rules: candidates in their order."""
    for a in range(x.count):
        free = not x.excluded[a]
        for k in range(s[0]):
            free = free and s[1 + k] != a
        if free:
            return a
    return 0


RULES = Reference(action=_first, needs_truth=False, name="candidates in their order")


def _count(x):
    return x.count


def ranking_space(slots: int, most_features: int) -> SearchSpace:
    """The search space for a number of slots; a candidate has at most this many features, with crosses.

    >>> space = ranking_space(slots=2, most_features=100)
    >>> request = {"context": {"reader": "young"}, "candidates": [{"topic": "music"}, {"topic": "sport"}]}
    >>> space.encode(request).x["first"], len(space.encode(request).x["context"])
    ([0, 1, 2], 1)
    """

    def encode(obj: Any) -> Example:
        return encoded(obj, most_features)

    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        action_features=_action_features,
        loss=_loss,
        output=_output,
        encode=encode,
        sizes=Sizes(state=1 + slots, actions=_count, features=0, action_features=most_features, steps=slots),
        settings={"slots": slots},
        name="ranking",
    )


def encoded(request: Any, most_features: int) -> Example:
    """The columns of a request: a dictionary with `context`, `candidates`, and perhaps `excluded`."""
    if not isinstance(request, Mapping) or not isinstance(request.get("candidates"), Sequence):
        raise LolsError("a request is a dictionary with `context` and a list of `candidates`")
    candidates = request["candidates"]
    context = hashed(request.get("context") or {}, "the context")
    first, ids, values = [0], list[int](), list[float]()
    for number, candidate in enumerate(candidates):
        where = f"candidate {number}"
        own = hashed(candidate, where, ID)
        if not own:
            raise LolsError(f"{where} has no features: give a dictionary with some, such as its name")
        if len(own) * (2 + len(context)) > most_features:
            raise LolsError(
                f"{where} has {len(own)} features and the context {len(context)}: with crosses "
                f"{len(own) * (2 + len(context))}, more than most_features={most_features}: give a larger number there"
            )
        ids += own.keys()
        values += own.values()
        first.append(len(ids))
    excluded = _excluded(request.get("excluded") or (), candidates)
    return Example(
        {
            "count": len(candidates),
            "first": first,
            "features": ids or [0],
            "values": values or [0.0],
            "context": list(context) or [0],
            "amounts": list(context.values()) or [0.0],
            "excluded": [number in excluded for number in range(len(candidates))] or [True],
        }
    )


def names_of(candidates: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What candidates are called: their ids, or their numbers."""
    return [candidate.get(ID, number) for number, candidate in enumerate(candidates)]


def _excluded(excluded: Any, candidates: Sequence[Any]) -> set[int]:
    """The numbers of excluded candidates, which are given by their names."""
    if not excluded:
        return set()
    if isinstance(excluded, str) or not isinstance(excluded, Sequence):
        raise LolsError(f"excluded is {shown(excluded)}: give a list of ids of candidates")
    numbers = {name: number for number, name in enumerate(names_of(candidates))}
    unknown = [name for name in excluded if name not in numbers]
    if unknown:
        raise LolsError(f"excluded has {shown(unknown[0])}, which no candidate is called")
    return {numbers[name] for name in excluded}


def hashed(told: Any, where: str, left_out: str | None = None) -> dict[int, float]:
    """The features of a dictionary: hashed names, and their values.

    >>> hashed({"price": 0.5, "colour": ["red", "blue"], "new": True, "size": None}, "a candidate").values()
    dict_values([0.5, 1.0, 1.0, 1.0])
    """
    if not isinstance(told, Mapping):
        raise LolsError(f"{where} is {shown(told)}: give a dictionary of features")
    found: dict[int, float] = {}
    for name, value in _features_of(told, "", where, left_out, 0):
        number = _number(name)
        found[number] = found.get(number, 0.0) + value
    return found


def _features_of(
    told: Mapping[Any, Any], above: str, where: str, left_out: str | None, depth: int
) -> Iterator[tuple[str, float]]:
    if depth > DEEPEST:
        raise LolsError(f"{where}: more than {DEEPEST} dictionaries within each other")
    for key, value in told.items():
        if key == left_out:
            continue
        name = f"{above}{key}"
        kind = type(value)
        if kind is str or kind is bool:
            yield f"{name}={value}", 1.0
        elif kind is float or kind is int:
            amount = float(value) if abs(value) < 1e30 else math.inf
            if not math.isfinite(amount):
                raise LolsError(f"{where}: {name} is {shown(value)}: give a finite number")
            yield name, amount
        elif value is None:
            continue
        elif isinstance(value, Mapping):
            yield from _features_of(value, f"{name}.", where, None, depth + 1)
        elif isinstance(value, Sequence) and all(type(each) in (str, bool, int) for each in value):
            yield from ((f"{name}={each}", 1.0) for each in value)
        else:
            raise LolsError(f"{where}: {name} is {shown(value)}: give texts, numbers, lists of texts or dictionaries")


@lru_cache(maxsize=1 << 16)
def _number(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
