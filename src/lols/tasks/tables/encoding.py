"""Features of tables: one for each category, bins or scaled values of numbers, and products of two columns.

The values of a column are numbered. The most frequent value of a column of numbers is its background, which has no
feature: in most tables most cells are background, and take no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Items
from lols.errors import ConfigurationError
from lols.io.strings import Texts, texts_of
from lols.kernels.kernel import kernel
from lols.kernels.layout import readonly
from lols.tasks.tables.cells import Cells, NoNumber, as_texts
from lols.tasks.tables.columns import ColumnCode, binned, column_code, curved, knot_id, scaled, scaled_id
from lols.tasks.tables.meanings import MISSING, meaning, numbers_of, spellings
from lols.tasks.tables.rows import Rows, items_of
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.words import MOST_TEXTS, text_column_of, words_of

NUMERIC = ("bins", "scaled", "both", "curve")
MOST_PRODUCTS = 1 << 20  # of two columns
MOST_TOGETHER = 1 << 22  # of all pairs of columns
MOST_MISSING = 1 << 12  # texts in a model file, with which every cell is compared
BIAS = 1  # the number of feature types before those of the columns
EACH = np.zeros(0, np.int32)
KINDS = ("number", "category", "text")


class Numbering(NamedTuple):
    """The numbers of a column's values: of each text; of each cell where there are no codes."""

    each: np.ndarray
    codes: np.ndarray

    def numbers(self) -> np.ndarray:
        """The number of each cell's value."""
        return self.each[self.codes] if self.codes.size else self.each


class TableEncoder:
    """Turns the cells of a table into features.

    Parameters
    ----------
    columns
        The numbering of each column.
    numeric
        The features of a number: `bins`, `scaled`, `both` or `curve`.
    interactions
        Pairs of columns whose pairs of values are features, too.
    missing
        Texts that mean a missing value.

    """

    def __init__(
        self,
        columns: Sequence[ColumnCode],
        numeric: str = "bins",
        interactions: Sequence[tuple[str, str]] = (),
        missing: Sequence[str] = MISSING,
    ):
        if numeric not in NUMERIC:
            raise ConfigurationError(f"numeric is '{numeric}': choose {', '.join(NUMERIC)}")
        self.columns, self.numeric, self.missing = list(columns), numeric, tuple(missing)
        self.interactions = [(a, b) for a, b in interactions]
        numbers = {c.name: k for k, c in enumerate(self.columns)}
        self.pairs: list[tuple[int, int]] = []
        for a, b in self.interactions:
            for name in (a, b):
                if name not in numbers:
                    raise ConfigurationError(f"the interaction {a} * {b} names '{name}', which is not a column in use")
                if self.columns[numbers[name]].kind == "text":
                    raise ConfigurationError(
                        f"the interaction {a} * {b} names '{name}', a column of texts: leave it out"
                    )
            if self.columns[numbers[a]].size * self.columns[numbers[b]].size > MOST_PRODUCTS:
                raise ConfigurationError(
                    f"the interaction {a} * {b} has more than a million pairs of values: use fewer bins"
                )
            self.pairs.append((numbers[a], numbers[b]))
        self._known: dict[int, dict[str, int]] = {}
        sizes = [c.size for c in self.columns] + [self.columns[a].size * self.columns[b].size for a, b in self.pairs]
        if sum(sizes[len(self.columns) :]) > MOST_TOGETHER:
            raise ConfigurationError("the interactions have more than four million pairs of values: use fewer")
        self.texts = [k for k, c in enumerate(self.columns) if c.kind == "text"]
        if len(self.texts) > MOST_TEXTS:
            raise ConfigurationError(f"there are {len(self.texts)} columns of texts: at most {MOST_TEXTS} can be")
        self.first = BIAS + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.unknown = np.zeros(len(self.columns), np.int64)  # as in `Rows`, over all predictions so far

    @classmethod
    def from_scans(
        cls, scans: Sequence[ColumnScan], rows: int, bins: int | None = None, **options: Any
    ) -> TableEncoder:
        """The encoder for what the scans of the columns found."""
        bins = bins or int(min(64, max(4, rows**0.5 / 4)))
        ends = options.get("numeric") == "curve"  # a curve has knots at both of its ends
        return cls([column_code(scan, bins, ends=ends) for scan in scans], **options)

    @property
    def types(self) -> int:
        """The number of feature types."""
        return int(self.first[-1])

    # --- rows ---

    def encode(self, table: Mapping[str, Cells], count: int) -> Rows:
        """The rows of a piece of a table."""
        unknown = np.zeros(len(self.columns), np.int64)
        local = [self._numbered(k, table[c.name], unknown) for k, c in enumerate(self.columns)]
        whole = np.empty((len(self.columns) + len(self.pairs), count), np.int32)
        for k, (column, numbering) in enumerate(zip(self.columns, local, strict=True)):
            if column.kind == "text" or (column.kind == "number" and self.numeric in ("scaled", "curve")):
                each = np.where(numbering.each == 0, self.first[k], -1)  # a missing value is a feature
            else:
                each = _placed(numbering.each, column.background, int(self.first[k]))
            _take(each.astype(np.int32), readonly(numbering.codes), whole[k])
        for k, (a, b) in enumerate(self.pairs, len(self.columns)):
            first, second = self.columns[a], self.columns[b]
            one, other = local[a].numbers()[:count].astype(np.int64), local[b].numbers()[:count]
            product = np.where((one < 0) | (other < 0), -1, one * second.size + other)
            background = first.background * second.size + second.background
            background = background if min(first.background, second.background) >= 0 else -1
            whole[k] = _placed(product, background, int(self.first[k]))
        bounds, types = np.empty(count + 1, np.int64), np.empty(whole.size + count, np.int32)
        filled = _compress(whole, bounds, types)
        return Rows(bounds, types[:filled].copy(), *self._own(table, count), unknown)

    def _own(self, table: Mapping[str, Cells], count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The features of each row that have values of their own: scaled numbers, curves and words."""
        blocks = [] if self.numeric == "bins" else self._dense(table, count)
        if blocks:
            ids, values = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
            there = values != 0.0
            start = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
            own = start, np.broadcast_to(ids, there.shape)[there], values[there]
        else:
            own = np.zeros(count + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
        if self.texts:
            cells = [table[self.columns[k].name] for k in self.texts]
            return _with_words(own, [words_of(each, n, self.missing) for n, each in enumerate(cells)])
        return own if self.numeric != "bins" else (np.zeros(0, np.int64), *own[1:])

    def _dense(self, table: Mapping[str, Cells], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Features and values, [row, feature], of the columns of numbers."""
        numbered = [(k, c) for k, c in enumerate(self.columns) if c.kind == "number"]
        numbers = [(k, c, _numbers(c, table[c.name], self.missing)) for k, c in numbered]
        if not numbers:
            return []
        values = np.zeros((count, len(numbers)), np.float32)
        for j, (_, column, each) in enumerate(numbers):
            values[:, j] = scaled(each, column)
        made = [(np.array([[scaled_id(k) for k, _ in numbered]], np.int64), values)]
        if self.numeric != "curve":
            return made
        made[0] = np.broadcast_to(made[0][0], values.shape), values
        for k, column, each in numbers:
            if column.edges.size < 2:
                continue  # a straight line, which the scaled value is
            below, share = curved(each, column.edges)
            knots = np.array([knot_id(k, knot) for knot in range(column.edges.size)], np.int64)
            pair = np.nan_to_num(np.stack([1.0 - share, share], axis=1)).astype(np.float32)
            made.append((np.stack([knots[below], knots[below + 1]], axis=1), pair))
        return made

    def _numbered(self, k: int, cells: Cells, unknown: np.ndarray) -> Numbering:
        """The number of each cell's value; -1 for a category that was not in training."""
        column = self.columns[k]
        if column.kind == "number":
            if cells.numbers is not None:
                return Numbering(binned(cells.numbers, column.edges), EACH)
            each = binned(_numbers_of_texts(column, cells, self.missing), column.edges)
        elif column.kind == "text":
            cells = as_texts(cells)
            each = np.array([0 if t in self.missing else 1 for t in cells.texts], np.int32)
        else:
            if k not in self._known:
                self._known[k] = {text: n + 1 for text, n in spellings(column.texts).items()}
            known, cells = self._known[k], as_texts(cells)
            found = (known[t] if t in known else known.get(meaning(t), -1) for t in cells.texts)
            each = np.array([0 if t in self.missing else n for t, n in zip(cells.texts, found, strict=True)], np.int32)
            if (each < 0).any():
                unknown[k] = int(cells.counts()[each < 0].sum())
        assert cells.codes is not None
        return Numbering(np.append(each, np.int32(0)), cells.codes)  # the last one is for code -1, missing

    def text_column(self, identity: int) -> int:
        """The number of the column of texts that a word is in."""
        return self.texts[text_column_of(identity) % len(self.texts)]

    def items(self, rows: Rows, nodes: int) -> Items:
        """The rows as items of a search space, one each."""
        return items_of(rows, self.types, nodes)

    # --- files ---

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""
        facts = [
            {"name": c.name, "kind": c.kind, "background": c.background, "centre": c.centre, "width": c.width}
            | ({"dates": True} if c.dates else {})
            for c in self.columns
        ]
        texts = texts_of([text for c in self.columns for text in c.texts])
        ends = np.cumsum([0] + [len(c.texts) for c in self.columns])
        edges = np.cumsum([0] + [c.edges.size for c in self.columns])
        tensors = {
            "table.texts": np.array(texts.buffer),
            "table.begin": texts.begin,
            "table.end": texts.end,
            "table.categories": ends.astype(np.int64),
            "table.edges": np.concatenate([np.zeros(0), *(c.edges for c in self.columns)]),
            "table.bins": edges.astype(np.int64),
        }
        interactions = [list(pair) for pair in self.interactions]
        description = {"columns": facts, "numeric": self.numeric, "missing": list(self.missing)}
        return description | {"interactions": interactions}, tensors

    @classmethod
    def from_description(cls, facts: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> TableEncoder:
        """The encoder that a model file describes."""
        texts = Texts.from_ends(tensors["table.texts"], tensors["table.end"]).strings()
        ends, bins, edges = tensors["table.categories"], tensors["table.bins"], tensors["table.edges"]
        count = len(facts["columns"])
        for bounds, size in ((ends, len(texts)), (bins, edges.size)):
            if bounds.shape != (count + 1,) or bounds.dtype != np.int64 or (bounds[0], bounds[-1]) != (0, size):
                raise ValueError("the columns of the table do not fit")
            if (np.diff(bounds) < 0).any():
                raise ValueError("the columns of the table do not fit")
        if edges.dtype != np.float64 or edges.ndim != 1:
            raise ValueError("the bins of the columns are not numbers")
        columns = [
            ColumnCode(
                str(c["name"]),
                str(c["kind"]),
                edges[bins[k] : bins[k + 1]],
                texts[int(ends[k]) : int(ends[k + 1])],
                int(c["background"]),
                float(c["centre"]),
                float(c["width"]),
                c.get("dates") is True,
            )
            for k, c in enumerate(facts["columns"])
        ]
        for c in columns:
            if c.kind not in KINDS or not (np.isfinite([c.centre, c.width]).all() and c.width > 0.0):
                raise ValueError(f"column '{c.name}' is damaged")
            if (np.diff(c.edges) <= 0.0).any() or len(set(c.texts)) != len(c.texts) or not -1 <= c.background < c.size:
                raise ValueError(f"column '{c.name}' is damaged")
        if len({c.name for c in columns}) != count:
            raise ValueError("two columns have the same name")
        if len(facts["missing"]) > MOST_MISSING:
            raise ValueError("the texts that mean a missing value are too many")
        pairs = [(str(a), str(b)) for a, b in facts["interactions"]]
        return cls(columns, str(facts["numeric"]), pairs, [str(m) for m in facts["missing"]])


def _with_words(
    own: tuple[np.ndarray, np.ndarray, np.ndarray], columns: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The features of each row, then those of the words in its texts."""
    parts = [own, *columns]
    rows = np.concatenate([np.repeat(np.arange(start.size - 1), np.diff(start)) for start, _, _ in parts])
    order = np.argsort(rows, kind="stable")
    start = np.sum([part[0] for part in parts], axis=0).astype(np.int64)
    ids, values = (np.concatenate([part[k] for part in parts])[order] for k in (1, 2))
    return start, ids, values.astype(np.float32)


def _numbers(column: ColumnCode, cells: Cells, missing: Sequence[str]) -> np.ndarray:
    if cells.numbers is not None:
        return cells.numbers
    assert cells.codes is not None
    each = _numbers_of_texts(column, cells, missing)
    return np.where(cells.codes < 0, np.nan, each[cells.codes]) if each.size else np.full(cells.size, np.nan)


def _numbers_of_texts(column: ColumnCode, cells: Cells, missing: Sequence[str]) -> np.ndarray:
    assert cells.codes is not None
    read = partial(numbers_of, missing=missing, truths=column.is_binary)
    numbers, wrong = read(cells.texts)
    if wrong >= 0:  # texts that no cell has do not matter: a slice of a batch may have the dictionary of the whole
        there = np.flatnonzero(cells.counts())
        numbers = np.full(len(cells.texts), np.nan)
        numbers[there], wrong = read([cells.texts[k] for k in there.tolist()])
        wrong = int(there[wrong]) if wrong >= 0 else -1
    if wrong >= 0:
        fix = "training showed numbers in this column: correct the cell, or leave it empty"
        raise NoNumber(column.name, str(cells.texts[wrong]), fix=fix)
    return numbers


def _placed(numbers: np.ndarray, background: int, first: int) -> np.ndarray:
    """Types in place of numbers; -1 for the background and for unknown categories."""
    return np.where((numbers == background) | (numbers < 0), -1, numbers + first)


@kernel
def _take(each, codes, out):
    """The element for each code, -1 for the last one; without codes, the elements themselves."""
    for row in range(out.size):
        out[row] = each[codes[row]] if codes.size > 0 else each[row]


@kernel
def _compress(whole, bounds, types):
    """The types of each row, the bias first."""
    n = 0
    for row in range(whole.shape[1]):
        bounds[row] = n
        types[n] = 0
        n += 1
        for k in range(whole.shape[0]):
            if whole[k, row] >= 0:
                types[n] = whole[k, row]
                n += 1
    bounds[whole.shape[1]] = n
    return n
