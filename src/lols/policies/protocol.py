"""The protocol of policies: two methods that are needed for training, and several optional ones."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from lols.engine.states import States
from lols.errors import ConfigurationError


@runtime_checkable
class Policy(Protocol):
    """Anything that predicts the costs of actions, for many states at a time, and learns from cost vectors.

    It may also have:

    `batch`
        The most states that one call of `costs` receives; without it there is no limit.
    `begin(examples, indices)`
        Called before the examples with these numbers are searched: a place to encode their inputs. It may return the
        policy to ask in this search, such as a copy that remembers them: then threads can share the policy.
    `most_examples`
        The most examples that prediction searches at a time; without it there is no limit.
    `room`
        Bytes of memory for searches in progress in training. With more, more of them advance together, in fewer calls.
    `state()`, `load(state)`
        The whole state of the policy as named arrays: needed to save models and to resume runs.
    `frozen()`
        A copy that later updates do not change: for `returned="drawn"`.
    `averaged()`
        A copy with the average over updates: for `returned="average"`, which is then the default.
    `onward()`
        A copy that learns on from here: for `partial_fit`, and for the regret in class of certificates, which also asks
        for `anew()`, a copy that has learned nothing, if there is one.
    `together`
        How many examples a batch has when it learns on; without it as many as in training.
    `random`
        True if `costs` draws at random, using `states.draws`: then roll-outs are not merged.
    """

    def costs(self, states: States) -> np.ndarray:
        """The predicted cost of every action in every state, [state, action]; the cheapest legal action is taken.

        The costs of a state must not depend on the other states of the call.

        Parameters
        ----------
        states
            The states whose actions are to be judged.

        """
        ...

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from the states of a batch of examples, in the order of examples and steps.

        `costs[i, a]` is the cost of action a in state i above that of the best action; it is infinite for illegal
        actions and others whose cost is unknown. `weights` has one weight for each state.

        Parameters
        ----------
        states
            The states that were searched.
        costs
            The costs of the actions, `[state, action]`; infinite where they are not known.
        weights
            How much each state counts.

        """
        ...


def checked(policy: Any) -> Policy:
    """The policy, if it has the methods of the protocol.

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
