"""What is said of classifiers on the command line: scores, model files, decisions; and mistakes, in one line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.tasks.tables.explain import explain_row
from lols.tasks.tables.inspect import FeatureNames
from tests.cli.calling import mistake
from tests.tasks.tables.classifier_tables import CLASSES, fine, rows, train

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
    mistake(*options, tmp_path / "no" / "c.png", says="c.png: cannot be written; name a file in an existing")
    drawn = [f"c{which}.{ending}" for which in ("-reliability", "") for ending in ("pdf", "png", "svg")]
    assert sorted(os.listdir(tmp_path)) == drawn
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
    mistake("inspect", model, "--part", "parser", says="--part has no effect: the model is a classifier")


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
        for turn, decision in zip(made["turns"], made["decisions"], strict=True):
            costs_below = {child["name"]: child["cost"] for child in turn["children"]}
            assert {a["action"]: a["loss"] for a in decision["actions"]} == costs_below
            least = min(costs_below.values())
            assert {a["action"]: a["cost"] for a in decision["actions"]} == {
                n: c - least for n, c in costs_below.items()
            }
            assert decision["wrong"] == (costs_below[decision["taken"]] > least)
            assert costs_below[decision["reference"]] == least and decision["reasons"] == turn["reasons"]
    said = fine("explain", out, folder / "test.csv", "--row", 2).out.decode()
    assert "Row 2 in " in said and "line 3" in said and "because" in said and "node" in said
    assert FeatureNames(classifier.task_.encoder).of(1) == "?" and explain_row.__doc__
    mistake("explain", out, folder / "test.csv", "--row", 0, says="--row is 0: rows are counted from 1")
    mistake("explain", out, folder / "test.csv", "--row", 91, says="test.csv: there is no row 91; it has 90")
    mistake("explain", out, folder / "test.csv", "--sentence", 1, says="--sentence has no effect: the model is a class")
    mistake("explain", out, says="name a file of rows after it")


def test_explain_without_labels(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age,colour,size\n33,red,1\n50,blue,2\n")
    made = fine("explain", model, tmp_path / "in.csv", "--row", 2, "--json").json
    assert made["true"] is None and made["cost"] is None and made["turns"][0]["children"][0]["cost"] is None
    assert "predicted no by " in fine("explain", model, tmp_path / "in.csv").out.decode()


# --- mistakes ---------------------------------------------------------------------------------------------------------

FINE = "a,b,y\n1,u,p\n2,v,q\n3,u,q\n"


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (FINE, ["--label", "z"], "bad.csv: there is no column 'z' for the labels; the columns are a, b, y"),
        (FINE, ["--categorical", "z"], "categorical names 'z', which is not a column; there are a, b"),
        (FINE, ["--numerical", "z"], "numerical names 'z', which is not a column"),
        (FINE, ["--ignore", "z"], "ignore names 'z', which is not a column"),
        (FINE, ["--ignore", "a", "--ignore", "b"], "all columns are ignored: leave one"),
        (FINE, ["--ignore", "a", "--categorical", "a"], "column 'a' is said to be two things: name it once"),
        (FINE, ["--interaction", "a*z"], "the interaction a * z names 'z', which is not a column in use"),
        (FINE, ["--interaction", "ab"], "--interaction is 'ab': name two columns, as A*B"),
        (FINE, ["--numerical", "b"], "bad.csv, line 2, column 'b': 'u' is not a number"),
        (FINE, ["--numeric", "x"], "numeric is 'x': choose bins, scaled, both"),
        (FINE, ["--bins", "1"], "bins is 1; it must be at least 2"),
        (FINE, ["--batch-size", "0"], "batch_size is 0; it must be at least 1"),
        (FINE, ["--tree", "x"], "tree is 'x': choose auto, order, frequency, similarity"),
        (FINE, ["--memory", "much"], "--memory is 'much': give a number of bytes, such as 512MB"),
        (FINE, ["--patience", "2"], "patience has no effect: there are no dev data to get better on"),
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
        (FINE, ["--cost-matrix", "{nan}"], "nan.csv, line 3, column 'p': 'nan' is not a cost: give a number from 0 on"),
        (FINE, ["--cost-matrix", "{minus}"], "minus.csv, line 2, column 'q': '-1' is not a cost: give a number from 0"),
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
    number = "bad.csv, line 3, column 'size': 'x' is not a number"
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
        mistake(*command, test, *more, "--column", "label", says="the model is a classifier; it takes --label")
    mistake(
        "evaluate", model, bad("age,colour,size,label\n1,red,1,maybe\n"), says="line 2, column 'label': label 'maybe'"
    )
    mistake("evaluate", model, test, "--unseen", "wrong", says="--unseen has no effect: the model is a classifier")
    mistake("predict", model, "-", "-o", out, says="not from standard input: name a file")
    mistake(
        "predict",
        model,
        test,
        "-o",
        tmp_path / "no" / "out",
        says="out: cannot be written; name a file in an existing",
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
        ("evaluate", ["--separator", ","]),
        ("explain", ["--row", "1"]),
    ):
        mistake(command, model, test, *option, says=f"{option[0]} has no effect: the model is a tagger")
    mistake("inspect", model, "--node", 0, says="--node has no effect: the model is a tagger")


def test_a_row_that_is_wrong_late_leaves_no_output(model: Path, tmp_path: Path) -> None:
    text = "age,colour,size\n" + "".join(f"{k % 80},red,{k}.5\n" for k in range(400_000)) + "1,red,x\n"
    (tmp_path / "bad.csv").write_text(text)
    mistake(
        "predict", model, tmp_path / "bad.csv", "-o", tmp_path / "out.csv", says="bad.csv, line 400002, column 'size'"
    )
    assert os.listdir(tmp_path) == ["bad.csv"]
