"""Headers of model files that hold other kinds of values than ours do: they are refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.training.calibration import Calibration
from tests.cli.calling import fine, mistake
from tests.models_0_1.own_task import Tagging

FILES = Path(__file__).parents[1] / "models_0_1"
LEARNER = {"reduction": "hinge", "update": "adagrad", "margin": "unit", "rate": None, "slack": 0.0}
FACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a rate that is a text": ("'rate' is 'fast'", {"learner": LEARNER | {"rate": "fast"}}),
    "a slack that is a text": ("'slack' is '0'", {"learner": LEARNER | {"slack": "0"}}),
    "no update": ("the learner has no 'update'", {"learner": {"reduction": "hinge", "margin": "unit"}}),
    "a learner that is a number": ("the header is damaged", {"learner": 3}),
    "a teacher that is a number": ("'reference' is 5", {"reference": 5}),
    "examples that are a text": ("'examples' is '7'", {"examples": "7"}),
    "passes that are a truth": ("'passes' is True", {"passes": True}),
}


def forged(name: str, path: Path, about: dict[str, Any], **header: Any) -> Path:
    """A model file with other facts in its header."""
    known, tensors = read_tensors(FILES / f"{name}.lols", "model")
    known = {k: v for k, v in known.items() if k != "kind"}
    write_tensors(path, "model", known | {"about": known["about"] | about} | header, tensors)
    return path


@pytest.mark.parametrize("name", ["own", "tagger"])
@pytest.mark.parametrize("what", FACTS)
def test_facts_of_another_kind_are_refused(name: str, what: str, tmp_path: Path) -> None:
    message, about = FACTS[what]
    mistake("inspect", forged(name, tmp_path / "m.lols", about), says=message)


@pytest.mark.parametrize("policy", [7, [1], {"a": 1}, True])
def test_a_policy_that_is_no_name_is_refused(policy: Any, tmp_path: Path) -> None:
    path = forged("own", tmp_path / "m.lols", {}, policy=policy)
    with pytest.raises(ModelFileError, match=r"the header is damaged \(the policy is .*, not the name of a class\)"):
        lols.load(path, Tagging, compiled=False)
    with pytest.raises(ModelFileError, match="not the name of a class"):
        lols.load(path, Tagging, compiled=False, policy=Any)


def test_halves_of_characters_are_printed_escaped(tmp_path: Path) -> None:
    assert rb"\ud800" in fine("inspect", forged("own", tmp_path / "m.lols", {}, version="\ud800")).out


@pytest.mark.parametrize("facts", [{"temperature": 1e-300}, {"temperature": 1e300}, {"bias": [0.0, 1e300]}])
def test_numbers_under_which_probabilities_overflow_are_refused(facts: dict[str, Any]) -> None:
    fitted = Calibration(1.0, bias=np.zeros(2)).describe() | facts
    with pytest.raises(ValueError, match="the calibration is damaged"):
        Calibration.from_description(fitted, 2)
