"""Random lessons, learners with their twins, and comparisons of the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lols.contract.features import feature
from lols.engine.table import lookup
from lols.learners.learner import Learner, hadamard_code
from lols.learners.settings import DEFAULT_RATES, LearnerSettings
from lols.specification import Lesson, votes
from tests.engine.twin import lessons_of, weights_by_feature
from tests.engine.twin_learner import TwinLearner

ACTIONS = 4
PAIRS = sorted(DEFAULT_RATES)
BY_ACTION = [(r, u) for r, u in PAIRS if r != "secoc" and u != "ridge"]
EXACT = ("gd", "perceptron", "adagrad")
Rounds = list[list[Lesson]]


def named(pairs: list[tuple[str, str]]) -> Any:
    return pytest.mark.parametrize(("reduction", "update"), pairs, ids=["-".join(p) for p in pairs])


def random_rounds(
    seed: int, *, count: int = 8, features: int = 8, by_action: bool = False, weighted: bool = True
) -> Rounds:
    """Rounds of one to three states with real-valued features, some actions missing, and importance weights."""
    rng = np.random.default_rng(seed)

    def some(template: int, size: int, most: int) -> list[tuple[int, float]]:
        chosen = rng.choice(size, rng.integers(1, most + 1), replace=False)
        values = rng.uniform(-2, 2, chosen.size) * (rng.random(chosen.size) < 0.9)
        return [(feature(template, int(k)), float(np.float32(v))) for k, v in zip(chosen, values, strict=True)]

    made = []
    for _ in range(count):
        states = []
        for _ in range(rng.integers(1, 4)):
            legal = np.flatnonzero(rng.random(ACTIONS) < 0.8).tolist() or [2]
            costs = np.float32(rng.uniform(0, 2, len(legal)) * (rng.random(len(legal)) < 0.7))
            costs -= costs.min()
            weight = float(np.float32(rng.uniform(0.3, 3.0))) if weighted else 1.0
            own = {a: some(1, 5, 2) for a in legal} if by_action else {}
            prices = {a: float(c) for a, c in zip(legal, costs, strict=True)}
            states.append(Lesson(some(0, features, min(4, features)), prices, weight, own))
        made.append(states)
    return made


def make(reduction: str, update: str, *, by_action: bool = False, **settings: Any) -> tuple[Learner, TwinLearner]:
    if update == "ridge" and settings.get("bits") is None:
        settings.setdefault("max_features", 16)
    if update == "sketch":
        settings.setdefault("directions", 3)
    chosen = LearnerSettings(reduction, update, **settings)
    twin = TwinLearner(
        reduction,
        update,
        chosen.step,
        ACTIONS,
        margin=chosen.margin,
        code=hadamard_code(ACTIONS) if reduction == "secoc" else None,
        by_action=by_action,
        max_features=chosen.max_features,
        directions=chosen.directions,
        decay=chosen.decay,
    )
    return Learner(chosen, ACTIONS, by_action=by_action), twin


def taught(rounds: Rounds, reduction: str, update: str, **settings: Any) -> Learner:
    learner, _ = make(reduction, update, **settings)
    for one in rounds:
        learner.learn(lessons_of([one], ACTIONS))
    return learner


def assert_weights_equal(policy: Any, twin: Any, *, exact: bool) -> None:
    for found, wanted in zip(weights_by_feature(policy), (twin.shared[0], twin.single[0]), strict=True):
        for identity in found.keys() | {f for f, w in wanted.items() if np.any(w)}:
            mine, other = found.get(identity, np.zeros(1)), np.atleast_1d(wanted.get(identity, 0.0))
            if exact:
                assert np.array_equal(mine, np.float32(other))
            else:
                np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


def predicted(policy: Any, example: Lesson, component: int = 0) -> np.ndarray:
    """Predicted costs of all actions, features one by one."""
    columns = np.zeros(policy.stack.shape[2])
    for identity, value in example.features:
        row = lookup(policy.shared, identity)
        columns += value * policy.stack[component, row] if row >= 0 else 0.0
    costs = np.array(votes(policy.code, policy.thresholds, columns)) if policy.thresholds else columns
    for a, own in example.by_action.items():
        for identity, value in own:
            row = lookup(policy.single, identity)
            costs[a] += value * policy.single_stack[component, row] if row >= 0 else 0.0
    return costs
