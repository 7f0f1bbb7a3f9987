"""Neural policies in exact mode: workers on CPUs roll in and out with copies of the network."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from lols.engines import Processes, Ray
from tests.engines.small_problems import Parts
from tests.torch.small_networks import make_policy, train


def weights(engine: Any) -> dict[str, np.ndarray]:
    """The weights after training."""
    policy = make_policy()
    train(policy, engine=engine, passes=1)
    found: dict[str, np.ndarray] = policy.state()
    return found


def test_any_number_of_workers_gives_the_same_network() -> None:
    parts = weights(Parts())
    found = weights(Processes(workers=2))
    assert all(np.array_equal(parts[name], found[name]) for name in parts)
    alone = weights(None)
    assert all(np.allclose(parts[name], alone[name], atol=1e-4) for name in parts)


@pytest.mark.ray
@pytest.mark.skipif(not find_spec("ray"), reason="needs Ray")
def test_workers_on_ray() -> None:
    parts, found = weights(Parts()), weights(Ray(workers=2))
    assert all(np.array_equal(parts[name], found[name]) for name in parts)
