"""From files of rows to a classifier and back: looked at once, then held in memory, or read again in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.threads import Threads, chosen_threads
from lols.errors import ConfigurationError, LolsError, short
from lols.io.costs import are_costs, bare, cost_matrix_of, mapped
from lols.tasks.options import INPUT, option
from lols.tasks.pieces import in_order, one_thread
from lols.tasks.replay import ReplayedFile
from lols.tasks.tables.cells import Cells, NoNumber, as_texts, cells_of_batch, numbers_in, numbers_of
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.input import (
    Targets,
    column_kinds,
    missing_texts,
    names_text,
    size_of,
)
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.scores import ClassScores, scores_of_confusion
from lols.tasks.tables.stream import fit_stream
from lols.tasks.tables.weights import class_weights, product
from lols.training.calibration import Reliability
from lols.training.clock import Clock

if TYPE_CHECKING:
    from lols.io.tables import TableSource

__all__ = [
    "MEMORY",
    "LabelNumbers",
    "PredictedBatch",
    "TableFiles",
    "TablePiece",
    "check_columns",
    "encoded",
    "evaluate_files",
    "fit_files",
    "open_files",
    "predict_batches",
    "table_encoder",
    "table_notes",
]

MEMORY = 1 << 30  # bytes of cells that are held
NUMBER = 8  # bytes
FEW = 12  # classes whose counts are shown


@dataclass(frozen=True)
class TableTraining:
    """Further options of training on files."""

    memory: int = option(
        default=MEMORY,
        help="How much of a table is held in memory, such as 512MB or 2GB: a larger one is read again in every pass.",
        panel=INPUT,
        kind=str,
        initial="1GB",
        parse=size_of,
    )
    weight: str | None = option(
        default=None, help="The column of what the costs of each row are multiplied by.", panel=INPUT
    )


class TablePiece(NamedTuple):
    """Some rows of a table: the cells of the columns in use, and the classes."""

    first: int  # the row that it begins with
    rows: int
    columns: dict[str, Cells]
    labels: np.ndarray | None
    weights: np.ndarray | None = None


def open_files(paths: Sequence[str], layout: TableFiles) -> TableSource:
    """Look at files of rows."""
    from lols.io.tables import open_table

    return open_table(paths, header=layout.header, separator=layout.separator)


def timed(batches: Iterator[Any], seconds: dict[str, float] | None) -> Iterator[Any]:
    """The same batches; how long they were waited for is added to `seconds["reading"]`."""
    while True:
        clock = Clock()
        batch = next(batches, None)
        if seconds is not None:
            seconds["reading"] = seconds.get("reading", 0.0) + clock.working()
        if batch is None:
            return
        yield batch


# --- training ---


class LabelNumbers:
    """Numbers the classes of labels as they come; where they are known beforehand, all others are mistakes."""

    def __init__(self, column: str, classes: Sequence[str] | None, label_map: Mapping[str, str] | None):
        self.column, self.label_map, self.known = column, label_map, classes is not None
        self.numbers: dict[str, int] = {str(name): k for k, name in enumerate(classes if classes is not None else ())}

    def number(self, cells: Cells, first: int, source: TableSource) -> np.ndarray:
        cells = as_texts(cells)
        assert cells.codes is not None
        each, there = np.zeros(len(cells.texts), np.int64), cells.counts() > 0
        for k, (text, name) in enumerate(zip(cells.texts, mapped(cells.texts, self.label_map), strict=True)):
            if not there[k]:  # a type of categories may have some that no row has
                continue
            if self.known and name is not None and name not in self.numbers:
                name = bare(name)
            if not bare(text) or name is None or (self.known and name not in self.numbers):
                row = first + int(np.argmax(cells.codes == k))
                raise LolsError(f"{source.place(row)}, column '{self.column}': {self._reason(text, name)}")
            each[k] = self.numbers.setdefault(name, len(self.numbers))
        if (cells.codes < 0).any():
            row = first + int(np.argmax(cells.codes < 0))
            raise LolsError(f"{source.place(row)}, column '{self.column}': {self._reason('', None)}")
        return each[cells.codes]

    def _reason(self, text: str, name: str | None) -> str:
        if not bare(text):
            return "the label is missing; fill it in, or leave the row out"
        if name is None:
            return f"label '{short(text)}' is not in the label map; add a line {short(bare(text))},CLASS"
        classes = names_text(list(self.numbers), 12)
        return f"label '{short(name)}' is none of the classes {classes}; a label map says which class it belongs to"


def fit_files(
    estimator: Any,
    paths: Sequence[str],
    layout: TableFiles,
    *,
    dev: str | None = None,
    memory: int = MEMORY,
    weight: str | None = None,
    seconds: dict[str, float] | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    **fitting: Any,
) -> dict[str, Any]:
    """Train a classifier on files, and say what was in them.

    Tables whose cells take more than `memory` bytes are read again in every pass, and shuffled as far as a quarter of
    that memory goes. `tell` is called with what is in the files before training begins, and the time from bytes to
    columns of texts is added to `seconds["reading"]`.
    """
    replayed = [path for path in paths if isinstance(path, ReplayedFile)]
    source = open_files([path for path in paths if not isinstance(path, ReplayedFile)], layout)
    goes_on = estimator._goes_on()
    label = layout.label or source.names[-1]
    if label not in source.names:
        raise LolsError(f"{source.paths[0]}: there is no column '{label}'; the columns are {names_text(source.names)}")
    if weight is not None and (weight not in source.names or weight == label):
        others = names_text([name for name in source.names if name != label])
        raise LolsError(f"{source.paths[0]}: there is no column '{weight}' for the weights; the columns are {others}")
    names = [name for name in source.names if name not in (label, weight)]
    if not names:
        raise LolsError(f"{source.paths[0]}: there is no column beside the labels")
    kinds = column_kinds(names, estimator.categorical, estimator.numerical, estimator.ignore, estimator.text)
    reader = _Reader(estimator, source, label, list(kinds), seconds, weight)
    scans = [ColumnScan(name, kind, missing_texts(estimator.missing)) for name, kind in kinds.items()]
    if goes_on:
        known_columns = [column.name for column in estimator.task_.encoder.columns]
        missing = [name for name in known_columns if name not in kinds]
        if missing:
            raise LolsError(f"{source.paths[0]}: there is no column '{missing[0]}', which the model was trained with")
        reader.labels = LabelNumbers(label, estimator.task_.classes, estimator.label_map)
    held, rows = reader.scan(scans, memory)
    if held is None and goes_on:
        raise ConfigurationError(
            f"{source.paths[0]}: the table is larger than --memory, and a model goes on only with tables in memory: "
            "allow more, or give it in parts"
        )
    if held is None and estimator.calibrate and dev is None:
        raise ConfigurationError(
            f"{source.paths[0]}: the table is larger than memory, so nothing is held out of it: calibrate needs dev "
            "data (--dev), or more --memory"
        )
    if held is None and fitting.get("resume"):
        raise ConfigurationError(
            f"{source.paths[0]}: the table is larger than memory, so its training has no checkpoint to resume from; "
            "start again without --resume, or allow more with --memory"
        )
    classes, renumber = reader.classes()
    classes = estimator.task_.classes if goes_on else classes
    matrix = None if estimator.cost_matrix is None else cost_matrix_of(estimator.cost_matrix, classes)
    if not goes_on:
        estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
    estimator.files_ = TableFiles(label, layout.header, layout.separator).describe()
    counts = reader.counts[renumber.argsort()] if renumber.size else reader.counts
    known = Targets(classes, None, matrix, None)
    by_class = class_weights(estimator.class_weight, classes, counts)
    facts = {
        "rows": rows,
        "columns": len(kinds),
        "numbers": sum(scan.kind == "number" for scan in scans),
        "categories": sum(scan.kind == "category" for scan in scans),
        "missing_cells": sum(scan.empty for scan in scans),
        "dropped_cells": sum(scan.dropped for scan in scans),
        "classes": {str(name): int(count) for name, count in zip(classes, counts, strict=True)},
        "in_memory": held is not None,
    }
    texts = sum(scan.kind == "text" for scan in scans)
    facts |= {"texts": texts} if texts else {}
    if dev is not None:  # a mistake is better told before any work
        check_columns(open_files([dev], layout), list(kinds), label)
    if tell is not None:
        tell(facts)
    encoder = partial(estimator.make_encoder, scans, rows)
    dev_rows = None if dev is None else partial(_dev, estimator, dev, layout, label, known, by_class, seconds)
    if held is None:
        estimator.settle(known, None)
        made = encoder(estimator.chosen_)
        pieces = partial(reader.encoded, made, renumber, by_class)
        fit_stream(estimator, pieces, made, known, counts, None if dev_rows is None else dev_rows(made), memory // 4)
        return facts
    labels = renumber[np.concatenate([piece.labels for piece in held])]
    shares: list[tuple[int, np.ndarray]] = []
    weights = None if weight is None else np.concatenate([piece.weights for piece in held])
    for path in replayed:
        more = _Reader(estimator, open_files([path], layout), label, list(kinds), seconds, weight)
        more.labels = reader.labels
        for piece, chosen in _shares(path, list(more.pieces())):
            held.append(piece)
            shares.append((len(held) - 1, chosen))
            labels = np.concatenate([labels, renumber[np.asarray(piece.labels)[chosen]]])
            weights = None if weights is None else np.concatenate([weights, np.asarray(piece.weights)[chosen]])
    weights = product(weights, None if by_class is None else by_class[labels])
    targets = Targets(classes, labels, matrix, None, weights)

    def encode(settings: dict[str, Any]) -> tuple[TableEncoder, Rows]:
        made = estimator.task_.encoder if goes_on else encoder(settings)
        parts = list(in_order(lambda piece: made.encode(piece.columns, piece.rows), held, estimator.threads))
        for k, chosen in shares:
            parts[k] = parts[k].take(chosen)
        return made, joined(parts)

    if not goes_on:
        estimator.settle(targets, encode, rows * len(kinds), facts["numbers"])
    made, encoded_rows = encode(estimator.chosen_)
    held.clear()
    held_out = None if dev_rows is None else dev_rows(made)
    estimator.fit_rows(made, encoded_rows, targets, dev=held_out, goes_on=goes_on, **fitting)
    return facts


def _shares(path: ReplayedFile, pieces: list[TablePiece]) -> Iterator[tuple[TablePiece, np.ndarray]]:
    """The pieces of a table that is replayed, and which rows of each are taken."""
    chosen, first = path.chosen(sum(piece.rows for piece in pieces)), 0
    for piece in pieces:
        own = chosen[(chosen >= first) & (chosen < first + piece.rows)] - first
        first += piece.rows
        if own.size:
            yield piece, own


def table_notes(facts: dict[str, Any]) -> list[str]:
    """What was read, in a few lines."""
    gaps = f", {facts['missing_cells']:,} missing cells" if facts["missing_cells"] else ""
    columns = f"{facts['columns']} column{'s' if facts['columns'] != 1 else ''}"
    kinds = f"{facts['numbers']} of numbers, {facts['categories']} of categories"
    kinds += f", {facts['texts']} of texts" if "texts" in facts else ""
    notes = [f"{facts['rows']:,} rows, {columns} ({kinds}){gaps}"]
    classes = facts["classes"]
    counts = ": " + ", ".join(f"{name} {count:,}" for name, count in classes.items()) if len(classes) <= FEW else ""
    notes.append(f"{len(classes)} class{'es' if len(classes) != 1 else ''}{counts}")
    unseen = sum(count == 0 for count in classes.values())
    if unseen:
        notes.append(f"{unseen} of the classes are in no row, so nothing can be learned about them")
    if facts["dropped_cells"]:
        notes.append(f"{facts['dropped_cells']:,} cells of columns with too many categories: the rarest count as one")
    if not facts["in_memory"]:
        notes.append("larger than --memory: the files are read again in every pass, and there is no checkpoint")
    return notes


class _Reader:
    """Reads pieces of the columns in use."""

    def __init__(
        self,
        estimator: Any,
        source: TableSource,
        label: str,
        names: list[str],
        seconds: dict[str, float] | None,
        weight: str | None = None,
    ):
        self.source, self.label, self.names = source, label, names
        self.threads = chosen_threads(estimator.threads)
        self.seconds, self.weight = seconds, weight
        self.labels = LabelNumbers(label, estimator.classes, estimator.label_map)
        self.counts = np.zeros(0, np.int64)

    def pieces(self) -> Iterator[TablePiece]:
        first = 0
        for batch in timed(self.source.batches(threads=self.threads), self.seconds):
            extra = [self.label] if self.weight is None else [self.label, self.weight]
            columns = cells_of_batch(batch, [*self.names, *extra], self.source.typed)
            labels = self.labels.number(columns.pop(self.label), first, self.source)
            weights = None if self.weight is None else self.weights(columns.pop(self.weight), first)
            yield TablePiece(first, batch.num_rows, columns, labels, weights)
            first += batch.num_rows

    def weights(self, cells: Cells, first: int) -> np.ndarray:
        """The weights of a piece's rows."""
        made = numbers_in(cells)
        wrong = ~are_costs(made)
        if wrong.any():
            row = int(np.argmax(wrong))
            place = f"{self.source.place(first + row)}, column '{self.weight}'"
            raise LolsError(f"{place}: '{short(cells.text(row))}' is no weight; give a number from 0 on")
        return made

    def scan(self, scans: Sequence[ColumnScan], memory: int) -> tuple[list[TablePiece] | None, int]:
        """Look at all rows; the pieces, if they are small enough to be held, and how many rows there are."""
        held: list[TablePiece] | None = []
        size, rows = 0, 0
        try:
            for piece in self.pieces():
                for scan in scans:
                    scan.look(piece.columns[scan.name])
                assert piece.labels is not None
                counts = np.bincount(piece.labels, minlength=len(self.labels.numbers))
                counts[: self.counts.size] += self.counts
                self.counts = counts
                rows += piece.rows
                if held is not None:
                    columns = {scan.name: _lighter(piece.columns[scan.name], scan) for scan in scans}
                    held.append(piece._replace(columns=columns))
                    size += sum(cells.nbytes for cells in columns.values())
                    held = None if size > memory else held
            for scan in scans:
                scan.finish()
        except NoNumber as error:
            raise self.found(error) from None
        return held, rows

    def encoded(
        self, encoder: TableEncoder, renumber: np.ndarray, by_class: np.ndarray | None
    ) -> Iterator[tuple[Rows, np.ndarray, np.ndarray | None]]:
        """The rows in pieces, encoded, with the numbers of their classes, and their weights."""
        for piece in self.pieces():
            assert piece.labels is not None
            labels = renumber[piece.labels]
            weights = product(piece.weights, None if by_class is None else by_class[labels])
            yield encoder.encode(piece.columns, piece.rows), labels, weights

    def found(self, error: NoNumber) -> NoNumber:
        """The same error with its place, for which the files are read once more."""
        for piece in self.pieces():
            cells = piece.columns[error.column]
            if error.text in list(cells.texts):
                return error.at(cells, lambda row, first=piece.first: self.source.place(first + row))  # type: ignore[misc]
        return error

    def classes(self) -> tuple[list[str], np.ndarray]:
        """The classes in their order, and the number that each got before that was known."""
        names = list(self.labels.numbers)
        if self.labels.known:
            return names, np.arange(len(names))
        numbers, wrong = numbers_of(names, missing=())
        order = sorted(names) if wrong >= 0 else [names[k] for k in np.argsort(numbers, kind="stable")]
        places = {name: k for k, name in enumerate(order)}
        return order, np.array([places[name] for name in names])


def _lighter(cells: Cells, scan: ColumnScan) -> Cells:
    """Numbers in place of their texts, where it is settled that they are numbers, and they take less."""
    if not (scan.settled and scan.numeric) or cells.codes is None or cells.nbytes <= NUMBER * cells.size:
        return cells
    numbers, wrong = numbers_of(cells.texts, scan.missing)
    return cells if wrong >= 0 else Cells(numbers=np.append(numbers, np.nan)[cells.codes])  # -1 is the last one


def _dev(
    estimator: Any,
    path: str,
    layout: TableFiles,
    label: str,
    known: Targets,
    by_class: np.ndarray | None,
    seconds: dict[str, float] | None,
    encoder: TableEncoder,
) -> tuple[Rows, Targets]:
    source = open_files([path], layout)
    check_columns(source, [column.name for column in encoder.columns], label)
    reader = _Reader(estimator, source, label, [column.name for column in encoder.columns], seconds)
    reader.labels = LabelNumbers(label, known.classes, estimator.label_map)
    parts: list[Rows] = []
    labels: list[Any] = []
    for piece in reader.pieces():
        parts.append(encoded(encoder, piece, source))
        labels.append(piece.labels)
    numbers = np.concatenate(labels)
    return joined(parts), known._replace(labels=numbers, weights=None if by_class is None else by_class[numbers])


# --- prediction ---


def check_columns(source: TableSource, names: Sequence[str], label: str | None) -> None:
    """Whether a table has the columns that a model looks at."""
    known = set(source.names)
    absent = next((name for name in names if name not in known), None)
    if absent is not None:
        raise LolsError(
            f"{source.paths[0]}: there is no column '{short(absent)}', which the model looks at; the columns are "
            f"{names_text(source.names)}"
        )
    if label is not None and label not in known:
        raise LolsError(f"{source.paths[0]}: there is no column '{label}' for the labels; name it with --label")


def encoded(encoder: TableEncoder, piece: TablePiece, source: TableSource) -> Rows:
    """A piece's rows; a mistake in them says where it is."""
    try:
        return encoder.encode(piece.columns, piece.rows)
    except NoNumber as error:
        raise error.at(piece.columns[error.column], lambda row: source.place(piece.first + row)) from None


class PredictedBatch(NamedTuple):
    """A batch of a table, the numbers of the classes of its rows, and how likely these are to be right."""

    batch: Any
    numbers: np.ndarray
    confidence: np.ndarray | None  # None unless it was asked for


def predict_batches(
    estimator: Any,
    source: TableSource,
    *,
    threads: Threads = None,
    seconds: dict[str, float] | None = None,
    confidence: bool = False,
) -> Iterator[PredictedBatch]:
    """The batches of a table, each with the classes of its rows."""
    encoder = table_encoder(estimator)
    names = [column.name for column in encoder.columns]
    check_columns(source, names, None)
    first = 0

    def work(given: tuple[int, Any]) -> tuple[PredictedBatch, np.ndarray]:
        begin, batch = given
        piece = TablePiece(begin, batch.num_rows, cells_of_batch(batch, names, source.typed), None)
        rows = encoded(encoder, piece, source)
        found = estimator.confident_rows(rows) if confidence else (estimator.predict_rows(rows), None)
        return PredictedBatch(batch, *found), rows.unknown

    def batches() -> Iterator[tuple[int, Any]]:
        nonlocal first
        for batch in timed(source.batches(), seconds):
            yield first, batch
            first += batch.num_rows

    with one_thread(estimator._fitted):
        for predicted, unknown in in_order(work, batches(), threads):
            encoder.unknown = encoder.unknown + unknown
            yield predicted


def evaluate_files(
    estimator: Any, source: TableSource, label: str, *, threads: Threads = None, seconds: dict[str, float] | None = None
) -> ClassScores:
    """Compare predictions with labelled rows, in constant memory."""
    task = estimator.task_
    check_columns(source, [], label)
    labels = LabelNumbers(label, [str(name) for name in task.classes], estimator.label_map)
    count = len(task.classes)
    confusion = np.zeros(count * count, np.int64)
    first, sure = 0, estimator._fitted.calibration is not None
    seen = Reliability.of(np.zeros(0), np.zeros(0)) if sure else None
    for each in predict_batches(estimator, source, threads=threads, seconds=seconds, confidence=sure):
        true = labels.number(cells_of_batch(each.batch, [label], source.typed)[label], first, source)
        confusion += np.bincount(true * count + each.numbers, minlength=count * count)
        if seen is not None and each.confidence is not None:
            seen = seen + Reliability.of(each.confidence, true == each.numbers)
        first += each.batch.num_rows
    return replace(scores_of_confusion(task.classes, confusion.reshape(count, count), task.matrix), reliability=seen)


def table_encoder(estimator: Any) -> TableEncoder:
    """How a trained classifier sees tables."""
    estimator._check_fitted()
    encoder = estimator.task_.encoder
    if not isinstance(encoder, TableEncoder):
        raise LolsError("the model was trained on a sparse matrix; predict from Python, with such a matrix")
    return encoder
