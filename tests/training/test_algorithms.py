"""Presets, what they resolve to, what they say of themselves, and what is refused."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError
from lols.training.adaptive import RECENT, AdaptiveBeta
from lols.training.algorithms import PRESETS, Algorithm, algorithm, explain, schedules, searn_alpha
from lols.training.schedules import Constant, Geometric, LinearSchedule, schedule

# --- presets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "roll_in", "roll_out"),
    [
        ("lols", "learned", "mixture"),
        ("aggrevate", "learned", "reference"),
        ("dagger", "mixture", "none"),
        ("cloning", "reference", "none"),
        ("searn", "mixture", "mixture"),
    ],
)
def test_a_preset_is_a_choice_of_roll_in_and_roll_out(name: str, roll_in: str, roll_out: str) -> None:
    made = algorithm(name)
    assert (made.name, made.roll_in, made.roll_out) == (name, roll_in, roll_out)
    assert made.cites


def test_lols_has_beta_one_half_and_one_coin_per_state_and_returns_the_average() -> None:
    made = algorithm()
    assert (made.name, made.beta, made.mix, made.ties, made.returned) == ("lols", 0.5, "state", "first", "average")


def test_dagger_rolls_in_with_the_reference_first_and_with_the_learner_at_last() -> None:
    _, rolling_in = schedules(algorithm("dagger"))
    assert rolling_in is not None
    assert rolling_in(np.array([0, 50, 100]), 101).tolist() == [1.0, 0.5, 0.0]


def test_searn_draws_at_every_step_and_trains_every_pass_from_scratch() -> None:
    made = algorithm("searn")
    assert (made.mix, made.restart) == ("step", True)


def test_options_override_a_preset_and_none_leaves_it_alone() -> None:
    made = algorithm("lols", beta=0.2, mix="expected", roll_in=None)
    assert (made.beta, made.mix, made.roll_in) == (0.2, "expected", "learned")
    assert PRESETS["lols"].beta == 0.5


def test_an_algorithm_may_be_given_instead_of_a_name() -> None:
    mine = Algorithm(name="mine", roll_in="reference", roll_out="learned")
    assert algorithm(mine, ties="random") == Algorithm(
        name="mine", roll_in="reference", roll_out="learned", ties="random"
    )


def test_adding_a_preset_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "coached", Algorithm(name="coached", roll_in="reference", roll_out="learned"))
    assert "with the learned policy" in explain("coached")
    data = tagging_data(4, labels=3, words=10)
    model = lols.train(
        tagging_space(labels=3), data, tagging_references()["optimal"], algorithm="coached", passes=1, compiled=False
    )
    assert model.about["algorithm"]["name"] == "coached"


# --- explain ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("lols", {}, ["Chang", "learned policy", "probability β", "0.5", "one per state", "average of the weights"]),
        ("lols", {"beta": "auto"}, ["probability that the teacher beats the learner"]),
        ("lols", {"mix": "rollout"}, ["one per roll-out, as Algorithm 1 is printed"]),
        ("lols", {"mix": "expected"}, ["both roll-outs are done"]),
        ("lols", {"mix": "example"}, ["one per example"]),
        ("lols", {"ties": "random", "returned": "drawn"}, ["a random action wins", "drawn uniformly"]),
        ("lols", {"horizon": 3}, ["stops after 3 steps"]),
        ("lols", {"sample_steps": 4, "sample_actions": 5}, ["4 random steps", "5 actions"]),
        (
            "lols",
            {"prune": 3},
            ["every legal action; the learner rolls out the 3 actions it prefers and the teacher's"],
        ),
        ("lols", {"beta": "geometric:0.001"}, ["geometric:0.001"]),
        ("aggrevate", {}, ["Ross & Bagnell", "roll out   with the reference"]),
        ("dagger", {}, ["Ross, Gordon & Bagnell", "linear:1:0", "not at all"]),
        ("cloning", {}, ["roll in    with the reference", "not at all"]),
        ("searn", {}, ["Daumé", "(1 - α)^t", "one half midway", "one at every step", "from scratch", "mixture over"]),
        ("searn", {"alpha": 1e-5}, ["α = 1e-05"]),
    ],
)
def test_explain_says_in_words_what_was_resolved(name: str, options: dict[str, object], words: list[str]) -> None:
    text = explain(name, **options)
    for word in words:
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_explain_leaves_out_what_has_no_effect() -> None:
    assert "β" not in explain("aggrevate") and "coin" not in explain("aggrevate")
    assert "horizon" not in explain("lols") and "it prefers" not in explain("lols")
    for out in ("none", "reference"):
        assert "it prefers" not in Algorithm(name="mine", roll_out=out, prune=3).explain()


# --- contradictions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("aggrevate", {"beta": 0.2}, "beta has no effect: roll_out is 'reference', not 'mixture'"),
        ("lols", {"roll_out": "learned", "beta": 0.2}, "beta has no effect: roll_out is 'learned', not 'mixture'"),
        ("cloning", {"mix": "state"}, "mix has no effect: roll_out is 'none', not 'mixture'"),
        ("lols", {"beta_in": 0.5}, "beta_in has no effect: roll_in is 'learned', not 'mixture'"),
        ("lols", {"alpha": 0.1}, "alpha has no effect: only searn has it"),
        ("dagger", {"horizon": 2}, "horizon has no effect: there are no roll-outs"),
        ("dagger", {"prune": 2}, "prune has no effect: the learner rolls nothing out"),
        ("aggrevate", {"prune": 2}, "prune has no effect: the learner rolls nothing out"),
        ("lols", {"prune": 0}, "prune is 0; it must be at least 1, or None for all"),
        ("searn", {"beta": 0.5}, "beta has no effect: searn's β follows from alpha"),
        ("searn", {"beta_in": 0.5}, "beta_in has no effect"),
        ("searn", {"returned": "last"}, "returned has no effect: searn returns its mixture"),
        ("searn", {"roll_out": "reference"}, "roll_out must be 'mixture'"),
        ("searn", {"mix": "state"}, "mix 'step'"),
        ("lols", {"mix": "step", "beta": "auto"}, "beta='auto' needs one coin per roll-out"),
        ("lols", {"roll_in": "teacher"}, "roll_in is 'teacher': choose one of reference, learned, mixture"),
        ("lols", {"roll_out": "both"}, "roll_out is 'both'"),
        ("lols", {"mix": "coin"}, "mix is 'coin'"),
        ("lols", {"ties": "last"}, "ties is 'last'"),
        ("lols", {"returned": "best"}, "returned is 'best'"),
        ("lols", {"horizon": 0}, "horizon is 0; it must be at least 1"),
        ("lols", {"sample_actions": 1}, "a comparison needs at least 2"),
        ("searn", {"alpha": 1.0}, "alpha is 1.0; it must be between 0 and 1"),
        ("lols", {"beta": 1.5}, "beta '1.5' leaves [0, 1]"),
        ("lols", {"beta": "linear:2:0"}, "leaves [0, 1]"),
        ("lols", {"beta": "often"}, "cannot read beta 'often'"),
        ("lols", {"beta": "linear:1"}, "cannot read beta 'linear:1'"),
        ("lols", {"beta": float("nan")}, "beta 'nan' leaves [0, 1]"),
        ("lols", {"rate": 3}, "unknown option 'rate': it is the learner's: learner=lols.LearnerSettings(rate=...)"),
        ("lols", {"roll": "in"}, "unknown option 'roll': did you mean roll_"),
        ("lols", {"luck": 3}, "unknown option 'luck': choose from roll_in, roll_out, beta"),
        ("learn", {}, "unknown algorithm 'learn': choose one of lols, aggrevate"),
    ],
)
def test_what_cannot_be_honoured_is_an_error_in_one_line(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        algorithm(name, **options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_dagger_takes_a_beta_for_its_roll_in_or_says_why_not() -> None:
    # `beta` is the roll-in's where that is the only mixture; DAgger's roll-in has a `beta_in` of its own.
    made = Algorithm(name="mine", roll_in="mixture", roll_out="none")
    assert schedules(algorithm(made, beta=0.3))[1] == Constant(0.3)
    with pytest.raises(ConfigurationError, match="beta has no effect"):
        algorithm("dagger", beta=0.3)


# --- schedules --------------------------------------------------------------------------------------------------------


def test_schedules_are_read_from_numbers_and_words_and_print_as_they_are_read() -> None:
    for text, made in (
        ("0.5", Constant(0.5)),
        ("linear:1:0.25", LinearSchedule(1, 0.25)),
        ("geometric:0.01", Geometric(0.01)),
    ):
        assert schedule(text) == made and str(made) == text and schedule(made) is made


def test_a_schedule_gives_the_probability_of_the_reference_in_every_round() -> None:
    rounds = np.array([0, 1, 2, 10])
    assert Constant(0.3)(rounds, 11).tolist() == [0.3] * 4
    assert LinearSchedule(1.0, 0.5)(rounds, 11).tolist() == [1.0, 0.95, 0.9, 0.5]
    assert Geometric(0.5)(rounds, 11).tolist() == [1.0, 0.5, 0.25, 0.5**10]


def test_auto_is_measured_and_not_a_schedule() -> None:
    assert schedules(algorithm("lols", beta="auto"))[0] is None


def test_auto_follows_whoever_completes_searches_more_cheaply() -> None:
    level, teacher, learner = AdaptiveBeta(), AdaptiveBeta(), AdaptiveBeta()
    level.observe(np.tile([0.0, 2.0, 2.0], (2, 1)))
    teacher.observe(np.tile([0.0, 0.0, 2.0], (2, 1)))
    learner.observe(np.tile([0.0, 2.0, 0.0], (2, 1)))
    assert (AdaptiveBeta().beta, level.beta, teacher.beta, learner.beta) == (1.0, 0.5, 1.0, 0.0)


def test_auto_is_the_probability_that_the_teacher_is_better() -> None:
    rng = np.random.default_rng(0)
    losses = np.column_stack([np.zeros(40), 2.0 + rng.random(40), 1.9 + rng.random(40)])
    adaptive = AdaptiveBeta()
    adaptive.observe(losses)
    weights = np.ones(1)  # as `observe` should weigh them, written out
    for count in range(2, 41):
        rate = RECENT / (count + RECENT - 1.0)
        weights = np.append((1.0 - rate) * weights, rate)
    difference = losses[:, 1] - losses[:, 2]
    mean, spread = np.average(difference, weights=weights), (weights**2).sum()
    variance = np.average((difference - mean) ** 2, weights=weights) / (1.0 - spread)
    expected = NormalDist().cdf(-mean / np.sqrt(variance * spread))
    assert weights.sum() == pytest.approx(1.0) and adaptive.weights == pytest.approx(spread)
    assert 0.01 < expected < 0.99 and adaptive.beta == pytest.approx(expected)


def test_auto_forgets_what_is_long_past() -> None:
    adaptive = AdaptiveBeta()
    adaptive.observe(np.tile([0.0, 1.0, 9.0], (300, 1)))
    before = adaptive.beta
    adaptive.observe(np.tile([0.0, 9.0, 1.0], (1500, 1)))
    assert before > 0.95 and adaptive.beta < 0.05


def test_auto_trains_and_reports_its_beta() -> None:
    data = tagging_data(12, labels=3, words=10)
    for name, low, high in (("optimal", 0.5, 1.0), ("bad", 0.0, 0.5)):
        reference = tagging_references()[name]
        model = lols.train(tagging_space(labels=3), data, reference, beta="auto", passes=3, compiled=False)
        assert low <= model.report["beta"] <= high


def test_searn_leaves_the_reference_at_one_half_midway_unless_alpha_is_given() -> None:
    for rounds in (2, 10, 1000, 10**7):
        assert (1 - searn_alpha(algorithm("searn"), rounds)) ** (rounds / 2) == pytest.approx(0.5)
    assert searn_alpha(algorithm("searn", alpha=1e-5), 10) == 1e-5


@pytest.mark.parametrize("name", ["a" * 5000, 5, ["lols"], None])
def test_an_algorithm_is_named_or_given(name: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"unknown algorithm '.*': choose one of lols") as caught:
        lols.algorithm(name)
    assert len(str(caught.value)) < 300
