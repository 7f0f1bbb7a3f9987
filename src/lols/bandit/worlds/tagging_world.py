"""Tagging as a world for the bandit: the only feedback is the share of wrong tags in a sentence.

The current system gives each word its most frequent tag. For a sentence that its lexicon was counted from, it acts as
if the sentence had not been counted, so that it is as good on arrivals as on new text.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.worlds.sentences import (
    FACTS,
    LOWER,
    SHAPE,
    SUFFIX,
    VALUE,
    WHOLE,
    WORD,
    form_facts,
    sentence_world,
)
from lols.bandit.worlds.world import Objects, World
from lols.contract.features import emit, feature
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError
from lols.kernels.hashing import mix, unit

SEEN = (1, 2, 4, 10)  # counts that divide words into classes: never seen, once, two or three times, ...


def tagging_world(train: Objects, held_out: Objects) -> World:
    """Sentences with the share of wrong tags as their loss.

    Parameters
    ----------
    train
        Sentences that arrive, pass after pass, and that the lexicon is counted from: dictionaries with `forms` and
        `tags`.
    held_out
        Sentences to compare policies on.

    Examples
    --------
    >>> from lols.datasets.grammar import generate
    >>> sentences = [{"forms": s.forms, "tags": s.upos} for s in generate(300)]
    >>> world = tagging_world(sentences[:200], sentences[200:])
    >>> world.loss(sentences[0], sentences[0]["tags"])
    0.0

    """
    lexicon = TagLexicon.of(train)
    return sentence_world(
        "tagging",
        "tags",
        tagging_space(lexicon),
        tagging_rule(),
        arriving=[{**obj, "lexicon": lexicon.without(obj)} for obj in train],
        held_out=held_out,
        at_random=lambda obj, seed: _random_tags(lexicon.tags, obj, seed),
        informed=(tagging_space(lexicon, value=1.0, whole=0.0), _TRUTH, lambda obj: obj),
    )


def _random_tags(tags: Sequence[str], obj: Any, seed: int) -> list[str]:
    return [tags[int(unit(mix(mix(seed, 3), i)) * len(tags))] for i in range(len(obj["forms"]))]


# --- the lexicon -----------------------------------------------------------------------------------------------------


class WordEntries(NamedTuple):
    """The entries of a lexicon for the words of a sentence: the most frequent tags, and classes of counts (`SEEN`)."""

    rule: np.ndarray
    seen: np.ndarray


class TagLexicon:
    """Counts of the tags of each word.

    >>> lexicon = TagLexicon.of([{"forms": ["the", "melk"], "tags": ["DET", "NOUN"]}])
    >>> [lexicon.tags[k] for k in lexicon.look_up(["melk", "the", "tarv"]).rule]
    ['NOUN', 'DET', 'DET']
    """

    def __init__(self, tags: Sequence[str], counts: dict[str, Counter[int]]):
        self.tags = list(tags)
        self.numbers = {tag: k for k, tag in enumerate(self.tags)}
        self.counts = counts
        once = Counter(next(iter(c)) for c in counts.values() if c.total() == 1)
        every = sum(counts.values(), Counter[int]())
        self.unknown = _most(once or every)
        self._entry_of = functools.cache(lambda form: self._entry(counts.get(form, Counter())))

    @classmethod
    def of(cls, objects: Objects) -> TagLexicon:
        """The lexicon of tagged sentences."""
        tags = sorted({tag for obj in objects for tag in obj["tags"]})
        if not tags:
            raise ConfigurationError("there is no tagged sentence to count tags in: give at least one")
        numbers = {tag: k for k, tag in enumerate(tags)}
        counts: dict[str, Counter[int]] = {}
        for obj in objects:
            for form, tag in zip(obj["forms"], obj["tags"], strict=True):
                counts.setdefault(form, Counter())[numbers[tag]] += 1
        return cls(tags, counts)

    def look_up(self, forms: Sequence[str]) -> WordEntries:
        """The entries of words."""
        return _entries([self._entry_of(form) for form in forms])

    def without(self, obj: Any) -> WordEntries:
        """The entries of a sentence's words as if the sentence had not been counted."""
        own: dict[str, Counter[int]] = {}
        for form, tag in zip(obj["forms"], obj["tags"], strict=True):
            own.setdefault(form, Counter())[self.numbers[tag]] += 1
        return _entries([self._entry(self.counts[form] - own[form]) for form in obj["forms"]])

    def _entry(self, counts: Counter[int]) -> tuple[int, int]:
        total = counts.total()
        return _most(counts) if total else self.unknown, sum(total >= least for least in SEEN)


def _entries(rows: Sequence[tuple[int, int]]) -> WordEntries:
    rule, seen = np.array(rows, np.int64).reshape(-1, 2).T.copy()
    return WordEntries(rule, seen)


def _most(counts: Counter[int]) -> int:
    """The most frequent one; the first of several."""
    return min(counts, key=lambda k: (-counts[k], k))


# --- the space --------------------------------------------------------------------------------------------------------


def tagging_rule() -> Reference:
    """The current system: the most frequent tag of each word.

    >>> tagging_rule().needs_truth
    False
    """
    return Reference(action=_rule, needs_truth=False, name="most frequent tag")


def tagging_space(lexicon: TagLexicon, *, value: float = VALUE, whole: float = WHOLE) -> SearchSpace:
    """The search space: tags from left to right; an action is the number of a tag.

    Parameters
    ----------
    lexicon
        The lexicon of the current system; its tags are the actions.
    value
        The value of features. A wrong tag costs one word's share of a sentence, while AdaGrad's steps do not depend on
        the scale of costs: small values keep the effect of one loss in proportion.
    whole
        The value of features that all actions of a sentence share, 0 for none. They learn the mean cost of a sentence:
        otherwise each action would have to learn it, and rarely tried ones would look cheap when losses rise.

    """
    facts_of = functools.cache(form_facts)
    tags, numbers = lexicon.tags, lexicon.numbers

    def encode(obj: Any) -> Example:
        forms = obj["forms"]
        if not forms:
            raise ConfigurationError("a sentence has no words: leave it out")
        entries = obj.get("lexicon") or lexicon.look_up(forms)
        x = {
            "words": np.array([facts_of(form) for form in forms], np.int64).ravel(),
            "rule": entries.rule,
            "seen": entries.seen,
            "unknown": float((entries.seen == 0).mean()),
        }
        if "tags" not in obj:
            return Example(x)
        if len(obj["tags"]) != len(forms):
            raise ConfigurationError(
                f"a sentence has {len(forms)} words and {len(obj['tags'])} tags: give one for each"
            )
        return Example(x, {"tags": np.array([numbers.get(tag, -1) for tag in obj["tags"]], np.int64)})

    def output(x: Any, s: np.ndarray) -> list[str]:
        return [tags[k] for k in s[HEADER:].tolist()]

    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        action_features=_level if whole else None,
        loss=_loss,
        cost=_cost,
        key=_key,
        output=output,
        encode=encode,
        sizes=Sizes(
            state=lambda x: HEADER + len(x.rule),
            live=HEADER,
            actions=len(tags),
            features=FEATURES,
            action_features=2 if whole else 0,
            steps=lambda x: len(x.rule),
        ),
        settings={"value": value, "whole": whole},
        nonnegative=True,
        name="lols.bandit.tagging_world",
    )


HEADER = 3  # the state: the number of tags so far, the last one and the one before plus 1, then all tags
FEATURES = 24


def _start(x, s):
    pass


def _actions(x, s, legal):
    if s[0] < len(x.rule):
        legal[:] = True


def _step(x, s, a):
    s[HEADER + s[0]] = a
    s[2] = s[1]
    s[1] = a + 1
    s[0] += 1


def _rule_at(x, i):
    """The most frequent tag of a word, plus 1; 0 outside the sentence."""
    return x.rule[i] + 1 if 0 <= i < len(x.rule) else 0


def _fact(x, i, which):
    return x.words[i * FACTS + which] if 0 <= i < len(x.rule) else 0


def _features(x, s, out):
    i, last, before = s[0], s[1], s[2]
    rule, left, right = x.rule[i] + 1, _rule_at(x, i - 1), _rule_at(x, i + 1)
    word, shape, seen = _fact(x, i, LOWER), _fact(x, i, SHAPE) * 2 + (i == 0), x.seen[i]
    two, three = _fact(x, i, SUFFIX + 1), _fact(x, i, SUFFIX + 2)
    known = (
        feature(0), feature(1, rule), feature(2, word), feature(3, _fact(x, i, WORD)),
        feature(4, _fact(x, i, SUFFIX)), feature(5, two), feature(6, three), feature(7, shape),
        feature(8, _fact(x, i - 1, LOWER)), feature(9, _fact(x, i + 1, LOWER)), feature(10, left),
        feature(11, right), feature(12, last), feature(13, last, before), feature(14, rule, last),
        feature(15, rule, right), feature(16, rule, last, right), feature(17, rule, three),
        feature(18, rule, seen, shape), feature(19, seen == 0, three), feature(20, seen == 0, two, shape),
        feature(21, word, last), feature(22, word, right), feature(23, last, right),
    )  # fmt: skip
    for identity in known:
        emit(out, identity, x.value)


def _level(x, s, a, out):
    """The cost of a sentence that does not depend on the action."""
    emit(out, feature(24), x.whole)
    emit(out, feature(25), x.whole * x.unknown)


def _cost(x, y, s, a):
    return (1.0 if a != y.tags[s[0]] else 0.0) / len(x.rule)


def _loss(x, y, s):
    wrong = 0.0
    for i in range(len(x.rule)):
        wrong += 1.0 if s[HEADER + i] != y.tags[i] else 0.0
    return wrong / len(x.rule)


def _key(x, s):
    return (s[0] * 4096 + s[1]) * 4096 + s[2]


def _rule(x, y, s):
    return x.rule[s[0]]


def _right(x, y, s):
    return y.tags[s[0]]


_TRUTH = Reference(action=_right, name="truth")
