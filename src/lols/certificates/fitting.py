"""The in-class regret: could a policy of the same class (features, learner) do better on these deviations?

A policy is fitted on one half of the examples and evaluated on the other half, and the other way round, so that no
policy is evaluated on what it has seen. The policy itself belongs to the class, too: where no fit helps within its own
half, it takes the place of the fit.

A policy that is not linear says itself how another one of its class begins: `onward` is a copy that learns on, `anew`
one that has learned nothing. A network has the former only: from nothing, few examples do not make one as good.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lols.certificates.deviations import Deviations, OwnDeviations
from lols.certificates.training import Training
from lols.engine.drivers.adapted import adapted
from lols.engine.structures import FrozenPolicy
from lols.engine.table import features_by_row, is_fixed
from lols.kernels.hashing import mix
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.learners.structures import SECOND_ORDER
from lols.training.order import shuffled

ITSELF = "the policy itself"


class Fit(NamedTuple):
    """A way to fit: the learner's settings, and whether to continue from the policy's weights or start from zero."""

    name: str
    settings: LearnerSettings
    onward: bool


class Crossed(NamedTuple):
    """Two policies, each fitted on one half of the examples to be judged on the other; None is the policy itself."""

    judged: tuple[np.ndarray, np.ndarray]
    policies: tuple[Any, Any]
    fits: tuple[str, str]

    def actions(self, deviations: Deviations, taken: np.ndarray) -> np.ndarray:
        """Their actions at each state of the half that they were not fitted on; `taken` are those of the policy itself.

        The deviations must be of the same examples as those that were fitted.
        """
        actions = taken.copy()
        for judged, policy in zip(self.judged, self.policies, strict=True):
            if policy is not None:
                there = deviations.states_of(judged)
                actions[there] = deviations.choices(policy, there)
        return actions


def ways(settings: LearnerSettings) -> list[Fit]:
    """Ways to fit a policy of the class: the learner of training, also at its default rate, from zero or continued.

    >>> [way.name for way in ways(LearnerSettings("hinge", "adagrad", rate=0.001))]
    ['anew', 'onward', 'anew, rate 0.1', 'onward, rate 0.1']
    """
    usual = replace(settings, rate=None)
    fits = [Fit("anew", settings, False), Fit("onward", settings, True)]
    if usual.step != settings.step:
        fits += [Fit(f"{way.name}, rate {usual.step:g}", usual, way.onward) for way in fits]
    return [way for way in fits if not way.onward or settings.update not in SECOND_ORDER]


def own_ways(policy: Any, settings: LearnerSettings) -> list[Fit]:
    """Ways to fit a policy of the class of one that is not linear, as far as it has them."""
    return [Fit(name, settings, name == "onward") for name in ("anew", "onward") if adapted(policy).can(name)]


def crossed(deviations: Deviations, taken: np.ndarray, policy: Any, training: Training, seed: int) -> Crossed:
    """Fit on each half, to be judged on the other; the halves depend on the seed only."""
    order = shuffled(len(deviations), mix(seed, 0x4A1F))
    halves = order[: order.size // 2], order[order.size // 2 :]
    one, other = (
        _best(deviations, taken, fitted, policy, training, mix(seed, number)) for number, fitted in enumerate(halves)
    )
    return Crossed(halves[::-1], (one[1], other[1]), (one[0], other[0]))


def _best(
    deviations: Deviations, taken: np.ndarray, chosen: np.ndarray, policy: Any, training: Training, seed: int
) -> tuple[str, Any]:
    """Choose the best way to fit by a held-out third of the examples, then fit on all of them."""
    seen, unseen = chosen[: 2 * chosen.size // 3], chosen[2 * chosen.size // 3 :]
    there = deviations.states_of(unseen)
    best, least = None, deviations.regrets(taken[there], there).sum()
    settings = training.settings
    possible = own_ways(policy, settings) if isinstance(deviations, OwnDeviations) else ways(settings)
    for way in possible if least > 0.0 else []:  # nothing is better than no regret
        fitted = fit_policy(deviations, seen, training, seed, policy, way)
        after = deviations.regrets(deviations.choices(fitted, there), there).sum()
        if after < least:
            best, least = way, after
    if best is None:
        return ITSELF, None
    return best.name, fit_policy(deviations, chosen, training, seed, policy, best)


def fit_policy(deviations: Deviations, chosen: np.ndarray, training: Training, seed: int, policy: Any, way: Fit) -> Any:
    """Learn from the deviations of some examples, from zero or from the policy's weights."""
    orders = [chosen[shuffled(chosen.size, mix(mix(seed, 0xF17), number))] for number in range(training.passes)]
    if isinstance(deviations, OwnDeviations):
        return _fit_own(deviations, orders, training, policy.onward() if way.onward else policy.anew())
    by_action = deviations.slots.action_start.size > 0
    averaged, compiled = training.averaged, deviations.compiled
    learner = Learner(way.settings, deviations.actions, by_action=by_action, averaged=averaged, compiled=compiled)
    if way.onward:
        learner.load(starting_state(learner, policy, deviations.features))
    for order in orders:
        learner.learn(deviations.lessons(order))
    return learner.policy(averaged=True) if learner.averaged else learner.last()


def _fit_own(deviations: OwnDeviations, orders: list[np.ndarray], training: Training, learner: Any) -> Any:
    """Let a policy learn from examples in these orders; what training returns of it."""
    for order in orders:
        for low in range(0, order.size, training.together):
            learner.update(*deviations.lesson(order[low : low + training.together]))
    name = "averaged" if training.averaged else "frozen"
    return adapted(learner).copy_by(name)


def starting_state(learner: Learner, policy: FrozenPolicy, features: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """A learner's state with the policy's weights of some features, which must be sorted, or of all.

    AdaGrad's sums of squared gradients are unknown. After updates in one direction only, a weight is
    2 · rate · √(sum of squares): the sums are set to what this gives. In the average, the weights count as those of
    the first round.
    """
    state = {"counters": np.zeros_like(learner.counters)}
    for name, table, stack, bank in (
        ("shared", policy.shared, policy.stack[0], learner.shared),
        ("single", policy.single, policy.single_stack[0][:, np.newaxis], learner.single),
    ):
        ids: np.ndarray = np.zeros(0, np.int64)
        weights = stack
        if not is_fixed(table):
            ids = features_by_row(table, int((table.rows >= 0).sum()))
            rows = np.arange(ids.size) if features is None else np.flatnonzero(np.isin(ids, features))
            ids, weights = ids[rows], stack[rows]
        squares = (weights / np.float32(2.0 * learner.recipe.rate)) ** 2
        state[f"{name}.features"] = ids
        state[f"{name}.weights"] = weights
        state[f"{name}.squares"] = squares if bank.squares.shape[0] else bank.squares
        state[f"{name}.sums"] = weights if bank.sums.shape[0] else bank.sums
        state[f"{name}.scales"] = np.zeros(weights.shape[0], np.float32) if bank.scales.shape[0] else bank.scales
    return state
