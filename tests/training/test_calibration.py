"""Calibrated confidence: how it is fitted, what it says on data it did not see, and what files keep of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import lols
from lols.contract.examples import Examples
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.training.calibration import Calibration, Judged, Reliability, fit_calibration, isotonic, together
from lols.training.confidence import judged_steps
from lols.training.model import Model

SPACE = tagging_space(labels=3)
DATA = tagging_data(700, labels=3, words=60, seed=3)
TEACHER = tagging_references()["optimal"]


@pytest.fixture(scope="module")
def model() -> Model:
    made: Model = lols.train(SPACE, DATA[:300], TEACHER, passes=2)
    return made.calibrate_with(DATA[300:500], TEACHER)


def softmax(costs: np.ndarray, temperature: float) -> np.ndarray:
    shares = np.exp(-(costs - costs.min(axis=1, keepdims=True)) / temperature)
    made: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
    return made


def decisions(count: int, sharpness: float, seed: int = 0) -> Judged:
    """Decisions whose actions are right with the probabilities of a softmax."""
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(count, 4)).astype(np.float32)
    chances = softmax(costs.astype(np.float64), 1.0 / sharpness)
    true = (chances.cumsum(axis=1) > rng.random((count, 1))).argmax(axis=1)
    taken = costs.argmin(axis=1)
    return Judged(costs, taken, taken == true, true)


@pytest.mark.parametrize("compiled", [True, False])
def test_shares_are_those_of_a_softmax_of_all_costs(compiled: bool) -> None:
    made = lols.train(SPACE, DATA[:40], TEACHER, passes=1, compiled=compiled)
    examples = Examples(SPACE, DATA[300:320], truth=False)
    run = made.run(examples, scores=True, temperature=0.7)
    wanted = softmax(run.all_costs().astype(np.float64), 0.7)[np.arange(run.all_actions().size), run.all_actions()]
    assert np.allclose(run.all_shares(), wanted, rtol=1e-12)
    assert made.run(examples).shares.size == 0


def test_confidence_does_not_change_what_is_predicted(model: Model) -> None:
    outputs, sure = model.predict(DATA[500:], confidence=True)
    assert outputs == model.predict(DATA[500:])
    assert [len(each) for each in sure] == [len(each) for each in outputs]
    assert model.predict([], confidence=True) == ([], [])


def test_confidence_is_how_often_steps_are_right_on_new_data(model: Model) -> None:
    found = judged_steps(model, Examples(SPACE, DATA[500:], truth=True), TEACHER)
    sure = np.concatenate(model.predict(DATA[500:], confidence=True)[1])
    seen = Reliability.of(sure, found.right)
    assert seen.error < 0.02 < Reliability.of(np.ones(sure.size), found.right).error


def test_a_step_is_right_if_its_label_is_true_where_labels_do_not_depend_on_each_other(model: Model) -> None:
    found = judged_steps(model, Examples(SPACE, DATA[500:600], truth=True), TEACHER)
    true = np.concatenate([each["tags"] for each in DATA[500:600]])
    assert (found.right == (found.taken == true)).all()


def test_scores_have_all_actions_of_all_steps(model: Model) -> None:
    (only,) = model.scores(DATA[500:501])
    assert only.costs.shape == only.probabilities.shape == (len(DATA[500]["words"]), 3)
    assert np.allclose(only.probabilities.sum(axis=1), 1.0)
    sure = model.predict(DATA[500:501], confidence=True)[1][0]
    assert np.allclose(only.probabilities[np.arange(only.taken.size), only.taken], sure, atol=0.35)
    assert (only.probabilities.argmax(axis=1) == only.taken).all()
    assert lols.train(SPACE, DATA[:20], TEACHER, passes=1).scores(DATA[:1])[0].probabilities is None


def test_a_file_keeps_it(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.lols")
    loaded = lols.load(tmp_path / "model.lols", SPACE)
    for one, other in zip(loaded.predict(DATA[:9], confidence=True)[1], model.predict(DATA[:9], confidence=True)[1]):
        assert (one == other).all()


@pytest.mark.parametrize(
    "damage",
    [
        {"temperature": 0.0},
        {"temperature": 10**400},
        {"temperature": "warm"},
        {"knots": [0.5, 0.4]},
        {"knots": [[0.5], [0.6]], "values": [[0.5], [0.6]]},
        {"values": [0.9]},
        {"values": [0.9, 1.5], "knots": [0.1, 0.2]},
        {"bias": [0.0] * 7},
        {"bias": "none"},
        {"decisions": None},
        {"source": 3},
    ],
)
def test_a_damaged_calibration_is_refused(model: Model, tmp_path: Path, damage: dict[str, Any]) -> None:
    header, tensors = model.contents()
    header["calibration"] |= damage
    write_tensors(tmp_path / "model.lols", "model", header, tensors)
    with pytest.raises(ModelFileError, match="damaged"):
        lols.load(tmp_path / "model.lols", SPACE)
    assert "calibration" in read_tensors(tmp_path / "model.lols", "model")[0]


def test_without_calibration_the_fix_is_named() -> None:
    plain = lols.train(SPACE, DATA[:20], TEACHER, passes=1)
    with pytest.raises(ConfigurationError, match=r"not calibrated.*calibrate=True.*calibrate_with"):
        plain.predict(DATA[:1], confidence=True)


def test_only_greedy_predictions_have_confidence(model: Model) -> None:
    with pytest.raises(ConfigurationError, match="leave out best_of"):
        model.predict(DATA[:1], confidence=True, beam=2)


def test_the_temperature_is_found_at_any_scale() -> None:
    for scale in (1e-3, 1.0, 1e4):
        judged = decisions(20_000, sharpness=2.0)
        made = fit_calibration(judged._replace(costs=judged.costs * np.float32(scale), true=None), "given data")
        assert made.temperature == pytest.approx(0.5 * scale, rel=0.15)


def test_a_bias_makes_up_for_costs_that_are_not_chances() -> None:
    judged = decisions(20_000, sharpness=2.0)
    assert judged.true is not None
    tilted = judged.costs + np.array([0.0, 1.0, 0.0, 0.0], np.float32)  # as if the second class cost more
    taken = tilted.argmin(axis=1)
    made = fit_calibration(Judged(tilted, taken, taken == judged.true, judged.true), "given data")
    chances = made.probabilities(tilted, taken)
    assert np.allclose(chances.mean(axis=0), np.bincount(judged.true) / 20_000, atol=0.02)


def test_few_decisions_leave_the_shares_as_they_are() -> None:
    few = fit_calibration(decisions(150, sharpness=2.0)._replace(true=None), "given data")
    assert few.knots.size == 0 and few.confidence(np.array([0.3])) == 0.3


def test_confidence_rises_and_is_never_certain() -> None:
    judged = decisions(9_000, sharpness=2.0)._replace(true=None)
    made = fit_calibration(judged._replace(right=np.ones(9_000, np.bool_)), "given data")
    sure = made.confidence(np.linspace(0.0, 1.0, 200))
    assert (np.diff(sure) >= 0.0).all() and sure.max() < 1.0


def test_no_choice_is_certain_and_ties_are_possible() -> None:
    made = Calibration(0.5, np.array([0.5, 1.0]), np.array([0.4, 0.9]))
    alone = made.probabilities(np.array([[1.0, np.inf]]))
    assert alone.tolist() == [[1.0, 0.0]]
    assert made.probabilities(np.array([[1.0, 1.0]])).tolist() == [[0.5, 0.5]]
    assert made.probabilities(np.zeros((0, 3))).shape == (0, 3)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.25, 0.7, 1.0]), st.integers(1, 5)), min_size=1, max_size=12))
def test_isotonic_regression_is_that_of_scikit_learn(pairs: list[tuple[float, int]]) -> None:
    rates, weights = np.array([rate for rate, _ in pairs]), np.array([float(weight) for _, weight in pairs])
    wanted = IsotonicRegression().fit_transform(np.arange(rates.size), rates, sample_weight=weights)
    assert np.allclose(isotonic(rates, weights), wanted, rtol=0.0, atol=1e-12)


def test_equal_shares_are_one_point() -> None:
    number = np.arange(9_000)
    costs = np.where(number[:, np.newaxis] < 4_500, [0.0, 1.0, 1.0], [0.0, 2.0, 2.0])
    right = number % 10 < np.where(number < 4_500, 5, 9)
    made = fit_calibration(Judged(costs, np.zeros(9_000, np.int64), right), "given data")
    assert made.knots.size == 2 and np.allclose(made.values, [0.5, 0.9], atol=0.01)


def test_lots_are_put_together_and_nothing_is_refused() -> None:
    one, other = decisions(3, 1.0), decisions(4, 1.0, seed=1)
    assert together([one, other]).true.tolist() == [*one.true.tolist(), *other.true.tolist()]  # type: ignore[union-attr]
    nothing = Judged(np.zeros((0, 2)), np.zeros(0, np.int64), np.zeros(0, np.bool_))
    with pytest.raises(ConfigurationError, match="no decisions"):
        fit_calibration(nothing, "given data")


def test_the_error_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(0)
    sure, right = rng.random(500), rng.random(500) < 0.5
    wanted = 0.0
    for low in np.arange(15) / 15:
        inside = (sure >= low) & (sure < low + 1 / 15)
        wanted += abs(sure[inside].mean() - right[inside].mean()) * inside.mean()
    seen = Reliability.of(sure, right)
    assert seen.error == pytest.approx(wanted, rel=1e-9)
    halves = Reliability.of(sure[:200], right[:200]) + Reliability.of(sure[200:], right[200:])
    assert halves.error == pytest.approx(seen.error, rel=1e-9)
    assert sum(row["count"] for row in seen.rows()) == 500
