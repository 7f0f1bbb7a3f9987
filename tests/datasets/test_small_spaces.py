"""Small spaces: exact values against single walks, the class of policies, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lols.datasets.small_spaces import (
    SmallSpace,
    best_actions,
    depth_space,
)
from lols.errors import ConfigurationError
from tests.datasets.random_spaces import SPACES, made_space
from tests.reproduction.theory.theorem3_twin import SpaceTwin

pytestmark = pytest.mark.slow

CLOSE: dict[str, Any] = {"rel": 0.0, "abs": 1e-12}


@given(SPACES)
def test_values_are_those_of_single_walks(space: SmallSpace) -> None:
    twin, exact = SpaceTwin(space, [1] * len(space.policies), Fraction(1, 2)), space.exact(space.policies)
    for n in range(0, len(twin.all), 7):
        policy = twin.all[n]
        assert exact.loss[n] == pytest.approx(float(twin.loss(policy)), **CLOSE)
        visits = [0.0] * len(policy)
        for t in range(space.steps):
            for x, share in enumerate(twin.start):
                visits[twin.at(x, t, policy)] += float(share)
        assert exact.visits[n] == pytest.approx(visits, **CLOSE)
        worths = [[float(twin.q(s, a, policy)) for a in twin.actions] for s in range(len(policy))]
        assert exact.worths[n] == pytest.approx(np.array(worths), **CLOSE)


@given(SPACES)
def test_the_class_has_every_table_of_what_is_seen_once(space: SmallSpace) -> None:
    assert space.seen is not None
    assert len(np.unique(space.policies, axis=0)) == len(space.policies) == space.actions ** len(set(space.seen))
    for what in set(space.seen):
        assert (np.ptp(space.policies[:, space.seen == what], axis=1) == 0).all()


@given(SPACES)
def test_the_best_actions_are_an_optimal_teacher(space: SmallSpace) -> None:
    best = best_actions(space.follow, space.losses)
    assert space.exact(best[np.newaxis]).loss[0] <= space.exact(space.policies).loss.min() + 1e-12


def test_spaces_that_make_no_sense_are_refused() -> None:
    good = made_space(1, 2, 2, 1.0, True)
    fields = {name: getattr(good, name) for name in ("follow", "layer", "losses", "start", "reference", "policies")}
    for name, value, message in [
        ("layer", np.zeros_like(good.layer), "skips a layer"),
        ("policies", good.policies + 1, "need an action from 0 to 1"),
        ("start", good.start / 2, "sum to 1"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            SmallSpace(**(fields | {name: value}))
    with pytest.raises(ConfigurationError, match="take limited=True"):
        made_space(1, 9, 2, 1.0, False)


def test_the_space_of_theorem_4_is_one_of_these() -> None:
    losses = np.random.default_rng(0).random(16)
    space = depth_space(losses, reference=5)
    assert space.exact(space.policies).loss == pytest.approx(losses)
    assert space.exact(space.reference[np.newaxis]).loss[0] == losses[5]
