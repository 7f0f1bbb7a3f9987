"""The kill campaign in brief, and that it notices what it looks for: `make soak` runs it for long."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from lols.training import trainer
from tests.fuzz.judging import Lost
from tests.fuzz.soak import Optimisations, Training


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_training_is_compared_with_an_undisturbed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
    training, rng = Training("classifier", tmp_path), Random(18)
    while training.kills < 3:
        training.once(rng)
    assert training.done > 0
    training.wanted = training.wanted[:-1] + bytes([training.wanted[-1] ^ 1])
    with pytest.raises(Lost, match="classifier: the model is not that of an undisturbed run"):
        training.once(rng)
    training.output.unlink()
    training.wanted = b""
    (tmp_path / "m.lols.checkpoint").write_bytes(b"not a checkpoint")
    with pytest.raises(Lost, match="classifier: exit code 2"):
        training.once(rng)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_optimisation_that_is_interrupted_or_killed_leaves_a_whole_model(tmp_path: Path) -> None:
    runs, rng = Optimisations(tmp_path), Random(5)
    while not (runs.interruptions and runs.kills and runs.done):
        runs.once(rng)
    runs.source.write_text("nothing = 1", "utf-8")
    with pytest.raises(Lost, match="exit code 2"):
        while True:
            runs.once(rng)
