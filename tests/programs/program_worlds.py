"""Tagging as a program: the same decisions and features as `lols.datasets.worlds.tagging_space`, written as a loop."""

from __future__ import annotations

from typing import Any

import lols
from lols.datasets.worlds import tagging_data

LABELS = 4
DATA = tagging_data(3, labels=LABELS, words=40)
TEST = tagging_data(4, labels=LABELS, words=40, seed=9)


def random_program(seed: int, actions: int = 3, keyed: bool = True) -> lols.Program:
    """A program whose decisions are drawn once and for all: what is legal, right and lost, and when it ends."""

    def draw(*place: int) -> int:
        return lols.feature(seed, *place) % 1000

    def run(search: Any, x: int) -> list[int]:
        made, place = [], 0
        for step in range(6):
            legal = [a for a in range(actions) if draw(step, place, a, 1) < 700] or [draw(step, place) % actions]
            right = [a for a in legal if draw(step, place, a, 2) < 400] or legal[:1]
            seen = {(0, step, place): 1.0, (1, x): 0.5, (2, place): draw(step, place, 3) / 500}
            key = (step, place) if keyed else None
            made.append(search.predict(seen, legal, right if len(right) > 1 else right[0], key=key))
            search.loss(draw(x, step, place, made[-1], 4) % 3 / 4)
            place = (place + made[-1]) % 2
            if draw(step, place, x, 5) < 150:
                break
        return made

    return lols.Program(run, actions)


def features(words: list[int], i: int, one: int, two: int) -> list[Any]:
    """What the space's `features` emits, as tuples of numbers."""
    before, after, further = (words[j] if 0 <= j < len(words) else -1 for j in (i - 1, i + 1, i - 2))
    word = words[i]
    made: list[Any] = [(0, word), (1, before), (2, after), (3, before, word), (4, word, after), (5, further)]
    return [*made, (6, one), (7, one, two), (8, one, word), lols.feature(9)]


def tagging(keyed: bool = True, *, at_end: bool = False, teach: Any = None) -> lols.Program:
    """The program; `teach(search, gold)` says what `predict` is told of the truth."""
    teach = teach or (lambda gold: {"reference": gold})

    def run(search: Any, x: Any) -> list[int]:
        words, tags = x["words"], [-1, -1]
        for i in range(len(words)):
            told = teach(x["tags"][i]) if search.learning else {}
            key = (i, tags[-1], tags[-2]) if keyed else None
            tags.append(search.predict(features(words, i, tags[-1], tags[-2]), range(LABELS), key=key, **told))
            if search.truth and not at_end:
                search.loss(tags[-1] != x["tags"][i])
        if at_end:
            search.loss(lambda: sum(a != b for a, b in zip(tags[2:], x["tags"], strict=True)))
        return tags[2:]

    return lols.Program(run, LABELS)
