"""Search spaces for the checks: a correct one, a rich one, and a search for one finding."""

from __future__ import annotations

from dataclasses import replace

import lols
from lols import Example
from lols.contract.checks import check_space
from lols.datasets.worlds import tagging_references, tagging_space

DATA = [
    {"words": [7, 3, 5, 7, 4], "tags": [1, 0, 2, 1, 2]},
    {"words": [3, 5, 5], "tags": [0, 2, 1]},
    {"words": [4, 7, 3, 3], "tags": [2, 2, 0, 1]},
]
GOOD = tagging_space(labels=3)
TEACHER = tagging_references()["optimal"]
SEEN: dict[str, int] = {}  # a global for functions that must not have one


def sized(space=GOOD, **sizes):
    return replace(space, sizes=replace(space.sizes, **sizes))


def found(space, function, *, reference=None, data=DATA):
    """The messages about one function."""
    return [str(f) for f in check_space(space, data, reference, rollouts=10) if f.function == function]


def assert_found(space, function, *words, reference=None, data=DATA):
    """Exactly one message about a function has all of these words."""
    messages = found(space, function, reference=reference, data=data)
    matching = [m for m in messages if all(word in m for word in words)]
    assert len(matching) == 1, messages
    assert f"`{function}`" in matching[0]


# --- spaces with items and action features ----------------------------------------------------------------------------


def look_at_words(x, s, out):
    lols.look(out, s[0])
    if s[0] > 0:
        lols.look(out, s[0] - 1, 1)


def describe_action(x, s, a, out):
    lols.emit(out, lols.feature(20, a, x.words[s[0]]), 0.5)


def encode_items(obj):
    return Example({"words": obj["words"]}, {"tags": obj["tags"]}, [[w, w + 100] for w in obj["words"]])


RICH = replace(
    sized(items=2, roles=2, action_features=1),
    items=look_at_words,
    action_features=describe_action,
    encode=encode_items,
)


def not_twice(x, s, legal):
    if s[0] < len(x.words):
        legal[:] = True
        if s[0] > 0:
            legal[s[1]] = False


def mark(out, *actions):
    for a in actions:
        out[a] = True


def free_of_truth(x, y, s, out):
    out[y.tags[s[0]]] = True


def write_costs(x, y, s, out):
    for a in range(len(out)):
        out[a] = 7.0 + (a != y.tags[s[0]])
