"""What a bandit has learned: its learner, the policies of earlier rounds, and a regression for cost estimates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lols.bandit.advice import follow_advice
from lols.bandit.decider import lessons_in
from lols.bandit.entries import Decision
from lols.bandit.estimates import estimate
from lols.bandit.settings import BAG, BanditSettings
from lols.contract.space import SearchSpace
from lols.engine.lessons import predicted_costs
from lols.engine.structures import FrozenPolicy, Lessons
from lols.kernels.ahead import prepare_all
from lols.kernels.hashing import mix, unit
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings

DRAWING, KEEPING, BAGGING = 22, 23, 25  # purposes of draws
STALE = 1.05  # the averaged policy is updated when the number of losses has grown by this factor
MOST = 12  # copies of one example in a member of a bag


class BanditStudent:
    """Learns from explored decisions, one at a time."""

    def __init__(self, settings: BanditSettings, space: SearchSpace, *, compiled: bool = True):
        self.settings, self.compiled = settings, compiled
        self.learner = self._new(space, settings.learner, averaged=settings.exploit == "average")
        self._guesses: Learner | None = None
        if settings.estimator in ("direct", "dr"):
            self._guesses = self._new(space, LearnerSettings("csoaa", settings.learner.update))
        members = settings.bag if settings.exploration == BAG else 0
        self._bag = [self._new(space, settings.learner) for _ in range(members)]
        if settings.advice:
            for learner in (self.learner, *self._bag):
                follow_advice(learner, settings.advice)
        self.versions = 1
        self.current = self.learner.policy()
        self.kept: list[FrozenPolicy] = [self.snapshot()]
        self._average: FrozenPolicy | None = None
        self._refresh = 1  # the version at which the average is updated next

    def _new(self, space: SearchSpace, settings: LearnerSettings, *, averaged: bool = False) -> Learner:
        by_action = space.action_features is not None
        return Learner(settings, space.action_count, by_action=by_action, averaged=averaged, compiled=self.compiled)

    # --- policies ---

    def exploiting(self, stream: int) -> tuple[FrozenPolicy, int]:
        """The policy that acts when nothing is explored, and its number among the kept ones (-1: the current one)."""
        if self.settings.exploit == "drawn":
            which = min(int(unit(mix(stream, DRAWING)) * len(self.kept)), len(self.kept) - 1)
            return self.kept[which], which
        return self.final(), -1

    def snapshot(self) -> FrozenPolicy:
        """A copy of the current policy, without the spare room for new features."""
        policy = self.learner.policy()
        rows, single = (max(int(bank.filled[0]), 1) for bank in (self.learner.shared, self.learner.single))
        return frozen(policy._replace(stack=policy.stack[:, :rows], single_stack=policy.single_stack[:, :single]))

    def final(self) -> FrozenPolicy:
        """The policy that acts when nothing is explored; the last one if they are drawn."""
        return self.current if self._average is None else self._average

    def acting(self) -> FrozenPolicy:
        """A copy of the final policy."""
        return self.snapshot() if self._average is None else frozen(self._average)

    def votes(self, decision: Decision) -> np.ndarray:
        """The chance of each action: `width` is shared by all, the rest goes by the votes of the bag's members."""
        legal, lesson = decision.legal, lessons_in([decision])
        chances = np.where(legal, self.settings.width / legal.sum(), 0.0)
        for member in self._bag:
            costs = self._predicted(member, lesson)
            chances[int(np.argmin(np.where(legal, costs, np.inf)))] += (1.0 - self.settings.width) / len(self._bag)
        return chances

    def _predicted(self, learner: Learner, lesson: Lessons) -> np.ndarray:
        """The costs of actions that a learner predicts."""
        return predicted_costs(lesson, learner.policy(), compiled=self.compiled)[0]

    # --- learning ---

    def learn(self, decision: Decision, loss: float) -> None:
        """Learn from the loss of a decision that explored."""
        legal, action = decision.legal, decision.action
        lesson = lessons_in([decision])
        guess = None if self._guesses is None else self._predicted(self._guesses, lesson)
        estimated = estimate(self.settings.estimator, legal, action, decision.chance_action, loss, guess)
        costs, weight = lesson.slots.costs, lesson.slots.weight
        costs[0], weight[0] = estimated.costs, estimated.weight
        self.learner.learn(lesson)
        for member, learner in enumerate(self._bag):
            copies = poisson(unit(mix(mix(mix(self.settings.seed, BAGGING), member), self.versions)))
            if copies:
                weight[0] = estimated.weight * copies
                learner.learn(lesson)
        if self._guesses is not None:
            costs[0], weight[0] = np.inf, 1.0
            costs[0, action] = loss
            self._guesses.learn(lesson)
        self.versions += 1
        self.current = self.learner.policy()
        if self.settings.exploit == "drawn":
            self._keep()
        elif self.settings.exploit == "average" and self.versions >= self._refresh:
            self._average = frozen(self.learner.policy(averaged=True))
            self._refresh = max(self.versions + 1, int(self.versions * STALE))

    def _keep(self) -> None:
        """Keep a random sample of all policies so far: each is in it with the same probability."""
        if len(self.kept) < self.settings.keep:
            self.kept.append(self.snapshot())
            return
        key = mix(mix(self.settings.seed, KEEPING), self.versions)
        place = int(unit(key) * self.versions)
        if place < self.settings.keep:
            self.kept[place] = self.snapshot()

    def warm_up(self, decision: Decision) -> None:
        """Have ready what learning from such decisions needs, also when there are many."""
        lessons = lessons_in([decision])
        for learner in filter(None, (self.learner, self._guesses, *self._bag)):
            prepare_all(learner.calls(lessons))

    def report(self) -> dict[str, Any]:
        """The number of policies so far, and the number of features of the current one."""
        return {"policies": self.versions, "features": self.learner.report()["features"]}


def poisson(u: float) -> int:
    """The number of copies of an example in a bootstrap sample: a Poisson variable of mean 1, by a number in [0, 1).

    >>> [poisson(u) for u in (0.1, 0.5, 0.8, 0.95)]
    [0, 1, 2, 3]
    """
    chance, copies = math.exp(-1.0), 0
    while u >= chance and copies < MOST:
        u -= chance
        copies += 1
        chance /= copies
    return copies
