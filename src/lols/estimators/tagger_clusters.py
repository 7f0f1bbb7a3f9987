"""Word clusters: a column that a tagger makes of the words themselves, kept in its model file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lols.errors import LolsError
from lols.io.strings import intern, texts_of
from lols.tasks.corpus import WORD, Corpus

__all__ = ["CLUSTER", "read_clusters", "with_clusters"]

CLUSTER = "cluster"


def read_clusters(path: str) -> dict[str, str]:
    """Read `word TAB cluster` lines, or Brown's `path TAB word TAB count`.

    >>> import tempfile; name = tempfile.mkdtemp() + "/paths"
    >>> _ = open(name, "w").write("0010\\tdog\\t12\\n0011\\tcat\\t7\\n")
    >>> read_clusters(name)
    {'dog': '0010', 'cat': '0011'}
    """
    made = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LolsError(f"{path}: cannot be read ({error}); give a text file of word clusters") from None
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r").split("\t")
        if cells == [""]:
            continue
        if len(cells) == 3:
            made[cells[1]] = cells[0]
        elif len(cells) == 2:
            made[cells[0]] = cells[1]
        else:
            raise LolsError(f"{path}, line {number}: {len(cells)} columns; write 'word TAB cluster' on each line")
    if not made:
        raise LolsError(f"{path}: there are no clusters in it")
    return made


def with_clusters(corpus: Corpus, clusters: Mapping[str, str] | None) -> Corpus:
    """The corpus with a column of its words' clusters; words without one have an empty string."""
    if clusters is None or WORD not in corpus.columns:
        return corpus
    words = corpus.columns[WORD]
    found = intern(texts_of([clusters.get(s, "") for s in words.texts.strings()]))
    column = found._replace(numbers=found.numbers[words.numbers].astype(np.int64))
    return corpus._replace(columns={**corpus.columns, CLUSTER: column})
