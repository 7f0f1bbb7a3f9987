"""The classifier on files: as in memory, out of core in bounded memory, and every mistake with its place."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import lols
from lols.errors import LolsError, ModelFileError
from lols.io import tables
from lols.tasks.tables import predicting, reading
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import evaluate_files, predict_batches
from lols.tasks.tables.reading import open_files
from lols.training.learning import Learning
from lols.training.trainer import Trainer
from tests.tasks.tables.classifier_data import classifier, table, weights
from tests.tasks.tables.table_kinds import KINDS

ROWS = 300
TABLE, NUMBERS = table(ROWS)
NAMES = ["ape", "bee", "cat", "dog", "eel"]
LABELS = [NAMES[k] for k in NUMBERS]


def write(path: Path, columns: dict[str, list[Any]], *, header: bool = True, part: slice = slice(None)) -> str:
    """A table as CSV, compressed if the name says so; what is missing is empty."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if header:
            writer.writerow(columns)
        writer.writerows(zip(*(["" if v is None else v for v in c[part]] for c in columns.values()), strict=True))
    return str(path)


WHOLE = TABLE | {"label": LABELS}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in many pieces, though they are small."""
    batches = tables.TableSource.batches
    monkeypatch.setattr(tables.TableSource, "batches", lambda self, piece=0, threads=1: batches(self, 1 << 11, threads))


def predictions(model: Any, *paths: str, **options: Any) -> list[str]:
    layout = TableFiles.from_description(model.files_)
    found = [each.numbers for each in predict_batches(model, open_files(paths, layout), **options)]
    return [str(model.classes_[k]) for k in np.concatenate(found)]


# --- in memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", ["bins", "both"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_is_learned_like_the_frame(numeric: str, threads: int, tmp_path: Path, small_pieces: None) -> None:
    path = write(tmp_path / "t.csv", WHOLE)
    made = classifier(numeric=numeric, threads=threads, interactions=[("word", "count")]).fit_files(path)
    frame = KINDS["pandas"](TABLE)
    same = classifier(numeric=numeric, interactions=[("word", "count")]).fit(frame, LABELS)
    assert weights(made) == weights(same) and made.task_.describe()[0] == same.task_.describe()[0]
    assert made.classes_.tolist() == NAMES
    assert made.predict(frame).tolist() == same.predict(frame).tolist() == predictions(made, path, threads=threads)
    assert made.table_ == {
        "rows": ROWS,
        "columns": 4,
        "numbers": 2,
        "categories": 2,
        "missing_cells": sum(column.count(None) for column in TABLE.values()),
        "dropped_cells": 0,
        "classes": {name: LABELS.count(name) for name in NAMES},
        "in_memory": True,
    }


def test_every_kind_of_file_gives_the_same_model(tmp_path: Path) -> None:
    expected = weights(classifier().fit_files(write(tmp_path / "t.csv", WHOLE)))
    frame = KINDS["pandas"](TABLE).assign(label=LABELS)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather", compression="uncompressed")
    frame.assign(label=pd.Categorical(LABELS, categories=["zebra", *NAMES])).to_parquet(tmp_path / "c.parquet")
    write(tmp_path / "t.csv.gz", WHOLE)
    for name in ("t.parquet", "t.feather", "c.parquet", "t.csv.gz"):
        made = classifier().fit_files(tmp_path / name)  # type: ignore[arg-type]
        assert weights(made) == expected and made.classes_.tolist() == NAMES, name
    halves = [
        write(tmp_path / f"{k}.csv", WHOLE, part=part) for k, part in enumerate((slice(0, 100), slice(100, None)))
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame[100:], preserve_index=False), tmp_path / "1.parquet")
    assert weights(classifier().fit_files(halves)) == expected
    assert weights(classifier().fit_files([halves[0], str(tmp_path / "1.parquet")])) == expected


def test_labels_anywhere_and_without_a_header(tmp_path: Path) -> None:
    expected = weights(classifier().fit_files(write(tmp_path / "t.csv", WHOLE)))
    first = write(tmp_path / "first.csv", {"label": LABELS} | TABLE)
    made = classifier().fit_files(first, label="label")
    assert weights(made) == expected and made.files_["label"] == "label"
    bare = classifier().fit_files(write(tmp_path / "bare.csv", WHOLE, header=False), header=False)
    with pytest.warns(UserWarning, match="feature names"):
        costs = bare.predict_costs(KINDS["numpy"](TABLE))
    assert costs.tobytes() == made.predict_costs(KINDS["pandas"](TABLE)).tobytes()
    assert bare.files_["label"] == "column5"


def test_a_model_of_files_is_loaded_with_its_layout(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", WHOLE)
    made = classifier(label_map={name: name[0] for name in NAMES}).fit_files(path)
    made.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols")
    assert loaded.files_ == made.files_ and predictions(loaded, path) == predictions(made, path)
    scores = [evaluate_files(m, open_files([path], TableFiles("label")), TableFiles("label")) for m in (made, loaded)]
    assert scores[0].as_dict() == scores[1].as_dict()
    assert scores[0].as_dict() == made.evaluate(KINDS["pandas"](TABLE), LABELS).as_dict()


def test_labels_and_costs_by_class(tmp_path: Path) -> None:
    dotted = WHOLE | {"label": [f"{name}." for name in LABELS]}
    costs = np.random.default_rng(0).uniform(1, 5, (5, 5)) * (1 - np.eye(5))
    order = ["eel", "dog", "cat", "bee", "ape"]
    path = write(tmp_path / "t.csv", dotted)
    made = classifier(classes=order, cost_matrix=costs).fit_files(path)
    same = classifier(classes=order, cost_matrix=costs).fit(KINDS["pandas"](TABLE), LABELS)
    assert weights(made) == weights(same) and made.classes_.tolist() == order
    scores = evaluate_files(made, open_files([path], TableFiles("label")), TableFiles("label"), threads=2)
    assert scores.cost == pytest.approx(same.evaluate(KINDS["pandas"](TABLE), LABELS).cost)
    numbered = classifier(classes=[0, 1, 2, 3, 4]).fit_files(write(tmp_path / "n.csv", TABLE | {"y": NUMBERS.tolist()}))
    assert numbered.classes_.tolist() == ["0", "1", "2", "3", "4"]


def test_unknown_categories_are_counted(tmp_path: Path) -> None:
    made = classifier().fit_files(write(tmp_path / "t.csv", WHOLE))
    predictions(made, write(tmp_path / "u.csv", WHOLE | {"word": ["new"] * ROWS, "colour": ["red", "x", ""] * 100}))
    assert made.unknown_ == {"word": ROWS, "colour": 100}


@pytest.mark.parametrize("spelled", [("false", "true"), ("False", "True"), ("FALSE", "TRUE"), ("0", "1")])
def test_truth_values_of_a_frame_are_what_they_were_in_the_file(spelled: tuple[str, str], tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", {"flag": [spelled[k % 2] for k in range(80)], "label": ["no", "yes"] * 40})
    made = classifier(passes=5, categorical=["flag"]).fit_files(path)
    frame = pd.DataFrame({"flag": [True, False, True]})
    for kind in (bool, object, "boolean"):
        assert made.predict(frame.astype(kind)).tolist() == ["yes", "no", "yes"]
    assert made.unknown_ == {}


def test_dev_files_choose_the_pass(tmp_path: Path) -> None:
    other, truth = table(100, seed=9, noise=0.3)
    dev = write(tmp_path / "d.csv", other | {"label": [NAMES[k] for k in truth]})
    path = write(tmp_path / "t.csv", WHOLE)
    for memory in (1 << 30, 1):
        made = classifier(passes=4).fit_files(path, dev=dev, memory=memory)
        history = [scores["cost"] for scores in made.model_.report["dev"]]
        assert len(history) == 4 and made.table_["in_memory"] == (memory > 1)
        assert evaluate_files(made, open_files([dev], TableFiles("label")), TableFiles("label")).cost == pytest.approx(
            min(history)
        )


# --- out of core ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", ["order", "frequency", "similarity", None])
def test_a_file_larger_than_memory_is_learned_all_the_same(tree: Any, tmp_path: Path, small_pieces: None) -> None:
    path = write(tmp_path / "t.csv", WHOLE)
    made, again = (classifier(tree=tree, passes=4, threads=n).fit_files(path, memory=1) for n in (1, 2))
    assert weights(made) == weights(again) and not made.table_["in_memory"]
    whole = classifier(tree=tree, passes=4).fit_files(path)
    assert made.task_.encoder.describe()[0] == whole.task_.encoder.describe()[0]
    costs = [
        evaluate_files(m, open_files([path], TableFiles("label")), TableFiles("label")).cost for m in (made, whole)
    ]
    assert costs[0] <= costs[1] + 0.05
    assert weights(classifier(tree=tree, passes=4, seed=1).fit_files(path, memory=1)) != weights(made)
    assert made.partial_fit(KINDS["pandas"](TABLE), LABELS).score(KINDS["pandas"](TABLE), LABELS) > 0.9


@pytest.mark.parametrize(("memory", "readings"), [(1 << 30, 1), (1, 1 + 3)])
def test_files_are_looked_at_once_and_then_read_in_every_pass(
    memory: int, readings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, pieces = write(tmp_path / "t.csv", WHOLE), [], reading.TableReader.pieces
    monkeypatch.setattr(reading.TableReader, "pieces", lambda self: begun.append(1) or pieces(self))
    classifier(passes=3, tree="order").fit_files(path, memory=memory)
    assert len(begun) == readings + (memory == 1)  # of a large table the first rows again, for importances


def test_one_pass_in_order_is_the_stream(tmp_path: Path, small_pieces: None) -> None:
    path = write(tmp_path / "t.csv", WHOLE)
    made = classifier(passes=1, shuffle=False).fit_files(path, memory=1)
    whole = classifier(passes=1, shuffle=False).fit_files(path)
    assert weights(made) == weights(whole)


@pytest.mark.parametrize("batches", [2, 9, 14, 23])
def test_a_training_that_reads_its_files_again_resumes_bit_for_bit(
    batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None
) -> None:
    """Wherever it was stopped: within a piece, in a batch that goes on in the next one, or in another pass."""
    path, point = write(tmp_path / "t.csv", WHOLE), tmp_path / "m.checkpoint"
    other, truth = table(100, seed=9, noise=0.3)
    dev = write(tmp_path / "d.csv", other | {"label": [NAMES[k] for k in truth]})
    how: Any = {"dev": dev, "memory": 4000}
    options: Any = {"passes": 3, "batch_size": 37, "tree": "similarity", "class_weight": "balanced"}
    whole = classifier(**options).fit_files(path, **how)
    take, done = Learning.take, []

    def until(learning: Learning, *given: Any) -> None:
        if len(done) == batches:
            raise KeyboardInterrupt
        done.append(1)
        take(learning, *given)

    with monkeypatch.context() as patch:
        patch.setitem(Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(Learning, "take", until)
        with pytest.raises(KeyboardInterrupt):
            classifier(**options).fit_files(path, checkpoint=point, **how)
    with pytest.raises(ModelFileError, match="made with another data; resume with the same data and options"):
        classifier(**options).fit_files(path, checkpoint=point, resume=True, **how | {"memory": 40})
    resumed = classifier(**options).fit_files(path, checkpoint=point, resume=True, **how)
    assert resumed.table_ == whole.table_ and not resumed.table_["in_memory"]
    assert weights(resumed) == weights(whole)
    assert resumed.model_.report["dev"] == whole.model_.report["dev"]
    assert resumed.feature_importances_.tobytes() == whole.feature_importances_.tobytes()
    write(tmp_path / "t.csv", {name: column[1:] for name, column in WHOLE.items()})
    with pytest.raises(ModelFileError, match=r"made with (another|other dev) data"):
        classifier(**options).fit_files(path, checkpoint=point, resume=True, **how)


def test_texts_count_as_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    rows = 2000
    columns = {"x": [f"{k * 0.37:.9f}" for k in range(rows)], "label": ["a", "b"] * (rows // 2)}
    path = write(tmp_path / "t.csv", columns)
    texts = rows * 60  # each cell is a text of its own

    def held(memory: int, **options: Any) -> bool:
        return bool(classifier(passes=1, **options).fit_files(path, memory=memory).table_["in_memory"])

    assert not held(texts) and held(2 * texts)
    assert held(8 * rows, numerical=["x"]) and not held(8 * rows - 1, numerical=["x"])  # numbers are held as such
    lighter = classifier(numerical=["x"]).fit_files(path)
    monkeypatch.setattr(reading, "_lighter", lambda cells, scan: cells)
    assert weights(classifier(numerical=["x"]).fit_files(path)) == weights(lighter)


def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_pieces: None
) -> None:
    alive, most = set(), []

    class Counted(dict[str, Any]):
        """The columns of a piece, counted as long as somebody holds them."""

        def __init__(self, columns: dict[str, Any]):
            super().__init__(columns)
            alive.add(id(self))
            most[-1][0] = max(most[-1][0], len(alive))
            most[-1][1] += 1

        def __del__(self) -> None:
            alive.discard(id(self))

    plain = reading.cells_of_batch
    for module in (reading, predicting):
        monkeypatch.setattr(module, "cells_of_batch", lambda *given: Counted(plain(*given)))
    for times in (1, 8):
        most.append([0, 0])
        path = write(tmp_path / f"{times}.csv", {name: list(column) * times for name, column in WHOLE.items()})
        made = classifier(passes=1, threads=1).fit_files(path, memory=1)
        assert made.table_["rows"] == times * ROWS
        evaluate_files(made, open_files([path], TableFiles("label")), TableFiles("label"), threads=1)
        assert not alive
    (few, pieces), (many, more) = most
    assert more > 5 * pieces and max(few, many) <= 5  # those that threads work on or have waiting


# --- mistakes ---------------------------------------------------------------------------------------------------------


def changed(row: int, column: str, value: Any) -> dict[str, list[Any]]:
    made = {name: list(cells) for name, cells in WHOLE.items()}
    made[column][row] = value
    return made


@pytest.mark.parametrize("memory", [1 << 30, 1])
@pytest.mark.parametrize(
    ("options", "fitting", "content", "what"),
    [
        ({"numerical": ["size"]}, {}, changed(290, "size", "tall"), "line 292, column 'size': 'tall' is not a number"),
        ({}, {}, changed(200, "label", None), "line 202, column 'label': the label is missing; fill it in"),
        ({}, {}, changed(200, "label", " . "), "line 202, column 'label': the label is missing"),
        (
            {"label_map": dict.fromkeys(NAMES[:4], "a")},
            {},
            changed(0, "label", "ape"),
            "label 'eel' is not in the label map",
        ),
        (
            {"label_map": dict.fromkeys(NAMES, "a")},
            {},
            changed(7, "label", "fox"),
            "line 9, column 'label': label 'fox' is not in",
        ),
        (
            {"classes": NAMES},
            {},
            changed(8, "label", "fox"),
            "line 10, column 'label': label 'fox' is none of the classes ape",
        ),
        ({"classes": [1, 2]}, {}, WHOLE, "is none of the classes 1, 2"),
        ({"cost_matrix": np.eye(3)}, {}, WHOLE, "the cost matrix has the shape"),
        ({"ignore": list(TABLE)}, {}, WHOLE, "all columns are ignored: leave one"),
        ({"categorical": ["age"]}, {}, WHOLE, "categorical names 'age', which is not a column"),
        ({}, {"label": "kind"}, WHOLE, "there is no column 'kind' for the labels; the columns are size, count"),
        ({}, {}, {"label": LABELS}, "there is no column beside the labels"),
    ],
)
def test_mistakes_in_training_files_have_their_place(
    options: Any, fitting: Any, content: Any, what: str, memory: int, tmp_path: Path, small_pieces: None
) -> None:
    path = write(tmp_path / "t.csv", content)
    with pytest.raises(LolsError) as caught:
        classifier(**options).fit_files(path, memory=memory, **fitting)
    assert what in str(caught.value) and "\n" not in str(caught.value)
    if "line" in what:
        assert str(caught.value).startswith(path)


def test_a_text_late_in_a_long_column_of_numbers(tmp_path: Path, small_pieces: None) -> None:
    size = [*range(9000), "tall"]
    path = write(tmp_path / "t.csv", {"size": size, "y": ["a", "b"] * 4500 + ["a"]})
    with pytest.raises(LolsError, match=r"t\.csv, line 9002, column 'size': 'tall' is not a number; name the column"):
        classifier().fit_files(path)
    made = classifier(categorical=["size"]).fit_files(path)
    assert made.table_["categories"] == 1
    assert classifier(missing=["tall"]).fit_files(path).table_["missing_cells"] == 1


def test_rows_that_are_too_long_or_too_short_have_their_place(tmp_path: Path) -> None:
    for wrong in ("1,2\n", "1,2,3,4,5,6\n"):
        path = tmp_path / "t.csv"
        lines = Path(write(path, WHOLE)).read_text().splitlines(keepends=True)
        path.write_text("".join([*lines[:100], wrong, *lines[100:]]))
        with pytest.raises(LolsError, match=r"t\.csv, line 101"):
            classifier().fit_files(str(path))


def test_mistakes_in_other_files_have_their_place(tmp_path: Path, small_pieces: None) -> None:
    made = classifier().fit_files(write(tmp_path / "t.csv", WHOLE))
    less = write(tmp_path / "less.csv", {name: column for name, column in WHOLE.items() if name != "colour"})
    with pytest.raises(LolsError, match=r"less\.csv: there is no column 'colour', which the model looks at"):
        predictions(made, less)
    with pytest.raises(LolsError, match=r"t\.csv: there is no column 'kind' for the labels"):
        evaluate_files(made, open_files([str(tmp_path / "t.csv")], TableFiles("kind")), TableFiles("kind"))
    wrong = write(tmp_path / "wrong.csv", changed(250, "size", "tall"))
    for threads in (1, 2):
        with pytest.raises(LolsError, match=r"wrong\.csv, line 252, column 'size': 'tall' is not a number"):
            predictions(made, wrong, threads=threads)
    fox = write(tmp_path / "fox.csv", changed(260, "label", "fox"))
    with pytest.raises(LolsError, match=r"fox\.csv, line 262, column 'label': label 'fox' is none of the classes"):
        evaluate_files(made, open_files([fox], TableFiles("label")), TableFiles("label"))
    with pytest.raises(LolsError, match=r"fox\.csv, line 262, column 'label'"):
        classifier().fit_files(str(tmp_path / "t.csv"), dev=fox)
    from scipy.sparse import csr_matrix

    sparse = classifier().fit(csr_matrix(np.eye(4)), [0, 1, 0, 1])
    with pytest.raises(LolsError, match="the model was trained on a sparse matrix"):
        list(predict_batches(sparse, open_files([fox], TableFiles())))


def test_files_from_python(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(f"{k % 7},{'abc'[k % 3]},{(10, 2, 3)[k % 3]}" for k in range(90)) + "\n")
    model = lols.CostSensitiveClassifier(passes=3, progress=False).fit_files(str(path))
    assert model.classes_.tolist() == ["2", "3", "10"]  # numbers in their own order
    assert model.predict_files(str(path)).tolist()[:3] == ["10", "2", "3"]
    scores = model.evaluate_files(str(path))
    assert scores.rows == 90 and scores.error == 0.0
