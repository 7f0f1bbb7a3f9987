"""Text chunking as a task of one's own: noun phrases, verb groups and nine more kinds, marked word by word.

The data are those of the CoNLL-2000 shared task (Tjong Kim Sang & Buchholz 2000): words, their parts of speech as a
tagger saw them, and B (begins a chunk), I (inside it) or O (outside). Chunks are scored as its script `conlleval` does.

    python examples/chunking.py              # where LOLS_DATA names the folder of data; else on sentences made here
    python examples/chunking.py --seeds 1    # one model of each kind instead of three
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from helpers.phrases import generate
from rich.console import Console
from rich.table import Table

import lols
from lols import Sizes, emit, feature, hamming, look
from lols.kernels.kernel import compile_seconds
from lols.tasks.tagging.span_scores import span_scores

KINDS = "ADJP ADVP CONJP INTJ LST NP PP PRT SBAR UCP VP"
TAGS = ["O", *(f"{mark}-{kind}" for kind in KINDS.split() for mark in "BI")]  # B is odd, and I the number after it
WITH_TAG = [
    8,
    15,
    20,
    23,
]  # the looks that are seen beside the last tag: the word, its part of speech, and those around it


# --- the task ---------------------------------------------------------------------------------------------------------


def may_follow(before, tag):
    """Whether a tag may stand after another: I after B or I of its own kind, all others anywhere."""
    return tag == 0 or tag % 2 == 1 or before == tag or before == tag - 1


class Chunks(lols.Task):
    """The state: how many words are done, the last two tags, then all of them.

    A word is two items: all that it looks like, and the part of that which is seen together with the last tag.
    """

    sizes = Sizes(state=lambda x: 3 + x.length, actions=23, features=1, steps=lambda x: x.length, items=2, roles=24)
    nonnegative = True

    def encode(sentence):
        return lols.Example({"length": len(sentence["tags"])}, {"tags": sentence["numbers"]}, sentence["items"])

    def actions(x, s, legal):
        for a in range(23):
            legal[a] = s[0] < x.length and may_follow(s[1], a)

    def step(x, s, a):
        s[3 + s[0]] = a
        s[0], s[1], s[2] = s[0] + 1, a, s[1]

    def items(x, s, out):
        look(out, s[0])
        look(out, x.length + s[0], 1 + s[1])

    def features(x, s, out):
        emit(out, feature(0, s[1], s[2]))

    def key(x, s):
        return (s[0] * 23 + s[1]) * 23 + s[2]

    def cost(x, y, s, a):
        return 1.0 if a != y.tags[s[0]] else 0.0

    def loss(x, y, s):
        return hamming(s[3:], y.tags)

    def output(x, s):
        return [TAGS[a] for a in s[3:]]

    def reference(x, y, s):
        return y.tags[s[0]] if may_follow(s[1], y.tags[s[0]]) else y.tags[s[0]] - 1


# --- what a word looks like -------------------------------------------------------------------------------------------


def looks(sentence: dict[str, Any]) -> list[list[str]]:
    """Words and parts of speech within two words, alone and in neighbouring pairs and triples; affixes; capitals."""
    words, pos = ["<<", "<", *sentence["words"], ">", ">>"], ["<<", "<", *sentence["pos"], ">", ">>"]
    made = []
    for i in range(2, len(words) - 2):
        word = words[i]
        row = [f"p{word[:2]}", f"q{word[:3]}", f"s{word[-2:]}", f"t{word[-3:]}", f"l{word.lower()}"]
        row += [f"u{word[:1].isupper()}{any(c.isdigit() for c in word)}{'-' in word}"]
        row += [f"w{k}{words[i + k]}" for k in (-2, -1, 0, 1, 2)]
        row += [f"v{k}{words[i + k]} {words[i + k + 1]}" for k in (-1, 0)]
        for size in (1, 2, 3):
            row += [f"{size}{k}{' '.join(pos[i + k : i + k + size])}" for k in range(-2, 4 - size)]
        made.append(row)
    return made


def prepared(sentences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sentences with numbers for tags, and their items: all looks of each word, then those beside the last tag."""
    made = []
    for sentence in sentences:
        rows = [lols.text(row) for row in looks(sentence)]
        numbers = [TAGS.index(tag) for tag in sentence["tags"]]
        made.append(sentence | {"numbers": numbers, "items": [*rows, *(row[WITH_TAG] for row in rows)]})
    return made


# --- data -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    """The sentences of a file: words, parts of speech and tags."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = [[line.split(" ") for line in block.split("\n") if line] for block in file.read().split("\n\n")]
    return [dict(zip(("words", "pos", "tags"), map(list, zip(*rows)))) for rows in blocks if rows]


def data_files() -> list[Path]:
    """The training and the test file, in `$LOLS_DATA` or in `../shared/data` beside the repository; none elsewhere."""
    folder = os.environ.get("LOLS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    paths = [Path(folder, f"conll2000-{part}.txt.gz") for part in ("train", "test")]
    return paths if all(path.is_file() for path in paths) else []


# --- the comparison ---------------------------------------------------------------------------------------------------

PASSES = 5


def learn(train: Any, **choices: Any) -> lols.Model:
    """Train with the settings chosen on the last tenth of the training file."""
    options: dict[str, Any] = {"passes": PASSES, "learner": lols.LearnerSettings(rate=0.06)} | choices
    return lols.train(Chunks, prepared(train), **options)


def ours(train: Any, test: Any, seed: int, **choices: Any) -> list[list[str]]:
    """This task."""
    return learn(train, seed=seed, **choices).predict(prepared(test))


def builtin(train: Any, test: Any, seed: int) -> list[list[str]]:
    """The library's own tagger, which knows spans."""

    def rows(sentences: Any) -> list[Any]:
        return [[{"word": w, "pos": p} for w, p in zip(s["words"], s["pos"])] for s in sentences]

    tagger = lols.Tagger(seed=seed, progress=False).fit(rows(train), [s["tags"] for s in train])
    return list(tagger.predict(rows(test)))


def crfsuite(train: Any, test: Any, seed: int) -> list[list[str]]:
    """A linear chain (Okazaki 2007) by ten rounds of the averaged perceptron, with the same `looks`."""
    import pycrfsuite

    order = np.random.default_rng(seed).permutation(len(train))
    trainer = pycrfsuite.Trainer(algorithm="ap", params={"max_iterations": 10}, verbose=False)
    for k in order:
        trainer.append(looks(train[k]), train[k]["tags"])
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/crf")
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/crf")
        return [tagger.tag(looks(sentence)) for sentence in test]


def scores(test: Any, guesses: list[list[str]]) -> dict[str, float]:
    """F1 of chunks, and the share of tags that are right."""
    ends = np.cumsum([0, *(len(sentence["tags"]) for sentence in test)])
    truth = np.array([TAGS.index(tag) for sentence in test for tag in sentence["tags"]])
    found = np.array([TAGS.index(tag) for tags in guesses for tag in tags])
    return {"f1": span_scores(truth, found, ends, TAGS, "bio").f1, "accuracy": float(np.mean(truth == found))}


def compare(train: Any, test: Any, seeds: range, compiled: bool = True) -> dict[str, Any]:
    """The scores of each system, for each seed, and its seconds: features, training and prediction."""
    systems: dict[str, Any] = {
        "this task, reference roll-outs": lambda seed: ours(train, test, seed, roll_out="reference", compiled=compiled),
        "this task, LOLS": lambda seed: ours(train, test, seed, compiled=compiled),
        "lols.Tagger": lambda seed: builtin(train, test, seed),
        "CRFsuite, averaged perceptron": lambda seed: crfsuite(train, test, seed),
    }
    found: dict[str, Any] = {}
    for name, system in systems.items():
        if name.startswith("CRFsuite") and not find_spec("pycrfsuite"):
            continue
        for seed in seeds:
            began, compiling = time.perf_counter(), compile_seconds()
            row = scores(test, system(seed))
            row["seconds"] = time.perf_counter() - began - (compile_seconds() - compiling)
            for key, value in row.items():
                found.setdefault(name, {}).setdefault(key, []).append(value)
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    table = Table("system", "F1 of chunks, %", "tags right, %", "seconds")
    for name, row in found.items():
        cells = []
        for key in ("f1", "accuracy"):
            rate = 100 * np.array(row[key])
            cells.append(f"{rate.mean():.2f}" + (f" ± {rate.std(ddof=1):.2f}" if len(rate) > 1 else ""))
        table.add_row(name, *cells, f"{np.mean(row['seconds']):.1f}")
    Console().print(table)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Run the comparison, and print it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="models of each kind (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed, and that of generated sentences")
    parser.add_argument("--sentences", type=int, default=1500, help="how many to make without data (default 1500)")
    parser.add_argument("--generated", action="store_true", help="make sentences even where the data are at hand")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object, and nothing else")
    parser.add_argument("--uncompiled", action="store_true", help="run as plain Python: slow, for few sentences")
    chosen = parser.parse_args(argv)
    if chosen.seeds < 1 or chosen.sentences < 10:
        parser.error("--seeds is at least 1, --sentences at least 10")
    paths = [] if chosen.generated else data_files()
    made = [] if paths else generate(chosen.sentences, chosen.seed)
    cut = len(made) * 2 // 3
    train, test = map(read, paths) if paths else (made[:cut], made[cut:])
    if not chosen.json:
        what = "CoNLL-2000" if paths else "generated sentences, for the data are not in $LOLS_DATA"
        print(f"{what}: {len(train):,} sentences to learn from, {len(test):,} to test on")
    found = compare(train, test, range(chosen.seed, chosen.seed + chosen.seeds), not chosen.uncompiled)
    if chosen.json:
        print(json.dumps({"data": "conll2000" if paths else "generated", "systems": found}))
    else:
        show(found)
    return found


if __name__ == "__main__":
    main()
