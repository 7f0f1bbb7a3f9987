"""After training: how the policy compares with its teacher, and a warning if it is worse or costs are not scaled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.learners.settings import LearnerSettings
from lols.training.teaching import TeacherComparison, say_comparison
from tests.heuristics.small_shop import Shop, shops

DATA = shops(40)


def said(*arguments: Any, **options: Any) -> tuple[lols.Model, list[str]]:
    """A model, and the warnings of its training."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return lols.train(*arguments, passes=2, **options), [str(each.message) for each in caught]


def test_the_report_has_the_losses_of_both() -> None:
    model, warned = said(Shop, DATA)
    found = model.report["teacher"]
    apart = model.losses(DATA) - model.reference_losses(DATA)
    assert found["examples"] == len(DATA) and found["difference"] == pytest.approx(apart.mean())
    assert found["error"] == pytest.approx(apart.std(ddof=1) / np.sqrt(len(DATA)))
    assert found["policy"] < found["teacher"] and warned == []


def test_a_worse_policy_is_warned_of_and_nothing_else_changes() -> None:
    model, warned = said(Shop, DATA, learner="csoaa")
    assert model.report["teacher"]["difference"] > 0.0
    assert len(warned) == 1 and "worse than its teacher: policy" in warned[0] and 'try learner="hinge"' in warned[0]
    silent, nothing = said(Shop, DATA, learner="csoaa", progress=False)
    assert nothing == [] and np.array_equal(silent.policy.single_stack, model.policy.single_stack)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lols.Trainer(Shop, learner="csoaa", passes=1).fit(DATA)  # only lols.train compares


def test_costs_that_are_not_scaled_are_warned_of() -> None:
    _, warned = said(Shop, DATA, learner=LearnerSettings("csoaa", "nag"), progress=False)
    assert len(warned) == 1 and "scale=None" in warned[0]
    _, scaled = said(Shop, DATA, learner=LearnerSettings("csoaa", "nag", scale=None), progress=False)
    _, chosen = said(Shop, DATA, learner=LearnerSettings("csoaa", "nag", scale=30.0), progress=False)
    _, margins = said(Shop, DATA, learner=LearnerSettings(margin="unit"), progress=False)
    assert scaled == chosen == margins == []


@pytest.mark.parametrize("cost", [1, 1000])
def test_so_are_those_of_a_cost_matrix(cost: float) -> None:
    X, y = np.arange(40.0).reshape(-1, 1), ["a", "b"] * 20
    made = lols.CostSensitiveClassifier(
        learner="csoaa", slack=None, passes=1, cost_matrix=[[0, cost], [cost / 2 + 1, 0]]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.fit(X, y)
    assert any("costs of about 1" in str(each.message) for each in caught) == (cost == 1000)


def test_a_teacher_that_needs_labels_is_no_rival() -> None:
    space, teachers = tagging_space(labels=3), tagging_references()
    for name in ("optimal", "suboptimal"):
        model, warned = said(space, tagging_data(20, labels=3, words=20), teachers[name])
        assert "teacher" not in model.report and warned == []


def test_where_progress_is_shown_the_comparison_is(capsys: Any) -> None:
    trainer = lols.Trainer(Shop)
    say_comparison(trainer, TeacherComparison(9, 1.0, 2.0, -1.0, 0.1), True)
    assert capsys.readouterr().err == "lols: policy 1, teacher 2 (-1 ± 0.2) on 9 training examples\n"
    say_comparison(trainer, TeacherComparison(9, 1.0, 2.0, -1.0, 0.1), None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"learner": LearnerSettings(margin="unit")}, 'margin="cost"'),
        ({"algorithm": "dagger"}, 'algorithm="lols"'),
        ({"learner": LearnerSettings(margin="cost"), "roll_in": "reference"}, 'roll_in="learned"'),
        ({"learner": LearnerSettings(margin="cost")}, "lols.optimise"),
        ({"learner": "csoaa"}, 'learner="hinge"'),
    ],
)
def test_the_warning_names_what_to_try_next(options: dict[str, Any], hint: str) -> None:
    with pytest.warns(UserWarning, match=hint):
        say_comparison(lols.Trainer(Shop, **options), TeacherComparison(9, 2.0, 1.0, 1.0, 0.1), None)
