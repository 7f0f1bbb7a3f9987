"""A made-up fourth task: put the spaces back into text. All that a task needs is here; the registry needs one line."""

import lols
from lols.tasks.objects import ObjectEstimator


class Spacing(lols.Task):
    sizes = lols.Sizes(state=lambda x: 1 + len(x.letters), actions=2, features=3, steps=lambda x: len(x.letters))

    def encode(line):
        ends = [int(after == " ") for letter, after in zip(line, line[1:] + " ", strict=True) if letter != " "]
        return lols.Example({"letters": [ord(letter) for letter in line if letter != " "]}, {"ends": ends})

    def actions(x, s, legal):  # after each letter: 0, the word goes on, or 1, it ends
        legal[:] = s[0] < len(x.letters)

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = a

    def features(x, s, out):
        following = x.letters[s[0] + 1] if s[0] + 1 < len(x.letters) else 0
        for value in (x.letters[s[0]], lols.mix(x.letters[s[0]], following), s[s[0]] - 2):
            lols.emit(out, value)

    def loss(x, y, s):
        return lols.hamming(s[1:], y.ends)

    def output(x, s):
        return "".join(chr(letter) + " " * int(end) for letter, end in zip(x.letters, s[1:], strict=True)).strip()

    def reference(x, y, s):
        return y.ends[s[0]]


class Spacer(ObjectEstimator):
    """Text without spaces in, text with spaces out; a labelled file has the spaces."""

    TASK, ACTIONS, SAMPLE = Spacing, ("inside", "end"), "a dog\nthe cat\n"


LINES = ["the dog sees a cat", "a cat sees the dog", "the cat barks", "a dog barks", "a bird sings"] * 4
