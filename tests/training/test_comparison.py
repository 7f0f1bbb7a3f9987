"""After training: how the policy compares with its teacher, and a warning if it is worse or costs are not scaled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.learners.settings import LearnerSettings
from lols.training.comparison import ReferenceComparison, say_comparison
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
    low, high = stats.t.interval(0.95, len(DATA) - 1, apart.mean(), stats.sem(apart))
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert not (found["held_out"] or found["labelled"])
    assert found["policy"] < found["teacher"] and warned == []
    assert "on 40 training examples" in model._repr_html_()


def test_held_out_examples_are_compared_in_place_of_those_of_training() -> None:
    others = shops(20, seed=5)
    model, _ = said(Shop, DATA, held_out=others)
    found = model.report["teacher"]
    assert found["held_out"] and found["examples"] == 20 and found["policy"] == pytest.approx(model.evaluate(others))
    assert np.array_equal(model.policy.single_stack, said(Shop, DATA)[0].policy.single_stack)


def zero(x, y, s):
    return 0


def test_held_out_examples_must_be_enough_and_labelled() -> None:
    with pytest.raises(lols.LolsError, match="held_out has 3 examples, too few for a comparison"):
        lols.train(Shop, DATA, held_out=DATA[:3])
    data = tagging_data(20, labels=3, words=20)
    unlabelled, lazy = [{"words": each["words"]} for each in data], lols.Reference(action=zero, needs_truth=False)
    with pytest.raises(lols.LolsError, match="held_out has no labels"):
        lols.train(tagging_space(labels=3), data, lazy, held_out=unlabelled, compiled=False)


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


SENTENCES, NEW = (tagging_data(n, labels=3, words=20, seed=seed) for n, seed in ((20, 0), (60, 1)))


def often_wrong(x, y, s):
    """The truth but for the third word, where the cheapest action is never taken."""
    return y.tags[s[0]] if s[0] != 2 else (y.tags[2] + 1) % 3


@pytest.mark.parametrize("compiled", [True, False])
def test_teachers_that_read_labels_are_warned_of_only_if_they_could_be_beaten(compiled: bool) -> None:
    space, teachers = tagging_space(labels=3), tagging_references()
    how: Any = {"held_out": NEW, "compiled": compiled}
    model, warned = said(space, SENTENCES, teachers["optimal"], **how)
    found = model.report["teacher"]
    assert found["labelled"] and not found["beatable"] and found["low"] > 0.0 == found["teacher"] and warned == []
    model, warned = said(space, SENTENCES, teachers["suboptimal"], **how)
    assert model.report["teacher"]["high"] < 0.0 and model.report["teacher"]["beatable"] and warned == []
    model, warned = said(space, SENTENCES[:1], lols.Reference(action=often_wrong), **how)
    assert model.report["teacher"]["beatable"] and len(warned) == 1
    assert "teacher 1, which reads the labels" in warned[0] and "lols.optimise" not in warned[0]


def test_an_optimal_teacher_with_a_loss_is_not_warned_of() -> None:
    class Never(lols.Task):
        """The last word has no right tag, so that even the truth costs 1."""

        columns = lols.Columns(x="words", y="tags")
        sizes = lols.Sizes(state=lambda x: 1 + len(x.words), actions=3, features=1, steps=lambda x: len(x.words))

        def actions(x, s, legal):
            legal[:] = s[0] < len(x.words)

        def step(x, s, a):
            s[0] += 1
            s[s[0]] = a

        def features(x, s, out):
            lols.emit(out, lols.feature(0, s[0]))

        def loss(x, y, s):
            wrong = 1.0
            for i in range(len(x.words) - 1):
                wrong += s[1 + i] != y.tags[i]
            return wrong

        def output(x, s):
            return s[1:].tolist()

        def reference(x, y, s):
            return y.tags[s[0]]

    model, warned = said(Never, SENTENCES, compiled=False)
    found = model.report["teacher"]
    assert found["teacher"] == 1.0 < found["policy"] and found["low"] > 0.0
    assert not found["beatable"] and warned == []


def test_programs_are_compared_too() -> None:
    def tag(search: Any, x: Any) -> Any:
        made = []
        for word, tag in zip(x["words"], x["tags"], strict=True):
            made.append(search.predict([word], reference=tag if len(made) != 2 else (tag + 1) % 3))
            search.loss(float(made[-1] != tag))
        return made

    model, warned = said(lols.Program(tag, actions=3), SENTENCES, held_out=NEW, learner="csoaa")
    found = model.report["teacher"]
    assert found["examples"] == 32 and found["teacher"] == 1.0 and found["beatable"]
    assert found["difference"] == pytest.approx(found["policy"] - 1.0) and len(warned) == (found["low"] > 0.0)


@pytest.mark.parametrize("way", ["rule", "labels", "labels of any kind", "labels by a function"])
def test_a_program_reads_the_labels_if_its_teacher_cannot_answer_without(way: str) -> None:
    def tag(search: Any, x: Any) -> Any:
        made: list[Any] = []
        for i, word in enumerate(x["words"]):
            truth = x["tags"][i] if search.truth else None
            if way == "rule":
                teacher = word % 3
            elif way == "labels by a function":
                teacher = lambda truth=truth: truth + 0  # noqa: E731
            else:
                teacher = truth if way == "labels" else [truth]
            made.append(search.predict([word], reference=teacher))
            search.loss(float(made[-1] != truth) if search.truth else 0.0)
        return made

    model, _ = said(lols.Program(tag, actions=3), SENTENCES, compiled=False)
    found = model.report["teacher"]
    assert found["labelled"] == (way != "rule") == ("which reads the labels" in found["summary"])


def by_rule(x, y, s):
    return x.words[s[0]] % 3


def of_column_y(x, y, s):
    return x.y[s[0]]


def of_a_nested_function(x, y, s):
    def tag(i):
        return y.tags[i]

    return tag(s[0])


def from_outside(tags):
    return lambda x, y, s: tags[s[0]]


def test_what_a_teacher_reads_is_not_told_by_names_of_columns() -> None:
    for action, reads in ((of_column_y, False), (from_outside([1, 2]), False), (of_a_nested_function, True)):
        assert lols.Reference(action=action).needs_truth == reads
    assert lols.Reference(costs=lambda x, y, s, out: of_a_nested_function(x, y, s)).needs_truth


def test_a_teacher_reads_the_labels_only_if_it_mentions_them() -> None:
    for teacher, reads in ((lols.Reference(action=by_rule), False), (lols.Reference(action=often_wrong), True)):
        model, _ = said(tagging_space(labels=3), SENTENCES, teacher, compiled=False)
        found = model.report["teacher"]
        assert teacher.needs_truth == found["labelled"] == reads == ("which reads the labels" in found["summary"])


def comparison(difference: float, held_out: bool = False) -> ReferenceComparison:
    return ReferenceComparison(
        9, held_out, 2.0 + difference, 2.0, difference, 0.1, difference - 0.2306, difference + 0.2306
    )


def test_a_program_without_a_teacher_is_compared_with_none() -> None:
    def parity(search: Any, length: int) -> list[int]:
        made = []
        for i in range(length):
            made.append(search.predict([("i", i)]))
            search.loss(float(made[-1] != i % 2))
        return made

    model = lols.train(lols.Program(parity, actions=2), list(range(1, 12)), roll_out="learned", compiled=False)
    assert "teacher" not in model.report and model.predict_one(3) == [0, 1, 0]


def test_where_progress_is_shown_the_comparison_is(capsys: Any) -> None:
    trainer = lols.Trainer(Shop)
    shown = "lols: policy 1, teacher 2 (difference -1, 95 % interval -1.23 to -0.769) on 9"
    say_comparison(trainer, comparison(-1.0), True)
    said = capsys.readouterr().err
    assert said == f"{shown} training examples (so optimistic: pass held_out=... for a fair comparison)\n"
    say_comparison(trainer, comparison(-1.0, held_out=True), True)
    assert capsys.readouterr().err == f"{shown} held-out examples\n"
    say_comparison(trainer, comparison(-1.0), None)
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
        say_comparison(lols.Trainer(Shop, **options), comparison(1.0), None)
