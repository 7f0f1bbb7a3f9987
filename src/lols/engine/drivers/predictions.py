"""The results of following a policy: end states, actions, predicted costs, and the space's outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.memory import state_type
from lols.engine.predict import Ends


class Predictions:
    """End states, actions and, on request, predicted costs of all examples.

    Costs are kept for this many `actions`. With a `temperature` above 0, so is the share of each action taken in a
    softmax of the costs.
    """

    def __init__(self, examples: Examples, compiled: bool, actions: int = 0, temperature: float = 0.0):
        self.examples = examples
        self.first = np.concatenate([[0], np.cumsum(examples.states)])
        self.states = np.zeros(int(self.first[-1]), state_type(compiled))
        self.first_step = np.concatenate([[0], np.cumsum(examples.steps + 1)])
        self.taken = np.full(int(self.first_step[-1]), -1, np.int32)
        self.scores = np.zeros((self.taken.size if actions else 0, actions), np.float32)
        self.shares = np.zeros(self.taken.size if temperature > 0.0 else 0)
        self.ends = Ends(
            self.states, self.first, self.taken, self.first_step, self.scores, self.shares, float(temperature)
        )

    def state(self, index: int) -> np.ndarray:
        """The end state of one example."""
        return self.states[self.first[index] : self.first[index + 1]]

    def actions(self, index: int) -> np.ndarray:
        """The actions taken on one example."""
        taken = self.taken[self.first_step[index] : self.first_step[index + 1]]
        return taken[: int(np.argmax(taken < 0))]

    def take_over(self, other: Predictions, chosen: np.ndarray) -> None:
        """Take end states and actions of some examples from other predictions of the same examples."""
        for own, others, first in (
            (self.states, other.states, self.first),
            (self.taken, other.taken, self.first_step),
        ):
            for i in chosen.tolist():
                own[first[i] : first[i + 1]] = others[first[i] : first[i + 1]]

    def all_actions(self) -> np.ndarray:
        """The actions taken on all examples, one after the other."""
        return self.taken[self.taken >= 0].astype(np.int64)

    def all_costs(self) -> np.ndarray:
        """The predicted costs of all steps of all examples, one after the other."""
        return self.scores[self.taken >= 0]

    def all_shares(self) -> np.ndarray:
        """The shares of all actions taken, one after the other."""
        return self.shares[self.taken >= 0]

    def costs(self, index: int) -> np.ndarray:
        """Predicted costs by step and action; infinite where an action was not legal."""
        return self.scores[self.first_step[index] : self.first_step[index] + self.actions(index).size]

    def output(self, index: int) -> Any:
        """The output of the space for one example."""
        return self.examples.output(index, self.state(index))
