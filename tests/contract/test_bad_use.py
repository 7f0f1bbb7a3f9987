"""Messages about a mistake in a space or a reference during training: one line that names the place."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_space
from lols.errors import SpaceError
from lols.policies import LinearPolicy
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.contract.bad_space import (
    ACTION_FEATURE_NAN,
    ACTION_FEATURES,
    ACTIONS,
    CLOSED,
    COST,
    COST_INFINITE,
    COST_NAN,
    COSTS_MISSING,
    COSTS_NAN,
    ENDLESS,
    FEATURE_NAN,
    FEATURES,
    FINE,
    FREE_ILLEGAL,
    FREE_NOTHING,
    HELPER,
    ITEMS,
    KEY,
    LOSS,
    LOSS_INFINITE,
    LOSS_NAN,
    LOSS_NEGATIVE,
    MANY_ACTION_FEATURES,
    MANY_FEATURES,
    MANY_ITEMS,
    NO_SUCH_ITEM,
    NO_SUCH_ROLE,
    OFF_THE_PATH,
    REFERENCE,
    ROLLED_OUT,
    SPACE,
    START,
    STEP,
    TAGS,
    TEACHER_ACTION,
    TEACHER_COSTS,
    TEACHER_FLOAT,
    TEACHER_FRACTION,
    TEACHER_FREE,
    TEACHER_ILLEGAL,
    TEACHER_NAN,
    TEACHER_NEGATIVE,
    TEACHER_NOWHERE,
    WILD,
    WILD_FUNCTIONS,
    data,
    helper,
    mistakes,
)


def test_without_a_mistake_the_space_trains() -> None:
    for compiled in (True, False):
        model = lols.train(SPACE, data(FINE), REFERENCE, compiled=compiled, passes=20)
        assert model.evaluate(data(FINE)) == 0.0


# --- functions that raise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize(
    ("fault", "name", "text"),
    [
        (ACTIONS, "actions", "no actions"),
        (STEP, "step", "no step"),
        (FEATURES, "features", "no features"),
        (ACTION_FEATURES, "action_features", "no action features"),
        (ITEMS, "items", "no items"),
        (KEY, "key", "no key"),
        (COST, "cost", "no cost"),
        (TEACHER_COSTS, "costs", "no costs"),
    ],
)
def test_a_function_that_raises_is_named_with_example_and_step(fault: int, name: str, text: str, at: int) -> None:
    line = mistakes(fault, at)
    assert line.startswith(f"example 3, step {at}: `{name}` failed with ValueError: {text} (")
    assert "bad_space.py:" in line


def test_start_and_loss_have_no_step_of_their_own_but_are_named() -> None:
    assert "`start` failed with ValueError: no start" in mistakes(START)
    assert "`loss` failed with ValueError: no loss" in mistakes(LOSS)


def test_a_teacher_that_raises_is_named() -> None:
    assert "step 1: `free` failed with ValueError: nothing is free" in mistakes(TEACHER_FREE, roll_in="reference")
    line = mistakes(TEACHER_ACTION, **ROLLED_OUT)
    assert "`action` failed with ValueError: no advice" in line
    assert "step 0: " in line  # the deviation at step 0 is the first to be completed by the teacher, from step 1


def test_a_helper_that_raises_is_named_by_its_line_and_by_the_function_that_called_it() -> None:
    line = mistakes(HELPER)
    raised = helper.__code__.co_firstlineno + 2
    assert "step 1: `features` failed with ValueError: no help" in line and f"bad_space.py:{raised}," in line


def test_a_mistake_that_only_a_deviation_meets_is_found() -> None:
    line = mistakes(OFF_THE_PATH, at=2, roll_in="reference", roll_out="learned")
    assert line.startswith("example 3, step 1: `features` failed with ValueError: nobody goes here")


def test_a_key_of_the_wrong_type_and_a_missing_attribute_are_named_in_plain_python() -> None:
    wrong = dataclasses.replace(SPACE, features=lambda x, s, out: x.nothing)
    with pytest.raises(SpaceError, match="example 0, step 0: `features` failed with AttributeError"):
        lols.train(wrong, data(FINE), REFERENCE, compiled=False, shuffle=False)
    wrong = dataclasses.replace(SPACE, key=lambda x, s: "here")
    with pytest.raises(SpaceError, match="example 0, step 0"):
        lols.train(wrong, data(FINE), REFERENCE, compiled=False, shuffle=False)


# --- searches that do not end, or do not begin ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"roll_in": "reference"}, ROLLED_OUT], ids=["lols", "reference", "rolled out"])
def test_a_search_that_never_ends_is_stopped(options: dict[str, Any]) -> None:
    said = mistakes(ENDLESS, **options)
    assert "the search goes on after 4 steps: `step` never reaches an end state, or Sizes.steps is too small" in said


def test_a_start_state_without_actions_is_refused() -> None:
    assert mistakes(CLOSED) == (
        "example 3, step 0: `actions` allows nothing at the start state: leave such examples out"
    )


def test_an_example_without_actions_can_be_predicted() -> None:
    model = lols.train(SPACE, data(FINE), REFERENCE)
    assert model.predict([{"tags": [], "at": 0}, {"tags": TAGS}])[0] == []


# --- losses and costs that are no numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [LOSS_NAN, LOSS_INFINITE])
def test_a_loss_that_is_no_number_is_refused(fault: int) -> None:
    assert "`loss`" in mistakes(fault) and "gives NaN or infinity" in mistakes(fault)


def test_a_negative_loss_is_refused() -> None:
    assert "`loss` is negative: add a constant, so that the best result costs 0" in mistakes(LOSS_NEGATIVE)


@pytest.mark.parametrize("fault", [COST_NAN, COST_INFINITE])
@pytest.mark.parametrize("options", [{"roll_out": "learned"}, {"roll_out": "none"}, ROLLED_OUT])
def test_a_cost_that_is_no_number_is_refused(fault: int, options: dict[str, Any]) -> None:
    line = mistakes(fault, **options)
    assert "`cost`" in line and "gives NaN or infinity" in line


@pytest.mark.parametrize("fault", [COSTS_NAN, COSTS_MISSING])
def test_a_teachers_cost_that_is_no_number_is_refused(fault: int) -> None:
    line = mistakes(fault, roll_out="reference")
    assert line.startswith("example 3, step 1: ") and "`Reference.costs` gives NaN or infinity" in line


@pytest.mark.parametrize("options", [{"roll_out": "learned"}, {"roll_out": "none"}, {"roll_out": "reference"}])
def test_a_cost_whose_square_would_overflow_is_refused(options: dict[str, Any]) -> None:
    costly = dataclasses.replace(
        tagging_space(labels=3),
        loss=lambda x, y, s: 1e20 * sum(int(s[3 + i] != y.tags[i]) for i in range(len(x.words))),
        cost=lambda x, y, s, a: 1e20 * float(a != y.tags[s[0]]),
        key=None,
    )
    truth = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    examples = [{"words": [4, 5], "tags": [0, 2]}]
    with pytest.raises(SpaceError, match=r"`cost` gives NaN or infinity, or more than 1e\+15: .*divide all of them by"):
        lols.train(costly, examples, truth, compiled=False, **options)


# --- too many features and items --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (MANY_FEATURES, "`features` or `action_features` emits more than Sizes says: raise it"),
        (MANY_ACTION_FEATURES, "`features` or `action_features` emits more than Sizes says: raise it"),
        (MANY_ITEMS, "`items` looks at more than Sizes.items = 4: raise it"),
        (NO_SUCH_ITEM, "`items` looks at item 77"),
        (NO_SUCH_ROLE, "`items` looks at item 0"),
    ],
)
def test_what_does_not_fit_the_sizes_is_refused(fault: int, says: str) -> None:
    line = mistakes(fault)
    assert line.startswith("example 3, step 1: ") and says in line


@pytest.mark.parametrize("options", [{}, {"roll_in": "reference", "roll_out": "none"}, {"learner": "csoaa"}])
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (FEATURE_NAN, "`features` emits the value nan as feature 1: keep values finite"),
        (ACTION_FEATURE_NAN, "`action_features` emits the value -inf as feature 1: keep values finite"),
    ],
)
def test_a_feature_whose_value_is_no_number_is_refused(fault: int, says: str, options: dict[str, Any]) -> None:
    line = mistakes(fault, **options)
    assert line.startswith(f"example 3, step 1: {says}") and "bad_space.py:" in line


@pytest.mark.parametrize(("fault", "value"), [(FEATURE_NAN, "nan"), (ACTION_FEATURE_NAN, "-inf")])
def test_a_feature_that_is_no_number_is_noticed_while_a_policy_is_asked(fault: int, value: str) -> None:
    for compiled in (False, True):
        with pytest.raises(SpaceError, match=rf"^example 3, step 1: `.*features` emits the value {value} as feature 1"):
            policy = LinearPolicy(SPACE, compiled=compiled)
            lols.train(SPACE, data(fault), REFERENCE, policy=policy, compiled=compiled)


# --- teachers that break the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (TEACHER_ILLEGAL, "the reference takes action 2, which `actions` does not allow there"),
        (TEACHER_NOWHERE, "the reference takes action 99, which `actions` does not allow there"),
        (TEACHER_NEGATIVE, "the reference takes action -7, which `actions` does not allow there"),
        (TEACHER_FRACTION, "the reference gives a fraction near 0 as an action: return a whole number"),
        (TEACHER_NAN, "the reference gives NaN or infinity as an action: return a whole number"),
    ],
)
def test_an_action_that_is_not_legal_is_refused(fault: int, says: str) -> None:
    assert says in mistakes(fault, **ROLLED_OUT)


def test_a_float_that_is_a_whole_number_is_an_action() -> None:
    models = [
        lols.train(SPACE, data(TEACHER_FLOAT), REFERENCE, compiled=compiled, **ROLLED_OUT) for compiled in (False, True)
    ]
    assert models[0].policy.stack.tobytes() == models[1].policy.stack.tobytes()


def test_free_actions_that_are_not_legal_are_refused() -> None:
    line = mistakes(FREE_ILLEGAL, roll_in="reference")
    assert line.startswith("example 3, step 1: the reference takes action 2, which `actions` does not allow there")


def test_a_teacher_without_any_free_action_is_refused() -> None:
    line = mistakes(FREE_NOTHING, roll_in="reference")
    assert line.startswith("example 3, step 1: the reference has no legal action there")


@pytest.mark.parametrize(
    "fault", [FEATURE_NAN, ACTION_FEATURE_NAN, COST_NAN, LOSS_NAN, LOSS_NEGATIVE, TEACHER_FRACTION, TEACHER_NAN]
)
def test_the_slow_algorithm_refuses_the_same(fault: int) -> None:
    policy, choices = SlowPolicy([{}], [{}], [1.0], np.zeros((0, 3))), Choices(roll_out="reference")
    teacher = dataclasses.replace(REFERENCE, free=None)
    for row in (0, 3):
        example = SPACE.encode(data(fault)[row])
        example = example._replace(items=[(ids, [1.0]) for ids in example.items])
        search = SlowSearch(SPACE, teacher, example, policy, choices)
        if row == 0:
            search.lessons()
        else:
            with pytest.raises(SpaceError):
                search.lessons()


# --- indices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [50, -50])
@pytest.mark.parametrize("function", WILD_FUNCTIONS)
def test_an_index_that_is_not_there_is_noticed_in_every_function(function: str, index: int) -> None:
    options: dict[str, Any] = {"free": {"roll_in": "reference"}, "action": ROLLED_OUT}.get(function, {})
    line = mistakes(WILD + WILD_FUNCTIONS.index(function), index=index, **options)
    assert f"`{function}` failed with IndexError: index " in line and "bad_space.py:" in line


def test_an_index_that_is_not_there_is_noticed_while_a_policy_is_asked() -> None:
    wild = data(WILD + WILD_FUNCTIONS.index("action_features"), index=50)
    with pytest.raises(SpaceError, match=r"^example 3, step 1: `action_features` failed with IndexError: index 50 "):
        lols.train(SPACE, wild, REFERENCE, policy=LinearPolicy(SPACE, compiled=False), compiled=False)
