"""An object of the user's as a policy of training, such as a network; and any policy as what training knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.threads import Threads
from lols.engine.beam import BatchBeamDriver
from lols.engine.drivers.adapted import Adapted, adapted
from lols.engine.drivers.lock_step import LockStepDriver
from lols.engine.states import States
from lols.engine.structures import Batch, FrozenPolicy
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.policies.linear import Linear
from lols.policies.policy import Policy, Terms


@runtime_checkable
class OwnPolicy(Protocol):
    """Anything that predicts the costs of actions, for many states at a time, and learns from cost vectors.

    There is no base class: an object with these two methods is a policy. It may also have:

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


class Own(Policy):
    """An object of the user's: searched with in lock-step, and asked to learn from its lessons."""

    settings = LearnerSettings("csoaa", "nag", scale=None)  # exact costs matter

    def __init__(self, given: Any):
        self.own: Adapted = adapted(given)
        self.averages, self.copies = self.own.can("averaged"), self.own.can("frozen")
        self._returned, self._kept = "average", None
        self.rounds, self.states = 0, 0

    # --- deciding ---

    @property
    def asked(self) -> Any:
        return self.own.given

    @property
    def name(self) -> str:
        return self.own.name

    @property
    def random(self) -> bool:
        return self.own.random

    @property
    def together(self) -> int | None:
        return self.own.together

    def driver(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: Threads = 1,
        together: int | None = None,
        compiled: bool = True,
    ) -> LockStepDriver:
        how: Any = {"threads": threads, "compiled": compiled, "room": self.own.room}
        return LockStepDriver(space, examples, reference, **how)

    def beam_driver(
        self, space: SearchSpace, examples: Examples, *, threads: Threads, compiled: bool
    ) -> BatchBeamDriver:
        return BatchBeamDriver(space, examples, threads=threads, compiled=compiled)

    def in_lock_step(self, space: SearchSpace, *, compiled: bool = True) -> Any:
        return self.own.given

    # --- learning ---

    def begun(self, terms: Terms) -> Own:
        """The same object, which learns."""
        made = type(self)(self.own)
        made._returned = terms.returned
        return made

    def check_learns(self) -> None:
        self.own.check()

    def followed_by(self, other: Policy) -> Policy:
        if isinstance(other, Own):
            other.rounds, other.states = self.rounds, self.states
        return other

    def warm_up(self) -> None:
        self.own.warm_up()

    @property
    def sent(self) -> Any:
        return self.own.given

    def learn(self, batch: Batch, driver: LockStepDriver) -> None:
        states, costs, weights = driver.lesson(batch)
        self.rounds += batch.lessons.example.size
        self.states += len(states)
        self.own.update(states, costs, weights)

    def copied(self) -> Any:
        return self.own.copy_by("frozen")

    def returned(self) -> Any:
        """The policy that was kept, or its average, or a copy; without these methods the object itself."""
        if self._kept is not None:
            return self._kept
        return self.own.copy_by("averaged" if self._returned == "average" else "frozen")

    def keep(self) -> None:
        self._kept = self.own.copy_by("frozen")

    def onward(self) -> Own:
        return type(self)(self.own.onward())

    # --- what is written down ---

    def describe(self) -> dict[str, Any]:
        return {"policy": self.own.kind}

    def report(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "states": self.states}

    def check_resumable(self) -> None:
        self.own.check_saved("a checkpoint")
        if self._returned == "drawn":
            raise ConfigurationError(
                f"returned='drawn' has no checkpoints with {self.name}: choose 'last' or 'average'"
            )

    def state(self) -> dict[str, np.ndarray]:
        seen = np.array([self.rounds, self.states], np.int64)
        return {f"policy.{k}": v for k, v in self.own.state().items()} | {"seen": seen}

    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.rounds, self.states = (int(n) for n in tensors["seen"])
        self.own.load({k.removeprefix("policy."): v for k, v in tensors.items() if k.startswith("policy.")})


def as_policy(given: Any) -> Policy:
    """Weights, or an object of the user's, as a policy; a policy as it is."""
    if isinstance(given, Policy):
        return given
    return Linear.of(given) if isinstance(given, FrozenPolicy) else Own(given)
