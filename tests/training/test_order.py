"""Orders of examples in a pass."""

from __future__ import annotations

import numpy as np
import pytest

from lols.training.order import evened, shuffled

LENGTHS = np.random.default_rng(0).geometric(0.06, 1000)  # as of sentences: few are very long


@pytest.mark.parametrize("parts", [2, 4, 7, 32])
def test_parts_have_about_the_same_work(parts: int) -> None:
    def spread(order: np.ndarray) -> float:
        work = [LENGTHS[part].sum() for part in np.array_split(order, parts)]
        return float(np.std(work) / np.mean(work))

    orders = [shuffled(LENGTHS.size, key) for key in range(20)]
    made = [evened(order, LENGTHS, parts) for order in orders]
    assert all(np.array_equal(np.sort(each), np.arange(LENGTHS.size)) for each in made)
    assert np.mean([*map(spread, made)]) < np.mean([*map(spread, orders)]) / 3
    assert len({each.tobytes() for each in made}) == 20


def test_the_order_stays_where_there_is_nothing_to_even() -> None:
    order = shuffled(50, 1)
    for work, parts in ((LENGTHS[:50], 1), (np.full(50, 3), 4)):
        assert np.array_equal(evened(order, work, parts), order)
    assert evened(order[:0], LENGTHS[:0], 4).size == 0


def test_long_examples_come_anywhere() -> None:
    longest = int(LENGTHS.argmax())
    places = [int(np.flatnonzero(evened(shuffled(LENGTHS.size, key), LENGTHS, 4) == longest)[0]) for key in range(40)]
    assert np.bincount(np.array(places) * 4 // LENGTHS.size, minlength=4).min() > 2
