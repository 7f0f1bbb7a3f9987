"""The margin that follows from the costs: a unit for counts of mistakes, the cost itself, scaled, for graded losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols import LearnerSettings
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.training.stream import Stream
from tests.heuristics.small_shop import Shop, shops

OPTIONS: dict[str, Any] = {"passes": 2, "seed": 1, "progress": False}


class Longer(Shop):
    def loss(x, y, s):
        last = 0.0
        for j in range(x.jobs):
            last = max(last, s.job[j])
        return 100000.0 * last / x.scale


def test_costs_that_count_mistakes_have_a_unit_margin_as_before() -> None:
    space, data, teacher = tagging_space(labels=3), tagging_data(30, labels=3), tagging_references()["optimal"]
    model = lols.train(space, data, teacher, compiled=False, **OPTIONS)
    same = lols.train(space, data, teacher, compiled=False, learner=LearnerSettings(), **OPTIONS)
    assert model.about["learner"]["margin"] == "unit" and model.about["learner"]["scale"] == 1.0
    assert np.array_equal(model.policy.stack, same.policy.stack)


def test_graded_costs_are_scaled_so_that_their_unit_does_not_matter() -> None:
    data = shops(12)
    model, longer = (lols.train(task, data, compiled=False, **OPTIONS) for task in (Shop, Longer))
    settings = model.about["learner"], longer.about["learner"]
    assert settings[0]["margin"] == settings[1]["margin"] == "cost"
    np.testing.assert_allclose(settings[1]["scale"], 1000 * settings[0]["scale"])
    np.testing.assert_allclose(longer.policy.single_stack, model.policy.single_stack, rtol=1e-3, atol=1e-5)


def test_a_run_that_is_resumed_has_the_same_margin(tmp_path) -> None:
    data, how = shops(12), {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}

    def stop(number: int, model: Any) -> None:
        raise KeyboardInterrupt

    whole = lols.train(Shop, data, compiled=False, **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        lols.train(Shop, data, compiled=False, after_pass=stop, **how, **OPTIONS)
    resumed = lols.train(Shop, data, compiled=False, resume=True, **how, **OPTIONS)
    assert np.array_equal(resumed.policy.single_stack, whole.policy.single_stack)


def test_a_stream_settles_by_its_first_example() -> None:
    trainer = lols.Trainer(Shop, batch_size=4, compiled=False)
    stream = Stream(trainer)
    stream.learn(lols.Examples(Shop, shops(8)))
    assert stream.learning.policy.settings.margin == "cost" and stream.learning.policy.settings.scale not in (None, 1.0)
