"""Deviations are measured in one place: explanations, certificates, confidence and `rollout_costs` agree on them."""

from __future__ import annotations

import numpy as np
import pytest

import lols
from lols.certificates.deviations import collect_deviations
from lols.certificates.training import training_of
from lols.contract.choosing import some
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.training.algorithms import LOLS, algorithm
from lols.training.confidence import judged_steps
from lols.training.deviation_costs import DeviationCosts, costs_along, exact_plan, last_shares

SPACE, TEACHER, DATA = tagging_space(labels=3), tagging_references()["bad"], tagging_data(6, labels=3, words=9)


@pytest.fixture(scope="module")
def model():
    return lols.train(SPACE, tagging_data(20, labels=3, words=9, seed=1), TEACHER, passes=1, compiled=False)


@pytest.mark.parametrize("roll_out", ["learned", "reference"])
def test_all_reports_say_the_same(model, roll_out):
    examples = model.labelled(DATA, TEACHER)
    by_roll_outs = lols.rollout_costs(
        model, SPACE, examples, TEACHER, beta=float(roll_out == "reference"), compiled=False
    )
    relative = by_roll_outs.costs - by_roll_outs.costs.min(axis=1, keepdims=True)
    with model.driver(examples, TEACHER) as driver:
        chosen = training_of(model).deviating("learned", roll_out)
        certified = collect_deviations(model, driver, TEACHER, chosen)
        measure = DeviationCosts(driver, model.policy, exact_plan(SPACE, TEACHER, chosen, 0))
        parts = list(measure.parts(np.arange(len(DATA)), together=2))
    assert certified.costs == pytest.approx(relative)
    assert [part.filled.size for part in parts] == [2, 2, 2]
    assert np.array_equal(np.concatenate([part.costs for part in parts]), certified.costs)
    for k, first in enumerate(certified.first[:-1]):
        own = slice(first, certified.first[k + 1])
        costs, losses, loss = costs_along(
            model, TEACHER, some(examples, np.array([k])), by_roll_outs.taken[own], chosen, 0.5, compiled=False
        )
        assert costs == pytest.approx(relative[own]) and loss == certified.losses[k]
        assert losses - losses.min(axis=1, keepdims=True) == pytest.approx(relative[own])
    if roll_out == "reference":
        taken = by_roll_outs.taken
        judged = judged_steps(model, examples, TEACHER)
        assert np.array_equal(judged.right, certified.costs[np.arange(taken.size), taken] == 0.0)


def test_the_last_share_of_the_reference_is_that_of_the_schedule_or_the_one_recorded():
    assert last_shares(algorithm("lols", beta=0.3), {}) == (0.3, 0.3)
    assert last_shares(algorithm("lols", beta="auto"), {}) == (0.5, 0.5)
    assert last_shares(algorithm("lols", beta="auto"), {"beta": 0.2}) == (0.2, 0.2)
    assert last_shares(LOLS, {"passes": 3, "examples": 7}) == (0.5, 0.5)
