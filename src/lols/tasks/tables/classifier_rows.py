"""From tables and labels to the rows and targets that a classifier learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.contract.user_frames import warn
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError
from lols.tasks.tables.cells import NoNumber
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.fields import ClassifierOptions
from lols.tasks.tables.input import (
    InputTable,
    as_columns,
    as_sparse,
    column_kinds,
    column_names,
    comma_note,
    missing_texts,
    scan_table,
    table_of,
)
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.targets import Targets, targets_of
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.weights import class_weights, product, row_weights

MOST_CELLS = 1 << 22  # cells that are encoded at a time


class ClassifierRows(ClassifierOptions):
    """What a classifier makes of tables and labels."""

    task_: ClassificationTask
    chosen_: dict[str, Any]
    n_features_in_: int
    feature_names_in_: Any

    def _targets(
        self,
        rows: int,
        y: Any,
        costs: Any,
        known: Targets | None = None,
        *,
        sample_weight: Any = None,
        grows: bool = False,
    ) -> Targets:
        matrix = self.cost_matrix if known is None or known.matrix is None else known.matrix
        classes = self.classes if known is None else known.classes
        how: Any = {"label_map": self.label_map, "grows": grows}
        made = targets_of(rows, y, costs, classes=classes, matrix=matrix, **how)
        weights = product(made.weights, row_weights(sample_weight, rows))
        by_class = class_weights(self.class_weight, made.classes, made.counts())
        if weights is not None and self.margin == "unit" and self.learner == "hinge":
            raise ConfigurationError("weights of rows have no effect with margin unit: choose weighted or cost")
        return made._replace(weights=product(weights, None if by_class is None else by_class[made.cheapest]))

    def _scans(self, table: InputTable) -> list[ColumnScan]:
        """What the columns of a table hold; nothing of a sparse matrix."""
        if table.matrix is not None:
            return []
        kinds = column_kinds(list(table.columns), self.categorical, self.numerical, self.ignore, self.text)
        return scan_table(table.columns, kinds, missing_texts(self.missing))

    def _encoder(self, table: InputTable) -> Encoder:
        if table.matrix is not None:
            return SparseEncoder.from_matrix(table.matrix)
        return self.make_encoder(self._scans(table), table.rows, self.chosen_)

    def make_encoder(self, scans: Sequence[ColumnScan], rows: int, settings: Mapping[str, Any]) -> TableEncoder:
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

    def _rows(self, X: Any) -> Rows:
        self._check_fitted()
        rows = self._encode(self.task_.encoder, table_of(self, X, reset=False))
        encoder = self.task_.encoder
        if isinstance(encoder, TableEncoder):
            encoder.unknown = encoder.unknown + rows.unknown  # not in place: it may be mapped from a file
        return rows

    def _encode(self, encoder: Encoder, table: InputTable) -> Rows:
        """The rows of a table that came as a whole; sparse where training was, or not."""
        if isinstance(encoder, SparseEncoder):
            return encoder.encode(table.matrix if table.matrix is not None else as_sparse(table))
        columns = table.columns if table.matrix is None else as_columns(table.matrix, column_names(self))
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
