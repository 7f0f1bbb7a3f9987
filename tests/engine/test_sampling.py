"""The best of several samples of a policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.engine.sampling import best_samples
from lols.errors import ConfigurationError, SpaceError
from tests.heuristics.small_shop import Shop, shops


@pytest.fixture(scope="module")
def model() -> Any:
    return lols.train(Shop, shops(30), passes=2, seed=1, progress=False)


def test_the_first_sample_is_the_greedy_prediction_and_the_best_is_kept(model: Any) -> None:
    data = shops(20, seed=5)
    samples = best_samples(model, lols.Examples(Shop, data), 16)
    assert np.array_equal(samples.all_losses[:, 0], model.losses(data))
    assert np.array_equal(samples.losses, samples.all_losses.min(axis=1))
    assert samples.losses.mean() < model.losses(data).mean()
    outputs = [samples.predictions.output(i) for i in range(len(data))]
    lengths = [loss * Shop.encode(shop).x["scale"] / 100 for loss, shop in zip(samples.losses, data, strict=True)]
    np.testing.assert_allclose(outputs, lengths)


def test_threads_and_plain_python_change_nothing_and_seeds_do(model: Any) -> None:
    data = lols.Examples(Shop, shops(6, seed=5))
    expected = best_samples(model, data, 8, seed=3).all_losses
    other = lols.Model(model.space, model.policy, model.plan, threads=2)
    plain = lols.Model(model.space, model.policy, model.plan, compiled=False)
    assert np.array_equal(best_samples(other, data, 8, seed=3).all_losses, expected)
    np.testing.assert_allclose(best_samples(plain, data, 8, seed=3).all_losses, expected)
    assert not np.array_equal(best_samples(model, data, 8, seed=4).all_losses, expected)


def test_samples_of_a_softmax() -> None:
    from lols.engine.sampling import draw_action

    costs, legal = np.array([0.0, 1.0, 9.0], np.float32), np.array([True, True, False])
    drawn = [int(draw_action(costs, legal, 1.0, stream)) for stream in range(4000)]
    assert set(drawn) == {0, 1} and abs(np.mean(drawn) - 1.0 / (1.0 + np.e)) < 0.03


def test_prediction_with_options(model: Any) -> None:
    data = shops(5, seed=7)
    best = model.predict(data, best_of=16)
    assert all(a <= b for a, b in zip(best, model.predict(data), strict=True))
    assert model.predict_one(data[0], best_of=16) == best[0]
    improved = model.predict(data, best_of=16, improve=lambda shop, length: (len(shop[0]), length))
    assert improved == [(5, length) for length in best]
    assert model.losses(data, best_of=16).mean() <= model.losses(data).mean()


def test_mistakes(model: Any) -> None:
    data = shops(2)
    with pytest.raises(ConfigurationError, match="best_of is 0"):
        model.predict(data, best_of=0)
    with pytest.raises(ConfigurationError, match="temperature is -1"):
        model.predict(data, best_of=2, temperature=-1.0)
    with pytest.raises(ConfigurationError, match="improve needs your objects"):
        model.predict(lols.Examples(Shop, data), improve=lambda a, b: b)
    with pytest.raises(SpaceError, match="no truth"):
        best_samples(model, lols.Examples(Shop, data, truth=False), 2)


def test_several_starts_begin_with_the_most_promising_actions(model: Any) -> None:
    from lols.engine.sampling import start_action

    costs, legal = np.array([3.0, 1.0, 2.0, 1.0], np.float32), np.array([True, True, False, True])
    assert [int(start_action(costs, legal, rank)) for rank in range(4)] == [1, 3, 0, 1]
    data = lols.Examples(Shop, shops(8, seed=5))
    samples = best_samples(model, data, 6, starts=4)
    assert np.array_equal(samples.all_losses[:, :4], best_samples(model, data, 4, starts=4, seed=9).all_losses)
    assert not np.array_equal(samples.all_losses, best_samples(model, data, 6).all_losses)
    plain = lols.Model(model.space, model.policy, model.plan, compiled=False)
    np.testing.assert_allclose(best_samples(plain, data, 6, starts=4).all_losses, samples.all_losses)
    with pytest.raises(ConfigurationError, match="starts is 3; it must be a whole number from 1 to best_of=2"):
        model.predict(shops(2), best_of=2, starts=3)


def test_of_a_beam_the_loss_keeps_the_best(model: Any) -> None:
    data = shops(8, seed=5)
    wide, greedy = model.losses(data, beam=8), model.losses(data)
    assert (wide <= greedy).all() and wide.mean() < greedy.mean()
    scales = [Shop.encode(shop).x["scale"] / 100 for shop in data]
    np.testing.assert_allclose(model.predict(data, beam=8), wide * scales)
    with pytest.raises(ConfigurationError, match="choose one of them"):
        model.predict(data, beam=2, best_of=2)
