"""The task of `own.lols`, as it was when version 0.1 trained it: it must not change."""

import lols

BEFORE = 2


def previous(s):
    """The tag before this word, counted from 1; 0 at the beginning."""
    return s[s[0]] if s[0] > 0 else 0


class Tagging(lols.Task):
    """Three tags; the features call the library, a helper and a constant."""

    columns = lols.Columns(x="words", y="tags")
    sizes = lols.Sizes(state=lambda x: 1 + len(x.words), actions=3, features=3, steps=lambda x: len(x.words))

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.words)

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = a + 1

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s[0]]))
        lols.emit(out, lols.feature(BEFORE, previous(s)))
        lols.emit(out, lols.mix(x.words[s[0]], previous(s)))

    def loss(x, y, s):
        wrong = 0.0
        for i in range(len(x.words)):
            wrong += s[1 + i] != y.tags[i] + 1
        return wrong

    def output(x, s):
        return (s[1:] - 1).tolist()

    def reference(x, y, s):
        return y.tags[s[0]]


DATA = [
    {"words": [3, 1, 2], "tags": [0, 1, 2]},
    {"words": [1, 1], "tags": [1, 0]},
    {"words": [2, 3], "tags": [2, 0]},
] * 3
