"""One cell of a table: train with a strategy, teacher, learner and seed, and score every pass on the test part."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from lols.reproduction.data import DataPlace
from lols.reproduction.plan import Cell, options_of


class Run(NamedTuple):
    """What came of a cell: the score after each pass, of which the last counts, and how long it took."""

    values: list[float]
    seconds: float
    items: int  # words or rows tested on
    most: float  # the most that one of them can cost


class CellData(NamedTuple):
    """The data of a table, read and encoded."""

    fit: Callable[..., Any]  # trains an estimator with the given options, scored on the test part
    test: Any
    items: int
    most: float = 1.0


def measure(cell: Cell, place: DataPlace) -> Run:
    """Train and score. The test part only scores: the policy of the last pass counts, whatever the others reach.

    All actions are rolled out, as in Algorithm 1; the estimators' own default prunes under the optimal teacher only, so
    that teachers could not be compared.
    """
    began = time.perf_counter()
    data = data_of(place)
    history = data.fit(**options_for(cell, place)).model_.report["dev"]
    values = [float(entry[place.spec.printed.metric]) for entry in history]
    return Run(values, time.perf_counter() - began, data.items, data.most)


def options_for(cell: Cell, place: DataPlace) -> dict[str, Any]:
    """The options of the estimator that a cell trains."""
    of_cell = {"reference": cell.teacher, "learner": cell.learner, "seed": cell.seed}
    alone = {"threads": 1, "calibrate": False, "progress": False}  # cells run at the same time
    return {**options_of(cell.row), **of_cell, "passes": place.spec.passes, **alone}


@lru_cache(maxsize=3)
def data_of(place: DataPlace) -> CellData:
    """The data of a table as its task reads them; a process keeps what it used last."""
    return {"tagging": _sentences, "parsing": _trees, "classification": _rows}[place.spec.printed.task](place)


def _sentences(place: DataPlace) -> CellData:
    """Tagging: words, and one column of tags."""
    from lols.tasks.tagging.estimator import Tagger
    from lols.tasks.tagging.files import read_tagged
    from lols.tasks.tagging.options import FileColumns

    columns = FileColumns(label=place.label, use={})
    train, test = (read_tagged([path], columns) for path in (place.train, place.test))
    held = test.corpus, test.labels

    def fit(**options: Any) -> Tagger:
        return Tagger(prune=None, **options).fit_columns(train.corpus, train.labels, dev=held)

    return CellData(fit, held, test.corpus.tokens)


def _trees(place: DataPlace) -> CellData:
    """Parsing: words, tags and heads."""
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.parsing.files import read_treebanks
    from lols.tasks.parsing.options import ParserColumns

    train, test, _ = read_treebanks([place.train], place.test, ParserColumns())
    assert test is not None
    held = test.corpus, *test.trees

    def fit(**options: Any) -> Parser:
        return Parser(prune=None, labelling="none", **options).fit_columns(train.corpus, *train.trees, dev=held)

    return CellData(fit, held, test.corpus.tokens)


def _rows(place: DataPlace) -> CellData:
    """Classification: rows, encoded once, and the costs of the KDD Cup 99."""
    from lols.io.costs import read_cost_matrix, read_label_map
    from lols.tasks.tables.estimator import CostSensitiveClassifier

    classes, costs = read_cost_matrix("kdd99")
    known: dict[str, Any] = {"classes": classes, "cost_matrix": costs, "label_map": read_label_map("kdd99")}
    known |= {"numeric": "bins", "tree": "order", "passes": 5}
    kept: list[Any] = []

    class EncodedData(CostSensitiveClassifier):
        """Reads and encodes, and does not train."""

        def fit_rows(self, *encoded: Any, dev: Any = None, **_: Any) -> Any:
            kept[:] = [encoded, dev]
            return self

    columns = EncodedData(progress=False, **known).fit_files(place.train, dev=place.test).n_features_in_
    train, test = kept

    def fit(**options: Any) -> CostSensitiveClassifier:
        classifier = CostSensitiveClassifier(**known | options)
        classifier.n_features_in_ = columns
        return classifier.fit_rows(*train, dev=test)

    return CellData(fit, test, test[0].rows, float(costs.max()))
