"""What learning means does not change without a word: the same data, options and seed give the weights that are stored.

If other weights are meant, raise `LEARNING` in `lols/contract/identity.py`, so that no checkpoint or log is
gone on from, and store the new ones: `python -m tests.training.golden`.
"""

from __future__ import annotations

import json

import pytest

from lols.contract.identity import LEARNING
from tests.training.golden import FILE, TRAININGS, told

STORED = json.loads(FILE.read_text("utf-8"))


def test_the_version_is_that_of_the_stored_weights() -> None:
    assert STORED["learning"] == LEARNING and STORED["weights"].keys() == TRAININGS.keys()


@pytest.mark.parametrize("name", TRAININGS)
def test_weights_are_those_that_are_stored(name: str) -> None:
    found = told(TRAININGS[name]())
    for part, numbers in STORED["weights"][name].items():
        # not bit for bit: another processor may add in another order
        assert found[part] == pytest.approx(numbers, rel=1e-5, abs=1e-6), __doc__
