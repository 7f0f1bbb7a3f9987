"""Theorems 1 and 2 of the paper by exact enumeration in the worlds of Figure 3."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lols.datasets.small_worlds import (
    BLIND,
    IN_REFERENCE,
    REPRESENTATION,
    ROLL_INS,
    ROLL_OUTS,
    WORLDS,
    SmallWorld,
    out_reference,
)

OUT_REFERENCE = out_reference()
HALF = Fraction(1, 2)
EPSILON = Fraction(1, 10)


def bits(letters: str) -> frozenset[str]:
    return frozenset(letters)


# --- the worlds are those of Figure 3 ---------------------------------------------------------------------------------


def test_the_losses_are_those_of_the_figure() -> None:
    assert IN_REFERENCE.losses == REPRESENTATION.losses == (0, 10, 100, 0)
    assert OUT_REFERENCE.losses == (1, 1 - EPSILON, 1 + EPSILON, 0)


def test_the_reference_is_optimal_in_a_and_b_and_a_little_worse_than_learnable_in_c() -> None:
    assert [float(w.loss(w.reference_policy)) for w in (IN_REFERENCE, REPRESENTATION, OUT_REFERENCE)] == [0, 0, 1]
    assert min(OUT_REFERENCE.loss(p) for p in OUT_REFERENCE.policies()) == 0


def test_policies_are_the_bit_vectors_with_ties_at_random() -> None:
    # (a): first, second or a tie at each of three states. (b): nothing but a tie at s1. (c): one choice for s2 and s3.
    assert len(IN_REFERENCE.policies()) == 27
    assert len(REPRESENTATION.policies()) == 9 and {p[0] for p in REPRESENTATION.policies()} == {HALF}
    assert len(OUT_REFERENCE.policies()) == 9 and all(p[1] == p[2] for p in OUT_REFERENCE.policies())


# --- Theorem 1: roll-in with the reference ----------------------------------------------------------------------------


def test_rolling_in_with_the_reference_makes_no_example_at_s3() -> None:
    for world in (IN_REFERENCE, REPRESENTATION):
        for policy in world.policies():
            for roll_out in ROLL_OUTS:
                assert {e.state for e in world.examples(policy, "reference", roll_out)} == {0, 1}


def test_theorem_1_the_policy_of_the_proof_has_no_regret_and_a_large_loss() -> None:
    # c at s2 and b at s1, nothing learned at s3: "taking action e half the time in s3", so J = 50 where the reference
    # has 0. With a bit on e, which costs no regret either, it is 100.
    undecided, worst = (IN_REFERENCE.policy(bits(letters)) for letters in ("bc", "bce"))
    assert IN_REFERENCE.cost_sensitive_regret(undecided, "reference", "reference") == 0
    assert IN_REFERENCE.loss(undecided) == 50
    assert IN_REFERENCE.cost_sensitive_regret(worst, "reference", "reference") == 0
    assert IN_REFERENCE.loss(worst) == 100


# The worst loss of a policy without cost-sensitive regret, by world, roll-in and roll-out. In (b) every policy comes to
# s3 half of the time, so the worst choice there costs 100 / 2. In (c) the roll-out decides, not the roll-in.
WORST = {
    IN_REFERENCE.name: {("reference", "reference"): 100},
    REPRESENTATION.name: {("reference", roll_out): 50 for roll_out in ROLL_OUTS},
    OUT_REFERENCE.name: {(roll_in, "reference"): Fraction(9, 10) for roll_in in ROLL_INS},
    BLIND.name: {("learned", "learned"): 2},
}


@pytest.mark.parametrize("roll_out", ROLL_OUTS)
@pytest.mark.parametrize("roll_in", ROLL_INS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_the_worst_policy_without_regret_has_this_loss_and_elsewhere_none(
    world: SmallWorld, roll_in: str, roll_out: str
) -> None:
    assert world.worst_loss(roll_in, roll_out) == WORST[world.name].get((roll_in, roll_out), 0)


def test_learned_roll_in_makes_the_example_at_s3_that_the_reference_never_makes() -> None:
    policy = IN_REFERENCE.policy(bits("bce"))
    at_s3 = [e for e in IN_REFERENCE.examples(policy, "learned", "mixture") if e.state == 2]
    assert [(e.chance, e.costs) for e in at_s3] == [(1, (100, 0))]
    assert IN_REFERENCE.cost_sensitive_regret(policy, "learned", "mixture") >= 100


# --- Theorem 2: roll-out with the reference ---------------------------------------------------------------------------


@pytest.mark.parametrize("roll_in", ROLL_INS)
def test_theorem_2_reference_roll_outs_settle_on_a_d_though_one_deviation_is_far_better(roll_in: str) -> None:
    a_d, b_d = (OUT_REFERENCE.policy(bits(letters)) for letters in ("ad", "bd"))
    assert OUT_REFERENCE.zero_regret(roll_in, "reference") == [a_d]
    assert OUT_REFERENCE.loss(a_d) == 1 - EPSILON
    assert OUT_REFERENCE.deviation_regret(a_d) == 1 - EPSILON and OUT_REFERENCE.loss(b_d) == 0


@pytest.mark.parametrize("roll_out", ["mixture", "learned"])
def test_mixture_and_learned_roll_outs_find_b_d(roll_out: str) -> None:
    assert OUT_REFERENCE.zero_regret("learned", roll_out) == [OUT_REFERENCE.policy(bits("bd"))]


@pytest.mark.parametrize(
    ("beta", "found"), [("0", "bd"), ("1/2", "bd"), ("89/100", "bd"), ("91/100", "ad"), ("1", "ad")]
)
def test_the_mixture_finds_b_d_exactly_while_beta_is_below_one_less_epsilon(beta: str, found: str) -> None:
    # At s1, a costs β + (1 - β)(1 - ε) and b costs β(1 + ε): b is cheaper if and only if β < 1 - ε.
    assert OUT_REFERENCE.zero_regret("learned", "mixture", Fraction(beta)) == [OUT_REFERENCE.policy(bits(found))]


def test_the_regret_to_deviations_grows_as_epsilon_shrinks() -> None:
    for denominator in (2, 10, 1000):
        world = out_reference(Fraction(1, denominator))
        assert world.deviation_regret(world.policy(bits("ad"))) == 1 - Fraction(1, denominator)
        assert world.zero_regret("learned", "reference") == [world.policy(bits("ad"))]
