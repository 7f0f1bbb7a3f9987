"""One cell of a table: train with a strategy, teacher, learner and seed, and score every pass on the test part."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

from lols.reproduction.data import DataPlace
from lols.reproduction.plan import Cell, options_of

__all__ = ["Run", "measure", "options_for", "reader"]


class Run(NamedTuple):
    """What came of a cell: the score after each pass, of which the last counts, and how long it took."""

    values: list[float]
    seconds: float
    items: int  # words or rows tested on
    most: float  # the most that one of them can cost


def measure(cell: Cell, place: DataPlace) -> Run:
    """Train and score. The test part only scores: the policy of the last pass counts, whatever the others reach.

    All actions are rolled out, as in Algorithm 1; the estimators' own default prunes under the optimal teacher only, so
    that teachers could not be compared.
    """
    began = time.perf_counter()
    data = reader(place)
    history = data.fit(options_for(cell, place)).model_.report["dev"]
    values = [float(entry[place.spec.metric]) for entry in history]
    return Run(values, time.perf_counter() - began, data.items, data.most)


def options_for(cell: Cell, place: DataPlace) -> dict[str, Any]:
    """The options of the estimator that a cell trains."""
    return {
        **options_of(cell.row),
        "reference": cell.teacher,
        "learner": cell.learner,
        "seed": cell.seed,
        "passes": place.passes,
        "progress": False,
    }


def reader(place: DataPlace) -> Any:
    """The data of a table as its task reads them; what was used last is kept."""
    return _READERS[place.spec.task](place)


class _Sentences:
    """Tagging: words, and one column of tags."""

    most = 1.0

    def __init__(self, place: DataPlace):
        from lols.tasks.tagging.files import FileColumns, read_tagged

        columns = FileColumns(label=place.label, use={})
        self.train, self.test = (read_tagged([path], columns) for path in (place.train, place.test))
        self.items = self.test.corpus.tokens

    def fit(self, options: dict[str, Any]) -> Any:
        from lols.tasks.tagging.estimator import Tagger

        tagger = Tagger(prune=None, **options)
        tagger.fit_columns(self.train.corpus, self.train.labels, dev=(self.test.corpus, self.test.labels))
        return tagger


class _Trees:
    """Parsing: words, tags and heads."""

    most = 1.0

    def __init__(self, place: DataPlace):
        from lols.tasks.parsing.files import ParserColumns, read_treebank, treebank

        self.train = treebank(read_treebank([place.train], ParserColumns()), ParserColumns())
        # Only what training has: a column may be filled in in one part and not in the other.
        test = treebank(read_treebank([place.test], ParserColumns()), ParserColumns())
        kept = {name: test.corpus.columns[name] for name in self.train.corpus.columns}
        self.test = test.corpus._replace(columns=kept), *test.trees
        self.items = test.corpus.tokens

    def fit(self, options: dict[str, Any]) -> Any:
        from lols.tasks.parsing.estimator import Parser

        parser = Parser(prune=None, labelling="none", **options)
        parser.fit_columns(self.train.corpus, *self.train.trees, dev=self.test)
        return parser


class _Table:
    """Classification: rows, encoded once, and the costs of the KDD Cup 99."""

    def __init__(self, place: DataPlace):
        from lols.io.costs import read_cost_matrix, read_label_map
        from lols.tasks.tables.estimator import CostSensitiveClassifier

        classes, costs = read_cost_matrix("kdd99")
        self.known: dict[str, Any] = {"classes": classes, "cost_matrix": costs, "label_map": read_label_map("kdd99")}
        self.most = float(costs.max())
        kept: list[Any] = []

        class EncodedData(CostSensitiveClassifier):
            """Reads and encodes, and does not train."""

            def fit_rows(self, encoder: Any, rows: Any, targets: Any, *, dev: Any = None, **_: Any) -> Any:
                kept[:] = [encoder, rows, targets, dev]
                return self

        EncodedData(progress=False, **self.known).fit_files(place.train, dev=place.test)
        self.encoder, self.rows, self.targets, self.test = kept
        self.items = self.test[0].rows

    def fit(self, options: dict[str, Any]) -> Any:
        from lols.tasks.tables.estimator import CostSensitiveClassifier

        model = CostSensitiveClassifier(**self.known, **options)
        model.fit_rows(self.encoder, self.rows, self.targets, dev=self.test)
        return model


# A process keeps the data that it used last: cells come table by table.
_READERS: dict[str, Any] = {
    "tagging": lru_cache(maxsize=1)(_Sentences),
    "parsing": lru_cache(maxsize=1)(_Trees),
    "classification": lru_cache(maxsize=1)(_Table),
}
