"""Random small spaces for tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lols.datasets.small_spaces import SmallSpace, random_space


def made_space(seed: int, steps: int, actions: int, slips: float, limited: bool) -> SmallSpace:
    return random_space(np.random.default_rng(seed), steps=steps, actions=actions, slips=slips, limited=limited)


SPACES = st.builds(
    made_space,
    st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 3), st.sampled_from([0.0, 0.5, 1.0]), st.booleans(),
)  # fmt: skip
