"""The lessons of the engine compared with those of the specification, on random policies."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

import lols
from lols.engine.drivers.fused import FusedDriver
from lols.learners.learner import hadamard_code
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import ACTIONS, Variant, all_features, in_parts
from tests.engine.twin import collected, in_arrays
from tests.engine.twin_learner import TwinLearner

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
needs_compiler = pytest.mark.skipif(not JIT, reason="compares with compiled code")
STRATEGIES = [
    (into, out, mix)
    for into, out in itertools.product(("learned", "reference", "mixture"), ("learned", "reference", "mixture", "none"))
    for mix in (("state", "rollout", "example", "expected", "step") if out == "mixture" else ("state",))
]


def random_policy(seed: int, variant: Variant, *, components: int = 1, thresholds: int = 0) -> SlowPolicy:
    """Weights that are small multiples of 1/4: sums are exact, and many actions are tied."""
    rng = np.random.default_rng(seed)
    code = hadamard_code(ACTIONS) if thresholds else np.zeros((0, ACTIONS), np.float32)
    width = code.shape[0] * thresholds if thresholds else ACTIONS
    states, actions = all_features(variant)
    return SlowPolicy(
        [{f: rng.integers(-2, 3, width) / 4.0 for f in states if rng.random() < 0.8} for _ in range(components)],
        [{f: rng.integers(-2, 3) / 4.0 for f in actions} for _ in range(components)],
        [1.0 / components] * components,
        code,
        thresholds,
    )


# A hinge under the perceptron adds and subtracts feature values: exact, so no tie is broken by rounding.
COUNTING = lols.LearnerSettings("hinge", "perceptron")


def assert_collects_what_the_twin_does(
    variant: Variant,
    data: list[lols.Example],
    policy: SlowPolicy,
    choices: Choices,
    *,
    seed: int = 0,
    tricks: dict[str, bool] | None = None,
    compiled: bool = True,
    learner: lols.LearnerSettings | None = None,
    parts: int = 1,
) -> int:
    """Compare what is collected; how many states of weight 0 there were."""
    beta, beta_in = choices.beta, choices.beta if choices.beta_in is None else choices.beta_in
    learner = learner or lols.LearnerSettings()
    trainer = lols.Trainer(
        variant.space, variant.reference, seed=seed, tricks=tricks, learner=learner, **choices.options()
    )
    plan = trainer.plan._replace(compare=choices.mix != "step")
    examples = lols.Examples(variant.space, data)
    if parts > 1:
        examples = in_parts(examples, parts, seed)
    n = len(data)
    rounds = np.arange(n) + 7
    twin = TwinLearner("hinge", learner.update, 1.0, ACTIONS, margin=learner.margin, slack=learner.slack)
    passed = 0
    with FusedDriver(variant.space, examples, variant.reference, compiled=compiled) as driver:
        batch = driver.make_lessons(
            np.arange(n), rounds, in_arrays(policy, ACTIONS), plan, np.full(n, beta), np.full(n, beta_in)
        )
    for b in range(n):
        search = SlowSearch(
            variant.space, variant.reference, data[b], policy, choices,
            seed=seed, number=int(rounds[b]), beta=beta, beta_in=beta_in, learner=twin,
        )  # fmt: skip
        expected, losses = search.lessons()
        passed += sum(example.weight == 0.0 for example in expected)
        assert collected(batch, b) == expected
        assert batch.losses[b].tolist() == (losses if plan.compare else [losses[0], 0.0, 0.0])
    return passed
