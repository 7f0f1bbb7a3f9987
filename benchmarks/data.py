"""The corpus of the tagging benchmarks: the WSJ sample where it is at hand, else a synthetic one of the same shape."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Corpus", "Sentence", "count_tokens", "data_directory", "load", "read_rows", "synthetic", "wsj"]


class Sentence(NamedTuple):
    """One tagged sentence; tags are 0-based ids into the corpus's tag list."""

    words: list[str]
    tags: list[int]


class Corpus(NamedTuple):
    """A training part, a test part and the names of the tags."""

    name: str
    train: list[Sentence]
    test: list[Sentence]
    tags: list[str]


def data_directory() -> Path | None:
    """Return ``$LOLS_DATA``, else ``../shared/data`` beside the repository, else None where neither exists."""
    named = os.environ.get("LOLS_DATA")
    directory = Path(named) if named else Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if named and not directory.is_dir():
        raise FileNotFoundError(f"LOLS_DATA names {named}, which is not a directory; correct it or unset it")
    return directory if directory.is_dir() else None


def load(seed: int = 0) -> Corpus:
    """Load the WSJ sample, or generate a corpus like it where the data directory does not hold it."""
    directory = data_directory()
    if directory is not None and (directory / "wsj-train.conll.gz").is_file():
        return wsj(directory)
    return synthetic(seed=seed)


def wsj(directory: Path) -> Corpus:
    """Read the Penn Treebank sample; tags are numbered in the order in which the training part first shows them."""
    numbers: dict[str, int] = {}
    train = _read(directory / "wsj-train.conll.gz", numbers)
    known = len(numbers)
    test = _read(directory / "wsj-test.conll.gz", numbers)
    if len(numbers) > known:
        raise ValueError(f"tags of the test part that training never shows: {list(numbers)[known:]}")
    return Corpus("wsj", train, test, list(numbers))


def synthetic(
    *, n_train: int = 3400, n_test: int = 500, n_tags: int = 45, n_words: int = 12_000, seed: int = 0
) -> Corpus:
    """Generate sentences from a hidden Markov chain: Zipfian words, a third of them with two or three possible tags.

    >>> corpus = synthetic(n_train=3, n_test=1, seed=1)
    >>> len(corpus.train), len(corpus.test), len(corpus.tags)
    (3, 1, 45)
    >>> corpus.train == synthetic(n_train=3, n_test=1, seed=1).train
    True
    """
    generator = np.random.default_rng(seed)
    tag_weights = 1.0 / np.arange(1, n_tags + 1)
    # A small concentration makes each tag prefer a few successors, so that the previous tag is worth knowing.
    transitions = generator.dirichlet(tag_weights / tag_weights.sum() * 8.0 + 1e-3, size=n_tags)
    emissions, words = _lexicon(generator, n_tags, n_words, tag_weights)
    cumulative_transitions, cumulative_emissions = transitions.cumsum(axis=1), emissions.cumsum(axis=1)

    def sentence() -> Sentence:
        length = max(2, int(generator.gamma(4.5, 24 / 4.5)))
        tag, tags, ids = int(generator.choice(n_tags, p=tag_weights / tag_weights.sum())), [], []
        for next_draw, word_draw in generator.random((length, 2)):
            tags.append(tag)
            ids.append(min(int(np.searchsorted(cumulative_emissions[tag], word_draw, side="right")), n_words - 1))
            tag = min(int(np.searchsorted(cumulative_transitions[tag], next_draw, side="right")), n_tags - 1)
        return Sentence([words[i] for i in ids], tags)

    train = [sentence() for _ in range(n_train)]
    test = [sentence() for _ in range(n_test)]
    return Corpus("synthetic", train, test, [f"T{tag}" for tag in range(n_tags)])


def count_tokens(sentences: list[Sentence]) -> int:
    """Return the number of tokens in all sentences together."""
    return sum(len(sentence.words) for sentence in sentences)


def read_rows(path: Path, separator: str = "\t") -> list[list[list[str]]]:
    """Read a gzipped file of one token a line and an empty line after each sentence: sentences, rows, columns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    # Not splitlines(), which would also break a line at the odd separators that a word may hold.
    sentences = [[line.split(separator) for line in block.split("\n") if line] for block in blocks]
    return [rows for rows in sentences if rows]


def _read(path: Path, numbers: dict[str, int]) -> list[Sentence]:
    """Read words and fine tags of a CoNLL-X file, giving new tags the next free number."""
    return [
        Sentence([row[1] for row in rows], [numbers.setdefault(row[4], len(numbers)) for row in rows])
        for rows in read_rows(path)
    ]


def _lexicon(
    generator: np.random.Generator, n_tags: int, n_words: int, tag_weights: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Draw P(word | tag) and the words' spellings; endings hint at a word's main tag, as they do in English."""
    frequency = 1.0 / np.arange(1, n_words + 1)
    main = generator.choice(n_tags, size=n_words, p=tag_weights / tag_weights.sum())
    main[:n_tags] = np.arange(n_tags)  # every tag has at least one word, and a frequent one
    emissions = np.zeros((n_tags, n_words))
    emissions[main, np.arange(n_words)] = frequency
    for share in (0.35, 0.1):  # a second, and for fewer words a third, tag
        ambiguous = np.flatnonzero(generator.random(n_words) < share)
        others = generator.integers(n_tags, size=ambiguous.size)
        emissions[others, ambiguous] += frequency[ambiguous] * generator.uniform(0.1, 0.8, size=ambiguous.size)
    emissions /= emissions.sum(axis=1, keepdims=True)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    endings = ["".join(generator.choice(letters, size=2)) for _ in range(n_tags)]
    regular = generator.random(n_words) < 0.7
    # The number keeps spellings distinct without making them meaningful.
    words = [
        "".join(generator.choice(letters, size=3)) + str(i) + (endings[main[i]] if regular[i] else "")
        for i in range(n_words)
    ]
    return emissions, words
