"""Policies as options of taggers and parsers: `Linear` and `Neural` beside the flat options and short strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError
from lols.policies import Linear, Neural

WORDS, TAGS = [["the", "dog"], ["a", "cat"]] * 4, [["DET", "NOUN"]] * 8
TREES = [[(2, "det"), (0, "root")]] * 8


def trained(**options: Any) -> lols.Tagger:
    return lols.Tagger(passes=1, **options).fit(WORDS, TAGS)


def same(one: Any, other: Any) -> bool:
    a, b = (each.contents()[1] for each in (one, other))
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("given", [{}, {"learner": "csoaa", "rate": 0.2}, {"update": "adagrad", "slack": None}])
def test_a_linear_policy_is_what_its_settings_are_as_options(given: dict[str, Any], tmp_path: Path) -> None:
    flat, policy = trained(**given), trained(policy=Linear(**given))
    assert same(flat, policy)
    assert policy.contents()[0]["task"]["options"] == flat.contents()[0]["task"]["options"]
    policy.save(tmp_path / "t.lols")
    loaded = lols.load(tmp_path / "t.lols")
    assert loaded.policy == "linear" and {name: getattr(loaded, name) for name in given} == given


def test_a_parser_takes_a_linear_policy() -> None:
    flat = lols.Parser(passes=1, learner="csoaa").fit(WORDS, TREES)
    assert same(flat, lols.Parser(passes=1, policy=Linear("csoaa")).fit(WORDS, TREES))


def test_whole_settings_leave_nothing_to_the_task() -> None:
    learner = trained(policy=Linear(lols.LearnerSettings("hinge"))).model_.about["learner"]
    assert learner["rate"] == 0.1 and trained().model_.about["learner"]["rate"] == 0.06


def test_settings_that_are_no_options_are_in_the_file(tmp_path: Path) -> None:
    tagger = trained(policy=Linear("hinge", margin="cost", rate=0.3))
    tagger.save(tmp_path / "t.lols")
    loaded = lols.Tagger.load(tmp_path / "t.lols")
    assert loaded.policy.get_params() == {"rate": 0.3, "margin": "cost"} and loaded.rate is None
    with pytest.warns(UserWarning, match="learning starts from its weights alone"):
        loaded.partial_fit(WORDS, TAGS)
    assert loaded._fitted.about["learner"]["margin"] == "cost"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"policy": Linear(), "rate": 0.1},
            "rate is given beside policy=Linear(...): say it in one place, Linear(rate=",
        ),
        (
            {"policy": Neural(), "width": 8},
            "width is given beside policy=Neural(...): say it in one place, Neural(width",
        ),
        ({"policy": Neural(), "prune": 3}, "prune has no effect: it is for policy='linear'"),
        ({"policy": Linear(), "width": 8}, "width has no effect: it is for policy='neural'"),
        ({"policy": Linear(slack=0.1), "algorithm": "searn"}, "slack has no effect: searn learns from all states"),
        ({"policy": "lstm"}, "unknown policy 'lstm': choose linear or neural, or give an object of lols.policies"),
        ({"policy": Linear}, "unknown policy <class 'lols.policies.linear.Linear'>: choose linear or neural"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(options: dict[str, Any], says: str) -> None:
    if "width" in options or isinstance(options["policy"], Neural):
        pytest.importorskip("torch")
    with pytest.raises(ConfigurationError) as caught:
        trained(**options)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_policies_have_the_habits_of_estimators() -> None:
    clone = pytest.importorskip("sklearn.base").clone
    search = pytest.importorskip("sklearn.model_selection").GridSearchCV
    tagger = lols.Tagger(passes=1, policy=Neural(width=12))
    assert tagger.get_params()["policy__width"] == 12 and "policy__width" not in tagger.get_params(deep=False)
    other = clone(tagger).set_params(policy__width=8, policy__layers=1)
    assert repr(other) == "Tagger(passes=1, policy=Neural(width=8, layers=1))" and tagger.policy.width == 12
    with pytest.raises(ValueError, match="Invalid parameter 'policy__width': policy='linear' has none"):
        lols.Tagger().set_params(policy__width=8)
    grid = {"policy": [Linear()], "policy__learner": ["hinge", "csoaa"]}
    found = search(lols.Tagger(passes=1), grid, cv=2).fit(WORDS, TAGS)
    assert found.best_params_["policy"].settings.reduction == found.best_params_["policy__learner"]


def test_every_setting_of_a_network_is_an_option_too() -> None:
    for kind in (lols.Tagger, lols.Parser):
        defaults = kind._defaults()
        assert {name: defaults[name] for name in Neural.SETTINGS} == {n: getattr(Neural, n) for n in Neural.SETTINGS}
