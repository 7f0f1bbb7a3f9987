"""Tables as a classifier reads them, encoded when it is known how: from Python, or rows that are encoded already."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from lols.contract.whole_numbers import MOST, check_whole
from lols.errors import ConfigurationError, LolsError, warn
from lols.tasks.tables.cells import NoNumber
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.input import (
    InputTable,
    as_columns,
    as_sparse,
    column_kinds,
    comma_note,
    missing_texts,
    scan_table,
)
from lols.tasks.tables.rows import Rows, joined, some_rows
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.targets import Targets

MOST_CELLS = 1 << 22  # cells that are encoded at a time
Encoder = TableEncoder | SparseEncoder


class TableOptions(NamedTuple):
    """The options of a classifier that say how tables are read; workers are given them."""

    classes: Sequence[Any] | None
    cost_matrix: Any
    class_weight: Any
    label_map: Mapping[str, str] | None
    categorical: Sequence[str] | None
    numerical: Sequence[str] | None
    text: Sequence[str] | None
    ignore: Sequence[str] | None
    missing: Sequence[str] | None
    interactions: Sequence[tuple[str, str]]
    bins: int | None
    threads: Any

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Those of a classifier."""
        return cls._make(getattr(estimator, name) for name in cls._fields)

    def encoder(self, scans: Sequence[ColumnScan], rows: int, settings: Mapping[str, Any]) -> TableEncoder:
        """The encoder for columns that were looked at."""
        for pair in self.interactions:
            if isinstance(pair, str) or len(pair) != 2:
                raise ConfigurationError(f"interactions has {pair!r}: give pairs of columns, such as ('age', 'colour')")
        options = {"numeric": settings["numeric"], "interactions": [(str(a), str(b)) for a, b in self.interactions]}
        commas = [scan.name for scan in scans if scan.decimal_commas]
        if commas:
            warn(comma_note(commas))
        if self.bins is not None:
            check_whole("bins", self.bins, least=2)
        return TableEncoder.from_scans(scans, rows, settings["bins"], missing=missing_texts(self.missing), **options)


class TableData(ABC):
    """Rows with what is right for them, where that is known."""

    targets: Targets
    names: Sequence[str] | None = None  # of the columns, where a file has them
    in_memory = True
    encoded: tuple[Encoder, Rows] | None = None

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self)

    @property
    def counts(self) -> np.ndarray:
        """How often each class is right."""
        return self.targets.counts()

    @property
    def cells(self) -> int:
        """How many cells there are; too many to choose settings by unless it is known."""
        return MOST

    @property
    def numbers(self) -> int:
        """How many columns of numbers there are, if it is known."""
        return 0

    def check(self) -> None:
        """Raise an error if there are no rows."""
        if not len(self):
            raise LolsError("the table has no rows: give some to learn from")

    def scan(self, *, stream: bool = False) -> Self:
        """What a problem is proposed from."""
        return self

    def cut(self, values: Any) -> Any:
        """Values of rows as they are."""
        return values

    @abstractmethod
    def encoder(self, settings: Mapping[str, Any]) -> Encoder:
        """How rows like these become features."""

    @abstractmethod
    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        """The rows, encoded; `last` lets go of what only encoding needs."""

    def rows(self, encoder: Encoder) -> Rows:
        """The rows, encoded for good."""
        if self.encoded is None or self.encoded[0] is not encoder:
            self.encoded = encoder, self.encode(encoder, last=True)
        return self.encoded[1]

    def first(self, encoder: Encoder) -> tuple[Rows, Targets]:
        """The rows that similarities of classes are taken from."""
        return self.rows(encoder), self.targets

    def sample(self, encoder: Encoder, columns: int) -> Rows:
        """Some rows, for importances."""
        return some_rows(self.rows(encoder), columns)

    def pieces(self, encoder: Encoder) -> Iterator[tuple[Rows, Targets]]:
        """The rows and what is right piece by piece, where memory does not hold them all."""
        yield self.rows(encoder), self.targets

    def name_for(self, described: Any) -> str | None:
        """Something that is the same whenever these pieces are read for a task that is described so."""
        return None

    def read_alike(self, dev: Any) -> Any:
        """Dev data, read as these were."""
        return dev

    def held_out(self) -> TableData:
        """The same as data to choose by."""
        return self


class EncodedTable(TableData):
    """Rows that are encoded already."""

    def __init__(self, encoder: Encoder, rows: Rows, targets: Targets):
        self.encoded, self.targets = (encoder, rows), targets

    def __len__(self) -> int:
        assert self.encoded is not None
        return self.encoded[1].rows

    def take(self, chosen: np.ndarray) -> EncodedTable:
        """Some of the rows, by their numbers."""
        assert self.encoded is not None
        encoder, rows = self.encoded
        return EncodedTable(encoder, rows.take(chosen), self.targets.take(chosen))

    def encoder(self, settings: Mapping[str, Any]) -> Encoder:
        assert self.encoded is not None
        return self.encoded[0]

    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        raise AssertionError


class GivenTable(TableData):
    """A table from Python."""

    def __init__(self, options: TableOptions, table: InputTable, names: Sequence[str], targets: Targets):
        self.options, self.columns, self.targets = options, names, targets
        self.count, self.table = table.rows, table

    def __len__(self) -> int:
        return self.count

    @cached_property
    def scans(self) -> list[ColumnScan]:
        """What the columns hold; nothing of a sparse matrix."""
        table, given = self.table, self.options
        if table.matrix is not None:
            return []
        kinds = column_kinds(list(table.columns), given.categorical, given.numerical, given.ignore, given.text)
        return scan_table(table.columns, kinds, missing_texts(given.missing))

    @property
    def cells(self) -> int:
        return len(self) * len(self.scans) if self.table.matrix is None else int(self.table.matrix.nnz)

    @property
    def numbers(self) -> int:
        return sum(scan.kind == "number" for scan in self.scans)

    def encoder(self, settings: Mapping[str, Any]) -> Encoder:
        if self.table.matrix is not None:
            return SparseEncoder.from_matrix(self.table.matrix)
        return self.options.encoder(self.scans, len(self), settings)

    def encode(self, encoder: Encoder, *, last: bool = False) -> Rows:
        """The rows; sparse where training was, or not."""
        table = self.table
        if last:
            self.table = table._replace(columns={}, matrix=None)
            vars(self).pop("scans", None)
        if isinstance(encoder, SparseEncoder):
            return encoder.encode(table.matrix if table.matrix is not None else as_sparse(table))
        columns = table.columns if table.matrix is None else as_columns(table.matrix, self.columns)
        piece = max(1, MOST_CELLS // max(len(columns), 1))  # so that what is needed on the way takes little memory
        try:
            if table.rows <= piece:
                return encoder.encode(columns, table.rows)
            parts = []
            for begin in range(0, table.rows, piece):
                end = min(begin + piece, table.rows)
                parts.append(encoder.encode({name: c.cut(begin, end) for name, c in columns.items()}, end - begin))
            return joined(parts)._replace(unknown=np.sum([part.unknown for part in parts], axis=0))
        except NoNumber as error:
            raise error.at(columns[error.column], lambda row: f"row {row}") from None
