"""What a policy must have to be trained: two methods, and some more that it may have."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from lols.engine.states import States
from lols.errors import ConfigurationError

__all__ = ["Policy", "checked"]


@runtime_checkable
class Policy(Protocol):
    """Anything that predicts the costs of actions, for many states at a time, and learns from cost vectors.

    It may also have:

    `batch`
        The most states that `costs` is to be given at a time; all that wait unless it is there.
    `state()`, `load(state)`
        Everything that learning and predicting go on from, as named arrays: then models can be saved and runs resumed.
    `frozen()`
        A copy that later updates do not touch: for `returned="drawn"`.
    `averaged()`
        A copy that is the average over updates: for `returned="average"`, which is then the default.
    `random`
        True if `costs` draws at random, by `states.draws`: no roll-out is then merged with another.
    """

    def costs(self, states: States) -> np.ndarray:
        """The predicted cost of every action in every state, [state, action]: the least of the legal ones is taken.

        A state's costs must not depend on the states beside it.
        """
        ...

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from the states of a batch of examples, example after example and step after step.

        `costs[i, a]` is what action a costs more in state i than the best one does; it is infinite where that is not
        known, as of illegal actions. `weights` has one weight for each state.
        """
        ...


def checked(policy: Any) -> Policy:
    """The policy, if it has what it needs.

    >>> checked(3)
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: policy is an int without `costs` and `update`: see lols.policies.Policy
    """
    if isinstance(policy, type):
        raise ConfigurationError(f"policy is the class {policy.__name__}: give an object, {policy.__name__}(...)")
    missing = [name for name in ("costs", "update") if not callable(getattr(policy, name, None))]
    if missing:
        kind = type(policy).__name__
        article = "an" if kind[0].lower() in "aeiou" else "a"
        names = " and ".join(f"`{name}`" for name in missing)
        raise ConfigurationError(f"policy is {article} {kind} without {names}: see lols.policies.Policy")
    return policy
