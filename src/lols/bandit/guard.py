"""Do no harm: show the reference's structure until the learned policy is better with confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lols.errors import ConfigurationError

LEAST = 30  # losses of each policy before they are compared


class Recent:
    """Mean and variance of losses, with exponentially decreasing weights of older ones.

    >>> recent = Recent(memory=1000.0)
    >>> for loss in (0.25, 0.75): recent.add(loss)
    >>> round(recent.mean, 3), round(recent.count, 1)
    (0.5, 2.0)
    """

    def __init__(self, memory: float):
        self.keep = 1.0 - 1.0 / memory
        self.weight = self.squared_weights = self.total = self.squares = 0.0

    def add(self, loss: float) -> None:
        """Add a loss."""
        self.weight = self.weight * self.keep + 1.0
        self.squared_weights = self.squared_weights * self.keep**2 + 1.0
        self.total = self.total * self.keep + loss
        self.squares = self.squares * self.keep + loss * loss

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return self.total / self.weight if self.weight else 0.0

    @property
    def count(self) -> float:
        """The effective number of losses: as many of equal weight have the same variance."""
        return self.weight**2 / self.squared_weights if self.weight else 0.0

    @property
    def variance(self) -> float:
        """The variance of the mean; that of a fair coin if there are too few losses."""
        if self.count < LEAST:
            return 0.25 / max(self.count, 1.0)
        return max(self.squares / self.weight - self.mean**2, 0.0) / self.count + 1e-12


class Guard:
    """Compares the recent losses of the learned policy and of the reference.

    The policy is trusted once it is better by more than chance explains, until it is worse by as much. The bound holds
    at all times together: it grows with the iterated logarithm of the number of losses.

    Parameters
    ----------
    confidence
        The confidence of the bound.
    memory
        About how many recent losses of each are compared; older ones count less, because policies change.

    """

    def __init__(self, confidence: float = 0.95, memory: float = 5000.0):
        if not 0.5 <= confidence < 1.0:
            raise ConfigurationError(f"confidence is {confidence}; it is a probability from 0.5 on, below 1")
        if memory < LEAST:
            raise ConfigurationError(f"memory is {memory}; a comparison needs at least {LEAST} losses")
        self.confidence, self.memory = confidence, memory
        self.reference, self.learned = Recent(memory), Recent(memory)
        self.trusted = False

    def saw(self, loss: float, *, by_reference: bool) -> None:
        """Record the loss of a structure that the reference, or the learned policy, made.

        Parameters
        ----------
        loss
            The loss that was reported.
        by_reference
            Whether the reference made the structure.

        """
        (self.reference if by_reference else self.learned).add(loss)
        fewest = min(self.reference.count, self.learned.count)
        if fewest < LEAST:
            return
        gain = self.reference.mean - self.learned.mean
        chance = (1.0 - self.confidence) / (2.0 * math.log(max(fewest, 3.0)))
        bound = math.sqrt(-2.0 * math.log(chance) * (self.reference.variance + self.learned.variance))
        if gain > bound:
            self.trusted = True
        elif gain < -bound:
            self.trusted = False

    def identity(self) -> dict[str, float]:
        """The settings that decisions depend on."""
        return {"confidence": self.confidence, "memory": self.memory}

    def state(self) -> dict[str, Any]:
        """What was seen so far, as values of JSON."""
        return {"reference": vars(self.reference), "learned": vars(self.learned), "trusted": self.trusted}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a guard with the same settings.

        Parameters
        ----------
        state
            What `state` has given.

        """
        vars(self.reference).update(state["reference"])
        vars(self.learned).update(state["learned"])
        self.trusted = bool(state["trusted"])
