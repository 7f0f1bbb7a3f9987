"""States of named parts, with real numbers, and instances of different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, ModelFileError, SpaceError
from tests.heuristics.small_shop import Shop, shops

OPTIONS: dict[str, Any] = {"passes": 2, "seed": 1, "progress": False}


@pytest.mark.parametrize("algorithm", ["lols", "aggrevate"])
def test_compiled_and_plain_python_learn_the_same(algorithm: str) -> None:
    data = shops(6) + shops(6, seed=1, jobs=3)
    compiled, plain = (
        lols.train(Shop, data, algorithm=algorithm, compiled=compiled, **OPTIONS) for compiled in (True, False)
    )
    assert np.array_equal(compiled.policy.single_stack, plain.policy.single_stack)
    assert compiled.predict(data) == plain.predict(data)
    assert np.array_equal(compiled.reference_losses(data), plain.reference_losses(data))


def test_real_numbers_are_kept_as_they_are() -> None:
    machine = np.array([[0], [0]])
    shop = machine, np.array([[0.1], [0.2]])
    model = lols.train(Shop, [shop] * 4, compiled=False, **OPTIONS)
    assert model.predict([shop]) == [0.1 + 0.2] and model.reference_outputs([shop]) == [0.2 + 0.1]


def test_a_policy_decides_on_instances_larger_than_those_of_training(tmp_path) -> None:
    model = lols.train(Shop, shops(12, jobs=3), **OPTIONS)
    model.save(tmp_path / "m.lols")
    large = shops(3, jobs=40)
    assert lols.load(tmp_path / "m.lols", Shop).predict(large) == model.predict(large)
    assert "any number of actions" in repr(model)


def test_a_model_for_a_number_of_actions_is_not_one_for_any(tmp_path) -> None:
    class Fixed(Shop):
        sizes = lols.Sizes(
            state=Shop.sizes.state, steps=Shop.sizes.steps, actions=5, features=0, action_features=4,
        )  # fmt: skip

    lols.train(Fixed, shops(4), compiled=False, **OPTIONS).save(tmp_path / "m.lols")
    with pytest.raises(ModelFileError, match="trained for 5 actions; this space has any number of"):
        lols.load(tmp_path / "m.lols", Shop)


def last_job(x, y, s):
    for j in range(x.jobs - 1, -1, -1):
        if s.done[j] < x.machines:
            return j
    return -1


def test_the_space_is_checked_as_any_other() -> None:
    assert lols.checks.check_space(Shop, shops(3)) == []
    assert lols.checks.check_space(Shop, shops(3), lols.Reference(action=last_job, needs_truth=False)) == []

    class Beyond(Shop):
        def step(x, s, a):
            s.job[a + 9] = 1.0

    with pytest.raises(SpaceError, match="`step`, example 0, step 0: uses index 9 of the state, which has 5 entries"):
        lols.train(Beyond, shops(3), **OPTIONS)


def test_a_part_of_negative_size_is_refused_before_a_kernel_runs() -> None:
    class Negative(Shop):
        sizes = lols.Sizes(
            state=lols.State(job=lols.reals("jobs"), machine=lols.reals("machines"), bad=lambda x: -1, done="jobs"),
            steps=Shop.sizes.steps, actions=Shop.sizes.actions, features=0, action_features=4,
        )  # fmt: skip

    with pytest.raises(SpaceError, match=r"example 0: .*a negative size of the part `bad`"):
        lols.train(Negative, shops(3), **OPTIONS)


def test_a_reference_of_its_own_sees_the_parts_too() -> None:
    first = lols.Reference(action=lambda x, y, s: int(np.argmin(s.done)), needs_truth=False)
    model = lols.train(Shop, shops(4), first, compiled=False, **OPTIONS)
    assert np.isfinite(model.reference_losses(shops(4), first)).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: lols.State(), "a State needs parts"),
        (lambda: lols.State(done=-1), "the size of the state's part `done` is -1"),
        (lambda: lols.State(done=lols.reals(2.5)), "the size of the state's part `done` is 2.5"),
        (lambda: lols.State(_done=1), "`_done` cannot name a part"),
        (lambda: lols.Sizes(state=lols.State(a=1), actions=2, features=1, steps=1, live=1), "Sizes.live counts cells"),
    ],
)
def test_mistakes_in_states(make: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_with_any_number_of_actions_all_features_are_of_actions() -> None:
    class Both(Shop):
        sizes = lols.Sizes(state=4, steps=3, actions=lambda x: x.jobs, features=2, action_features=4)

    with pytest.raises(ConfigurationError, match="all features must be features of actions"):
        _ = Both.space


def test_a_function_is_wrapped_once_so_that_it_is_compiled_once() -> None:
    rule = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    assert rule.on(Shop.space.parts).action is rule.on(Shop.space.parts).action
