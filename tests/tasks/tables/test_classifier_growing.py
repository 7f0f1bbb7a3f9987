"""Classes that come later, costs in the columns of a file, and trials that a killed training does not repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.tasks.tables import settling
from tests.cli.calling import fine, mistake, run

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 3))
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
NEW = np.where(X[:, 1] > 0.8, "d", Y)  # with a class that was not there


def classifier(**options: Any) -> lols.CostSensitiveClassifier:
    return lols.CostSensitiveClassifier(**{"passes": 5, "numeric": "bins", "tree": "order", "seed": 1, **options})


def write(path: Path, labels: Any, **columns: Any) -> Path:
    names = [*"uvw", *columns, *(["label"] if labels is not None else [])]
    table = [*X.T.round(4), *columns.values(), *([labels] if labels is not None else [])]
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in zip(*table, strict=True))]) + "\n")
    return path


# --- classes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", ["order", None])
def test_classes_grow_by_fit_and_by_partial_fit(tree: str | None) -> None:
    old = classifier(tree=tree, warm_start=True).fit(X, Y)
    known = old.predict(X)
    old.fit(X, NEW)
    anew = (classifier(tree=tree).fit(X, NEW).predict(X) == NEW).mean()
    assert old.classes_.tolist() == ["a", "b", "c", "d"] and (old.predict(X) == NEW).mean() > anew - 0.02
    stream = classifier(tree=tree).fit(X, Y)
    stream.partial_fit(X[:1], Y[:1], classes=["d"])
    assert (stream.predict(X) == known).mean() > 0.9  # what was learned holds
    for _ in range(5):
        stream.partial_fit(X, NEW)
    assert (stream.predict(X) == NEW).mean() > anew - 0.05


def test_what_cannot_grow() -> None:
    with pytest.raises(LolsError, match="label 'd' is not among the classes: a, b, c, which are those of the cost"):
        classifier(warm_start=True, cost_matrix=1.0 - np.eye(3)).fit(X, Y).fit(X, NEW)
    with pytest.raises(ConfigurationError, match="texts and numbers cannot both be classes"):
        classifier().fit(X, Y).partial_fit(X[:1], Y[:1], classes=[4])
    with pytest.raises(ConfigurationError, match="secoc cannot learn new labels"):
        classifier(warm_start=True, learner="secoc", slack=None, margin="weighted").fit(X, Y).fit(X, NEW)
    with pytest.raises(ConfigurationError, match="searn trains a new learner in every pass: it cannot go on"):
        classifier(warm_start=True, algorithm="searn", slack=None).fit(X, Y).fit(X, NEW)


def test_the_command_line_goes_on_with_a_new_class(tmp_path: Path) -> None:
    old, new, made = write(tmp_path / "old.csv", Y), write(tmp_path / "new.csv", NEW), tmp_path / "on.lols"
    fine("train", "classifier", old, "-o", tmp_path / "old.lols", "--keep-state", "--calibrate", "--passes", 3)
    said = fine("train", "classifier", new, "--from", tmp_path / "old.lols", "-o", made, "--replay", f"{old}:0.2")
    assert "new to the model: d" in said.out.decode()
    scores = json.loads(fine("evaluate", made, new, "--json").out)
    assert scores["classes"] == ["a", "b", "c", "d"] and scores["error"] < 0.2 and "calibration_error" not in scores
    numbers = classifier().fit(X, (Y == "a").astype(int))
    numbers.save(tmp_path / "numbers.lols")
    head = ("train", "classifier", new, "--from", tmp_path / "numbers.lols", "-o", made)
    mistake(*head, says="there is no column 'x0', which the model was trained with")


# --- costs in columns -------------------------------------------------------------------------------------------------

COSTS = {f"cost {name}": np.round(RNG.uniform(0.1, 3.0, 400) * (name != Y), 3) for name in "cab"}


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_costs_in_columns_are_costs_of_rows(tmp_path: Path, memory: int) -> None:
    path = write(tmp_path / "t.csv", None, **COSTS)
    made = classifier().fit_files(str(path), cost_columns="cost ", memory=memory)
    vectors = np.stack(list(COSTS.values()), axis=1)
    frame: Any = pytest.importorskip("pandas").DataFrame(X.round(4), columns=[*"uvw"])
    whole = classifier(classes=["c", "a", "b"]).fit(frame, costs=vectors)
    assert made.classes_.tolist() == whole.classes_.tolist() == ["c", "a", "b"]
    if memory > 1:
        assert np.array_equal(made.predict_costs(frame), whole.predict_costs(frame))
    found, known = made.evaluate_files(str(path)), made.evaluate(frame, None, vectors)
    assert found.cost == pytest.approx(known.cost) and found.cost < 0.3
    assert found.confusion.tolist() == known.confusion.tolist()


def test_costs_in_columns_from_file_to_file(tmp_path: Path) -> None:
    path, model = write(tmp_path / "t.csv", Y, **COSTS), tmp_path / "m.lols"
    head = ("train", "classifier", path, "-o", model)
    fine(*head, "--cost-columns", "cost ", "--label", "label", "--dev", path, "--passes", 2)
    assert run("predict", model, path, "-o", tmp_path / "out.csv", "--confidence").code == 0
    assert (tmp_path / "out.csv").read_text().startswith("u,v,w,cost c,cost a,cost b,label,confidence\n")
    fine("explain", model, path, "--row", 3)
    assert json.loads(fine("certify", model, path, "--json").out)
    mistake(*head, "--cost-columns", "price", says="there must be a column priceCLASS with the costs of each class")
    mistake(*head, "--cost-columns", "cost ", "--cost-matrix", "kdd99", says="there must be a column cost CLASS")
    bad = write(tmp_path / "bad.csv", None, **COSTS | {"cost b": [*COSTS["cost b"][:-1], -2]})
    mistake(
        "train", "classifier", bad, "-o", model, "--cost-columns", "cost ",
        says="bad.csv, line 401, column 'cost b': '-2' is not a cost; give a number from 0 on",
    )  # fmt: skip
    few = write(tmp_path / "few.csv", None, **{name: COSTS[name] for name in list(COSTS)[:2]})
    mistake("evaluate", model, few, "--label", "w", says="that of 'b' is missing, or one too many")


def test_without_columns_of_costs_errors_are_counted(tmp_path: Path) -> None:
    path, plain, model = write(tmp_path / "t.csv", Y, **COSTS), write(tmp_path / "p.csv", Y), tmp_path / "m.lols"
    head = ("train", "classifier", path, "-o", model, "--cost-columns", "cost ", "--passes", 2)
    fine(*head, "--label", "label")
    with_costs, without = (json.loads(fine("evaluate", model, each, "--json").out) for each in (path, plain))
    assert without["cost"] == pytest.approx(without["error"]) and without["error"] == with_costs["error"]
    assert with_costs["cost"] != pytest.approx(with_costs["error"])
    assert without["note"] == "there are no columns cost CLASS of costs: every error costs 1"
    assert "note" not in with_costs
    assert without["note"].encode() in fine("evaluate", model, plain).out
    assert lols.load(model).evaluate_files(str(plain)).cost == pytest.approx(without["cost"])
    mistake("evaluate", model, plain, "--cost-columns", "cost ", says="there must be a column cost CLASS")
    fine(*head, "--ignore", "label")  # labels are the cheapest classes
    mistake("evaluate", model, plain, says="name their column with --label to count errors")
    assert "note" in json.loads(fine("evaluate", model, plain, "--label", "label", "--json").out)


# --- trials -----------------------------------------------------------------------------------------------------------


def test_a_training_that_was_killed_does_not_repeat_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, point = str(write(tmp_path / "t.csv", Y)), tmp_path / "m.checkpoint"
    options: Any = {"passes": 1, "numeric": "auto", "tree": "auto"}
    whole, tried, plain = classifier(**options).fit_files(path), [], settling._try

    def counted(*given: Any) -> dict[int, float]:
        if len(tried) == 3:
            raise KeyboardInterrupt
        tried.append(given[1])
        return plain(*given)

    monkeypatch.setattr(settling, "_try", counted)
    with pytest.raises(KeyboardInterrupt):
        classifier(**options).fit_files(path, checkpoint=point)
    kept = tmp_path / "m.checkpoint.trials"
    content = kept.read_bytes()
    monkeypatch.setattr(settling, "_try", lambda *given: tried.append(given[1]) or plain(*given))
    again = classifier(**options).fit_files(path, checkpoint=point, resume=True)
    assert len(tried) == len(whole.model_.report["trials"])
    assert again.model_.report["trials"] == whole.model_.report["trials"] and again.chosen_ == whole.chosen_
    kept.write_bytes(content)
    tried.clear()
    classifier(**options | {"seed": 2}).fit_files(
        path, checkpoint=point
    )  # not those of another seed, nor without resume
    assert len(tried) == len(whole.model_.report["trials"])
    kept.write_bytes(content[:-40])
    with pytest.raises(ModelFileError, match=r"m\.checkpoint\.trials: not a readable lols file"):
        classifier(**options).fit_files(path, checkpoint=point, resume=True)


def test_labels_that_are_missing_in_the_first_place() -> None:
    with pytest.raises(LolsError, match="label 'd' is not among the classes"):
        classifier().fit(X, Y).partial_fit(X, NEW)
