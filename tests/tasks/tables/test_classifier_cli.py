"""Classifiers on the command line: tables in, the same tables with classes out; mistakes are one line."""

from __future__ import annotations

import csv
import gzip
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import lols
from lols import CostSensitiveClassifier
from lols.io.model_file import read_tensors
from lols.tasks.tables.explain import explain_row
from lols.tasks.tables.files import TableFiles, open_files, predict_batches
from lols.tasks.tables.input import size_of
from lols.tasks.tables.inspect import FeatureNames
from lols.training import trainer
from tests.tasks.tagging.test_tagger_cli import Ran, mistake, run

CLASSES = ["ask", "no", "yes"]
COSTS = "ask,no,yes\n0,1,2\n1,0,1\nyes,4,1,0\n"


def fine(*arguments: Any) -> Ran:
    """What a command does; prediction may say something on standard error."""
    made = run(*arguments)
    assert made.code == 0 and (made.err == "" or arguments[0] == "predict"), made
    return made


def rows(count: int, seed: int, noise: float = 0.1) -> list[list[str]]:
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        age, colour, size = chance.randint(1, 80), chance.choice(["red", "blue", "light, green"]), chance.gauss(0, 9)
        label = "no" if age < 40 else "yes" if colour == "red" else "ask"
        label = chance.choice(CLASSES) if chance.random() < noise else label
        made.append(["" if chance.random() < 0.05 else str(age), colour, f"{size:.2f}", label])
    return made


def write(path: Path, table: list[list[str]], header: bool = True, separator: str = ",", end: str = "\n") -> Path:
    with open(path, "w", newline="") as file:
        out = csv.writer(file, delimiter=separator, lineterminator=end)
        out.writerows(([["age", "colour", "size", "label"]] if header else []) + table)
    return path


def read(path: Path) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


def train(*arguments: Any) -> dict[str, Any]:
    return fine("train", "classifier", *arguments, "--json").json


def weights(path: Path) -> dict[str, Any]:
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in read_tensors(path, "model")[1].items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    write(made / "train.csv", rows(400, 1))
    write(made / "test.csv", rows(90, 2))
    (made / "costs.csv").write_text(COSTS)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    train(folder / "train.csv", "-o", folder / "m.lols")
    return folder / "m.lols"


@pytest.fixture(scope="module")
def predicted(model: Path, folder: Path) -> list[str]:
    """What the library predicts for the test file."""
    classifier = lols.load(model)
    source = open_files([str(folder / "test.csv")], TableFiles())
    numbers = np.concatenate([n for _, n in predict_batches(classifier, source)])
    return classifier.classes_[numbers].tolist()


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
    wanted = CostSensitiveClassifier(progress=False).fit_files(str(folder / "train.csv"))
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
    mistake(*options, "--resume", says="no checkpoint to resume from; start again without --resume, or allow more")
    mistake(*options, "--algorithm", "searn", says="or hold the table in memory, by more --memory")


def test_sizes() -> None:
    assert [size_of(t) for t in ("10", "2KB", "1.5 mb", "1GiB")] == [10, 2000, 1_500_000, 1 << 30]


def test_formats_compression_and_several_files(folder: Path, model: Path, tmp_path: Path) -> None:
    table, out = rows(400, 1), tmp_path / "m.lols"
    write(tmp_path / "1.csv", table[:150])
    write(tmp_path / "2.csv", table[150:])
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress((folder / "train.csv").read_bytes()))
    for files in ([tmp_path / "1.csv", tmp_path / "2.csv"], [tmp_path / "train.csv.gz"]):
        train(*files, "-o", out)
        assert weights(out) == weights(model)


def interrupted(monkeypatch: pytest.MonkeyPatch, batches: int, *arguments: Any) -> None:
    """Train, with a checkpoint after every batch, until someone presses Ctrl-C."""
    done = []
    learn = trainer.TrainingRun.learn

    def until(run: Any, batch: Any) -> None:
        if len(done) == batches:
            raise KeyboardInterrupt
        if run.trainer.passes > 1:  # not the tiny training that has things compiled
            done.append(1)
        learn(run, batch)

    with monkeypatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(trainer.TrainingRun, "learn", until)
        assert run("train", "classifier", *arguments).code not in (0, 2)
    assert len(done) == batches


@pytest.mark.parametrize("dev", [False, True])
def test_an_interrupted_training_goes_on(folder: Path, tmp_path: Path, dev: bool, monkeypatch: Any) -> None:
    held = ("--dev", folder / "test.csv") if dev else ()
    options = (folder / "train.csv", "--passes", 4, "--batch-size", 64, "--json", *held, "-o")
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    made = fine("train", "classifier", *options, whole).json
    interrupted(monkeypatch, 11, *options, resumed)
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


# --- evaluation -------------------------------------------------------------------------------------------------------


def test_evaluate_says_what_the_library_says(model: Path, folder: Path, predicted: list[str]) -> None:
    made = fine("evaluate", model, folder / "test.csv", "--json", "--threads", 2).json
    true = [row[-1] for row in rows(90, 2)]
    wanted = np.zeros((3, 3), int)
    np.add.at(wanted, ([CLASSES.index(y) for y in true], [CLASSES.index(y) for y in predicted]), 1)
    assert made["confusion"] == wanted.tolist() and made["classes"] == CLASSES and made["rows"] == 90
    assert made["error"] == pytest.approx(np.mean(np.array(true) != np.array(predicted))) == made["cost"]
    assert made["by_class"]["no"]["recall"] == pytest.approx(wanted[1, 1] / wanted[1].sum())
    assert {"unknown", "seconds_reading", "seconds_compiling", "seconds_total", "examples_per_second"} <= set(made)
    said = fine("evaluate", model, folder / "test.csv").out.decode()
    assert f"cost {made['cost']:.4f} per row on 90 rows, error {100 * made['error']:.2f} %" in said
    assert "true \\ predicted" in said and "precision" in said


def test_labels_in_another_column(model: Path, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text((folder / "test.csv").read_text().replace("label", "truth", 1))
    wanted = fine("evaluate", model, folder / "test.csv", "--json").json["cost"]
    assert fine("evaluate", model, path, "--label", "truth", "--json").json["cost"] == wanted
    mistake("evaluate", model, path, says="in.csv: there is no column 'label' for the labels; name it with --label")


def test_the_drawing(model: Path, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("matplotlib")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for ending, magic in begins.items():
        made = fine("evaluate", model, folder / "test.csv", "--plot", tmp_path / f"c.{ending}", "--json").json
        assert (tmp_path / f"c.{ending}").read_bytes().startswith(magic) and made["plot"] == str(
            tmp_path / f"c.{ending}"
        )
    options = ("evaluate", model, folder / "test.csv", "--plot")
    mistake(*options, tmp_path / "c.gif", says="c.gif: a drawing is .png, .svg or .pdf; name it so")
    mistake(*options, tmp_path / "no" / "c.png", says="c.png: cannot be written; name a file in a folder")
    assert sorted(os.listdir(tmp_path)) == ["c.pdf", "c.png", "c.svg"]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    mistake(*options, tmp_path / "d.png", says="pip install 'lols[plots]'")


# --- what is in a model -----------------------------------------------------------------------------------------------


def test_inspect(model: Path, folder: Path, tmp_path: Path) -> None:
    made = fine("inspect", model, "--json", "--top", 3).json
    assert made["kind"] == "classifier" and made["classes"] == CLASSES and made["tree"] == ["ask", ["no", "yes"]]
    assert [(c["name"], c["kind"]) for c in made["columns"]] == [
        ("age", "number"),
        ("colour", "category"),
        ("size", "number"),
    ]
    assert list(made["features_of"]) == ["ask", "no | yes (node 1)"]
    features = [entry["feature"] for entry in made["features_of"]["no | yes (node 1)"]["for"]]
    assert any(name.startswith("age") for name in features) and all(
        len(v["for"]) <= 3 for v in made["features_of"].values()
    )
    below = fine("inspect", model, "--json", "--node", 1, "--label", "yes", "--against").json["features_of"]
    assert list(below) == ["yes"] and below["yes"]["for"][0]["feature"].startswith("age in")
    assert all(entry["weight"] > 0 for entry in below["yes"]["against"])
    train(folder / "train.csv", "--cost-matrix", folder / "costs.csv", "-o", tmp_path / "m.lols", "--passes", 1)
    said = fine("inspect", tmp_path / "m.lols").out.decode()
    for text in (
        "a classifier",
        "├─ ask",
        "└─ 1",
        "cost: true",
        "categories",
        "for ask",
        "children"[:5],
    ):
        assert text in said
    mistake("inspect", model, "--label", "maybe", says="there is no class 'maybe' in this model: choose from ask, no")
    mistake("inspect", model, "--node", 2, says="--node is 2: the tree has the nodes 0 to 1")
    mistake("inspect", model, "--part", "parser", says="only pipelines have parts")


def test_inspect_secoc(folder: Path, tmp_path: Path) -> None:
    train(folder / "train.csv", "-o", tmp_path / "m.lols", "--learner", "secoc", "--tree", "flat", "--passes", 1)
    assert "secoc's weights are of sets of children" in fine("inspect", tmp_path / "m.lols").out.decode()
    made = fine("explain", tmp_path / "m.lols", folder / "test.csv", "--json").json
    assert len(made["turns"]) == 1 and made["turns"][0]["reasons"] == []


@pytest.mark.parametrize("options", [(), ("--tree", "flat", "--numeric", "both", "--interaction", "age*colour")])
def test_explain_adds_up(folder: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    out = tmp_path / "m.lols"
    train(folder / "train.csv", "-o", out, "--cost-matrix", folder / "costs.csv", *options)
    classifier, costs = lols.load(out), np.array([[0, 1, 2], [1, 0, 1], [4, 1, 0]])
    table = rows(90, 2)
    labels = fine("predict", out, folder / "test.csv", "--labels-only").out.decode().split("\n")[1:-1]
    for k in range(12):
        made = fine("explain", out, folder / "test.csv", "--row", k + 1, "--top", 99, "--json").json
        assert (made["predicted"], made["true"]) == (labels[k], table[k][-1])
        assert made["cost"] == costs[CLASSES.index(made["true"]), CLASSES.index(made["predicted"])]
        for turn in made["turns"]:
            taken = next(child for child in turn["children"] if child["taken"])
            others = [child["predicted"] for child in turn["children"] if not child["taken"]]
            assert taken["predicted"] == min(child["predicted"] for child in turn["children"])
            assert sum(r["push"] for r in turn["reasons"]) == pytest.approx(
                np.mean(others) - taken["predicted"], abs=1e-4
            )
            for child in turn["children"]:
                assert child["cost"] == min(
                    costs[CLASSES.index(made["true"]), CLASSES.index(name)] for name in child["classes"]
                )
            assert all("?" not in r["feature"] for r in turn["reasons"])
        assert taken["classes"] == [labels[k]]
    said = fine("explain", out, folder / "test.csv", "--row", 2).out.decode()
    assert "Row 2 of " in said and "line 3" in said and "because" in said and "node 0" in said
    assert FeatureNames(classifier.task_.encoder).of(1) == "?" and explain_row.__doc__
    mistake("explain", out, folder / "test.csv", "--row", 0, says="--row is 0: rows are counted from 1")
    mistake("explain", out, folder / "test.csv", "--row", 91, says="test.csv: there is no row 91; it has 90")
    mistake("explain", out, folder / "test.csv", "--sentence", 1, says="--sentence has no effect: the model is a class")
    mistake("explain", out, says="name a file of sentences or rows after it")


def test_explain_without_labels(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age,colour,size\n33,red,1\n50,blue,2\n")
    made = fine("explain", model, tmp_path / "in.csv", "--row", 2, "--json").json
    assert made["true"] is None and made["cost"] is None and made["turns"][0]["children"][0]["cost"] is None
    assert "predicted no\n" in fine("explain", model, tmp_path / "in.csv").out.decode()


# --- mistakes ---------------------------------------------------------------------------------------------------------

FINE = "a,b,y\n1,u,p\n2,v,q\n3,u,q\n"


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (FINE, ["--label", "z"], "bad.csv: there is no column 'z'; the columns are a, b, y"),
        (FINE, ["--categorical", "z"], "categorical names 'z', which is no column; there are a, b"),
        (FINE, ["--numerical", "z"], "numerical names 'z', which is no column"),
        (FINE, ["--ignore", "z"], "ignore names 'z', which is no column"),
        (FINE, ["--ignore", "a", "--ignore", "b"], "all columns are ignored: leave one"),
        (FINE, ["--ignore", "a", "--categorical", "a"], "column 'a' is said to be two things: name it once"),
        (FINE, ["--interaction", "a*z"], "the interaction a * z names 'z', which is no column in use"),
        (FINE, ["--interaction", "ab"], "--interaction is 'ab': name two columns, as A*B"),
        (FINE, ["--numerical", "b"], "bad.csv, line 2, column 'b': 'u' is no number"),
        (FINE, ["--numeric", "x"], "numeric is 'x': choose bins, scaled, both"),
        (FINE, ["--bins", "1"], "bins is 1; it must be at least 2"),
        (FINE, ["--batch-size", "0"], "batch_size is 0; it must be at least 1"),
        (FINE, ["--tree", "x"], "tree is 'x': choose order, frequency, similarity"),
        (FINE, ["--memory", "much"], "--memory is 'much': give a number of bytes, such as 512MB"),
        (FINE, ["--patience", "2"], "patience has no effect: there is no --dev file to get better on"),
        (FINE, ["--dev", "nowhere"], "nowhere: there is no such file"),
        (FINE, ["--reference", "x"], "unknown reference 'x': choose optimal, suboptimal or bad"),
        (FINE, ["--skill", "2"], "skill is 2.0; it is a probability, from 0 to 1"),
        (FINE, ["--margin", "x"], "margin"),
        (FINE, ["--separator", "ab"], "separator: 'ab' cannot be one"),
        (FINE, ["--label-map", "nowhere"], "nowhere: there is no such file"),
        (FINE, ["--label-map", "{map}"], "line 3, column 'y': label 'q' is not in the label map; add a line q,"),
        (FINE, ["--cost-matrix", "{other}"], "bad.csv, line 2, column 'y': label 'p' is none of the classes no, yes"),
        (FINE, ["--cost-matrix", "nowhere"], "nowhere: there is no such file"),
        (FINE, ["--cost-matrix", "{wide}"], "wide.csv, line 2: 3 costs for 2 classes"),
        (FINE, ["--cost-matrix", "{short}"], "short.csv: 1 rows of costs for 2 classes: give a row for each class"),
        (FINE, ["--cost-matrix", "{nan}"], "nan.csv, line 3, column 'p': 'nan' is no cost: give a number from 0 on"),
        (FINE, ["--cost-matrix", "{minus}"], "minus.csv, line 2, column 'q': '-1' is no cost: give a number from 0"),
        (FINE + "4,v\n", [], "bad.csv, line 5: 2 columns instead of 3"),
        (FINE + "4,v,\n", [], "bad.csv, line 5, column 'y': the label is missing; fill it in, or leave the row out"),
        ("y\np\nq\n", ["--header"], "bad.csv: there is no column beside the labels"),
        ("", [], "bad.csv: is empty; give a table with a row of data"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_learned_from(content: str, options: list[str], says: str, tmp_path: Path) -> None:
    small = {"map": "p,x\n", "other": "no,yes\n0,1\n1,0\n", "wide": "p,q\n0,1,2\n1,0,3\n", "short": "p,q\n0,1\n"}
    small |= {"nan": "p,q\n0,1\nnan,0\n", "minus": "p,q\n0,-1\n1,0\n"}
    (tmp_path / "more").mkdir()
    for name, text in small.items():
        (tmp_path / "more" / f"{name}.csv").write_text(text)
    paths = {name: tmp_path / "more" / f"{name}.csv" for name in small}
    path, model = tmp_path / "bad.csv", tmp_path / "m.lols"
    path.write_text(content)
    model.write_bytes(b"the old model")
    mistake("train", "classifier", path, "-o", model, *(o.format(**paths) for o in options), says=says)
    assert model.read_bytes() == b"the old model" and sorted(os.listdir(tmp_path)) == ["bad.csv", "m.lols", "more"]


def test_mistakes_in_prediction(model: Path, folder: Path, tmp_path: Path) -> None:
    out, test = tmp_path / "out.csv", folder / "test.csv"

    def bad(text: str) -> Path:
        (tmp_path / "bad.csv").write_text(text)
        return tmp_path / "bad.csv"

    says = "bad.csv: there is no column 'size', which the model looks at; the columns are age, colour"
    mistake("predict", model, bad("age,colour\n1,red\n"), "-o", out, says=says)
    number = "bad.csv, line 3, column 'size': 'x' is no number"
    for command in (("predict", model), ("evaluate", model)):
        more = ("-o", out) if command[0] == "predict" else ()
        path = bad("age,colour,size,label\n1,red,1,no\n2,red,x,no\n")
        mistake(*command, path, *more, says=number)
        path = bad("age,colour,size,label\n1,red,1,no\n2,red\n")
        mistake(*command, path, *more, says="bad.csv, line 3: 2 columns instead of 4")
        mistake(*command, tmp_path / "nowhere.csv", *more, says="nowhere.csv: there is no such file")
        for option in ("--word", "--use", "--format"):
            mistake(*command, test, *more, option, "x", says=f"{option} has no effect: the model is a classifier")
        mistake(*command, test, *more, "--beam", 2, says="--beam has no effect: the model is a classifier")
        mistake(*command, test, *more, "--column", "label", says="name the labels with --label")
    mistake(
        "evaluate", model, bad("age,colour,size,label\n1,red,1,maybe\n"), says="line 2, column 'label': label 'maybe'"
    )
    mistake("evaluate", model, test, "--unseen", "wrong", says="--unseen has no effect: the model is a classifier")
    mistake("predict", model, "-", "-o", out, says="not from standard input: name a file")
    mistake(
        "predict", model, test, "-o", tmp_path / "no" / "out", says="out: cannot be written; name a file in a folder"
    )
    mistake("predict", model, test, "--json", says="--json and the predictions cannot both go to standard output")
    mistake("train", "classifier", test, "-o", tmp_path / "no" / "m.lols", says="m.lols: there is no folder")
    (tmp_path / "half.lols").write_bytes(model.read_bytes()[:-9])
    mistake("predict", tmp_path / "half.lols", test, "-o", out, says="half.lols: ")
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "half.lols"]


def test_options_of_tables_have_no_effect_on_taggers(folder: Path, tmp_path: Path) -> None:
    lols.Tagger(passes=1, progress=False).fit([["a", "b"]], [["X", "Y"]]).save(tmp_path / "tags.lols")
    model, test = tmp_path / "tags.lols", folder / "test.csv"
    for command, option in (
        ("predict", ["--labels-only"]),
        ("predict", ["--label", "x"]),
        ("evaluate", ["--plot", "x.png"]),
        ("evaluate", ["--separator", ","]),
        ("explain", ["--row", "1"]),
    ):
        mistake(command, model, test, *option, says=f"{option[0]} has no effect: the model is no classifier")
    mistake("inspect", model, "--node", 0, says="only classifiers have nodes; leave out --node")


def test_a_row_that_is_wrong_late_leaves_no_output(model: Path, tmp_path: Path) -> None:
    text = "age,colour,size\n" + "".join(f"{k % 80},red,{k}.5\n" for k in range(400_000)) + "1,red,x\n"
    (tmp_path / "bad.csv").write_text(text)
    mistake(
        "predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.csv", says="bad.csv, line 400002, column 'size'"
    )
    assert os.listdir(tmp_path) == ["bad.csv"]
