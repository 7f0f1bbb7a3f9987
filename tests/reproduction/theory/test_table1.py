"""Table 1 of the paper, and what the engine ends with in the worlds of Figure 3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from statistics import mean
from typing import Any

import pytest

import lols
from lols.datasets.small_worlds import (
    BLIND,
    IN_REFERENCE,
    REPRESENTATION,
    ROLL_INS,
    ROLL_OUTS,
    SmallWorld,
    TwoSteps,
    out_reference,
)
from lols.reproduction.theory.table1 import learned_policy, table_1

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

OUT_REFERENCE = out_reference()
SPACE, REFERENCE = TwoSteps.space, TwoSteps.teacher
SEEDS = range(40)


# --- Table 1 ----------------------------------------------------------------------------------------------------------


def test_table_1_comes_out_as_printed() -> None:
    assert table_1() == {
        ("reference", "reference"): "inconsistent",
        ("reference", "mixture"): "inconsistent",
        ("reference", "learned"): "inconsistent",
        ("learned", "reference"): "not locally optimal",
        ("learned", "mixture"): "good",
        ("learned", "learned"): "reinforcement learning",
    }


# --- the engine on the same worlds ------------------------------------------------------------------------------------


def trained(world: SmallWorld, learner: Any, seeds: Iterable[int] = SEEDS, **options: Any) -> list[lols.Model]:
    options = {"ties": "random", "passes": 50, "batch_size": 1} | options
    return [lols.train(SPACE, [world], REFERENCE, learner=learner, seed=seed, **options) for seed in seeds]


# What the engine ends with, for every seed. A decision that training never sees, or that looks the same on both sides,
# is drawn at random: in (a) one half for b times one half for e times 100; in (b) the same, s1 being undecidable.
ENDS_WITH = {
    IN_REFERENCE.name: {("reference", "reference"): 25},
    REPRESENTATION.name: {("reference", roll_out): 25 for roll_out in ROLL_OUTS},
    OUT_REFERENCE.name: {(roll_in, "reference"): Fraction(9, 10) for roll_in in ROLL_INS},
}


@pytest.mark.parametrize("learner", ["csoaa", lols.LearnerSettings("hinge", "adagrad", margin="weighted")])
@pytest.mark.parametrize("roll_out", ROLL_OUTS)
@pytest.mark.parametrize("roll_in", ROLL_INS)
@pytest.mark.parametrize("world", [IN_REFERENCE, REPRESENTATION, OUT_REFERENCE], ids=lambda world: world.name)
def test_the_engine_ends_without_regret_and_with_this_loss(
    world: SmallWorld, roll_in: str, roll_out: str, learner: Any
) -> None:

    expected = ENDS_WITH[world.name].get((roll_in, roll_out), 0)
    settled = world.zero_regret(roll_in, roll_out)
    for model in trained(world, learner, roll_in=roll_in, roll_out=roll_out):
        policy = learned_policy(model, world)
        assert policy in settled
        assert world.loss(policy) == expected


@pytest.mark.parametrize("learner", ["csoaa", "hinge"])
def test_predictions_fail_as_often_as_the_exact_policy_says(learner: str) -> None:
    losses = [
        m.evaluate([IN_REFERENCE]) for m in trained(IN_REFERENCE, learner, roll_in="reference", roll_out="reference")
    ]
    assert set(losses) == {0.0, 100.0}  # 100 with probability 1/4, the mean of forty has a standard deviation of 6.8
    assert mean(losses) == pytest.approx(25, abs=21)
    fixed = [m.evaluate([IN_REFERENCE]) for m in trained(IN_REFERENCE, learner, roll_out="learned")]
    assert set(fixed) == {0.0}


def test_ties_are_drawn_for_every_input_anew_and_the_same_input_is_drawn_the_same_way_again() -> None:
    # Letters that were never seen: both actions look alike at every state of each of these worlds.
    strange = [
        replace(IN_REFERENCE, features=tuple(chr(1000 + 6 * k + i) + chr(1001 + 6 * k + i) for i in (0, 2, 4)))  # type: ignore[arg-type]
        for k in range(40)
    ]
    model = trained(IN_REFERENCE, "csoaa", [0])[0]
    losses = model.losses(strange).tolist()
    assert set(losses) == {0.0, 10.0, 100.0}
    assert [model.evaluate([world]) for world in strange] == losses


def test_a_hinge_without_weights_need_not_find_b_d_under_a_coin_per_state() -> None:
    # Half of the time a is cheaper by ε, half of the time b is cheaper by 1 - ε: a fair fight unless the amount counts.
    losses = {OUT_REFERENCE.loss(learned_policy(m, OUT_REFERENCE)) for m in trained(OUT_REFERENCE, "hinge")}
    assert losses == {0, Fraction(9, 10)}
    weighted = lols.LearnerSettings("hinge", "adagrad", margin="weighted")
    losses = {OUT_REFERENCE.loss(learned_policy(m, OUT_REFERENCE)) for m in trained(OUT_REFERENCE, weighted)}
    assert losses == {0}


@pytest.mark.parametrize("mix", ["state", "rollout", "example", "expected"])
def test_cost_regression_finds_b_d_wherever_the_coin_is_tossed(mix: str) -> None:
    models = trained(OUT_REFERENCE, "csoaa", range(10), mix=mix, passes=150)
    assert {OUT_REFERENCE.loss(learned_policy(m, OUT_REFERENCE)) for m in models} == {0}


@pytest.mark.parametrize("learner", ["csoaa", "hinge"])
def test_the_engine_changes_its_mind_where_beta_passes_one_less_epsilon(learner: str) -> None:
    for beta, loss in ((0.85, 0), (0.95, Fraction(9, 10))):
        models = trained(OUT_REFERENCE, learner, range(10), beta=beta, mix="expected", passes=150)
        assert {OUT_REFERENCE.loss(learned_policy(m, OUT_REFERENCE)) for m in models} == {loss}


@pytest.mark.parametrize("learner", ["csoaa", "hinge"])
def test_without_the_reference_a_policy_that_starts_badly_stays_so(learner: str) -> None:
    # With ties to the first action, training starts at b and d. Only a roll-out of the reference shows what a is worth.
    for options, loss in (({"roll_out": "learned"}, 2), ({"mix": "expected"}, 0), ({"roll_out": "reference"}, 0)):
        models = trained(BLIND, learner, range(5), ties="first", **options)
        assert {m.evaluate([BLIND]) for m in models} == {loss}


# In (c), DAgger and cloning imitate: a and c, the reference's own loss of 1; AggreVaTe, which sees costs under
# the reference's roll-outs, corrects the last step only; LOLS alone gets to 0.
@pytest.mark.parametrize(("algorithm", "loss"), [("cloning", 1.0), ("dagger", 1.0), ("aggrevate", 0.9), ("lols", 0.0)])
def test_only_lols_does_much_better_than_the_reference_in_c(algorithm: str, loss: float) -> None:
    models = trained(OUT_REFERENCE, "csoaa", range(10), algorithm=algorithm)
    assert {m.evaluate([OUT_REFERENCE]) for m in models} == {loss}


def test_plain_python_and_compiled_code_end_with_the_same_weights() -> None:
    for world in (IN_REFERENCE, REPRESENTATION, OUT_REFERENCE):
        one, other = (trained(world, "csoaa", [3], compiled=compiled, passes=20)[0] for compiled in (True, False))
        assert one.policy.single_stack.tobytes() == other.policy.single_stack.tobytes()
