"""Features of sparse matrices: a column is a feature, its values scaled by the largest that training showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.contract.examples import Items
from lols.errors import LolsError
from lols.kernels.hashing import mix
from lols.tasks.tables.rows import Rows, items_of


class SparseEncoder:
    """Turns the rows of a sparse matrix into features.

    Parameters
    ----------
    scales
        The divisor of each column.

    """

    def __init__(self, scales: np.ndarray):
        self.scales = scales
        self.ids = np.array([mix(k, 0x5BA25E) for k in range(scales.size)], np.int64)

    @classmethod
    def from_matrix(cls, matrix: Any) -> SparseEncoder:
        """The encoder for a matrix: the scale of a column is its largest absolute value."""
        largest = np.zeros(matrix.shape[1], np.float64)
        np.maximum.at(largest, matrix.indices, np.abs(matrix.data))
        return cls(np.where(largest > 0.0, largest, 1.0))

    def encode(self, matrix: Any) -> Rows:
        """The rows of a matrix in CSR form."""
        wrong = ~np.isfinite(matrix.data)
        if wrong.any():
            at = int(np.argmax(wrong))
            row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
            column = int(matrix.indices[at])
            raise LolsError(f"row {row}, column {column} is {matrix.data[at]}: give a finite number")
        count = matrix.shape[0]
        values = (matrix.data / self.scales[matrix.indices]).astype(np.float32)
        bias = np.zeros(count, np.int32)
        return Rows(np.arange(count + 1), bias, matrix.indptr.astype(np.int64), self.ids[matrix.indices], values)

    def items(self, rows: Rows, nodes: int) -> Items:
        """The rows as items of a search space, one each."""
        return items_of(rows, 1, nodes)

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""
        return {"columns": int(self.scales.size)}, {"scales": self.scales}

    @classmethod
    def from_description(cls, facts: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> SparseEncoder:
        """The encoder that a model file describes."""
        scales = tensors["scales"]
        if scales.shape != (int(facts["columns"]),) or not (np.isfinite(scales) & (scales > 0.0)).all():
            raise ValueError("the scales of the columns are damaged")
        return cls(scales.astype(np.float64))
