"""Learning from examples as they arrive: one pass in the given order."""

from __future__ import annotations

from typing import Any

from lols.contract.examples import Examples
from lols.errors import ConfigurationError
from lols.learners.learner import Learner
from lols.training.learning import Learning
from lols.training.learning_state import LearningState
from lols.training.loop import learn_on
from lols.training.model import Model, model_of
from lols.training.recipe import Recipe


class Stream:
    """Learns from examples as they arrive.

    With a linear policy, the result is the same however the stream is divided: see `Learning`. A network learns from
    each call at once, in batches of the trainer's size, of which the last may be smaller; so its result does depend on
    how the stream is divided.

    Parameters
    ----------
    trainer
        Space, reference, algorithm and what is trained; its `batch_size` must be given.
    start
        What learning goes on from, which changes; by default nothing has been learned.

    """

    def __init__(self, trainer: Recipe, start: LearningState | None = None):
        self.learning = Learning.open(trainer, start)

    @property
    def trainer(self) -> Recipe:
        """The options of learning."""
        return self.learning.recipe

    @property
    def learner(self) -> Learner:
        """The linear learner; an error if it is not one that learns."""
        learner = self.learning.policy.learner
        if learner is None:
            raise ConfigurationError("this stream has no linear learner: its policy is its own")
        return learner

    @property
    def policy(self) -> Any:
        """What learns, as drivers ask it."""
        return self.learning.policy.asked

    def learn(self, examples: Examples) -> None:
        """Learn from the next examples of the stream."""
        learn_on(self.learning, examples)

    def go_on_with(self, trainer: Recipe) -> None:
        """Go on with another trainer, whose policy has taken over what was learned."""
        self.learning.go_on_with(trainer)

    def state(self) -> LearningState | None:
        """What learning can go on from; None for a network, of which model files keep the weights alone."""
        return self.learning.state()

    def model(self) -> Model:
        """The model as it is now."""
        return model_of(self.learning)
