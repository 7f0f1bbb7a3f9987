"""Parsing as a world for the bandit: the only feedback is the share of words with a wrong head in a sentence.

Words and their tags are given. The current system attaches each word to its right neighbour, and makes the last one the
root; in English this is right more often than the left neighbour. Transitions are those of `tasks.parsing.space`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.bandit.worlds.sentences import VALUE, WHOLE, sentence_world, text_number
from lols.bandit.worlds.world import Objects, World
from lols.contract.features import emit, feature
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError
from lols.kernels.hashing import mix, unit
from lols.tasks.parsing import space as parsing
from lols.tasks.parsing.projective import lift
from lols.tasks.parsing.space import (
    ANY,
    DEPTH,
    FIELDS,
    FIRST,
    HEADER,
    LAST,
    LEFT,
    LEFTS,
    NEVER,
    NEXT,
    RIGHT,
    RIGHTS,
    SHIFT,
    cell,
    on_stack,
)
from lols.tasks.parsing.teachers import references

FARTHEST = 6  # larger distances are not distinguished


def parsing_world(train: Objects, held_out: Objects) -> World:
    """Sentences with the share of wrong heads as their loss.

    Parameters
    ----------
    train
        Sentences that arrive, pass after pass: dictionaries with `forms`, `tags` and `heads`, which count from 1, with
        0 for the one root.
    held_out
        Sentences to compare policies on.

    Examples
    --------
    >>> from lols.datasets.grammar import generate
    >>> sentences = [{"forms": s.forms, "tags": s.upos, "heads": s.heads} for s in generate(300)]
    >>> world = parsing_world(sentences[:200], sentences[200:])
    >>> world.loss(sentences[0], sentences[0]["heads"])
    0.0

    """
    tags = sorted({tag for obj in train for tag in obj["tags"]})
    if not tags:
        raise ConfigurationError("there is no tagged sentence to learn from: give at least one")
    return sentence_world(
        "parsing",
        "heads",
        parsing_space(tags),
        parsing_rule(),
        arriving=train,
        held_out=held_out,
        at_random=_random_tree,
        informed=(parsing_space(tags, value=1.0, whole=0.0), references()["optimal"], _projective),
    )


def _projective(obj: Any) -> Any:
    """The sentence with its tree made projective, because the teacher builds projective trees."""
    heads = np.array(obj["heads"], np.int64) - 1
    lifted = lift(heads, np.zeros_like(heads), np.array([0, heads.size])).heads
    return {**obj, "heads": (lifted + 1).tolist()}


def _random_tree(obj: Any, seed: int) -> list[int]:
    """The tree of legal actions drawn at random."""
    count, at, stack = len(obj["forms"]), 0, list[int]()
    heads = [0] * count
    for step in range(2 * count - 1):
        choices = [SHIFT] * (at < count) + [RIGHT] * (len(stack) >= 2) + [LEFT] * (len(stack) >= 1 and at < count)
        action = choices[int(unit(mix(mix(seed, 3), step)) * len(choices))]
        if action == SHIFT:
            stack.append(at)
            at += 1
        else:
            word = stack.pop()
            heads[word] = 1 + (at if action == LEFT else stack[-1])
    return heads


# --- the space --------------------------------------------------------------------------------------------------------


def parsing_rule() -> Reference:
    """The current system: the head of each word is its right neighbour.

    >>> parsing_rule().needs_truth
    False
    """
    return Reference(action=_rule, needs_truth=False, name="right neighbour")


def parsing_space(tags: Sequence[str], *, value: float = VALUE, whole: float = WHOLE) -> SearchSpace:
    """The search space: Shift, ReduceRight and ReduceLeft, without labels; the output is a list of heads.

    Parameters
    ----------
    tags
        The tags of words; all other tags count as one more.
    value, whole
        The values of features, and of those that all actions share (see `tagging_space`).

    """
    number_of = functools.cache(lambda form: text_number(form.lower()))
    numbers = {tag: 1 + k for k, tag in enumerate(tags)}

    def encode(obj: Any) -> Example:
        forms, given = obj["forms"], obj["tags"]
        if not forms or len(given) != len(forms):
            raise ConfigurationError(f"a sentence has {len(forms)} words and {len(given)} tags: give one for each")
        x = {
            "length": len(forms),
            "words": np.array([number_of(form) for form in forms], np.int64),
            "tags": np.array([numbers.get(tag, 0) for tag in given], np.int64),
        }
        heads = obj.get("heads")
        if heads is None:
            return Example(x)
        if len(heads) != len(forms):
            raise ConfigurationError(f"a sentence has {len(forms)} words and {len(heads)} heads: give one for each")
        return Example(x, _truth(heads))

    return SearchSpace(
        start=parsing.start,
        actions=parsing.actions,
        step=parsing.step,
        features=_features,
        action_features=_level if whole else None,
        cost=parsing.cost,
        loss=parsing.loss,
        key=parsing.key,
        output=lambda x, s: [1 + head for head in parsing.output(x, s)[0]],
        encode=encode,
        sizes=Sizes(
            state=lambda x: HEADER + FIELDS * (x.length + 1),
            actions=3,
            features=FEATURES,
            action_features=2 if whole else 0,
            steps=lambda x: max(2 * x.length - 1, 1),
        ),
        settings={
            "kinds": np.array([SHIFT, RIGHT, LEFT], np.int64),
            "root_at": np.array([ANY, ANY, NEVER], np.int64),
            "value": value,
            "whole": whole,
            "relations": np.zeros(3, np.int64),
            "root_relation": 0,
            "labels_later": False,
            "labelled": False,
            "many_roots": False,
        },
        nonnegative=True,
        name="lols.bandit.parsing_world",
    )


def _truth(heads: Sequence[int]) -> dict[str, Any]:
    """Heads from 0 with -1 for the root, the weights of words, and the first and last dependent of each word."""
    count = len(heads)
    first, last = list(range(count)), list(range(count))
    for word, head in enumerate(heads):
        if head > 0:
            first[head - 1] = min(first[head - 1], word)
            last[head - 1] = max(last[head - 1], word)
    return {
        "heads": np.array(heads, np.int64) - 1,
        "relations": np.zeros(count, np.int64),
        "weights": np.full(count, 1.0 / count),
        "first_child": np.array(first, np.int64),
        "last_child": np.array(last, np.int64),
    }


def _rule(x, y, s):
    """Shift, then attach to the next word; at the end, to the word below on the stack."""
    if s[NEXT] == x.length:
        return RIGHT
    return LEFT if s[DEPTH] > 0 else SHIFT


def _tag(x, word):
    return x.tags[word] if 0 <= word < x.length else -1


def _word(x, word):
    return x.words[word] if 0 <= word < x.length else 0


def _child(x, s, word, which):
    """The tag of a child."""
    return _tag(x, s[cell(word, which)] - 1) if 0 <= word < x.length else -1


def _apart(one, other):
    return min(abs(one - other), FARTHEST)


FEATURES = 33


def _features(x, s, out):
    top, below, third, front = on_stack(s, 0), on_stack(s, 1), on_stack(s, 2), s[NEXT]
    t0, t1, t2 = _tag(x, top), _tag(x, below), _tag(x, third)
    n0, n1, n2 = _tag(x, front), _tag(x, front + 1), _tag(x, front + 2)
    w0, w1, v0 = _word(x, top), _word(x, below), _word(x, front)
    near, far = _apart(top, front), _apart(below, top)
    lefts = s[cell(top, LEFTS)] if top >= 0 else -1
    rights = s[cell(top, RIGHTS)] if top >= 0 else -1
    front_lefts = s[cell(front, LEFTS)] if front < x.length else -1
    known = (
        feature(0), feature(1, t0), feature(2, n0), feature(3, t1), feature(4, n1), feature(5, w0), feature(6, v0),
        feature(7, w1), feature(8, t0, n0), feature(9, t1, t0), feature(10, w0, n0), feature(11, t0, v0),
        feature(12, t1, t0, n0), feature(13, t0, n0, n1), feature(14, n0, n1, n2), feature(15, t2, t1, t0),
        feature(16, t1, t0, n0, n1), feature(17, near, t0, n0), feature(18, far, t1, t0),
        feature(19, t0, n0, _child(x, s, top, LAST)), feature(20, t0, n0, _child(x, s, top, FIRST)),
        feature(21, t0, n0, _child(x, s, front, FIRST)), feature(22, t1, t0, _child(x, s, below, LAST)),
        feature(23, t1, t0, _child(x, s, top, LAST)), feature(24, t0, lefts, rights), feature(25, n0, front_lefts),
        feature(26, t0, rights, n0), feature(27, w0, v0), feature(28, w1, w0), feature(29, w1, t0),
        feature(30, t1, w0), feature(31, w1, t0, n0), feature(32, t1, t0, _child(x, s, top, FIRST), n0),
    )  # fmt: skip
    for identity in known:
        emit(out, identity, x.value)


def _level(x, s, a, out):
    """The cost of a sentence that does not depend on the action."""
    emit(out, feature(33), x.whole)
    emit(out, feature(34), x.whole / x.length)
