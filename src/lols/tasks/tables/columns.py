"""How the values of a column become features: numbered categories and bins, scaled values, curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.kernels.hashing import mix
from lols.tasks.tables.scan import ColumnScan, quantiles


class ColumnCode(NamedTuple):
    """How the values of a column are numbered: missing is 0, then bins or categories in their order."""

    name: str
    kind: str  # "number", "category" or "text"
    edges: np.ndarray  # of the bins: bin k holds values from edge k - 1 to below edge k
    texts: list[str]
    background: int  # the number without a feature, or -1
    centre: float = 0.0
    width: float = 1.0
    dates: bool = False  # whether numbers are the seconds of dates

    @property
    def size(self) -> int:
        """The size of the numbering."""
        return 1 + (self.edges.size + 1 if self.kind == "number" else len(self.texts))

    @property
    def is_binary(self) -> bool:
        """Whether the numbers of training were 0 and 1: Booleans may stand for them."""
        return self.edges.size > 0 and set(self.edges.tolist()) <= {0.0, 1.0}


def column_code(scan: ColumnScan, bins: int, *, ends: bool = False) -> ColumnCode:
    """The numbering of a column, given what was seen of it; with `ends`, least and largest number are edges, too."""
    if scan.kind == "text":
        return ColumnCode(scan.name, "text", np.zeros(0), [], -1)
    if scan.kind == "category":
        return ColumnCode(scan.name, "category", np.zeros(0), scan.categories(), -1)
    values, weights = scan.values, scan.weights
    finite = np.isfinite(values)
    if not finite.any():
        return ColumnCode(scan.name, "number", np.zeros(0), [], 0 if scan.empty else 1)
    values, weights = values[finite], weights[finite]
    if values.size <= bins:
        edges = values[1:]
    else:
        # By weight, so that bins are about equally frequent; some by value, so that rare ranges have bins, too.
        spread = quantiles(values, np.ones(values.size), bins // 2)
        edges = np.union1d(quantiles(values, weights, bins), spread)
    if ends:
        edges = np.union1d(edges, values[[0, -1]])
    sizes = np.bincount(binned(values, edges), weights=weights, minlength=edges.size + 2)
    sizes[0] = scan.empty
    logs = np.sign(values) * np.log1p(np.abs(values))
    centre = float(np.average(logs, weights=weights))
    width = float(np.sqrt(np.average((logs - centre) ** 2, weights=weights)))
    return ColumnCode(scan.name, "number", edges, [], int(sizes.argmax()), centre, width or 1.0, scan.form == "date")


def binned(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The number of each bin; 0 where a number is missing."""
    bins = np.searchsorted(edges, numbers, side="right").astype(np.int32) + np.int32(1)
    bins[np.isnan(numbers)] = 0
    return bins


def scaled(numbers: np.ndarray, column: ColumnCode) -> np.ndarray:
    """Logarithms of the absolute values, with their sign, standardized; 0 where a number is missing."""
    with np.errstate(invalid="ignore"):
        logs = np.sign(numbers) * np.log1p(np.minimum(np.abs(numbers), 1e300))
    made = np.clip((logs - column.centre) / column.width, -10.0, 10.0)
    made[np.isnan(numbers)] = 0.0
    return made


def curved(numbers: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The knot below each number, and how far the number is on the way to the next knot, from 0 to 1.

    The edges of the bins are the knots of a curve that is straight between them. A number beyond the last knots is
    taken for the last one; where it is missing, the share is NaN.

    >>> curved(np.array([1.0, 2.5, 9.0]), np.array([1.0, 2.0, 4.0]))
    (array([0, 1, 1]), array([0.  , 0.25, 1.  ]))
    """
    below = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(edges.size - 2, 0))
    if edges.size < 2:
        return below, np.where(np.isnan(numbers), np.nan, 0.0)
    low, high = edges[below], edges[below + 1]
    return below, (np.clip(numbers, edges[0], edges[-1]) - low) / (high - low)


def scaled_id(column: int) -> int:
    """The feature of a column's scaled value."""
    return mix(mix(column, 0x5CA1ED), 1)


def knot_id(column: int, knot: int) -> int:
    """The feature of a knot of a column's curve."""
    return mix(mix(column, 0xC02F3), knot + 1)
