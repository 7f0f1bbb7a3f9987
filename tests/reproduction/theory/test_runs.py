"""The library's own Algorithms 1 and 2 on small spaces; the exact regret, against brute force, Theorem 3, and runs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import regret as benchmark
from benchmarks.regret import LEARNERS, whole_regret
from lols.bandit import MemoryLog, StructuredBandit
from lols.bandit.entries import WHOLE, Decision, Loss
from lols.bandit.exploring import theory_epsilon
from lols.bandit.retrace import Retracer
from lols.contract.checks import check_space
from lols.datasets.small_spaces import LADDER, best_actions, figure3_space, ladder_space, random_space, tree_space
from lols.datasets.small_worlds import IN_REFERENCE
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory import runs
from lols.reproduction.theory.runs import (
    Layers,
    Lives,
    log_log_slope,
    run_algorithm2,
    run_sides,
    start_examples,
    tables_of,
    train_lols,
)
from lols.reproduction.theory.theorem3 import sides
from tests.reproduction.theory.theorem3_twin import SpaceTwin

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

CLOSE: dict[str, Any] = {"rel": 0.0, "abs": 1e-12}


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------


def test_the_space_keeps_its_contract() -> None:
    space = random_space(np.random.default_rng(2), steps=3, actions=3)
    check_space(Layers(actions=3), start_examples(space), Layers.teacher)


@pytest.mark.parametrize("seed", range(3))
def test_policies_are_the_same_compiled_or_not(seed: int) -> None:
    space = random_space(np.random.default_rng(seed), steps=3, actions=2 + seed % 2)
    one, other = (train_lols(space, 30, 0.5, seed=seed, compiled=compiled) for compiled in (True, False))
    assert one.tolist() == other.tolist()


# --- against brute force ----------------------------------------------------------------------------------------------


class Case:
    """A random space with all policies, and a few of them with weights."""

    def __init__(self, seed: int, starts: int, steps: int, beta: float):
        rng = np.random.default_rng(seed)
        states = (1 << steps) - 1
        self.beta = beta
        losses, reference = rng.integers(0, 5, (starts, states + 1)) / 4, rng.integers(0, 2, (starts, states))
        self.space = tree_space(losses, reference)
        self.tables = rng.integers(0, 2, (int(rng.integers(1, 5)), starts * states))
        self.weights = rng.integers(1, 6, len(self.tables))
        self.made = sides(self.space, self.weights, beta, self.tables)
        self.twin = SpaceTwin(self.space, self.weights.tolist(), Fraction(beta), self.tables.tolist())


SHAPES = st.sampled_from([(1, 1), (3, 1), (1, 2), (2, 2), (1, 3)])
CASES = st.builds(
    lambda seed, shape, beta: Case(seed, *shape, beta), st.integers(0, 10**6), SHAPES, st.sampled_from([0.0, 0.3, 1.0])
)


@settings(max_examples=40, deadline=None)
@given(CASES)
def test_both_sides_are_those_of_brute_force_over_all_policies(case: Case) -> None:
    made, twin = case.made, case.twin
    assert made.to_deviations == pytest.approx(float(twin.to_deviations()), **CLOSE)
    assert made.left == pytest.approx(float(twin.left()), **CLOSE)
    assert made.each == pytest.approx(float(twin.each()), **CLOSE)
    assert (made.right, made.of_class) == pytest.approx((float(twin.full()), float(twin.of_class())), **CLOSE)
    least = case.space.exact(best_actions(case.space.follow, case.space.losses)[np.newaxis]).loss[0]
    assert least == pytest.approx(float(min(map(twin.loss, twin.all))), **CLOSE)


@settings(max_examples=200, deadline=None)
@given(CASES)
def test_theorem_3(case: Case) -> None:
    made = case.made
    assert made.left <= made.most + 1e-12 <= made.right + 2e-12
    assert made.each >= -1e-12 and made.of_class >= -1e-12


def test_one_policy_is_compared_with_its_own_deviations() -> None:
    case = Case(3, 2, 3, 0.5)
    made = sides(case.space, np.ones(1), 0.5, case.tables[:1])
    assert made.to_deviations == pytest.approx(made.each, **CLOSE) and made.each >= 0


def test_the_averaged_policy_may_do_better_than_all_of_its_one_step_deviations() -> None:
    # The paper calls the sum over t "always non-negative by definition". So it is for one policy of the class; but the
    # averaged policy is none: it may be one of two that go different ways, each ready for its own.
    space = tree_space(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[0, 0, 1]]))
    made = sides(space, np.ones(2), 0.0, np.array([[0, 0, 0], [1, 1, 1]]))
    assert made.left == -0.5 and made.most == 0.0 and made.right == 0.0


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_the_worlds_of_figure_3_have_the_same_values(beta: Fraction) -> None:
    space = figure3_space(IN_REFERENCE)
    assert len(space.listed) == 8
    for n, actions in enumerate(space.listed.tolist()):
        first, second, third = (Fraction(1 - a) for a in actions)
        policy = first, second, third
        loss = float(space.exact(space.listed).loss[n])
        assert loss == pytest.approx(float(IN_REFERENCE.loss(policy)), **CLOSE)
        regret = IN_REFERENCE.cost_sensitive_regret(policy, "learned", "mixture", beta)
        assert sides(space, np.eye(8)[n], float(beta)).regret == pytest.approx(float(regret), **CLOSE)


# --- the definition that is printed -----------------------------------------------------------------------------------


def printed_regret(case: Case) -> float:
    """As the paper's section 6 prints it: J - β J_ref - (1 - β) Σ_t min_π E[Q], with J once where Theorem 3 has T."""
    exact, left = case.space.exact(case.tables), case.made
    loss = float(case.weights @ exact.loss / case.weights.sum())
    deviations = case.space.steps * loss - left.to_deviations
    return loss - case.beta * (loss - left.to_reference) - (1 - case.beta) * deviations


def test_the_printed_definition_subtracts_t_values_from_one_loss() -> None:
    # Three steps, and everything costs 1/2: nothing can be regretted, least of all following the rules. The larger the
    # losses are, the better it looks: adding a constant to all losses must not change a regret.
    for loss in (0.5, 1.0):
        case = Case(0, 1, 3, 0.5)
        case.space = tree_space(np.full((1, 8), loss), np.zeros((1, 7), np.int64))
        case.tables, case.weights = case.space.reference[np.newaxis], np.ones(1, np.int64)
        case.made = sides(case.space, case.weights, 0.5, case.tables)
        assert case.made.left == 0.0
        assert printed_regret(case) == loss - 0.5 * loss - 0.5 * 3 * loss


# --- spaces -----------------------------------------------------------------------------------------------------------


def test_the_ladder() -> None:
    space = ladder_space()
    assert (space.start.size, space.steps, space.reference.size) == (5, 3, 35) and space.policies is None
    least = float(space.losses.reshape(5, 8).min(axis=1).mean())
    rules, wrong = (float(w.exact(w.reference[np.newaxis]).loss[0]) for w in (space, ladder_space(wrong=(2,))))
    assert rules == pytest.approx(least, **CLOSE)
    assert wrong == pytest.approx(least + np.mean(LADDER) / 3, **CLOSE)
    costs = np.abs(np.diff(space.exact(space.reference[np.newaxis]).worths[0], axis=-1))[:, 0]
    assert costs == pytest.approx(np.array(LADDER)[np.asarray(space.seen) // 7] / 3, **CLOSE)  # what one mistake costs


def test_trees_are_numbered_from_the_root() -> None:
    losses = np.arange(16.0).reshape(2, 8)
    space = tree_space(losses, np.zeros((2, 7), np.int64))
    assert (
        sorted(np.asarray(space.seen).tolist()) == list(range(14)) and space.losses.tolist() == losses.ravel().tolist()
    )
    for x, actions in product(range(2), product((0, 1), repeat=3)):
        s, of_tree = x, 0
        for a in actions:
            assert space.seen is not None and space.seen[s] == 7 * x + of_tree
            s, of_tree = int(space.follow[s, a]), 2 * of_tree + 1 + a
        assert space.losses[s - 14] == losses[x, of_tree - 7]


BAD: list[tuple[Any, Any, str]] = [
    (np.zeros((1, 3)), np.zeros((1, 2)), "2\\^T end states"),
    (np.zeros(4), np.zeros((1, 3)), "2\\^T end states"),
    (np.zeros((1, 1)), np.zeros((1, 0)), "2\\^T end states"),
    (np.zeros((2, 4)), np.zeros((1, 3)), "2 start states x 3 states"),
    (np.zeros((1, 4)), np.full((1, 3), 2), "from 0 to 1 for each of 3 states"),
]


@pytest.mark.parametrize(("losses", "rules", "message"), BAD)
def test_trees_that_are_none(losses: Any, rules: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        tree_space(losses, rules)


def test_runs_that_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="more room"):
        run_algorithm2(ladder_space(), 300, seed=0, learner=LearnerSettings("csoaa", "gd", bits=3), compiled=False)
    with pytest.raises(ConfigurationError, match="at most 62"):
        run_algorithm2(ladder_space([0.5] * 9), 10, seed=0, compiled=False)
    for loss in (1.5, np.nan):
        with pytest.raises(ConfigurationError, match="from 0 to 1"):
            run_algorithm2(tree_space(np.full((1, 4), loss), np.zeros((1, 3), np.int64)), 10, seed=0, compiled=False)


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "beta", "rounds"), [(2, 0.0, 400), (2, 0.5, 400), (3, 0.5, 700)])
def test_a_run_is_algorithm_2_with_running_means(steps: int, beta: float, rounds: int) -> None:
    space, seed = ladder_space((0.9, 0.3), steps=steps, wrong=(1,)), 5
    learner = LearnerSettings("csoaa", "ridge", max_features=14)
    lives = run_algorithm2(space, rounds, seed=seed, beta=beta, learner=learner, compiled=False)
    states, seen = space.reference.size, np.asarray(space.seen)
    epsilon = theory_epsilon(rounds, 2, steps, 2**states)
    log = MemoryLog()
    bandit = StructuredBandit.algorithm2(
        Layers, Layers.teacher, epsilon=epsilon, beta=beta, learner=learner, log=log, seed=seed,
        compiled=False,
    )  # fmt: skip
    chance = np.random.default_rng((seed, rounds))
    starts, luck = chance.integers(space.start.size, size=rounds), chance.random(rounds)
    for x, u in zip(starts.tolist(), luck.tolist(), strict=True):
        shown = bandit.decide({"shown": start_examples(space)[x]["shown"]})
        bandit.learn(shown.id, 1.0 if u < space.losses[shown.output] else 0.0)
    # What was logged, gone through by hand: ways are those of the current policy, and policies follow from the costs.
    table = np.zeros(states, np.int64)
    sums, counts, version, lived = np.zeros((states, 2)), np.zeros(states), 0, [0]
    entries, retracer = list(log.replay()), Retracer(bandit.space, compiled=False)
    for decision, loss in zip(entries[::2], entries[1::2], strict=True):
        assert isinstance(decision, Decision) and isinstance(loss, Loss)
        lived[-1] += 1
        if not decision.explored:
            continue
        s, at = int(starts[decision.number]), -1
        for t, a in enumerate(decision.actions.tolist()):
            if t == decision.step:
                at = s
            expected = (space.reference if t > decision.step and decision.by_reference else table)[s]
            assert a == (decision.action if t == decision.step else expected)
            s = int(space.follow[s, a])
        assert int(retracer(decision).slot_features(0)[0]) == seen[at]
        sums[at, decision.action] += 2 * loss.losses[WHOLE]  # K times the loss for the action, 0 for the other
        counts[at] += 1
        version += 1
        lived.append(0)
        found = tables_of(space, lives.codes[version : version + 1])[0]
        first, second = sums[at] / (counts[at] + 1)
        table[at] = second < first if abs(second - first) > 1e-5 else found[at]  # a tie is a matter of rounding
        assert (found == table).all()
    assert lives.rounds.tolist() == lived and lives.codes.size == version + 1 and lives.epsilon == epsilon
    assert 0.7 * epsilon * rounds < version < rounds


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_policy_is_noted_as_its_weights_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space, bandits = ladder_space((0.9, 0.3)), []
    made = StructuredBandit.algorithm2

    def spy(*arguments: Any, **options: Any) -> StructuredBandit:
        bandits.append(made(*arguments, **options))
        return bandits[-1]

    monkeypatch.setattr(runs.StructuredBandit, "algorithm2", spy)
    lives = run_algorithm2(space, 200, seed=2, learner=LEARNERS[name], compiled=False)
    last = tables_of(space, lives.codes[-1:])[0]
    policy = bandits[0].policy().final
    for s, what in enumerate(np.asarray(space.seen).tolist()):
        row = int(lookup(policy.shared, what))
        assert last[s] == (0 if row < 0 else int(np.argmin(policy.stack[0, row])))


def test_compiled_or_not_and_again() -> None:
    space = ladder_space((0.9, 0.3))
    for name, learner in LEARNERS.items():
        found = [run_algorithm2(space, 150, seed=7, learner=learner, compiled=c) for c in (True, True, False)]
        for other in found[1:]:
            assert other.codes.tolist() == found[0].codes.tolist(), name
            assert other.rounds.tolist() == found[0].rounds.tolist(), name


def test_the_regret_of_a_run_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "AT_ONCE", 4)
    rng, beta = np.random.default_rng(8), 0.3
    space, twin = (case := Case(11, 2, 2, beta)).space, case.twin
    lives = Lives(rng.integers(0, 64, 11), rng.integers(0, 4, 11), 0.4)
    found = run_sides(space, lives, beta)
    policies = tables_of(space, lives.codes).tolist()

    def averaged(counts: list[int]) -> SpaceTwin:
        """The averaged policy of the first policies."""
        return SpaceTwin(space, counts, Fraction(beta), policies[: len(counts)])

    whole = averaged(lives.rounds.tolist())
    assert found.left == pytest.approx(float(whole.left()), **CLOSE)
    assert (found.right, found.of_class) == pytest.approx((float(whole.full()), float(whole.of_class())), **CLOSE)
    total = 0.0
    for k, rounds in enumerate(lives.rounds.tolist()):
        so_far = averaged([1] * (k + 1))
        explored = twin.exploring(policies[k]) - so_far.to_reference() - so_far.loss(so_far.reference)
        total += rounds * (float(so_far.left()) + lives.epsilon * float(explored))
    assert whole_regret(space, lives, beta) == pytest.approx(total / lives.rounds.sum(), **CLOSE)


def test_the_benchmark_measures_a_run() -> None:
    task, found = benchmark.measure(benchmark.Task("wrong", "ridge", 300, 1, (0.9, 0.3)))
    space = benchmark.world_of("wrong", task.gaps)
    lives = run_algorithm2(space, 300, seed=1)
    losses = space.exact(tables_of(space, lives.codes)).loss
    least = space.losses.reshape(2, 8).min(axis=1).mean()
    assert found["to_best"] == pytest.approx(lives.rounds @ losses / 300 - least, **CLOSE)
    assert found["last"] == pytest.approx(losses[-1] - least, **CLOSE)
    assert (found["distinct"], found["explored"]) == (len(set(lives.codes.tolist())), lives.codes.size - 1)


@pytest.mark.parametrize("name", ["ridge", "adagrad"])
def test_regret_falls_with_the_rounds(name: str) -> None:
    space = ladder_space()

    def regret(rounds: int, seeds: int) -> np.ndarray:
        lived = [run_algorithm2(space, rounds, seed=s, learner=LEARNERS[name]) for s in range(seeds)]
        found = [run_sides(space, lives) for lives in lived]
        for one in found:  # Theorem 3 in the run; the rules are optimal, so that the left side's first term is no gain
            assert one.left <= one.most + 1e-12 <= one.right + 2e-12
            assert one.to_reference >= -1e-12
        return np.array([(one.left, one.most) for one in found]).mean(axis=0)

    assert (regret(20_000, 2) < 0.7 * regret(500, 12)).all()


# --- the slope --------------------------------------------------------------------------------------------------------


def test_the_slope_of_a_power_is_its_exponent() -> None:
    rounds = [10**3, 10**4, 10**5, 10**6]
    slope = log_log_slope(rounds, [[2 * n**-0.3] * 5 for n in rounds])
    assert tuple(slope) == pytest.approx((-0.3, 2.0, -0.3, -0.3))


def test_the_interval_covers_the_slope_about_as_often_as_it_says() -> None:
    rng, rounds, covered = np.random.default_rng(4), np.array([10**3, 10**4, 10**5, 10**6]), 0
    for _ in range(100):
        noisy = rng.exponential(rounds[:, np.newaxis] ** -0.3, (4, 20))
        slope = log_log_slope(rounds.tolist(), noisy.tolist(), draws=300)
        covered += slope.low <= -0.3 <= slope.high
    assert covered >= 85


def test_there_is_no_slope_of_what_is_negative() -> None:
    assert np.isnan(log_log_slope([10, 100], [[0.1, 0.2], [-0.2, 0.1]])).all()
