"""Advice: the policy starts as its reference."""

from __future__ import annotations

from typing import Any

import pytest

import lols
from lols.bandit import StructuredBandit
from lols.bandit.worlds.layout import layout_data, layout_reference, layout_space
from lols.errors import ConfigurationError
from tests.bandit.small_bandit import RULES, SPACE, bandit, request, run, same


@pytest.mark.parametrize("options", [{}, {"exploit": "average"}, {"update": "nag"}, {"learner": "hinge"}], ids=str)
def test_with_advice_it_starts_out_as_its_rules(options: dict[str, Any]) -> None:
    made = StructuredBandit(SPACE, RULES, advice=0.1, epsilon=0.5, seed=3, **options)
    for k in range(40):
        assert made.predict(request(k)) == made.show_reference(request(k))
    run(made, 30)
    same(made, StructuredBandit(SPACE, RULES, advice=0.1, epsilon=0.5, seed=3, log=made.log, **options))


@pytest.mark.parametrize("update", ["nag", "adagrad", "gd"])
def test_advice_in_a_table_of_fixed_size(update: str) -> None:
    made = bandit(learner=lols.LearnerSettings("csoaa", update, bits=10), advice=0.1, compiled=False)
    for k in range(20):
        assert made.predict(request(k)) == made.show_reference(request(k))
    run(made, 20)
    assert made.report()["policies"] > 1


def test_advice_beside_features_of_actions() -> None:
    made = StructuredBandit(layout_space(), layout_reference(), advice=0.1)
    for page in layout_data(40, seed=8, truth=False):
        assert made.predict(page) == made.show_reference(page)


def test_advice_needs_rules_that_do_not_draw() -> None:
    drawing = lols.Reference(action=lambda x, y, s, rng: int(lols.uniform(rng) < 0.5), needs_truth=False)
    with pytest.raises(ConfigurationError, match="never draws at random"):
        StructuredBandit(SPACE, drawing, advice=0.1)
    with pytest.raises(ConfigurationError, match="advice is -1"):
        bandit(advice=-1.0)
