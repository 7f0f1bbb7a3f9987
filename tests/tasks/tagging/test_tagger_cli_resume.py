"""Trainings of taggers that were interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lols.io.model_file import read_tensors, write_tensors
from tests.cli.calling import fine, mistake
from tests.cli.interrupting import interrupted
from tests.tasks.tagging.tagger_data import conllu, sentences, weights
from tests.tasks.tagging.tagger_files import noisy

TRAINING = ("--passes", 4, "--batch-size", 8, "--json")


@pytest.mark.parametrize("batches", [1, 5, 12, 19])
def test_an_interrupted_training_goes_on(folder: Path, tmp_path: Path, batches: int, monkeypatch: Any) -> None:
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    fine("train", "tagger", folder / "train.conllu", "-o", whole, *TRAINING)
    interrupted(monkeypatch, batches, "tagger", folder / "train.conllu", "-o", resumed, *TRAINING)
    assert sorted(os.listdir(tmp_path)) == ["resumed.lols.checkpoint", "whole.lols"]
    made = fine("train", "tagger", folder / "train.conllu", "-o", resumed, *TRAINING, "--resume").json
    assert made["passes"] == 4 and len(made["progressive_loss"]) == 4
    assert weights(resumed) == weights(whole)
    assert sorted(os.listdir(tmp_path)) == ["resumed.lols", "whole.lols"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("batches", [3, 4, 5, 12, 23])
def test_an_interrupted_training_with_dev_data_goes_on(tmp_path: Path, batches: int, monkeypatch: Any) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o")  # four batches in a pass
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    made = fine("train", "tagger", *options, whole, "--json").json
    assert made["best_pass"] < 6
    interrupted(monkeypatch, batches, "tagger", *options, resumed)
    assert not resumed.exists()
    again = fine("train", "tagger", *options, resumed, "--json", "--resume").json
    assert weights(resumed) == weights(whole)
    assert [again[k] for k in ("dev", "best_pass", "passes")] == [made[k] for k in ("dev", "best_pass", "passes")]
    interrupted(monkeypatch, batches, "tagger", *options, resumed)
    assert "best on the dev file" in fine("train", "tagger", *options, resumed, "--resume").out.decode()
    assert sorted(os.listdir(tmp_path)) == ["noisy-dev.conllu", "noisy.conllu", "resumed.lols", "whole.lols"]


def test_the_best_pass_may_be_newer_than_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o")
    whole, resumed, checkpoint = (tmp_path / name for name in ("whole.lols", "m.lols", "m.lols.checkpoint"))
    fine("train", "tagger", *options, whole, "--json")
    interrupted(monkeypatch, 5, "tagger", *options, resumed)
    old = checkpoint.read_bytes()
    interrupted(monkeypatch, 21, "tagger", *options, resumed)
    checkpoint.write_bytes(old)
    fine("train", "tagger", *options, resumed, "--json", "--resume")
    assert weights(resumed) == weights(whole)


def test_what_was_best_so_far_is_no_model_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, dev = noisy(tmp_path)
    interrupted(
        monkeypatch, 9, "tagger", data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o", tmp_path / "m.lols"
    )
    for verb in ("evaluate", "predict", "explain", "inspect"):
        file = () if verb == "inspect" else (dev,)
        mistake(verb, tmp_path / "m.lols.checkpoint.best", *file, says="again with --resume")


@pytest.mark.parametrize("history", [None, 3, ["?"], [{"pass": 1}]], ids=["none", "a number", "words", "no accuracy"])
def test_what_was_best_so_far_may_be_damaged(tmp_path: Path, history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o", tmp_path / "m.lols")
    interrupted(monkeypatch, 9, "tagger", *options)
    kept = tmp_path / "m.lols.checkpoint.best"
    header, tensors = read_tensors(kept, "model")
    header["task"]["history"] = history
    write_tensors(kept, header.pop("kind"), header, tensors)
    mistake("train", "tagger", *options, "--resume", says=str(kept))


def test_resuming_with_other_options_is_a_mistake(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    model = tmp_path / "m.lols"
    interrupted(monkeypatch, 3, "tagger", folder / "train.conllu", "-o", model, *TRAINING)
    says = "m.lols.checkpoint: made with another seed; resume with the same data and options, or delete it"
    again = ("-o", model, *TRAINING, "--resume")
    mistake("train", "tagger", folder / "train.conllu", *again, "--seed", 1, says=says)
    mistake("train", "tagger", folder / "test.conllu", *again, says="made with another data")
    assert os.listdir(tmp_path) == ["m.lols.checkpoint"]


PROGRAM = """
import sys
from lols.training import trainer
trainer.Trainer.fit.__kwdefaults__["checkpoint_every"] = 0.0
from lols.cli import main
main()
"""


@pytest.mark.slow
def test_a_training_that_was_killed_goes_on(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "big.conllu").write_text(conllu(*sentences(3000, seed=3, noise=0.2)))
    arguments = ["train", "tagger", str(tmp_path / "big.conllu"), "--passes", "3", "--batch-size", "8", "--json", "-o"]
    model, checkpoint = tmp_path / "killed.lols", tmp_path / "killed.lols.checkpoint"
    started = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments, str(model)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 180
        while not checkpoint.exists() and started.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    assert checkpoint.exists() and not model.exists()
    fine(*arguments, model, "--resume")
    fine(*arguments, tmp_path / "whole.lols")
    assert weights(model) == weights(tmp_path / "whole.lols")
