"""A certificate says when the margin is what stands in the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols import emit, feature


class Wager(lols.Task):
    """Take one of some tickets. The first mostly wins a little and sometimes loses much; nobody can see it before."""

    needs_truth = False
    sizes = lols.Sizes(state=2, steps=1, actions=lambda x: x.tickets, features=0, action_features=1)

    def encode(wager):
        return lols.Example({"tickets": len(wager), "cost": np.array(wager)}, {})

    def actions(x, s, legal):
        for a in range(x.tickets):
            legal[a] = s[0] == 0

    def step(x, s, a):
        s[0], s[1] = 1, a

    def action_features(x, s, a, out):
        emit(out, feature(0, min(a, 1)))

    def loss(x, y, s):
        return x.cost[s[1]]

    def output(x, s):
        return int(s[1])

    def reference(x, y, s):
        return 0


def wagers(count: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [[9.5 if rng.random() < 0.3 else 0.0, *[0.5] * rng.integers(1, 3)] for _ in range(count)]


@pytest.mark.parametrize(("margin", "rule"), [("unit", 6), ("weighted", 5)])
def test_the_margin_is_named(margin: str, rule: int) -> None:
    settings = lols.LearnerSettings("hinge", "adagrad", margin=margin)
    model = lols.train(Wager, wagers(60, 0), learner=settings, passes=3, progress=False, compiled=False)
    made = lols.certify(model, wagers(80, 1), resamples=100)
    assert made.advice.rule == rule
    assert ("train with margin='weighted' (now 'unit')" in made.advice.sentence) == (rule == 6)
