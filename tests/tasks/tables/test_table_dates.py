"""Dates and decimal commas: a CSV file is read as a data frame would be, or the user is told."""

from __future__ import annotations

import itertools
import warnings
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lols import CostSensitiveClassifier
from lols.tasks.tables import scan
from lols.tasks.tables.cells import Cells, NoNumber, cells_of_array
from lols.tasks.tables.meanings import numbers_of
from tests.cli.calling import fine, run
from tests.tasks.tables.classifier_data import scans_of

FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%SZ")


def times(count: int, form: str) -> pd.Series:
    """Times before and after 1970, as exact as the form."""
    rng = np.random.default_rng(count)
    whole = pd.to_datetime(pd.Series(rng.integers(-(10**15), 10**15, count)), unit="us")
    return pd.to_datetime(whole.dt.strftime(form.removesuffix("Z")))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [20, 600])  # Python reads few texts, Arrow many
def test_dates_are_the_seconds_of_a_data_frame(form: str, count: int) -> None:
    given = times(count, form)
    numbers, wrong = numbers_of(["", *given.dt.strftime(form)])
    assert wrong == -1 and np.isnan(numbers[0])
    np.testing.assert_array_equal(numbers[1:], cells_of_array(given.to_numpy()).numbers)


def test_zones_count() -> None:
    same = ["2020-01-01T00:00Z", "2020-01-01 02:00+02:00", "2019-12-31T19:00:00-0500", "2020-01-01"]
    assert set(numbers_of(same)[0].tolist()) == set(numbers_of(same * 99)[0].tolist()) == {1577836800.0}


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (["2020-01-01", "2020-02-30"], 1),
        (["?", "2020-01-01", "17"], 2),
        (["17", "2020-01-01"], 1),
        (["2020-01", "2020-02"], 0),
        (["01.02.2020"], 0),
        (["2020-01-01x"], 0),
    ],
)
def test_what_is_no_date_and_no_number(texts: list[str], wrong: int) -> None:
    for times in (1, 200):
        assert numbers_of(texts * times)[1] == wrong


def test_a_column_of_numbers_and_dates_holds_categories() -> None:
    for order in itertools.permutations((["1", "2"], ["2020-01-01"], ["?"])):
        column = scan.ColumnScan("x")
        for texts in order:
            column.look(Cells(codes=np.arange(len(texts), dtype=np.int32), texts=texts, typed=False))
        column.finish()
        assert column.kind == "category"


def test_a_csv_file_and_a_data_frame_make_the_same_model(tmp_path: Path) -> None:
    rows = 200
    data = pd.DataFrame({"when": times(rows, FORMS[2]), "day": times(rows, FORMS[0]), "n": np.arange(rows)})
    labels = np.where(data["when"] > pd.Timestamp("1970-05-05"), "late", "early")
    data.loc[7, "day"] = pd.NaT
    path = tmp_path / "t.csv"
    data.assign(y=labels).to_csv(path, index=False)
    of_file = CostSensitiveClassifier(passes=1).fit_files(str(path))
    of_frame = CostSensitiveClassifier(passes=1).fit(data, labels)
    one, other = (model.contents()[1] for model in (of_file, of_frame))
    assert one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)
    assert of_file.table_["numbers"] == 3 and of_frame.score(data, labels) > 0.9
    for model in (of_file, of_frame):
        assert model.predict(data).tolist() == model.predict_files(str(path)).tolist()


MOMENTS = [pd.Timestamp("2024-03-31T01:30:00", tz="UTC") + pd.Timedelta(hours=7 * k) for k in range(9)] + [None]
NAIVE = [None if when is None else when.tz_localize(None).to_pydatetime() for when in MOMENTS]
ISO = [None if when is None else when.isoformat() for when in NAIVE]
WAYS: dict[str, Any] = {
    "datetime64": lambda: pd.DataFrame({"t": pd.Series(NAIVE, dtype="datetime64[s]")}),
    "zone": lambda: pd.DataFrame({"t": pd.Series(MOMENTS).dt.tz_convert("Europe/Berlin")}),
    "objects": lambda: pd.DataFrame({"t": pd.Series(NAIVE, dtype=object)}),
    "aware objects": lambda: [[None if when is None else when.to_pydatetime()] for when in MOMENTS],
    "objects and a text": lambda: pd.DataFrame({"t": pd.Series([*NAIVE[:-1], "NA"], dtype=object)}),
    "texts": lambda: pd.DataFrame({"t": ISO}),
    "strings": lambda: pd.DataFrame({"t": pd.Series([*ISO[:-1], "<NA>"], dtype="string")}),
    "lists": lambda: [[text] for text in ISO],
    "arrow": lambda: pa.table({"t": pa.array(NAIVE, pa.timestamp("ns", "America/New_York"))}),
    "arrow texts": lambda: pa.table({"t": pa.array(ISO, pa.large_string())}),
    "polars": lambda: pytest.importorskip("polars").DataFrame({"t": NAIVE}),
    "numpy": lambda: np.array(NAIVE, "datetime64[ms]").reshape(-1, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_dates_are_numbers_however_they_are_written(way: str) -> None:
    model = CostSensitiveClassifier()
    (found,) = scans_of(model, WAYS[way]())
    assert found.kind == "number" and found.empty == 1
    assert found.values.tolist() == [when.timestamp() for when in MOMENTS if when is not None]


@pytest.mark.parametrize("none", [None, float("nan"), pd.NA, pd.NaT, "", "NA", "n/a", "<NA>", "NaT", "?"])
def test_missing_numbers_and_categories_however_they_are_written(none: Any) -> None:
    model = CostSensitiveClassifier()
    frame = pd.DataFrame(
        {"n": pd.Series([1.5, none, 2, 3], dtype=object), "c": pd.Series(["x", "y", none, "x"], dtype=object)}
    )
    number, category = scans_of(model, frame)
    assert (number.kind, number.empty, number.values.tolist()) == ("number", 1, [1.5, 2.0, 3.0])
    assert (category.kind, category.empty, category.categories()) == ("category", 1, ["x", "y"])


def test_decimal_commas_are_reported(tmp_path: Path) -> None:
    data = {"a": ["1,5", "2", "-3,25e2", ""] * 5, "b": ["1.234,5", "0,1", "7,0", "8,0"] * 5}
    data["c"] = ["x,y", "1", "2", "3"] * 5
    labels = ["p", "q", "q", "p"] * 5
    both = "columns 'a', 'b' seem to hold numbers with decimal commas, which are taken for categories: write points"
    with pytest.warns(UserWarning, match=both):
        CostSensitiveClassifier(passes=1).fit(pd.DataFrame(data), labels)
    path, model = tmp_path / "t.csv", tmp_path / "m.lols"
    pd.DataFrame(data | {"y": labels}).to_csv(path, index=False, sep=";")
    said = run("train", "classifier", path, "-o", model, "--passes", 1)
    assert said.code == 0 and said.err.startswith(f"lols: warning: {both}") and said.err.count("\n") == 1
    fine("train", "classifier", path, "-o", model, "--passes", 1, "--categorical", "a", "--categorical", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = pd.DataFrame({"a": ["1.5", "2"] * 5, "c": ["x,y", "1"] * 5})
        CostSensitiveClassifier(passes=1).fit(plain, ["p", "q"] * 5)


def test_dates_after_many_numbers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "FEW", 2)
    column = scan.ColumnScan("x")
    column.look(Cells(codes=np.arange(3, dtype=np.int32), texts=["1", "2", "3"], typed=False))
    with pytest.raises(NoNumber, match="column 'x': '2020-01-01' is not a number"):
        column.look(Cells(codes=np.arange(3, dtype=np.int32), texts=["2020-01-01", "2020-01-02", "?"], typed=False))


def test_missing_values_and_dates_make_the_same_model_in_every_kind_of_table(tmp_path: Path) -> None:
    polars, rng = pytest.importorskip("polars"), np.random.default_rng(0)
    days = [datetime(2024, 1, 1) + timedelta(hours=int(h)) for h in rng.integers(5000, size=120)]
    columns: dict[str, list[Any]] = {
        "when": [None if k % 17 == 3 else day for k, day in enumerate(days)],
        "n": [None if k % 13 == 5 else round(float(x), 3) for k, x in enumerate(rng.normal(size=120))],
        "c": [None if k % 11 == 7 else "xyz"[int(c)] for k, c in enumerate(rng.integers(3, size=120))],
    }
    labels = np.where(np.array(days) > datetime(2024, 4, 10), "late", "early")
    frame, path = pd.DataFrame(columns), tmp_path / "t.csv"
    frame.assign(y=labels).to_csv(path, index=False)
    lists = [list(row) for row in zip(*columns.values(), strict=True)]
    tables = {"pandas": frame, "polars": polars.DataFrame(columns), "arrow": pa.table(columns), "lists": lists}
    models = {kind: CostSensitiveClassifier(passes=2).fit(table, labels) for kind, table in tables.items()}
    of_file = CostSensitiveClassifier(passes=2).fit_files(str(path))
    wanted, right = of_file.contents()[1], of_file.predict_files(str(path)).tolist()
    for kind, model in models.items():
        made = model.contents()[1]
        assert made.keys() == wanted.keys(), kind
        assert all(made[name].tobytes() == wanted[name].tobytes() for name in made), kind
        assert model.predict(tables[kind]).tolist() == right, kind
