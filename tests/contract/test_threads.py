"""How many threads work by default, and that results do not depend on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.contract import threads as rule
from lols.contract.threads import FASTEST, SMALL, chosen_threads
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.drivers.fused import FusedDriver
from lols.errors import ConfigurationError
from lols.tasks.pieces import one_thread

SPACE, TEACHER = tagging_space(labels=3), tagging_references()["optimal"]
MANY = tagging_data(900, labels=3, words=60, seed=3)


@pytest.mark.parametrize(
    ("cores", "steps", "together", "wanted"),
    [
        (16, SMALL, None, FASTEST),
        (16, None, None, FASTEST),
        (3, SMALL, None, 3),
        (16, SMALL, 2, 2),
        (16, SMALL - 1, 64, 1),
        (1, 10 * SMALL, 64, 1),
    ],
)
def test_the_rule(cores: int, steps: int | None, together: int | None, wanted: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(rule, "cores", lambda: cores)
    assert chosen_threads(None, steps, together) == chosen_threads("auto", steps, together) == wanted
    assert chosen_threads(11, steps, together) == 11


@pytest.mark.parametrize(("given", "says"), [("many", "or auto"), (0, "at least 1"), (1.5, "a whole number")])
def test_other_values_are_refused(given: Any, says: str) -> None:
    for what in (lambda: lols.Trainer(SPACE, TEACHER, threads=given), lambda: chosen_threads(given)):
        with pytest.raises(ConfigurationError, match=says):
            what()


def test_training_and_prediction_use_them(monkeypatch: Any) -> None:
    monkeypatch.setattr(rule, "cores", lambda: 4)
    seen: list[int] = []
    begin = FusedDriver.__init__

    def watched(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        seen.append(self.threads)

    monkeypatch.setattr(FusedDriver, "__init__", watched)
    by_default = lols.train(SPACE, MANY, TEACHER, passes=1)
    trained = seen[0]  # the others compare policy and teacher on a few examples
    outputs = by_default.predict(MANY)
    assert sum(len(each["words"]) for each in MANY) > SMALL and trained == seen[-1] == 4
    by_default.predict(MANY[:5])
    assert seen[-1] == 1
    del seen[:]
    alone = lols.train(SPACE, MANY, TEACHER, passes=1, threads=1)
    assert {*seen} == {1} and alone.predict(MANY) == outputs
    assert np.array_equal(alone.policy.stack, by_default.policy.stack)


def test_models_that_several_threads_call_use_one_each_for_a_while() -> None:
    model = lols.train(SPACE, MANY[:20], TEACHER, passes=1)
    with pytest.raises(ZeroDivisionError), one_thread(model):
        assert model.threads == 1
        raise ZeroDivisionError
    assert model.threads is None
