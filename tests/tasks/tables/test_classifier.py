"""The classifier as an estimator of scikit-learn: tables of every kind, labels and costs of every form."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from lols import CostSensitiveClassifier
from lols.errors import ConfigurationError, LolsError
from tests.tasks.tables.classifier_data import classifier, numbers, table, weights
from tests.tasks.tables.table_kinds import KINDS

X, Y = numbers(120)
TABLE, LABELS = table(150)
SOME = {"check_classifiers_train", "check_fit2d_1sample", "check_estimators_dtypes", "check_classifiers_classes"}


ONLINE = "the result depends on the order of rows, so a row of weight 2 is not quite two rows"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": ONLINE for kind in ("dense", "sparse")}
GIVEN = {"progress": False, "numeric": "bins", "passes": 5}


@pytest.mark.slow
@parametrize_with_checks(
    [
        CostSensitiveClassifier(progress=False),
        CostSensitiveClassifier(tree="order", **GIVEN),
        CostSensitiveClassifier(tree=None, **GIVEN),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.tasks.tables.settling.PASSES", (1, 2))  # shorter trials
    check(estimator)


@pytest.mark.parametrize("tree", ["frequency", "similarity"])
def test_scikit_learn_finds_nothing_wrong_with_other_trees(tree: str) -> None:
    done = set()
    for estimator, check in estimator_checks_generator(CostSensitiveClassifier(tree=tree, **GIVEN)):
        if check.func.__name__ in SOME:
            check(estimator)
            done.add(check.func.__name__)
    assert done == SOME


@pytest.mark.parametrize("name", ["classes", "categorical", "ignore", "missing", "interactions"])
def test_options_that_are_lists_are_no_numbers(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n" * 5)
    for fit in (lambda made: made.fit(X, Y), lambda made: made.fit_files(str(tmp_path / "t.csv"))):
        with pytest.raises(ConfigurationError, match=f"{name} is 5; give a list"):
            fit(classifier(**{name: 5}))


def test_it_takes_part_in_pipelines_and_searches() -> None:
    assert cross_val_score(classifier(), X, Y, cv=3).mean() > 0.8
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9
    grid = {"tree": ["order", None, [[0, 1], [2, 3]]], "cost_matrix": [None, 1.0 - np.eye(4)]}
    search = GridSearchCV(classifier(), grid, cv=2).fit(X, Y)
    assert search.best_score_ > 0.8 and len(search.cv_results_["params"]) == 6
    assert not hasattr(classifier(), "set_output") and not hasattr(classifier(), "transform")


def test_a_clone_has_the_same_options_and_nothing_learned() -> None:
    costs = 1.0 - np.eye(4)
    made = classifier(cost_matrix=costs, tree=[[0, 1], [2, 3]], interactions=[("x0", "x1")], ignore=["x2"]).fit(X, Y)
    again = clone(made)
    assert again.get_params()["tree"] == made.tree and again.get_params()["ignore"] == ["x2"]
    with pytest.raises(NotFittedError, match="call fit first"):
        again.predict(X)
    assert weights(again.fit(X, Y)) == weights(made)
    assert pickle.loads(pickle.dumps(made)).predict(X).tolist() == made.predict(X).tolist()


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", ["bins", "scaled", "both"])
def test_every_kind_of_table_gives_the_same_model(numeric: str) -> None:
    first, unseen = None, table(60, seed=1)[0]
    made = {kind: classifier(numeric=numeric).fit(make(TABLE), LABELS) for kind, make in KINDS.items()}
    for kind, model in made.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some kinds have names of columns and others not
            predicted = [model.predict(make(unseen)).tolist() for make in KINDS.values()]
        first = first or predicted[0]
        assert predicted == [first] * len(KINDS), kind
        assert (
            model.predict_costs(KINDS[kind](unseen)).tobytes()
            == made["lists"].predict_costs(KINDS["lists"](unseen)).tobytes()
        )
    assert np.mean(np.array(first) == table(60, seed=1)[1]) > 0.8


def test_columns_with_numbers_for_names() -> None:
    frame = pd.DataFrame(X)
    made = classifier().fit(frame, Y)
    assert not hasattr(made, "feature_names_in_")
    assert made.predict(frame).tolist() == made.predict(X).tolist() == classifier().fit(X, Y).predict(X).tolist()


def test_a_column_of_dates() -> None:
    days = pd.date_range("2020-01-01", periods=40)
    made = classifier(passes=5).fit(pd.DataFrame({"day": days}), np.arange(40) // 10)
    assert made.score(pd.DataFrame({"day": days}), np.arange(40) // 10) > 0.8


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
def test_sparse_matrices_in_every_form(form: Any) -> None:
    dense = np.where(np.abs(X) > 2.0, X, 0.0)
    made = classifier().fit(form(dense), Y)
    assert weights(made) == weights(classifier().fit(sparse.csr_matrix(dense), Y))
    assert weights(made) != weights(classifier().fit(dense, Y))
    assert made.score(form(dense), Y) > 0.8 and made.unknown_ == {}
    assert made.predict(dense).tolist() == made.predict(form(dense)).tolist()  # dense where training was sparse
    other = classifier().fit(pd.DataFrame(dense, columns=list("abcdef")), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert other.predict(form(dense)).tolist() == other.predict(dense).tolist()  # and the other way round


def test_entries_of_a_sparse_matrix_that_come_twice_are_added() -> None:
    rows, columns = np.array([0, 0, 1]), np.array([0, 0, 1])
    twice = sparse.coo_matrix((np.array([1.0, 2.0, 5.0]), (rows, columns)), (2, 2))
    once = sparse.coo_matrix(np.array([[3.0, 0.0], [0.0, 5.0]]))
    assert weights(classifier().fit(twice, [0, 1])) == weights(classifier().fit(once, [0, 1]))


def test_cells_that_are_missing_or_unknown() -> None:
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.3, np.nan, X)
    made = classifier(passes=5).fit(holes, Y)
    assert made.score(holes, Y) > 0.7
    made.predict(np.full((2, 6), np.nan))
    infinite = np.where(holes > 5, np.inf, holes)
    assert made.predict(infinite).tolist() == made.predict(pd.DataFrame(infinite)).tolist()
    words = classifier().fit(KINDS["pandas"](TABLE), LABELS)
    assert words.unknown_ == {}
    strange = KINDS["pandas"](TABLE | {"word": ["new"] * 149 + [None]})
    words.predict(strange)
    words.predict_costs(strange)
    assert words.unknown_ == {"word": 298}


# --- labels and costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], [10, -3, 7, 2**40], [5.0, 1.0, -2.0, 3.0]])
def test_classes_of_any_type(names: list[Any]) -> None:
    made = classifier().fit(X, np.array(names)[Y])
    assert made.classes_.tolist() == sorted(names)
    assert np.mean(made.predict(X) == np.array(names)[Y]) > 0.9
    ordered = classifier(classes=names).fit(X, np.array(names)[Y])
    assert ordered.classes_.tolist() == names and ordered.predict(X).dtype == np.array(names).dtype
    yes = classifier().fit(X, Y > 1)
    assert yes.classes_.tolist() == [False, True] and yes.predict(X).dtype == bool


def test_a_cost_matrix_by_option_or_with_the_data() -> None:
    costs = np.random.default_rng(0).uniform(1, 5, (4, 4)) * (1 - np.eye(4))
    one, other = classifier(cost_matrix=costs).fit(X, Y), classifier().fit(X, Y, costs)
    assert weights(one) == weights(other) != weights(classifier().fit(X, Y))
    by_row = classifier().fit(X, Y, costs=costs[Y])
    assert by_row.predict(X).tolist() == one.predict(X).tolist()
    assert by_row.predict_costs(X).tobytes() == one.predict_costs(X).tobytes()
    assert classifier().fit(X, costs=costs[Y]).classes_.tolist() == [0, 1, 2, 3]
    named = classifier(classes=["p", "q", "r", "s"]).fit(X, costs=costs[Y])
    assert named.predict(X).tolist() == np.array(["p", "q", "r", "s"])[by_row.predict(X)].tolist()


def test_costs_in_data_frames_and_dictionaries_are_found_by_name(tmp_path: Path) -> None:
    table, labels = pd.DataFrame({"x": [1] * 100}), (["no"] * 7 + ["ask"] * 3) * 10
    costs = pd.DataFrame([[0, 5], [1, 0]], index=["ask", "no"], columns=["ask", "no"])
    for given in (costs, costs.loc[["no", "ask"], ["no", "ask"]], costs.T.to_dict(), {("ask", "no"): 5}):
        assert classifier(cost_matrix=given).fit(table, labels).predict(table[:1]).tolist() == ["ask"]
        assert classifier().fit(table, labels, costs=given).predict(table[:1]).tolist() == ["ask"]
        path = tmp_path / "t.csv"
        table.assign(y=labels).to_csv(path, index=False)
        model = classifier(cost_matrix=given).fit_files(str(path))
        assert model.predict(table[:1]).tolist() == ["ask"]
        model.save(tmp_path / "m.lols")
        assert CostSensitiveClassifier.load(tmp_path / "m.lols").cost_matrix.tolist() == costs.to_numpy().tolist()
    vectors = costs.loc[labels, ["no", "ask"]].reset_index(drop=True)
    for options, y in (({}, labels), ({}, None), ({"classes": ["ask", "no"]}, None)):
        assert classifier(**options).fit(table, y, costs=vectors).predict(table[:1]).tolist() == ["ask"]
    with pytest.raises(ConfigurationError, match="a dictionary of costs needs labels: give y"):
        classifier().fit(table, costs={("ask", "no"): 5})


def test_a_square_that_could_be_both_is_refused() -> None:
    X4, y4, square = X[:4], [0, 1, 2, 3], 1.0 - np.eye(4)
    with pytest.raises(ConfigurationError, match="could be a matrix or one vector for each row: give a matrix as"):
        classifier().fit(X4, y4, costs=square)
    classifier(cost_matrix=square).fit(X4, y4)
    classifier().fit(X4, costs=square)  # without labels they are vectors


@pytest.mark.parametrize(
    ("options", "y", "costs", "what"),
    [
        ({}, None, None, "requires y to be passed"),
        ({}, Y, np.ones(3), "costs has the shape .3,., but there are 120 rows: give a number for each"),
        ({}, None, np.ones(120), "costs has 1 dimension: give a row for each example"),
        ({}, Y, np.zeros((7, 4)), r"costs has the shape \(7, 4\); with 120 rows and 4 classes it must be"),
        ({}, Y, -np.ones((120, 4)), r"row 0, class 0: a cost of -1\.0: give a number from 0 on"),
        ({}, Y, np.full((120, 4), 1e20), r"row 0, class 0: a cost of 1e\+20: give a number from 0 on, at most 1e\+15"),
        ({}, Y, [["a"] * 4] * 120, "costs are not made of numbers"),
        ({"cost_matrix": np.eye(3)}, Y, None, r"the cost matrix has the shape \(3, 3\), but there are 4 classes"),
        ({"classes": [0, 1]}, Y, None, "label 2 is not among the classes: 0, 1"),
        ({"classes": [0, 1, 2, 3, 3]}, Y, None, "classes names a class twice"),
        ({"label_map": {"0": "a"}}, Y, None, "label '1' is not in the label map"),
        ({}, [None] + ["a"] * 119, None, "row 0: the label is missing"),
        ({}, pd.array(["a", pd.NA] * 60, dtype="string"), None, "row 1: the label is missing"),
        ({"tree": "oak"}, Y, None, "tree is 'oak': choose auto, order, frequency, similarity, nested lists"),
        ({"tree": [[0, 1], [2, 9]]}, Y, None, "the tree names 9, which is not a class"),
        ({"tree": [[0, 1], [2, 2]]}, Y, None, "each of the 4 labels as a leaf, once"),
        ({"skill": 2}, Y, None, "skill is 2; it is a probability"),
        ({"bins": 1}, Y, None, "bins is 1; it must be at least 2"),
        ({"numeric": "all"}, Y, None, "numeric is 'all': choose bins, scaled, both"),
        ({"reference": "best"}, Y, None, "unknown reference 'best': choose optimal, suboptimal or bad"),
        ({"categorical": ["age"]}, Y, None, "categorical names 'age', which is not a column; there are x0, x1"),
        ({"categorical": ["x1"], "numerical": ["x1"]}, Y, None, "column 'x1' is said to be two things"),
        ({"ignore": [f"x{k}" for k in range(6)]}, Y, None, "all columns are ignored: leave one"),
        ({"categorical": "age"}, Y, None, "categorical names 'age', which is not a column; there are x0, x1"),
        ({"label_map": "kdd99"}, Y, None, "label_map is a str: give a dictionary"),
        ({"interactions": ["x0"]}, Y, None, "interactions has 'x0': give pairs of columns"),
        ({"interactions": [("x0", "z")]}, Y, None, r"the interaction x0 \* z names 'z'"),
    ],
)
def test_mistakes_are_told_in_one_line(options: dict[str, Any], y: Any, costs: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what) as caught:
        classifier(**options).fit(X, y, costs)
    assert "\n" not in str(caught.value)


def test_a_text_among_numbers_says_in_which_row() -> None:
    made = classifier().fit(pd.DataFrame({"a": [1, 2, 3, 4]}), [0, 1, 0, 1])
    with pytest.raises(LolsError, match="row 1, column 'a': 'x' is not a number; training showed numbers"):
        made.predict(pd.DataFrame({"a": [1, "x"]}))
    with pytest.raises(LolsError, match="row 2, column 'a': 'x' is not a number; name the column as categorical"):
        classifier(numerical=["a"]).fit(pd.DataFrame({"a": [1, 2, "x"]}), [0, 1, 0])
    many = pd.DataFrame({"a": [*map(str, range(9000)), "x"]})
    with pytest.raises(LolsError, match="row 9000, column 'a': 'x' is not a number"):
        classifier(numerical=["a"]).fit(many, np.arange(9001) % 2)


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(LolsError, match="the table has no rows: give some to learn from"):
        classifier().fit(pd.DataFrame({"a": []}), [])


def test_a_label_map_and_columns_by_name() -> None:
    labels = np.array(["u.", "v", "w. ", "x"])[LABELS % 4]
    frame = KINDS["pandas"](TABLE)
    made = classifier(label_map={"u": "one", "v": "one", "w": "two", "x": "two"}).fit(frame, labels)
    assert made.classes_.tolist() == ["one", "two"]
    kinds = classifier(categorical=["count"], ignore=["size"], interactions=[("count", "word")]).fit(frame, LABELS)
    assert [(c.name, c.kind) for c in kinds.task_.encoder.columns] == [
        (n, "category") for n in ("count", "colour", "word")
    ]
    assert kinds.predict(frame.assign(size="anything")).tolist() == kinds.predict(frame).tolist()
    with pytest.raises(ValueError, match="feature names"):
        kinds.predict(frame[["word", "colour", "count", "size"]])
    with pytest.raises(ValueError, match="features"), pytest.warns(UserWarning, match="feature names"):
        kinds.predict(X)
