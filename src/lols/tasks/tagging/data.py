"""Tagged sentences in columns, from Python or from files, and what is to be known of them before training."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lols.errors import LolsError, short
from lols.tasks.tagging.spans import detect_scheme, detect_scheme_columns
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.input import check_lengths, cut

OUTSIDE = "O"


def outside_words(numbers: np.ndarray, names: Sequence[str]) -> int:
    """How many words are in no span, given the numbers of their labels.

    >>> outside_words(np.array([0, 1, 1]), ["B-PER", "O"])
    2
    """
    return int((numbers == list(names).index(OUTSIDE)).sum()) if OUTSIDE in names else 0


@dataclass(frozen=True)
class TagScan:
    """What is to be known of sentences: their strings, their labels, the scheme of these, and how many are O."""

    strings: dict[str, list[str]]  # of each column, in the order in which they first occur
    names: list[str]  # of the labels
    sentences: int
    tokens: int
    scheme: str | None = None
    outside: int = 0
    fingerprint: str = ""
    corpus: Corpus | None = field(default=None, repr=False)  # None for files that only workers have read

    def __len__(self) -> int:
        return self.sentences

    @property
    def steps(self) -> int:
        """How many steps a tagger takes."""
        return self.tokens

    def joined(self, others: Sequence[TagScan]) -> TagScan:
        """All of several files."""
        scans = [self, *others]
        columns = _different(scan.strings for scan in scans)
        names, seen = _different(scan.names for scan in scans), {scan.scheme for scan in scans} - {None}
        scheme = detect_scheme(names)
        return TagScan(
            {name: _different(scan.strings.get(name, ()) for scan in scans) for name in columns},
            names,
            sum(scan.sentences for scan in scans),
            sum(scan.tokens for scan in scans),
            "iob1" if scheme == "bio" and seen == {"iob1"} else scheme,
            sum(scan.outside for scan in scans),
            hashlib.sha256("".join(scan.fingerprint for scan in scans).encode()).hexdigest()[:16],
        )

    def summary(self, files: int) -> str:
        """How much there is, in one line."""
        return f"{self.sentences:,} sentences, {self.tokens:,} tokens, {len(self.names)} labels in {files} files"

    def facts(self) -> dict[str, int]:
        """How much there is."""
        return {"tokens": self.tokens, "sentences": self.sentences}


@dataclass(frozen=True)
class Tagged:
    """Sentences in columns, with the labels of their words as numbers and names."""

    corpus: Corpus
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # empty where labels are not known
    names: Sequence[str] = ()

    def __len__(self) -> int:
        return self.corpus.offsets.size - 1

    @property
    def size(self) -> int:
        """How many words there are."""
        return self.corpus.tokens

    @property
    def labels(self) -> tuple[np.ndarray, Sequence[str]]:
        """Numbers of labels, and their names."""
        return self.numbers, self.names

    def check(self) -> None:
        """Raise an error if there is nothing to learn from, or a sentence without words."""
        check_lengths(self.corpus.offsets)

    def check_known(self, task: Any, otherwise: str = "leave its sentences out") -> None:
        """Labels must be ones that training showed."""
        unseen = np.flatnonzero(task.number(self.names) < 0)
        if unseen.size:
            raise LolsError(f"label '{short(self.names[unseen[0]])}' was never seen in training: {otherwise}")

    def scan(self, *, stream: bool = False) -> TagScan:
        """What is to be known of the sentences."""
        corpus, names = self.corpus, list(self.names)
        strings = {name: column.texts.strings() for name, column in corpus.columns.items()}
        made = TagScan(strings, names, len(self), corpus.tokens, corpus=corpus)
        if stream or not corpus.tokens:
            return made
        scheme = detect_scheme_columns(self.numbers, corpus.offsets, names)
        outside, fingerprint = outside_words(self.numbers, names), corpus.fingerprint(self.numbers)
        return replace(made, scheme=scheme, outside=outside, fingerprint=fingerprint)

    def cut(self, values: Any) -> list[Any]:
        """Values of words, sentence by sentence."""
        return cut(values, self.corpus.offsets)


def _different(lists: Any) -> list[str]:
    """The different strings of all lists, in the order in which they first occur."""
    return list(dict.fromkeys(text for each in lists for text in each))
