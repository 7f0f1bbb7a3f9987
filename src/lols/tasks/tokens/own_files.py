"""Training in pass mode where workers read their own files: a first map over the files collects what must be agreed on.

The driver holds no corpus: it gets the labels, words and column values of each file, in order, and its size. Then each
worker reads the files of its shards, and numbers them as was agreed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lols.tasks.tokens.corpus import Corpus


class FileScan(NamedTuple):
    """What is to be known of one file."""

    strings: dict[str, list[str]]  # of each column, in the order in which they first occur
    tokens: int
    sentences: int
    fingerprint: str
    labels: Any  # as the task needs them

    @classmethod
    def of(cls, corpus: Corpus, fingerprint: str, labels: Any) -> FileScan:
        """A file that has been read."""
        strings = {name: column.texts.strings() for name, column in corpus.columns.items()}
        return cls(strings, corpus.tokens, corpus.offsets.size - 1, fingerprint, labels)


def different(lists: Iterable[Iterable[str]]) -> list[str]:
    """The different strings of all lists, in the order in which they first occur."""
    return list(dict.fromkeys(text for each in lists for text in each))


def total_of(scans: Sequence[FileScan]) -> FileScan:
    """All files as one, but for the labels."""
    columns = different(scan.strings for scan in scans)
    strings = {name: different(scan.strings.get(name, ()) for scan in scans) for name in columns}
    digest = hashlib.sha256("".join(scan.fingerprint for scan in scans).encode()).hexdigest()[:16]
    return FileScan(strings, sum(scan.tokens for scan in scans), sum(scan.sentences for scan in scans), digest, None)
