"""Taggers of rare spans in noisy text: what the loss, and what O costs, do for precision, recall and F1.

``python benchmarks/rare_spans.py`` prints the table; CRFsuite is in it where ``python-crfsuite`` is installed. The sets
are drawn from `$LOLS_DATA`: few sentences, of words only, in which one word of twenty is in a span, and for
"adjectives" one of seventy. But for that set, words are misspelt, or in lower case.

- names: proper nouns of EWT, by what they are to their heads. Training, dev and test parts are of different kinds of
  text, and most names of the dev and test parts are not in the training part, as in collections of new entities.
- chunks: the rare chunks of CoNLL-2000.
- adjectives: the chunks ADJP and CONJP of CoNLL-2000.
- terms: names, foreign words and compounds of three words and more in CRAFT, in lower case.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.corpora import TaggedSentence, blocks
from benchmarks.data import data_directory
from benchmarks.spans import span_scores
from lols import Tagger

Parts = tuple[list[TaggedSentence], list[TaggedSentence], list[TaggedSentence]]
ROLES = {"nsubj": "SUBJ", "obj": "OBJ", "iobj": "OBJ", "obl": "OBJ", "nmod": "MOD", "compound": "MOD", "amod": "MOD"}
SYSTEMS: dict[str, tuple[dict[str, Any], bool]] = {
    "lols": ({}, False),
    "lols, dev data": ({}, True),
    "lols, hamming": ({"loss": "hamming"}, False),
    "lols, hamming, dev data": ({"loss": "hamming"}, True),
}


def rows_of(name: str, separator: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The kind of text and the words, as rows, of each sentence of a file."""
    directory = data_directory()
    if directory is None:
        raise SystemExit("the data sets are not here: set LOLS_DATA to the folder that holds them")
    for block in blocks(directory / name):
        lines = block.split("\n")
        kind = next((line[12:].split("-")[0] for line in lines if line.startswith("# sent_id = ")), "")
        rows = [line.split(separator) for line in lines if not line.startswith("# ")]
        yield kind, [row for row in rows if separator == " " or row[0].isdecimal()]


def noisy(words: list[str], draw: random.Random) -> list[str]:
    """A third of the sentences in lower case, and one long word of twelve with two letters swapped, or one lost."""
    lower = draw.random() < 0.35
    made = []
    for word in words:
        word = word.lower() if lower else word
        if len(word) > 3 and word.isalpha() and draw.random() < 0.08:
            i = draw.randrange(len(word) - 1)
            word = word[:i] + (word[i + 1] + word[i] + word[i + 2 :] if draw.random() < 0.5 else word[i + 1 :])
        made.append(word)
    return made


def as_tags(kinds: list[str | None]) -> list[str]:
    """Runs of one kind as spans in BIO."""
    return ["O" if b is None else f"I-{b}" if a == b else f"B-{b}" for a, b in pairwise([None, *kinds])]


def thinned(sentences: list[TaggedSentence], draw: random.Random, count: int) -> list[TaggedSentence]:
    """At most so many sentences, drawn such that one word of twenty is in a span."""
    made: list[TaggedSentence] = []
    words = inside = 0
    for sentence in draw.sample(sentences, len(sentences)):
        own = sum(tag != "O" for tag in sentence.tags)
        if inside + own > 0.05 * (words + len(sentence.words)) + 1.5 if own else inside < 0.048 * words:
            continue
        made.append(sentence)
        words, inside = words + len(sentence.words), inside + own
        if len(made) == count:
            break
    return made


def unseen(
    sentences: list[TaggedSentence], train: list[TaggedSentence], draw: random.Random, share: float
) -> list[TaggedSentence]:
    """The sentences without a span of words known from spans in training, and a share of the others."""

    def inside(sentence: TaggedSentence) -> set[str]:
        return {w.lower() for w, tag in zip(sentence.words, sentence.tags, strict=True) if tag != "O"}

    known = set().union(*map(inside, train))
    return [sentence for sentence in sentences if not inside(sentence) & known or draw.random() < share]


def names(draw: random.Random) -> Parts:
    """Proper nouns of EWT."""
    found: dict[str, list[TaggedSentence]] = {}
    for part in ("train", "dev", "test"):
        for kind, rows in rows_of(f"ewt-{part}.conllu.gz", "\t"):
            roles: list[str | None] = [None] * len(rows)
            starts = [i for i, row in enumerate(rows) if row[3] == "PROPN" and (i == 0 or rows[i - 1][3] != "PROPN")]
            for i in starts:
                j = next((k for k in range(i, len(rows)) if rows[k][3] != "PROPN"), len(rows))
                head = next((row for row in rows[i:j] if not i < int(row[6]) <= j), rows[i])
                roles[i:j] = [ROLES.get(head[7].split(":")[0], "OTHER")] * (j - i)
            made = TaggedSentence(noisy([row[1] for row in rows], draw), as_tags(roles))
            found.setdefault(kind, []).append(made)
    train = thinned(found["weblog"] + found["newsgroup"] + found["email"], draw, 2500)
    dev, test = (unseen(found[kind], train, draw, 0.15) for kind in ("answers", "reviews"))
    return train, thinned(dev, draw, 1000), thinned(test, draw, 1300)


def chunks(draw: random.Random, kinds: tuple[str, ...], noise: bool, sizes: tuple[int, int]) -> Parts:
    """Some kinds of chunks of CoNLL-2000."""
    parts: list[list[TaggedSentence]] = []
    for part in ("train", "test"):
        parts.append([])
        for _, rows in rows_of(f"conll2000-{part}.txt.gz", " "):
            words = [row[0] for row in rows]
            tags = [row[2] if row[2][2:] in kinds else "O" for row in rows]
            parts[-1].append(TaggedSentence(noisy(words, draw) if noise else words, tags))
    learned = draw.sample(parts[0], sum(sizes))
    return learned[: sizes[0]], learned[sizes[0] :], parts[1]


def terms(draw: random.Random) -> Parts:
    """Names, foreign words and long compounds of CRAFT."""
    parts: list[list[TaggedSentence]] = []
    for part in ("train", "dev", "test"):
        parts.append([])
        for _, rows in rows_of(f"craft-{part}.conllu.gz", "\t"):
            kinds = [{"NNP": "NAME", "NNPS": "NAME", "FW": "FOREIGN"}.get(row[4]) for row in rows]
            i = 0
            while i < len(rows):
                j = next((k for k in range(i, len(rows)) if rows[k][7] != "compound"), len(rows))
                if j - i >= 2 and j < len(rows) and not any(kinds[i : j + 1]):
                    kinds[i : j + 1] = ["TERM"] * (j + 1 - i)
                i = j + 1
            parts[-1].append(TaggedSentence(noisy([row[1].lower() for row in rows], draw), as_tags(kinds)))
    train = thinned(parts[0], draw, 2000)
    dev, test = (unseen(part, train, draw, 0.3) for part in parts[1:])
    return train, thinned(dev, draw, 800), thinned(test, draw, 1500)


SETS: dict[str, Callable[[random.Random], Parts]] = {
    "names": names,
    "chunks": lambda draw: chunks(draw, ("ADJP", "PRT", "SBAR", "CONJP", "INTJ", "ADVP"), True, (1000, 500)),
    "adjectives": lambda draw: chunks(draw, ("ADJP", "CONJP"), False, (2000, 700)),
    "terms": terms,
}


def ours(parts: Parts, options: dict[str, Any], with_dev: bool, seed: int) -> list[list[str]]:
    """The tags of our tagger for the test part."""
    (X, y), dev, (test, _) = (([s.words for s in part], [s.tags for s in part]) for part in parts)
    tagger = Tagger(seed=seed, progress=False, calibrate=False, **options)
    predicted: list[list[str]] = tagger.fit(X, y, dev=dev if with_dev else None).predict(test)
    return predicted


def main() -> None:
    """Print the table: means over seeds, each with a draw of the sets of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], help="which sets; all by default")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    try:
        from benchmarks.crfsuite import crfsuite
    except ImportError:
        crfsuite = None  # type: ignore[assignment]
    console = Console()
    table = Table("set", "system", "precision", "recall", "F1", title=f"Rare spans, {options.seeds} seeds")
    for name in options.sets or SETS:
        found: dict[str, list[Any]] = {}
        for seed in range(options.seeds):
            parts = SETS[name](random.Random(seed))
            gold = [sentence.tags for sentence in parts[2]]
            for system, (chosen, with_dev) in SYSTEMS.items():
                found.setdefault(system, []).append(span_scores(gold, ours(parts, chosen, with_dev, seed)))
            if crfsuite is not None:
                made = crfsuite(parts[0], parts[2], seed=1 + seed).predictions
                found.setdefault("CRFsuite, averaged perceptron", []).append(span_scores(gold, made))
        for system, scores in found.items():
            table.add_row(name, system, *(f"{100 * statistics.mean(each):.1f}" for each in zip(*scores, strict=True)))
    console.print(table)


if __name__ == "__main__":
    main()
