"""A task of one's own beside the built-in one: the same data, features and learner, in one run: ratios of time.

    python -m benchmarks.own_space [--repeats N] [--passes N] [--json FILE]

Tagging, once as a user writes it (`lols.Task`, plain Python) and once as `lols.Tagger` has it inside. Both go through
the same engine; what differs is the functions that are compiled into it, and how the features of words were stored.
Runs are interleaved, and the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lols
from benchmarks import data
from benchmarks.tagging_space import shape
from lols import emit, feature, hamming, look
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import corpus_of

# The features of the built-in task: seven of the input, three with the tag before. `Tagging` writes the same ten.
TEMPLATES = ["word", "word[-1]", "word[+1]", "prefix2", "suffix2", "shape", "bias"]
TEMPLATES += ["tag[-1]", "word & tag[-1]", "suffix2 & tag[-1]"]


@cache
def word_type(word: str) -> tuple[int, int, tuple[int, ...], int, int]:
    """Hashes of a word and its suffix, and its features as itself, as a left and as a right neighbour."""
    itself, suffix = lols.text(word), lols.text(word[-2:])
    own = (feature(0, itself), feature(3, lols.text(word[:2])), feature(4, suffix), feature(5, lols.text(shape(word))))
    return itself, suffix, (*own, feature(6)), feature(1, itself), feature(2, itself)


class Tagging(lols.Task):
    """Left-to-right tagging with one tag as history."""

    settings = {"labels": 45}  # noqa: RUF012
    nonnegative = True

    def sizes(settings):
        return lols.Sizes(
            state=lambda x: 2 + len(x.words),
            live=2,
            actions=settings.labels,
            features=3,
            items=1,
            steps=lambda x: len(x.words),
        )

    def encode(sentence):
        types = [word_type(word) for word in ("", *sentence.words, "")]
        around = [(*types[i][2], types[i - 1][3], types[i + 1][4]) for i in range(1, len(types) - 1)]
        x = {"words": [t[0] for t in types[1:-1]], "suffixes": [t[1] for t in types[1:-1]]}
        return lols.Example(x, {"tags": sentence.tags}, around)

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.words)

    def step(x, s, a):
        s[2 + s[0]] = a
        s[1] = a + 1
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
        return s[0] * (x.labels + 1) + s[1]

    def output(x, s):
        return s[2:].tolist()

    def reference(x, y, s):
        return y.tags[s[0]]

    def reference_costs(x, y, s, out):
        for a in range(len(out)):
            out[a] = 1.0 if a != y.tags[s[0]] else 0.0


class Side:
    """One of the two: its examples, and timed runs."""

    def __init__(self, name: str, space: Any, reference: lols.Reference, train: Any, test: Any):
        self.name, self.space, self.reference = name, space, reference
        began = time.perf_counter()
        self.train, self.test = train(), test()
        self.encoding = time.perf_counter() - began
        self.training: list[float] = []
        self.predicting: list[float] = []
        self.accuracy = 0.0

    def run(self, passes: int, roll_out: str, *, timed: bool = True) -> None:
        """Train and predict once."""
        model = lols.train(self.space, self.train, self.reference, passes=passes, roll_out=roll_out, seed=1)
        began = time.perf_counter()
        predictions = model.run(self.test)
        seconds = time.perf_counter() - began
        if timed:
            self.training.append(model.report["seconds_total"] - model.report["seconds_compiling"])
            self.predicting.append(seconds)
        tags = self.test.y.tags.values
        self.accuracy = float((predictions.all_actions() == tags).mean())


def sides() -> list[Side]:
    """Both, on the same corpus."""
    corpus = data.load()
    own = Tagging(labels=len(corpus.tags))
    task = TaggingTask(corpus.tags, templates=TEMPLATES)
    order = np.argsort(np.argsort(corpus.tags))  # the built-in task numbers labels in alphabetical order

    def columns(part: list[data.Sentence]) -> lols.Examples:
        numbers = order[np.array([tag for sentence in part for tag in sentence.tags])]
        return task.examples(corpus_of([sentence.words for sentence in part]), numbers)

    train, test = corpus.train, corpus.test
    return [
        Side("lols.Task", own, own.teacher, lambda: lols.Examples(own, train), lambda: lols.Examples(own, test)),
        Side("built in", task.space, task.reference("optimal"), lambda: columns(train), lambda: columns(test)),
    ]


def measure(console: Console, repeats: int, passes: int, roll_outs: list[str]) -> dict[str, Any]:
    """Training and prediction of both under each roll-out."""
    both = sides()
    tokens, held = int(both[0].train.steps.sum()), int(both[0].test.steps.sum())
    table = Table("roll-out", "task", "training, tokens/s", "prediction, tokens/s", "accuracy", "time, of the built-in")
    made: dict[str, Any] = {"encoding_seconds": {side.name: side.encoding for side in both}}
    for roll_out in roll_outs:
        for side in both:
            side.training.clear()
            side.predicting.clear()
            side.run(1, roll_out, timed=False)  # compiles, if need be
        for repeat in range(repeats):
            for side in both[:: 1 if repeat % 2 else -1]:
                side.run(passes, roll_out)
        base = both[1]
        row: dict[str, Any] = {}
        for side in both:
            ratios = [min(side.training) / min(base.training), min(side.predicting) / min(base.predicting)]
            speeds = [passes * tokens / min(side.training), held / min(side.predicting)]
            row[side.name] = {"training": speeds[0], "prediction": speeds[1], "accuracy": side.accuracy}
            shown = f"{ratios[0]:.2f} training, {ratios[1]:.2f} prediction" if side is not base else ""
            counts = [f"{speed:,.0f}" for speed in speeds]
            table.add_row(roll_out, side.name, *counts, f"{100 * side.accuracy:.2f} %", shown)
        pairs = zip(both[0].training, base.training, strict=True)
        row["ratio"] = {
            "training": min(both[0].training) / min(base.training),
            "training, median of pairs": statistics.median(a / b for a, b in pairs),
            "prediction": min(both[0].predicting) / min(base.predicting),
        }
        made[roll_out] = row
    console.print(table)
    return made


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--roll-outs", nargs="*", default=["mixture", "reference", "learned"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    made = measure(Console(width=120), arguments.repeats, arguments.passes, arguments.roll_outs)
    if arguments.json:
        arguments.json.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
