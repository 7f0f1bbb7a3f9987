"""Checks of a reference: illegal actions, contradictions, wrong closed-form costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lols import Reference
from lols.contract.checks import check_space
from tests.contract.checks.spaces import DATA, GOOD, TEACHER, assert_found, free_of_truth, mark, not_twice, write_costs

# --- the reference ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "function", "words"),
    [
        (Reference(action=lambda x, y, s: y.tags[s[0]] + 1), "Reference.action", ["action 3", "does not exist"]),
        (Reference(action=lambda x, y, s: -1), "Reference.action", ["action -1", "does not exist"]),
        (Reference(free=lambda x, y, s, out: mark(out, 2)), "Reference.free", ["does not allow"]),
        (Reference(free=lambda x, y, s, out: None), "Reference.free", ["marks no action"]),
    ],
)
def test_an_illegal_reference_is_found(reference, function, words):
    assert_found(replace(GOOD, actions=not_twice), function, *words, reference=reference)


def test_an_action_that_is_illegal_only_after_a_deviation_is_found():
    data = [{"words": [3, 5, 4, 6], "tags": [0, 1, 0, 2]}]
    space = replace(GOOD, actions=not_twice)
    assert_found(space, "Reference.action", "does not allow", "take another", reference=TEACHER, data=data)


def test_an_action_that_is_not_free_is_found():
    reference = Reference(action=lambda x, y, s: 0, free=free_of_truth)
    assert_found(GOOD, "Reference.action", "action 0", "`free` does not mark", reference=reference)


def test_right_closed_form_costs_are_accepted_with_and_without_an_action():
    assert check_space(GOOD, DATA, Reference(costs=write_costs)) == []
    assert check_space(replace(GOOD, cost=None, key=None), DATA, Reference(costs=write_costs)) == []
    assert check_space(GOOD, DATA, Reference(action=TEACHER.action, free=free_of_truth, costs=write_costs)) == []
    # a bad teacher's own action need not be the cheapest
    assert check_space(GOOD, DATA, Reference(action=lambda x, y, s: 0, costs=write_costs)) == []


def test_closed_form_costs_that_differ_from_roll_outs_are_found():
    def costs(x, y, s, out):
        for a in range(len(out)):
            out[a] = 1.0 + 2.0 * (a != y.tags[s[0]])

    words = ["costs 2 more", "rolled out", "costs 1 more"]
    assert_found(GOOD, "Reference.costs", *words, reference=Reference(costs=costs))
    assert_found(replace(GOOD, cost=None, key=None), "Reference.costs", *words, reference=Reference(costs=costs))


def test_closed_form_costs_that_contradict_free_are_found():
    reference = Reference(free=lambda x, y, s, out: mark(out, 0, 1, 2), costs=write_costs)
    assert_found(GOOD, "Reference.costs", "equally good", "from 7 to 8", reference=reference)


def test_closed_form_costs_without_a_number_are_found():
    reference = Reference(action=TEACHER.action, costs=lambda x, y, s, out: None)
    assert_found(GOOD, "Reference.costs", "nan for action 0", "every legal action", reference=reference)


@pytest.mark.parametrize("name", ["action", "free", "costs"])
def test_a_reference_that_reads_a_truth_it_does_not_need_is_found(name):
    functions = {"action": TEACHER.action, "free": free_of_truth, "costs": write_costs}
    reference = Reference(**{name: functions[name]}, needs_truth=False)
    assert_found(GOOD, f"Reference.{name}", "needs_truth is False", reference=reference)
