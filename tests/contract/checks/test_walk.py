"""Checks along a walk: end states, sizes, indices, modified arguments, functions that depend on what they must not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lols
from lols import Example, Reference
from tests.contract.checks.spaces import (
    DATA,
    GOOD,
    RICH,
    SEEN,
    TEACHER,
    assert_found,
    found,
    free_of_truth,
    mark,
    sized,
    write_costs,
)

# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_dead_end_is_found(value):
    def actions(x, s, legal):
        if s[0] < len(x.words) and s[1] != 2:
            legal[:] = True

    def loss(x, y, s):
        return value if s[0] < len(x.words) else 0.0

    assert_found(replace(GOOD, actions=actions, loss=loss, cost=None), "loss", "dead end", str(value))


def test_loss_and_output_that_raise_are_found():
    def fail(*_):
        raise RuntimeError("no tree")

    broken = replace(GOOD, loss=lambda x, y, s: fail(), output=lambda x, s: fail())
    assert_found(broken, "loss", "end state", "RuntimeError: no tree", "test_walk.py")
    assert_found(broken, "output", "end state", "RuntimeError: no tree")


def test_a_start_without_actions_is_found():
    nothing = replace(GOOD, actions=lambda x, s, legal: None)
    assert_found(nothing, "actions", "nothing at the start state")
    assert (
        lols.checks.check_space(GOOD, [{"words": [], "tags": []}, *DATA]) == []
    )  # where Sizes.steps gives 0, it is meant


@pytest.mark.parametrize("name", ["loss", "cost"])
@pytest.mark.parametrize(("value", "word"), [(-1.0, "negative"), (math.nan, "finite")])
def test_negative_and_undefined_losses_and_costs_are_found(name, value, word):
    function = {"loss": lambda x, y, s: value, "cost": lambda x, y, s, a: value}[name]
    assert_found(replace(GOOD, **{name: function}), name, word)


def test_costs_that_do_not_add_up_to_the_loss_are_found():
    assert_found(replace(GOOD, cost=lambda x, y, s, a: 1.0), "cost", "adds up to 5", "`loss` is")


def test_an_endless_search_is_found():
    def actions(x, s, legal):
        legal[:] = True

    def step(x, s, a):
        s[1] = a

    assert_found(replace(GOOD, actions=actions, step=step), "step", "goes on", "Sizes.steps = 5")


def test_too_few_steps_are_found():
    assert_found(sized(steps=lambda x: len(x.words) - 1), "Sizes.steps", "gives 4", "takes 5 steps", "raise it")


def test_a_state_that_is_too_small_is_found():
    assert_found(sized(state=lambda x: 2 + len(x.words)), "step", "index 7 of the state", "raise Sizes.state")


# --- sizes and indices ------------------------------------------------------------------------------------------------


def emit_values(value):
    return lambda x, s, out: lols.emit(out, 1, value)


@pytest.mark.parametrize(
    ("space", "function", "words"),
    [
        (sized(features=9), "features", ["emits 10 features", "Sizes.features is 9"]),
        (sized(RICH, items=1), "items", ["looks at 2 items", "Sizes.items is 1"]),
        (sized(RICH, roles=1), "items", ["role 1", "Sizes.roles is 1"]),
        (replace(RICH, items=lambda x, s, out: lols.look(out, s[0] + 1)), "items", ["item 5", "5 items"]),
        (replace(RICH, items=lambda x, s, out: lols.look(out, s[0] - 1)), "items", ["item -1"]),
        (
            replace(RICH, action_features=lambda x, s, a, out: [lols.emit(out, i) for i in range(a)]),
            "action_features",
            ["emits 2 features", "Sizes.action_features is 1"],
        ),
        (replace(GOOD, features=emit_values(math.nan)), "features", ["nan", "finite"]),
        (replace(GOOD, features=emit_values(1e300)), "features", ["1e+300", "finite"]),
        (replace(GOOD, key=lambda x, s: s[99]), "key", ["index 99 of the state", "Sizes.state"]),
        (replace(GOOD, key=lambda x, s: s[s[0] - 1]), "key", ["index -1 of the state", "negative"]),
        (replace(GOOD, features=lambda x, s, out: x.words[s[0] - 1]), "features", ["index -1 of x.words", "negative"]),
        (replace(GOOD, features=lambda x, s, out: x.words[s[0] + 1]), "features", ["index 5 of x.words", "check"]),
        (replace(GOOD, cost=lambda x, y, s, a: y.tags[s[0] - 1]), "cost", ["index -1 of y.tags", "negative"]),
        (sized(actions=2, state=lambda x: 2), "start", ["index 2 of the state"]),
    ],
)
def test_what_breaks_the_sizes_is_found(space, function, words):
    assert_found(space, function, *words)


@pytest.mark.parametrize(("action", "word"), [(-1, "negative"), (3, "Sizes.actions")])
def test_legal_actions_that_do_not_exist_are_found(action, word):
    def actions(x, s, legal):
        legal[action] = True

    assert_found(replace(GOOD, actions=actions), "actions", f"index {action} of legal", word)


def test_a_reference_that_marks_beyond_the_actions_is_found():
    reference = Reference(free=lambda x, y, s, out: mark(out, 3))
    assert_found(GOOD, "Reference.free", "index 3 of out", "one entry for each action", reference=reference)


def test_more_live_cells_than_cells_are_found():
    assert_found(sized(live=7), "Sizes.live", "is 7", "6 cells", data=[DATA[1]])


# --- modifying --------------------------------------------------------------------------------------------------------


def with_state_change(name, owner=GOOD):
    """The function of this name, preceded by a write to the state."""
    original = getattr(owner, name)
    place = list(original.__code__.co_varnames).index("s")

    def call(*arguments):
        arguments[place][0] += 1
        try:
            return original(*arguments)
        except Exception:
            return 0

    # the contract counts arguments
    count = original.__code__.co_argcount
    wrappers = {2: lambda a, b: call(a, b), 3: lambda a, b, c: call(a, b, c), 4: lambda a, b, c, d: call(a, b, c, d)}
    return wrappers[count]


@pytest.mark.parametrize("name", ["actions", "features", "loss", "cost", "key", "items", "action_features"])
def test_a_function_that_changes_the_state_is_found(name):
    broken = replace(RICH, **{name: with_state_change(name, RICH)})
    assert_found(broken, name, "changes cell 0 of the state", "only `start` and `step`")


@pytest.mark.parametrize("name", ["action", "free", "costs"])
def test_a_reference_that_changes_the_state_is_found(name):
    whole = Reference(action=TEACHER.action, free=free_of_truth, costs=write_costs)
    reference = replace(whole, **{name: with_state_change(name, whole)})
    assert_found(GOOD, f"Reference.{name}", "changes cell 0 of the state", reference=reference)


def test_an_output_that_changes_the_state_is_found():
    assert_found(replace(GOOD, output=lambda x, s: s.sort()), "output", "changes the state")


def test_functions_that_change_x_or_y_are_found():
    def features(x, s, out):
        x.words[0] = 1

    def step(x, s, a):
        x.words.sort()
        s[0] += 1

    def loss(x, y, s):
        y.tags[0] = 0
        return 0.0

    assert_found(replace(GOOD, features=features), "features", "writes to x.words", "only read")
    assert_found(replace(GOOD, step=step), "step", "writes to x or y", "only read")
    assert_found(replace(GOOD, loss=loss), "loss", "writes to y.tags", "only read")
    assert_found(replace(GOOD, output=lambda x, s: x.words.sort()), "output", "read-only")


# --- what functions must not know -------------------------------------------------------------------------------------


def count_up():
    SEEN["count"] = SEEN.get("count", 0) + 1
    return SEEN["count"]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("features", lambda x, s, out: lols.emit(out, count_up())),
        ("loss", lambda x, y, s: count_up()),
        ("key", lambda x, s: count_up()),
        ("cost", lambda x, y, s, a: count_up()),
    ],
)
def test_functions_that_are_not_deterministic_are_found(name, function):
    assert_found(replace(GOOD, **{name: function}), name, "another answer", "same arguments")


def test_a_step_that_draws_at_random_is_found():
    def step(x, s, a):
        s[0] += 1
        s[1] = count_up()

    assert_found(replace(GOOD, step=step), "step", "another answer")


def test_a_reference_may_draw_at_random_from_its_stream_only():
    elsewhere = Reference(action=lambda x, y, s, rng: count_up() % 3)
    assert_found(GOOD, "Reference.action", "another answer", "`rng` argument only", reference=elsewhere)
    assert_found(GOOD, "Reference.action", "another answer", reference=Reference(action=lambda x, y, s: count_up() % 3))


def test_features_that_change_when_only_the_truth_changes_are_found():
    def cost(x, y, s, a):
        SEEN["tag"] = int(y.tags[s[0]])
        return 1.0 if a != y.tags[s[0]] else 0.0

    broken = replace(GOOD, cost=cost, features=lambda x, s, out: lols.emit(out, SEEN.get("tag", 0)))
    assert_found(broken, "features", "only the truth `y` changes", "global")


def test_a_truth_copied_into_the_input_is_found():
    broken = replace(
        GOOD, encode=lambda obj: Example({"words": obj["words"], "hint": obj["tags"]}, {"tags": obj["tags"]})
    )
    assert_found(broken, "encode", "'hint' of x", "'tags' of y", "leak")


def test_a_number_copied_into_the_input_is_found():
    broken = replace(
        GOOD,
        encode=lambda obj: Example(
            {"words": obj["words"], "hint": obj["tags"][0]}, {"tags": obj["tags"], "first": obj["tags"][0]}
        ),
    )
    assert_found(broken, "encode", "'hint' of x", "'first' of y", "leak")


@pytest.mark.parametrize("name", ["features", "key"])
def test_functions_that_read_beyond_the_live_cells_are_found(name):
    assert_found(sized(live=2), name, "beyond its first 2 cells", "raise Sizes.live")


def test_other_readers_beyond_the_live_cells_are_found():
    def step(x, s, a):
        s[2] = s[3]
        s[0] += 1

    def actions(x, s, legal):
        if s[0] < len(x.words):
            legal[: 1 + s[3] % 2] = True

    live = "beyond its first 3 cells"
    assert_found(replace(GOOD, step=step), "step", live)
    assert_found(replace(GOOD, actions=actions), "actions", live)
    assert_found(replace(GOOD, cost=lambda x, y, s, a: float(s[3] % 2)), "cost", live)
    assert_found(replace(RICH, items=lambda x, s, out: lols.look(out, 0, s[3] % 2)), "items", live)
    assert_found(replace(RICH, action_features=lambda x, s, a, out: lols.emit(out, s[3])), "action_features", live)
    assert_found(GOOD, "Reference.action", live, reference=Reference(action=lambda x, y, s: s[3] % 3))


# --- numbers that the state does not keep -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, -2.75, 1 << 40, np.int64(1 << 40)])
def test_a_number_that_the_state_does_not_keep_is_found(value):
    def step(x, s, a):
        GOOD.step(x, s, a)
        s[1] = value

    words = ("step 0", f"writes {value} into the state", "whole numbers of 32 bits", "test_walk.py")
    assert_found(replace(GOOD, step=step), "step", *words)


def test_a_fraction_in_some_of_several_cells_is_found():
    def start(x, s):
        s[1:3] = 1.5

    assert_found(replace(GOOD, start=start), "start", "writes 1.5 into the state", "round or scale")


def test_whole_numbers_may_be_floats():
    def step(x, s, a):
        GOOD.step(x, s, a)
        s[1] = float(s[1])
        s[:2] = s[:2] * 1.0

    assert found(replace(GOOD, step=step), "step") == []
