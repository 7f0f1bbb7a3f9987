"""The contest's data: what the classifier must reach there, with one seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lols
from lols.io.costs import read_cost_matrix, read_label_map

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets"),
]


def cost(**options: object) -> float:
    folder = Path(os.environ["LOLS_DATA"])
    classes, costs = read_cost_matrix("kdd99")
    model = lols.CostSensitiveClassifier(
        classes=classes, cost_matrix=costs, label_map=read_label_map("kdd99"), progress=False, **options
    )
    model.fit_files(str(folder / "kdd99-10percent.csv.gz"))
    scores = model.evaluate_files(str(folder / "kdd99-corrected.csv.gz"))
    assert scores.rows == 311029
    assert sum(model.unknown_.values()) == 2  # cells of services that training never showed
    return scores.cost


def test_the_cost_on_the_contests_test_set() -> None:
    assert cost() <= 0.2455


def test_a_bad_teacher_costs_lols_next_to_nothing() -> None:
    assert cost(algorithm="lols", reference="bad") <= cost(algorithm="lols") + 0.01  # seeds differ by 0.003
