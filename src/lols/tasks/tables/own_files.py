"""A classifier in pass mode, whose workers read their own files.

A first map over the files finds what each column holds and which classes there are; what was found is put together in
the order of the files. Settings that were left open are those of large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.engines import ExampleFiles, as_engine
from lols.errors import LolsError
from lols.io.costs import cost_matrix_of
from lols.tasks.tables.confidence import judges_of
from lols.tasks.tables.files import columns_in_use, dev_rows, facts_of, weighed
from lols.tasks.tables.input import missing_texts
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.reading import LabelNumbers, TableReader, TargetColumns, open_files
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.stream import scorer
from lols.tasks.tables.targets import Targets, together
from lols.tasks.tables.task import ClassificationTask
from lols.tasks.tables.tree_of_labels import centres_of, make_tree
from lols.tasks.tables.weights import class_weights


class TableScan(NamedTuple):
    """What is to be known of one file."""

    columns: list[ColumnScan]
    labels: dict[str, int]
    counts: np.ndarray
    rows: int


class OwnTables(NamedTuple):
    """Reads tables on a worker."""

    layout: TableFiles
    wanted: TargetColumns
    kinds: Mapping[str, str | None]
    missing: Sequence[str]
    label_map: Mapping[str, str] | None
    classes: Sequence[Any] | None  # if they are given
    task: ClassificationTask | None = None  # once it is known
    known: Targets | None = None
    by_class: np.ndarray | None = None

    def reader(self, paths: Sequence[str], classes: Sequence[Any] | None) -> TableReader:
        """What reads files."""
        source = open_files(paths, self.layout)
        absent = next((n for n in (*self.kinds, *self.wanted.names) if n not in source.names), None)
        if absent is not None:
            raise LolsError(f"{paths[0]}: there is no column '{absent}', which the first file has")
        labels = LabelNumbers(self.wanted.label, classes, self.label_map)
        return TableReader(source, self.wanted, list(self.kinds), labels, threads=1)

    def scan(self, path: str) -> TableScan:
        """What a file holds."""
        reader = self.reader([path], self.classes)
        scans = [ColumnScan(name, kind, self.missing, len(self.kinds)) for name, kind in self.kinds.items()]
        _, rows = reader.scan(scans, 0, finish=False)
        return TableScan(scans, reader.labels.numbers, reader.counts, rows)

    def rows(self, paths: Sequence[str], encoder: Any, known: Targets) -> tuple[Rows, Targets]:
        """Encoded rows, and what is right."""
        reader = self.reader(paths, known.classes)
        rows, targets = zip(*reader.encoded(encoder, known, np.arange(len(known.classes))), strict=True)
        return joined(list(rows)), weighed(together(targets), self.by_class)

    def examples(self, paths: Sequence[str]) -> Examples:
        """The examples of files."""
        assert self.task is not None and self.known is not None
        return self.task.examples(*self.rows(paths, self.task.encoder, self.known))


def as_one(scans: Sequence[TableScan]) -> TableScan:
    """All files as one."""
    first, labels, counts = scans[0], dict(scans[0].labels), dict(zip(scans[0].labels, scans[0].counts, strict=False))
    for scan in scans[1:]:
        for mine, other in zip(first.columns, scan.columns, strict=True):
            mine.join(other)
        for name, count in zip(scan.labels, scan.counts, strict=False):
            labels.setdefault(name, len(labels))
            counts[name] = counts.get(name, 0) + count
    for column in first.columns:
        column.finish()
    every = np.array([counts.get(name, 0) for name in labels], np.int64)
    return TableScan(first.columns, labels, every, sum(scan.rows for scan in scans))


def fit_own_files(
    estimator: Any,
    paths: Sequence[str],
    layout: TableFiles,
    *,
    dev: str | None,
    weight: str | None,
    tell: Callable[[dict[str, Any]], None],
    **fitting: Any,
) -> dict[str, Any]:
    """Train a classifier on tables that its workers read."""
    use = columns_in_use(estimator, open_files(paths[:1], layout), layout, weight)
    wanted = use.wanted
    missing, label_map = missing_texts(estimator.missing), estimator.label_map
    reader = OwnTables(layout, wanted, use.kinds, missing, label_map, use.classes)
    with as_engine(estimator.engine).start() as workers:
        whole = as_one(list(workers.map(reader.scan, paths)))
    numbers = LabelNumbers(wanted.label, use.classes, label_map)
    numbers.numbers = whole.labels
    classes, places = numbers.classes()
    counts = whole.counts[places.argsort()]
    matrix = None if estimator.cost_matrix is None else cost_matrix_of(estimator.cost_matrix, classes)
    known = Targets(classes, None, matrix, None)
    by_class = class_weights(estimator.class_weight, classes, counts)
    facts = facts_of(whole.columns, whole.rows, dict(zip(classes, counts.tolist(), strict=True)), True)
    tell(facts)
    estimator.n_features_in_, estimator.feature_names_in_ = len(use.names), np.array(use.names, dtype=object)
    estimator.files_ = TableFiles(wanted.label, layout.header, layout.separator, layout.cost_columns).describe()
    estimator.settle(known, None)
    encoder = estimator.make_encoder(whole.columns, whole.rows, estimator.chosen_)
    estimator.batch_size_ = estimator.batch_for(whole.rows)
    few, few_targets = reader.rows(paths[:1], encoder, known)
    centres = partial(centres_of, few, few_targets.cheapest, len(classes))
    tree = make_tree(estimator.chosen_["tree"], classes, counts, centres)
    task = ClassificationTask(classes, tree, encoder, matrix=matrix, skill=estimator.skill)
    how: dict[str, Any] = {"threads": estimator.threads, "seconds": None}
    held = None if dev is None else dev_rows(estimator, dev, layout, wanted, known, by_class, how, encoder)
    made = reader._replace(task=task, known=known, by_class=by_class)
    data = ExampleFiles(list(paths), made.examples, whole.rows, 2 * whole.rows)
    estimator._train(task, lambda: data, scorer(task, held), judges_of(task, known, held), **fitting)
    estimator.classes_ = np.array(classes)
    estimator.model_.report["trials"] = []
    estimator._stream = estimator._model = None
    estimator.look_at(few)
    return facts
