"""What a learner goes on from: the state of another one, with more actions if need be, or weights alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.engine.structures import FrozenPolicy
from lols.engine.table import features_by_row, is_fixed
from lols.errors import ConfigurationError
from lols.learners.learner import Learner
from lols.learners.structures import SKETCH


def state_of_policy(policy: FrozenPolicy, learner: Learner) -> dict[str, np.ndarray]:
    """The state of a learner like this one that has the weights of a policy, and remembers nothing else.

    The weights count as if they had been there from the first round on, so that the average begins with them.
    """
    if policy.chances.size != 1:
        raise ConfigurationError(
            "the policy is a mixture of several, as Searn makes them, and no learner has its weights: train anew with "
            "another algorithm to go on"
        )
    state = {"counters": np.zeros_like(learner.counters)}
    for name, table, weights, bank in (
        ("shared", policy.shared, policy.stack[0], learner.shared),
        ("single", policy.single, policy.single_stack[0][:, np.newaxis], learner.single),
    ):
        count = weights.shape[0] if is_fixed(table) else int((table.rows >= 0).sum())
        features = features_by_row(table, count)
        weights = np.ascontiguousarray(weights[:count], np.float32)
        if is_fixed(table) != is_fixed(bank.table) or weights.shape[1:] != bank.weights.shape[1:]:
            raise ConfigurationError("the policy's weights are those of another learner: go on with its own options")
        state[f"{name}.features"], state[f"{name}.weights"] = features, weights
        state[f"{name}.squares"] = np.zeros_like(weights[: count if bank.squares.shape[0] else 0])
        state[f"{name}.sums"] = weights[: count if bank.sums.shape[0] else 0]
        state[f"{name}.scales"] = np.zeros(count if bank.scales.shape[0] else 0, np.float32)
        if bank.inverse.size:
            state[f"{name}.inverse"] = bank.inverse
        if learner.recipe.update == SKETCH:
            state[f"{name}.base"] = weights
            state[f"{name}.sketch"] = np.zeros((*weights.shape, bank.sketch.shape[2]), np.float32)
            state[f"{name}.stamps"] = np.zeros(weights.shape, np.int32)
    if learner.recipe.update == SKETCH:
        state |= {part: array for part, array in learner.state().items() if part.startswith("sketch.")}
    return state


def widened(state: Mapping[str, np.ndarray], learner: Learner, places: np.ndarray) -> dict[str, np.ndarray]:
    """The state for a learner of more actions, of which action k of the earlier one is number `places[k]`.

    A new action costs what the others cost on average. The weights of the hinge add up to 0, so there that is 0.
    """
    settings = learner.settings
    if settings.reduction == "secoc" or settings.update in ("ridge", "sketch"):
        what = "secoc" if settings.reduction == "secoc" else settings.update
        raise ConfigurationError(
            f"{what} cannot learn new labels or actions later on: train anew, or use hinge or csoaa"
        )
    made, columns = dict(state), learner.columns
    added = np.setdiff1d(np.arange(columns), places)
    for part in ("weights", "squares", "sums"):
        old = state[f"shared.{part}"]
        if old.ndim != 2 or old.shape[1] != places.size:
            raise ConfigurationError("the learner's state has another number of actions: give one of this task")
        new = np.zeros((old.shape[0], columns), np.float32)
        new[:, places] = old
        if settings.reduction != "hinge" and part != "squares" and places.size:
            new[:, added] = old.mean(axis=1, dtype=np.float64).astype(np.float32)[:, np.newaxis]
        made[f"shared.{part}"] = new
    return made
