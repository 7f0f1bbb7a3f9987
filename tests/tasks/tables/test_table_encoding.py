"""From tables to features: a slow encoder that goes cell by cell, pieces, files, and descriptions that are damaged."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix
from lols.tasks.tables.cells import Cells, NoNumber
from lols.tasks.tables.columns import ColumnCode
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.meanings import MISSING
from lols.tasks.tables.rows import Rows, items_of, joined
from lols.tasks.tables.sparse_encoding import SparseEncoder
from tests.tasks.tables.test_table_scan import scanned, untyped

Column = list[Any]  # texts, numbers, or None
Made = tuple[list[int], list[tuple[int, float]]]

# --- the slow twin ----------------------------------------------------------------------------------------------------


def slow_number(code: ColumnCode, cell: Any) -> float:
    """A cell of a column of numbers."""
    if cell is None or cell in MISSING:
        return math.nan
    return float(cell)


def slow_local(code: ColumnCode, cell: Any) -> int:
    """The number of a cell's value in its column: 0 for missing, -1 for unknown."""
    if code.kind == "number":
        value = slow_number(code, cell)
        return 0 if math.isnan(value) else 1 + sum(value >= edge for edge in code.edges)
    if cell is None or cell in MISSING:
        return 0
    text = cell if isinstance(cell, str) else f"{cell:g}"
    return code.texts.index(text) + 1 if text in code.texts else -1


def slow_row(encoder: TableEncoder, row: Sequence[Any]) -> Made:
    """The types of a row, and its features with values."""
    types, own = [0], []
    local = [slow_local(code, cell) for code, cell in zip(encoder.columns, row, strict=True)]
    first = 1
    for code, number in zip(encoder.columns, local, strict=True):
        if code.kind == "number" and encoder.numeric == "scaled":
            types += [first] if number == 0 else []
        elif number not in (-1, code.background):
            types.append(first + number)
        first += code.size
    names = [code.name for code in encoder.columns]
    for a, b in encoder.interactions:
        one, other = names.index(a), names.index(b)
        codes = encoder.columns[one], encoder.columns[other]
        both = local[one], local[other]
        backgrounds = codes[0].background, codes[1].background
        if -1 not in both and both != backgrounds:
            types.append(first + both[0] * codes[1].size + both[1])
        first += codes[0].size * codes[1].size
    for k, (code, cell) in enumerate(zip(encoder.columns, row, strict=True)):
        value = slow_number(code, cell) if code.kind == "number" and encoder.numeric != "bins" else math.nan
        if not math.isnan(value):
            log = math.copysign(math.log1p(min(abs(value), 1e300)), value)
            scaled = min(max((log - code.centre) / code.width, -10.0), 10.0)
            own += [(mix(mix(k, 0x5CA1ED), 1), scaled)] if np.float32(scaled) != 0 else []
    return types, own


def fast_rows(rows: Rows) -> list[Made]:
    made = []
    for row in range(rows.rows):
        types = rows.types[rows.bounds[row] : rows.bounds[row + 1]].tolist()
        own: list[tuple[int, float]] = []
        if rows.start.size:
            part = slice(int(rows.start[row]), int(rows.start[row + 1]))
            own = list(zip(rows.ids[part].tolist(), rows.values[part].tolist(), strict=True))
        made.append((types, own))
    return made


# --- tables -----------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["red", "blue", "NA", "7", None])
VALUES = st.one_of(st.none(), st.integers(-4, 4), st.sampled_from([0.5, 1e9, -1e300, math.inf, -math.inf]))


def cells_of(column: Column, kind: str) -> Cells:
    """As a number, as texts of CSV, or as texts of a type of texts."""
    if kind == "numbers":
        return Cells(numbers=np.array([math.nan if v is None else v for v in column], np.float64))
    if kind == "csv":
        return untyped(["" if v is None else str(v) for v in column])
    known = sorted({v for v in column if v is not None})
    return Cells(codes=np.array([-1 if v is None else known.index(v) for v in column], np.int32), texts=known)


@st.composite
def encoded_tables(draw: Any) -> tuple[TableEncoder, dict[str, Column], dict[str, str]]:
    """An encoder made for one table, and another table with values that the encoder may not know."""
    rows = draw(st.integers(1, 12))
    kinds = {f"c{k}": draw(st.sampled_from(["numbers", "csv", "texts"])) for k in range(draw(st.integers(1, 4)))}
    seen, met = {}, {}
    scans = []
    for name, kind in kinds.items():
        cells = WORDS if kind == "texts" else VALUES
        seen[name], met[name] = (draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in range(2))
        if kind == "texts":
            seen[name][0] = "red"
        scans.append(scanned([cells_of(seen[name], kind)]))
        scans[-1].name = name
    pairs = draw(st.lists(st.tuples(st.sampled_from(sorted(kinds)), st.sampled_from(sorted(kinds))), max_size=2))
    numeric = draw(st.sampled_from(["bins", "scaled", "both"]))
    encoder = TableEncoder.from_scans(
        scans, rows, draw(st.sampled_from([None, 2, 3, 8])), numeric=numeric, interactions=pairs
    )
    return encoder, draw(st.sampled_from([seen, met])), kinds


def encode(encoder: TableEncoder, table: Mapping[str, Column], kinds: Mapping[str, str]) -> Rows:
    count = len(next(iter(table.values())))
    return encoder.encode({name: cells_of(column, kinds[name]) for name, column in table.items()}, count)


@pytest.mark.uncompiled
@given(encoded_tables())
def test_rows_are_what_goes_through_cell_by_cell(given: Any) -> None:
    encoder, table, kinds = given
    rows = encode(encoder, table, kinds)
    expected = [slow_row(encoder, row) for row in zip(*table.values(), strict=True)]
    for (types, own), (slow_types, slow_own) in zip(fast_rows(rows), expected, strict=True):
        assert types == slow_types
        assert [feature for feature, _ in own] == [feature for feature, _ in slow_own]
        assert np.allclose([v for _, v in own], [v for _, v in slow_own], rtol=1e-5, atol=1e-6)
    unknown = [sum(slow_local(c, v) < 0 for v in table[c.name]) for c in encoder.columns]
    assert rows.unknown.tolist() == unknown
    assert encoder.types == 1 + sum(c.size for c in encoder.columns) + sum(
        encoder.columns[a].size * encoder.columns[b].size for a, b in encoder.pairs
    )
    assert rows.types.size == 0 or 0 <= rows.types.min() <= rows.types.max() < encoder.types


@pytest.mark.uncompiled
@given(encoded_tables(), st.integers(0, 12))
def test_pieces_joined_are_the_whole(given: Any, at: int) -> None:
    encoder, table, kinds = given
    whole = encode(encoder, table, kinds)
    at = min(at, whole.rows)
    parts = [{name: column[part] for name, column in table.items()} for part in (slice(0, at), slice(at, None))]
    made = joined([encode(encoder, part, kinds) for part in parts])
    for name in ("bounds", "types", "start", "ids", "values"):
        one, other = getattr(made, name), getattr(whole, name)
        assert one.tobytes() == other.tobytes() and one.dtype == other.dtype, name


@pytest.mark.uncompiled
@given(encoded_tables(), st.integers(1, 9))
def test_items_have_a_feature_for_each_type_and_those_of_their_own(given: Any, nodes: int) -> None:
    encoder, table, kinds = given
    rows = encode(encoder, table, kinds)
    items = encoder.items(rows, nodes)
    for row, (types, own) in enumerate(fast_rows(rows)):
        found = []
        for k in items.types[items.bounds[row] : items.bounds[row + 1]]:
            found += zip(
                items.ids[items.start[k] : items.start[k + 1]], items.values[items.start[k] : items.start[k + 1]]
            )
        assert found == [(mix(t, 0x7AB1E), 1.0) for t in types] + own
    assert items.first.tolist() == list(range(rows.rows + 1))


def test_what_types_contribute_is_kept_only_where_it_pays() -> None:
    rows = Rows(np.array([0, 1]), np.zeros(1, np.int32), *(np.zeros(0, np.int64),) * 3)
    assert (items_of(rows, 1 << 10, 4).lasting, items_of(rows, 1 << 20, 5).lasting) == (1 << 10, 0)


# --- columns ----------------------------------------------------------------------------------------------------------


def test_few_values_have_a_bin_each_and_the_commonest_has_no_feature() -> None:
    code = TableEncoder.from_scans([scanned([Cells(numbers=np.array([5.0, 1.0, 5.0, 2.0]))])], 4).columns[0]
    assert (code.edges.tolist(), code.background, code.size) == ([2.0, 5.0], 3, 4)
    missing = TableEncoder.from_scans([scanned([Cells(numbers=np.array([1.0, math.nan, math.nan]))])], 3).columns[0]
    assert (missing.edges.tolist(), missing.background) == ([], 0)


def test_bins_are_met_about_equally_often_and_rare_ranges_are_told_apart() -> None:
    values = np.concatenate([np.random.default_rng(0).uniform(0, 1, 4000), [1e3, 1e4, 1e5]])
    code = TableEncoder.from_scans([scanned([Cells(numbers=values)])], values.size, 8).columns[0]
    assert 7 <= code.edges.size <= 11
    shares = np.histogram(values, np.concatenate([[-np.inf], code.edges, [np.inf]]))[0] / values.size
    assert shares.max() <= 0.2


def test_the_number_of_bins_grows_with_the_rows() -> None:
    scan = scanned([Cells(numbers=np.arange(1000.0))])
    sizes = [TableEncoder.from_scans([scan], rows).columns[0].size for rows in (10, 2000, 10**6)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_infinity_alone_or_nothing_at_all_makes_one_bin() -> None:
    for values in ([math.inf, -math.inf], [math.nan, math.nan]):
        encoder = TableEncoder.from_scans([scanned([Cells(numbers=np.array(values))])], 2)
        assert encoder.columns[0].edges.size == 0
        assert fast_rows(encoder.encode({"c": Cells(numbers=np.array(values))}, 2)) == [([0], []), ([0], [])]


def number_column() -> TableEncoder:
    return TableEncoder.from_scans([scanned([untyped(["1", "2", "3"])])], 3)


def test_a_text_in_a_column_of_numbers_is_refused_if_a_cell_has_it() -> None:
    cells = untyped(["1", "x", "2"])
    with pytest.raises(NoNumber, match="column 'c': 'x' is not a number"):
        number_column().encode({"c": cells}, 3)
    assert cells.codes is not None
    some = cells._replace(codes=cells.codes[[0, 2]])  # a part of a batch has the dictionary of the whole
    alone = untyped(["1", "2"])
    for one, other in zip(number_column().encode({"c": some}, 2), number_column().encode({"c": alone}, 2), strict=True):
        assert one.tobytes() == other.tobytes()


def test_gaps_in_texts_without_types_are_missing_values() -> None:
    cells = Cells(codes=np.array([0, -1], np.int32), texts=["1"], typed=False)
    assert fast_rows(number_column().encode({"c": cells}, 2)) == fast_rows(
        number_column().encode({"c": Cells(numbers=np.array([1.0, math.nan]))}, 2)
    )


def test_no_rows_at_all() -> None:
    table = {"a": Cells(codes=np.zeros(0, np.int32), texts=["x", "y"]), "b": Cells(numbers=np.zeros(0))}
    columns = [ColumnCode("a", "category", np.zeros(0), ["x"], -1), ColumnCode("b", "number", np.zeros(0), [], 1)]
    for numeric in ("bins", "scaled", "both"):
        rows = TableEncoder(columns, numeric, [("a", "b")]).encode(table, 0)
        assert rows.rows == 0 and rows.types.size == 0 and rows.values.size == 0


def test_options_that_do_not_fit_are_refused() -> None:
    columns = [ColumnCode(name, "category", np.zeros(0), [str(k) for k in range(2000)], -1) for name in "ab"]
    with pytest.raises(ConfigurationError, match="numeric is 'all': choose bins, scaled, both"):
        TableEncoder(columns, "all")
    with pytest.raises(ConfigurationError, match=r"the interaction a \* z names 'z', which is not a column in use"):
        TableEncoder(columns, interactions=[("a", "z")])
    with pytest.raises(ConfigurationError, match="more than a million pairs"):
        TableEncoder(columns, interactions=[("a", "b")])


# --- descriptions -----------------------------------------------------------------------------------------------------


@given(encoded_tables())
def test_a_description_gives_the_encoder_back(given: Any) -> None:
    encoder, table, kinds = given
    again = TableEncoder.from_description(*encoder.describe())
    assert again.missing == encoder.missing and again.interactions == encoder.interactions
    for one, other in zip(encode(encoder, table, kinds), encode(again, table, kinds), strict=True):
        assert one.tobytes() == other.tobytes()


def described() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    scans = [scanned([Cells(numbers=np.arange(9.0))]), scanned([untyped(["x", "y", "z"])])]
    scans[1].name = "d"
    return TableEncoder.from_scans(scans, 9, interactions=[("c", "d")]).describe()


DAMAGES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "no columns": lambda f, t: f.pop("columns"),
    "one column less": lambda f, t: f["columns"].pop(),
    "a column twice": lambda f, t: f["columns"][1].update(name="c"),
    "a column of another kind": lambda f, t: f["columns"][0].update(kind="numbers"),
    "a column in words": lambda f, t: f["columns"].__setitem__(0, "c"),
    "no width": lambda f, t: f["columns"][0].update(width=0.0),
    "a width that is no number": lambda f, t: f["columns"][0].update(width=math.nan),
    "a centre beyond all": lambda f, t: f["columns"][0].update(centre=math.inf),
    "a background beyond the bins": lambda f, t: f["columns"][0].update(background=99),
    "another feature for numbers": lambda f, t: f.update(numeric="all"),
    "an interaction of one": lambda f, t: f.update(interactions=[["c"]]),
    "an interaction with nothing": lambda f, t: f.update(interactions=[["c", "e"]]),
    "missing texts in a number": lambda f, t: f.update(missing=3),
    "fewer texts": lambda f, t: t.update({"table.begin": t["table.begin"][:-1], "table.end": t["table.end"][:-1]}),
    "texts beyond the buffer": lambda f, t: t.update({"table.end": t["table.end"] + 1000}),
    "texts that are no text": lambda f, t: t.update({"table.texts": np.full_like(t["table.texts"], 255)}),
    "a text twice": lambda f, t: t.update({"table.texts": np.full_like(t["table.texts"], 97)}),
    "categories backwards": lambda f, t: t.update({"table.categories": np.array([0, 4, 3])}),
    "categories from the end": lambda f, t: t.update({"table.categories": np.array([-1, 0, 3])}),
    "bins as fractions": lambda f, t: t.update({"table.bins": t["table.bins"] * 1.0}),
    "edges out of order": lambda f, t: t.update({"table.edges": t["table.edges"][::-1].copy()}),
    "edges in a square": lambda f, t: t.update({"table.edges": t["table.edges"].reshape(1, -1)}),
    "edges as integers": lambda f, t: t.update({"table.edges": t["table.edges"].astype(np.int64)}),
    "no edges": lambda f, t: t.pop("table.edges"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_descriptions_are_refused(what: str) -> None:
    facts, tensors = copy.deepcopy(described())
    TableEncoder.from_description(facts, tensors)
    DAMAGES[what](facts, tensors)
    with pytest.raises((KeyError, TypeError, ValueError, IndexError)):
        TableEncoder.from_description(facts, tensors)


def test_sparse_matrices_are_scaled_by_the_largest_value() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[2.0, 0.0, 0.0], [-4.0, 1.0, 0.0]])
    encoder = SparseEncoder.from_matrix(sparse.csr_matrix(dense))
    assert encoder.scales.tolist() == [4.0, 1.0, 1.0]
    rows = encoder.encode(sparse.csr_matrix(dense))
    ids = encoder.ids.tolist()
    assert fast_rows(rows) == [([0], [(ids[0], 0.5)]), ([0], [(ids[0], -1.0), (ids[1], 1.0)])]
    with pytest.raises(LolsError, match="row 1, column 0 is nan: give a finite number"):
        encoder.encode(sparse.csr_matrix(np.array([[0.0, 1, 0], [math.nan, 0, 0]])))
    facts, tensors = encoder.describe()
    assert SparseEncoder.from_description(facts, tensors).scales.tolist() == [4.0, 1.0, 1.0]
    for wrong in (tensors["scales"][:2], np.array([1.0, 0.0, 1.0]), np.array([1.0, math.nan, 1.0])):
        with pytest.raises(ValueError, match="damaged"):
            SparseEncoder.from_description(facts, {"scales": wrong})
