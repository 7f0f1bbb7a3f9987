"""The first pass over a table, in bounded memory: what each column holds, and the distribution of its values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from lols.tasks.tables.cells import Cells, NoNumber, as_texts
from lols.tasks.tables.meanings import MISSING, form_of, numbers_of, one_spelling

CATEGORIES = 1 << 16  # the most of a column
POINTS = 1 << 13  # the most values in the summary of a column of numbers
COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?\s*")
FEW = 1 << 13  # the most texts that are kept before it is decided whether they are numbers
TOGETHER = 1 << 21  # of all columns of a wide table
LEAST = 1 << 9


class ColumnScan:
    """Collects what a column holds.

    Parameters
    ----------
    name
        The name of the column, for messages.
    kind
        `"number"`, `"category"` or `"text"`; None to decide by the cells: texts of a file are numbers if all of them
        are, and texts anywhere are dates or durations if all of them are. Booleans are categories.
    missing
        Texts that mean a missing value.
    columns
        How many columns there are: in a wide table, it is decided earlier whether they hold numbers.

    """

    def __init__(self, name: str, kind: str | None = None, missing: Sequence[str] = MISSING, columns: int = 1):
        self.name, self.wanted, self.missing = name, kind, tuple(missing)
        self.few = min(FEW, max(LEAST, TOGETHER // columns))
        self.texts: dict[str, int] = {}  # with their counts
        self.numeric = kind not in ("category", "text")
        self.settled = kind is not None  # whether the kind can no longer change
        self.values, self.weights = np.zeros(0), np.zeros(0)
        self.form: str | None = None  # "number", "date" or "span": what the numbers are
        self.exact = True  # whether the summary has all values
        self.empty = 0
        self.dropped = 0  # cells of categories beyond the most that are kept

    @property
    def kind(self) -> str:
        """What the column holds, as far as is known."""
        return "number" if self.numeric else self.wanted if self.wanted == "text" else "category"

    def look(self, cells: Cells) -> None:
        """Add the cells of a piece."""
        if cells.numbers is not None and self.numeric and not (cells.truths and self.wanted is None):
            if self.form is None and not np.isnan(cells.numbers).all():  # a column without a value may be anything
                self.form = cells.form
            self._note(cells.numbers, np.ones(cells.size))
            return
        cells = as_texts(cells)
        counts = cells.counts()
        self.empty += cells.size - int(counts.sum())
        if self.wanted == "text":  # its words are hashed: nothing has to be known of them
            self.empty += sum(n for text, n in zip(cells.texts, counts.tolist(), strict=True) if text in self.missing)
            return
        if cells.typed and not self.settled and counts.any():
            there = [cells.texts[k] for k in np.flatnonzero(counts).tolist()]
            if form_of(there, self.missing) == "number":
                self._as_categories(there[0])
        if len(self.texts) + len(cells.texts) <= self.few:  # no limit is near
            get = self.texts.get
            self.texts |= {text: get(text, 0) + n for text, n in zip(cells.texts, counts.tolist(), strict=True) if n}
            return
        for text, count in zip(cells.texts, counts.tolist(), strict=True):
            if not count:
                continue
            if text in self.texts or len(self.texts) < CATEGORIES:
                self.texts[text] = self.texts.get(text, 0) + count
            else:
                self.dropped += count
            if self.numeric and len(self.texts) > self.few:  # checked for each text: the size of pieces must not matter
                self._as_numbers()

    def join(self, other: ColumnScan) -> None:
        """Add what another scan has seen of the same column, before either is finished."""
        self.empty += other.empty
        self.dropped += other.dropped
        forms = {self.form, other.form} - {None}
        if self.numeric != other.numeric or len(forms) > 1:
            for scan in (self, other):
                if scan.numeric:
                    texts = [*other.texts, *self.texts]
                    wrong = numbers_of(texts, self.missing)[1]
                    scan._as_categories(texts[wrong] if wrong >= 0 else next(iter(texts), ""))
        self.settled, self.exact = self.settled or other.settled, self.exact and other.exact
        self.form = next(iter(forms), None)
        if other.values.size:
            self._note(other.values, other.weights)
        for text, count in other.texts.items():
            if text in self.texts or len(self.texts) < CATEGORIES:
                self.texts[text] = self.texts.get(text, 0) + count
            else:
                self.dropped += count
            if self.numeric and len(self.texts) > self.few:
                self._as_numbers()

    def finish(self) -> None:
        """Decide on the kind after the last piece."""
        if self.numeric:
            self._as_numbers()
        self.empty += sum(self.texts.pop(text, 0) for text in self.missing)
        if self.kind == "category":
            self.texts = one_spelling(self.texts)

    def _as_numbers(self) -> None:
        """Add the texts so far to the summary, if all are numbers; else the column holds categories."""
        texts = list(self.texts)
        numbers, wrong = numbers_of(texts, self.missing, truths=self.wanted == "number")
        if wrong < 0 and not np.isnan(numbers).all():
            form = form_of(texts, self.missing)
            if self.form not in (None, form):  # numbers in earlier pieces, and dates in this one
                wrong = int(np.argmin(np.isnan(numbers)))
            self.form = form
        if wrong >= 0:
            self._as_categories(texts[wrong])
            return
        self._note(numbers, np.array(list(self.texts.values()), np.float64))
        if len(self.texts) > self.few:  # too many to be categories after all
            self.settled = True
        self.texts = {}

    def _as_categories(self, text: str) -> None:
        """Treat the column as categories, because of a text that is not a number."""
        if self.settled or not self.exact:
            raise NoNumber(self.name, text)
        self.numeric, self.settled = False, True
        # Numbers of earlier pieces are categories now, too.
        for number, count in zip(as_texts(Cells(numbers=self.values)).texts, self.weights.tolist(), strict=True):
            self.texts[number] = self.texts.get(number, 0) + int(count)
        self.values, self.weights = np.zeros(0), np.zeros(0)

    def _note(self, numbers: np.ndarray, counts: np.ndarray) -> None:
        """Add values to the summary: exact while they are few, else points of equal weight."""
        none = np.isnan(numbers)
        self.empty += int(counts[none].sum())
        values = np.concatenate([self.values, numbers[~none]])
        weights = np.concatenate([self.weights, counts[~none]])
        if not values.size:
            return
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        values, weights = values[first], np.add.reduceat(weights, first)
        if values.size > POINTS:
            ends = np.cumsum(weights)
            at = np.searchsorted(ends, np.linspace(0.0, ends[-1], POINTS // 2))
            at = np.unique(np.concatenate([[0], at[at < values.size], [values.size - 1]]))
            weights = np.diff(np.concatenate([[0.0], ends[at]]))
            values, self.exact = values[at], False
        self.values, self.weights = values, weights

    @property
    def decimal_commas(self) -> bool:
        """Whether a column of categories seems to hold numbers: all of them would be with points for commas."""
        if self.numeric or self.wanted is not None or not any("," in text for text in self.texts):
            return False
        return all(COMMA.fullmatch(text) for text in self.texts)

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
