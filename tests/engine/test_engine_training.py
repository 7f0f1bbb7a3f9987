"""Whole training runs against the specification: weights, threads, orders and seeds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.engine.drivers.fused import FusedDriver
from lols.specification import Choices, SlowPolicy
from tests.engine.against_twin import COUNTING, STRATEGIES, needs_compiler, random_policy
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, data_sets, in_parts, random_data
from tests.engine.twin import collected, in_arrays, weights_by_feature
from tests.engine.twin import train as twin_train
from tests.engine.twin_learner import TwinLearner

# --- training ---------------------------------------------------------------------------------------------------------


def assert_same_weights(model: lols.Model, expected: SlowPolicy, *, rtol: float = 1e-6) -> None:
    for component in range(len(expected.shared)):
        shared, single = weights_by_feature(model.policy, component)
        wanted = {f: w for f, w in expected.shared[component].items() if np.any(w)}
        assert shared.keys() == wanted.keys()
        for f, weights in wanted.items():
            np.testing.assert_allclose(shared[f], weights, rtol=rtol)
        own = {f: w for f, w in expected.single[component].items() if w}
        assert single.keys() == own.keys()
        for f, weight in own.items():
            np.testing.assert_allclose(single[f], [weight], rtol=rtol)


def counting_twin(variant: Variant, slack: float | None = None) -> TwinLearner:
    by_action = variant.space.action_features is not None
    return TwinLearner("hinge", "perceptron", 1.0, ACTIONS, by_action=by_action, slack=slack)


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=20)
@given(st.data())
def test_training_follows_the_twin_to_the_last_weight(name: str, data: st.DataObject) -> None:
    variant = VARIANTS[name]
    into, out, mix = data.draw(st.sampled_from(STRATEGIES))
    betas = [0.25, 0.5, "auto"] if out == "mixture" and mix not in ("step", "expected") else [0.5]
    choices = Choices(
        roll_in=into,
        roll_out=out,
        mix=mix,
        ties=data.draw(st.sampled_from(["first", "random"])),
        beta=data.draw(st.sampled_from(betas)),
        beta_in=data.draw(st.sampled_from([None, 0.5])),
        prune=data.draw(st.sampled_from([None, None, 1, 2])),
    )
    slack = data.draw(st.sampled_from([None, None, 0.0, 1.0]))
    examples, seed = data.draw(data_sets(variant)), data.draw(st.integers(0, 5))
    how = {"passes": 3, "batch_size": data.draw(st.integers(1, 3)), "seed": seed}
    parts = data.draw(st.sampled_from([1, 2])) if variant.space.items else 1
    given = lols.Examples(variant.space, examples)
    model = lols.train(
        variant.space, given if parts == 1 else in_parts(given, parts, seed), variant.reference,
        learner=replace(COUNTING, slack=slack), shuffle=False, **how, **choices.options(),
    )  # fmt: skip
    twin = counting_twin(variant, slack)
    assert_same_weights(model, twin_train(variant.space, variant.reference, examples, choices, twin, **how))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("prune", [None, 2])
def test_searn_trains_a_mixture_over_passes(name: str, prune: int | None) -> None:
    choices = Choices(roll_in="mixture", roll_out="mixture", mix="step", prune=prune)
    variant = VARIANTS[name]
    twin = counting_twin(variant)
    for seed in range(5):
        data = random_data(seed, variant, count=4)  # a power of two: averages are exact
        how = {"passes": 4, "batch_size": 2, "seed": seed}
        model = lols.train(
            variant.space, data, variant.reference, algorithm="searn", learner=COUNTING,
            shuffle=False, prune=prune, **how,
        )  # fmt: skip
        expected = twin_train(variant.space, variant.reference, data, choices, twin, searn=True, **how)
        np.testing.assert_allclose(np.diff(model.policy.chances, prepend=0.0), expected.chances, rtol=1e-9)
        assert_same_weights(model, expected)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_states_are_passed_over_by_the_policy_of_the_batch(slack: float, batch_size: int) -> None:
    changed = 0
    for variant, seed in itertools.product(VARIANTS.values(), range(2)):
        data = random_data(seed, variant, count=7, depth=5, nodes=12)
        how = {"passes": 4, "batch_size": batch_size, "seed": seed}
        found, plain = (
            lols.train(variant.space, data, variant.reference, learner=replace(COUNTING, slack=s), shuffle=False, **how)
            for s in (slack, None)
        )
        expected = twin_train(variant.space, variant.reference, data, Choices(), counting_twin(variant, slack), **how)
        assert_same_weights(found, expected)
        assert found.report["states"] < plain.report["states"]
        changed += not np.array_equal(found.policy.stack, plain.policy.stack)
    # Even the policy of a batch of one is another than the learner's after the first of the example's states.
    assert changed >= 5


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("margin", ["unit", "cost"])
def test_the_margin_of_the_learner_decides_what_is_passed_over(margin: str, batch_size: int) -> None:
    variant = VARIANTS["full"]
    passed = 0
    for seed in range(4):
        data = random_data(seed, variant, count=7, depth=5, nodes=12, exact=False)
        how = {"passes": 10, "batch_size": batch_size, "seed": seed}
        learner = lols.LearnerSettings("hinge", "adagrad", 0.5, margin, slack=0.1)
        model = lols.train(variant.space, data, variant.reference, learner=learner, shuffle=False, **how)
        twin = TwinLearner("hinge", "adagrad", 0.5, ACTIONS, margin=margin, slack=0.1)
        assert_same_weights(
            model, twin_train(variant.space, variant.reference, data, Choices(), twin, **how), rtol=1e-4
        )
        passed += twin.passed
    assert passed > 20


PRESETS = ["lols", "aggrevate", "dagger", "cloning", "searn"]
LEARNERS = [("hinge", "adagrad", 0.1), ("csoaa", "nag", 0.3), ("hinge", "nag", 0.3), ("csoaa", "adagrad", 0.1)]


@pytest.mark.thinned(3)
@needs_compiler
@pytest.mark.parametrize("algorithm", PRESETS)
@pytest.mark.parametrize("name", VARIANTS)
def test_both_speeds_give_the_same_weights(name: str, algorithm: str) -> None:
    variant = VARIANTS[name]
    data = random_data(11, variant, count=5, exact=False)
    for reduction, update, rate in LEARNERS:
        learner = lols.LearnerSettings(reduction, update, rate)
        slow, fast = (
            lols.train(
                variant.space, data, variant.reference, algorithm=algorithm, learner=learner, passes=3, batch_size=2,
                compiled=compiled,
            )
            for compiled in (False, True)
        )  # fmt: skip
        assert np.array_equal(slow.policy.stack, fast.policy.stack), (reduction, update)
        assert np.array_equal(slow.policy.single_stack, fast.policy.single_stack), (reduction, update)
        assert slow.report["progressive_loss"] == fast.report["progressive_loss"]


@needs_compiler
@pytest.mark.parametrize("name", VARIANTS)
def test_both_speeds_prune_and_pass_over_the_same(name: str) -> None:
    variant = VARIANTS[name]
    data = lols.Examples(variant.space, random_data(17, variant, count=5, exact=False))
    if variant.space.items:
        data = in_parts(data, 2)
    options = {"learner": lols.LearnerSettings("hinge", slack=0.1), "prune": 2, "passes": 5, "batch_size": 2}
    slow, fast = (
        lols.train(variant.space, data, variant.reference, compiled=compiled, **options) for compiled in (False, True)
    )
    assert np.array_equal(slow.policy.stack, fast.policy.stack)
    assert np.array_equal(slow.policy.single_stack, fast.policy.single_stack)
    assert slow.report["states"] == fast.report["states"]


@needs_compiler
@pytest.mark.parametrize(
    "options", [{"prune": 1}, {"learner": lols.LearnerSettings(slack=0.1)}], ids=["prune", "slack"]
)
@pytest.mark.parametrize("name", ["bare", "closed"])
def test_threads_prune_and_pass_over_the_same(name: str, options: dict[str, Any]) -> None:
    variant = VARIANTS[name]
    data = random_data(18, variant, count=12, exact=False)
    one, two = (
        lols.train(variant.space, data, variant.reference, passes=5, batch_size=6, threads=threads, **options)
        for threads in (1, 2)
    )
    assert np.array_equal(one.policy.stack, two.policy.stack)
    assert one.report["states"] == two.report["states"]


@needs_compiler
@pytest.mark.parametrize("algorithm", PRESETS)
@pytest.mark.parametrize("name", ["bare", "closed"])
def test_the_number_of_threads_is_not_part_of_the_result(name: str, algorithm: str) -> None:
    variant = VARIANTS[name]
    data = random_data(12, variant, count=12, exact=False)
    one, two = (
        lols.train(variant.space, data, variant.reference, algorithm=algorithm, passes=3, batch_size=6, threads=threads)
        for threads in (1, 2)
    )
    assert np.array_equal(one.policy.stack, two.policy.stack)
    assert one.report["progressive_loss"] == two.report["progressive_loss"]


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", ["bare", "closed"])
def test_what_is_collected_does_not_depend_on_the_order_of_the_batch(name: str) -> None:
    variant = VARIANTS[name]
    data = random_data(13, variant, count=6)
    policy = in_arrays(random_policy(13, variant), ACTIONS)
    plan = lols.Trainer(variant.space, variant.reference, ties="random").plan
    half = np.full(6, 0.5)
    with FusedDriver(variant.space, lols.Examples(variant.space, data), variant.reference) as driver:
        whole = driver.make_lessons(np.arange(6), np.arange(6), policy, plan, half, half)
        expected = [(collected(whole, b), whole.losses[b].tolist()) for b in range(6)]
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(6)
            batch = driver.make_lessons(order, order, policy, plan, half, half)
            assert [(collected(batch, b), batch.losses[b].tolist()) for b in range(6)] == [expected[k] for k in order]
        for k in range(6):
            alone = driver.make_lessons(np.array([k]), np.array([k]), policy, plan, half[:1], half[:1])
            assert (collected(alone, 0), alone.losses[0].tolist()) == expected[k]


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", ["bare", "pictured"])
@pytest.mark.parametrize(
    "options", [{"sample_steps": 1}, {"learner": lols.LearnerSettings(slack=0.0)}], ids=["sampled", "passed over"]
)
def test_a_batch_leaves_nothing_behind_in_the_memory_of_the_next(name: str, options: dict[str, Any]) -> None:
    variant = VARIANTS[name]
    examples = lols.Examples(variant.space, random_data(19, variant, count=6, depth=5, nodes=12))
    policy, half, every = in_arrays(random_policy(19, variant), ACTIONS), np.full(6, 0.5), np.arange(6)
    whole, some = (lols.Trainer(variant.space, variant.reference, **o).plan for o in ({}, options))
    with FusedDriver(variant.space, examples, variant.reference) as driver:
        fresh = driver.make_lessons(every, every, policy, some, half, half)
        expected = [collected(fresh, b) for b in range(6)]
        driver.make_lessons(every[::-1].copy(), every, policy, whole, half, half)
        again = driver.make_lessons(every, every, policy, some, half, half)
    assert [collected(again, b) for b in range(6)] == expected
    assert any(example.weight == 0.0 for one in expected for example in one)
    lessons, slots = again.lessons, again.lessons.slots
    for b in range(6):
        used = slice(lessons.first[b], lessons.first[b] + lessons.filled[b])
        empty = slots.start[used] == slots.stop[used]
        assert empty[slots.weight[used] == 0.0].all()
        # What a learner makes room for: the features of a round lie together, up to the end of its last state.
        assert slots.stop[used][-1] - slots.start[used][0] == (slots.stop - slots.start)[used].sum()


# --- seeds ------------------------------------------------------------------------------------------------------------


def stack(variant: Variant, data: list[lols.Example], **options: Any) -> np.ndarray:
    return lols.train(variant.space, data, variant.reference, passes=2, batch_size=2, **options).policy.stack


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ties": "random", "roll_out": "learned", "shuffle": False},
        {"mix": "rollout", "shuffle": False},
        {"sample_steps": 1, "roll_out": "reference", "shuffle": False},
        {"sample_actions": 2, "roll_out": "reference", "shuffle": False},
        {"roll_out": "reference"},  # the order of the examples
    ],
)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(options: dict[str, Any]) -> None:
    variant = VARIANTS["closed"]
    data = random_data(14, variant, count=8, depth=5, nodes=12)
    once, again, other = (stack(variant, data, seed=seed, **options) for seed in (1, 1, 2))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)


def test_without_randomness_the_seed_does_not_matter() -> None:
    variant = VARIANTS["closed"]
    data = random_data(15, variant, count=8)
    for options in (
        {"roll_out": "reference"},
        {"roll_out": "learned"},
        {"mix": "expected"},
        {"beta": 0.0},
        {"beta": 1.0},
    ):
        once, other = (stack(variant, data, seed=seed, shuffle=False, **options) for seed in (1, 2))
        assert np.array_equal(once, other), options


def test_a_random_teacher_draws_anew_with_another_seed() -> None:
    variant = VARIANTS["bare"]
    data = random_data(16, variant, count=8)
    once, again, other = (stack(variant, data, seed=s, roll_out="reference", shuffle=False) for s in (1, 1, 2))
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
