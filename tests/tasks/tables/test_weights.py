"""Weights of rows and classes multiply costs, in Python and in files; importances say which columns matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lols
from lols import CostSensitiveClassifier
from lols.errors import ConfigurationError, LolsError
from tests.tasks.tables.classifier_data import classifier, numbers, weights

X, Y = numbers(160, classes=3, spread=4.0)
HEAVY = np.where(Y == 1, 7.0, 1.0)


def rare(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap, one of them rare."""
    rng = np.random.default_rng(3)
    made = rng.normal(size=(rows, 2))
    return made, (made[:, 0] + rng.normal(size=rows) > 1.5).astype(int)


def test_weights_multiply_costs_however_they_are_given() -> None:
    wanted = weights(classifier().fit(X, Y, sample_weight=HEAVY))
    costs = HEAVY[:, np.newaxis] * (np.arange(3) != Y[:, np.newaxis])
    assert wanted != weights(classifier().fit(X, Y))
    assert wanted == weights(classifier().fit(X, Y, HEAVY))  # what a mistake costs in each row
    assert wanted == weights(classifier().fit(X, Y, costs))
    assert wanted == weights(classifier(class_weight={1: 7.0}).fit(X, Y))
    assert wanted == weights(classifier(class_weight={1: 3.5}).fit(X, Y, sample_weight=np.where(Y == 1, 2.0, 1.0)))
    matrix = classifier(cost_matrix=[[0, 1, 1], [7, 0, 7], [1, 1, 0]]).fit(X, Y)
    assert matrix.predict(X).tolist() == classifier().fit(X, Y, sample_weight=HEAVY).predict(X).tolist()
    assert weights(classifier().fit(X, Y, sample_weight=np.ones(160))) == weights(classifier().fit(X, Y))
    stream = classifier(tree=None, shuffle=False, passes=1, batch_size=8)
    assert weights(stream.partial_fit(X, Y, classes=[0, 1, 2], sample_weight=HEAVY)) == weights(
        classifier(tree=None, shuffle=False, passes=1, batch_size=8).fit(X, Y, sample_weight=HEAVY)
    )


@pytest.mark.parametrize("reference", ["optimal", "suboptimal", "bad"])
@pytest.mark.parametrize("algorithm", ["auto", "lols"])
def test_weights_reach_every_teacher(reference: str, algorithm: str) -> None:
    options: dict[str, Any] = {"reference": reference, "algorithm": algorithm}
    costs = HEAVY[:, np.newaxis] * (np.arange(3) != Y[:, np.newaxis])
    assert weights(classifier(**options).fit(X, Y, sample_weight=HEAVY)) == weights(
        classifier(**options).fit(X, Y, costs)
    )


def test_balanced_classes_weigh_the_same() -> None:
    table, labels = rare()
    plain = classifier(passes=5).fit(table, labels)
    even = classifier(passes=5, class_weight="balanced").fit(table, labels)
    counts = np.bincount(labels)
    assert weights(even) == weights(classifier(passes=5).fit(table, labels, sample_weight=(600 / (2 * counts))[labels]))
    assert even.predict(table).mean() > 1.5 * plain.predict(table).mean()


def test_mistakes_in_weights() -> None:
    for given, says in (
        (np.ones(3), "sample_weight has the shape .3,., but there are 160 rows"),
        (np.ones((160, 2)), "sample weights must be 1D array or scalar"),
        (-HEAVY, "row 0: sample_weight is -"),
        (np.zeros(160), "sample_weight: the weights of all rows are zero"),
        (["a"] * 160, "sample_weight is not made of numbers"),
    ):
        with pytest.raises(LolsError, match=says):
            classifier().fit(X, Y, sample_weight=given)
    for wrong, says in (({9: 1.0}, "class_weight names 9"), ("even", "give .balanced."), ({1: -1}, "has -1 for 1")):
        with pytest.raises(ConfigurationError, match=says):
            classifier(class_weight=wrong).fit(X, Y)
    with pytest.raises(ConfigurationError, match="no effect with margin unit"):
        classifier(margin="unit").fit(X, Y, sample_weight=HEAVY)
    with pytest.raises(ConfigurationError, match="class_weight has no effect"):
        classifier(margin="unit", class_weight="balanced").fit(X, Y)


def test_a_column_of_weights_in_a_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(w=HEAVY, y=Y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.drop(columns="w").to_csv(tmp_path / "bare.csv", index=False)
    made = classifier().fit_files(str(tmp_path / "t.csv"), label="y", weight="w")
    same = classifier().fit(frame[list("abcdef")], [str(label) for label in Y], sample_weight=HEAVY)
    assert weights(made) == weights(same) and made.n_features_in_ == 6
    assert weights(made) == weights(classifier(class_weight={"1": 7}).fit_files(str(tmp_path / "bare.csv"), label="y"))
    stream = {"label": "y", "memory": 100}
    heavy = classifier().fit_files(str(tmp_path / "t.csv"), weight="w", **stream)
    assert weights(heavy) == weights(classifier(class_weight={"1": 7}).fit_files(str(tmp_path / "bare.csv"), **stream))
    assert weights(heavy) != weights(classifier().fit_files(str(tmp_path / "bare.csv"), **stream))
    assert (
        made.predict_files(str(tmp_path / "bare.csv")).tolist() == made.predict_files(str(tmp_path / "t.csv")).tolist()
    )
    with pytest.raises(LolsError, match="there is no column 'v' for the weights"):
        classifier().fit_files(str(tmp_path / "t.csv"), weight="v")
    frame.assign(w=["1"] * 5 + ["x"] * 155).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(LolsError, match=r"bad.csv, line 7, column 'w': 'x' is not a weight"):
        classifier().fit_files(str(tmp_path / "bad.csv"), weight="w")


# --- importances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", ["bins", "scaled", "both", "curve"])
@pytest.mark.parametrize("tree", ["order", None])
def test_columns_that_decide_matter_most(numeric: str, tree: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 5))
    labels = np.digitize(table[:, 1] + 0.5 * table[:, 3], [-0.5, 0.5])
    made = classifier(numeric=numeric, tree=tree, passes=5, ignore=["x4"]).fit(table, labels)
    found = made.feature_importances_
    assert found.shape == (5,) and found.sum() == pytest.approx(1.0) and found[4] == 0.0
    assert np.argsort(-found)[:2].tolist() == [1, 3]
    made.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols").feature_importances_.tolist() == found.tolist()


def test_importances_are_deviations_of_margins() -> None:
    """Of a flat classifier with scaled numbers they follow from the weights and the scaled values."""
    made = classifier(numeric="scaled", tree=None, passes=3).fit(X, Y)
    base = made.decision_function(np.full_like(X, np.nan))  # NaN is missing: compared below column by column only
    assert base.shape == (160, 3)
    found = made.feature_importances_
    from lols.tasks.tables.explain import explain_row

    pushes = np.zeros((160, 6))
    for row in range(160):
        turn = explain_row(made, made._rows(X[row : row + 1]), top=99).decisions[0]
        for reason in turn.reasons:
            if reason.feature.startswith("x"):
                pushes[row, int(reason.feature[1])] += reason.push
    wanted = np.abs(pushes - pushes.mean(axis=0)).mean(axis=0)
    assert found == pytest.approx(wanted / wanted.sum(), rel=1e-3)


# --- settings that are chosen -----------------------------------------------------------------------------------------


def test_settings_left_open_are_chosen_the_same_way_each_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 3))
    labels = ((table**2).sum(axis=1) > 2.4).astype(int)  # no line separates these
    made = CostSensitiveClassifier(progress=False).fit(table, labels)
    again = CostSensitiveClassifier(progress=False, threads=2).fit(table, labels)
    assert weights(made) == weights(again) and made.chosen_ == again.chosen_
    assert made.chosen_["numeric"] in ("curve", "both", "bins") and made.numeric == "auto"
    trials = made.model_.report["trials"]
    assert min(trials, key=lambda trial: trial["cost"])["numeric"] == made.chosen_["numeric"]
    assert weights(CostSensitiveClassifier(progress=False, **made.chosen_).fit(table, labels)) == weights(made)
    made.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols").chosen_ == made.chosen_
    plain = CostSensitiveClassifier(progress=False, numeric="bins", tree="order", passes=5).fit(table, labels)
    assert plain.model_.report["trials"] == [] and plain.chosen_["rate"] is None
    assert made.score(table, labels) > plain.score(table, labels)
    frame = pd.DataFrame(table, columns=list("abc")).assign(y=labels)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert CostSensitiveClassifier(progress=False).fit_files(str(tmp_path / "t.csv")).chosen_ == made.chosen_


def test_large_tables_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.tasks.tables.settling.MOST_CELLS", 100)
    made = CostSensitiveClassifier(progress=False).fit(X, Y)
    assert made.chosen_ == {"numeric": "bins", "bins": None, "tree": "order", "rate": None, "passes": 5}
    given = {"numeric": "bins", "tree": "order", "passes": 5, "progress": False}
    assert weights(made) == weights(CostSensitiveClassifier(**given).fit(X, Y))


def test_large_tables_are_encoded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(g=[f"w{k % 7}" for k in range(160)])
    wanted = classifier(numeric="curve").fit(frame, Y)
    strange = frame.assign(g="new")
    monkeypatch.setattr("lols.tasks.tables.classifier_rows.MOST_CELLS", 100)
    made = classifier(numeric="curve").fit(frame, Y)
    assert weights(made) == weights(wanted)
    assert made.predict(strange).tolist() == wanted.predict(strange).tolist() and made.unknown_ == {"g": 160}


# --- texts ------------------------------------------------------------------------------------------------------------


def test_words_of_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["good", "fine", "bad", "poor", "plot", "film", "cast", "scene"]
    texts = [" ".join(rng.choice(words, 7)) for _ in range(240)]
    mood = [sum(t.count(w) for w in words[:2]) - sum(t.count(w) for w in words[2:4]) for t in texts]
    frame = pd.DataFrame(
        {"review": texts, "stars": rng.normal(size=240), "y": np.where(np.array(mood) > 0, "up", "down")}
    )
    frame.loc[5, "review"] = None
    learned, fresh = frame[:180], frame[180:]
    made = classifier(text=["review"], passes=5).fit(learned[["review", "stars"]], learned.y)
    assert made.score(fresh[["review", "stars"]], fresh.y) > 0.7
    as_categories = classifier(passes=5).fit(learned[["review", "stars"]], learned.y)
    assert as_categories.score(fresh[["review", "stars"]], fresh.y) < 0.65  # whole texts say nothing about others
    assert made.feature_importances_[0] > 0.5
    learned.to_csv(tmp_path / "t.csv", index=False)
    from_file = classifier(text=["review"], passes=5).fit_files(str(tmp_path / "t.csv"))
    assert weights(from_file) == weights(made)
    from_file.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols")
    assert loaded.predict(fresh[["review", "stars"]]).tolist() == made.predict(fresh[["review", "stars"]]).tolist()
    with pytest.raises(ConfigurationError, match="names 'review', a column of texts"):
        classifier(text=["review"], interactions=[("review", "stars")]).fit(frame[["review", "stars"]], frame.y)
