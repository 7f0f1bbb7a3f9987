"""Learners against their twins, and what each of them promises."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.contract.features import emit, feature
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.learner import Learner, hadamard_code
from lols.learners.settings import DEFAULT_RATES, LearnerSettings
from lols.learners.updates import invariant_step
from lols.specification import Lesson, votes
from tests.engine.random_space import VARIANTS, random_data
from tests.engine.twin import TwinLearner, lessons_of, weights_by_feature

ACTIONS = 4
PAIRS = sorted(DEFAULT_RATES)
BY_ACTION = [(r, u) for r, u in PAIRS if r != "secoc" and u != "ridge"]
EXACT = ("gd", "perceptron", "adagrad")
Rounds = list[list[Lesson]]


def named(pairs: list[tuple[str, str]]) -> Any:
    return pytest.mark.parametrize(("reduction", "update"), pairs, ids=["-".join(p) for p in pairs])


def random_rounds(
    seed: int, *, count: int = 8, features: int = 8, by_action: bool = False, weighted: bool = True
) -> Rounds:
    """Rounds of one to three states with real-valued features, some actions missing, and importance weights."""
    rng = np.random.default_rng(seed)

    def some(template: int, size: int, most: int) -> list[tuple[int, float]]:
        chosen = rng.choice(size, rng.integers(1, most + 1), replace=False)
        values = rng.uniform(-2, 2, chosen.size) * (rng.random(chosen.size) < 0.9)
        return [(feature(template, int(k)), float(np.float32(v))) for k, v in zip(chosen, values, strict=True)]

    made = []
    for _ in range(count):
        states = []
        for _ in range(rng.integers(1, 4)):
            legal = np.flatnonzero(rng.random(ACTIONS) < 0.8).tolist() or [2]
            costs = np.float32(rng.uniform(0, 2, len(legal)) * (rng.random(len(legal)) < 0.7))
            costs -= costs.min()
            weight = float(np.float32(rng.uniform(0.3, 3.0))) if weighted else 1.0
            own = {a: some(1, 5, 2) for a in legal} if by_action else {}
            prices = {a: float(c) for a, c in zip(legal, costs, strict=True)}
            states.append(Lesson(some(0, features, min(4, features)), prices, weight, own))
        made.append(states)
    return made


def make(reduction: str, update: str, *, by_action: bool = False, **settings: Any) -> tuple[Learner, TwinLearner]:
    if update == "ridge":
        settings.setdefault("max_features", 16)
    chosen = LearnerSettings(reduction, update, **settings)
    twin = TwinLearner(
        reduction,
        update,
        chosen.step,
        ACTIONS,
        margin=chosen.margin,
        code=hadamard_code(ACTIONS) if reduction == "secoc" else None,
        by_action=by_action,
        max_features=chosen.max_features,
    )
    return Learner(chosen, ACTIONS, by_action=by_action), twin


def taught(rounds: Rounds, reduction: str, update: str, **settings: Any) -> Learner:
    learner, _ = make(reduction, update, **settings)
    for one in rounds:
        learner.learn(lessons_of([one], ACTIONS))
    return learner


def assert_weights_equal(policy: Any, twin: Any, *, exact: bool) -> None:
    for found, wanted in zip(weights_by_feature(policy), (twin.shared[0], twin.single[0]), strict=True):
        for identity in found.keys() | {f for f, w in wanted.items() if np.any(w)}:
            mine, other = found.get(identity, np.zeros(1)), np.atleast_1d(wanted.get(identity, 0.0))
            if exact:
                assert np.array_equal(mine, np.float32(other))
            else:
                np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


def predicted(policy: Any, example: Lesson, component: int = 0) -> np.ndarray:
    """Predicted costs of all actions, features one by one."""
    columns = np.zeros(policy.stack.shape[2])
    for identity, value in example.features:
        row = lookup(policy.shared, identity)
        columns += value * policy.stack[component, row] if row >= 0 else 0.0
    costs = np.array(votes(policy.code, policy.thresholds, columns)) if policy.thresholds else columns
    for a, own in example.by_action.items():
        for identity, value in own:
            row = lookup(policy.single, identity)
            costs[a] += value * policy.single_stack[component, row] if row >= 0 else 0.0
    return costs


# --- twins ------------------------------------------------------------------------------------------------------------


@named(PAIRS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), margin=st.sampled_from(["unit", "cost", "weighted"]))
def test_every_reduction_and_update_learns_what_its_twin_does(
    reduction: str, update: str, seed: int, margin: str
) -> None:
    learner, twin = make(reduction, update, margin=margin)
    for one in random_rounds(seed):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert_weights_equal(learner.policy(), twin.policy(), exact=update in EXACT)


@named(BY_ACTION)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_actions_with_features_of_their_own_are_learned_as_by_the_twin(reduction: str, update: str, seed: int) -> None:
    learner, twin = make(reduction, update, by_action=True)
    for one in random_rounds(seed, by_action=True):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert_weights_equal(learner.policy(), twin.policy(), exact=update in EXACT)


@pytest.mark.uncompiled
@named(PAIRS)
def test_plain_python_learns_what_the_twin_does(reduction: str, update: str) -> None:
    for compiled in (False, True):
        learner, twin = make(reduction, update)
        learner.compiled = compiled
        for one in random_rounds(5):
            learner.learn(lessons_of([one], ACTIONS))
            twin.learn_round(one)
        assert_weights_equal(learner.policy(), twin.policy(), exact=update in EXACT)


@named([p for p in PAIRS if p[1] != "ridge"])
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
    for policy in (learner.policy(), learner.policy(averaged=True)):
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
    assert LearnerSettings("hinge", "perceptron", margin="cost").width == 0.0


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
    options = {"shuffle": False, "batch_size": 1, "passes": 1} | options
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


# --- state, merging, tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [None, 6], ids=["growing", "fixed"])
@named(PAIRS)
def test_a_learner_goes_on_from_its_state_bit_for_bit(reduction: str, update: str, bits: int | None) -> None:
    rounds = random_rounds(10, count=12)
    first = taught(rounds[:6], reduction, update, bits=bits)
    second, _ = make(reduction, update, bits=bits)
    second.load(first.state())
    for learner in (first, second):
        for one in rounds[6:]:
            learner.learn(lessons_of([one], ACTIONS))
    mine, other = first.state(), second.state()
    assert mine.keys() == other.keys()
    for name in mine:
        assert np.array_equal(mine[name], other[name]), name


def test_a_state_is_not_touched_by_later_learning() -> None:
    rounds = random_rounds(11, count=12)
    learner = taught(rounds[:6], "csoaa", "nag")
    state = learner.state()
    before = {name: array.copy() for name, array in state.items()}
    learner.learn(lessons_of(rounds[6:], ACTIONS))
    for name in state:
        assert np.array_equal(state[name], before[name]), name


@pytest.mark.parametrize("update", ["adagrad", "nag"])
@pytest.mark.parametrize("by_action", [False, True])
def test_merging_averages_weights_and_averages_over_the_union_of_features(update: str, by_action: bool) -> None:
    streams = [random_rounds(12, count=4, by_action=by_action), random_rounds(13, count=12, by_action=by_action)]
    streams[0] = [[e for e in one if (feature(0, 1), 0.0) not in e.features] for one in streams[0]]
    learners = [taught([one for one in s if one], "csoaa", update, by_action=by_action) for s in streams]
    shares = np.array([learner.report()["rounds"] for learner in learners], float)
    shares /= shares.sum()
    parts = {
        averaged: [weights_by_feature(learner.policy(averaged=averaged)) for learner in learners]
        for averaged in (False, True)
    }
    squares = [
        dict(zip(s["shared.features"].tolist(), s["shared.squares"], strict=True)) for s in map(Learner.state, learners)
    ]
    merged = learners[0]
    merged.merge(learners[1:])
    for averaged in (False, True):
        found = weights_by_feature(merged.policy(averaged=averaged))
        for bank in range(2):
            zero = np.zeros(1 if bank else ACTIONS)
            for identity in {f for part in parts[averaged] for f in part[bank]}:
                mean = sum(s * part[bank].get(identity, zero) for s, part in zip(shares, parts[averaged], strict=True))
                np.testing.assert_allclose(found[bank].get(identity, zero), mean, rtol=1e-4, atol=1e-5)
    state = merged.state()
    for identity, row in zip(state["shared.features"].tolist(), state["shared.squares"], strict=True):
        np.testing.assert_allclose(row, sum(s.get(identity, np.zeros(ACTIONS)) for s in squares), rtol=1e-5)
    merged.learn(lessons_of(random_rounds(14, by_action=by_action), ACTIONS))


def test_merging_with_a_learner_that_has_seen_nothing_changes_no_policy() -> None:
    learner = taught(random_rounds(15), "hinge", "adagrad")
    before = [weights_by_feature(learner.policy(averaged=averaged))[0] for averaged in (False, True)]
    learner.merge([make("hinge", "adagrad")[0]])
    for averaged in (False, True):
        after = weights_by_feature(learner.policy(averaged=averaged))[0]
        for identity, row in before[averaged].items():
            np.testing.assert_allclose(after[identity], row, rtol=1e-5)


def test_merging_all_untrained_learners_gives_an_untrained_one() -> None:
    learner = make("hinge", "adagrad")[0]
    learner.merge([make("hinge", "adagrad")[0]])
    assert not learner.policy().stack.any()
    assert learner.report()["rounds"] == 0


@named(PAIRS)
def test_a_fixed_table_without_collisions_learns_what_a_growing_one_does(reduction: str, update: str) -> None:
    rounds = random_rounds(16)
    bits = 8 if update == "ridge" else 18
    growing, fixed = (taught(rounds, reduction, update, bits=b) for b in (None, bits))
    ids = [feature(0, k) for k in range(8)]
    assert len({lookup(fixed.policy().shared, f) for f in ids}) == 8
    for averaged in (False, True):
        for example in (e for one in rounds for e in one):
            policies = growing.policy(averaged=averaged), fixed.policy(averaged=averaged)
            mine, other = (predicted(p, example) for p in policies)
            assert np.array_equal(mine, other)


def test_a_growing_table_keeps_all_weights_as_it_grows() -> None:
    rounds = random_rounds(17, count=1500, features=3000)
    small = taught(rounds, "csoaa", "nag")
    large = taught(rounds, "csoaa", "nag", bits=24)
    assert small.report()["features"] > 1024  # it has grown more than once
    ids = sorted({f for one in rounds for e in one for f, _ in e.features})
    rows = [(lookup(small.policy().shared, f), lookup(large.policy().shared, f)) for f in ids]
    assert len({r for _, r in rows}) == len(ids)
    for row, other in rows:
        assert np.array_equal(small.policy().stack[0, row], large.policy().stack[0, other])


@named(PAIRS)
def test_features_beyond_the_limit_are_dropped_and_counted(reduction: str, update: str) -> None:
    rounds = random_rounds(18, count=10)
    learner, twin = make(reduction, update, max_features=3)
    for one in rounds:
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    if reduction != "hinge":  # which asks for a feature's weights only where they change
        known: list[int] = []
        for identity in (f for one in rounds for e in one for f, _ in e.features):
            if identity not in known and len(known) < 3:
                known.append(identity)
        assert twin.known["shared"] == known
    assert learner.report()["features"] == 3
    assert learner.report()["dropped"] == twin.dropped > 0
    assert learner.state()["shared.features"].tolist() == twin.known["shared"]
    assert_weights_equal(learner.policy(), twin.policy(), exact=update in EXACT)


@named(BY_ACTION)
def test_features_of_actions_beyond_the_limit_are_dropped_and_counted(reduction: str, update: str) -> None:
    learner, twin = make(reduction, update, by_action=True, max_features=2)
    for one in random_rounds(20, count=10, by_action=True):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert learner.report()["dropped"] == twin.dropped > 0
    for bank in ("shared", "single"):
        assert learner.state()[f"{bank}.features"].tolist() == twin.known[bank]
    assert_weights_equal(learner.policy(), twin.policy(), exact=update in EXACT)


@named([("hinge", update) for update in EXACT])
def test_the_hinge_gives_a_feature_weights_only_when_they_change(reduction: str, update: str) -> None:
    def state(cheap: int, *features: int, legal: int = 2) -> Lesson:
        return Lesson([(f, 4.0) for f in features], {a: float(a != cheap) for a in range(legal)})

    learner, _ = make(reduction, update, rate=1.0)
    for example, known in (
        (Lesson([(1, 4.0)], {0: 1.0, 1: 1.0}), []),  # nothing is better
        (state(0, 2, legal=1), []),  # nothing is worse
        (state(0, 3, 4), [3, 4]),
        (state(0, 3, 5), [3, 4]),  # right by the margin
        (state(1, 3, 5), [3, 4, 5]),
        (Lesson([(6, 4.0)], {0: 0.0, 1: 1.0}, 0.0), [3, 4, 5]),  # not to be learned from
    ):
        learner.learn(lessons_of([[example]], ACTIONS))
        assert learner.state()["shared.features"].tolist() == known
        assert learner.report()["features"] == len(known)
        assert learner.policy(averaged=True).stack.shape[1] == max(len(known), 1)
    assert (learner.report()["rounds"], learner.report()["states"]) == (6, 5)


def test_a_dropped_feature_of_an_action_counts_once() -> None:
    example = Lesson([(1, 1.0)], {0: 0.0, 1: 1.0}, 1.0, {0: [(5, 1.0), (6, 1.0)], 1: [(5, 1.0), (7, 1.0)]})
    for reduction, update in BY_ACTION:
        learner = taught([[example]], reduction, update, by_action=True, max_features=1)
        assert learner.report()["dropped"] == 2, (reduction, update)


# --- memory -----------------------------------------------------------------------------------------------------------


def held(learner: Learner) -> int:
    """Bytes of all that a learner keeps, added up one by one; rows that no feature has are never touched."""
    total = 0
    for bank in (learner.shared, learner.single):
        total += sum(a.size * a.dtype.itemsize for a in (bank.table.entries, bank.inverse))
        for array in (bank.weights, bank.squares, bank.sums, bank.scales):
            rows = array[: bank.filled[0]]
            assert not array[bank.filled[0] :].any()
            total += rows.size * rows.dtype.itemsize
    return total


@named(PAIRS)
def test_the_report_counts_what_is_held(reduction: str, update: str) -> None:
    for count in (1, 200):
        rounds = random_rounds(19, count=count, features=16 if update == "ridge" else 600)
        learner, twin = make(reduction, update)
        for one in rounds:
            learner.learn(lessons_of([one], ACTIONS))
            twin.learn_round(one)
        report = learner.report()
        seen = {f for one in rounds for e in one for f, _ in e.features}
        known = set(twin.known["shared"])
        assert known <= seen if reduction == "hinge" else known == seen
        assert report["features"] == len(known) > 0
        assert report["bytes"] == held(learner)
        assert report["bytes_per_feature"] == report["bytes"] / len(known)
        assert (report["rounds"], report["states"]) == (count, sum(len(one) for one in rounds))


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "settled"), [("csoaa", 1), ("hinge", 4)])
def test_memory_stays_flat_over_passes(learner: str, settled: int) -> None:
    data = tagging_data(30, labels=6, words=50)
    sizes, traced = [], []

    def note(_: int, model: lols.Model) -> None:
        sizes.append(model.report["bytes"])
        del model
        gc.collect()
        traced.append(tracemalloc.get_traced_memory()[0])

    space, reference = tagging_space(labels=6), tagging_references()["optimal"]
    lols.train(space, data, reference, learner=learner, passes=1)  # whatever the first run allocates once and for all
    tracemalloc.start()
    try:
        lols.train(space, data, reference, learner=learner, passes=8, after_pass=note)
    finally:
        tracemalloc.stop()
    # The hinge may give a feature its weights in a later pass, but mistakes become rare.
    assert len(set(sizes[settled:])) == 1
    assert traced[-1] - traced[2] < 64 * 1024
