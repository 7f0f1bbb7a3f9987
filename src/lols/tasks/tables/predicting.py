"""Predictions for tables in files, batch by batch, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.choosing import Draw
from lols.contract.threads import Threads
from lols.errors import LolsError
from lols.tasks.pieces import in_order, one_thread
from lols.tasks.tables.cells import cells_of_batch
from lols.tasks.tables.data import EncodedTable
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.reading import (
    LabelNumbers,
    TablePiece,
    TableReader,
    TargetColumns,
    check_columns,
    encoded,
    target_columns,
    timed,
)
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scores import ClassScores, scores_of_confusion
from lols.tasks.tables.targets import Targets, together
from lols.training.calibration import Reliability

if TYPE_CHECKING:
    from lols.io.tables import TableSource


class PredictedBatch(NamedTuple):
    """A batch of a table, the numbers of the classes of its rows, and how likely these are to be right."""

    batch: Any
    numbers: np.ndarray
    confidence: np.ndarray | None  # None unless it was asked for


def table_encoder(estimator: Any) -> TableEncoder:
    """How a trained classifier sees tables."""
    estimator._check_fitted()
    encoder = estimator.task_.encoder
    if not isinstance(encoder, TableEncoder):
        raise LolsError("the model was trained on a sparse matrix; predict from Python, with such a matrix")
    return encoder


def labelled_reader(
    estimator: Any, source: TableSource, layout: TableFiles, *, cells: bool = True, labelled: bool = True
) -> TableReader:
    """A reader of what a trained classifier looks at, and of what is right; either may not be wanted."""
    names = [column.name for column in table_encoder(estimator).columns] if cells else []
    check_columns(source, names, layout.label if labelled else None)
    wanted, classes = TargetColumns(None), None
    if labelled:
        wanted, classes = target_columns(source, layout, classes=estimator.task_.classes)
    return TableReader(source, wanted, names, LabelNumbers(wanted.label, classes, estimator.label_map))


def drawn_rows(
    estimator: Any, source: TableSource, layout: TableFiles, limit: int | None, seed: int
) -> tuple[EncodedTable, int]:
    """Rows of a labelled table, of which no more than may be drawn are held, and how many there were."""
    encoder, known, draw = table_encoder(estimator), estimator.task_.known, Draw(limit, seed)
    parts: list[Rows] = []
    targets: list[Targets] = []
    for piece in labelled_reader(estimator, source, layout).pieces():
        kept = draw.more(piece.rows)
        parts.append(encoded(encoder, piece, source).take(kept))
        targets.append(known._replace(labels=piece.labels, vectors=piece.costs).take(kept))
    if not parts:
        raise LolsError(f"{source.paths[0]}: there are no rows; give a table with some")
    return EncodedTable(encoder, joined(parts), together(targets)).take(draw.chosen()), draw.count


def predict_batches(
    estimator: Any,
    source: TableSource,
    *,
    threads: Threads = None,
    seconds: dict[str, float] | None = None,
    confidence: bool = False,
) -> Iterator[PredictedBatch]:
    """The batches of a table, each with the classes of its rows."""
    encoder, model = table_encoder(estimator), estimator._fitted
    names = [column.name for column in encoder.columns]
    check_columns(source, names)
    first = 0

    def work(given: tuple[int, Any]) -> tuple[PredictedBatch, np.ndarray]:
        begin, batch = given
        piece = TablePiece(begin, batch.num_rows, cells_of_batch(batch, names, source.typed))
        rows = encoded(encoder, piece, source)
        found = estimator.task_.classified(model, rows, confidence=confidence)
        return PredictedBatch(batch, *found), rows.unknown

    def batches() -> Iterator[tuple[int, Any]]:
        nonlocal first
        for batch in timed(source.batches(), seconds):
            yield first, batch
            first += batch.num_rows

    with one_thread(model):
        for predicted, unknown in in_order(work, batches(), threads):
            encoder.unknown = encoder.unknown + unknown
            yield predicted


def evaluate_files(
    estimator: Any,
    source: TableSource,
    layout: TableFiles,
    *,
    threads: Threads = None,
    seconds: dict[str, float] | None = None,
) -> ClassScores:
    """Compare predictions with labelled rows, in constant memory."""
    task, reader = estimator.task_, labelled_reader(estimator, source, layout, cells=False)
    count, first, cost = len(task.classes), 0, 0.0
    confusion = np.zeros(count * count, np.int64)
    sure = estimator._fitted.calibration is not None
    seen = Reliability.of(np.zeros(0), np.zeros(0)) if sure else None
    for each in predict_batches(estimator, source, threads=threads, seconds=seconds, confidence=sure):
        truth = reader.piece(each.batch, first)
        assert truth.labels is not None
        confusion += np.bincount(truth.labels * count + each.numbers, minlength=count * count)
        if truth.costs is not None:
            cost += float(truth.costs[np.arange(truth.rows), each.numbers].sum())
        if seen is not None and each.confidence is not None:
            seen = seen + Reliability.of(each.confidence, truth.labels == each.numbers)
        first += truth.rows
    scores = scores_of_confusion(task.classes, confusion.reshape(count, count), task.matrix)
    return replace(scores, reliability=seen, cost=cost / scores.rows if reader.wanted.costs else scores.cost)
