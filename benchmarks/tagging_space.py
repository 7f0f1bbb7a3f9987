"""A tagging space as a user would write it, in plain Python: 45 actions, ten features a state, Hamming loss.

The same task and the same features as `benchmarks.vw.hook` gives to Vowpal Wabbit; like its built-in task it looks at
one tag before. Seven features depend on the input alone, so they are declared as those of an item, the word.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lols import Example, Reference, SearchSpace, Sizes, emit, feature, hamming, look


def start(x, s):
    s[1] = -1


def actions(x, s, legal):
    if s[0] < len(x.words):
        legal[:] = True


def step(x, s, a):
    s[2 + s[0]] = a
    s[1] = a
    s[0] += 1


def items(x, s, out):
    look(out, s[0])


def features(x, s, out):
    emit(out, feature(7, s[1]))
    emit(out, feature(8, s[1], x.words[s[0]]))
    emit(out, feature(9, s[1], x.suffixes[s[0]]))


def cost(x, y, s, a):
    return 1.0 if a != y.tags[s[0]] else 0.0


def loss(x, y, s):
    return hamming(s[2:], y.tags)


def key(x, s):
    return s[0] * 64 + s[1] + 1


def output(x: Any, s: Any) -> list[int]:
    return list(s[2 : 2 + len(x.words)].tolist())


def best(x, y, s):
    return y.tags[s[0]]


def best_costs(x, y, s, out):
    out[:] = 1.0
    out[y.tags[s[0]]] = 0.0


def shape(word: str) -> str:
    """Capitals, small letters and digits as classes, runs of a class as one."""
    classes = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return "".join(c for i, c in enumerate(classes) if i == 0 or c != classes[i - 1])


def make_space(labels: int) -> tuple[SearchSpace, Reference]:
    """The space with its own vocabulary, and the teacher that knows the truth."""
    numbers: dict[str, int] = {}

    @cache
    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    @cache
    def word_type(word: str) -> tuple[int, int, tuple[int, ...], int, int]:
        """Number, suffix, and features of a word as itself, as a left and as a right neighbour: once per word type."""
        own = (feature(0, number(word)), feature(3, number(word[:2])), feature(4, number(word[-2:])))
        itself = (*own, feature(5, number(shape(word))), feature(6))
        return number(word), number(word[-2:]), itself, feature(1, number(word)), feature(2, number(word))

    def encode(sentence: Any) -> Example:
        types = [word_type(w) for w in ("", *sentence.words, "")]
        items = [(*types[i][2], types[i - 1][3], types[i + 1][4]) for i in range(1, len(types) - 1)]
        words, suffixes = [t[0] for t in types[1:-1]], [t[1] for t in types[1:-1]]
        return Example({"words": words, "suffixes": suffixes}, {"tags": sentence.tags}, items)

    sizes = Sizes(
        state=lambda x: 2 + len(x.words), live=2, actions=labels, features=3, items=1, steps=lambda x: len(x.words)
    )
    space = SearchSpace(
        start=start, actions=actions, step=step, features=features, items=items, loss=loss, cost=cost, key=key,
        output=output, encode=encode, sizes=sizes,
    )  # fmt: skip
    return space, Reference(action=best, costs=best_costs)
