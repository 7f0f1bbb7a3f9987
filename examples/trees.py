"""A search space of one's own: arc-hybrid dependency parsing (Kuhlmann et al. 2011) of sentences from a small grammar.

Of a sentence of n words, the state holds the next word of the buffer, the size of the stack, the stack in n cells, and
the head of each word in n cells; word n is the root. A wrong arc makes others impossible, and the loss is known at the
end only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lols
from lols import emit, feature

__all__ = ["SPACE", "TEACHERS", "sentences"]

SHIFT, RIGHT, LEFT = 0, 1, 2


def start(x, s):
    pass


def actions(x, s, legal):
    legal[SHIFT] = s[0] < len(x.words)
    legal[RIGHT] = s[1] > 1
    legal[LEFT] = s[1] > 0


def step(x, s, a):
    if a == SHIFT:
        s[2 + s[1]] = s[0]
        s[0] += 1
        s[1] += 1
    else:
        s[2 + len(x.words) + s[1 + s[1]]] = new_head(s, a)
        s[1] -= 1


def new_head(s, a):
    """What the top of the stack is attached to: the next word of the buffer, or the word below it."""
    return s[0] if a == LEFT else s[s[1]]


def stacked(x, s, depth):
    return x.words[s[1 + s[1] - depth]] if s[1] > depth else -1


def ahead(x, s, distance):
    return x.words[s[0] + distance] if s[0] + distance < len(x.words) else -2


def features(x, s, out):
    top, below, following = stacked(x, s, 0), stacked(x, s, 1), ahead(x, s, 0)
    emit(out, feature(0))
    emit(out, feature(1, top))
    emit(out, feature(2, below))
    emit(out, feature(3, following))
    emit(out, feature(4, ahead(x, s, 1)))
    emit(out, feature(5, top, below))
    emit(out, feature(6, top, following))
    emit(out, feature(7, below, following))
    emit(out, feature(8, following, ahead(x, s, 1)))
    emit(out, feature(9, top, below, following))
    emit(out, feature(10, stacked(x, s, 2), below, top))


def loss(x, y, s):
    wrong = 0.0
    for i in range(len(x.words)):
        wrong += s[2 + len(x.words) + i] != y.heads[i]
    return wrong


def output(x, s):
    return s[2 + len(x.words) :].tolist()


def encode(obj):
    return lols.Example({"words": obj["words"]}, {"heads": obj["heads"]} if "heads" in obj else None)


SPACE = lols.SearchSpace(
    start=start, actions=actions, step=step, features=features, loss=loss, output=output, encode=encode,
    sizes=lols.Sizes(
        state=lambda x: 2 + 2 * len(x.words), actions=3, features=11, steps=lambda x: 2 * len(x.words)
    ),
)  # fmt: skip


def oracle_costs(x, y, s, out):
    """How many words lose their heads for good by each action: the dynamic oracle of Goldberg & Nivre (2013)."""
    out[:] = 0.0
    for k in range(s[1]):
        out[SHIFT] += y.heads[s[2 + k]] == s[0]
        out[SHIFT] += s[0] < len(x.words) and k < s[1] - 1 and y.heads[s[0]] == s[2 + k]
    if s[1] > 0:
        top = s[1 + s[1]]
        for i in range(s[0], len(x.words)):
            out[LEFT] += y.heads[i] == top
        out[RIGHT] = out[LEFT] + (y.heads[top] >= s[0])
        out[LEFT] += y.heads[top] > s[0] or (s[1] > 1 and y.heads[top] == s[s[1]])


def greedy_action(x, y, s):
    """Makes every right arc as soon as it can, even where words are still to be attached to its dependent."""
    if s[1] > 0 and y.heads[s[1 + s[1]]] == new_head(s, LEFT):
        return LEFT
    if s[1] > 1 and y.heads[s[1 + s[1]]] == new_head(s, RIGHT):
        return RIGHT
    return first_action(x, y, s)


def first_action(x, y, s):
    """The first legal action: attaches every word to the one before it."""
    if s[0] < len(x.words):
        return SHIFT
    return RIGHT if s[1] > 1 else LEFT


TEACHERS = {
    "optimal": lols.Reference(costs=oracle_costs, name="optimal"),
    "suboptimal": lols.Reference(action=greedy_action, name="suboptimal"),
    "bad": lols.Reference(action=first_action, needs_truth=False, name="bad"),
}

VERB, NOUN, DETERMINER, ADJECTIVE, PREPOSITION, ADVERB = range(6)
GRAMMAR: dict[int, tuple[list[tuple[int, float]], list[tuple[int, float]]]] = {
    # what stands to the left and to the right of a word, and how often
    VERB: ([(ADVERB, 0.3), (NOUN, 1.0)], [(NOUN, 0.7), (ADVERB, 0.2), (PREPOSITION, 0.4), (VERB, 0.25)]),
    NOUN: ([(DETERMINER, 0.7), (ADJECTIVE, 0.3), (ADJECTIVE, 0.1)], [(PREPOSITION, 0.3), (VERB, 0.1)]),
    ADJECTIVE: ([(ADVERB, 0.2)], []),
    PREPOSITION: ([], [(NOUN, 1.0)]),
}


def sentences(count: int, seed: int) -> list[Any]:
    """Sentences of 4 to 30 words with their heads."""
    rng = np.random.default_rng(seed)
    made: list[Any] = []

    def grow(kind: int, words: list[int], heads: list[int]) -> int:
        left, right = GRAMMAR.get(kind, ([], []))
        children = [grow(child, words, heads) for child, chance in left if rng.random() < chance]
        position = len(words)
        words.append(8 * kind + min(int(rng.zipf(1.5)), 8) - 1)
        heads.append(-1)
        children += [grow(child, words, heads) for child, chance in right if rng.random() < chance]
        for child in children:
            heads[child] = position
        return position

    while len(made) < count:
        words: list[int] = []
        heads: list[int] = []
        top = grow(VERB, words, heads)
        heads[top] = len(words)
        if 4 <= len(words) <= 30:
            made.append({"words": words, "heads": heads})
    return made
