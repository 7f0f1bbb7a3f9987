"""Model files that version 0.1 wrote load, predict the same, and are not reported as changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lols

FILES = Path(__file__).parents[1] / "models_0_1"
EXPECTED = json.loads((FILES / "expected.json").read_text("utf-8"))


def plain(value):
    """Tuples as lists, as JSON has them."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", ["tagger", "parser", "pipeline"])
def test_estimators_on_sentences(name):
    model = lols.load(FILES / f"{name}.lols")
    assert plain(model.predict(EXPECTED["sentences"])) == EXPECTED[name]
    part = getattr(model, "parser_", model)
    assert "space_changed" not in part.model_.about


def test_classifier():
    model = lols.load(FILES / "classifier.lols")
    assert model.predict(EXPECTED["rows"]).tolist() == EXPECTED["classifier"]
    assert "space_changed" not in model.model_.about
