"""The engine against the specification: the lessons of every strategy, compiled and as plain Python."""

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
from tests.engine.against_twin import STRATEGIES, assert_collects_what_the_twin_does, random_policy
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, data_sets, random_data
from tests.engine.twin import collected, in_arrays

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
        update := draw(st.sampled_from(["adagrad", "perceptron"])),
        margin=draw(st.sampled_from(["unit", "cost" if update == "adagrad" else "weighted"])),
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


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("update", "margin"),
    [
        ("adagrad", "unit"),
        ("adagrad", "cost"),
        ("adagrad", "weighted"),
        ("perceptron", "unit"),
        ("perceptron", "weighted"),
    ],
)
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
