"""A slow beam search to compare with, and random cases."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import lols
from lols.engine.beam import Beams
from lols.engine.structures import following
from lols.learners.learner import hadamard_code
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, all_features, data_sets
from tests.engine.twin import in_arrays

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
needs_compiler = pytest.mark.skipif(not JIT, reason="compares with compiled code")
SPACES = ["bare", "keyed", "full", "pictured"]  # "closed" is the space of "full"
KEYED = ["keyed", "full"]
SCORES = ["regret", "cost"]
ALL_PATHS = ACTIONS**5

Path = tuple[float, list[int], list[int]]  # score, actions, end state


# --- the twin ---------------------------------------------------------------------------------------------------------


def twin_beam(search: SlowSearch, *, width: int, best: int, recombine: bool, score: str) -> list[Path]:
    """All continuations of all paths in a list, sorted; the first are kept."""
    paths: list[tuple[float, np.ndarray, list[int]]] = [(0.0, search.begin(), [])]
    while any(search.legal(s) for _, s, _ in paths):
        candidates = []
        for rank, (so_far, s, taken) in enumerate(paths):
            if not search.legal(s):
                candidates.append((so_far, rank, 0.0, -1, s, taken))
            for a, regret, added in continuations(search, s, score):
                candidates.append((so_far + added, rank, regret, a, search.after(s, a), [*taken, a]))
        candidates.sort(key=lambda c: c[:4])
        paths, keys = [], set()
        for total, _, _, a, s, taken in candidates:
            if recombine and a >= 0 and search.legal(s):
                key = search.space.key(search.x, s)
                if key in keys:
                    continue
                keys.add(key)
            paths.append((total, s, taken))
            if len(paths) == width:
                break
    return [(total, taken, s.tolist()) for total, s, taken in paths[:best]]


def continuations(search: SlowSearch, s: np.ndarray, score: str) -> Iterator[tuple[int, float, float]]:
    """The legal actions of a state, with their regret, and with what they add to the score."""
    costs = search.policy.costs(0, search.features(s), search.by_action(s), search.actions)
    legal = search.legal(s)
    for a in legal:
        regret = costs[a] - min(costs[b] for b in legal)
        yield a, regret, costs[a] if score == "cost" else regret


def all_paths(search: SlowSearch, score: str, s: np.ndarray | None = None) -> Iterator[Path]:
    """Every path from a state to an end state."""
    s = search.begin() if s is None else s
    if not search.legal(s):
        yield 0.0, [], s.tolist()
    for a, _, added in continuations(search, s, score):
        for rest, taken, end in all_paths(search, score, search.after(s, a)):
            yield added + rest, [a, *taken], end


# --- the engine -------------------------------------------------------------------------------------------------------


def random_policy(seed: int, variant: Variant, *, thresholds: int = 0) -> SlowPolicy:
    """Weights that are small multiples of 1/4: sums are exact, and many paths are tied."""
    rng = np.random.default_rng(seed)
    code = hadamard_code(ACTIONS) if thresholds else np.zeros((0, ACTIONS), np.float32)
    width = code.shape[0] * thresholds if thresholds else ACTIONS
    states, actions = all_features(variant)
    return SlowPolicy(
        [{f: rng.integers(-2, 3, width) / 4.0 for f in states}],
        [{f: rng.integers(-2, 3) / 4.0 for f in actions}],
        [1.0],
        code,
        thresholds,
    )


def model_of(variant: Variant, policy: SlowPolicy, **options: Any) -> lols.Model:
    return lols.Model(variant.space, in_arrays(policy, ACTIONS), following(0, False), **options)


def searches(variant: Variant, data: list[lols.Example], policy: SlowPolicy) -> list[SlowSearch]:
    return [SlowSearch(variant.space, variant.reference, example, policy, Choices()) for example in data]


def paths_of(beams: Beams, index: int) -> list[Path]:
    scores, actions, states = beams.scores(index), beams.actions(index), beams.states(index)
    assert [score for _, score in beams.outputs(index)] == scores.tolist()
    return [(*one, s.tolist()) for *one, s in zip(scores.tolist(), (a.tolist() for a in actions), states, strict=True)]


def assert_same_beams(one: Beams, other: Beams) -> None:
    for mine, others in zip(one.found, other.found, strict=True):
        assert np.array_equal(mine, others)


Case = tuple[Variant, list[lols.Example], SlowPolicy, dict[str, Any]]


@st.composite
def cases(draw: Any, name: str, *, exact: bool = True) -> Case:
    variant = VARIANTS[name]
    thresholds = 0 if variant.space.action_features else draw(st.sampled_from([0, 0, 2]))
    policy = random_policy(draw(st.integers(0, 2**31)), variant, thresholds=thresholds)
    width = draw(st.sampled_from([1, 2, 3, 5, 8, 40]))
    options = {
        "width": width,
        "best": draw(st.sampled_from([1, width, (width + 1) // 2])),
        "recombine": draw(st.booleans()) if variant.space.key else False,
        "score": draw(st.sampled_from(SCORES)),
    }
    return variant, draw(data_sets(variant, exact=exact)), policy, options


def surprises(search: SlowSearch, temperature: float, s: np.ndarray | None = None) -> Iterator[tuple[float, list[int]]]:
    """Every path from a state, with minus the logarithm of its share among all paths."""
    s = search.begin() if s is None else s
    legal = search.legal(s)
    if not legal:
        yield 0.0, []
        return
    costs = search.policy.costs(0, search.features(s), search.by_action(s), search.actions)
    shares = {a: math.exp(-costs[a] / temperature) for a in legal}
    for a in legal:
        for rest, taken in surprises(search, temperature, search.after(s, a)):
            yield rest - math.log(shares[a] / sum(shares.values())), [a, *taken]


def walk(stop: list[float], go: list[float], steps: int | None = None) -> tuple[lols.Model, lols.Examples]:
    """At each place one may stop (action 0), or go on (action 1) to the next; the end of the way is an end, too."""
    f = [lols.feature(0, k) for k in range(len(stop))]

    def start(x, s):
        pass

    def actions(x, s, legal):
        legal[:] = s[1] == 0 and s[0] < x.places

    def step(x, s, a):
        s[a ^ 1] += 1

    space = lols.SearchSpace(
        start=start,
        actions=actions,
        step=step,
        features=lambda x, s, out: lols.emit(out, lols.feature(0, s[0])),
        loss=lambda x, y, s: 0.0,
        output=lambda x, s: f"{s[0]} of {x.places}",
        encode=lambda obj: lols.Example({"places": obj}),
        sizes=lols.Sizes(state=2, actions=2, features=1, steps=len(stop) if steps is None else steps),
    )
    policy = SlowPolicy(
        [{f[k]: np.array([stop[k], go[k]]) for k in range(len(stop))}], [{}], [1.0], np.zeros((0, 2), np.float32)
    )
    return lols.Model(space, in_arrays(policy, 2), following(0, False), compiled=False), lols.Examples(
        space, [len(stop)]
    )
