"""`predict_proba` after a plain `fit`: what it costs, what it leaves as it is, and where there is none."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import cross_val_predict, cross_val_score

import lols
from lols import CostSensitiveClassifier
from lols.errors import ConfigurationError
from lols.training.trainer import Trainer
from tests.cli.calling import fine, run

OLD = Path(__file__).parents[2] / "models_0_1" / "classifier.lols"
IRIS, BREAST = load_iris(return_X_y=True), load_breast_cancer(return_X_y=True)
FIXED: dict[str, Any] = {"numeric": "bins", "tree": None, "passes": 3}  # no trials


def weights(model: CostSensitiveClassifier) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.contents()[1].items()}


@pytest.mark.parametrize("how", [{}, FIXED, FIXED | {"batch_size": 7}, FIXED | {"algorithm": "searn"}])
def test_a_plain_fit_gives_probabilities_and_the_same_weights(how: dict[str, Any]) -> None:
    X, y = (each[::3] for each in BREAST)
    never, plain = (CostSensitiveClassifier(calibrate=option, **how).fit(X, y) for option in (False, None))
    assert hasattr(CostSensitiveClassifier(**how), "predict_proba") and not hasattr(never, "predict_proba")
    assert weights(plain) == weights(never) and (plain.predict(X) == never.predict(X)).all()
    test, truth = BREAST[0][1::3], BREAST[1][1::3]
    chances = plain.predict_proba(test)
    assert chances.shape == (len(test), 2) and np.allclose(chances.sum(axis=1), 1.0)
    same = plain.classes_[chances.argmax(axis=1)] == plain.predict(test)
    assert same.all() or "algorithm" in how  # searn draws one of its policies at each decision
    assert log_loss(truth, chances) < 0.35
    again = CostSensitiveClassifier(threads=2, **how).fit(X, y)
    assert (again.predict_proba(test) == chances).all()


class Passes:
    """Counts the examples that all trainings pass over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.trainings: list[tuple[int, int]] = []
        known = Trainer.fit

        def fit(trainer: Any, examples: Any, **options: Any) -> Any:
            self.trainings.append((len(examples), trainer.passes))
            return known(trainer, examples, **options)

        monkeypatch.setattr(Trainer, "fit", fit)


@pytest.mark.parametrize(
    ("rows", "how", "further"),
    [
        (100, FIXED, [(80, 2)]),
        (100, FIXED | {"bins": 4, "passes": 2}, [(80, 1)]),
        (4000, FIXED | {"batch_size": 100}, [(1800, 1)]),
        (6000, FIXED, [(2700, 1)]),
        (6000, FIXED | {"passes": 20}, [(5400, 3)]),
        (100, FIXED | {"calibrate": True}, [(80, 3)] * 5),
        (100, FIXED | {"calibrate": False}, []),
        (3, FIXED, [(2, 1)]),
        (1, FIXED, []),
    ],
)
def test_how_much_more_is_learned(
    rows: int, how: dict[str, Any], further: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, seen = np.arange(rows).reshape(-1, 1) % 50, Passes(monkeypatch)
    CostSensitiveClassifier(classes=[False, True], **how).fit(X, X[:, 0] > 25)
    assert seen.trainings == [(rows, how["passes"]), *further]


def test_after_trials_each_fifth_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Passes(monkeypatch)
    model = CostSensitiveClassifier().fit(*IRIS)
    assert [rows for rows, _ in seen.trainings[-5:]] == [120] * 5
    assert {passes for _, passes in seen.trainings[-5:]} == {model.chosen_["passes"]}
    assert model.model_.calibration.decisions == 150 and log_loss(IRIS[1], model.predict_proba(IRIS[0])) < 0.3


def test_the_tools_of_scikit_learn_take_them() -> None:
    model, (X, y) = CostSensitiveClassifier(**FIXED), IRIS
    chances = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert chances.shape == (150, 3) and log_loss(y, chances) < 0.5
    assert cross_val_score(model, X, y, cv=3, scoring="neg_log_loss").min() > -1.0
    outer = CalibratedClassifierCV(model, cv=3).fit(X, y)
    assert get_scorer("neg_log_loss")(outer, X, y) > -0.6
    fitted = model.fit(X, y)
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(X) == fitted.predict_proba(X)).all()


def test_model_files_keep_them(tmp_path: Path) -> None:
    X, y = IRIS
    model = CostSensitiveClassifier(**FIXED).fit(X, y)
    model.save(tmp_path / "m.lols")
    assert (lols.load(tmp_path / "m.lols").predict_proba(X) == model.predict_proba(X)).all()
    old = lols.load(OLD)
    assert not hasattr(old, "predict_proba")
    with pytest.raises(AttributeError, match=r"is not calibrated.*calibrate it with labelled data \(calibrate_with"):
        old.predict_proba([[1]])


def test_files_and_commands_calibrate_as_well(tmp_path: Path) -> None:
    X, y = IRIS
    path = tmp_path / "t.csv"
    lines = [",".join(map(str, [*row, f"class{k}"])) for row, k in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,c,d,y", *lines, ""]))
    model = CostSensitiveClassifier(**FIXED).fit_files(str(path))
    assert model.predict_proba(X).shape == (150, 3)
    apart = CostSensitiveClassifier(**FIXED).fit_files(str(path), memory=100)
    assert not hasattr(apart, "predict_proba")  # larger than memory
    how = ("--passes", 3, "--tree", "flat", "--numeric", "bins")
    fine("train", "classifier", path, "-o", tmp_path / "m.lols", *how)
    fine("train", "classifier", path, "-o", tmp_path / "never.lols", *how, "--no-calibrate")
    assert b",confidence" in run("predict", tmp_path / "m.lols", path, "--confidence").out
    assert not hasattr(lols.load(tmp_path / "never.lols"), "predict_proba")


def test_going_on_keeps_them_and_a_stream_loses_them() -> None:
    X, y = IRIS
    model = CostSensitiveClassifier(warm_start=True, **FIXED).fit(X, y)
    before = model.model_.calibration
    assert model.fit(X, y).model_.calibration is before
    model.partial_fit(X, y)
    assert not hasattr(model, "predict_proba")


def test_costs_without_scipy_leave_a_plain_fit_uncalibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    X, y = IRIS
    how = FIXED | {"cost_matrix": 1 - np.eye(3)}
    assert not hasattr(CostSensitiveClassifier(**how).fit(X, y), "predict_proba")
    with pytest.raises(ConfigurationError, match="needs SciPy"):
        CostSensitiveClassifier(calibrate=True, **how).fit(X, y)
