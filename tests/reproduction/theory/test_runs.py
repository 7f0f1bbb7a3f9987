"""The library's own training on small spaces: the space keeps its contract, and is the same compiled or not."""

from __future__ import annotations

import numpy as np
import pytest

from lols.contract.checks import check_space
from lols.reproduction.theory.runs import Layers, start_examples, train_lols
from lols.reproduction.theory.small_spaces import random_space

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs


def test_the_space_keeps_its_contract() -> None:
    space = random_space(np.random.default_rng(2), steps=3, actions=3)
    check_space(Layers(actions=3), start_examples(space), Layers.teacher)


@pytest.mark.parametrize("seed", range(3))
def test_policies_are_the_same_compiled_or_not(seed: int) -> None:
    space = random_space(np.random.default_rng(seed), steps=3, actions=2 + seed % 2)
    one, other = (train_lols(space, 30, 0.5, seed=seed, compiled=compiled) for compiled in (True, False))
    assert one.tolist() == other.tolist()
