"""Certificates: every number beside a slow twin, and the advice in worlds where the bottleneck is known."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.certificates import advice
from lols.certificates.advice import ByMargin, Regrets, advise
from lols.certificates.certify import _trained
from lols.certificates.deviations import collect_deviations
from lols.certificates.fitting import Fit, fit_policy
from lols.certificates.intervals import Estimate, estimates
from lols.certificates.training import Training, training_of
from lols.contract.choosing import Draw, drawn, some
from lols.contract.examples import Examples
from lols.datasets.small_worlds import TwoSteps, out_reference
from lols.engine.drivers.fused import FusedDriver
from lols.errors import ConfigurationError, LolsError
from lols.learners.settings import LearnerSettings
from lols.specification import Choices, SlowPolicy, SlowSearch
from lols.training.algorithms import LOLS
from tests.certificates.certify_worlds import BLIND, KNOWING, LAZY, SIGHTED, TRAP, sentences
from tests.engine.random_space import VARIANTS, random_data
from tests.engine.twin import weights_by_feature

# --- the slow twin ----------------------------------------------------------------------------------------------------


class Twin:
    """A policy on one example, followed step by step; the loss is always that of a whole result."""

    def __init__(self, variant, example, policy):
        shared, single = weights_by_feature(policy)
        weights = SlowPolicy([shared], [{k: float(v[0]) for k, v in single.items()}], [1.0], policy.code)
        self.search = SlowSearch(variant.space, variant.reference, example, weights, Choices())

    def learned(self, s):
        return self.search.learner(s, self.search.legal(s), 0, 0)

    def end(self, s, act):
        while self.search.legal(s):
            s = self.search.after(s, act(s))
        return self.search.loss(s)

    def losses(self, s, act):
        """What the whole result costs after each action here, somebody going on."""
        return {a: self.end(self.search.after(s, a), act) for a in self.search.legal(s)}

    def path(self):
        s = self.search.begin()
        while self.search.legal(s):
            yield s, self.learned(s)
            s = self.search.after(s, self.learned(s))

    def regret(self, act):
        """How much more the actions of the policy cost than the best ones, somebody going on."""
        made = []
        for s, a in self.path():
            losses = self.losses(s, act)
            made.append(losses[a] - min(losses.values()))
        return made


@pytest.mark.parametrize("name", ["keyed", "full", "closed", "pictured"])
def test_losses_and_regrets_are_those_of_the_twin(name):
    variant = VARIANTS[name]
    data = random_data(7, variant, count=14)
    model = lols.train(variant.space, data[:3], variant.reference, passes=1, seed=3, compiled=False, beta=0.3)
    made = lols.certify(model, data, variant.reference, resamples=10)
    twins = [Twin(variant, example, model.policy) for example in data]
    loss = np.array([twin.end(twin.search.begin(), twin.learned) for twin in twins])
    teacher = np.array([twin.end(twin.search.begin(), lambda s, t=twin: t.search.teacher(s, 0)) for twin in twins])
    own = [twin.regret(twin.learned) for twin in twins]
    taught = [twin.regret(lambda s, t=twin: t.search.teacher(s, 0)) for twin in twins]
    assert made.loss.value == pytest.approx(loss.mean())
    assert made.teacher_loss.value == pytest.approx(teacher.mean())
    assert made.regret_to_teacher.value == pytest.approx((loss - teacher).mean())
    assert made.hindsight.value == pytest.approx(np.mean([sum(r) for r in own]), abs=1e-6)
    assert made.decisions == sum(len(r) for r in own)
    right = [0.3 * sum(a) + 0.7 * sum(b) for a, b in zip(taught, own, strict=True)]
    assert made.theorem.beta == 0.3
    assert made.theorem.right.value == pytest.approx(np.mean(right), abs=1e-6)
    left = 0.3 * made.regret_to_teacher.value + 0.7 * made.in_class.value
    assert made.theorem.left.value == pytest.approx(left, abs=1e-9)
    assert made.theorem.left.value <= made.theorem.right.value + 1e-6
    assert (loss - teacher <= [sum(r) + 1e-6 for r in taught]).all()
    at = [sum(r[k] for r in own if k < len(r)) / len(data) for k in range(len(made.by_step))]
    assert [row.hindsight.value for row in made.by_step] == pytest.approx(at, abs=1e-6)
    decisions = sum(
        row.decisions for row in lols.certify(model, data, variant.reference, resamples=1, top=99).by_decision
    )
    assert decisions == sum(value > 1e-9 for r in own for value in r)


def test_training_is_judged_at_its_own_states_and_costs():
    variant = VARIANTS["full"]
    data = random_data(3, variant, count=12)
    model = lols.train(variant.space, data[:2], variant.reference, algorithm="cloning", passes=1, compiled=False)
    made = lols.certify(model, data, variant.reference, resamples=5)
    wrong = []
    for example in data:
        twin, s = Twin(variant, example, model.policy), None
        s, own = twin.search.begin(), 0
        while twin.search.legal(s):
            teacher = twin.search.teacher(s, 0)
            own += twin.learned(s) != teacher
            s = twin.search.after(s, teacher)
        wrong.append(own)
    assert made.training.hindsight.value == pytest.approx(np.mean(wrong))
    assert made.theorem is None
    assert made.roll_in == "reference"


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_what_a_policy_does_with_stored_features_is_what_the_engine_does(name):
    variant = VARIANTS[name]
    data = random_data(1, variant, count=6)
    model = lols.train(variant.space, data, variant.reference, passes=1, compiled=False)
    examples = Examples(variant.space, data)
    training = training_of(model)
    with FusedDriver(variant.space, examples, variant.reference, compiled=False) as driver:
        taken = driver.predict(model.policy, model.plan).all_actions()
        made = collect_deviations(model, driver, variant.reference, training.deviating("learned", "learned"))
    assert made.choices(model.policy).tolist() == taken.tolist()
    best = made.choices(model.policy, best=True)
    assert (made.regrets(best) == 0.0).all()
    assert made.states_of(np.array([2, 0])).tolist() == [*range(*made.first[2:4]), *range(*made.first[:2])]


def test_compiled_or_not_and_on_any_number_of_threads_it_is_the_same():
    variant = VARIANTS["full"]
    data = random_data(5, variant, count=16)
    model = lols.train(variant.space, data[:4], variant.reference, passes=2)
    plain = model.replaced(compiled=False)
    made = lols.certify(model, data, variant.reference, resamples=20, threads=2)
    assert lols.certify(plain, data, variant.reference, resamples=20).as_dict() == made.as_dict()
    assert lols.certify(model, data, variant.reference, resamples=20, threads=1).as_dict() == made.as_dict()


# --- the bottleneck is known ------------------------------------------------------------------------------------------


def certified(space, reference, trained, count=60, **options):
    model = lols.train(space, trained, reference, compiled=False, **options)
    return lols.certify(model, sentences(count, seed=9), reference, resamples=200, names=["even", "odd"])


def test_a_teacher_that_rolls_out_badly_is_the_bottleneck():
    world = [out_reference()] * 20
    model = lols.train(TwoSteps.space, world, TwoSteps.teacher, roll_out="reference", compiled=False)
    made = lols.certify(model, world, TwoSteps.teacher, resamples=50)
    assert made.verdict == "the teacher is the bottleneck"
    assert "roll out with a mixture" in made.advice.sentence
    assert made.in_class.value == pytest.approx(made.loss.value)
    assert made.training.in_class.value == made.retrained.value == 0.0
    freed = lols.train(TwoSteps.space, world, TwoSteps.teacher, roll_out="learned", compiled=False)
    assert lols.certify(freed, world, TwoSteps.teacher, resamples=50).loss.value == 0.0


def test_a_teacher_that_is_imitated_is_the_bottleneck():
    made = certified(SIGHTED, LAZY, sentences(40), algorithm="cloning")
    assert made.loss == made.teacher_loss
    assert made.verdict == "the teacher is the bottleneck"
    assert "roll in with the learned policy and roll out with a mixture" in made.advice.sentence
    assert certified(SIGHTED, LAZY, sentences(40)).loss.value == 0.0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("options", [{}, {"roll_out": "learned"}, {"algorithm": "aggrevate"}, {"learner": "csoaa"}])
def test_features_that_do_not_show_the_difference_are_the_bottleneck(options):
    made = certified(BLIND, KNOWING, sentences(40), **options)
    assert made.verdict == "the features are the bottleneck"
    assert made.hindsight.value == pytest.approx(made.loss.value)
    assert made.hindsight.value > 1.0
    assert not made.in_class.positive


@pytest.mark.thinned(2)
@pytest.mark.parametrize("options", [{}, {"roll_out": "learned"}, {"algorithm": "aggrevate"}, {"rate": 1e-7}])
def test_a_policy_that_saw_too_little_wants_more_passes(options):
    rate = options.pop("rate", None)
    settings = LearnerSettings("hinge", "adagrad", rate=rate)
    made = certified(SIGHTED, KNOWING, sentences(1), passes=1, learner=settings, **options)
    assert made.loss.value > 0.5
    assert made.verdict == "more passes would help"
    assert made.in_class.value == pytest.approx(made.hindsight.value, rel=0.2)
    assert made.fitted[0] != "the policy itself"
    assert certified(SIGHTED, KNOWING, sentences(60), **options).verdict == "locally optimal"


def test_a_policy_that_only_two_changes_would_help_is_locally_optimal():
    data = [{"words": [0, 0], "bits": [0, 0]}] * 20
    model = lols.train(TRAP, data, LAZY, roll_out="learned", compiled=False)
    made = lols.certify(model, data, LAZY, resamples=20)
    assert (made.loss.value, made.hindsight.value, made.in_class.value) == (0.5, 0.0, 0.0)
    assert made.verdict == "locally optimal"
    assert "several decisions must change at once" in made.advice.sentence
    assert made.by_decision == []


def test_each_rule_holds_where_it_says_so():
    settings = LearnerSettings("hinge", "adagrad")
    taught = Training(LOLS, 0.5, 0.0, settings, True, 5)
    alone = replace(taught, beta=0.0)
    loss, none = Estimate(1.0, 0.9, 1.1), Estimate(0.0, 0.0, 0.0)
    much = Estimate(1.0, 0.8, 1.2)

    def verdict(own, retrained, training=taught):
        made = advise(loss, loss, Regrets(*own), retrained, training, 10)
        return made.rule, made.verdict

    small = Estimate(0.04, 0.03, 0.05)
    assert verdict((small, small), much) == (1, advice.LOCALLY_OPTIMAL)
    assert verdict((Estimate(0.04, 0.03, 0.051), none), much) == (5, advice.FEATURES)
    assert verdict((much, much), none, alone) == (2, advice.PASSES)
    assert verdict((much, much), much) == (3, advice.PASSES)
    assert verdict((much, much), Estimate(0.5, 0.4, 0.6)) == (3, advice.PASSES)
    assert verdict((much, much), Estimate(0.49, 0.4, 0.6)) == (4, advice.REFERENCE)
    assert verdict((much, much), Estimate(0.5, 0.0, 1.0)) == (4, advice.REFERENCE)
    assert verdict((much, much), none) == (4, advice.REFERENCE)
    assert verdict((much, Estimate(0.5, 0.0, 1.0)), much) == (5, advice.FEATURES)
    assert verdict((much, Estimate(0.049, 0.04, 0.06)), much) == (5, advice.FEATURES)
    assert verdict((much, Estimate(0.05, 0.04, 0.06)), much) == (3, advice.PASSES)
    with_margin = advise(loss, loss, Regrets(much, none), none, taught, 10, ByMargin("cost", much))
    assert (with_margin.rule, with_margin.verdict) == (6, advice.MARGIN)
    assert (
        advise(loss, loss, Regrets(much, none), none, taught, 10, ByMargin("cost", Estimate(1.0, -0.1, 2.0))).rule == 5
    )
    assert {*advice.VERDICTS} == {
        advice.LOCALLY_OPTIMAL, advice.PASSES, advice.REFERENCE, advice.FEATURES, advice.MARGIN,
    }  # fmt: skip


# --- parts ------------------------------------------------------------------------------------------------------------


def _weights(policy):
    return {k: float(v[0]) for k, v in weights_by_feature(policy)[1].items() if v[0]}


def test_a_fit_that_goes_on_from_a_policy_begins_where_it_stands():
    variant = VARIANTS["pictured"]
    data = random_data(2, variant, count=12)
    for learner in (LearnerSettings("hinge", "adagrad"), LearnerSettings("csoaa", "nag", bits=6)):
        model = lols.train(variant.space, data, variant.reference, learner=learner, compiled=False)
        training = training_of(model)
        assert training.settings == learner
        with FusedDriver(variant.space, Examples(variant.space, data), variant.reference, compiled=False) as driver:
            made = collect_deviations(model, driver, variant.reference, training.deviating("learned", "learned"))
        equal = made.with_costs(np.where(np.isfinite(made.costs), 0.0, np.inf))
        if learner.reduction == "hinge":  # where all actions are equally good, there is nothing to learn
            same = fit_policy(equal, np.arange(12), training, 0, model.policy, Fit("onward", learner, True))
            assert _weights(same) == pytest.approx(_weights(model.policy))
            assert equal.choices(same).tolist() == made.choices(model.policy).tolist()
        on = fit_policy(made, np.arange(12), training, 0, model.policy, Fit("onward", learner, True))
        assert np.isfinite(on.stack).all()


def test_halves_are_judged_by_what_the_other_half_taught():
    """Bits that follow from the words in one half only cannot be learned for the other."""
    data = [{"words": [k, k], "bits": [k % 2] * 2} for k in range(40)]  # every word comes in one example
    model = lols.train(SIGHTED, data[:1], KNOWING, passes=1, compiled=False)
    made = lols.certify(model, data, KNOWING, resamples=10)
    assert made.hindsight.value > 0.8
    assert made.in_class.value <= 0.0


@settings(max_examples=15)
@given(st.integers(1, 30), st.integers(1, 12), st.lists(st.integers(1, 10), max_size=5), st.integers(0, 9))
def test_what_is_drawn_does_not_depend_on_the_pieces(limit, first, pieces, seed):
    draw = Draw(limit, seed)
    through: list[int] = []
    for size in (first, *pieces):
        begun = draw.count
        through += (begun + draw.more(size)).tolist()
    assert [through[k] for k in draw.chosen()] == drawn(draw.count, limit, seed).tolist()
    assert draw.chosen().size == min(limit, draw.count)


@pytest.mark.parametrize("name", ["full", "pictured"])
def test_some_examples_are_those_that_would_be_encoded(name):
    variant = VARIANTS[name]
    data = random_data(4, variant, count=9)
    chosen = np.array([7, 2, 4])
    part, alone = some(Examples(variant.space, data), chosen), Examples(variant.space, [data[k] for k in chosen])
    for k in range(3):
        for one, other in zip(part.example(k), alone.example(k), strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    model = lols.train(variant.space, data, variant.reference, passes=1, compiled=False)
    assert model.run(part).all_actions().tolist() == model.run(alone).all_actions().tolist()
    assert model.losses(part).tolist() == model.losses(alone).tolist()


def test_intervals_are_as_wide_as_theory_says():
    values = np.random.default_rng(0).normal(2.0, 3.0, 400)
    (one,) = estimates([values], seed=1)
    assert one.value == pytest.approx(values.mean())
    assert one.high - one.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert estimates([values], seed=1) == [one]
    assert estimates([values], seed=2) != [one]


def test_a_random_teacher_and_long_ways_are_no_trouble():
    model = lols.train(BLIND, sentences(5, length=12), KNOWING, passes=1, compiled=False)
    drawing = lols.Reference(action=lambda x, y, s, rng: y.bits[s[0]] if lols.uniform(rng) < 0.5 else 0, name="drawing")
    made = lols.certify(model, sentences(30, length=12), drawing, limit=20, resamples=10)
    assert (made.examples, made.of) == (20, 30)
    assert [row.step for row in made.by_step] == [f"{k}0-{k + 1}0 %" if k else "0-10 %" for k in range(10)]
    assert sum(row.hindsight.value for row in made.by_step) == pytest.approx(made.hindsight.value)
    assert sum(row.decisions for row in made.by_step) == made.decisions == 240
    assert sum(row.share for row in made.by_decision) == pytest.approx(1.0)
    assert 1.0 < made.teacher_loss.value < 5.0
    plain = json.loads(json.dumps(made.as_dict()))
    assert set(plain["loss"]) == {"value", "low", "high"}
    assert plain["deviation_regret_hindsight"]["value"] == made.hindsight.value
    assert str(made).splitlines()[-1] == made.advice.sentence


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "options",
    [
        {"beta": "auto"},
        {"algorithm": "dagger", "beta_in": 0.3},
        {"roll_in": "mixture", "beta": 0.4, "ties": "random"},
        {"sample_steps": 2, "prune": 1, "returned": "last"},
        {"learner": "secoc"},
        {"learner": LearnerSettings("csoaa", "ridge", max_features=16)},
        {"learner": LearnerSettings("csoaa", "sketch", directions=2)},
        {"learner": LearnerSettings("hinge", "nag", bits=5)},
        {"learner": LearnerSettings("hinge", "perceptron")},
    ],
    ids=str,
)
def test_every_kind_of_training_has_a_certificate(options):
    model = lols.train(SIGHTED, sentences(2), KNOWING, passes=1, compiled=False, **options)
    made = lols.certify(model, sentences(30, seed=3), KNOWING, resamples=20)
    assert made.verdict == "more passes would help"
    assert made.in_class.value > 0.5 * made.loss.value > 0.0
    beta = {"dagger": None, 0.4: 0.4}.get(options.get("algorithm", options.get("beta")), 0.5)
    assert (made.theorem and made.theorem.beta) == beta


def test_mistakes_are_named():
    data = sentences(20)
    model = lols.train(SIGHTED, data, KNOWING, passes=1, compiled=False)
    for what, match in (
        (lambda: lols.certify(model, data), "there is no teacher: give reference="),
        (lambda: lols.certify(model, data, "optimal"), "reference is a name, but the model is of your own space"),
        (lambda: lols.certify(model, data, KNOWING, limit=3), "limit is 3: a certificate needs at least 12 examples"),
        (lambda: lols.certify(model, data, KNOWING, names=["one"]), "names has 1 entries; the space has 2 actions"),
        (lambda: lols.certify(model, data, KNOWING, resamples=0), "resamples is 0"),
        (lambda: lols.certify(lols.Pipeline(), data), "Pipeline: certify one policy at a time"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            what()
    with pytest.raises(LolsError, match="there are 5 examples"):
        lols.certify(model, data[:5], KNOWING)
    mixture = lols.train(SIGHTED, data, KNOWING, algorithm="searn", passes=2, compiled=False)
    with pytest.raises(ConfigurationError, match="draws one of 2 policies at every state"):
        lols.certify(mixture, data, KNOWING)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [1e-130, 0.5])
def test_a_small_beta_keeps_illegal_actions_illegal(beta: float) -> None:
    """That of `beta="auto"` under a bad teacher is next to 0: times an infinite cost, it must not be NaN."""
    own, taught = (np.array([[cost, 0.0, np.inf]], np.float32) for cost in (2.0, 4.0))
    made: Any = SimpleNamespace(costs=own, with_costs=lambda costs: costs)
    training: Any = SimpleNamespace(beta=beta)
    costs, _ = _trained(made, SimpleNamespace(costs=taught), None, None, None, training)  # type: ignore[arg-type]
    np.testing.assert_allclose(costs, [[2.0 + 2.0 * beta, 0.0, np.inf]])


def test_the_function_is_not_hidden_by_a_module_of_its_name():
    assert callable(lols.certify)
    assert lols.certify.__module__ == "lols.certificates.certify"
