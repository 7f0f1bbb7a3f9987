"""Online bin packing: which bin takes the item that comes next, learned from the rule "best fit".

    python examples/packing.py
    python examples/packing.py --kind uniform

Items come one after the other, and the next ones are not known. What counts is the number of bins, in percent above
the total size of the items. Best fit takes the fullest bin in which the item fits. The learned policy learns which
gaps are good to have: those that the sizes of coming items often fill.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import solving

import lols
from lols import emit, feature

__all__ = ["RULES", "Packing", "draw", "solve"]

KINDS = {"weibull": (100, 250), "uniform": (150, 120)}  # the size of a bin, and how many items there are


class Packing(lols.Task):
    """The state: how many open bins have each gap. An action is the gap of the bin that takes the item; the largest
    is that of a new bin."""

    needs_truth, nonnegative = False, True
    sizes = lols.Sizes(
        state=lols.State(next=1, bins=1, open=lambda x: x.size + 1, gap=lambda x: len(x.items)),
        steps=lambda x: len(x.items),
        actions=lambda x: x.size + 1,
        features=0,
        action_features=8,
    )

    def encode(packing):
        size, items = packing
        return lols.Example({"size": size, "items": items, "least": items.sum() / size}, {})

    def actions(x, s, legal):
        if s.next[0] < len(x.items):
            for gap in range(x.items[s.next[0]], x.size):
                legal[gap] = s.open[gap] > 0
            legal[x.size] = True

    def step(x, s, a):
        if a == x.size:
            s.bins[0] += 1
        else:
            s.open[a] -= 1
        s.open[a - x.items[s.next[0]]] += 1
        s.gap[s.next[0]] = a
        s.next[0] += 1

    def action_features(x, s, a, out):
        item, tighter = x.items[s.next[0]], 0
        left = a - item
        for gap in range(item, a):
            tighter += s.open[gap] > 0
        emit(out, feature(0, a // 5))
        emit(out, feature(1, left))
        emit(out, feature(2, left // 5))
        emit(out, feature(3, left // 4, min(s.open[left], 2)))
        emit(out, feature(4), s.open[left] / 4.0)
        emit(out, feature(5, min(tighter, 3), left // 8))
        emit(out, feature(6, a // 10, left // 10))
        emit(out, feature(7, int(a == x.size), min(tighter, 3)))

    def cost(x, y, s, a):
        return 100.0 / x.least if a == x.size else 0.0

    def loss(x, y, s):
        return 100.0 * s.bins[0] / x.least

    def key(x, s):
        found = s.next[0]
        for gap in range(x.size):
            if s.open[gap] > 0:
                found = lols.mix(lols.mix(found, gap), s.open[gap])
        return found

    def output(x, s):
        return s.gap.tolist()

    def reference(x, y, s):
        for gap in range(x.items[s.next[0]], x.size):
            if s.open[gap] > 0:
                return gap
        return x.size


RULES = {"best fit": Packing.teacher}


def draw(rng: np.random.Generator, kind: str = "weibull", count: int = 0) -> tuple[int, np.ndarray]:
    size, items = KINDS[kind]
    count = count or items
    if kind == "uniform":
        return size, rng.integers(20, 101, count)
    return size, np.clip(np.round(45.0 * rng.weibull(3.0, count)), 1, 100).astype(np.int64)
