"""An object of the user's as a policy: the only place that looks which of the optional methods it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.states import States
from lols.errors import ConfigurationError

ROOM = 1 << 26  # bytes of memory for searches in progress, unless the policy says otherwise


class Adapted:
    """A policy that is an object of the user's, with everything that can be asked of one.

    What `lols.policies.OwnPolicy` calls optional has its default here. A few methods mean something by their absence:
    `can` tells.
    """

    def __init__(self, given: Any):
        self.given, self.name = given, type(given).__name__
        self.check(("costs",))

    def check(self, needed: Sequence[str] = ("costs", "update")) -> None:
        """Raise an error if the object lacks one of these methods, by default those of a policy that learns."""
        if isinstance(self.given, type):
            name = self.given.__name__
            raise ConfigurationError(f"policy is the class {name}: give an object, {name}(...)")
        if any(not self.can(name) for name in needed):
            missing = " and ".join(f"`{name}`" for name in ("costs", "update") if not self.can(name))
            article = "an" if self.name[0].lower() in "aeiou" else "a"
            raise ConfigurationError(f"policy is {article} {self.name} without {missing}: see lols.policies.OwnPolicy")

    def can(self, name: str) -> bool:
        """Whether the object has this method."""
        return callable(getattr(self.given, name, None))

    def copy_by(self, name: str) -> Any:
        """The copy that this method makes; without it the object itself."""
        return getattr(self.given, name)() if self.can(name) else self.given

    # --- deciding ---

    @property
    def random(self) -> bool:
        """Whether `costs` draws at random."""
        return bool(getattr(self.given, "random", False))

    @property
    def batch(self) -> int | None:
        """The most states that one call of `costs` receives."""
        most: int | None = getattr(self.given, "batch", None) or None
        return most

    @property
    def most_examples(self) -> int | None:
        """The most examples that prediction searches at a time."""
        most: int | None = getattr(self.given, "most_examples", None) or None
        return most

    @property
    def room(self) -> int:
        """Bytes of memory for searches in progress in training."""
        return int(getattr(self.given, "room", ROOM))

    @property
    def scores_parts(self) -> bool:
        """Whether states in several places of the memory can be scored in one call."""
        return self.can("costs_of_parts") and self.batch is None

    def begin(self, examples: Examples, indices: np.ndarray) -> Adapted:
        """The policy to ask in a search of these examples."""
        asked = self.given.begin(examples, indices) if self.can("begin") else None
        return self if asked is None or asked is self.given else Adapted(asked)

    def costs(self, states: States) -> Any:
        """The predicted cost of every action in every state."""
        return self.given.costs(states)

    def costs_of_parts(self, parts: Sequence[States]) -> Any:
        """The same for states in several places of the memory."""
        return self.given.costs_of_parts(parts)

    # --- learning ---

    @property
    def together(self) -> int | None:
        """How many examples a batch has when it learns on; None for as many as in training."""
        count: int | None = getattr(self.given, "together", None)
        return count

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from the states of a batch."""
        self.given.update(states, costs, weights)

    def onward(self) -> Any:
        """A copy that learns on; an error if it cannot make one."""
        if not self.can("onward"):
            raise ConfigurationError(
                f"a {self.name} cannot learn on: give it a method `onward`, which returns a copy that can"
            )
        return self.given.onward()

    def warm_up(self) -> None:
        """Have ready what is needed later, if the object has such a thing."""
        if self.can("warm_up"):
            self.given.warm_up()

    # --- files ---

    @property
    def kind(self) -> str:
        """The import path of its class."""
        return f"{type(self.given).__module__}:{type(self.given).__qualname__}"

    def check_saved(self, what: str) -> None:
        """Raise an error if the object has no arrays to be written, which `what` needs."""
        for name in ("state", "load"):
            if not self.can(name):
                raise ConfigurationError(f"{what} needs the policy's arrays: give {self.name} a method `{name}`")

    def state(self) -> dict[str, np.ndarray]:
        """Its arrays."""
        self.check_saved("a model file")
        state, whose = self.given.state(), f"`state` of {self.name}"
        if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
            raise ConfigurationError(f"{whose} gave {type(state).__name__}: give a dictionary of arrays, with names")
        for name, array in state.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
                raise ConfigurationError(f"{whose} has a {type(array).__name__} under '{name}': give arrays of numbers")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ConfigurationError(f"{whose} has NaN or infinity under '{name}': has it diverged?")
        return dict(state)

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore such arrays."""
        self.given.load(state)


def adapted(policy: Any) -> Adapted:
    """A policy of the user's, adapted; one that is adapted already as it is.

    >>> adapted(3)
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: policy is an int without `costs` and `update`: see lols.policies.OwnPolicy
    """
    return policy if isinstance(policy, Adapted) else Adapted(policy)
