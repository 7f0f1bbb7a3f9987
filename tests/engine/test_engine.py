"""The engine against its twin: what is collected, at both speeds, on any number of threads, in any order."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.engine.drivers.fused import FusedDriver
from lols.learners.learner import hadamard_code
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, all_features, data_sets, in_parts, random_data
from tests.engine.twin import TwinLearner, collected, in_arrays, weights_by_feature
from tests.engine.twin import train as twin_train

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
needs_compiler = pytest.mark.skipif(not JIT, reason="compares with compiled code")
STRATEGIES = [
    (into, out, mix)
    for into, out in itertools.product(("learned", "reference", "mixture"), ("learned", "reference", "mixture", "none"))
    for mix in (("state", "rollout", "example", "expected", "step") if out == "mixture" else ("state",))
]


def random_policy(seed: int, variant: Variant, *, components: int = 1, thresholds: int = 0) -> SlowPolicy:
    """Weights that are small multiples of 1/4: sums are exact, and many actions are tied."""
    rng = np.random.default_rng(seed)
    code = hadamard_code(ACTIONS) if thresholds else np.zeros((0, ACTIONS), np.float32)
    width = code.shape[0] * thresholds if thresholds else ACTIONS
    states, actions = all_features(variant)
    return SlowPolicy(
        [{f: rng.integers(-2, 3, width) / 4.0 for f in states if rng.random() < 0.8} for _ in range(components)],
        [{f: rng.integers(-2, 3) / 4.0 for f in actions} for _ in range(components)],
        [1.0 / components] * components,
        code,
        thresholds,
    )


# A hinge under the perceptron adds and subtracts feature values: exact, so no tie is broken by rounding.
COUNTING = lols.LearnerSettings("hinge", "perceptron")


def assert_collects_what_the_twin_does(
    variant: Variant,
    data: list[lols.Example],
    policy: SlowPolicy,
    choices: Choices,
    *,
    seed: int = 0,
    tricks: dict[str, bool] | None = None,
    compiled: bool = True,
    learner: lols.LearnerSettings | None = None,
    parts: int = 1,
) -> int:
    """Compare what is collected; how many states of weight 0 there were."""
    beta, beta_in = choices.beta, choices.beta if choices.beta_in is None else choices.beta_in
    learner = learner or lols.LearnerSettings()
    trainer = lols.Trainer(
        variant.space, variant.reference, seed=seed, tricks=tricks, learner=learner, **choices.options()
    )
    plan = trainer.plan._replace(compare=choices.mix != "step")
    examples = lols.Examples(variant.space, data)
    if parts > 1:
        examples = in_parts(examples, parts, seed)
    n = len(data)
    rounds = np.arange(n) + 7
    twin = TwinLearner("hinge", learner.update, 1.0, ACTIONS, margin=learner.margin, slack=learner.slack)
    passed = 0
    with FusedDriver(variant.space, examples, variant.reference, compiled=compiled) as driver:
        batch = driver.make_lessons(
            np.arange(n), rounds, in_arrays(policy, ACTIONS), plan, np.full(n, beta), np.full(n, beta_in)
        )
    for b in range(n):
        search = SlowSearch(
            variant.space, variant.reference, data[b], policy, choices,
            seed=seed, number=int(rounds[b]), beta=beta, beta_in=beta_in, learner=twin,
        )  # fmt: skip
        expected, losses = search.lessons()
        passed += sum(example.weight == 0.0 for example in expected)
        assert collected(batch, b) == expected
        assert batch.losses[b].tolist() == (losses if plan.compare else [losses[0], 0.0, 0.0])
    return passed


# --- cost-sensitive examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_every_strategy_gives_the_twins_cost_vectors(name: str) -> None:
    variant = VARIANTS[name]
    data = random_data(3, variant, count=2)
    policy = random_policy(5, variant)
    for (into, out, mix), ties in itertools.product(STRATEGIES, ("first", "random")):
        horizons = (None, 1) if variant.space.cost and out != "none" else (None,)
        for horizon in horizons:
            for prune in (None, 1) if out in ("learned", "mixture") else (None,):
                choices = Choices(roll_in=into, roll_out=out, mix=mix, ties=ties, horizon=horizon, prune=prune)
                assert_collects_what_the_twin_does(variant, data, policy, choices)


SLACKS = [None, 0.0, 0.25, 0.5]


@st.composite
def cases(
    draw: Any, name: str
) -> tuple[Variant, list[lols.Example], SlowPolicy, Choices, int, lols.LearnerSettings, int]:
    variant = VARIANTS[name]
    into, out, mix = draw(st.sampled_from(STRATEGIES))
    horizons = [None, 1, 2] if variant.space.cost and out != "none" else [None]
    choices = Choices(
        roll_in=into,
        roll_out=out,
        mix=mix,
        ties=draw(st.sampled_from(["first", "random"])),
        beta=draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        beta_in=draw(st.sampled_from([None, 0.0, 0.5, 1.0])),
        horizon=draw(st.sampled_from(horizons)),
        sample_steps=draw(st.sampled_from([None, 1, 2])),
        sample_actions=draw(st.sampled_from([None, 2, 3])),
        prune=draw(st.sampled_from([None, 1, 2])),
    )
    thresholds = 0 if variant.space.action_features else draw(st.sampled_from([0, 0, 2]))
    learner = lols.LearnerSettings(
        "hinge",
        draw(st.sampled_from(["adagrad", "perceptron"])),
        margin=draw(st.sampled_from(["unit", "cost"])),
        slack=draw(st.sampled_from(SLACKS)),
    )
    seed = draw(st.integers(0, 2**31))
    policy = random_policy(seed, variant, components=draw(st.sampled_from([1, 1, 3])), thresholds=thresholds)
    parts = draw(st.sampled_from([1, 2, 3])) if variant.space.items else 1
    return variant, draw(data_sets(variant)), policy, choices, draw(st.integers(0, 9)), learner, parts


@pytest.mark.parametrize("name", VARIANTS)
@given(st.data())
def test_cost_vectors_features_weights_and_losses_equal_the_twins(name: str, data: st.DataObject) -> None:
    variant, examples, policy, choices, seed, learner, parts = data.draw(cases(name))
    assert_collects_what_the_twin_does(variant, examples, policy, choices, seed=seed, learner=learner, parts=parts)


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", ["bare", "closed"])
@settings(max_examples=15)
@given(st.data())
def test_plain_python_collects_what_the_twin_does(name: str, data: st.DataObject) -> None:
    variant, examples, policy, choices, seed, learner, parts = data.draw(cases(name))
    for compiled in (False, True):
        assert_collects_what_the_twin_does(
            variant, examples, policy, choices, seed=seed, compiled=compiled, learner=learner, parts=parts
        )


@pytest.mark.parametrize(("roll_out", "prune"), [("none", None), ("reference", None), ("learned", 1), ("mixture", 2)])
@pytest.mark.parametrize("name", ["bare", "keyed"])
def test_sampled_actions_leave_the_teacher_legal(name: str, roll_out: str, prune: int | None) -> None:
    variant = VARIANTS[name]
    choices = Choices(roll_out=roll_out, sample_actions=2, prune=prune)
    for seed in range(20):
        data = random_data(seed, variant, count=1)
        assert_collects_what_the_twin_does(variant, data, random_policy(seed, variant), choices, seed=seed)


@pytest.mark.parametrize(("roll_out", "mix"), [(out, mix) for into, out, mix in STRATEGIES if into == "learned"])
@pytest.mark.parametrize("name", ["full", "closed"])
def test_only_what_the_learner_would_roll_out_is_pruned(name: str, roll_out: str, mix: str) -> None:
    variant, policy = VARIANTS[name], random_policy(41, VARIANTS[name])
    given = lols.Algorithm(name="mine", roll_out=roll_out, mix=mix)
    examples = lols.Examples(variant.space, random_data(41, variant, count=6, depth=5, nodes=12))
    counts = {}
    for prune, beta in itertools.product((None, 1, 3), (0.0, 1.0)):
        chosen = replace(given, prune=prune)
        with FusedDriver(variant.space, examples, variant.reference) as driver:
            plan = lols.Trainer(variant.space, variant.reference, algorithm=chosen).plan
            every = np.arange(6)
            shares = np.full(6, beta)
            batch = driver.make_lessons(every, every, in_arrays(policy, ACTIONS), plan, shares, shares)
        counts[prune, beta] = [len(example.costs) for b in range(6) for example in collected(batch, b)]
    for beta in (0.0, 1.0):
        all_, three, one = (counts[prune, beta] for prune in (None, 3, 1))
        if roll_out in ("none", "reference") or (mix in ("state", "example") and roll_out == "mixture" and beta == 1.0):
            assert all_ == three == one
        else:
            assert max(all_) == 4 and max(one) <= 3  # one of the learner's, which is the one taken, and the teacher's
            assert sum(one) < sum(three) <= sum(all_)
            assert all(n <= m for n, m in zip(one, three, strict=True))


def test_the_best_liked_are_those_of_the_policy_that_rolled_in_and_ties_go_to_the_lower_number() -> None:
    variant = VARIANTS["full"]
    example = random_data(3, variant, count=1, depth=2, nodes=8)[0]
    root = example.x["root"]
    example.x["next"][root * ACTIONS : root * ACTIONS + ACTIONS] = example.x["next"][root * ACTIONS + 1]
    example.y["teach"][root] = 3
    policy = SlowPolicy(
        [{}], [{}], [1.0], np.zeros((0, ACTIONS), np.float32)
    )  # all actions are tied, the first is taken
    for prune, kept in ((1, {0, 3}), (2, {0, 1, 3}), (3, {0, 1, 2, 3}), (9, {0, 1, 2, 3})):
        plan = lols.Trainer(variant.space, variant.reference, roll_out="learned", prune=prune).plan
        with FusedDriver(variant.space, lols.Examples(variant.space, [example]), variant.reference) as driver:
            batch = driver.make_lessons(
                np.arange(1), np.arange(1), in_arrays(policy, ACTIONS), plan, np.zeros(1), np.zeros(1)
            )
        assert set(collected(batch, 0)[0].costs) == kept


@pytest.mark.parametrize("mix", ["state", "rollout", "example", "expected", "step"])
def test_a_policy_of_several_components_never_calls_the_teacher_itself(mix: str) -> None:
    variant = VARIANTS["full"]
    for seed in range(10):
        data = random_data(seed, variant, count=1, depth=5, nodes=12)
        policy = random_policy(seed, variant, components=3)
        assert_collects_what_the_twin_does(variant, data, policy, Choices(mix=mix), seed=seed)


@pytest.mark.parametrize("name", ["closed", "pictured"])
@pytest.mark.parametrize("mix", ["state", "rollout", "example", "expected", "step"])
def test_closed_form_costs_may_be_off_by_a_constant_of_the_state(name: str, mix: str) -> None:
    variant = VARIANTS[name]
    for seed in range(10):
        data = random_data(seed, variant, count=1, offset=8.0)
        assert_collects_what_the_twin_does(variant, data, random_policy(seed, variant), Choices(mix=mix), seed=seed)


@pytest.mark.parametrize("update", ["adagrad", "perceptron"])
@pytest.mark.parametrize("margin", ["unit", "cost", "weighted"])
def test_states_that_the_policy_has_right_by_margin_and_slack_are_passed_over(update: str, margin: str) -> None:
    totals = []
    for slack in (*SLACKS, 1e6):
        learner, total = lols.LearnerSettings("hinge", update, margin=margin, slack=slack), 0
        for variant in VARIANTS.values():
            data, policy = random_data(42, variant, count=6, depth=5, nodes=12), random_policy(42, variant)
            for choices in (Choices(), Choices(roll_in="mixture", beta_in=0.5)):
                total += assert_collects_what_the_twin_does(variant, data, policy, choices, learner=learner)
        totals.append(total)
    assert totals[0] == 0 < totals[-1]  # where all actions cost the same there is nothing to learn
    assert totals[1] > totals[2] > totals[3] > totals[-1]


def test_slack_passes_over_nothing_where_the_policy_was_not_asked() -> None:
    variant = VARIANTS["full"]
    data, policy = random_data(43, variant, count=6), random_policy(43, variant)
    learner = lols.LearnerSettings("hinge", slack=0.0)
    for choices, asked in ((Choices(roll_in="reference"), False), (Choices(roll_in="reference", prune=2), True)):
        passed = assert_collects_what_the_twin_does(variant, data, policy, choices, learner=learner)
        assert (passed > 0) == asked


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
    for variant, seed in itertools.product(VARIANTS.values(), range(4)):
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
    assert changed >= 10


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
