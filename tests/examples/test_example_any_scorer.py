"""The example of policies of any kind: the network sees what no weighted sum can."""

from __future__ import annotations

import numpy as np
import pytest

import lols


@pytest.fixture(scope="module")
def example(request: pytest.FixtureRequest):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(request.config.rootpath / "examples")
        import any_scorer

        yield any_scorer


def test_the_task_keeps_the_contract(example) -> None:
    lols.checks.assert_space(example.Tiles.space, example.rows_of_tiles(5, 0), example.Tiles.teacher)


@pytest.mark.slow
def test_the_network_gains_where_features_interact(example) -> None:
    found = example.compare(100, passes=3, test=100, compiled=False)
    linear, regressors, network = found.values()
    assert 0.6 < linear < 0.8 and 0.6 < regressors < 0.8
    assert network > 0.05 + max(linear, regressors)


def test_costs_that_are_not_known_pull_at_nothing(example) -> None:
    rng = np.random.default_rng(0)
    seen, weights = rng.normal(size=(6, 256)), np.ones(6, np.float32)
    costs = rng.random((6, 4)).astype(np.float32)
    costs[:, 2] = np.inf
    network = example.Network(4)
    before = [w.copy() for w in network.weights]
    for _ in range(300):
        network._step(seen, costs, weights)
    assert np.array_equal(network.weights[2][:, 2], before[2][:, 2]) and network.weights[3][2] == 0.0
    assert not np.array_equal(network.weights[0], before[0])
    known = np.isfinite(costs)
    assert np.abs(network._forward(seen)[1] - costs)[known].max() < 0.01


def test_a_network_is_saved_and_loaded(example, tmp_path) -> None:
    rows = example.rows_of_tiles(20, 1)
    model = lols.train(example.Tiles, rows, policy=example.Network(4), passes=2, batch_size=5, compiled=False)
    model.save(tmp_path / "tiles.lols")
    loaded = lols.load(tmp_path / "tiles.lols", example.Tiles, policy=example.Network(4, seed=7), compiled=False)
    assert loaded.predict(rows) == model.predict(rows)
