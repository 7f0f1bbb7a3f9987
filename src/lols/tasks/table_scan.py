"""A first look at a table, piece by piece, in bounded memory: what each column holds, and how its values are spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lols.errors import LolsError
from lols.tasks.table_cells import MISSING, Cells, numbers_of

__all__ = ["CATEGORIES", "ColumnScan", "quantiles"]

CATEGORIES = 1 << 16  # of a column that are told apart
POINTS = 1 << 13  # of the summary of a column of numbers


class ColumnScan:
    """What a column holds.

    Parameters
    ----------
    name
        Its name, for messages.
    kind
        `"number"` or `"category"`; None to find out: texts are numbers if all of them are.
    missing
        Texts that say that there is no value.

    """

    def __init__(self, name: str, kind: str | None = None, missing: Sequence[str] = MISSING):
        self.name, self.wanted, self.missing = name, kind, frozenset(missing)
        self.texts: dict[str, int] = {}  # every text with its count, as long as they are few
        self.numeric = kind != "category"
        self.forgotten = False  # texts of numbers that are too many to be kept
        self.values, self.weights = np.zeros(0), np.zeros(0)
        self.empty = 0
        self.dropped = 0  # categories beyond the most

    @property
    def kind(self) -> str:
        """What the column is taken to hold."""
        return "number" if self.numeric else "category"

    def look(self, cells: Cells) -> int:
        """Look at more cells; the first row that cannot be, or -1."""
        if cells.numbers is not None:
            if self.numeric:
                self._note(cells.numbers, np.ones(cells.size))
                return -1
            values, counts = np.unique(cells.numbers[~np.isnan(cells.numbers)], return_counts=True)
            self.empty += int(np.isnan(cells.numbers).sum())
            self._count([f"{v:g}" for v in values.tolist()], counts)
            return -1
        assert cells.codes is not None
        counts = cells.counts()
        self.empty += cells.size - int(counts.sum())
        if self.numeric and (not cells.typed or self.wanted == "number"):
            numbers, wrong = numbers_of(cells.texts, tuple(self.missing))
            if wrong < 0:
                self._note(numbers, counts)
                if self.wanted is None and not self.forgotten:
                    self._count(cells.texts, counts)
                    if len(self.texts) > CATEGORIES // 8:
                        self.texts, self.forgotten = {}, True
                return -1
            if self.wanted == "number" or self.forgotten:
                return int(np.argmax(cells.codes == wrong))
        self.numeric = False
        self._count(cells.texts, counts)
        return -1

    def _count(self, texts: Sequence[str], counts: np.ndarray) -> None:
        known = self.texts
        for text, count in zip(texts, counts.tolist(), strict=True):
            if text in self.missing:
                self.empty += 0 if self.numeric else count
            elif text in known or len(known) < CATEGORIES:
                known[text] = known.get(text, 0) + count
            else:
                self.dropped += 1

    def _note(self, numbers: np.ndarray, counts: np.ndarray) -> None:
        """Add values to the summary: exact while they are few, else points of equal weight."""
        none = np.isnan(numbers)
        self.empty += int(counts[none].sum())
        values = np.concatenate([self.values, numbers[~none]])
        weights = np.concatenate([self.weights, counts[~none]])
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        first = np.concatenate([[True], values[1:] != values[:-1]]) if values.size else np.zeros(0, bool)
        values, weights = values[first], np.add.reduceat(weights, np.flatnonzero(first)) if values.size else weights
        if values.size > POINTS:
            ends = np.cumsum(weights)
            at = np.unique(np.searchsorted(ends, np.linspace(0.0, ends[-1], POINTS // 2)))
            at = np.unique(np.concatenate([[0], at[at < values.size], [values.size - 1]]))
            weights = np.diff(np.concatenate([[0.0], ends[at]]))
            values = values[at]
        self.values, self.weights = values, weights

    def wrong(self, cells: Cells, row: int, place: str) -> LolsError:
        """What to say of a row that `look` complained about."""
        return LolsError(
            f"{place}, column '{self.name}': '{cells.text(row)}' is no number; name the column as categorical, or "
            "name the texts that mean a missing value"
        )

    def categories(self) -> list[str]:
        """The texts, the most frequent first."""
        return sorted(self.texts, key=lambda text: (-self.texts[text], text))


def quantiles(values: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Values at `count` - 1 inner points that cut a weighted sample, sorted, into parts of equal weight.

    >>> quantiles(np.arange(8.0), np.ones(8), 4).tolist()
    [2.0, 4.0, 6.0]
    """
    ends = np.cumsum(weights)
    at = np.searchsorted(ends, np.arange(1, count) / count * ends[-1], side="right")
    return np.unique(values[np.minimum(at, values.size - 1)])
