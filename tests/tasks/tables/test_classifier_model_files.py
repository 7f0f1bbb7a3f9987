"""Model files of classifiers: the same classifier after a round trip, and one clear line for any other file."""

from __future__ import annotations

import copy
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import lols
from lols import CostSensitiveClassifier
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from tests.tasks.tables.classifier_data import classifier, numbers, table, weights
from tests.tasks.tables.table_kinds import KINDS

X, Y = numbers(100)
TABLE, LABELS = table(100)
FRAME = KINDS["pandas"](TABLE)
COSTS = np.random.default_rng(0).uniform(1, 4, (5, 5)) * (1 - np.eye(5))
MAP = {str(k): "even" if k % 2 == 0 else "odd" for k in range(5)}
Change = Callable[[dict[str, Any], dict[str, Any]], Any]

MODELS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "a frame": ({"interactions": [("word", "colour")], "ignore": ["count"]}, FRAME, LABELS),
    "lists": ({"numeric": "both"}, KINDS["lists"](TABLE), LABELS),
    "polars": ({"numeric": "scaled", "missing": ["", "w1"]}, KINDS["polars"](TABLE), LABELS),
    "an array": ({"tree": None}, X, Y),
    "sparse": ({"tree": "similarity"}, csr_matrix(np.where(X > 1, X, 0)), Y),
    "names": ({"tree": "frequency"}, X, np.array(["grün", "b", "c", ""])[Y]),
    "yes or no": ({}, X, Y > 1),
    "a tree in lists": ({"tree": [[3], [[1, 0], 2]]}, X, Y),
    "a matrix": ({"cost_matrix": COSTS, "learner": "csoaa"}, FRAME, LABELS),
    "a label map": ({"label_map": MAP, "learner": "secoc"}, FRAME, LABELS),
    "one class": ({}, X, np.zeros(100, int)),
    "a mixture": ({"algorithm": "searn", "passes": 3}, X, Y),
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("what", MODELS)
def test_a_loaded_classifier_is_the_saved_one(what: str, tmp_path: Path) -> None:
    options, given, labels = MODELS[what]
    made = classifier(**options).fit(given, labels)
    made.save(tmp_path / "m.lols")
    for loaded in (CostSensitiveClassifier.load(tmp_path / "m.lols"), lols.load(str(tmp_path / "m.lols"), threads=2)):
        assert isinstance(loaded, CostSensitiveClassifier)
        assert loaded.classes_.tolist() == made.classes_.tolist() and loaded.classes_.dtype == made.classes_.dtype
        assert loaded.predict(given).tolist() == made.predict(given).tolist()
        assert loaded.predict_costs(given).tobytes() == made.predict_costs(given).tobytes()
        assert loaded.evaluate(given, labels).as_dict() == made.evaluate(given, labels).as_dict()
        assert loaded.n_features_in_ == made.n_features_in_ and loaded.label_map == made.label_map
        assert weights(loaded) == weights(made)
    loaded.save(tmp_path / "again.lols")
    again = lols.load(tmp_path / "again.lols")
    assert weights(again) == weights(made) and again.task_.tree.nested() == made.task_.tree.nested()
    with pytest.raises(ValueError, match="features"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some have names of columns, and this array has none
        loaded.predict(np.zeros((1, 77)))


def test_one_training_gives_one_file(tmp_path: Path) -> None:
    for name in "ab":
        classifier().fit(FRAME, LABELS).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- damaged files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def contents() -> dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]]:
    options = {"cost_matrix": COSTS, "interactions": [("word", "colour")], "numeric": "both"}
    return {
        "table": classifier(**options).fit(FRAME, LABELS).contents(),
        "sparse": classifier().fit(csr_matrix(X), Y).contents(),
    }


def refused(path: Path, *words: str) -> None:
    for opened in (CostSensitiveClassifier.load, lols.load):
        with pytest.raises(ModelFileError) as caught:
            opened(path)
        line = str(caught.value)
        assert line.startswith(str(path)) and "\n" not in line
        for word in words:
            assert word in line


def test_a_file_cut_off_or_flipped_is_refused(contents: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.lols"
    write_tensors(path, "model", *contents["table"])
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    for size in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:size])
        refused(path)
    for at in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x21]) + whole[at + 1 :])
        refused(path)
    assert length < len(whole)


DAMAGES: dict[str, Change] = {
    "a label twice in the tree": lambda h, t: h.update(tree=[[0, 1], [2, [3, 3]]]),
    "a label less in the tree": lambda h, t: h.update(tree=[[0, 1], [2, 3]]),
    "a tree in words": lambda h, t: h.update(tree="order"),
    "nothing in the tree": lambda h, t: h.update(tree=[[0, 1], [2, 3], [4], []]),
    "another arity": lambda h, t: h.update(tree=[0, 1, 2, 3, 4]),
    "no tree": lambda h, t: h.pop("tree"),
    "a matrix of another shape": lambda h, t: t.update({"task.costs": t["task.costs"][:4]}),
    "a flat matrix": lambda h, t: t.update({"task.costs": t["task.costs"].ravel()}),
    "costs below 0": lambda h, t: t.update({"task.costs": -t["task.costs"]}),
    "a class twice": lambda h, t: h.update(classes=[0, 1, 2, 3, 3]),
    "one class more": lambda h, t: h["classes"].append(9),
    "classes of several types": lambda h, t: h.update(classes=[0, 1, 2, 3, "4"]),
    "classes that are lists": lambda h, t: h.update(classes=[[0], [1], [2], [3], [4]]),
    "classes that are nothing": lambda h, t: h.update(classes=None),
    "classes that are no numbers": lambda h, t: h.update(classes=[0.0, 1.0, 2.0, 3.0, float("nan")]),
    "another numbering of features": lambda h, t: h.update(hashing=99),
    "more columns than there are": lambda h, t: h.update(features=5),
    "columns in words": lambda h, t: h.update(features="four"),
    "other names": lambda h, t: h.update(names=["a", "b", "c", "d"]),
    "fewer names": lambda h, t: h["names"].pop(),
    "no names": lambda h, t: h.update(names=[]),
    "skill beyond 1": lambda h, t: h.update(skill=2.0),
    "skill in words": lambda h, t: h.update(skill="much"),
    "options in a list": lambda h, t: h.update(options=[1, 2]),
    "an option that is a list": lambda h, t: h["options"].update(passes=[3]),
    "an option that is an object": lambda h, t: h["options"].update(tree={"a": 1}),
    "a label map in a list": lambda h, t: h.update(label_map=["a"]),
    "files in words": lambda h, t: h.update(files="csv"),
    "a header in words": lambda h, t: h.update(files={"label": "a", "header": "yes", "separator": None}),
    "no table": lambda h, t: h.pop("table"),
    "a table in words": lambda h, t: h.update(table="x"),
    "a column less": lambda h, t: h["table"]["columns"].pop(),
    "a column of another kind": lambda h, t: h["table"]["columns"][0].update(kind="date"),
    "no width": lambda h, t: h["table"]["columns"][0].update(width=0.0),
    "no texts": lambda h, t: t.pop("task.table.texts"),
    "edges out of order": lambda h, t: t.update({"task.table.edges": t["task.table.edges"][::-1].copy()}),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_task_that_does_not_fit_is_refused(what: str, contents: Any, tmp_path: Path) -> None:
    header, tensors = copy.deepcopy(contents["table"])
    DAMAGES[what](header["task"], tensors)
    write_tensors(tmp_path / "m.lols", "model", header, tensors)
    refused(tmp_path / "m.lols")


@pytest.mark.parametrize(
    "change",
    [
        lambda h, t: h["table"].update(columns=7),
        lambda h, t: h.update(features=7),
        lambda h, t: t.update({"task.scales": t["task.scales"][:-1]}),
        lambda h, t: t.update({"task.scales": t["task.scales"] * 0}),
        lambda h, t: t.pop("task.scales"),
    ],
)
def test_a_sparse_task_that_does_not_fit_is_refused(change: Change, contents: Any, tmp_path: Path) -> None:
    header, tensors = copy.deepcopy(contents["sparse"])
    change(header["task"], tensors)
    write_tensors(tmp_path / "m.lols", "model", header, tensors)
    refused(tmp_path / "m.lols")


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a header."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path] * bool(path) + [place for key, value in inner for place in places(value, (*path, key))]


VALUES = st.sampled_from(
    [None, True, -1, 0, 1, 3, 1 << 70, 0.5, float("nan"), float("inf"), "", "x", [], [0], {}, {"a": 1}]
)


@settings(max_examples=300)
@given(st.data(), st.sampled_from(["table", "sparse"]))
def test_whatever_a_header_says_it_is_refused_or_predicts(contents: Any, data: Any, kind: str) -> None:
    header, tensors = copy.deepcopy(contents[kind])
    path = data.draw(st.sampled_from(places(header["task"])))
    part = header["task"]
    for key in path[:-1]:
        part = part[key]
    if data.draw(st.booleans()):
        part[path[-1]] = data.draw(VALUES)
    elif isinstance(part, dict):
        del part[path[-1]]
    else:
        part.append(data.draw(VALUES))
    try:
        model = CostSensitiveClassifier.from_file("m.lols", header, tensors)
    except ModelFileError as error:
        assert "\n" not in str(error)
        return
    predicted = model.predict(FRAME if kind == "table" else csr_matrix(X))
    assert predicted.size == 100
    model.predict_costs(FRAME if kind == "table" else csr_matrix(X))
    model.contents()


@settings(max_examples=150)
@given(st.data())
def test_whatever_arrays_a_file_has_it_is_refused_or_predicts(contents: Any, data: Any) -> None:
    header, tensors = copy.deepcopy(contents["table"])
    name = data.draw(st.sampled_from(sorted(n for n in tensors if n.startswith("task."))))
    array = tensors[name]
    ways = [lambda: array[:-1], lambda: array[::-1].copy(), lambda: array * 0, lambda: array.astype(np.float32)]
    ways += [lambda: array.reshape(1, -1), lambda: array[:0], lambda: -array, lambda: np.append(array, array[-1:])]
    ways += [lambda: array.astype(np.int64) + 1000, lambda: array.astype(np.int32)]
    tensors[name] = data.draw(st.sampled_from(ways))()
    try:
        model = CostSensitiveClassifier.from_file("m.lols", header, tensors)
    except ModelFileError as error:
        assert "\n" not in str(error)
        return
    assert model.predict(FRAME).size == 100


def test_a_file_of_another_estimator_is_refused(tmp_path: Path) -> None:
    tagger = lols.Tagger(passes=1, progress=False).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)
    tagger.save(tmp_path / "m.lols")
    with pytest.raises(ModelFileError, match="not a classifier; `lols inspect` says what it is"):
        CostSensitiveClassifier.load(tmp_path / "m.lols")
    assert read_tensors(tmp_path / "m.lols", "model")[0]["task"]["name"] != "classifier"
