"""Sketched regression: what it keeps, what it costs, and columns that miss many turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.contract.features import feature
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError, LolsError
from lols.learners import sketch
from lols.learners.eigen import decompose, order
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.specification import Lesson
from tests.engine.twin import lessons_of, weights_by_feature
from tests.learners.learner_cases import ACTIONS, assert_weights_equal, make, random_rounds, taught


@pytest.mark.uncompiled
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 7), rank=st.integers(0, 7))
def test_a_symmetric_matrix_is_its_eigenvectors_times_eigenvalues(seed: int, size: int, rank: int) -> None:
    half = np.random.default_rng(seed).normal(size=(size, rank)) * 10.0 ** np.arange(-1, rank - 1)
    matrix = half @ half.T
    values, vectors, places = np.zeros(size), np.zeros((size, size)), np.zeros(size, np.int64)
    decompose(matrix.copy(), values, vectors, np.zeros(size), np.zeros(size))
    order(values, places)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ np.diag(values) @ vectors, matrix, atol=1e-12 * max(1.0, values.max()))
    np.testing.assert_allclose(values[places], np.linalg.eigvalsh(matrix)[::-1], atol=1e-12 * max(1.0, values.max()))
    assert sorted(places) == list(range(size))


def test_with_as_many_rows_as_examples_it_is_ridge_regression() -> None:
    rounds = random_rounds(3, count=12)
    exact = taught(rounds, "csoaa", "ridge", rate=0.7)
    sketched = taught(rounds, "csoaa", "sketch", rate=0.7, directions=30)
    mine, other = weights_by_feature(sketched.last())[0], weights_by_feature(exact.policy())[0]
    for identity in other:
        np.testing.assert_allclose(mine[identity], other[identity], rtol=1e-4, atol=1e-5)


@pytest.mark.uncompiled
@pytest.mark.parametrize(("by_action", "decay"), [(False, 0.0), (True, 0.0), (True, 0.02)])
def test_columns_that_miss_more_turns_than_are_kept_are_turned_in_time(
    by_action: bool, decay: float, monkeypatch: Any
) -> None:
    for name, value in (("WINDOW", 32), ("SHARED_WINDOW", 32), ("SWEPT", 1)):
        monkeypatch.setattr(sketch, name, value)
    learner, twin = make("csoaa", "sketch", by_action=by_action, directions=1, decay=decay)
    learner.compiled = False
    rare, missed = random_rounds(4, count=12, by_action=by_action, features=60), 0
    for one in [*rare, *random_rounds(5, count=40, by_action=by_action), *rare]:
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
        missed = max(missed, learner.state()["sketch.turns"].shape[1])
    assert 4 < missed < 32 < learner.sketches.counts[:, sketch.TURNS].min()
    assert_weights_equal(learner.last(), twin.policy(), exact=False)


@pytest.mark.uncompiled
@pytest.mark.parametrize("by_action", [False, True])
def test_plain_python_has_the_same_bits(by_action: bool) -> None:
    rounds, states = random_rounds(6, count=10, by_action=by_action), []
    for compiled in (True, False):
        learner, _ = make("csoaa", "sketch", by_action=by_action, directions=2, decay=0.01)
        learner.compiled = compiled
        learner.learn(lessons_of(rounds, ACTIONS))
        states.append(learner.state())
    for name, array in states[0].items():
        assert np.array_equal(array, states[1][name]), name


def test_a_state_has_the_turns_that_columns_have_missed() -> None:
    rare, often = random_rounds(7, count=150, features=3000), random_rounds(8, count=20)
    first = taught([*rare, *often], "csoaa", "sketch", directions=2)
    assert 0 < first.state()["sketch.turns"].shape[1] < first.sketches.counts[:, sketch.TURNS].max() + 1
    second, _ = make("csoaa", "sketch", directions=2)
    second.load(first.state())
    for learner in (first, second):
        learner.learn(lessons_of(rare, ACTIONS))
    for name, array in first.state().items():
        assert np.array_equal(array, second.state()[name]), name


def damaged(state: dict[str, np.ndarray], name: str, value: float) -> dict[str, np.ndarray]:
    array = state[name].copy()
    array.reshape(-1)[0] = value
    return {**state, name: array}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sketch.counts", 99),
        ("sketch.counts", -1),
        ("sketch.ridge", 0.0),
        ("shared.stamps", 999),
        ("shared.stamps", -1),
    ],
)
def test_a_damaged_state_is_refused(name: str, value: float) -> None:
    learner = taught(random_rounds(9), "csoaa", "sketch", directions=2)
    with pytest.raises(LolsError):
        learner.load(damaged(learner.state(), name, value))


def test_an_update_changes_few_cells_whatever_the_table_holds() -> None:
    learner = Learner(LearnerSettings("csoaa", "sketch", directions=2), None, by_action=True)

    def seen(numbers: Any) -> list[Lesson]:
        return [Lesson([], {0: 0.5}, 1.0, {0: [(feature(0, int(k)), 1.0) for k in numbers]})]

    learner.learn(lessons_of([seen(range(k, k + 4)) for k in range(0, 8000, 4)], 1))
    before = {part: getattr(learner.single, part).copy() for part in ("weights", "base", "sketch", "stamps")}
    learner.learn(lessons_of([seen([5, 7])], 1))
    for part, array in before.items():
        rows = np.flatnonzero((getattr(learner.single, part) != array).any(axis=tuple(range(1, array.ndim))))
        assert rows.size <= 2 + sketch.SWEPT, part


def test_threads_do_not_change_the_weights() -> None:
    data, space = tagging_data(12, labels=3, words=10), tagging_space(labels=3)
    chosen = LearnerSettings("csoaa", "sketch", directions=3)
    teacher = tagging_references()["optimal"]
    models = [
        lols.train(space, data, teacher, learner=chosen, batch_size=4, passes=2, threads=threads) for threads in (1, 2)
    ]
    assert np.array_equal(models[0].policy.stack, models[1].policy.stack)
    assert models[0].policy.stack.any()


def test_settings_that_make_no_sense_are_refused() -> None:
    for wanted, why in (
        ({"update": "sketch", "directions": 0}, "directions is 0"),
        ({"update": "sketch", "decay": 1.0}, "decay is 1.0"),
        ({"update": "nag", "directions": 5}, "directions has no effect: nag keeps none"),
        ({"update": "nag", "decay": 0.1}, "decay has no effect"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            LearnerSettings("csoaa", **wanted)
    with pytest.raises(ConfigurationError, match="256 is the most"):
        Learner(LearnerSettings("csoaa", "sketch"), 300)
