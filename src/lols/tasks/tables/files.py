"""Tables in files: looked at once, then held in memory or read again in every pass; or read by workers.

Workers do not look at files that others read: a first map over the files finds what each column holds and which classes
there are, and what was found is put together in the order of the files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from lols.errors import ConfigurationError, LolsError, shown
from lols.io.costs import cost_matrix_of
from lols.tasks.pieces import in_order
from lols.tasks.replay import ReplayedFile
from lols.tasks.tables.data import Encoder, TableData, TableOptions
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.input import check_lists, column_kinds, missing_texts
from lols.tasks.tables.options import MEMORY, TableFiles
from lols.tasks.tables.reading import (
    LabelNumbers,
    TablePiece,
    TableReader,
    TargetColumns,
    check_columns,
    encoded,
    open_files,
    target_columns,
)
from lols.tasks.tables.rows import NO_ROWS, Rows, joined, some_rows
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.targets import Targets, together
from lols.tasks.tables.weights import class_weights, product

FEW = 12  # classes whose counts are shown

Piece = tuple[Rows, Targets]


class ColumnsInUse(NamedTuple):
    """What is read of a table."""

    wanted: TargetColumns
    classes: list[Any] | None  # if they are known
    kinds: dict[str, str | None]  # of the columns that are looked at
    names: list[str]  # of all columns but those wanted


def columns_in_use(
    options: TableOptions, source: Any, layout: TableFiles, weight: str | None, known: Any = None
) -> ColumnsInUse:
    """The columns of a table, checked; `known` is the task of a model that goes on."""
    check_lists(options)
    given = options.classes if known is None else known.classes
    wanted, classes = target_columns(source, layout, weight, given)
    if wanted.costs and options.cost_matrix is not None and known is None:
        raise ConfigurationError("cost_matrix has no effect beside costs of each row: leave out one of them")
    names = [name for name in source.names if name not in wanted.names]
    if not names:
        raise LolsError(f"{source.paths[0]}: there is no column beside the labels")
    kinds = column_kinds(names, options.categorical, options.numerical, options.ignore, options.text)
    return ColumnsInUse(wanted, classes, dict(kinds), names)


@dataclass(frozen=True)
class TableFormat:
    """How tables are read from files to train on them, here or on a worker.

    Parameters
    ----------
    layout
        How the files are laid out.
    options
        The options of the classifier.
    memory
        The most bytes of cells that are held.
    weight
        The column of the weights of rows.
    goes_on
        The task of a model that goes on.
    use
        The columns in use, once they are settled.
    known
        The classes and what is known of all rows, once that is agreed on.
    by_class
        The weights of classes, likewise.

    """

    layout: TableFiles
    options: TableOptions
    memory: int = MEMORY
    weight: str | None = None
    goes_on: Any = None
    use: ColumnsInUse | None = None
    known: Targets | None = None
    by_class: np.ndarray | None = None

    @property
    def columns(self) -> ColumnsInUse:
        """The columns in use."""
        assert self.use is not None
        return self.use

    def settled(self, paths: Sequence[str]) -> Self:
        """The format with the columns in use of the first file."""
        source = open_files(_own(paths)[:1], self.layout)
        use = columns_in_use(self.options, source, self.layout, self.weight, self.goes_on)
        if self.goes_on is not None:
            absent = [column.name for column in self.goes_on.encoder.columns if column.name not in use.kinds]
            if absent:
                raise LolsError(
                    f"{source.paths[0]}: there is no column '{absent[0]}', which the model was trained with"
                )
        return replace(self, use=use, layout=self.layout.changed(label=use.wanted.label))

    def read(self, paths: Sequence[str]) -> FileTable | KnownFile:
        """The rows of labelled files, which are read when they are needed."""
        return FileTable(self, paths) if self.known is None else KnownFile(self, paths)

    def scan(self, path: str) -> TableScan:
        """What is to be known of one file."""
        source, use = open_files([path], self.layout), self.columns
        absent = next((name for name in (*use.kinds, *use.wanted.names) if name not in source.names), None)
        if absent is not None:
            raise LolsError(f"{path}: there is no column '{absent}', which the first file has")
        labels = LabelNumbers(use.wanted.label, use.classes, self.options.label_map)
        reader, scans = TableReader(source, use.wanted, list(use.kinds), labels, threads=1), self.scans()
        _, rows = reader.scan(scans, 0, finish=False)
        return TableScan(self, [path], scans, labels.numbers, reader.counts, rows)

    def scans(self) -> list[ColumnScan]:
        """What looks at the columns."""
        kinds, missing = self.columns.kinds, missing_texts(self.options.missing)
        return [ColumnScan(name, kind, missing, len(kinds)) for name, kind in kinds.items()]

    def agreed(self, scan: Any) -> Self:
        """The format for files of whose classes all is known."""
        if not isinstance(scan, TableScan):
            return self  # the classes of files that are read here are known when they are learned from
        by_class = class_weights(self.options.class_weight, scan.targets.classes, scan.counts)
        return replace(self, known=scan.targets, by_class=by_class)

    def targets_of(self, classes: Sequence[Any]) -> Targets:
        """Classes and costs, of no row yet."""
        matrix = self.options.cost_matrix
        return Targets(list(classes), None, None if matrix is None else cost_matrix_of(matrix, list(classes)), None)


class FileTable(TableData):
    """Files that are looked at once: then their cells are held in memory, or they are read again in every pass."""

    scans: list[ColumnScan] | None = None
    held: list[TablePiece] | None = None

    def __init__(self, form: TableFormat, paths: Sequence[str]):
        self.form, self.paths, self.layout, self.names = form, list(paths), form.layout, form.columns.names
        self.source = open_files(_own(paths), form.layout)
        self.reading: dict[str, float] = {"reading": 0.0}

    @property
    def seconds(self) -> float:
        """How long it took to read bytes as columns of texts."""
        return self.reading["reading"]

    def check(self) -> None:
        """Look at all rows, once."""
        if self.scans is None:
            self._look()
        super().check()

    def _look(self) -> None:
        """Find out what the columns hold and which classes there are; keep the cells if they are few enough."""
        form, use, goes_on = self.form, self.form.columns, self.form.goes_on
        grows = goes_on is not None and goes_on.matrix is None and not use.wanted.costs
        of_matrix = goes_on is not None and goes_on.matrix is not None
        how: Any = {"grows": grows, "of_matrix": of_matrix}
        self.labels = LabelNumbers(use.wanted.label, use.classes, form.options.label_map, **how)
        self.reader, scans = self._reader(self.source), form.scans()
        self.held, self.looked_at = self.reader.scan(scans, form.memory)
        self.in_memory = self.held is not None
        if goes_on is not None and not self.in_memory:
            raise ConfigurationError(
                f"{self.source.paths[0]}: the table is larger than --memory, and a model goes on only with tables in "
                "memory: allow more, or give it in parts"
            )
        names, self.renumber = self.labels.classes()
        self.known = form.targets_of(names if goes_on is None else _grown(goes_on.classes, names))
        counts = self.reader.counts
        self.counted = counts[self.renumber.argsort()] if self.renumber.size else counts
        self.by_class = class_weights(form.options.class_weight, self.known.classes, self.counted)
        self.scans, self.targets, self.described = scans, self.known, self._described(scans)
        if self.held is not None:
            self._hold(self.held)

    def _described(self, scans: Sequence[ColumnScan]) -> dict[str, Any]:
        classes = self.known.classes
        counts = dict(zip(classes, self.counted.tolist(), strict=True))
        facts = facts_of(scans, self.looked_at, counts, self.in_memory)
        new = [] if self.form.goes_on is None else classes[len(self.form.goes_on.classes) :]
        return facts | ({"new_classes": [str(name) for name in new]} if new else {})

    def _hold(self, held: list[TablePiece]) -> None:
        """Keep all cells, and those of the files of which a share is taken."""
        self.shares: dict[int, np.ndarray] = {}
        self.sources = [self.source] * len(held)
        self.labels.known = True  # what is replayed has no further classes
        for path in self.paths:
            if not isinstance(path, ReplayedFile):
                continue
            old = open_files([path], self.form.layout)
            check_columns(old, [*self.form.columns.kinds, *self.form.columns.wanted.names])
            for piece, chosen in _shares(path, list(self._reader(old).pieces())):
                self.shares[len(held)] = chosen
                held.append(piece)
                self.sources.append(old)
        parts = [_targets(piece, self.known, self.renumber, self.shares.get(k)) for k, piece in enumerate(held)]
        if parts:
            self.targets = weighed(together(parts), self.by_class)

    def _reader(self, source: Any) -> TableReader:
        use, threads = self.form.columns, self.form.options.threads
        return TableReader(source, use.wanted, list(use.kinds), self.labels, threads=threads, seconds=self.reading)

    def __len__(self) -> int:
        return self.looked_at if self.targets.labels is None else self.targets.labels.size

    @property
    def counts(self) -> np.ndarray:
        return self.targets.counts() if self.in_memory else self.counted

    @property
    def cells(self) -> int:
        return self.looked_at * self.described["columns"] if self.in_memory else super().cells

    @property
    def numbers(self) -> int:
        return int(self.described["numbers"])

    # --- rows ---

    def encoder(self, settings: Mapping[str, Any]) -> TableEncoder:
        assert self.scans is not None
        made = self.form.options.encoder(self.scans, self.looked_at, settings)
        if not self.in_memory:
            self.scans.clear()  # in a wide table they take as much as many rows
        return made

    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        assert self.held is not None and isinstance(encoder, TableEncoder)
        pieces = zip(self.held, self.sources, strict=True)
        parts = list(in_order(lambda given: encoded(encoder, *given), pieces, self.form.options.threads))
        for k, chosen in self.shares.items():
            parts[k] = parts[k].take(chosen)
        if last:
            self.held, self.sources = [], []
        return joined(parts)

    def first(self, encoder: Encoder) -> Piece:
        return super().first(encoder) if self.in_memory else next(self.pieces(encoder))

    def sample(self, encoder: Encoder, columns: int) -> Rows:
        """Some rows from everywhere; of a table that memory does not hold, the first."""
        if self.in_memory:
            return super().sample(encoder, columns)
        kept = NO_ROWS
        for rows, _ in self._read(encoder):
            before, kept = kept.rows, some_rows(rows, columns, kept)
            if kept.rows - before < rows.rows:
                break
        return kept

    def pieces(self, encoder: Encoder) -> Iterator[Piece]:
        """The rows and what is right, in pieces that take about a quarter of the memory: these are shuffled."""
        held: list[Piece] = []
        size, room = 0, self.form.memory // 4
        for piece in self._read(encoder):
            held.append(piece)
            size += piece[0].nbytes
            if size >= room:
                whole, held, size = _together(held), [], 0  # what it was made of is not kept while it is learned from
                del piece
                yield whole
                del whole
        if held:
            yield _together(held)

    def _read(self, encoder: Encoder) -> Iterator[Piece]:
        """The same as they are read."""
        assert isinstance(encoder, TableEncoder)
        for rows, targets in self.reader.encoded(encoder, self.known, self.renumber):
            yield rows, weighed(targets, self.by_class)

    def name_for(self, described: Any) -> str:
        """A digest of the names and sizes of the files, and of how they are read."""
        plain, tensors = described
        files = [(path, os.path.getsize(path)) for path in self.source.paths]
        how = [self.layout.describe(), self.form.columns.wanted, self.form.options.label_map, self.form.memory // 4]
        given = [files, how, plain]
        digest = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode())
        arrays = [*(tensors[name] for name in sorted(tensors)), self.by_class]
        for array in arrays:
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # --- what was read ---

    def read_alike(self, dev: FileTable) -> KnownFile:
        return KnownFile(replace(self.form, known=self.known, by_class=self.by_class), dev.paths, dev.reading)

    def remarks(self, held: FileTable | None) -> list[str]:
        """What is in the files; a mistake in those that are held out is better told before any work."""
        if held is not None:
            check_columns(held.source, list(self.form.columns.kinds), self.form.columns.wanted.label)
        return table_notes(self.facts())

    def facts(self) -> dict[str, Any]:
        """What is in the files."""
        return self.described


class KnownFile(TableData):
    """Files of whose classes all is known: they are encoded as they are read."""

    def __init__(self, form: TableFormat, paths: Sequence[str], reading: dict[str, float] | None = None):
        assert form.known is not None
        self.form, self.paths, self.targets = form, list(paths), form.known
        self.reading = {"reading": 0.0} if reading is None else reading
        self.wanted: TargetColumns | None = form.columns.wanted

    @property
    def seconds(self) -> float:
        """How long it took to read bytes as columns of texts."""
        return self.reading["reading"]

    def __len__(self) -> int:
        return 0 if self.encoded is None else self.encoded[1].rows

    def held_out(self) -> KnownFile:
        """The same rows, all of the same weight."""
        made = KnownFile(self.form, self.paths, self.reading)
        made.wanted = None
        return made

    def encoder(self, settings: Mapping[str, Any]) -> Encoder:
        raise AssertionError

    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        """The rows; what is right is known with them."""
        assert isinstance(encoder, TableEncoder) and self.form.known is not None
        form, known, use = self.form, self.form.known, self.form.columns
        source, names, wanted = open_files(self.paths, form.layout), [c.name for c in encoder.columns], self.wanted
        if wanted is None:
            check_columns(source, names, use.wanted.label)
            wanted, _ = target_columns(source, form.layout, classes=known.classes)
        labels = LabelNumbers(wanted.label, known.classes, form.options.label_map)
        how: Any = {"threads": form.options.threads if self.wanted is None else 1, "seconds": self.reading}
        each = np.arange(len(known.classes))
        parts = list(TableReader(source, wanted, names, labels, **how).encoded(encoder, known, each))
        if not parts:
            return NO_ROWS
        self.targets = weighed(together([targets for _, targets in parts]), form.by_class)
        return joined([rows for rows, _ in parts])


class TableScan(TableData):
    """What is to be known of files that only workers read; settings that were left open are those of large tables."""

    def __init__(
        self,
        form: TableFormat,
        paths: list[str],
        scans: list[ColumnScan],
        labels: dict[str, int],
        counted: np.ndarray,
        looked_at: int,
    ):
        self.form, self.paths, self.names, self.scans = form, paths, form.columns.names, scans
        self.labels, self.counted, self.looked_at = labels, counted, looked_at

    def __len__(self) -> int:
        return self.looked_at

    @property
    def steps(self) -> int:
        """How many steps are guessed."""
        return 2 * self.looked_at

    @property
    def counts(self) -> np.ndarray:
        return self.counted

    def joined(self, others: Sequence[TableScan]) -> TableScan:
        """All files as one."""
        use, labels, counts = self.form.columns, dict(self.labels), dict(zip(self.labels, self.counted, strict=False))
        for scan in others:
            for mine, other in zip(self.scans, scan.scans, strict=True):
                mine.join(other)
            for name, count in zip(scan.labels, scan.counted, strict=False):
                labels.setdefault(name, len(labels))
                counts[name] = counts.get(name, 0) + count
        for column in self.scans:
            column.finish()
        numbers = LabelNumbers(use.wanted.label, use.classes, self.form.options.label_map)
        numbers.numbers = labels
        classes, places = numbers.classes()
        every = np.array([counts.get(name, 0) for name in labels], np.int64)[places.argsort()]
        rows = self.looked_at + sum(scan.looked_at for scan in others)
        made = TableScan(self.form, self.paths, self.scans, labels, every, rows)
        made.targets = self.form.targets_of(classes)
        return made

    def encoder(self, settings: Mapping[str, Any]) -> TableEncoder:
        return self.form.options.encoder(self.scans, self.looked_at, settings)

    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        return self.first(encoder)[0]

    def first(self, encoder: Encoder) -> Piece:
        """The rows of the first file."""
        file = KnownFile(self.form.agreed(self), self.paths[:1])
        return file.rows(encoder), file.targets

    def summary(self, files: int) -> str:
        """What is in the files."""
        return "\n".join(table_notes(self.facts()))

    def facts(self) -> dict[str, Any]:
        """What is in the files."""
        named = dict(zip(self.targets.classes, self.counted.tolist(), strict=True))
        return facts_of(self.scans, self.looked_at, named, True)


def _own(paths: Sequence[str]) -> list[str]:
    """The files that are taken whole."""
    return [path for path in paths if not isinstance(path, ReplayedFile)]


def _together(pieces: list[Piece]) -> Piece:
    return joined([rows for rows, _ in pieces]), together([targets for _, targets in pieces])


def _grown(known: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The classes so far, and further ones of the same type; in files all are texts."""
    kind = type(known[0])
    try:
        return [*known, *(name if kind is str else kind(name) for name in names[len(known) :])]
    except ValueError:
        raise LolsError(
            f"the labels of the file have new classes such as {shown(names[-1])}, but those of the model are numbers"
        ) from None


def _targets(piece: TablePiece, known: Targets, renumber: np.ndarray, chosen: np.ndarray | None) -> Targets:
    """What is right in a piece, or in some rows of it."""
    assert piece.labels is not None
    made = known._replace(labels=renumber[piece.labels], vectors=piece.costs, weights=piece.weights)
    return made if chosen is None else made.take(chosen)


def weighed(targets: Targets, by_class: np.ndarray | None) -> Targets:
    """The same with the weights of classes."""
    weights = None if by_class is None else by_class[targets.cheapest]
    return targets._replace(weights=product(targets.weights, weights))


def _shares(path: ReplayedFile, pieces: list[TablePiece]) -> Iterator[tuple[TablePiece, np.ndarray]]:
    """The pieces of a table that is replayed, and which rows of each are taken."""
    chosen, first = path.chosen(sum(piece.rows for piece in pieces)), 0
    for piece in pieces:
        own = chosen[(chosen >= first) & (chosen < first + piece.rows)] - first
        first += piece.rows
        if own.size:
            yield piece, own


# --- what was read ---


def facts_of(scans: Sequence[ColumnScan], rows: int, classes: dict[Any, int], in_memory: bool) -> dict[str, Any]:
    """What is in the files."""
    kinds = [scan.kind for scan in scans]
    facts = {
        "rows": rows,
        "columns": len(scans),
        "numbers": kinds.count("number"),
        "categories": kinds.count("category"),
        "missing_cells": sum(scan.empty for scan in scans),
        "dropped_cells": sum(scan.dropped for scan in scans),
        "classes": {str(name): int(count) for name, count in classes.items()},
        "in_memory": in_memory,
    }
    return facts | ({"texts": kinds.count("text")} if "text" in kinds else {})


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
    if "new_classes" in facts:
        notes.append(f"new to the model: {', '.join(facts['new_classes'][:FEW])}")
    if facts["dropped_cells"]:
        notes.append(f"{facts['dropped_cells']:,} cells of columns with too many categories: the rarest count as one")
    if not facts["in_memory"]:
        notes.append("larger than --memory: the files are read again in every pass")
    return notes
