"""Tables in files, read in pieces: the cells of the columns in use, and what is right for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.threads import chosen_threads
from lols.errors import LolsError, short
from lols.io.costs import NUMBER, are_costs, bare, mapped
from lols.tasks.tables.cells import Cells, NoNumber, as_texts, cells_of_batch, numbers_in
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.meanings import WRITTEN, meaning, numbers_of, spellings
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.targets import OF_MATRIX, Targets, names_text
from lols.training.clock import Clock

if TYPE_CHECKING:
    from lols.io.tables import TableSource

FLOAT = 8  # bytes


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


def check_columns(source: TableSource, names: Sequence[str], label: str | None = None) -> None:
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


# --- what is right ---


class TargetColumns(NamedTuple):
    """Which columns say what is right: labels, weights of rows, and what each class costs."""

    label: str | None
    weight: str | None = None
    costs: tuple[str, ...] = ()  # in the order of the classes

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [name for name in (self.label, self.weight, *self.costs) if name is not None]


def target_columns(
    source: TableSource, layout: TableFiles, weight: str | None = None, classes: Sequence[Any] | None = None
) -> tuple[TargetColumns, list[str] | None]:
    """These columns, and the classes if they are known: those given, or those that columns of costs are named after."""
    label, path = layout.label, source.paths[0]
    names = None if classes is None else [str(name) for name in classes]
    costs: tuple[str, ...] = ()
    if layout.cost_columns is None:
        label = label or source.names[-1]
    else:
        begin = layout.cost_columns
        found = [name.removeprefix(begin) for name in source.names if name.startswith(begin) and name != begin]
        names = found if names is None else names
        wrong = set(found) ^ set(names)
        if not found or wrong:
            what = f"that of '{short(min(wrong))}' is missing, or one too many" if found else f"there is no {begin}..."
            raise LolsError(f"{path}: there must be a column {begin}CLASS with the costs of each class: {what}")
        costs = tuple(f"{begin}{name}" for name in names)
    taken = (label, *costs)
    for name, what in ((label, "labels"), (weight, "weights")):
        if name is not None and (name not in source.names or (what == "weights" and name in taken)):
            others = names_text([each for each in source.names if each not in taken])
            raise LolsError(f"{path}: there is no column '{short(name)}' for the {what}; the columns are {others}")
    return TargetColumns(label, weight, costs), names


def costs_or_labels(source: TableSource, layout: TableFiles) -> TableFiles:
    """The layout of a model for a file to evaluate on: without any column of costs, errors by its labels count."""
    begin = layout.cost_columns
    if begin is None or any(name.startswith(begin) and name != begin for name in source.names):
        return layout
    if layout.label is None:
        raise LolsError(
            f"{source.paths[0]}: there are no columns {begin}CLASS, with which the model was trained, and its training "
            "names no labels: name their column with --label to count errors"
        )
    return layout.changed(cost_columns=None)


class LabelNumbers:
    """Numbers the classes of labels as they come; if they are given, all others are mistakes unless they may grow."""

    def __init__(
        self,
        column: str | None,
        classes: Sequence[Any] | None,
        label_map: Mapping[str, str] | None,
        *,
        grows: bool = False,
        of_matrix: bool = False,
    ):
        self.of_matrix = of_matrix
        self.column, self.label_map, self.given = column, label_map, classes is not None
        self.known = self.given and not grows
        self.numbers: dict[str, int] = {str(name): k for k, name in enumerate(classes if classes is not None else ())}

    def number(self, cells: Cells, first: int, source: TableSource) -> np.ndarray:
        cells = as_texts(cells)
        assert cells.codes is not None
        each, there = np.zeros(len(cells.texts), np.int64), cells.counts() > 0
        for k, (text, name) in enumerate(zip(cells.texts, mapped(cells.texts, self.label_map), strict=True)):
            if not there[k]:  # a type of categories may have some that no row has
                continue
            if self.given and name is not None and name not in self.numbers:
                name = self._known_as(name)
            if not bare(text) or name is None or (self.known and name not in self.numbers):
                row = first + int(np.argmax(cells.codes == k))
                raise LolsError(f"{source.place(row)}, column '{self.column}': {self._reason(text, name)}")
            each[k] = self.numbers.setdefault(name, len(self.numbers))
        if (cells.codes < 0).any():
            row = first + int(np.argmax(cells.codes < 0))
            raise LolsError(f"{source.place(row)}, column '{self.column}': {self._reason('', None)}")
        return each[cells.codes]

    def _known_as(self, name: str) -> str:
        """A label as the classes spell it, if one of them means the same."""
        known = bare(name)
        if known not in self.numbers and (known in WRITTEN or meaning(known) != known):
            names = list(self.numbers)
            spelled = spellings(names)
            number = spelled.get(known, spelled.get(meaning(known)))
            known = name if number is None else names[number]
        return known if known in self.numbers else name

    def _reason(self, text: str, name: str | None) -> str:
        if not bare(text):
            return "the label is missing; fill it in, or leave the row out"
        if name is None:
            return f"label '{short(text)}' is not in the label map; add a line {short(bare(text))},CLASS"
        classes = names_text(list(self.numbers), 12) + (OF_MATRIX if self.of_matrix else "")
        fix = "correct it, leave the row out, or train with a label map"
        return f"label '{short(name)}' is none of the classes {classes}; {fix}"

    def classes(self) -> tuple[list[str], np.ndarray]:
        """The classes in their order, and the number there of each in the order of `numbers`."""
        names = list(self.numbers)
        if self.given:
            return names, np.arange(len(names))
        numbers, wrong = numbers_of(names, missing=())
        order = sorted(names) if wrong >= 0 else [names[k] for k in np.argsort(numbers, kind="stable")]
        places = {name: k for k, name in enumerate(order)}
        return order, np.array([places[name] for name in names])


# --- pieces ---


class TablePiece(NamedTuple):
    """Some rows of a table: the cells of the columns in use, and what is right."""

    first: int  # the row that it begins with
    rows: int
    columns: dict[str, Cells]
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    costs: np.ndarray | None = None  # [row, class]


class TableReader:
    """Reads a table piece by piece.

    Parameters
    ----------
    source
        The files.
    wanted
        The columns that say what is right.
    names
        The other columns that are read.
    labels
        Numbers the classes.
    threads, seconds
        For reading; and where the time that it takes is added.

    """

    def __init__(
        self,
        source: TableSource,
        wanted: TargetColumns,
        names: Sequence[str],
        labels: LabelNumbers,
        *,
        threads: Any = None,
        seconds: dict[str, float] | None = None,
    ):
        self.source, self.wanted, self.names, self.labels = source, wanted, list(names), labels
        self.threads, self.seconds = chosen_threads(threads), seconds
        self.counts = np.zeros(0, np.int64)

    def pieces(self) -> Iterator[TablePiece]:
        """The table, from its first row on."""
        first = 0
        for batch in timed(self.source.batches(threads=self.threads), self.seconds):
            yield self.piece(batch, first)
            first += batch.num_rows

    def piece(self, batch: Any, first: int) -> TablePiece:
        """A batch that begins with row `first`."""
        label, weight, costs = self.wanted
        columns = cells_of_batch(batch, [*self.names, *self.wanted.names], self.source.typed)
        by_class = [self._numbers(columns.pop(name), name, first, f"cost; {NUMBER}") for name in costs]
        vectors = np.stack(by_class, axis=1) if costs else None
        labels = np.zeros(0, np.int64) if vectors is None else np.argmin(vectors, axis=1)
        if label is not None:
            labels = self.labels.number(columns.pop(label), first, self.source)
        weights = None
        if weight is not None:
            weights = self._numbers(columns.pop(weight), weight, first, "weight; give a number from 0 on")
        return TablePiece(first, batch.num_rows, columns, labels, weights, vectors)

    def _numbers(self, cells: Cells, column: str, first: int, what: str) -> np.ndarray:
        """Costs or weights of a piece's rows."""
        made = numbers_in(cells)
        wrong = ~are_costs(made)
        if wrong.any():
            row = int(np.argmax(wrong))
            place = f"{self.source.place(first + row)}, column '{short(column)}'"
            raise LolsError(f"{place}: '{short(cells.text(row))}' is not a {what}")
        return made

    def scan(
        self, scans: Sequence[ColumnScan], memory: int, *, finish: bool = True
    ) -> tuple[list[TablePiece] | None, int]:
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
                    size += 0 if piece.costs is None else piece.costs.nbytes
                    held = None if size > memory else held
            for scan in scans if finish else ():
                scan.finish()
        except NoNumber as error:
            raise self._found(error) from None
        return held, rows

    def encoded(self, encoder: TableEncoder, known: Targets, renumber: np.ndarray) -> Iterator[tuple[Rows, Targets]]:
        """The rows in pieces, encoded, with their targets."""
        for piece in self.pieces():
            assert piece.labels is not None
            targets = known._replace(labels=renumber[piece.labels], vectors=piece.costs, weights=piece.weights)
            yield encoded(encoder, piece, self.source), targets

    def _found(self, error: NoNumber) -> NoNumber:
        """The same error with its place, for which the files are read once more."""
        for piece in self.pieces():
            cells = piece.columns[error.column]
            if error.text in list(cells.texts):
                return error.at(cells, lambda row, first=piece.first: self.source.place(first + row))  # type: ignore[misc]
        return error


def _lighter(cells: Cells, scan: ColumnScan) -> Cells:
    """Numbers in place of their texts, where it is settled that they are numbers, and they take less."""
    if not (scan.settled and scan.numeric) or cells.codes is None or cells.nbytes <= FLOAT * cells.size:
        return cells
    numbers, wrong = numbers_of(cells.texts, scan.missing)
    return cells if wrong >= 0 else Cells(numbers=np.append(numbers, np.nan)[cells.codes])  # -1 is the last one
