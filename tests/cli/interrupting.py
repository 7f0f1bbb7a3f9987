"""Trainings that are interrupted, as a user would."""

from __future__ import annotations

from typing import Any

import pytest

from lols.training import trainer
from lols.training.learning import Learning
from tests.cli.calling import run


def interrupted(monkeypatch: pytest.MonkeyPatch, batches: int, *arguments: Any) -> None:
    """Train, with a checkpoint after every batch, until someone presses Ctrl-C."""
    done = []
    take = Learning.take

    def until(learning: Learning, *given: Any) -> None:
        if len(done) == batches:
            raise KeyboardInterrupt
        if learning.recipe.passes > 1:  # not the tiny training that has things compiled
            done.append(1)
        take(learning, *given)

    with monkeypatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(Learning, "take", until)
        assert run("train", *arguments).code not in (0, 2)
    assert len(done) == batches
