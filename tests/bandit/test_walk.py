"""The walks of a bandit: what is drawn, with which probability, and what one loss says on average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit.decider import Decider
from lols.bandit.entries import Decision
from lols.bandit.estimates import estimate
from lols.bandit.seen import Seen
from lols.bandit.walk import EXPLOIT, EXPLORATIONS, EXPLORE, RANDOMISED, REFERENCE, WalkPlan
from lols.contract.examples import Examples
from lols.datasets.worlds import tagging_data, tagging_references
from lols.errors import ConfigurationError, SpaceError
from lols.kernels.hashing import mix
from tests.bandit.small_bandit import LABELS, RULES, SPACE

WORDS = [4, 7, 5]
TRUTH = [1, 2, 0]


@pytest.fixture(scope="module", params=[True, False], ids=["compiled", "plain"])
def compiled(request: Any) -> bool:
    return bool(request.param)


def trained(compiled: bool) -> lols.Model:
    data = tagging_data(30, labels=LABELS, words=20, seed=3)
    return lols.train(
        SPACE, data, tagging_references()["optimal"], passes=1, learner="csoaa", compiled=compiled, returned="last"
    )


def way(mode: int, stream: int = 0, beta: float = 0.5, epsilon: float = 0.4, exploration: str = "uniform") -> WalkPlan:
    return WalkPlan(mode, mix(stream, 77), beta, epsilon, EXPLORATIONS[exploration], 0.3)


def loss_of(tags: list[int]) -> float:
    return sum(tag != true for tag, true in zip(tags, TRUTH, strict=True)) / len(TRUTH)


def completed(model: lols.Model, prefix: list[int], by_reference: bool) -> list[int]:
    """A prefix of tags, completed by plain Python calls of the space."""
    examples = Examples(SPACE, [{"words": WORDS}])
    x, y = examples.example(0)
    s = np.zeros(int(examples.states[0]), np.int64)
    SPACE.start(x, s)
    for t in range(len(WORDS)):
        if t < len(prefix):
            action = prefix[t]
        elif by_reference:
            action = int(RULES.action(x, y, s))  # type: ignore[misc]
        else:
            action = int(np.argmin(predicted(model, x, s)))
        SPACE.step(x, s, action)
    return list(SPACE.output(x, s))


def predicted(model: lols.Model, x: Any, s: np.ndarray) -> np.ndarray:
    """Predicted costs from the model's weights, feature by feature."""
    from lols.contract.features import feature_buffer
    from lols.engine.table import lookup

    out = feature_buffer(SPACE.sizes.features)
    SPACE.features(x, s, out)
    total = np.zeros(LABELS, np.float32)
    with np.errstate(over="ignore"):
        for k in range(int(out.size[0])):
            row = lookup(model.policy.shared, int(out.ids[k]))
            if row >= 0:
                total += out.values[k] * model.policy.stack[0, row]
    return total


@pytest.mark.uncompiled
def test_without_exploration_policy_and_rules_are_followed(compiled: bool) -> None:
    model = trained(compiled)
    decider = Decider(SPACE, RULES, compiled=compiled)
    assert decider.walk({"words": WORDS}, model.policy, way(EXPLOIT))[0] == completed(model, [], False)
    output, shown = decider.walk({"words": WORDS}, model.policy, way(REFERENCE))
    assert output == completed(model, [], True) == [0, 1, 1]
    assert shown.step == -1 and shown.actions.tolist() == [0, 1, 1]


@pytest.mark.uncompiled
@pytest.mark.thinned(2)
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_one_loss_is_right_on_average(compiled: bool, beta: float) -> None:
    model = trained(compiled)
    decider = Decider(SPACE, RULES, compiled=compiled)
    own = completed(model, [], False)
    exact = np.array(
        [
            [
                beta * loss_of(completed(model, [*own[:t], a], True))
                + (1 - beta) * loss_of(completed(model, [*own[:t], a], False))
                for a in range(LABELS)
            ]
            for t in range(3)
        ]
    )
    sums = {name: np.zeros((3, LABELS)) for name in ("ips", "dr")}
    visits, rounds = np.zeros(3), 3000 if compiled else 500
    guess = np.array([0.3, 0.6, 0.1])
    for stream in range(rounds):
        output, walk = decider.walk({"words": WORDS}, model.policy, way(EXPLORE, stream, beta))
        assert walk.chance_step == 1 / 3 and walk.chance_action == pytest.approx(1 / LABELS)
        assert walk.actions.tolist()[: walk.step] == own[: walk.step] and walk.actions[walk.step] == walk.action
        assert output == completed(model, [*own[: walk.step], walk.action], walk.by_reference)
        for name, total in sums.items():
            made = estimate(name, np.ones(LABELS, np.bool_), walk.action, walk.chance_action, loss_of(output), guess)
            total[walk.step] += made.costs
        visits[walk.step] += 1
    close = 0.12 if compiled else 0.3
    assert np.abs(visits / rounds - 1 / 3).max() < close / 2
    for total in sums.values():
        assert np.abs(total / visits[:, np.newaxis] - exact).max() < close


@pytest.mark.uncompiled
@pytest.mark.thinned(2)
@pytest.mark.parametrize("exploration", [name for name in EXPLORATIONS if name != "gap"])  # see test_gaps.py
def test_the_chances_of_randomised_walks_add_up(compiled: bool, exploration: str) -> None:
    model = trained(compiled)
    decider = Decider(SPACE, RULES, compiled=compiled)
    rounds, seen, chance = 3000 if compiled else 400, {}, {}
    for stream in range(rounds):
        output, walk = decider.walk({"words": WORDS}, model.policy, way(RANDOMISED, stream, exploration=exploration))
        key = tuple(output)
        seen[key] = seen.get(key, 0) + 1
        assert walk.propensity == pytest.approx(float(np.prod(walk.chances)))
        assert chance.setdefault(key, walk.propensity) == pytest.approx(walk.propensity)
        assert walk.action == walk.actions[walk.step] and walk.chance_action == pytest.approx(walk.chances[walk.step])
        assert walk.chance_step == 1 / 3 and output == walk.actions.tolist()
    assert 0.9 < sum(chance.values()) <= 1 + 1e-9
    for key, count in seen.items():
        assert abs(count / rounds - chance[key]) < (0.04 if compiled else 0.1)


@pytest.mark.uncompiled
def test_compiled_and_plain_walks_are_the_same() -> None:
    model = trained(False)
    desks = [Decider(SPACE, RULES, compiled=c) for c in (True, False)]
    for stream in range(60):
        for mode in (EXPLOIT, REFERENCE, EXPLORE, RANDOMISED):
            one, other = (decider.walk({"words": WORDS}, model.policy, way(mode, stream)) for decider in desks)
            assert one[0] == other[0]
            for name, a, b in zip(Decision._fields, one[1], other[1]):
                assert name == "propensity" or np.array_equal(a, b), name
            assert one[1].propensity == pytest.approx(other[1].propensity, nan_ok=True)


def test_votes_are_the_chances_of_a_deviation() -> None:
    model, seen = trained(True), np.zeros(LABELS)

    def votes(state: Seen) -> np.ndarray:
        assert state.slot("stop")[0] > state.slot("start")[0] and state.legal.all()
        return np.array([0.0, 0.25, 0.75])

    decider = Decider(SPACE, RULES)
    for stream in range(2000):
        _, walk = decider.walk({"words": WORDS}, model.policy, way(EXPLORE, stream), votes)
        assert walk.chance_action == [0.0, 0.25, 0.75][walk.action]
        seen[walk.action] += 1
    assert seen[0] == 0 and abs(seen[1] / 2000 - 0.25) < 0.05


def test_larger_objects_after_smaller_ones() -> None:
    model, decider = trained(True), Decider(SPACE, RULES)
    for words in ([1], [1, 2, 3, 4, 5, 6, 7, 8], [2, 3]):
        assert decider.walk({"words": words}, model.policy, way(REFERENCE))[0] == [w % 2 for w in words]


@pytest.mark.uncompiled
def test_mistakes_of_the_rules_are_named(compiled: bool) -> None:
    wrong = lols.Reference(action=lambda x, y, s: 17, needs_truth=False)
    decider = Decider(SPACE, wrong, compiled=compiled)
    with pytest.raises(SpaceError, match="the reference takes action 17, which `actions` does not allow"):
        decider.walk({"words": WORDS}, trained(compiled).policy, way(REFERENCE))


@pytest.mark.uncompiled
def test_estimates() -> None:
    legal = np.array([True, False, True])
    assert estimate("mtr", legal, 2, 0.25, 0.5).costs.tolist() == [np.inf, np.inf, 0.5]
    assert estimate("mtr", legal, 2, 0.25, 0.5).weight == 4.0
    assert estimate("direct", legal, 2, 0.25, 0.5, np.array([0.1, 0.2, 0.3])).costs.tolist() == [0.1, np.inf, 0.3]
    from lols.bandit.estimates import check_estimator_name

    with pytest.raises(ConfigurationError, match="choose ips, direct, dr, mtr"):
        check_estimator_name("best", "csoaa")
    with pytest.raises(ConfigurationError, match="use csoaa, not hinge"):
        check_estimator_name("mtr", "hinge")
