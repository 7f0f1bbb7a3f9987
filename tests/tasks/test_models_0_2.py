"""Files of version 0.2: models and pickles predict the same; checkpoints and logs are gone on with or refused."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.errors import ModelFileError
from tests.models_0_2 import problems

FILES = Path(__file__).parents[1] / "models_0_2"
EXPECTED = json.loads((FILES / "expected.json").read_text("utf-8"))
INPUTS = {
    "tagger": EXPECTED["sentences"],
    "parser": EXPECTED["parsed"],
    "pipeline": EXPECTED["sentences"],
    "classifier": EXPECTED["rows"],
    "own": problems.DATA[:3],
    "program": problems.LINES[:3],
}
TASKS: dict[str, Any] = {"own": problems.Tagging, "program": lols.Program(problems.spell, 2)}


def predictions(model: Any, name: str) -> Any:
    """What is predicted, as JSON has it; words without `deprel`, which was called `relation` only."""
    predicted = model.predict(INPUTS[name])
    if name == "pipeline":
        predicted = [[{k: v for k, v in word.items() if k != "deprel"} for word in words] for words in predicted]
    return json.loads(json.dumps(predicted.tolist() if hasattr(predicted, "tolist") else predicted))


@pytest.mark.parametrize("name", INPUTS)
def test_models_predict_the_same(name: str) -> None:
    compiled = {"compiled": False} if name in TASKS else {}
    model = lols.load(FILES / f"{name}.lols", *([TASKS[name]] if name in TASKS else []), **compiled)
    assert predictions(model, name) == EXPECTED[name]


@pytest.mark.parametrize("name", INPUTS)
def test_pickles_predict_the_same(name: str) -> None:
    model = pickle.loads((FILES / f"{name}.pickle").read_bytes())
    assert predictions(model, name) == EXPECTED[name]


def test_a_checkpoint_is_refused_in_one_line(tmp_path: Path) -> None:
    checkpoint = shutil.copy(FILES / "own.checkpoint", tmp_path)
    with pytest.raises(ModelFileError, match=r"a checkpoint of lols 0[.]2 or before: train on with that version, or"):
        problems.trainer().fit(problems.DATA, checkpoint=checkpoint, resume=True)


def test_a_log_is_gone_on_with(tmp_path: Path) -> None:
    log = shutil.copy(FILES / "bandit.log", tmp_path)
    with pytest.warns(UserWarning, match="begun by lols 0.2"), problems.bandit(log) as made:
        assert made.report()["losses"] == 20
    with problems.bandit(log) as again:  # of now on
        assert again.report()["losses"] == 20
