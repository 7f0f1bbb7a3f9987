"""Messages about mistakes during prediction and evaluation, and in the data."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import lols
from lols.certificates.certify import certify
from lols.datasets.worlds import tagging_space
from lols.errors import SpaceError
from lols.training.rollouts import rollout_costs
from tests.contract.bad_space import (
    ACTION_FEATURE_NAN,
    ACTIONS,
    ENDLESS,
    FEATURE_NAN,
    FEATURES,
    FINE,
    LOSS,
    LOSS_NAN,
    LOSS_NEGATIVE,
    MANY_ACTION_FEATURES,
    MANY_FEATURES,
    NO_SUCH_ITEM,
    REFERENCE,
    SPACE,
    START,
    STEP,
    TEACHER_ACTION,
    TEACHER_ILLEGAL,
    data,
)

# --- prediction and evaluation ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[True, False], ids=["compiled", "plain"])
def model(request: pytest.FixtureRequest) -> lols.Model:
    return lols.train(SPACE, data(FINE), REFERENCE, compiled=request.param)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (ACTIONS, "step 1: `actions` failed with ValueError: no actions"),
        (FEATURES, "step 1: `features` failed with ValueError: no features"),
        (STEP, "step 1: `step` failed with ValueError: no step"),
        (START, "`start` failed with ValueError: no start"),
        (ENDLESS, "the search goes on after 4 steps"),
        (MANY_FEATURES, "step 1: `features` or `action_features` emits more than Sizes says"),
        (MANY_ACTION_FEATURES, "step 1: `features` or `action_features` emits more than Sizes says"),
        (NO_SUCH_ITEM, "step 1: `items` looks at item 77"),
    ],
)
def test_prediction_names_the_place_too(model: lols.Model, fault: int, says: str, threads: int) -> None:
    model.threads = threads
    with pytest.raises(SpaceError) as caught:
        model.predict(data(fault))
    model.threads = 1
    assert says in str(caught.value) and str(caught.value).startswith("example 3")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (LOSS, "`loss` failed with ValueError: no loss"),
        (LOSS_NAN, "`loss` gives NaN or infinity"),
        (LOSS_NEGATIVE, "`loss` is negative"),
    ],
)
def test_evaluation_names_the_loss(model: lols.Model, fault: int, says: str) -> None:
    for evaluate in (model.losses, lambda rows: model.reference_losses(rows, REFERENCE)):
        with pytest.raises(SpaceError) as caught:
            evaluate(data(fault))
        assert str(caught.value).startswith("example 3: ") and says in str(caught.value)


SEARCHES: dict[str, Any] = {
    "greedy": lambda model, rows: model.predict(rows),
    "best_of": lambda model, rows: model.predict(rows, best_of=3),
    "beam": lambda model, rows: model.predict(rows, beam=2),
    "losses": lambda model, rows: model.losses(rows),
    "certify": lambda model, rows: certify(model, rows * 2, REFERENCE, progress=False),
    "roll-outs": lambda model, rows: rollout_costs(model, SPACE, rows, REFERENCE),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_feature_that_is_no_number_is_refused_however_it_is_searched(model: lols.Model, search: Any) -> None:
    for fault, name, value in ((FEATURE_NAN, "features", "nan"), (ACTION_FEATURE_NAN, "action_features", "-inf")):
        says = rf"example 3, step 1: `{name}` emits the value {value} as feature 1: .*\.py:"
        with pytest.raises(SpaceError, match=says):
            search(model, data(fault))


@pytest.mark.parametrize("search", ["best_of", "beam"])
def test_a_search_that_asks_the_loss_names_it(model: lols.Model, search: str) -> None:
    for fault, says in ((LOSS_NAN, "`loss` gives NaN or infinity"), (LOSS_NEGATIVE, "`loss` is negative")):
        with pytest.raises(SpaceError, match=rf"example 3.*{says}"):
            SEARCHES[search](model, data(fault))


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("randomise", ["deviation", "steps"])
def test_a_bandit_refuses_a_feature_that_is_no_number(epsilon: float, randomise: str) -> None:
    rule = lols.Reference(action=lambda x, y, s: 0)
    bandit = lols.StructuredBandit(SPACE, rule, epsilon=epsilon, randomise=randomise, compiled=False)
    bandit.decide(data(FINE)[0])
    for fault, name in ((FEATURE_NAN, "features"), (ACTION_FEATURE_NAN, "action_features")):
        with pytest.raises(SpaceError, match=rf"^example 0, step 1: `{name}` emits the value -?(nan|inf) as feature 1"):
            bandit.decide(data(fault)[3])


def test_following_the_teacher_names_the_teacher(model: lols.Model) -> None:
    for fault, says in (
        (TEACHER_ACTION, "example 3, step 1: `action` failed with ValueError: no advice"),
        (TEACHER_ILLEGAL, "example 3, step 1: the reference takes action 2, which `actions` does not allow there"),
        (ENDLESS, "the search goes on after 4 steps"),
    ):
        with pytest.raises(SpaceError) as caught:
            model.reference_losses(data(fault), REFERENCE)
        assert says in str(caught.value)


def test_a_mistake_leaves_nothing_behind(model: lols.Model) -> None:
    before = model.predict(data(FINE))
    with pytest.raises(SpaceError):
        model.predict(data(FEATURES))
    assert model.predict(data(FINE)) == before


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "there are no examples: give at least one"),
        ([{"words": [1]}], "example 0: it has no truth `y`, which training needs"),
        ([{"words": [1], "tags": [0]}, {"words": [1]}], "example 1: it has no truth `y`, which training needs"),
        ([{"words": [1], "tags": [0]}, {"tags": [1]}], "`encode` failed on example 1: KeyError: 'words'"),
        ([{"words": [float("nan")], "tags": [0]}], "example 0: column 'words' of x holds NaN or infinity"),
        ([{"words": ["a"], "tags": [0]}], "example 0: column 'words' of x holds <U1 values"),
        ([{"words": [1], "tags": 0}, {"words": [1], "tags": [0]}], "example 1: column 'tags' of y is a number in some"),
    ],
)
def test_data_that_does_not_fit_is_named(rows: list[dict[str, Any]], says: str) -> None:
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    with pytest.raises(SpaceError) as caught:
        lols.train(tagging_space(labels=2), rows, teacher, compiled=False)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_columns_of_other_names_in_later_examples_are_named() -> None:
    space = dataclasses.replace(tagging_space(labels=2), encode=lambda obj: lols.Example(obj, {"tags": [0]}))
    teacher = lols.Reference(action=lambda x, y, s: 0)
    with pytest.raises(SpaceError, match=r"example 1: x has columns \['text'\], but example 0 has \['words'\]"):
        lols.train(space, [{"words": [1]}, {"text": [1]}], teacher, compiled=False)


def test_the_loss_of_unlabelled_examples_is_unknown() -> None:
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    made = lols.train(tagging_space(labels=2), [{"words": [1], "tags": [0]}], teacher, compiled=False)
    with pytest.raises(SpaceError, match="example 0: it has no truth `y`"):
        made.evaluate([{"words": [1]}])


def test_an_output_that_raises_is_named() -> None:
    broken = dataclasses.replace(SPACE, output=lambda x, s: s[100])
    made = lols.train(broken, data(FINE), REFERENCE, compiled=False, passes=1)
    with pytest.raises(SpaceError, match="`output` failed on example 0: IndexError"):
        made.predict(data(FINE))


def test_a_function_that_cannot_be_compiled_is_named_in_one_line() -> None:
    def spelled(x, s, out):
        lols.emit(out, len(f"{s[0]:03d}".encode().hex()))

    broken = dataclasses.replace(SPACE, features=spelled)
    with pytest.raises(SpaceError) as caught:
        lols.train(broken, data(FINE), REFERENCE)
    line = str(caught.value)
    assert "\n" not in line and "cannot be compiled" in line and "compiled=False runs it as plain Python" in line
    assert "test_bad_prediction.py" in line
    lols.train(broken, data(FINE), REFERENCE, compiled=False, passes=1)
