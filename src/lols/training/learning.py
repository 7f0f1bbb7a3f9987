"""What changes while something is learned: the policy, β, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lols.engine.structures import Batch
from lols.kernels.hashing import mix
from lols.policies.policy import Policy
from lols.training.adaptive import AdaptiveBeta
from lols.training.algorithms import schedules
from lols.training.learning_state import LearningState
from lols.training.recipe import Recipe


class Learning:
    """A policy that learns, how far it has come, and the batch that it is in.

    The examples of a batch are searched with the same policy. Where a part of the data ends inside a batch, the policy
    that it began with is kept, so that the result does not depend on how the data are divided. Its lessons wait until
    the batch is whole, or until a model is asked for: copying the policy would take longer, the more there is in it.

    Parameters
    ----------
    recipe
        Space, reference, algorithm and what is trained.
    count
        The examples of a pass; None for a stream, whose only pass has no end.
    batch_size
        How many examples are searched with the same policy.
    start
        What learning goes on from, which changes.

    """

    def __init__(self, recipe: Recipe, count: int | None, batch_size: int, start: LearningState | None = None):
        self.recipe, self.count, self.batch_size, self.start = recipe, count, batch_size, start
        self.examples = count  # where workers count them, they are known after a pass
        self.passes = recipe.passes if count is not None else 1
        self.total = None if count is None else self.passes * count
        self.schedules = schedules(recipe.algorithm)
        self.began = None if start is None else start.digest()
        self.first_round, self.first_pass = (0, 0) if start is None else (start.rounds, start.passes)
        self.adaptive = AdaptiveBeta() if start is None else replace(start.adaptive)
        self.unsettled = start is None and recipe.unsettled
        self.sums = np.zeros((self.passes, 2))  # of losses, and how many examples
        # The online-to-batch conversion draws a round; it is drawn in advance, so that one copy is enough.
        drawn = self.total is not None and recipe.algorithm.returned == "drawn"
        self.drawn_round = mix(mix(recipe.seed, 0xD12A), 1) % (self.total or 1) + 1 if drawn else 0
        self.steps_done = 0
        self.go_to(0, 0)
        self.policy = self._new_policy()

    @classmethod
    def open(cls, recipe: Recipe, start: LearningState | None = None) -> Learning:
        """Learning from a stream."""
        recipe.check_streamable()
        assert recipe.batch_size is not None
        return cls(recipe, None, recipe.batch_size, start)

    def go_on_with(self, recipe: Recipe) -> None:
        """Go on by another recipe, whose policy has taken over what was learned."""
        self.recipe, self.policy = recipe, self.policy.followed_by(recipe.new_policy())

    def _new_policy(self) -> Policy:
        policy = self.recipe.new_policy(self.total)
        if self.start is not None:
            policy.go_on(self.start.learner)
        return policy

    def settle(self, driver: Any, few: np.ndarray) -> None:
        """Settle margin and scale by the costs of a few examples, before anything is learned."""
        self.unsettled = False
        self.recipe.settle(driver, few)
        self.policy = self._new_policy()

    # --- places ---

    def go_to(self, pass_: int, offset: int) -> None:
        """Go to an example of a pass, at which a batch begins."""
        self.pass_, self.offset = pass_, offset
        self.round = self.first_round + pass_ * (self.count or 0) + offset
        self._batch_began, self._whole = self.round, True
        self._held: Any = None  # the policy that a batch began with
        self._waiting: list[tuple[Batch, Any]] = []
        self._losses: list[np.ndarray] = []

    @property
    def whole(self) -> bool:
        """Whether no batch is under way."""
        return self._whole

    @property
    def done(self) -> int:
        """Examples so far, over all passes."""
        return self.round - self.first_round

    @property
    def progressive_loss(self) -> float:
        """Mean loss of the roll-ins of this pass, each before its example was learned from."""
        number = min(self.pass_ if self.offset else self.pass_ - 1, self.passes - 1)
        return float(self.sums[number, 0] / max(self.sums[number, 1], 1.0))

    def begin_pass(self) -> None:
        """Called before each pass, or where one is gone on with."""
        if self.offset == 0:
            self.policy.begin_pass()

    def batches(self, order: np.ndarray, *, carries: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Batches of example numbers with their rounds; with `carries` the last one may be gone on with later."""
        done = 0
        while done < order.size:
            missing = self.batch_size - (self.round - self._batch_began)
            until = min(order.size, done + missing)
            self._whole = until - done == missing or (until == order.size and not carries)
            yield order[done:until], self.round + np.arange(until - done)
            done = until

    def betas(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β of roll-out and roll-in for the next rounds."""
        weight = self.policy.reference_weight
        if weight is not None:
            return np.full(rounds.size, weight), np.full(rounds.size, weight)
        last = self.first_round + (self.total or 0)
        out, into = (np.full(rounds.size, self.adaptive.beta) if s is None else s(rounds, last) for s in self.schedules)
        return out, into

    @property
    def asked(self) -> Any:
        """What drivers search the next examples with."""
        return self.policy.asked if self._held is None else self._held

    # --- learning ---

    def take(self, batch: Batch, driver: Any) -> None:
        """Learn from what was found for the next examples: at once, or when their batch is whole."""
        recipe, count = self.recipe, batch.losses.shape[0]
        self._waiting.append((batch, driver))
        if self._whole or self._held is not None:
            self._learn()
        self._losses.append(batch.losses)
        self.steps_done += int(batch.lessons.filled.sum())
        self.sums[self.pass_] += (batch.losses[:, 0].sum(), count)
        before, self.round, self.offset = self.done, self.round + count, self.offset + count
        if self._whole:
            self._batch_began, self._held = self.round, None
            if recipe.plan.compare:
                self.adaptive.observe(np.concatenate(self._losses))
            self._losses = []
        if before < self.drawn_round <= self.done:
            self.policy.keep()
        if self.offset == self.count:
            self.policy.end_pass(self.offset)
            self.pass_, self.offset = self.pass_ + 1, 0

    def _learn(self) -> None:
        """Learn from the lessons that wait."""
        for batch, driver in self._waiting:
            self.policy.learn(batch, driver)
        self._waiting = []

    def finish_waiting(self) -> None:
        """Learn from the lessons that wait; the rest of their batch is searched with the policy it began with."""
        if self._waiting:
            self._held = self.policy.copied()
            self._learn()

    # --- what comes of it ---

    def state(self) -> LearningState | None:
        """What learning can go on from; None where a policy is not a linear learner's."""
        self.finish_waiting()
        if self.policy.learner is None or self.policy.reference_weight is not None:
            return None
        return LearningState(self.policy.learner, self.first_pass + self.pass_, replace(self.adaptive))

    def facts(self) -> dict[str, Any]:
        """What a model file says of the training."""
        recipe = self.recipe
        return {
            "algorithm": recipe.algorithm.described(),
            "learner": self.policy.describe(),
            "passes": self.passes,
            "passes_done": self.pass_,
            "batch_size": self.batch_size,
            "seed": recipe.seed,
            "examples": self.round if self.count is None else self.examples,
            "reference": recipe.reference.name,
            "beta": self.adaptive.beta if recipe.plan.compare else None,
        }

    def report(self) -> dict[str, Any]:
        """How training went."""
        seen = self.sums[self.sums[:, 1] > 0]
        return {
            "progressive_loss": (seen[:, 0] / seen[:, 1]).tolist(),
            "beta": float(self.betas(np.array([max(self.round - 1, self.first_round)]))[0][0]),
            **self.policy.report(),
        }
