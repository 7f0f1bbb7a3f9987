"""Theorem 3 and its gap on random small spaces: against brute force, as properties, and for the library's training."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from lols.datasets.small_spaces import (
    SmallSpace,
    figure3_space,
    tree_space,
)  # fmt: skip
from lols.datasets.small_worlds import BLIND, IN_REFERENCE, Policy, SmallWorld, out_reference
from lols.errors import ConfigurationError
from lols.reproduction import theory_part as theory
from lols.reproduction.console import print_sections
from lols.reproduction.describe import describe
from lols.reproduction.theory import theorem3
from lols.reproduction.theory.runs import train_lols
from lols.reproduction.theory.theorem3 import gaps, run_lols, sides, stay, staying
from tests.datasets.random_spaces import SPACES, made_space
from tests.reproduction.theory.theorem3_twin import SpaceTwin

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

CLOSE: dict[str, Any] = {"rel": 0.0, "abs": 1e-12}
PARTS = ("averaging", "limits", "teacher", "unfit", "gap")


BETAS = st.sampled_from([0.0, 0.125, 0.5, 0.75, 1.0])


def some_counts(space: SmallSpace, seed: int, most: int) -> np.ndarray:
    """How often each policy was the current one, at most a few having been it."""
    rng, counts = np.random.default_rng(seed), np.zeros(len(space.policies))
    np.add.at(counts, rng.integers(0, counts.size, int(rng.integers(1, most + 1))), rng.integers(1, 4))
    return counts


# --- both sides -------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    st.builds(made_space, st.integers(0, 10**6), st.integers(1, 3), st.just(2), st.just(0.7), st.booleans()),
    st.integers(0, 10**6),
    BETAS,
)
def test_both_sides_are_those_of_brute_force(space: SmallSpace, seed: int, beta: float) -> None:
    keep = np.random.default_rng(seed).permutation(len(space.policies))[:20]  # any class will do, and this is quick
    space = SmallSpace(space.follow, space.layer, space.losses, space.start, space.reference, space.policies[keep])
    counts = some_counts(space, seed, 3)
    made, twin = sides(space, counts, beta), SpaceTwin(space, counts.astype(int).tolist(), Fraction(beta))
    assert made.to_reference == pytest.approx(float(twin.to_reference()), **CLOSE)
    assert made.to_deviations == pytest.approx(float(twin.to_deviations()), **CLOSE)
    assert made.each == pytest.approx(float(twin.each()), **CLOSE)
    assert made.right == pytest.approx(float(twin.full()), **CLOSE)
    assert made.of_class == pytest.approx(float(twin.of_class()), **CLOSE)
    assert made.gap == pytest.approx(float(twin.gap()), **CLOSE)


@settings(max_examples=300)
@given(SPACES, st.integers(0, 10**6), BETAS)
def test_theorem_3_holds_for_any_sequence_of_policies(space: SmallSpace, seed: int, beta: float) -> None:
    made = sides(space, some_counts(space, seed, 12), beta)
    assert made.left <= made.most + 1e-12 <= made.right + 2e-12
    assert min(getattr(made, name) for name in PARTS) >= -1e-12
    between = made.averaging + made.limits + made.teacher
    assert made.left + between == pytest.approx(made.right, **CLOSE)
    assert made.regret + made.unfit + made.gap == pytest.approx(made.right, **CLOSE)


@settings(max_examples=60)
@given(SPACES, st.integers(0, 10**6), BETAS, st.booleans())
def test_theorem_3_holds_for_lols(space: SmallSpace, seed: int, beta: float, sampled: bool) -> None:
    counts = run_lols(space, 30, beta, rng=np.random.default_rng(seed), sampled=sampled)
    assert counts.sum() == 30
    made = sides(space, counts, beta)
    assert made.left <= made.right + 1e-12


@given(st.integers(0, 10**6), st.integers(0, 10**6), BETAS)
def test_the_sides_are_equal_where_nothing_is_given_away(seed: int, policy: int, beta: float) -> None:
    # An optimal teacher, a class without limits, one policy: each inequality of the proof is an equation.
    space = made_space(seed, 3, 2, 0.0, False)
    made = sides(space, np.eye(len(space.policies))[policy % len(space.policies)], beta)
    assert made.left == pytest.approx(made.right, **CLOSE)


@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (2, 2), (1, 3), (8, 1)]), BETAS)
def test_all_policies_are_a_class_like_their_list(seed: int, shape: tuple[int, int], beta: float) -> None:
    (starts, steps), rng = shape, np.random.default_rng(seed)
    states = (1 << steps) - 1
    losses, reference = rng.random((starts, states + 1)), rng.integers(0, 2, (starts, states))
    tables = np.array(list(product((0, 1), repeat=starts * states)))
    listed = tree_space(losses, reference, tables)
    counts = some_counts(listed, seed, 5)
    made, other = sides(listed, counts, beta), sides(tree_space(losses, reference), counts, beta, tables)
    assert tuple(made) == pytest.approx(tuple(other), **CLOSE)


# --- learning ---------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), BETAS)
def test_costs_while_a_policy_is_current_are_those_of_single_walks(
    seed: int, steps: int, limited: bool, beta: float
) -> None:
    space = made_space(seed, steps, 2, 1.0, limited)
    twin = SpaceTwin(space, [1] * len(space.listed), Fraction(beta))
    exact, rules = space.exact(space.listed), space.exact(space.reference[np.newaxis])
    found = theorem3._Class(space).while_current(exact, rules, beta)
    for n in range(0, len(twin.all), 9):
        for k in range(0, len(twin.all), 5):
            assert found[n, k] == pytest.approx(float(twin.costs(twin.all[n], twin.all[k])), **CLOSE)


def test_sampled_costs_have_the_expected_ones_as_their_mean() -> None:
    space, beta, rng = made_space(7, 3, 2, 1.0, True), 0.3, np.random.default_rng(0)
    exact, rules = space.exact(space.policies), space.exact(space.reference[np.newaxis])
    drawn = sum(theorem3._one_example(space, 3, beta, exact, rules, rng) for _ in range(4000)) / 4000
    expected = exact.visits[3][:, np.newaxis] * (beta * rules.worths[0] + (1 - beta) * exact.worths[3])
    assert drawn == pytest.approx(expected, abs=0.03)
    of_class = theorem3._Class(space)
    assert of_class.by_step(expected).sum(axis=1) == pytest.approx(of_class.while_current(exact, rules, beta)[3])


@pytest.mark.parametrize("sampled", [False, True])
def test_the_cost_sensitive_regret_of_hedge_vanishes(sampled: bool) -> None:
    regrets = {10: 0.0, 1000: 0.0}
    for rounds in regrets:
        for seed in range(5):
            space, rng = made_space(seed, 3, 2, 1.0, True), np.random.default_rng(seed)
            regrets[rounds] += sides(space, run_lols(space, rounds, 0.5, rng=rng, sampled=sampled), 0.5).regret / 5
    assert regrets[1000] < 0.3 * regrets[10]


@settings(max_examples=10)
@given(SPACES, st.integers(0, 10**6), BETAS)
def test_theorem_3_holds_for_the_librarys_training(space: SmallSpace, seed: int, beta: float) -> None:
    counts = train_lols(space, 15, beta, seed=seed, compiled=False)
    assert counts.sum() == 15
    made = sides(space, counts, beta)
    assert made.left <= made.right + 1e-12


def test_training_comes_to_a_policy_that_a_learner_may_stay_with() -> None:
    for seed in range(6):
        space = made_space(seed, 2, 2, 1.0, False)
        assert train_lols(space, 200, 0.5, seed=seed, compiled=False).argmax() in staying(space, 0.5)


def test_policies_are_counted_in_a_class_that_is_a_list() -> None:
    space = tree_space(np.zeros((1, 2)), np.zeros((1, 1), np.int64))
    with pytest.raises(ConfigurationError, match="give a space with a list"):
        train_lols(space, 1, 0.5, seed=0, compiled=False)


@settings(max_examples=15)
@given(SPACES, BETAS)
def test_a_learner_may_stay_where_no_other_policy_costs_less(space: SmallSpace, beta: float) -> None:
    if len(space.policies) > 64:
        return
    twin = SpaceTwin(space, [1] * len(space.policies), Fraction(beta))
    expected = []
    for n, policy in enumerate(twin.all):
        costs = [twin.costs(policy, other) for other in twin.all]
        if costs[n] <= min(costs) + Fraction(1, 10**13):
            expected.append(n)
    assert staying(space, beta).tolist() == expected


# --- the gap ----------------------------------------------------------------------------------------------------------


@given(SPACES, BETAS)
def test_the_gap_of_every_policy_is_that_of_both_sides(space: SmallSpace, beta: float) -> None:
    found = gaps(space, beta)
    assert (found >= -1e-12).all()
    for n in range(0, found.size, 17):
        assert found[n] == pytest.approx(sides(space, np.eye(found.size)[n], beta).gap, **CLOSE)
    if beta in (0.0, 1.0):
        assert found == pytest.approx(np.zeros(found.size), **CLOSE)


@given(SPACES, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_gap_of_a_policy_is_concave_in_beta(space: SmallSpace, one: float, other: float) -> None:
    middle = (gaps(space, one) + gaps(space, other)) / 2
    assert (gaps(space, (one + other) / 2) >= middle - 1e-12).all()


def test_the_gap_stays_for_ever_in_the_world_that_is_blind() -> None:
    # The policy b, d costs 2. By the average, a costs 3 (1 - β), which is less than 2 from β = 1/3 on.
    for k in range(16):
        beta, found = k / 15, stay(figure3_space(BLIND), k / 15)
        assert found is not None
        assert found.gap == pytest.approx(2 * beta if 0 < k <= 5 else 0.0, **CLOSE)
        assert found.worst == (2.0 if k <= 5 else 0.0)
        if 0 < k <= 5:
            assert (found.loss, found.reference) == (2.0, 0.0)
            assert found.left == pytest.approx(found.gap, **CLOSE)  # the theorem allows all of it


def test_the_gap_in_c_is_what_the_reference_thinks_of_the_better_action() -> None:
    space, epsilon = figure3_space(out_reference()), 0.1
    for beta in (k / 20 for k in range(21)):
        found = stay(space, beta)
        expected = epsilon * beta if beta <= 1 - epsilon else (1 - epsilon) * (1 - beta)
        assert found is not None and found.gap == pytest.approx(expected, **CLOSE)
    found = stay(space, 0.9)
    assert found is not None and found.loss == 0.9  # of equal gaps, that of the larger loss counts


@pytest.mark.parametrize("world", [IN_REFERENCE, out_reference(), BLIND], ids=lambda world: world.name)
def test_policies_with_ties_stay_nowhere_longer(world: SmallWorld) -> None:
    # Figure 3's policies may draw at random; the largest gap and the largest loss are those of policies that do not.
    for beta in (Fraction(k, 12) for k in range(13)):
        settled = world.zero_regret("learned", "mixture", beta)
        found = stay(figure3_space(world), float(beta))
        if found is not None:
            assert found.worst == pytest.approx(float(max(world.loss(p) for p in settled)), **CLOSE)
            assert found.gap == pytest.approx(float(max(gap_in_fractions(world, p, beta) for p in settled)), **CLOSE)


def gap_in_fractions(world: SmallWorld, policy: Policy, beta: Fraction) -> Fraction:
    """The gap of a policy that may draw at random."""
    total = Fraction(0)
    for state, chance in enumerate(world.visits(policy)):
        teacher, own = (world.action_worths(state, who) for who in (world.reference_policy, policy))
        average = min(beta * r + (1 - beta) * q for r, q in zip(teacher, own, strict=True))
        total += chance * (average - beta * min(teacher) - (1 - beta) * min(own))
    return total


@given(SPACES, BETAS)
def test_a_learner_that_stays_reaches_the_bound_but_for_what_the_class_lacks(space: SmallSpace, beta: float) -> None:
    found = stay(space, beta)
    if found is not None and len(set(space.seen.tolist())) == len(space.layer):  # type: ignore[union-attr]
        assert found.left <= found.gap + 1e-12  # no regret, and nothing that the class lacks
        assert found.worst >= found.loss - 1e-12


def test_rolling_out_with_the_teacher_alone_nobody_stays_below_it() -> None:
    for seed in range(20):
        found = stay(made_space(seed, 3, 2, 1.0, False), 1.0)
        assert found is not None and found.worst <= found.reference + 1e-12


def test_no_policy_may_be_one_to_stay_with() -> None:
    # Both steps must look alike to the policies; each of the two looks better while the other is followed.
    found = [made_space(seed, 3, 2, 1.0, True) for seed in range(200)]
    assert any(stay(space, 0.5) is None for space in found)


# --- all of it --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    amounts = theory.Amounts(seeds=2, spaces=12, rounds=10, gap_spaces=12)
    return theory.run_theory(True, 3, amounts=amounts)


def test_the_result_is_plain_and_says_what_holds(result: dict[str, Any]) -> None:
    assert json.loads(json.dumps(result)) == result
    assert all(row["agrees"] for row in result["table1"])
    assert len(result["theorem3"]["runs"]) == 12 * 5 and result["theorem3"]["violations"] == 0
    assert [row["updates"] for row in result["snakes"]["rows"]] == [4, 7, 13, 26, 50]
    assert [row["hamming_updates"] for row in result["snakes"]["rows"]] == [3, 4, 5, 6, 7]
    assert all(cell["without_regret"] == cell["trainings"] for cell in result["figure3"])
    holds = {claim["where"]: claim["holds"] for claim in result["claims"]}
    assert [where for where, held in holds.items() if not held] == ["Section 3.2, remark 1"]


def test_it_is_shown_in_words_at_any_width(result: dict[str, Any]) -> None:
    for width in (60, 120):
        out = io.StringIO()
        print_sections(describe({"theory": result}), Console(file=out, width=width))
        text = " ".join(out.getvalue().split())
        assert "6 of 6 cells come out as the paper prints them" in text
        assert "exceeds T δ_N in 0 of 60 runs" in text and "0.57 x 1.89^T" in text
        assert "✗ 50 → 25" in text or width == 60
