"""The words of the generated treebank: a Zipfian lexicon of made-up stems with English endings, and function words.

The same forms serve several parts of speech, as in English: `a melk` and `they melk`, `a tarved dulp` and `it tarved`.
Endings tell the part of speech of most other words, so that one may guess it of a word never seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")
CLASSES = 6  # of meanings, which determine the prepositions of a word and what it is coordinated with
NOUNS, VERBS, ADJECTIVES, ADVERBS, NAMES = 2000, 800, 600, 150, 500
FLATTEN = 5.0  # added to the rank of a word

# Prepositions of phrases after a noun or a verb, and their frequencies.
PREPOSITIONS = {
    "of": 20, "in": 14, "to": 8, "for": 9, "on": 7, "with": 7, "at": 4, "from": 4, "by": 3, "about": 2, "like": 2,
    "after": 2, "before": 2, "since": 2, "as": 3, "over": 2, "under": 1, "through": 1, "into": 2, "between": 1,
}  # fmt: skip

ONSETS, VOWELS, CODAS = (
    part.split(" ")
    for part in (
        "b br d dr f fl g gl gr h j k kl l m n p pl pr r s sk sl sp st t tr v w",
        "a e i o u ai ea ou",
        "b ck d ft g k l lk lm lp lt m mp n nd nk nt p r rk rm rn rt rv sk sp st t v x",
    )
)
NOUN_ENDINGS = ["tion", "ness", "ment", "er", "ity", "ism", "age", "ance"]  # each of one class of meanings
VERB_ENDINGS = ["ize", "ate", "ify"]
ADJECTIVE_ENDINGS = ["ous", "ful", "ic", "al", "able", "ive", "ish", "less"]


@dataclass(frozen=True)
class Noun:
    """A noun in singular and plural, and its class of meanings."""

    singular: str
    plural: str
    meaning: int


@dataclass(frozen=True)
class Verb:
    """A verb, its forms, its class of meanings, and what it takes: an object, a clause, an infinitive, a particle."""

    base: str
    third: str
    past: str
    ing: str
    meaning: int
    object: float  # how often it has one
    clause: float
    infinitive: float
    particle: str
    state: float  # how often its participle counts as an adjective


class WeightedChoice(Generic[T]):
    """Items with weights; a number in [0, 1) draws one of them.

    >>> WeightedChoice("ab", [3, 1])(0.7), WeightedChoice("ab", [3, 1])(0.8)
    ('a', 'b')
    """

    def __init__(self, things: Iterable[T], weights: Iterable[float]):
        self.things: list[T] = list(things)
        self.ends: list[float] = list(accumulate(weights))

    def __call__(self, u: float) -> T:
        return self.things[min(bisect_right(self.ends, u * self.ends[-1]), len(self.things) - 1)]


def zipf(things: Sequence[T]) -> WeightedChoice[T]:
    """Items with falling weights: the first is the most frequent."""
    return WeightedChoice(things, [1.0 / (rank + FLATTEN) for rank in range(1, len(things) + 1)])


@dataclass(frozen=True)
class Lexicon:
    """All content words, and how often a noun or verb of each class has each preposition."""

    nouns: WeightedChoice[Noun]
    alike: list[WeightedChoice[Noun]]  # by class
    verbs: WeightedChoice[Verb]
    adjectives: WeightedChoice[str]
    adverbs: WeightedChoice[str]
    names: WeightedChoice[str]
    likes: dict[str, dict[str, list[float]]]  # "noun" or "verb", preposition, class


@cache
def lexicon() -> Lexicon:
    """The lexicon, which is always the same."""
    rng = np.random.default_rng(20151)
    fresh = _stems(rng)
    verbs = [_verb(rng, fresh) for _ in range(VERBS)]
    nouns = [_noun(rng, fresh) for _ in range(NOUNS)]
    # Nouns that are verbs too, and adjectives that are nouns: more often the common ones, as in English.
    for rank, verb in enumerate(verbs):
        if rng.random() < (0.9 if rank < 200 else 0.7):
            place = min(rank + int(rng.integers(2 * rank + 5)), NOUNS - 1)
            nouns[place] = Noun(verb.base, verb.third, int(rng.integers(CLASSES)))
        elif rng.random() < 0.12:  # the building, a meeting
            nouns[int(rng.integers(NOUNS))] = Noun(verb.ing, verb.ing + "s", int(rng.integers(CLASSES)))
    adjectives = [_adjective(rng, fresh) for _ in range(ADJECTIVES)]
    for rank in range(ADJECTIVES):
        if rng.random() < 0.3:
            noun = nouns[min(rank + int(rng.integers(3 * rank + 5)), NOUNS - 1)]
            adjectives[rank] = noun.singular
    adverbs = [a + "ly" for a in _some(rng, adjectives, ADVERBS)]
    adverbs += _some(rng, adjectives, 25)  # fast, early
    adverbs = [adverbs[k] for k in rng.permutation(len(adverbs))]
    names = [fresh().capitalize() + ("", "", "son", "ton", "ia")[int(rng.integers(5))] for _ in range(NAMES)]
    for rank in range(NAMES):
        if rng.random() < 0.12:  # Mr. Baker
            names[rank] = nouns[int(rng.integers(NOUNS))].singular.capitalize()
    by_class = [[noun for noun in nouns if noun.meaning == k] for k in range(CLASSES)]
    return Lexicon(
        zipf(nouns), [zipf(some) for some in by_class], zipf(verbs), zipf(adjectives), zipf(adverbs), zipf(names),
        _likes(rng),
    )  # fmt: skip


def _likes(rng: np.random.Generator) -> dict[str, dict[str, list[float]]]:
    """Frequencies that are mostly high or low, so that most prepositions decide the attachment."""
    levels = [0.4, 0.7, 1.0, 1.5]
    made = {
        kind: {p: [levels[int(k)] for k in rng.integers(len(levels), size=CLASSES)] for p in PREPOSITIONS}
        for kind in ("noun", "verb")
    }
    made["noun"]["of"], made["verb"]["of"] = [4.0] * CLASSES, [0.1] * CLASSES
    return made


def _stems(rng: np.random.Generator) -> Callable[[], str]:
    """Distinct stems."""
    known: set[str] = set()

    def fresh() -> str:
        while True:
            parts = [ONSETS, VOWELS, CODAS] if rng.random() < 0.5 else [ONSETS, VOWELS, CODAS[:12], VOWELS, CODAS]
            stem = "".join(part[int(rng.integers(len(part)))] for part in parts)
            if stem not in known:
                known.add(stem)
                return stem

    return fresh


def _some(rng: np.random.Generator, words: Sequence[str], count: int) -> list[str]:
    return [words[int(k)] for k in rng.choice(len(words), size=count, replace=False)]


def _noun(rng: np.random.Generator, fresh: Callable[[], str]) -> Noun:
    if rng.random() < 0.45:
        word, meaning = fresh(), int(rng.integers(CLASSES))
    else:
        ending = int(rng.integers(len(NOUN_ENDINGS)))
        word, meaning = fresh() + NOUN_ENDINGS[ending], ending % CLASSES
    return Noun(word, _with_s(word), meaning)


def _with_s(word: str) -> str:
    return word[:-1] + "ies" if word.endswith("ty") else word + ("es" if word[-1] in "sx" else "s")


def _verb(rng: np.random.Generator, fresh: Callable[[], str]) -> Verb:
    ending = int(rng.integers(len(VERB_ENDINGS))) if rng.random() < 0.3 else -1
    base = fresh() + (VERB_ENDINGS[ending] if ending >= 0 else "")
    stem = base[:-1] if base.endswith("e") else base
    past = base[:-1] + "ied" if base.endswith("y") else stem + "ed"
    kind = rng.random()
    return Verb(
        base,
        base[:-1] + "ies" if base.endswith("y") else _with_s(base),
        past,
        stem + "ing",
        int(rng.integers(CLASSES)) if ending < 0 else ending * 2,
        object=float((0.9, 0.1, 0.5)[int(rng.integers(3))]),
        clause=0.6 if kind < 0.1 else 0.0,
        infinitive=0.5 if kind > 0.9 else 0.0,
        particle=("up", "out", "over", "in", "on")[int(rng.integers(5))] if rng.random() < 0.12 else "",
        state=float((0.05, 0.3, 0.9)[int(rng.integers(3))]),
    )


def _adjective(rng: np.random.Generator, fresh: Callable[[], str]) -> str:
    ending = int(rng.integers(len(ADJECTIVE_ENDINGS)))
    return fresh() + (ADJECTIVE_ENDINGS[ending] if rng.random() < 0.6 else "")
