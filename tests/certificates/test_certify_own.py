"""Certificates of policies that are not linear: through the lock-step driver, with numbers equal to the fused one's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lols
from lols.certificates.fitting import starting_state
from lols.certificates.training import training_of
from lols.errors import ConfigurationError, LolsError
from lols.policies import LinearPolicy
from tests.certificates.certify_worlds import KNOWING, LAZY, SIGHTED, sentences
from tests.engine.random_space import VARIANTS, random_data


class Own:
    """A linear policy as one that the library knows nothing of."""

    def __init__(self, space, settings, weights):
        self.made_with = space, settings
        self.weights = weights
        self.scorer = LinearPolicy(space, settings, weights=weights, compiled=False)

    def costs(self, states):
        return self.scorer.costs(states)

    def update(self, states, costs, weights):
        raise AssertionError("a policy that is certified does not learn")

    def anew(self):
        return Learning(*self.made_with, compiled=False)

    def onward(self):
        made = self.anew()
        made.learner.load(starting_state(made.learner, self.weights))
        return made


class Learning(LinearPolicy):
    """The same while it learns."""

    def averaged(self):
        return Own(self.space, self.learner.settings, super().averaged())

    def frozen(self):
        return Own(self.space, self.learner.settings, super().frozen())


def as_own(model):
    """The same model, whose policy is not known to be linear."""
    settings = replace(training_of(model).settings, slack=None)
    return model.replaced(policy=Own(model.space, settings, model.policy))


def numbers(certificate):
    """All of a certificate but the advice, which knows of margins of linear policies only."""
    return {k: v for k, v in certificate.as_dict().items() if k not in ("advice", "verdict", "rule")}


@pytest.mark.parametrize("name", ["keyed", "full", "closed", "pictured"])
@pytest.mark.parametrize("how", [{"beta": 0.3}, {"algorithm": "cloning"}, {"roll_in": "mixture", "beta_in": 0.5}])
def test_the_numbers_are_those_of_the_linear_policy(name, how):
    variant = VARIANTS[name]
    data = random_data(7, variant, count=16)
    model = lols.train(variant.space, data[:3], variant.reference, passes=2, seed=3, compiled=False, **how)
    linear = lols.certify(model, data, variant.reference, resamples=20)
    own = lols.certify(as_own(model), data, variant.reference, resamples=20)
    assert numbers(own) == numbers(linear)


@pytest.mark.parametrize("threads", [1, 2])
def test_so_they_are_where_other_policies_of_the_class_are_better(threads):
    data = sentences(40)
    model = lols.train(SIGHTED, data[:1], KNOWING, passes=1, compiled=False, seed=1)
    linear = lols.certify(model, data, KNOWING, resamples=20)
    own = lols.certify(as_own(model), data, KNOWING, resamples=20, threads=threads)
    assert linear.in_class.value > 0.0 and linear.fitted != ("the policy itself",) * 2
    assert numbers(own) == numbers(linear) and own.verdict == linear.verdict


class Constant:
    """Takes the first action, whatever it sees."""

    def costs(self, states):
        return np.tile(np.arange(states.actions, dtype=np.float64), (len(states), 1))

    def update(self, states, costs, weights):
        pass


def test_a_policy_that_cannot_learn_on_has_no_class():
    data = sentences(20)
    model = lols.train(SIGHTED, data, KNOWING, policy=Constant(), passes=1, compiled=False)
    made = lols.certify(model, data, KNOWING, resamples=10)
    wrong = np.mean([sum(each["bits"]) for each in data])
    assert made.loss.value == pytest.approx(wrong) == pytest.approx(made.hindsight.value)
    assert made.in_class.value == 0.0 and made.fitted == ("the policy itself",) * 2
    assert any("Constant has no method `onward`" in note for note in made.notes)
    assert "let the network see more" in made.advice.sentence


def test_policies_that_decide_at_random_are_refused():
    class Random(Constant):
        random = True

    class Forgetful(Constant):
        def __init__(self):
            self.calls = 0

        def costs(self, states):
            self.calls += 1
            return np.tile([float(self.calls % 3 == 0), 0.5], (len(states), 1))

    data = sentences(20)
    for policy, kind, line in (
        (Random(), ConfigurationError, "draws its actions at random at every state"),
        (Forgetful(), LolsError, "decides differently if it is asked again: its costs must depend on the state alone"),
    ):
        model = lols.train(SIGHTED, data, KNOWING, policy=policy, passes=1, compiled=False)
        with pytest.raises(kind, match=line):
            lols.certify(model, data, LAZY, resamples=10)
