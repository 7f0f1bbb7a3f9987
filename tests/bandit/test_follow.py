"""Target policies along logged trails, and in stored states, against a twin in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.bandit.follow import LogFollower, target_in
from lols.engine.lessons import predicted_costs
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import VARIANTS, Variant, all_features, random_data
from tests.engine.twin import in_arrays


def random_policy(seed: int, variant: Variant, components: int, thresholds: int) -> SlowPolicy:
    rng = np.random.default_rng(seed)
    states, actions = all_features(variant)
    code = rng.integers(0, 2, (3 if thresholds else 0, 4)).astype(np.float32)
    width = code.shape[0] * thresholds if thresholds else 4
    return SlowPolicy(
        [{k: rng.integers(-8, 9, width) / 4.0 for k in states} for _ in range(components)],
        [{k: int(rng.integers(-8, 9)) / 4.0 for k in actions} for _ in range(components)],
        [1 / components] * components,
        code,
        thresholds,
    )


def same_as_twin(variant: Variant, seed: int, components: int, thresholds: int, epsilon: float, compiled: bool) -> None:
    rng = np.random.default_rng(seed)
    data = random_data(seed, variant, count=3)
    policy = random_policy(seed, variant, components, thresholds)
    given_policy = in_arrays(policy, 4)
    searches = [SlowSearch(variant.space, variant.reference, example, policy, Choices()) for example in data]
    paths = []
    for search in searches:
        states, trail, s = [], [], search.begin()
        while search.legal(s):
            states.append(s)
            trail.append(int(rng.choice(search.legal(s))))
            s = search.after(s, trail[-1])
        paths.append((states, trail))
    follower = LogFollower(variant.space, given_policy, epsilon, compiled=compiled)
    made = follower([7, 8, 9], data, [np.array(trail, np.int32) for _, trail in paths])
    lessons, slots = made.lessons, made.lessons.slots
    costs = predicted_costs(lessons, given_policy, compiled=compiled)
    again = target_in(lessons, given_policy, made.legal, epsilon, compiled=compiled)
    for b, (search, (states, trail)) in enumerate(zip(searches, paths, strict=True)):
        assert lessons.filled[b] == len(trail)
        for t, (s, a) in enumerate(zip(states, trail, strict=True)):
            slot, legal = lessons.first[b] + t, search.legal(s)
            for found, share in ((made.target, epsilon / data[b].x["depth"]), (again, epsilon)):
                expected = np.zeros(4)
                for c in range(components):
                    expected[search.learner(s, legal, c, 0)] += (1 - share) / components
                expected[legal] += share / len(legal)
                assert found[slot] == pytest.approx(expected)
            assert made.taken[slot] == a and np.flatnonzero(made.legal[slot]).tolist() == legal
            assert costs[slot][legal] == pytest.approx(np.array(search.predicted(s, 0))[legal])
            kept = slice(slots.start[slot], slots.stop[slot])
            assert list(zip(slots.ids[kept], slots.values[kept], strict=True)) == search.features(s)


@pytest.mark.parametrize("name", ["bare", "full", "pictured"])
@given(st.integers(0, 2**32 - 1), st.sampled_from([(1, 0), (2, 0), (1, 2)]), st.sampled_from([0.0, 0.25]))
def test_a_target_along_trails_does_as_its_twin(name: str, seed: int, shape: tuple[int, int], epsilon: float) -> None:
    components, thresholds = shape
    same_as_twin(VARIANTS[name], seed, components, thresholds if name != "pictured" else 0, epsilon, False)


@pytest.mark.parametrize("name", ["full", "pictured"])
def test_compiled_it_does_so_too(name: str) -> None:
    for seed in range(40):
        same_as_twin(
            VARIANTS[name], seed, 1 + seed % 2, 2 * (seed % 3 == 0 and name == "full"), 0.25 * (seed % 2), True
        )
