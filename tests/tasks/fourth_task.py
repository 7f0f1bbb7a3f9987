"""A made-up fourth task: put the spaces back into text. All that a task needs is here; the registry needs one line."""

from itertools import pairwise

import lols
from lols.tasks.objects import ObjectEstimator
from lols.tasks.verbs import CertifyOptions, Verbs


class Spacing(lols.Task):
    """After each letter: does a word end there?"""

    columns = lols.Columns(x="letters", y="ends")
    sizes = lols.Sizes(state=lambda x: 1 + len(x.letters), actions=2, features=3, steps=lambda x: len(x.letters))

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.letters)

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = a

    def features(x, s, out):
        following = x.letters[s[0] + 1] if s[0] + 1 < len(x.letters) else 0
        lols.emit(out, lols.feature(0, x.letters[s[0]]))
        lols.emit(out, lols.mix(x.letters[s[0]], following))
        lols.emit(out, lols.feature(1, s[s[0]]))

    def loss(x, y, s):
        wrong = 0.0
        for i in range(len(x.letters)):
            wrong += s[1 + i] != y.ends[i]
        return wrong

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        return y.ends[s[0]]


class Spacer(ObjectEstimator):
    """Text without spaces in, text with spaces out; a labelled file has the spaces."""

    TASK, ACTIONS, SAMPLE = Spacing, ("inside", "end"), "a dog\nthe cat\n"
    VERBS = Verbs("spacer", "lines", "Lines of text.", options={"certify": CertifyOptions})

    def read(self, text, layout):
        lines = [line.strip() + " " for line in text.splitlines() if line.strip()]
        ends = [[int(after == " ") for c, after in pairwise(line) if c != " "] for line in lines]
        return [{"letters": [ord(c) for c in line if c != " "], "ends": e} for line, e in zip(lines, ends, strict=True)]

    def text(self, objects, outputs):
        pairs = [zip(x["letters"], ends, strict=True) for x, ends in zip(objects, outputs, strict=True)]
        return "".join("".join(chr(c) + " " * end for c, end in pair).strip() + "\n" for pair in pairs)
