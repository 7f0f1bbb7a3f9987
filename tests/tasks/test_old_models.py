"""Model files that version 0.1 wrote load and predict the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import lols
from tests.models_0_1.own_task import DATA, Tagging

FILES = Path(__file__).parents[1] / "models_0_1"
EXPECTED = json.loads((FILES / "expected.json").read_text("utf-8"))


def plain(value):
    """Tuples as lists, as JSON has them."""
    return json.loads(json.dumps(value))


def as_before(sentences):
    """Words without `deprel`, which `relation` was called alone."""
    return [
        [{k: v for k, v in word.items() if k != "deprel"} if isinstance(word, dict) else word for word in words]
        for words in sentences
    ]


@pytest.mark.parametrize("name", ["tagger", "parser", "pipeline"])
def test_estimators_on_sentences(name):
    model = lols.load(FILES / f"{name}.lols")
    predicted = plain(model.predict(EXPECTED["sentences"]))
    assert as_before(predicted) == EXPECTED[name]


def test_classifier():
    model = lols.load(FILES / "classifier.lols")
    assert model.predict(EXPECTED["rows"]).tolist() == EXPECTED["classifier"]


def test_a_task_of_ones_own():
    model = lols.load(FILES / "own.lols", Tagging, compiled=False)
    assert model.predict(DATA[:3]) == EXPECTED["own"]
    if sys.version_info[:2] == (3, 11):  # byte code, which the digest covers, differs between versions of Python
        assert "space_changed" not in model.about
