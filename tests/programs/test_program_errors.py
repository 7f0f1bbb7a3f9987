"""What goes wrong in programs is named: the example, the step, the roll-out; and what a user may give `predict`."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_space
from lols.errors import ConfigurationError, SpaceError
from lols.policies import LinearPolicy
from lols.programs.choices import ActionChoices
from lols.programs.feature_ids import Ids, feature_id

OPTIONS: dict[str, Any] = {"passes": 1, "batch_size": 1, "seed": 0, "compiled": False, "shuffle": False}
DATA = [[0, 1, 2], [1, 1]]


def train(run: Any, data: Any = DATA, *, labels: Any = None, **options: Any) -> Any:
    program = lols.Program(run, None if labels else 3, labels=labels)
    return lols.train(program, data, **(OPTIONS | options))


def test_things_have_the_same_ids_in_every_process():
    ids = "[feature_id(t) for t in ('cat', ('w', 'cat', 3, None, 2.5))]"
    code = f"from lols.programs.feature_ids import feature_id; print({ids})"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{[feature_id(t) for t in ('cat', ('w', 'cat', 3, None, 2.5))]}\n"}


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6))
def test_a_tuple_of_integers_is_a_feature(values):
    assert feature_id(tuple(values)) == lols.feature(*values)


Things = st.recursive(
    st.none() | st.text(max_size=3) | st.integers(-3, 3) | st.floats(-2, 2) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@given(st.lists(Things, max_size=30))
def test_ids_do_not_depend_on_what_was_met_before(things):
    once, twice = Ids(), Ids()
    for thing in reversed(things):
        twice[thing]
    for thing in things:
        assert once[thing] == twice[thing] == feature_id(thing)
    assert len({once[t] for t in things}) == len(set(things))


def test_features_that_cannot_be_named_are_refused():
    for wrong, reason in ((object(), "a feature is a object"), (float("nan"), "a feature is nan"), ([1], "unhashable")):
        with pytest.raises(SpaceError, match=f"example 0, step 0: .*{reason}"):
            train(lambda search, x, wrong=wrong: search.predict([wrong], reference=0))
    with pytest.raises(SpaceError, match="the features are one string, 'word'"):
        train(lambda search, x: search.predict("word", reference=0))


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 1e300, "much"])
def test_values_of_features_are_numbers_within_32_bit_floats(value):
    with pytest.raises(SpaceError, match=r"example 0, step 0: feature 'b' has the value .*: give a finite number"):
        train(lambda search, x: search.predict({"a": 0.5, "b": value}, reference=0))


@pytest.mark.parametrize("legal", [[2, 0], (0, 2), {0, 2}, range(0, 3, 2), np.array([0, 2]), iter([0, 2])])
def test_legal_actions_are_any_iterable(legal):
    choices = ActionChoices(3)
    assert choices.legal(legal) is choices.legal([0, 2])
    assert choices.legal(None).actions == choices.legal(range(3)).actions == [0, 1, 2]


def test_labels_stand_for_actions():
    def run(search: Any, x: Any) -> list[str]:
        made = []
        for n in x:
            truth = "abc"[n]
            made.append(search.predict({("n", n): 1.0, "bias": 0.5}, legal=["a", "b", "c"], reference=truth))
            search.loss(made[-1] != truth)
        return made

    model = train(run, labels="abc", passes=4)
    assert model.predict([[2, 0, 1]]) == [["c", "a", "b"]]
    assert model.evaluate(DATA) == 0.0
    with pytest.raises(SpaceError, match="the reference is 'd': it is not one of the labels"):
        train(lambda search, x: search.predict(["f"], reference="d"), labels="abc")
    with pytest.raises(ConfigurationError, match="the same label twice"):
        train(run, labels="aba")


def test_values_of_features_scale_them():
    model = train(lambda search, x: [search.predict({"f": 2.0, "g": -1.0}, reference=1) for _ in x], roll_out="none")
    assert model.predict(DATA) == [[1, 1, 1], [1, 1]]


def test_features_are_made_only_where_they_are_needed():
    calls = []

    def run(search: Any, x: Any) -> None:
        for i, n in enumerate(x):
            action = search.predict(lambda n=n: calls.append(n) or [n], reference=lambda n=n: n, key=i)
            search.loss(action != n)

    train(run, [[0, 1, 2]], algorithm="aggrevate", learner=lols.LearnerSettings())
    assert calls == [0, 1, 2]  # the roll-in; the teacher's roll-outs look at no features


def teach(search: Any, x: Any, **told: Any) -> list[int]:
    made = []
    for n in x:
        made.append(search.predict([n], **({"reference": n} | told)))
        search.loss(made[-1] != n)
    return made


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"legal": [0, 3]}, "example 0, step 0: `legal` has 3: actions are numbers from 0 to 2"),
        ({"legal": []}, "example 0, step 0: `legal` is empty"),
        ({"legal": [1, 2]}, "example 0, step 0: the reference is 0, which is not legal there"),
        ({"reference": 7}, "example 0, step 0: the reference is 7: actions are numbers from 0 to 2"),
        ({"reference": [0, 9]}, "example 0, step 0: the reference has 9"),
        ({"reference": set()}, "example 0, step 0: the reference has no action"),
        ({"reference": None}, "example 0, roll-out of action 0 at step 0, step 1: the reference is needed here"),
        ({"costs": [0.0, 1.0]}, "example 0, step 0: `costs` has 2 numbers for 3 actions"),
        ({"costs": {0: 1.0}}, "example 0, step 0: `costs` has nan for action 1, which is legal there"),
    ],
    ids=str,
)
def test_what_predict_is_told_is_checked(told, reason):
    with pytest.raises(SpaceError) as found:
        train(lambda search, x: teach(search, x, **told), roll_out="reference")
    assert str(found.value).startswith(reason)


@pytest.mark.parametrize("key", [None, 1])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e20])
def test_losses_are_numbers_from_zero_on(value, key):
    def run(search: Any, x: Any) -> None:
        action = search.predict(["f"], reference=0, key=key)
        search.loss(0.0 if action == 0 else value)

    with pytest.raises(SpaceError, match="example 0, roll-out of action 1 at step 0, step 0: the loss is"):
        train(run)


def test_a_program_must_decide_and_end():
    with pytest.raises(SpaceError, match="example 1: the program ended without a decision"):
        train(lambda search, x: teach(search, x), [[0], []])
    with pytest.raises(SpaceError, match="goes on after 50 decisions"):
        endless = lols.Program(
            lambda search, x: [search.predict(["f"], reference=0) for _ in itertools.count()], 2, steps=50
        )
        lols.train(endless, DATA, **OPTIONS)


def test_programs_that_are_random_are_found_out():
    count = itertools.count()

    def other_actions(search: Any, x: Any) -> None:
        search.predict(["f"], legal=range(1 + next(count) % 3), reference=0)
        search.predict(["g"], reference=0)

    with pytest.raises(SpaceError, match=r"roll-out of action . at step ., step .: other actions are legal"):
        train(other_actions, roll_out="reference", tricks={"reuse": False})
    runs = itertools.count()

    def ends_early(search: Any, x: Any) -> None:
        for _ in range(3 if next(runs) == 0 else 1):
            search.predict(["f"], reference=0)

    for key in (None, "keys"):
        runs = itertools.count()
        with pytest.raises(SpaceError, match="the program ended at step 1, unlike before: is it random"):
            train(lambda search, x, key=key: keyed(search, x, key, ends_early))


def keyed(search: Any, x: Any, key: Any, run: Any) -> Any:
    """Run a program whose decisions get keys, if asked for: their numbers."""
    if key is None:
        return run(search, x)
    numbers, predict = itertools.count(), search.predict
    search.predict = lambda features, reference: predict(features, reference=reference, key=next(numbers))
    try:
        return run(search, x)
    finally:
        del search.predict


def test_keys_that_merge_too_much_are_found_out():
    def run(search: Any, x: Any) -> None:
        one = search.predict(["f"], reference=0, key=0)
        search.predict(["g"], legal=range(1 + one), reference=0, key=1)

    with pytest.raises(SpaceError, match="two decisions have the same key and different legal actions"):
        train(run, tricks={"chain": False})

    def loop(search: Any, x: Any) -> None:
        for _ in range(9):
            if search.predict(["f"], reference=0, key="the same") == 1:
                break

    with pytest.raises(SpaceError, match="step 8: the key 'the same' is that of an earlier decision"):
        train(loop)


def test_errors_of_the_program_pass_through_with_a_note():
    def run(search: Any, x: Any) -> None:
        first = search.predict(["f"], reference=0)
        if first == 2:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as found:
        train(run)
    assert found.value.__notes__ == ["lols: example 0, roll-out of action 2 at step 0, after 1 decisions"]


def test_a_program_may_catch_exceptions():
    def run(search: Any, x: Any) -> list[int]:
        made = []
        for i, n in enumerate(x):
            try:
                made.append(search.predict([n], reference=n, key=i))
                search.loss(made[-1] != n)
            except Exception:
                raise AssertionError("the library's own signal is no Exception") from None
        return made

    assert train(run, passes=3).evaluate(DATA) == 0.0


def test_options_that_do_nothing_are_refused():
    for options, reason in (
        ({"threads": 2}, "threads has no effect"),
        ({"reference": lols.Reference(action=lambda x, y, s: 0)}, "reference has no effect"),
        ({"learner": lols.LearnerSettings(slack=0.5)}, "slack has no effect"),
        ({"policy": LinearPolicy(tagging_space(3), compiled=False)}, "policy has no effect"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            train(lambda search, x: teach(search, x), **options)
    for arguments, reason in (
        ((3,), "a program is a function"),
        ((teach, 0), "actions is 0; it must be a whole number, at least 1"),
        ((teach, 2.5), "actions is 2.5; it must be a whole number"),
        ((lambda search: 0, 2), r"takes \(search\); it is given \(search, x\)"),
        ((lambda search, x, more=1: 0, 0), "actions is 0"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            lols.Program(*arguments)
    with pytest.raises(ConfigurationError, match="2 labels for 3 actions"):
        lols.Program(teach, 3, labels="ab")
    with pytest.raises(ConfigurationError, match="no examples"):
        train(teach, [])
