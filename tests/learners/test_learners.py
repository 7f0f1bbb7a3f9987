"""Learners against their twins, and what each of them guarantees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.contract.features import emit, feature
from lols.datasets.worlds import tagging_references, tagging_space
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.learners.updates import invariant_step
from lols.specification import Lesson
from lols.training.sources import source_of
from tests.engine.random_space import VARIANTS, random_data
from tests.engine.twin import lessons_of, weights_by_feature
from tests.learners.learner_cases import (
    ACTIONS,
    BY_ACTION,
    EXACT,
    PAIRS,
    assert_weights_equal,
    make,
    named,
    predicted,
    random_rounds,
    taught,
)

# --- twins ------------------------------------------------------------------------------------------------------------


def margins_of(reduction: str, update: str) -> list[str]:
    """The margins that such a learner may have."""
    if reduction != "hinge":
        return ["unit"]
    return ["unit", "weighted"] if update == "perceptron" else ["unit", "weighted", "cost"]


@named(PAIRS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_every_reduction_and_update_learns_what_its_twin_does(
    reduction: str, update: str, seed: int, data: st.DataObject
) -> None:
    learner, twin = make(reduction, update, margin=data.draw(st.sampled_from(margins_of(reduction, update))))
    for one in random_rounds(seed):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert_weights_equal(learner.last(), twin.policy(), exact=update in EXACT)


@named(BY_ACTION)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_actions_with_features_of_their_own_are_learned_as_by_the_twin(reduction: str, update: str, seed: int) -> None:
    learner, twin = make(reduction, update, by_action=True)
    for one in random_rounds(seed, by_action=True):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert_weights_equal(learner.last(), twin.policy(), exact=update in EXACT)


@pytest.mark.uncompiled
@named(PAIRS)
def test_plain_python_learns_what_the_twin_does(reduction: str, update: str) -> None:
    for compiled in (False, True):
        learner, twin = make(reduction, update)
        learner.compiled = compiled
        for one in random_rounds(5):
            learner.learn(lessons_of([one], ACTIONS))
            twin.learn_round(one)
        assert_weights_equal(learner.last(), twin.policy(), exact=update in EXACT)


@named([p for p in PAIRS if p[1] not in ("ridge", "sketch")])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_averaged_policy_is_the_mean_over_rounds(reduction: str, update: str, seed: int) -> None:
    rounds = random_rounds(seed)
    learner, _ = make(reduction, update)
    total: dict[int, np.ndarray] = {}
    for one in rounds:
        learner.learn(lessons_of([one], ACTIONS))
        for identity, row in weights_by_feature(learner.policy())[0].items():
            total[identity] = total.get(identity, 0.0) + row.astype(np.float64)
    average = weights_by_feature(learner.policy(averaged=True))[0]
    for identity, row in total.items():
        np.testing.assert_allclose(average.get(identity, np.zeros(1)), row / len(rounds), rtol=1e-4, atol=1e-5)


@named(PAIRS)
def test_a_batch_is_learned_like_its_rounds_one_after_the_other(reduction: str, update: str) -> None:
    rounds = random_rounds(6)
    whole, _ = make(reduction, update)
    whole.learn(lessons_of(rounds, ACTIONS))
    parts = taught(rounds, reduction, update)
    for mine, other in zip(whole.state().values(), parts.state().values(), strict=True):
        assert np.array_equal(mine, other)


# --- learning ---------------------------------------------------------------------------------------------------------


@named(PAIRS)
def test_a_separable_problem_is_learned_without_error(reduction: str, update: str) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, ACTIONS, 40)
    rounds = [
        [
            Lesson(
                [(feature(0, int(c)), 1.0), (feature(1, int(rng.integers(3))), 0.5), (feature(2), 1.0)],
                {a: float(a != c) for a in range(ACTIONS)},
            )
        ]
        for c in truth
    ]
    learner, _ = make(reduction, update, rate=0.3 if update == "gd" else None)
    for _ in range(12):
        learner.learn(lessons_of(rounds, ACTIONS))
    for policy in (learner.last(), learner.policy(averaged=True)):
        assert [int(np.argmin(predicted(policy, one[0]))) for one in rounds] == truth.tolist()


@pytest.mark.parametrize("rate", [0.1, 1.0, 7.0])
def test_ridge_is_the_closed_form_solution(rate: float) -> None:
    rounds = random_rounds(7, count=20, features=6)
    learner = taught(rounds, "csoaa", "ridge", rate=rate)
    found = weights_by_feature(learner.policy())[0]
    ids = [feature(0, k) for k in range(6)]
    for a in range(ACTIONS):
        seen = [e for one in rounds for e in one if a in e.costs]
        x = np.array([[dict(e.features).get(f, 0.0) for f in ids] for e in seen])
        c, h = np.array([e.costs[a] for e in seen]), np.array([e.weight for e in seen])
        solution = np.linalg.solve(rate * np.eye(6) + x.T @ (h[:, None] * x), x.T @ (h * c))
        np.testing.assert_allclose([found[f][a] for f in ids], solution, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("reduction", ["csoaa", "hinge"])
@pytest.mark.parametrize("by_action", [False, True])
def test_nag_does_not_mind_the_scale_of_a_feature(reduction: str, by_action: bool) -> None:
    rounds = random_rounds(8, count=15, by_action=by_action)
    stretched = {feature(0, 2): 1000.0, feature(1, 3): 0.001}

    def scaled(seen: list[tuple[int, float]]) -> list[tuple[int, float]]:
        return [(f, v * stretched.get(f, 1.0)) for f, v in seen]

    others = [
        [Lesson(scaled(e.features), e.costs, e.weight, {a: scaled(f) for a, f in e.by_action.items()}) for e in one]
        for one in rounds
    ]
    one, two = (taught(r, reduction, "nag", by_action=by_action).policy() for r in (rounds, others))
    for a, b in zip(rounds, others, strict=True):
        for mine, other in zip(a, b, strict=True):
            np.testing.assert_allclose(predicted(one, mine), predicted(two, other), rtol=2e-3, atol=1e-3)


@given(
    st.floats(-3, 3), st.floats(1e-4, 10), st.floats(1e-4, 10), st.floats(1e-3, 10)
)  # residual, two importances, how much a unit step moves the prediction
def test_an_importance_weight_is_worth_as_many_small_steps(r: float, first: float, second: float, speed: float) -> None:
    moved = invariant_step(r, first, speed)
    then = invariant_step(r - moved * speed, second, speed)
    np.testing.assert_allclose(moved + then, invariant_step(r, first + second, speed), rtol=1e-3, atol=1e-5)


def test_more_important_examples_are_fitted_more_closely_but_never_beyond() -> None:
    fits = []
    for weight in (0.25, 1.0, 4.0, 16.0, 1000.0):
        example = Lesson([(7, 1.5), (8, -0.5)], {0: 0.0, 1: 1.0}, weight)
        fits.append(predicted(taught([[example]], "csoaa", "nag").policy(), example)[1])
    assert fits == sorted(fits)
    assert fits[0] < 0.9
    assert fits[-1] == pytest.approx(1.0, abs=1e-3)
    assert max(fits) <= 1.0 + 1e-5


def test_weights_that_run_away_are_reported() -> None:
    with pytest.raises(lols.LolsError, match="lower the rate"):
        taught(random_rounds(9, count=400), "csoaa", "gd", rate=1e8)


@pytest.mark.parametrize("slack", [None, 0.0, 1.0])
def test_weights_that_run_away_are_reported_even_where_states_are_passed_over(slack: float | None) -> None:
    # A single update: then the one word has its tag right by an infinite margin.
    data, space = [{"words": [4], "tags": [1]}], tagging_space(labels=3)
    learner = LearnerSettings("hinge", "gd", 3e38, margin="weighted", slack=slack)
    reference = tagging_references()["optimal"]
    heavy = replace(space, features=lambda x, s, out: emit(out, 7, 1e6))
    with pytest.raises(lols.LolsError, match="lower the rate"):
        lols.train(heavy, data, reference, learner=learner, passes=4, compiled=False)


# --- slack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"slack": -0.5}, "slack is -0.5; it must be a number from 0 on, for the hinge only"),
        ({"slack": float("inf")}, "slack is inf; it must be a number"),
        ({"slack": float("nan")}, "slack is nan; it must be a number"),
        ({"reduction": "csoaa", "slack": 1.0}, "for the hinge only"),
        ({"reduction": "secoc", "slack": 0.0}, "for the hinge only"),
    ],
)
def test_slack_is_a_number_and_the_hinges(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        LearnerSettings(**settings)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert LearnerSettings(slack=0.0).slack == 0.0


def test_the_margin_has_a_width() -> None:
    assert [LearnerSettings(margin=m).width for m in ("unit", "weighted", "cost")] == [1.0, 1.0, -1.0]
    assert LearnerSettings("hinge", "perceptron", margin="weighted").width == 0.0


@pytest.mark.parametrize("name", ["rate", "bits", "slack", "scale", "max_features", "thresholds"])
def test_numbers_are_numbers(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is 'many'; it must be a number$"):
        LearnerSettings(**{name: "many"})


@pytest.mark.parametrize("name", ["reduction", "update", "margin"])
@pytest.mark.parametrize("value", ["a" * 5000, ["hinge"], 3])
def test_names_are_names_and_a_long_one_is_cut(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"unknown (learner|update|margin)") as caught:
        LearnerSettings(**{name: value})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"update": "perceptron", "rate": 0.5}, "rate has no effect: every step of a perceptron has size 1"),
        ({"update": "perceptron", "margin": "cost"}, "margin has no effect: the margin of a perceptron is 0"),
        ({"reduction": "csoaa", "margin": "weighted"}, "margin has no effect: csoaa has no margin"),
        ({"thresholds": 5}, "thresholds has no effect: hinge has none"),
        ({"bits": 4, "max_features": 9}, "max_features has no effect: bits gives the number of rows"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        LearnerSettings(**settings)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_searn_has_no_slack_since_another_policy_rolls_in() -> None:
    space, reference = tagging_space(labels=3), tagging_references()["optimal"]
    with pytest.raises(ConfigurationError, match="slack must be None for searn") as caught:
        lols.Trainer(space, reference, algorithm="searn", learner=LearnerSettings(slack=1.0))
    assert "\n" not in str(caught.value)


# --- what training returns --------------------------------------------------------------------------------------------


def trained(count: int, seed: int = 3, **options: Any) -> Any:
    """A policy from the first `count` rounds of a run without batches."""
    variant = VARIANTS["full"]
    data = random_data(31, variant, count=6, exact=False)[:count]
    options = {"shuffle": False, "batch_size": 1, "passes": 1, "learner": LearnerSettings()} | options
    return lols.train(variant.space, data, variant.reference, seed=seed, roll_out="learned", **options).policy


def test_the_average_returned_is_the_mean_of_the_policies_after_each_round() -> None:
    rounds = [weights_by_feature(trained(r, returned="last"))[0] for r in range(1, 7)]
    average = weights_by_feature(trained(6, returned="average"))[0]
    for identity in {f for one in rounds for f in one}:
        mean = np.mean([one.get(identity, np.zeros(ACTIONS)) for one in rounds], axis=0)
        np.testing.assert_allclose(average.get(identity, np.zeros(ACTIONS)), mean, rtol=1e-4, atol=1e-6)


def test_the_policy_drawn_is_that_of_one_round_and_any_round_can_be_drawn() -> None:
    rounds = [weights_by_feature(trained(r, returned="last"))[0] for r in range(1, 7)]
    drawn = []
    for seed in range(40):
        found = weights_by_feature(trained(6, seed=seed, returned="drawn"))[0]
        same = [
            r
            for r, one in enumerate(rounds, start=1)
            if one.keys() == found.keys() and all(np.array_equal(one[f], found[f]) for f in one)
        ]
        assert same
        drawn += same[:1]
    assert len(set(drawn)) >= 4  # two rounds of six may have changed nothing


def test_scaled_lessons_can_be_learned_from_again() -> None:
    variant = VARIANTS["full"]
    data = random_data(31, variant, count=6, exact=False)
    trainer = lols.Trainer(
        variant.space, variant.reference, learner=LearnerSettings(margin="cost", scale=0.01), passes=1
    )
    source, policy = source_of(trainer, data), trainer.new_policy()
    with source.driver(policy, trainer, source.first) as driver:
        few = np.arange(6)
        lessons = driver.make_lessons(few, few, policy.asked, trainer.plan, np.ones(6), np.ones(6)).lessons
        before = lessons.slots.costs.copy()
        trainer.new_learner().learn(lessons)
        assert np.array_equal(lessons.slots.costs, before)
