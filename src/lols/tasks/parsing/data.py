"""Sentences with their trees in columns, from Python or from files, and what is to be known of them before training."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.tasks.parsing.input import punctuation
from lols.tasks.parsing.treebank import OFTEN, Counted, Prepared, Projected, prepare, projected
from lols.tasks.parsing.trees import check_trees
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.input import check_lengths, cut

USUAL = ("upos", "xpos", "feats")  # what a parser looks at, if a file has it
NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TreebankScan:
    """What is to be known of a treebank: its strings, and its relations, as they would be with one root and many."""

    strings: dict[str, list[str]]  # of each column, in the order in which they first occur
    sentences: int
    tokens: int
    several: int = 0  # sentences with several roots
    counts: Mapping[str, Counted] = field(default_factory=dict)  # by how many roots a sentence may have
    fingerprint: str = ""
    use: Mapping[str, str] | None = None  # the further columns of a file, as far as they are filled in
    corpus: Corpus | None = field(default=None, repr=False)  # None for files that were not held

    def __len__(self) -> int:
        return self.sentences

    @property
    def steps(self) -> int:
        """About how many steps a parser takes."""
        return 2 * self.tokens

    @cached_property
    def prepared(self) -> Prepared:
        """What a parser is trained to build."""
        roots = "many" if self.several / max(self.sentences, 1) > OFTEN else "one"
        if roots not in self.counts:
            (roots,) = self.counts
        return prepare(self.counts[roots], self.tokens, roots)

    def joined(self, others: Sequence[TreebankScan]) -> TreebankScan:
        """All of several files."""
        scans = [self, *others]
        use = dict(self.use or {})
        if any(scan.use != self.use for scan in scans):  # of the usual columns, each file has filled in others
            use = {name: name for name in USUAL if any(name in (scan.use or {}) for scan in scans)}
        before = np.cumsum([0, *(scan.sentences for scan in scans)])
        counts = {}
        for roots in self.counts:
            each = [scan.counts[roots] for scan in scans]
            words: Counter[tuple[str, str, str]] = Counter()
            tops: Counter[str] = Counter()
            for one in each:
                words.update(one.words)
                tops.update(one.tops)
            mended = np.concatenate([one.mended + first for one, first in zip(each, before, strict=False)])
            counts[roots] = Counted(words, tops, sum(one.nonprojective for one in each), mended)
        return TreebankScan(
            {n: list(dict.fromkeys(s for scan in scans for s in scan.strings.get(n, ()))) for n in (WORD, *use)},
            int(before[-1]),
            sum(scan.tokens for scan in scans),
            sum(scan.several for scan in scans),
            counts,
            hashlib.sha256("".join(scan.fingerprint for scan in scans).encode()).hexdigest()[:16],
            use,
        )

    def summary(self, files: int) -> str:
        """How much there is, in one line."""
        return f"{self.sentences:,} sentences, {self.tokens:,} tokens in {files} files"

    def facts(self) -> dict[str, int]:
        """How much there is."""
        return {"tokens": self.tokens, "sentences": self.sentences}


@dataclass(frozen=True)
class Treebank:
    """Sentences, and their trees: heads counted within the sentence, -1 for the root, and relations by number.

    `roots` is how many a sentence may have, `"one"`, `"many"`, or `"auto"` for what the trees say; without
    `punctuation`, the heads of words that are all punctuation do not count in the loss.
    """

    corpus: Corpus
    heads: np.ndarray = field(default_factory=lambda: NONE)
    numbers: np.ndarray = field(default_factory=lambda: NONE)
    names: Sequence[str] = ()
    roots: str = "auto"
    punctuation: bool = True
    _projected: dict[str, Projected] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.corpus.offsets.size - 1

    @property
    def size(self) -> int:
        """How many words there are."""
        return self.corpus.tokens

    @property
    def trees(self) -> tuple[np.ndarray, np.ndarray, Sequence[str]]:
        """Heads, numbers of relations, and their names."""
        return self.heads, self.numbers, self.names

    @property
    def weights(self) -> np.ndarray | None:
        """How much the head of each word counts in the loss; None if all count alike."""
        return None if self.punctuation else (~punctuation(self.corpus)).astype(np.float64)

    def check(self) -> None:
        """Raise an error if there is nothing to learn from, or a sentence without words."""
        check_lengths(self.corpus.offsets)
        self.check_trees()

    def check_trees(self) -> None:
        """Raise an error if trees are not known."""
        if self.heads.size != self.size:
            raise LolsError("there are no trees to learn from, or to compare with: give one for each sentence")

    def projected(self, roots: str) -> Projected:
        """The trees as a parser can build them, in sentences with one root, or many."""
        if roots not in self._projected:
            self._projected[roots] = projected(*self.trees, self.corpus.offsets, roots)
        return self._projected[roots]

    def scan(self, *, stream: bool = False) -> TreebankScan:
        """What is to be known of the sentences and their trees."""
        strings = {name: column.texts.strings() for name, column in self.corpus.columns.items()}
        if stream:
            return TreebankScan(strings, len(self), self.size, corpus=self.corpus)
        several = int((check_trees(self.heads, self.corpus.offsets).roots > 1).sum())
        roots = self.roots
        if roots == "auto":
            roots = "many" if several / max(len(self), 1) > OFTEN else "one"
        fingerprint = self.corpus.fingerprint(self.heads, self.numbers)
        counts = {roots: self.counted(roots)}
        return TreebankScan(strings, len(self), self.size, several, counts, fingerprint, corpus=self.corpus)

    def counted(self, roots: str) -> Counted:
        """How often words have a relation, if sentences have one root, or many."""
        return Counted.of(self.heads, self.numbers, self.projected(roots), self.corpus.offsets)

    def cut(self, values: Any) -> list[Any]:
        """Values of words, sentence by sentence."""
        return cut(values, self.corpus.offsets)
