"""Features of tables: one for each category, bins or scaled values of numbers, and products of two columns.

The values of a column are numbered. The most frequent value of a column of numbers is its background, which has no
feature: in most tables most cells are background, and take no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Items
from lols.contract.hashing import mix
from lols.engine.compile.kernel import kernel
from lols.engine.compile.layout import readonly
from lols.errors import ConfigurationError
from lols.io.strings import Texts, texts_of
from lols.tasks.tables.cells import MISSING, Cells, NoNumber, as_texts, numbers_of
from lols.tasks.tables.scan import ColumnScan, quantiles

__all__ = ["NUMERIC", "ColumnCode", "Rows", "TableEncoder", "items_of", "joined", "scaled_id"]

NUMERIC = ("bins", "scaled", "both")
MOST_PRODUCTS = 1 << 20  # of two columns
MOST_TOGETHER = 1 << 22  # of all pairs of columns
MOST_MISSING = 1 << 12  # texts in a model file, with which every cell is compared
TRUTHS = {"0": ("false", "False", "FALSE"), "1": ("true", "True", "TRUE")}
BIAS = 1  # the number of feature types before those of the columns
KEPT = 1 << 16  # the most contributions of types, over all nodes, that are kept: more would not fit into the cache
EACH = np.zeros(0, np.int32)
NOTHING_UNKNOWN = np.zeros(0, np.int64)


class Rows(NamedTuple):
    """Rows as lists of feature types, and as features that only one row has (scaled values)."""

    bounds: np.ndarray  # [rows + 1]: where a row's types begin
    types: np.ndarray  # int32
    start: np.ndarray  # [rows + 1], or empty: where its own features begin
    ids: np.ndarray
    values: np.ndarray
    unknown: np.ndarray = NOTHING_UNKNOWN  # [columns]: the number of cells whose text was not in training

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.bounds.size) - 1

    @property
    def nbytes(self) -> int:
        """The number of bytes in memory."""
        return sum(array.nbytes for array in self)

    def take(self, chosen: np.ndarray) -> Rows:
        """Some of the rows, by their numbers."""
        return joined([self.cut(k, k + 1) for k in chosen.tolist()]) if chosen.size else self.cut(0, 0)

    def cut(self, begin: int, end: int) -> Rows:
        """The rows from one number to another."""
        bounds, start = self.bounds[begin : end + 1], self.start[begin : end + 1]
        own = slice(int(start[0]), int(start[-1])) if start.size else slice(0)
        types = self.types[int(bounds[0]) : int(bounds[-1])]
        return Rows(bounds - bounds[0], types, start - start[:1], self.ids[own], self.values[own])


class ColumnCode(NamedTuple):
    """How the values of a column are numbered: missing is 0, then bins or categories in their order."""

    name: str
    kind: str  # "number" or "category"
    edges: np.ndarray  # of the bins: bin k holds values from edge k - 1 to below edge k
    texts: list[str]
    background: int  # the number without a feature, or -1
    centre: float = 0.0
    width: float = 1.0

    @property
    def size(self) -> int:
        """The size of the numbering."""
        return 1 + (self.edges.size + 1 if self.kind == "number" else len(self.texts))


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
        The feature of a number: `bins`, `scaled` or `both`.
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
                    raise ConfigurationError(f"the interaction {a} * {b} names '{name}', which is no column in use")
            if self.columns[numbers[a]].size * self.columns[numbers[b]].size > MOST_PRODUCTS:
                raise ConfigurationError(
                    f"the interaction {a} * {b} has more than a million pairs of values: use fewer bins"
                )
            self.pairs.append((numbers[a], numbers[b]))
        self._known: dict[int, dict[str, int]] = {}
        sizes = [c.size for c in self.columns] + [self.columns[a].size * self.columns[b].size for a, b in self.pairs]
        if sum(sizes[len(self.columns) :]) > MOST_TOGETHER:
            raise ConfigurationError("the interactions have more than four million pairs of values: use fewer")
        self.first = BIAS + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.unknown = np.zeros(len(self.columns), np.int64)  # as in `Rows`, over all predictions so far

    @classmethod
    def from_scans(
        cls, scans: Sequence[ColumnScan], rows: int, bins: int | None = None, **options: Any
    ) -> TableEncoder:
        """The encoder for what the scans of the columns found."""
        bins = bins or int(min(64, max(4, rows**0.5 / 4)))
        return cls([_code(scan, bins) for scan in scans], **options)

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
            if column.kind == "number" and self.numeric == "scaled":
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
        """The scaled values of the columns of numbers."""
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
        if self.numeric == "bins":
            return nothing
        numbered = [(k, c) for k, c in enumerate(self.columns) if c.kind == "number"]
        values = np.zeros((count, len(numbered)), np.float32)
        for j, (_, column) in enumerate(numbered):
            values[:, j] = _scaled(_numbers(column, table[column.name], self.missing), column)
        ids = np.array([scaled_id(k) for k, _ in numbered], np.int64)
        there = values != 0.0
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return start, np.broadcast_to(ids, there.shape)[there], values[there]

    def _numbered(self, k: int, cells: Cells, unknown: np.ndarray) -> Numbering:
        """The number of each cell's value; -1 for a category that was not in training."""
        column = self.columns[k]
        if column.kind == "number":
            if cells.numbers is not None:
                return Numbering(_binned(cells.numbers, column.edges), EACH)
            each = _binned(_numbers_of_texts(column, cells, self.missing), column.edges)
        else:
            known = self._known.setdefault(k, {text: n for n, text in enumerate(column.texts, 1)})
            cells = _spelled(as_texts(cells), known) if cells.truths else as_texts(cells)
            each = np.array([0 if t in self.missing else known.get(t, -1) for t in cells.texts], np.int32)
            if (each < 0).any():
                unknown[k] = int(cells.counts()[each < 0].sum())
        assert cells.codes is not None
        return Numbering(np.append(each, np.int32(0)), cells.codes)  # the last one is for code -1, missing

    def items(self, rows: Rows, nodes: int) -> Items:
        """The rows as items of a search space, one each."""
        return items_of(rows, self.types, nodes)

    # --- files ---

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""
        facts = [
            {"name": c.name, "kind": c.kind, "background": c.background, "centre": c.centre, "width": c.width}
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
            )
            for k, c in enumerate(facts["columns"])
        ]
        for c in columns:
            if c.kind not in ("number", "category") or not (np.isfinite([c.centre, c.width]).all() and c.width > 0.0):
                raise ValueError(f"column '{c.name}' is damaged")
            if (np.diff(c.edges) <= 0.0).any() or len(set(c.texts)) != len(c.texts) or not -1 <= c.background < c.size:
                raise ValueError(f"column '{c.name}' is damaged")
        if len({c.name for c in columns}) != count:
            raise ValueError("two columns have the same name")
        if len(facts["missing"]) > MOST_MISSING:
            raise ValueError("the texts that mean a missing value are too many")
        pairs = [(str(a), str(b)) for a, b in facts["interactions"]]
        return cls(columns, str(facts["numeric"]), pairs, [str(m) for m in facts["missing"]])


def scaled_id(column: int) -> int:
    """The feature of a column's scaled value."""
    return mix(mix(column, 0x5CA1ED), 1)


def items_of(rows: Rows, kinds: int, nodes: int) -> Items:
    """Rows as items: a feature for each of the `kinds` of feature type, and those of the row."""
    ids = np.fromiter((mix(k, 0x7AB1E) for k in range(kinds)), np.int64, kinds)
    start, values, types, bounds = np.arange(kinds + 1), np.ones(kinds, np.float32), rows.types, rows.bounds
    if rows.start.size:
        start = np.concatenate([start, kinds + rows.start[1:]])
        ids, values = np.concatenate([ids, rows.ids]), np.concatenate([values, rows.values])
        types = np.insert(types, bounds[1:], kinds + np.arange(rows.rows, dtype=np.int32))
        bounds = bounds + np.arange(rows.rows + 1)
    # With many nodes, few rows of a batch share one: keeping the contributions of types there would not pay.
    lasting = kinds if kinds * nodes <= KEPT else 0
    return Items(np.arange(rows.rows + 1), types, start, ids, values, lasting=lasting, bounds=bounds)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]

    def shifted(name: str) -> np.ndarray:
        arrays = [getattr(part, name) for part in parts]
        if not arrays[0].size:
            return np.zeros(0, np.int64)
        ends = np.cumsum([0] + [int(a[-1]) for a in arrays])
        return np.concatenate([[0], *(a[1:] + end for a, end in zip(arrays, ends[:-1], strict=True))]).astype(np.int64)

    flat = [np.concatenate([getattr(part, name) for part in parts]) for name in ("types", "ids", "values")]
    return Rows(shifted("bounds"), flat[0], shifted("start"), flat[1], flat[2])


def _code(scan: ColumnScan, bins: int) -> ColumnCode:
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
    sizes = np.bincount(_binned(values, edges), weights=weights, minlength=edges.size + 2)
    sizes[0] = scan.empty
    logs = np.sign(values) * np.log1p(np.abs(values))
    centre = float(np.average(logs, weights=weights))
    width = float(np.sqrt(np.average((logs - centre) ** 2, weights=weights)))
    return ColumnCode(scan.name, "number", edges, [], int(sizes.argmax()), centre, width or 1.0)


def _binned(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    bins = np.searchsorted(edges, numbers, side="right").astype(np.int32) + np.int32(1)
    bins[np.isnan(numbers)] = 0
    return bins


def _scaled(numbers: np.ndarray, column: ColumnCode) -> np.ndarray:
    """Logarithms of the absolute values, with their sign, standardized; 0 where a number is missing."""
    with np.errstate(invalid="ignore"):
        logs = np.sign(numbers) * np.log1p(np.minimum(np.abs(numbers), 1e300))
    scaled = np.clip((logs - column.centre) / column.width, -10.0, 10.0)
    scaled[np.isnan(numbers)] = 0.0
    return scaled


def _numbers(column: ColumnCode, cells: Cells, missing: Sequence[str]) -> np.ndarray:
    if cells.numbers is not None:
        return cells.numbers
    assert cells.codes is not None
    each = _numbers_of_texts(column, cells, missing)
    return np.where(cells.codes < 0, np.nan, each[cells.codes]) if each.size else np.full(cells.size, np.nan)


def _numbers_of_texts(column: ColumnCode, cells: Cells, missing: Sequence[str]) -> np.ndarray:
    assert cells.codes is not None
    numbers, wrong = numbers_of(cells.texts, missing)
    if wrong >= 0:  # texts that no cell has do not matter: a slice of a batch may have the dictionary of the whole
        there = np.flatnonzero(cells.counts())
        numbers = np.full(len(cells.texts), np.nan)
        numbers[there], wrong = numbers_of([cells.texts[k] for k in there.tolist()], missing)
        wrong = int(there[wrong]) if wrong >= 0 else -1
    if wrong >= 0:
        fix = "training showed numbers in this column: correct the cell, or leave it empty"
        raise NoNumber(column.name, str(cells.texts[wrong]), fix=fix)
    return numbers


def _spelled(cells: Cells, known: Mapping[str, int]) -> Cells:
    """Booleans as training spelled them: a data frame read from CSV has Booleans where the file has texts."""
    texts = [next((t for t in (text, *TRUTHS[text]) if t in known), text) for text in cells.texts]
    return cells._replace(texts=texts)


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
