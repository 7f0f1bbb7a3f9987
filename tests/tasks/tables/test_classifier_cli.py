"""Classifiers on the command line: trained on tables; tables in, the same tables with classes out."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from lols import CostSensitiveClassifier
from lols.tasks.tables.options import size_of
from tests.cli.calling import mistake
from tests.cli.interrupting import interrupted
from tests.tasks.tables.classifier_tables import CLASSES, GIVEN, fine, read, rows, train, weights, write

# --- training ---------------------------------------------------------------------------------------------------------


def test_training_says_what_it_read_and_how_it_went(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.lols"
    made = train(folder / "train.csv", "--dev", folder / "test.csv", "--patience", 2, "--passes", 6, "-o", out)
    assert (made["rows"], made["columns"], made["numbers"], made["categories"]) == (400, 3, 2, 1)
    assert sum(made["classes"].values()) == 400 and list(made["classes"]) == CLASSES
    assert made["missing_cells"] > 0 and made["in_memory"] is True and made["features"] > 0
    assert made["cost"] == min(entry["cost"] for entry in made["dev"])
    assert made["dev"][made["best_pass"] - 1]["cost"] == made["cost"]
    assert made["seconds_total"] >= made["seconds_reading"] + made["seconds_compiling"] - 1e-6
    work = made["seconds_total"] - made["seconds_reading"] - made["seconds_compiling"]
    assert made["examples_per_second"] == pytest.approx(400 * made["passes"] / work)
    assert made["seconds_reading"] > 0 and len(made["progressive_loss"]) == made["passes"]
    said = fine("train", "classifier", folder / "train.csv", "--dev", folder / "test.csv", "-o", out).out.decode()
    assert "400 rows, 3 columns (2 of numbers, 1 of categories)" in said and "missing cells" in said
    assert "3 classes: ask " in said and "cost per row  dev cost" in said and "rows/s" in said
    assert sorted(os.listdir(tmp_path)) == ["m.lols"]


def test_the_model_is_the_librarys(folder: Path, model: Path, tmp_path: Path) -> None:
    given = CostSensitiveClassifier(progress=False, numeric="bins", tree="order", passes=5)
    wanted = given.fit_files(str(folder / "train.csv"))
    wanted.save(tmp_path / "m.lols")
    assert weights(tmp_path / "m.lols") == weights(model)


def test_every_option_arrives(folder: Path, tmp_path: Path) -> None:
    table = [[a, c, "-" if k % 9 == 0 else s, str(k % 5), y + "."] for k, (a, c, s, y) in enumerate(rows(300, 3))]
    with open(tmp_path / "in.txt", "w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(table)
    (tmp_path / "map.csv").write_text("ask,ask\nno,no\nyes.,yes\n")
    options = [
        *("--label-map", tmp_path / "map.csv", "--cost-matrix", folder / "costs.csv", "--no-header"),
        *("--separator", ";", "--label", "column5", "--tree", "frequency", "--categorical", "column4"),
        *("--numerical", "column1", "--ignore", "column3", "--numeric", "both", "--bins", 7, "--missing", "-"),
        *("--interaction", "column1 * column2", "--interaction", "column2*column4", "--memory", "1MiB"),
        *("--algorithm", "aggrevate", "--roll-in", "mixture", "--beta", 0.25, "--reference", "suboptimal"),
        *("--skill", 0.75, "--learner", "hinge", "--update", "nag", "--margin", "unit", "--rate", 0.3, "--passes", 2),
        *("--batch-size", 32, "--no-shuffle", "--seed", 5, "--threads", 2),
    ]
    made = train(tmp_path / "in.txt", "-o", tmp_path / "m.lols", *options)
    assert made["classes"].keys() == {"ask", "no", "yes"} and made["columns"] == 3 and made["passes"] == 2
    assert (made["numbers"], made["categories"], made["seed"], made["threads"]) == (1, 2, 5, 2)
    found = fine("inspect", tmp_path / "m.lols", "--json").json
    assert found["options"] | {"tree": "frequency", "bins": 7, "margin": "unit", "skill": 0.75} == found["options"]
    assert found["interactions"] == [["column1", "column2"], ["column2", "column4"]] and found["missing"] == ["", "-"]
    assert found["cost_matrix"] == [[0, 1, 2], [1, 0, 1], [4, 1, 0]] and found["label_map"]["yes"] == "yes"
    assert found["algorithm"]["roll_in"] == "mixture" and float(found["algorithm"]["beta"]) == 0.25
    assert found["reference"] == "label_tree:suboptimal" and found["learner"]["update"] == "nag"
    assert found["files"] == {"label": "column5", "header": False, "separator": ";"} and found["batch_size"] == 32
    scores = fine("evaluate", tmp_path / "m.lols", tmp_path / "in.txt", "--json").json
    assert scores["cost"] == pytest.approx((np.array(scores["confusion"]) * found["cost_matrix"]).sum() / 300)
    more = ("--roll-out", "none", "--mix", "state", "--tree", "flat", "--learner", "csoaa")
    mistake("train", "classifier", tmp_path / "in.txt", "-o", tmp_path / "m.lols", *more, says="mix has no effect")


@pytest.mark.parametrize("tree", ["order", "similarity", "flat"])
def test_trees(folder: Path, tmp_path: Path, tree: str) -> None:
    train(folder / "train.csv", "-o", tmp_path / "m.lols", "--tree", tree, "--passes", 2)
    nodes = {"order": 2, "similarity": 2, "flat": 1}
    assert fine("inspect", tmp_path / "m.lols", "--json").json["nodes"] == nodes[tree]


def test_out_of_core(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.lols"
    made = train(folder / "train.csv", "--dev", folder / "test.csv", "-o", out, "--memory", "2kB")
    assert made["in_memory"] is False and made["passes"] == 5 and made["cost"] < 0.3
    assert fine("inspect", out, "--json").json["examples"] == 400
    said = fine("train", "classifier", folder / "train.csv", "-o", out, "--memory", "2k").out.decode()
    assert "larger than --memory" in said
    options = ("train", "classifier", folder / "train.csv", "-o", out, "--memory", "2kB")
    mistake(*options, "--algorithm", "searn", says="or hold the table in memory, by more --memory")


def test_sizes() -> None:
    assert [size_of(t) for t in ("10", "2KB", "1.5 mb", "1GiB")] == [10, 2000, 1_500_000, 1 << 30]


def test_formats_compression_and_several_files(folder: Path, model: Path, tmp_path: Path) -> None:
    table, out = rows(400, 1), tmp_path / "m.lols"
    write(tmp_path / "1.csv", table[:150])
    write(tmp_path / "2.csv", table[150:])
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress((folder / "train.csv").read_bytes()))
    for files in ([tmp_path / "1.csv", tmp_path / "2.csv"], [tmp_path / "train.csv.gz"]):
        train(*files, "-o", out, *GIVEN)
        assert weights(out) == weights(model)


@pytest.mark.parametrize(("dev", "memory"), [(False, "1GB"), (True, "1GB"), (True, "2kB")])
def test_an_interrupted_training_goes_on(
    folder: Path, tmp_path: Path, dev: bool, memory: str, monkeypatch: Any
) -> None:
    held = ("--dev", folder / "test.csv") if dev else ()
    options = (folder / "train.csv", *GIVEN[:-1], 4, "--batch-size", 64, "--memory", memory, "--json", *held, "-o")
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    made = fine("train", "classifier", *options, whole).json
    interrupted(monkeypatch, 11, "classifier", *options, resumed)
    assert not resumed.exists() and (tmp_path / "resumed.lols.checkpoint").exists()
    mistake("train", "classifier", *options, resumed, "--resume", "--seed", 5, says="made with another seed")
    again = fine("train", "classifier", *options, resumed, "--resume").json
    assert weights(resumed) == weights(whole)
    assert [again.get(k) for k in ("dev", "best_pass")] == [made.get(k) for k in ("dev", "best_pass")]
    assert sorted(os.listdir(tmp_path)) == ["resumed.lols", "whole.lols"]


# --- prediction -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("separator", "end"), [(",", "\n"), (";", "\r\n"), ("\t", "\n")])
def test_csv_comes_out_as_it_went_in(
    model: Path, tmp_path: Path, predicted: list[str], separator: str, end: str
) -> None:
    table = rows(90, 2)
    path = write(tmp_path / "in.csv", table, separator=separator, end=end)
    changed = [[*row[:-1], label] for row, label in zip(table, predicted, strict=True)]
    wanted = write(tmp_path / "wanted.csv", changed, separator=separator, end=end).read_bytes()
    for threads in (1, 2):
        assert fine("predict", model, path, "--threads", threads).out == wanted
    fine("predict", model, path, "-o", tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == wanted
    fine("predict", model, path, "-o", path)
    assert path.read_bytes() == wanted and not [n for n in os.listdir(tmp_path) if n.endswith(".tmp")]


def test_a_column_is_appended_where_there_is_none(model: Path, tmp_path: Path, predicted: list[str]) -> None:
    bare = [["size", "colour", "age"], *([row[2], row[1], row[0]] for row in rows(90, 2))]  # in another order
    with open(tmp_path / "in.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(bare)
    fine("predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    made = read(tmp_path / "out.csv")
    assert made[0] == ["size", "colour", "age", "label"] and [row[:-1] for row in made] == bare
    assert [row[-1] for row in made[1:]] == predicted
    fine("predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--label", "guess")
    assert read(tmp_path / "out.csv")[0][-1] == "guess"


def test_without_names(tmp_path: Path) -> None:
    write(tmp_path / "in.csv", rows(200, 4), header=False)
    train(tmp_path / "in.csv", "-o", tmp_path / "m.lols")
    fine("predict", tmp_path / "m.lols", tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    made = read(tmp_path / "out.csv")
    assert len(made) == 200 and [row[:-1] for row in made] == [row[:-1] for row in rows(200, 4)]
    lines = fine("predict", tmp_path / "m.lols", tmp_path / "in.csv", "--labels-only").out.decode().split("\n")
    assert lines == [*(row[-1] for row in made), ""]


def test_labels_only(model: Path, folder: Path, tmp_path: Path, predicted: list[str]) -> None:
    assert fine("predict", model, folder / "test.csv", "--labels-only").out.decode() == "\n".join(
        ["label", *predicted, ""]
    )
    pa.parquet.write_table(pa.csv.read_csv(folder / "test.csv"), tmp_path / "in.parquet")
    lines = fine("predict", model, tmp_path / "in.parquet", "--labels-only").out.decode()
    assert lines == "\n".join([*predicted, ""])


def test_parquet_and_arrow(model: Path, folder: Path, tmp_path: Path, predicted: list[str]) -> None:
    table = pa.csv.read_csv(folder / "test.csv")
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    pa.feather.write_feather(table, tmp_path / "in.feather")
    for name, reader in (("parquet", pa.parquet.read_table), ("feather", pa.feather.read_table)):
        fine("predict", model, tmp_path / f"in.{name}", "-o", tmp_path / "out")
        made = reader(tmp_path / "out")
        assert made.drop_columns("label").equals(table.drop_columns("label"))
        assert made["label"].to_pylist() == predicted
        fine("predict", model, tmp_path / f"in.{name}", "-o", tmp_path / "out", "--label", "new")
        made = reader(tmp_path / "out")
        assert made.drop_columns("new").equals(table) and made["new"].to_pylist() == predicted
        says = f"out.csv: the output is {'parquet' if name == 'parquet' else 'arrow'}, as the table is; name it ."
        mistake("predict", model, tmp_path / f"in.{name}", "-o", tmp_path / "out.csv", says=says)
    fine("predict", model, tmp_path / "in.parquet", "-o", tmp_path / "classes.csv", "--labels-only")


def test_labels_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    table = pa.table({"x": [0.5, 1.5, 2.5, 3.5] * 20, "y": pa.array([0, 0, 1, 1] * 20, pa.int16())})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    train(tmp_path / "in.parquet", "-o", tmp_path / "m.lols")
    fine("predict", tmp_path / "m.lols", tmp_path / "in.parquet", "-o", tmp_path / "out.parquet")
    assert pa.parquet.read_table(tmp_path / "out.parquet").equals(table)


def test_prediction_says_how_much_and_what_it_did_not_know(model: Path, tmp_path: Path) -> None:
    table = [[row[0], "mauve" if k < 3 else row[1], *row[2:]] for k, row in enumerate(rows(20, 5))]
    path = write(tmp_path / "in.csv", table)
    made = fine("predict", model, path, "-o", tmp_path / "out.csv", "--json").json
    assert made["rows"] == 20 and made["unknown"] == {"colour": 3} and made["examples_per_second"] > 0
    assert {"seconds_reading", "seconds_compiling", "seconds_total", "output"} <= set(made)
    said = fine("predict", model, path, "-o", tmp_path / "out.csv").err
    assert "20 rows, " in said and "cells whose category training never showed, left out: colour 3" in said
    assert fine("evaluate", model, path, "--json").json["unknown"] == {"colour": 3}
