"""The order of examples in a pass."""

from __future__ import annotations

import numpy as np


def shuffled(count: int, key: int, neighbours: int = 1) -> np.ndarray:
    """The numbers below `count` in an order that depends on the key; runs of `neighbours` stay adjacent.

    >>> shuffled(6, 1).tolist(), shuffled(6, 1, neighbours=2).tolist()
    ([3, 5, 2, 0, 1, 4], [4, 5, 0, 1, 2, 3])
    """
    generator = np.random.Philox(key=key & ((1 << 64) - 1))
    order = np.argsort(generator.random_raw(-(-count // neighbours)), kind="stable")
    if neighbours == 1:
        return order
    runs = (order[:, np.newaxis] * neighbours + np.arange(neighbours)).ravel()
    return runs[runs < count]


def evened(order: np.ndarray, work: np.ndarray, parts: int) -> np.ndarray:
    """Examples in nearly the same order, but with about the same work in each of so many parts of it.

    Of the examples with the most work each part gets one, then of those with the most work among the others, and so on;
    which part gets which, and where, is as the order was.

    >>> evened(np.arange(6), np.array([9, 9, 1, 1, 2, 2]), 2).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    if order.size == 0 or work.min() == work.max():
        return order
    place = np.arange(order.size)
    ranked = np.argsort(-work[order], kind="stable")
    ranked = ranked[np.lexsort((ranked, place // parts))]
    return order[ranked[np.lexsort((ranked, place % parts))]]
