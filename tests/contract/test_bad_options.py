"""Messages about options that contradict each other, settings out of range and incomplete spaces."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import lols
from lols.errors import ConfigurationError
from tests.contract.bad_space import FINE, REFERENCE, SPACE, data

# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"roll_out": "reference", "beta": 0.5}, "beta has no effect: roll_out is 'reference', not 'mixture'"),
        ({"algorithm": "aggrevate", "mix": "state"}, "mix has no effect"),
        ({"algorithm": "dagger", "beta": 0.5}, "beta has no effect"),
        ({"beta_in": 0.5}, "beta_in has no effect: roll_in is 'learned', not 'mixture'"),
        ({"alpha": 0.1}, "alpha has no effect: only searn has it"),
        ({"beta": 2}, "beta '2' leaves [0, 1]"),
        ({"passes": 0}, "passes is 0; it must be at least 1"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"tricks": {"luck": True}}, "unknown trick 'luck'"),
        ({"learner": "svm"}, "unknown learner 'svm': choose one of csoaa, hinge, secoc"),
        ({"update": "adam"}, "unknown update 'adam'"),
        ({"learner": "csoaa", "update": "perceptron"}, "csoaa cannot use perceptron"),
        ({"learner": lols.LearnerSettings(), "update": "nag"}, "update has no effect"),
        ({"learner": "secoc"}, "secoc with adagrad has no form for `action_features`"),
        ({"learner": "csoaa", "update": "ridge"}, "csoaa with ridge has no form for `action_features`"),
        ({"resume": True}, "resume has no effect: name the checkpoint file"),
        ({"luck": 7}, "unknown option 'luck': choose from roll_in, roll_out, beta"),
        ({"pases": 7}, "unknown option 'pases': did you mean passes?"),
        ({"rate": 0.1}, "unknown option 'rate': it is the learner's: learner=lols.LearnerSettings(rate=...)"),
        ({"shuffle": False, "neighbours": 4}, "neighbours has no effect: the examples are not shuffled"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lols.train(SPACE, data(FINE), REFERENCE, compiled=False, **options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_horizon_needs_costs_along_the_way() -> None:
    with pytest.raises(ConfigurationError, match="horizon needs a space with `cost`"):
        lols.train(dataclasses.replace(SPACE, cost=None), data(FINE), REFERENCE, horizon=2)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reduction": "forest"}, "unknown learner 'forest'"),
        ({"rate": 0.0}, "the learning rate is 0.0; it must be positive"),
        ({"rate": float("nan")}, "the learning rate is nan; it must be positive"),
        ({"rate": float("inf")}, "the learning rate is inf"),
        ({"margin": "wide"}, "unknown margin 'wide'"),
        ({"bits": 0}, "bits is 0; it must be between 1 and 30"),
        ({"bits": 31}, "bits is 31; it must be between 1 and 30"),
        ({"max_features": 0}, "must be at least 1"),
        ({"thresholds": 0}, "must be at least 1"),
    ],
)
def test_learner_settings_out_of_range_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lols.LearnerSettings(**changes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"step": lambda x, s: None}, "SearchSpace.step takes 2 arguments; the contract gives it 3"),
        ({"loss": None}, "SearchSpace.loss must be a plain function, not NoneType"),
        ({"key": 3}, "SearchSpace.key must be a plain function, not int"),
        ({"sizes": lols.Sizes(state=1, actions=1, features=1, steps=1)}, "Sizes.items must say how many"),
        ({"sizes": lols.Sizes(state=1, actions=1, features=1, steps=1, items=1)}, "Sizes.action_features must say how"),
    ],
)
def test_a_space_that_breaks_the_contract_is_refused_at_once(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        dataclasses.replace(SPACE, **changes)
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["state", "actions", "steps"])
def test_sizes_must_be_positive(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Sizes.{name} is 0; it must be at least 1"):
        lols.Sizes(**({"state": 1, "actions": 1, "features": 1, "steps": 1} | {name: 0}))


def test_a_reference_needs_something_to_say() -> None:
    with pytest.raises(ConfigurationError, match="a Reference needs at least one of action, free and costs"):
        lols.Reference()
    with pytest.raises(ConfigurationError, match=r"Reference.action takes 2 arguments; the contract gives it 3 or 4"):
        lols.Reference(action=lambda x, s: 0)
