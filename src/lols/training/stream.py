"""Training on a stream: one pass in the given order, with the same result however the stream is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.drivers.fused import FusedDriver
from lols.engine.structures import FrozenPolicy, Lessons
from lols.errors import ConfigurationError
from lols.learners.learner import frozen
from lols.training.adaptive import AdaptiveBeta
from lols.training.algorithms import schedules
from lols.training.learning_state import LearningState
from lols.training.model import Model
from lols.training.plans import check_scale
from lols.training.run import plain
from lols.training.schedules import Linear, Schedule
from lols.training.trainer import Trainer


class LearningStream:
    """What streams share: β of the next rounds, and the model so far."""

    def __init__(self, trainer: Trainer):
        self.schedules = check_streamable(trainer)
        self.trainer, self.adaptive = trainer, AdaptiveBeta()
        self.sums = np.zeros(2)  # of losses, and the number of examples

    def betas(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β of roll-out and roll-in for these rounds."""
        out, into = (np.full(rounds.size, self.adaptive.beta) if s is None else s(rounds, 0) for s in self.schedules)
        return out, into

    def model_with(self, policy: Any, learner: Any, rounds: int) -> Model:
        """The model with a policy that a learner has made of this many examples."""
        trainer = self.trainer
        about = {
            "algorithm": plain(trainer.algorithm),
            "learner": learner.describe(),
            "passes": 1,
            "batch_size": trainer.batch_size,
            "seed": trainer.seed,
            "examples": rounds,
            "reference": trainer.reference.name,
        }
        report = {
            "progressive_loss": [float(self.sums[0] / max(self.sums[1], 1.0))],
            "beta": float(self.betas(np.array([max(rounds - 1, 0)]))[0][0]),
            **learner.report(),
        }
        how: Any = {"threads": trainer.threads, "compiled": trainer.compiled}
        return Model(trainer.space, policy, trainer.plan, about, report, **how)


class Stream(LearningStream):
    """Learns from examples as they arrive.

    The examples of a batch are searched with the same policy, so a stream that stops inside a batch keeps the policy
    that the batch began with: the result does not depend on how the stream is divided. Its lessons wait until the batch
    is whole, or until the model is asked for: copying the policy would take longer, the more there is in it.

    Parameters
    ----------
    trainer
        Space, reference, algorithm and learner; its `batch_size` must be given.
    start
        What learning goes on from, which changes; by default a new learner.

    """

    def __init__(self, trainer: Trainer, start: LearningState | None = None):
        super().__init__(trainer)
        self._unsettled = start is None and trainer.unsettled
        start = start or LearningState(trainer.new_learner())
        self.learner, self.adaptive, self.passes = start.learner, start.adaptive, start.passes
        self.round = start.rounds
        self.batch_began = self.round
        self.held: FrozenPolicy | None = None
        self.waiting: list[Lessons] = []
        self.losses: list[np.ndarray] = []

    def learn(self, examples: Examples, order: np.ndarray | None = None) -> None:
        """Learn from the next examples of the stream, in their own order or in the given one."""
        order = np.arange(len(examples)) if order is None else order
        trainer, size = self.trainer, self.trainer.batch_size or 1
        done = 0
        how: Any = {"threads": trainer.threads, "together": size}
        with FusedDriver(trainer.space, examples, trainer.reference, **how, compiled=trainer.compiled) as driver:
            if self._unsettled:
                self._unsettled = False
                trainer.settle(driver, order[:1])  # there may be no more
                self.learner = trainer.new_learner()
            while done < len(examples):
                until = min(len(examples), done + size - (self.round - self.batch_began))
                at = order[done:until]
                rounds = self.round + np.arange(at.size)
                beta, beta_in = self.betas(rounds)
                ends = self.round + at.size == self.batch_began + size
                policy = self.learner.policy() if self.held is None else self.held
                batch = driver.make_lessons(at, rounds, policy, trainer.plan, beta, beta_in)
                if self.round == 0:
                    check_scale(trainer.settings, batch.lessons)
                self.waiting.append(batch.lessons)
                if ends or self.held is not None:
                    self._learn()
                self.losses.append(batch.losses)
                self.sums += (batch.losses[:, 0].sum(), at.size)
                self.round += at.size
                done = until
                if ends:
                    self.batch_began, self.held = self.round, None
                    if trainer.plan.compare:
                        self.adaptive.observe(np.concatenate(self.losses))
                    self.losses = []

    def _learn(self) -> None:
        """Learn from the lessons that wait."""
        for lessons in self.waiting:
            self.learner.learn(lessons)
        self.waiting = []

    def state(self) -> LearningState:
        """What learning can go on from. A batch that has begun ends here."""
        if self.waiting:
            self.held = frozen(self.learner.policy())
            self._learn()
        return LearningState(self.learner, self.passes, replace(self.adaptive))

    def model(self) -> Model:
        """The model as it is now."""
        self.state()
        return self.model_with(self.trainer.returned_policy(self.learner), self.learner, self.round)


def check_streamable(trainer: Trainer) -> tuple[Schedule | None, Schedule | None]:
    """The schedules of β in roll-out and roll-in; an error if a trainer needs to know how long a stream is."""
    chosen = trainer.algorithm
    if trainer.batch_size is None:
        raise ConfigurationError("a stream has no end to derive the batch size from: give batch_size")
    if chosen.restart or chosen.returned == "drawn":
        raise ConfigurationError(f"{chosen.name} needs to know how much data there is: use fit")
    if not trainer.engine.LOCAL:
        raise ConfigurationError("engine has no effect: a stream is learned from in this process; leave it out")
    found = schedules(chosen)
    if any(isinstance(s, Linear) for s in found):
        raise ConfigurationError("a linear schedule needs to know how much data there is: use fit, or another beta")
    return found
