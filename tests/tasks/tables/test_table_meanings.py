"""A column means the same whatever it comes in: the same types, the same model, the same predictions."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from lols import CostSensitiveClassifier
from lols.tasks.tables.cells import Cells, NoNumber
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.meanings import form_of, meaning, numbers_of, one_spelling
from lols.tasks.tables.scan import ColumnScan
from tests.tasks.tables.classifier_data import scans_of

ROWS = 60
START = dt.datetime(2024, 3, 30, 22, 15)
KINDS = {"flag": "category", "maybe": "category", "name": "category", "code": "category"}  # all others are numbers
MISSING = ("maybe", "span", "when", "zoned", "day", "price", "count", "name", "code")


def columns() -> dict[str, list[Any]]:
    """A column of every kind, most of them with missing values."""
    rng = np.random.default_rng(3)
    steps = [int(k) for k in rng.integers(0, 40, ROWS)]
    made: dict[str, list[Any]] = {
        "flag": [k % 3 == 0 for k in steps],
        "maybe": [k % 2 == 0 for k in steps],
        "span": [dt.timedelta(hours=7 * k - 30, milliseconds=250 * (k % 3)) for k in steps],
        "clock": [dt.time(k % 24, 3 * k % 60, k) for k in steps],
        "when": [START + dt.timedelta(hours=5 * k) for k in steps],
        "zoned": [(START + dt.timedelta(minutes=11 * k)).replace(tzinfo=dt.UTC) for k in steps],
        "day": [START.date() + dt.timedelta(days=k) for k in steps],
        "price": [Decimal(25 * k - 300) / 100 for k in steps],
        "count": [k - 7 for k in steps],
        "size": [float("inf") if k == 39 else 0.25 * k for k in steps],
        "name": ["xyz"[k % 3] for k in steps],
        "code": [10 * (k % 4) for k in steps],
    }
    for place, name in enumerate(MISSING):
        made[name] = [None if k % 13 == place + 2 else value for k, value in enumerate(made[name])]
    return made


TABLE = columns()
LABELS = ["late" if when is None or when > START + dt.timedelta(hours=90) else "early" for when in TABLE["when"]]


def arrow() -> Any:
    kinds = {"span": pa.duration("ms"), "zoned": pa.timestamp("ns", "UTC"), "price": pa.decimal128(9, 2)}
    return pa.table({name: pa.array(column, kinds.get(name)) for name, column in TABLE.items()})


def pandas_typed() -> Any:
    made = pd.DataFrame({name: pd.Series(column) for name, column in TABLE.items()})
    return made.astype({"span": "timedelta64[ns]", "when": "datetime64[ns]", "zoned": "datetime64[ns, Europe/Berlin]"})


def pandas_objects() -> Any:
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in TABLE.items()})


def pandas_nullable() -> Any:
    return pandas_objects().astype({"flag": "boolean", "maybe": "boolean", "count": "Int64", "name": "string"})


def pandas_categories() -> Any:
    return pandas_objects().astype(dict.fromkeys(("flag", "maybe", "name"), "category"))


def pandas_arrow() -> Any:
    return arrow().to_pandas(types_mapper=pd.ArrowDtype)


def pandas_texts() -> Any:
    """As texts, but for what only a file may have as texts."""
    made = pandas_typed()
    texts = {"flag": made["flag"].map({True: "TRUE", False: "FALSE"})}
    texts |= {name: made[name].astype("string") for name in ("span", "when", "zoned", "clock")}
    return made.assign(**texts)


def objects() -> Any:
    made = np.empty((ROWS, len(TABLE)), dtype=object)
    for k, column in enumerate(TABLE.values()):
        made[:, k] = column
    return made


def structured() -> Any:
    made = np.empty(ROWS, [(name, "?" if name == "flag" else object) for name in TABLE])
    for name, column in TABLE.items():
        made[name] = column
    return made


def dictionaries() -> Any:
    rows = ({n: c[k] for n, c in TABLE.items() if c[k] is not None} for k in range(ROWS))
    return [dict(sorted(row.items(), key=lambda item: list(TABLE).index(item[0]))) for row in rows]


CONTAINERS: dict[str, Callable[[], Any]] = {
    "pandas": pandas_typed,
    "pandas objects": pandas_objects,
    "pandas nullable": pandas_nullable,
    "pandas categories": pandas_categories,
    "pandas arrow": pandas_arrow,
    "pandas texts": pandas_texts,
    "polars": lambda: pl.from_arrow(arrow()),
    "arrow": arrow,
    "lists": lambda: [list(row) for row in zip(*TABLE.values(), strict=True)],
    "dictionaries": dictionaries,
    "objects": objects,
    "structured": structured,
}


def text(value: Any, truths: tuple[str, str]) -> str:
    if value is None:
        return ""
    return truths[value] if isinstance(value, bool) else str(value)


def write_csv(path: Path, truths: tuple[str, str] = ("False", "True"), **others: list[Any]) -> Path:
    table = TABLE | others | {"y": LABELS}
    with path.open("w", newline="") as file:
        rows = ([text(value, truths) for value in row] for row in zip(*table.values(), strict=True))
        csv.writer(file).writerows([list(table), *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tables")
    whole = arrow().append_column("y", pa.array(LABELS))
    pyarrow.parquet.write_table(whole, folder / "t.parquet")
    pyarrow.feather.write_feather(whole, folder / "t.feather", compression="uncompressed")
    write_csv(folder / "python.csv")
    write_csv(folder / "lower.csv", ("false", "true"))
    write_csv(folder / "upper.csv", ("FALSE", "TRUE"))
    pandas_typed().assign(y=LABELS).to_csv(folder / "pandas.csv", index=False)
    spans = pl.from_arrow(whole)
    assert isinstance(spans, pl.DataFrame)
    spans.with_columns(pl.col("span").dt.to_string("iso")).write_csv(folder / "polars.csv")
    return {path.name: str(path) for path in sorted(folder.iterdir())}


def classifier(**options: Any) -> CostSensitiveClassifier:
    how: dict[str, Any] = {"passes": 2, "tree": None, "numeric": "both", "categorical": ["code"], "calibrate": False}
    return CostSensitiveClassifier(**(how | options))


def named(kind: str) -> bool:
    return kind not in ("lists", "objects")


@cache
def model_of(kind: str) -> CostSensitiveClassifier:
    own = {} if named(kind) else {"categorical": [f"x{list(TABLE).index('code')}"]}
    return classifier(**own).fit(CONTAINERS[kind](), LABELS)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_columns_are_of_the_same_types(kind: str) -> None:
    model = classifier(categorical=None if not named(kind) else ["code"])
    scans = scans_of(model, CONTAINERS[kind]())
    for name, scan in zip(TABLE, scans, strict=True):
        if named(kind) or name != "code":
            assert scan.kind == KINDS.get(name, "number"), name
        assert scan.empty == TABLE[name].count(None), name
    assert scans[0].categories() == sorted(("True", "False"), key=lambda truth: -TABLE["flag"].count(truth == "True"))


def weights(model: CostSensitiveClassifier) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.contents()[1].items()}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_same_model_is_trained_and_predicts_all_others(kind: str) -> None:
    model, other = model_of(kind), model_of("arrow")
    assert weights(model) == weights(other)
    right = other.predict(arrow()).tolist()
    assert model.score(CONTAINERS[kind](), LABELS) > 0.8
    for each, made in CONTAINERS.items():
        if named(each) == named(kind):
            assert model.predict(made()).tolist() == right, each


def test_files_give_the_same_model_and_predictions(files: dict[str, str]) -> None:
    wanted, right = weights(model_of("arrow")), model_of("arrow").predict(arrow()).tolist()
    for name, path in files.items():
        model = classifier().fit_files(path)
        assert weights(model) == wanted, name
        assert model.predict(arrow()).tolist() == right and not model.unknown_, name
        assert model_of("arrow").predict_files(path).tolist() == right, name
    parts = classifier().fit_files([files["t.parquet"], files["lower.csv"]])
    assert parts.predict(arrow()).shape == (ROWS,)
    assert not parts.unknown_


def test_a_matrix_of_numbers_stands_for_booleans() -> None:
    flags = np.array([[k % 2 == 0, k % 3 == 0] for k in range(24)])
    model = classifier(categorical=None).fit(flags, flags[:, 0])
    for kind in (float, int, np.float32):
        assert model.predict(flags.astype(kind)).tolist() == flags[:, 0].tolist() and not model.unknown_
    of_numbers = classifier(categorical=None).fit(flags.astype(float), flags[:, 0])
    for other in (flags, flags.astype(object), flags.tolist(), np.where(flags, "true", "false").astype(object)):
        assert of_numbers.predict(other).tolist() == flags[:, 0].tolist()


@pytest.mark.parametrize("numeric", ["bins", "scaled", "both", "curve"])
def test_models_from_numbers_read_booleans_as_they_stand_in_a_file(numeric: str, tmp_path: Path) -> None:
    # So models predict that were trained on Booleans of Parquet files as numbers, as earlier versions took them.
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "0,no\n1,yes\n" * 30)
    model = classifier(categorical=None, numeric=numeric).fit_files(str(path))
    path.write_text("a\nTrue\nfalse\n?\nTRUE\n")
    assert model.predict_files(str(path))[[0, 1, 3]].tolist() == ["yes", "no", "yes"]
    path.write_text("a\nTrue\nyes\n")
    with pytest.raises(NoNumber, match="line 3, column 'a': 'yes' is not a number; training showed numbers"):
        model.predict_files(str(path))


def test_booleans_are_numbers_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "False,no\nTRUE,yes\n" * 30)
    of_file = classifier(categorical=None, numerical=["a"]).fit_files(str(path))
    frame = pd.DataFrame({"a": [False, True] * 30})
    of_frame = classifier(categorical=None, numerical=["a"]).fit(frame, ["no", "yes"] * 30)
    assert weights(of_file) == weights(of_frame) and of_file.table_["numbers"] == 1


def test_labels_that_are_booleans_are_the_same_classes(tmp_path: Path) -> None:
    rows: Mapping[str, Any] = {"a": list(range(40)), "y": [k >= 20 for k in range(40)]}
    paths = [tmp_path / name for name in ("t.parquet", "t.csv", "lower.csv")]
    pyarrow.parquet.write_table(pa.table(rows), paths[0])
    pd.DataFrame(rows).to_csv(paths[1], index=False)
    paths[2].write_text(paths[1].read_text().lower())
    models = [classifier(categorical=None).fit_files(str(path)) for path in paths]
    models.append(classifier(categorical=None).fit(pd.DataFrame({"a": rows["a"]}), rows["y"]))
    models.append(classifier(categorical=None, classes=["0", "1"]).fit_files(str(paths[0])))  # as earlier versions
    assert [list(map(str, model.classes_)) for model in models[:3]] == [["False", "True"]] * 2 + [["false", "true"]]
    for model in models:
        for path in paths:
            model.columns_ = models[0].columns_
            assert model.evaluate_files(str(path)).cost < 0.1


def one_by_one(texts: list[str]) -> TableEncoder:
    scan = ColumnScan("c", "category")
    scan.look(Cells(codes=np.arange(len(texts), dtype=np.int32), texts=texts))
    scan.finish()
    return TableEncoder.from_scans([scan], len(texts), numeric="bins")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (["0", "1"], ["False", "True"]),  # Booleans of a Parquet file, as earlier versions took them
        (["1 day, 0:00:00", "0:00:05"], ["86400", "5"]),  # durations in lists
        (["2020-01-01", "2020-01-02"], ["1577836800", "1577923200"]),
        (["1.0", "2.0"], ["1", "2"]),
        (["TRUE", "no"], ["True", "no"]),
    ],
)
def test_categories_of_earlier_models_are_found_by_what_they_mean(before: list[str], now: list[str]) -> None:
    scan = ColumnScan("c", "category")
    scan.texts = dict.fromkeys(before, 1)
    encoder = TableEncoder.from_scans([scan], 2, numeric="bins")
    order = [scan.categories().index(each) for each in before]
    for texts in (before, now):
        made = encoder.encode({"c": Cells(codes=np.arange(2, dtype=np.int32), texts=texts)}, 2)
        assert made.types[made.types > 0].tolist() == [2 + k for k in order] and not made.unknown.any()


def test_categories_have_one_spelling_only_where_all_may_have_one() -> None:
    assert one_spelling({"true": 2, "FALSE": 1, "True": 3}) == {"True": 5, "False": 1}
    assert one_spelling({"0": 2, "1": 1, "True": 3}) == {"False": 2, "True": 4}
    assert one_spelling({"true": 2, "maybe": 1}) == {"true": 2, "maybe": 1}
    assert one_spelling({"0": 2, "1": 1}) == {"0": 2, "1": 1}
    assert one_spelling({"1.0": 2, "1": 1, "-7.00": 1}) == {"1": 3, "-7": 1}
    assert one_spelling({"1.0": 2, "1.5": 1, "007": 1}) == {"1.0": 2, "1.5": 1, "007": 1}
    assert one_spelling({"00:01:00": 2, "60": 1}) == {"00:01:00": 2, "60": 1}
    assert one_spelling({"00:01:00": 2, "PT1M": 1}) == {"60": 3}
    assert one_spelling({}) == {}


DURATIONS = {
    "00:00:00": 0.0,
    "26:03:04.5": 93784.5,
    "-0:00:01": -1.0,
    "1 day, 2:03:04": 93784.0,
    "-1 day, 23:59:57": -3.0,
    "1 days": 86400.0,
    "-1 days +23:59:57.250000": -2.75,
    "0 days 00:00:00.123456789": 0.123456,
    "1 day 02:03:04": 93784.0,
    "P1DT2H3M4.5S": 93784.5,
    "-PT0.25S": -0.25,
    "P2W": 1209600.0,
}


@pytest.mark.parametrize("written", DURATIONS)
def test_durations_however_they_are_written(written: str) -> None:
    assert form_of([written]) == "span"
    assert numbers_of([written, "", f" {written} "])[0].tolist()[::2] == [DURATIONS[written]] * 2


@pytest.mark.parametrize(
    "text", ["", "1", "days", "12:30", "1:2:3", "00:61:00", "P", "PT", "P1M", "P1DT", "1 day,x", "-"]
)
def test_what_is_no_duration(text: str) -> None:
    assert form_of([text], ()) == "number" and meaning(text) == text


def test_a_day_that_is_none_means_nothing_else() -> None:
    assert meaning("2020-02-30") == "2020-02-30"
    assert numbers_of(["00:00:01", "5"])[1] == 1


def test_the_columns_of_dictionaries_are_those_of_training() -> None:
    rows = [{"a": k, "b": "xy"[k % 2]} for k in range(20)]
    model = classifier(categorical=None).fit(rows, ["xy"[k % 2] for k in range(20)])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.predict([{"b": "y"}, {"b": "x", "a": 3}]).tolist() == ["y", "x"]
    with pytest.raises(ValueError, match="the table has 3 columns, but in training there were 2"):
        model.predict([{"b": "y", "c": 1}])
    with pytest.raises(ValueError, match="the dictionaries are empty"):
        classifier(categorical=None).fit([{}, {}], ["x", "y"])
