"""Word clusters: a column that a tagger makes of the words themselves, kept in its model file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.errors import LolsError
from lols.io.opening import read_text
from lols.io.strings import Column, Interner, Pile, Texts, texts_of
from lols.tasks.tokens.corpus import WORD, Corpus

CLUSTER = "cluster"


def read_clusters(path: str) -> dict[str, str]:
    """Read `word TAB cluster` lines, or Brown's `path TAB word TAB count`.

    >>> import tempfile; name = tempfile.mkdtemp() + "/paths"
    >>> _ = open(name, "w").write("0010\\tdog\\t12\\n0011\\tcat\\t7\\n")
    >>> read_clusters(name)
    {'dog': '0010', 'cat': '0011'}
    """
    made = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
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


class ClusterColumn:
    """A column of words' clusters, for one piece of a data set after the other."""

    def __init__(self, clusters: Mapping[str, str]):
        self.clusters = clusters
        self._names, self._numbers = Interner(), Pile(np.int64)

    def of(self, words: Column) -> Column:
        """The clusters of words whose strings are those of the piece before and more; an empty string for none."""
        buffer, begin, end = words.texts
        new = Texts(buffer, begin[self._numbers.size :], end[self._numbers.size :])
        found = self._names.number(texts_of([self.clusters.get(s, "") for s in new.strings()]))
        self._numbers.add(found.numbers)
        return found._replace(numbers=self._numbers.filled[words.numbers])


def with_clusters(corpus: Corpus, clusters: Mapping[str, str] | None) -> Corpus:
    """The corpus with a column of its words' clusters; words without one have an empty string."""
    if clusters is None or WORD not in corpus.columns:
        return corpus
    return corpus._replace(columns={**corpus.columns, CLUSTER: ClusterColumn(clusters).of(corpus.columns[WORD])})
