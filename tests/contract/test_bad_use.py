"""What a mistake in a space, a reference, the data or the options looks like: one line that names the place.

One space for all mistakes, so that it is compiled once: every example says which mistake strikes, and at which step.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_space
from lols.errors import ConfigurationError, SpaceError

(
    FINE,
    START,
    ACTIONS,
    STEP,
    FEATURES,
    ACTION_FEATURES,
    ITEMS,
    KEY,
    COST,
    LOSS,
    TEACHER_ACTION,
    TEACHER_FREE,
    TEACHER_COSTS,
    HELPER,
    OFF_THE_PATH,
    ENDLESS,
    CLOSED,
    COST_NAN,
    COST_INFINITE,
    LOSS_NAN,
    LOSS_INFINITE,
    LOSS_NEGATIVE,
    MANY_FEATURES,
    MANY_ACTION_FEATURES,
    MANY_ITEMS,
    NO_SUCH_ITEM,
    NO_SUCH_ROLE,
    FEATURE_NAN,
    TEACHER_ILLEGAL,
    TEACHER_NOWHERE,
    TEACHER_NEGATIVE,
    FREE_ILLEGAL,
    FREE_NOTHING,
    COSTS_NAN,
    COSTS_MISSING,
) = range(35)


# --- the space: tagging with labels 0 and 1; label 2 is never legal ---------------------------------------------------


def start(x, s):
    if x.fault == START:
        raise ValueError("no start")


def actions(x, s, legal):
    if x.fault == ACTIONS and s[0] == x.at:
        raise ValueError("no actions")
    if s[0] < x.n and x.fault != CLOSED:
        legal[0] = legal[1] = True


def step(x, s, a):
    if x.fault == STEP and s[0] == x.at:
        raise ValueError("no step")
    s[2 + s[0]] = s[1] = a
    if x.fault != ENDLESS or s[0] != x.at:
        s[0] += 1


def helper(x, s):
    if x.fault == HELPER and s[0] == x.at:
        raise ValueError("no help")
    return s[1]


def features(x, s, out):
    if x.fault == FEATURES and s[0] == x.at:
        raise ValueError("no features")
    if x.fault == OFF_THE_PATH and s[0] == x.at and s[1] == 1:
        raise ValueError("nobody goes here")
    lols.emit(out, lols.feature(0, helper(x, s)), np.nan if x.fault == FEATURE_NAN and s[0] == x.at else 1.0)
    if x.fault == MANY_FEATURES and s[0] == x.at:
        for k in range(40):
            lols.emit(out, k)


def action_features(x, s, a, out):
    if x.fault == ACTION_FEATURES and s[0] == x.at:
        raise ValueError("no action features")
    lols.emit(out, lols.feature(1, a))
    if x.fault == MANY_ACTION_FEATURES and s[0] == x.at:
        for k in range(40):
            lols.emit(out, k)


def items(x, s, out):
    if x.fault == ITEMS and s[0] == x.at:
        raise ValueError("no items")
    lols.look(out, s[0])
    if s[0] == x.at:
        if x.fault == MANY_ITEMS:
            for _ in range(40):
                lols.look(out, 0)
        elif x.fault == NO_SUCH_ITEM:
            lols.look(out, 77)
        elif x.fault == NO_SUCH_ROLE:
            lols.look(out, 0, 5)


def key(x, s):
    if x.fault == KEY and s[0] == x.at:
        raise ValueError("no key")
    return s[0] * 4 + s[1]


def cost(x, y, s, a):
    if s[0] == x.at:
        if x.fault == COST:
            raise ValueError("no cost")
        if x.fault == COST_NAN:
            return np.nan
        if x.fault == COST_INFINITE:
            return np.inf
    return 1.0 if a != y.tags[s[0]] else 0.0


def loss(x, y, s):
    if x.fault == LOSS:
        raise ValueError("no loss")
    if x.fault == LOSS_NAN:
        return np.nan
    if x.fault == LOSS_INFINITE:
        return np.inf
    if x.fault == LOSS_NEGATIVE:
        return -1.0
    wrong = 0.0
    for i in range(x.n):
        wrong += s[2 + i] != y.tags[i]
    return wrong


def output(x, s):
    return s[2 : 2 + x.n].tolist()


def encode(obj):
    x = {"n": len(obj["tags"]), "fault": obj.get("fault", FINE), "at": obj.get("at", 0)}
    return lols.Example(x, {"tags": obj["tags"]}, [[lols.feature(2, k)] for k in range(len(obj["tags"]))])


def teacher_action(x, y, s):
    if s[0] == x.at:
        if x.fault == TEACHER_ACTION:
            raise ValueError("no advice")
        if x.fault == TEACHER_ILLEGAL:
            return 2
        if x.fault == TEACHER_NOWHERE:
            return 99
        if x.fault == TEACHER_NEGATIVE:
            return -7
    return y.tags[s[0]]


def teacher_free(x, y, s, out):
    if s[0] == x.at:
        if x.fault == TEACHER_FREE:
            raise ValueError("nothing is free")
        if x.fault == FREE_ILLEGAL:
            out[2] = True
        if x.fault == FREE_NOTHING:
            return
    out[y.tags[s[0]]] = True


def teacher_costs(x, y, s, out):
    if x.fault == TEACHER_COSTS and s[0] == x.at:
        raise ValueError("no costs")
    for a in range(2):
        out[a] = 1.0 if a != y.tags[s[0]] else 0.0
    if s[0] == x.at:
        if x.fault == COSTS_NAN:
            out[1] = np.nan
        if x.fault == COSTS_MISSING:
            out[1] = np.inf


SPACE = lols.SearchSpace(
    start=start,
    actions=actions,
    step=step,
    features=features,
    action_features=action_features,
    items=items,
    key=key,
    cost=cost,
    loss=loss,
    output=output,
    encode=encode,
    sizes=lols.Sizes(
        state=lambda x: 2 + x.n, actions=3, features=4, action_features=4, items=4, roles=2, steps=lambda x: x.n
    ),
)
REFERENCE = lols.Reference(action=teacher_action, free=teacher_free, costs=teacher_costs)
TAGS = [0, 0, 1, 0]


def data(fault: int, at: int = 1) -> list[dict[str, Any]]:
    """Seven examples, the fourth of which is faulty."""
    return [{"tags": TAGS, "fault": fault if i == 3 else FINE, "at": at} for i in range(7)]


def mistakes(fault: int, at: int = 1, **options: Any) -> str:
    """What training says of a mistake: the same whether compiled or not, and with any number of threads."""
    options = {"passes": 2, "batch_size": 4} | options
    said = []
    for how in ({"compiled": False}, {"compiled": True}, {"compiled": True, "threads": 2}):
        with pytest.raises(SpaceError) as caught:
            lols.train(SPACE, data(fault, at), REFERENCE, **options, **how)
        said.append(str(caught.value))
    assert said[0] == said[1] == said[2]
    assert "\n" not in said[0] and said[0].startswith("example 3")
    return said[0]


def test_without_a_mistake_the_space_trains() -> None:
    for compiled in (True, False):
        model = lols.train(SPACE, data(FINE), REFERENCE, compiled=compiled, passes=20)
        assert model.evaluate(data(FINE)) == 0.0


# --- functions that raise ---------------------------------------------------------------------------------------------

ROLLED_OUT: dict[str, Any] = {"tricks": {"closed_form": False}, "roll_out": "reference", "roll_in": "learned"}


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
    assert "test_bad_use.py:" in line


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
    assert "step 1: `features` failed with ValueError: no help" in line and f"test_bad_use.py:{raised}," in line


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


def test_a_feature_whose_value_is_no_number_is_refused() -> None:
    for compiled in (True, False):
        with pytest.raises(lols.LolsError) as caught:
            lols.train(SPACE, data(FEATURE_NAN), REFERENCE, passes=2, compiled=compiled)
        assert "example 3" in str(caught.value) and "\n" not in str(caught.value)


# --- teachers that break the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (TEACHER_ILLEGAL, "the reference takes action 2, which `actions` does not allow there"),
        (TEACHER_NOWHERE, "the reference takes action 99, which `actions` does not allow there"),
        (TEACHER_NEGATIVE, "the reference takes action -7, which `actions` does not allow there"),
    ],
)
def test_an_action_that_is_not_legal_is_refused(fault: int, says: str) -> None:
    assert says in mistakes(fault, **ROLLED_OUT)


def test_free_actions_that_are_not_legal_are_refused() -> None:
    line = mistakes(FREE_ILLEGAL, roll_in="reference")
    assert line.startswith("example 3, step 1: the reference takes action 2, which `actions` does not allow there")


def test_a_teacher_without_any_free_action_is_refused() -> None:
    line = mistakes(FREE_NOTHING, roll_in="reference")
    assert line.startswith("example 3, step 1: the reference has no legal action there")


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
    assert "test_bad_use.py" in line
    lols.train(broken, data(FINE), REFERENCE, compiled=False, passes=1)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"roll_out": "reference", "beta": 0.5}, "beta has no effect: roll_out is 'reference', not 'mixture'"),
        ({"algorithm": "aggrevate", "mix": "state"}, "mix has no effect"),
        ({"algorithm": "dagger", "beta": 0.5}, "beta has no effect"),
        ({"beta_in": 0.5}, "beta_in has no effect: roll_in is 'learned', not 'mixture'"),
        ({"alpha": 0.1}, "alpha has no effect: only searn has it"),
        ({"beta": 2}, "beta '2' leaves [0, 1]"),
        ({"passes": 0}, "passes is 0; it must be at least 1"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"tricks": {"luck": True}}, "unknown trick 'luck'"),
        ({"learner": "svm"}, "unknown learner 'svm': choose one of csoaa, hinge, secoc"),
        ({"update": "adam"}, "unknown update 'adam'"),
        ({"learner": "csoaa", "update": "perceptron"}, "csoaa cannot use perceptron"),
        ({"learner": lols.LearnerSettings(), "update": "nag"}, "update has no effect"),
        ({"learner": "secoc"}, "secoc with adagrad has no form for `action_features`"),
        ({"learner": "csoaa", "update": "ridge"}, "csoaa with ridge has no form for `action_features`"),
        ({"resume": True}, "resume has no effect: name the checkpoint file"),
        ({"luck": 7}, "unknown option 'luck'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lols.train(SPACE, data(FINE), REFERENCE, compiled=False, **options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_horizon_needs_costs_along_the_way() -> None:
    with pytest.raises(ConfigurationError, match="horizon needs a space with `cost`"):
        lols.train(dataclasses.replace(SPACE, cost=None), data(FINE), REFERENCE, horizon=2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reduction": "forest"}, "unknown learner 'forest'"),
        ({"rate": 0.0}, "the learning rate is 0.0; it must be positive"),
        ({"rate": float("nan")}, "the learning rate is nan; it must be positive"),
        ({"rate": float("inf")}, "the learning rate is inf"),
        ({"margin": "wide"}, "unknown margin 'wide'"),
        ({"bits": 0}, "bits is 0; it must be between 1 and 30"),
        ({"bits": 31}, "bits is 31; it must be between 1 and 30"),
        ({"max_features": 0}, "must be at least 1"),
        ({"thresholds": 0}, "must be at least 1"),
    ],
)
def test_learner_settings_out_of_range_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lols.LearnerSettings(**changes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"step": lambda x, s: None}, "SearchSpace.step takes 2 arguments; the contract gives it 3"),
        ({"loss": None}, "SearchSpace.loss must be a plain function, not NoneType"),
        ({"key": 3}, "SearchSpace.key must be a plain function, not int"),
        ({"sizes": lols.Sizes(state=1, actions=1, features=1, steps=1)}, "Sizes.items must say how many"),
        ({"sizes": lols.Sizes(state=1, actions=1, features=1, steps=1, items=1)}, "Sizes.action_features must say how"),
    ],
)
def test_a_space_that_breaks_the_contract_is_refused_at_once(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        dataclasses.replace(SPACE, **changes)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["state", "actions", "steps"])
def test_sizes_must_be_positive(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Sizes.{name} is 0; it must be at least 1"):
        lols.Sizes(**({"state": 1, "actions": 1, "features": 1, "steps": 1} | {name: 0}))


def test_a_reference_needs_something_to_say() -> None:
    with pytest.raises(ConfigurationError, match="a Reference needs at least one of action, free and costs"):
        lols.Reference()
    with pytest.raises(ConfigurationError, match=r"Reference.action takes 2 arguments; the contract gives it 3 or 4"):
        lols.Reference(action=lambda x, s: 0)
