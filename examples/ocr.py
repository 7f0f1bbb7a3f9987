"""Handwritten words, letter by letter: a linear policy that sees strokes, and the letters that it has read before.

The data are the words of Kassel (1995) as Taskar, Guestrin & Koller (2003) cut them: 16 × 8 pixels a letter, the first
letter of each word left out, ten folds. Their protocol is ours: train on one fold, test on the other nine.

    python examples/ocr.py               # where LOLS_DATA names the folder of data sets; else on words drawn here
    python examples/ocr.py --folds 1     # one fold instead of ten
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
from helpers.glyphs import WORDS, draw_word
from rich.console import Console
from rich.table import Table

import lols
from lols import emit, feature, hamming, look, mix

BEFORE = 8
FILE = "ocr-letters.tsv.gz"


# --- the task ---------------------------------------------------------------------------------------------------------


class Letters(lols.Task):
    """The state: how many letters are read, then which. What a letter looks like comes with the example, as `items`."""

    settings = {"before": BEFORE}  # noqa: RUF012  (how many letters before are features)
    sizes = lols.Sizes(state=lambda x: 1 + x.length, actions=26, features=BEFORE, steps=lambda x: x.length, items=1)
    nonnegative = True

    def encode(word):
        return lols.Example({"length": len(word["looks"])}, {"letters": word["letters"]}, word["looks"])

    def actions(x, s, legal):
        legal[:] = s[0] < x.length

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = a

    def items(x, s, out):
        look(out, s[0])

    def features(x, s, out):
        read = 0  # the last letter; the last two; ...; and where the word begins
        for back in range(min(s[0] + 1, x.before)):
            read = mix(read, s[s[0] - back] if back < s[0] else -1)
            emit(out, feature(back, read), 4.0)

    def cost(x, y, s, a):
        return 1.0 if a != y.letters[s[0]] else 0.0

    def loss(x, y, s):
        return hamming(s[1:], y.letters)

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        return y.letters[s[0]]


# --- what a letter looks like: lists of features and their values -----------------------------------------------------


def pixels(pictures: np.ndarray) -> list[Any]:
    """The pixels that are on."""
    return sparse(pictures.reshape(len(pictures), -1) * 1.0)


def strokes(pictures: np.ndarray) -> list[Any]:
    """Pixels, and pairs of them that make a piece of a stroke (-, |, \\ and /), each smeared over its neighbourhood."""
    near, maps = np.pad(pictures, ((0, 0), (1, 1), (1, 1))), [pictures * 1.0]
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        maps.append(pictures * 1.0 * near[:, 1 + down : 17 + down, 1 + right : 9 + right])
    made = np.pad(np.stack(maps, 1), ((0, 0), (0, 0), (1, 1), (1, 1)))
    made = made[:, :, :-2] / 4 + made[:, :, 1:-1] / 2 + made[:, :, 2:] / 4
    made = made[:, :, :, :-2] / 4 + made[:, :, :, 1:-1] / 2 + made[:, :, :, 2:] / 4
    return sparse(made.reshape(len(pictures), -1) / 2)


def sparse(rows: np.ndarray) -> list[Any]:
    """What is not zero in each row: where, and how much."""
    return [(where := np.flatnonzero(row), row[where]) for row in rows]


# --- data -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    """The words of the data set, each with its fold, its letters (a is 0) and their pictures."""
    words: dict[str, dict[str, Any]] = {}
    with gzip.open(path, "rt", encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                name, _, fold, letter, dots = line.split()
                word = words.setdefault(name, {"fold": int(fold), "letters": [], "pictures": []})
                word["letters"].append(ord(letter) - ord("a"))
                word["pictures"].append(np.frombuffer(dots.encode(), np.uint8).reshape(16, 8) - ord("0"))
    return [word | {"pictures": np.array(word["pictures"])} for word in words.values()]


def generate(count: int, seed: int, folds: int = 10) -> list[dict[str, Any]]:
    """Words drawn from `glyphs`, in folds."""
    rng, made = np.random.default_rng(seed), []
    for k in range(count):
        word = WORDS[rng.integers(len(WORDS))]
        letters = [ord(letter) - ord("a") for letter in word]
        made.append({"fold": k % folds, "letters": letters, "pictures": draw_word(word, rng)})
    return made


def data_file() -> Path | None:
    """The data set: in `$LOLS_DATA`, else in `../shared/data` beside the repository; None where it is in neither."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("LOLS_DATA", beside), FILE)
    return path if path.is_file() else None


def seen(words: list[dict[str, Any]], looks: Any) -> list[dict[str, Any]]:
    """The words with what their letters look like."""
    made = looks(np.concatenate([word["pictures"] for word in words]))
    ends = np.cumsum([len(word["letters"]) for word in words]).tolist()
    return [word | {"looks": made[end - len(word["letters"]) : end]} for word, end in zip(words, ends, strict=True)]


# --- the comparison ---------------------------------------------------------------------------------------------------

PASSES = 10
FALLING = "linear:1:0"  # β, the probability of the reference in a roll-out, over the rounds of training
SYSTEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "pixels, 1 letter before": (pixels, {"before": 1}),
    "pixels, 8 letters before": (pixels, {}),
    "strokes, 1 letter before": (strokes, {"before": 1}),
    "strokes, 8 letters before": (strokes, {}),
    "the same, β = 0.5": (strokes, {"beta": 0.5}),
    "the same, reference roll-outs": (strokes, {"roll_out": "reference", "beta": None}),
}
LOLS, REFERENCE = "strokes, 8 letters before", "the same, reference roll-outs"
RIVALS = {"CRFsuite, pixels": (pixels, 1.0), "CRFsuite, strokes": (strokes, 0.1)}  # with c2, chosen on fold 0


def accuracy(truth: list[dict[str, Any]], guesses: list[Any]) -> float:
    """The share of letters that are right."""
    right = [a == b for word, guess in zip(truth, guesses, strict=True) for a, b in zip(word["letters"], guess)]
    return float(np.mean(right))


def learn(train: Any, *, before: int = BEFORE, **choices: Any) -> lols.Model:
    """Train with the settings chosen on fold 0 alone."""
    options: dict[str, Any] = {"passes": PASSES, "beta": FALLING} | choices
    return lols.train(Letters(before=before), train, **options)


def crfsuite(train: list[dict[str, Any]], test: list[dict[str, Any]], c2: float) -> tuple[list[Any], float]:
    """What a linear-chain CRF (Okazaki 2007), trained by L-BFGS, makes of the test words; seconds of training."""
    import pycrfsuite

    def rows(word: dict[str, Any]) -> list[dict[str, float]]:
        return [{str(i): v for i, v in zip(ids.tolist(), values.tolist())} for ids, values in word["looks"]]

    began = time.perf_counter()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c2": c2}, verbose=False)
    for word in train:
        trainer.append(rows(word), [str(letter) for letter in word["letters"]])
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/crf")
        took = time.perf_counter() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/crf")
        return [[int(letter) for letter in tagger.tag(rows(word))] for word in test], took


def compare(words: list[dict[str, Any]], folds: list[int], seed: int, compiled: bool = True) -> dict[str, Any]:
    """Accuracy of each system, trained on each of the folds and tested on all others, and its seconds of training."""
    found: dict[str, Any] = {}
    for looks in (pixels, strokes):
        by_fold: dict[int, list[dict[str, Any]]] = {}
        for word in seen(words, looks):
            by_fold.setdefault(word["fold"], []).append(word)
        for fold in folds:
            train = by_fold[fold]
            test = [word for other, part in by_fold.items() if other != fold for word in part]
            for name, (its_looks, choices) in SYSTEMS.items():
                if its_looks is looks:
                    began = time.perf_counter()
                    model = learn(train, seed=seed, compiled=compiled, **choices)
                    took = time.perf_counter() - began - model.report["seconds_compiling"]
                    note(found, f"lols, {name}", accuracy(test, model.predict(test)), took)
            for name, (its_looks, c2) in RIVALS.items():
                if its_looks is looks and find_spec("pycrfsuite"):
                    guesses, took = crfsuite(train, test, c2)
                    note(found, name, accuracy(test, guesses), took)
    return {name: found[name] for name in [*(f"lols, {name}" for name in SYSTEMS), *RIVALS] if name in found}


def note(found: dict[str, Any], name: str, accuracy: float, seconds: float) -> None:
    """Add what one fold gave."""
    row = found.setdefault(name, {"accuracy": [], "seconds": []})
    row["accuracy"].append(accuracy)
    row["seconds"].append(seconds)


def show(found: dict[str, Any], difference: np.ndarray) -> None:
    """Print the table, and the comparison of LOLS with reference roll-outs."""
    table = Table("system", "letters right, %", "training, s a fold")
    for name, row in found.items():
        rate = 100 * np.array(row["accuracy"])
        spread = f" ± {rate.std(ddof=1):.2f}" if len(rate) > 1 else ""
        table.add_row(name, f"{rate.mean():.2f}{spread}", f"{np.mean(row['seconds']):.1f}")
    Console().print(table)
    error = f", standard error {standard_error(difference):.2f}" if len(difference) > 1 else ""
    print(f"LOLS less reference roll-outs, on the same folds: {difference.mean():+.2f}{error}")


def standard_error(values: np.ndarray) -> float:
    """Of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Run the comparison, and print it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten folds to train on (default 10)")
    parser.add_argument("--seed", type=int, default=0, help="of training, and of generated words (default 0)")
    parser.add_argument("--words", type=int, default=2000, help="how many words to draw without data (default 2000)")
    parser.add_argument("--generated", action="store_true", help="draw words even where the data are at hand")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object, and nothing else")
    parser.add_argument("--uncompiled", action="store_true", help="run as plain Python: slow, for few words")
    chosen = parser.parse_args(argv)
    if not 1 <= chosen.folds <= 10 or chosen.words < 20:
        parser.error("--folds is from 1 to 10, --words at least 20")
    path = None if chosen.generated else data_file()
    words = read(path) if path else generate(chosen.words, chosen.seed)
    if not chosen.json:
        letters = sum(len(word["letters"]) for word in words)
        what = FILE if path else f"generated words ({'as asked' if chosen.generated else f'no {FILE} in $LOLS_DATA'})"
        print(f"{what}: {len(words):,} words, {letters:,} letters; train on one fold, test on the other nine")
    found = compare(words, list(range(chosen.folds)), chosen.seed, not chosen.uncompiled)
    difference = 100 * np.subtract(*(found[f"lols, {name}"]["accuracy"] for name in (LOLS, REFERENCE)))
    if chosen.json:
        print(json.dumps({"data": FILE if path else "generated", "systems": found}))
    else:
        show(found, difference)
    return found


if __name__ == "__main__":
    main()
