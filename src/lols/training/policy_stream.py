"""Training on a stream with a policy that is not linear, such as a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.errors import ConfigurationError
from lols.training.model import Model
from lols.training.stream import LearningStream
from lols.training.students import PolicyStudent
from lols.training.trainer import Trainer


class PolicyStream(LearningStream):
    """Learns from examples as they arrive.

    What a call of `learn` is given is learned from at once, in batches of the trainer's size, the last of which may be
    smaller. So the result depends on how the stream is divided, unlike that of the linear learner.

    Parameters
    ----------
    trainer
        Space, reference, algorithm, and a policy that learns; its `batch_size` must be given.

    """

    def __init__(self, trainer: Trainer):
        super().__init__(trainer)
        self.student = PolicyStudent(trainer)

    @property
    def policy(self) -> Any:
        """The policy that learns."""
        return self.student.own

    def go_on_with(self, trainer: Trainer) -> None:
        """Go on with another trainer, whose policy has taken over what was learned."""
        before = self.student
        self.trainer, self.student = trainer, PolicyStudent(trainer)
        self.student.rounds, self.student.states = before.rounds, before.states

    def learn(self, examples: Examples) -> None:
        """Learn from the next examples of the stream, in their order."""
        trainer, size = self.trainer, self.trainer.batch_size or 1
        with self.student.driver(examples) as driver:
            for low in range(0, len(examples), size):
                at = np.arange(low, min(low + size, len(examples)))
                rounds = self.student.rounds + np.arange(at.size)
                betas = self.betas(rounds)
                batch = driver.make_lessons(at, rounds, self.policy, trainer.plan, *betas)
                self.student.learn(batch)
                self.sums += (batch.losses[:, 0].sum(), at.size)
                if trainer.plan.compare:
                    self.adaptive.observe(batch.losses)

    def state(self) -> None:
        """None: model files keep the weights of a policy alone."""

    def model(self) -> Model:
        """The model as it is now."""
        return self.model_with(self.student.policy(), self.student, self.student.rounds)


def learning_copy(policy: Any) -> Any:
    """A copy of a policy that learns on; an error if it has none."""
    if not hasattr(policy, "onward"):
        raise ConfigurationError(
            f"a {type(policy).__name__} cannot learn on: give it a method `onward`, which returns a copy that can"
        )
    return policy.onward()
