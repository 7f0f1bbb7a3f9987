"""The problems of the files in this folder, as they were when version 0.2 learned them: they must not change."""

import lols
from lols.bandit.worlds.layout import layout_reference, layout_space

BEFORE = 2


def previous(s):
    """The tag before this word, counted from 1; 0 at the beginning."""
    return s.tags[s.now[0] - 1] if s.now[0] > 0 else 0


class Tagging(lols.Task):
    """Three tags, and a state of named parts; the features call the library, a helper and a constant."""

    columns = lols.Columns(x="words", y="tags")
    sizes = lols.Sizes(
        state=lols.State(now=1, tags=lambda x: len(x.words), doubt=lols.reals(1)),
        actions=3,
        features=3,
        steps=lambda x: len(x.words),
    )

    def actions(x, s, legal):
        legal[:] = s.now[0] < len(x.words)

    def step(x, s, a):
        s.tags[s.now[0]] = a + 1
        s.doubt[0] += 0.5 * (a == 1)
        s.now[0] += 1

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s.now[0]]))
        lols.emit(out, lols.feature(BEFORE, previous(s)), 1.0 + s.doubt[0])
        lols.emit(out, lols.mix(x.words[s.now[0]], previous(s)))

    def loss(x, y, s):
        wrong = 0.0
        for i in range(len(x.words)):
            wrong += s.tags[i] != y.tags[i] + 1
        return wrong

    def output(x, s):
        return (s.tags - 1).tolist()

    def reference(x, y, s):
        return y.tags[s.now[0]]


DATA = [
    {"words": [3, 1, 2], "tags": [0, 1, 2]},
    {"words": [1, 1], "tags": [1, 0]},
    {"words": [2, 3], "tags": [2, 0]},
] * 3


def spell(search, line):
    """A program: does a word end after this letter?"""
    ends = []
    for letter, after in zip(line, line[1:] + " "):
        if letter != " ":
            truth = int(after == " ") if search.truth else None
            ends.append(search.predict([("letter", ord(letter)), ("before", *ends[-1:])], reference=truth))
            search.loss(ends[-1] != truth)
    return ends


LINES = ["a dog", "the cat", "no dog"] * 4


def trainer():
    """What the checkpoint belongs to."""
    from lols.training.trainer import Trainer

    return Trainer(Tagging.space, Tagging.teacher, passes=4, seed=1, compiled=False)


def bandit(log):
    """What the log belongs to."""
    from lols.bandit import StructuredBandit

    return StructuredBandit(layout_space(), layout_reference(), log=log, seed=1, compiled=False)
