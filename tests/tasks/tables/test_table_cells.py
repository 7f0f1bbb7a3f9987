"""Cells of tables: the same values from every kind of table, numbers in texts, and what cannot be a column."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols import CostSensitiveClassifier
from lols.errors import LolsError
from lols.tasks.tables.cells import (
    Cells,
    NoNumber,
    _quick_cells,
    _slow_cells,
    as_texts,
    cells_of_array,
    cells_of_batch,
)
from lols.tasks.tables.input import table_of
from lols.tasks.tables.meanings import MISSING, numbers_of
from tests.tasks.tables.table_kinds import KINDS, is_text, number

NUMBERS = st.one_of(st.none(), st.integers(-9, 9), st.floats(-1e6, 1e6, width=32), st.just(math.inf))
TEXTS = st.one_of(st.none(), st.sampled_from(["a", "b", "NA", "", "7", "grün"]))


@st.composite
def tables(draw: Any) -> dict[str, list[Any]]:
    rows = draw(st.integers(2, 6))
    made = {}
    for k in range(draw(st.integers(1, 4))):
        column = draw(st.lists(TEXTS if k % 2 else NUMBERS, min_size=rows, max_size=rows))
        made[f"x{k}"] = ["a", *column[1:]] if k % 2 else column
    return made


def cells(X: Any) -> dict[str, Cells]:
    return table_of(CostSensitiveClassifier(), X, reset=True).columns


@given(tables(), st.sampled_from(sorted(KINDS)))
def test_every_kind_of_table_has_the_same_cells(table: dict[str, list[Any]], kind: str) -> None:
    made = cells(KINDS[kind](table))
    assert list(made) == list(table)
    for name, column in table.items():
        found = made[name]
        assert found.size == len(column) and found.typed
        if not is_text(column):
            assert found.numbers is not None and found.numbers.dtype == np.float64
            assert np.array_equal(found.numbers, [number(v) for v in column], equal_nan=True)
            continue
        assert found.codes is not None and found.codes.dtype == np.int32
        assert [None if c < 0 else found.texts[c] for c in found.codes] == column
        assert [found.text(row) for row in range(found.size)] == [v or "" for v in column]
        assert found.counts().tolist() == [column.count(text) for text in found.texts]


DATES = [datetime.datetime(2020, 2, 29, 1, 2, 3, 500000), None, datetime.datetime(1950, 1, 1)]
DAYS = [datetime.date(2020, 2, 29), None, datetime.date(1950, 1, 1)]
SPANS = [datetime.timedelta(days=1, milliseconds=250), None, datetime.timedelta(seconds=-3)]
TYPED: dict[str, tuple[Any, list[Any]]] = {
    "int8": (pa.array([-1, None, 3], pa.int8()), [-1, None, 3]),
    "uint64": (pa.array([0, None, 2**60], pa.uint64()), [0, None, 2**60]),
    "float16": (pa.array(np.array([0.5, np.nan, 2.0], np.float16)), [0.5, None, 2.0]),
    "bool": (pa.array([True, None, False]), [1, None, 0]),
    "decimal": (pa.array([Decimal("1.25"), None, Decimal("-3")], pa.decimal128(9, 2)), [1.25, None, -3]),
    "null": (pa.nulls(3), [None] * 3),
    "numbers in a dictionary": (pa.array([5, None, 5], pa.int64()).dictionary_encode(), [5, None, 5]),
    "timestamp us": (pa.array(DATES, pa.timestamp("us")), DATES),
    "timestamp ns": (pa.array(DATES, pa.timestamp("ns")), DATES),
    "timestamp in a zone": (pa.array(DATES, pa.timestamp("ns", "UTC")), DATES),
    "date32": (pa.array(DAYS, pa.date32()), DAYS),
    "date64": (pa.array(DAYS, pa.date64()), DAYS),
    "duration": (pa.array(SPANS, pa.duration("ms")), SPANS),
    "time32": (pa.array([3723, None, 0], pa.time32("s")), [3723, None, 0]),
    "time64": (pa.array([3723 * 10**9 + 1, None, 0], pa.time64("ns")), [3723, None, 0]),
    "pandas dates": (pd.Series(DATES, dtype="datetime64[ns]"), DATES),
    "pandas dates in a zone": (pd.Series(pd.to_datetime(DATES)).dt.tz_localize("UTC"), DATES),
    "pandas spans": (pd.Series(SPANS, dtype="timedelta64[ns]"), SPANS),
    "pandas boolean": (pd.Series([True, None, False], dtype="boolean"), [1, None, 0]),
    "pandas Int64": (pd.Series([7, None, -2], dtype="Int64"), [7, None, -2]),
    "polars dates": (pl.Series(DATES, dtype=pl.Datetime("ms")), DATES),
    "polars days": (pl.Series(DAYS), DAYS),
    "objects": (pd.Series([np.int64(2), pd.NA, Decimal("1.5")], dtype=object), [2, None, 1.5]),
}


@pytest.mark.parametrize("kind", TYPED)
def test_numbers_dates_and_spans_of_every_type(kind: str) -> None:
    column, expected = TYPED[kind]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(type(column).__module__.split(".")[0], pa.table)
    found = cells(frame({"c": column}))["c"].numbers
    assert found is not None
    assert np.array_equal(found, [number(v) for v in expected], equal_nan=True)


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.month_day_nano_interval()]
)
def test_what_is_neither_number_nor_text_is_refused(kind: Any) -> None:
    with pytest.raises(LolsError, match=r"column 'c' holds .*; a column must hold numbers or texts: leave it out"):
        cells(pa.table({"c": pa.nulls(2, kind)}))


def test_columns_of_pandas_that_have_no_arrow_form_are_refused() -> None:
    for column in (pd.Series([1 + 2j]), pd.Series(pd.period_range("2020", periods=1))):
        with pytest.raises(LolsError, match="column 'c' holds"):
            cells(pd.DataFrame({"c": column}))


@pytest.mark.parametrize(
    "frame", [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.Table.from_arrays([pa.nulls(1)] * 2, ["a", "a"])]
)
def test_two_columns_of_one_name_are_refused(frame: Any) -> None:
    with pytest.raises(LolsError, match="two columns are called 'a'; rename one"):
        cells(frame)


def test_objects_that_mean_nothing() -> None:
    values = np.array(["a", None, math.nan, pd.NA, pd.NaT, np.float32("nan"), Decimal("nan"), 5], dtype=object)
    found = cells_of_array(values)
    assert found.codes is not None
    assert found.codes.tolist() == [0, -1, -1, -1, -1, -1, -1, 1] and found.texts == ["a", "5"]


OBJECTS: dict[str, tuple[Any, ...]] = {
    "numbers": (0, -0.0, 2.5, math.inf, 10**400, np.float32(0.1), np.int64(7), math.nan, np.float64("nan"), None),
    "truths": (True, False, np.True_, None),
    "texts": ("a", "b", "1", "", None, math.nan, float("nan")),
}
SOME = [*OBJECTS.values(), sum(OBJECTS.values(), ())]


@given(st.one_of(*(st.lists(st.sampled_from(each)) for each in SOME)))
def test_plain_objects_are_what_they_are_one_by_one(values: list[Any]) -> None:
    array = np.empty(len(values), object)
    array[:] = values
    quick, slow = _quick_cells(array), _slow_cells(array)
    if quick is not None:
        np.testing.assert_array_equal(quick.numbers, slow.numbers)
        np.testing.assert_array_equal(quick.codes, slow.codes)
        assert quick._replace(numbers=None, codes=None) == slow._replace(numbers=None, codes=None)
    else:
        assert slow.codes is not None or len({*map(type, values)}) > 1 or math.inf in slow.numbers


@given(st.lists(st.one_of(st.just(math.nan), st.integers(-(2**53), 2**53), st.floats(allow_nan=False))))
def test_numbers_as_texts_are_told_apart(values: list[float]) -> None:
    made = as_texts(Cells(numbers=np.array(values, np.float64)))
    assert made.codes is not None and len(set(made.texts)) == len(made.texts)
    assert np.array_equal([math.nan if c < 0 else float(made.texts[c]) for c in made.codes], values, equal_nan=True)
    assert as_texts(made) is made


def test_whole_numbers_are_written_without_a_point() -> None:
    made = as_texts(Cells(numbers=np.array([1234567.0, 1234568.0, -0.5, 1e300, math.inf, math.nan])))
    assert made.texts == ["-0.5", "1234567", "1234568", "1e+300", "inf"]
    shown = Cells(numbers=np.array([3.0, 0.25, math.nan]))
    assert [shown.text(k) for k in range(3)] == ["3", "0.25", ""]


PLAIN = st.sampled_from(
    ["1", "-2.5", "1e3", " 4", "+5", ".5", "inf", "-inf", "", "NA", "?", "nan", "1e999", "x", "1_0", "0x1", "1,5"]
)


@given(st.lists(PLAIN, max_size=5), st.booleans(), st.sampled_from([MISSING, (), ("x",)]))
def test_texts_as_numbers_one_by_one(texts: list[str], many: bool, missing: tuple[str, ...]) -> None:
    texts = ["1"] * (300 if many else 0) + texts  # many go another way
    numbers, wrong = numbers_of(texts, missing)
    for k, text in enumerate(texts):
        try:
            expected = math.nan if text in missing else float(text.replace("_", "x"))
        except ValueError:
            assert wrong == k
            return
        assert numbers[k] == expected or (math.isnan(expected) and math.isnan(numbers[k]))
    assert wrong == -1 and numbers.size == len(texts)


def test_texts_without_types_may_have_gaps() -> None:
    # A CSV file and a Parquet file together: texts in both, and gaps in the second one.
    column = pa.array(["1", None, "2", None]).dictionary_encode()
    found = cells_of_batch(pa.table({"c": column}), ["c"], typed=False)["c"]
    assert found.codes is not None
    assert found.codes.tolist() == [0, -1, 1, -1] and not found.typed and found.counts().tolist() == [1, 1]


def test_no_number_says_where() -> None:
    error = NoNumber("age", "x")
    found = error.at(Cells(codes=np.array([0, 1, 1], np.int32), texts=["1", "x"]), lambda row: f"row {row}")
    assert str(found).startswith("row 1, column 'age': 'x' is not a number; name the column as categorical, or the")
    assert (found.column, found.text) == ("age", "x")


@pytest.mark.parametrize("digits", [400, 5000])
def test_whole_numbers_of_many_digits_are_infinite_as_in_a_file(digits: int) -> None:
    large = 10**digits
    found = cells_of_array(np.array([1, large, -large], object)).numbers
    assert found is not None and found.tolist() == [1.0, math.inf, -math.inf]
    assert numbers_of(["1" + "0" * digits])[0].tolist() == [math.inf]
    model = CostSensitiveClassifier(passes=1).fit([[1, large], [2, 3]] * 5, ["a", "b"] * 5)
    assert model.predict([[1, large]]).tolist() == ["a"]
    with pytest.raises(LolsError, match="the cost matrix is not made of numbers"):
        CostSensitiveClassifier(cost_matrix=[[0, large], [1, 0]]).fit([[1], [2]], ["a", "b"])
    with pytest.raises(LolsError, match="costs are not made of numbers"):
        CostSensitiveClassifier().fit([[1], [2]], ["a", "b"], costs=[[0, large], [1, 0]])
