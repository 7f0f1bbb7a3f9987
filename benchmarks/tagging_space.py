"""A tagging space as a user would write it, in plain Python: 45 actions, ten features a state, Hamming loss.

The same task and the same features as `benchmarks.vw.hook` gives to Vowpal Wabbit.
"""

from __future__ import annotations

from typing import Any

from lols import Example, Reference, SearchSpace, Sizes, emit, feature, look


def start(x, s):
    s[1] = s[2] = -1


def actions(x, s, legal):
    if s[0] < len(x.words):
        legal[:] = True


def step(x, s, a):
    s[3 + s[0]] = a
    s[2] = s[1]
    s[1] = a
    s[0] += 1


def items(x, s, out):
    look(out, s[0])


def features(x, s, out):
    emit(out, feature(6, s[1]))
    emit(out, feature(7, s[1], s[2]))
    emit(out, feature(8, s[1], x.words[s[0]]))


def cost(x, y, s, a):
    return 1.0 if a != y.tags[s[0]] else 0.0


def loss(x, y, s):
    wrong = 0.0
    for i in range(len(x.words)):
        wrong += s[3 + i] != y.tags[i]
    return wrong


def key(x, s):
    return (s[0] * 64 + s[1] + 1) * 64 + s[2] + 1


def output(x: Any, s: Any) -> list[int]:
    return list(s[3 : 3 + len(x.words)].tolist())


def best(x, y, s):
    return y.tags[s[0]]


class Vocabulary:
    """Numbers for strings, in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def shape(word: str) -> str:
    classes = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return "".join(c for i, c in enumerate(classes) if i == 0 or c != classes[i - 1])


def make_space(labels: int) -> tuple[SearchSpace, Reference]:
    """The space with its own vocabulary, and the teacher that knows the truth."""
    number = Vocabulary()

    def encode(sentence: Any) -> Example:
        words = ["", *sentence.words, ""]
        input_features = [
            [feature(k, number(part)) for k, part in enumerate((w, before, after, w[:2], w[-2:], shape(w), ""))]
            for before, w, after in zip(words, words[1:], words[2:], strict=False)
        ]
        x = {"words": [number(w) for w in sentence.words]}
        return Example(x, {"tags": list(sentence.tags)}, items=input_features)

    sizes = Sizes(
        state=lambda x: 3 + len(x.words), live=3, actions=labels, features=3, items=1, steps=lambda x: len(x.words)
    )
    space = SearchSpace(
        start=start, actions=actions, step=step, features=features, items=items, loss=loss, cost=cost, key=key,
        output=output, encode=encode, sizes=sizes,
    )  # fmt: skip
    return space, Reference(action=best)
