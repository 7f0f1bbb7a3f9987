"""What a bandit has learned: its learner, the policies of earlier rounds, and what helps to read one loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lols.bandit.advice import follow_advice
from lols.bandit.decider import Features
from lols.bandit.entries import Decision
from lols.bandit.estimates import estimate
from lols.bandit.settings import BAG, BanditSettings
from lols.bandit.stored import costs_in
from lols.contract.hashing import mix, unit
from lols.contract.space import SearchSpace
from lols.engine.lessons import lessons_of, slots_of
from lols.engine.structures import FrozenPolicy, Lessons
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings

__all__ = ["BanditStudent"]

DRAWING, KEEPING, BAGGING = 22, 23, 25  # purposes of draws
STALE = 1.05  # an averaged policy is made anew when it has learned this much more
MOST = 12  # of copies of one example in a member of a bag


class BanditStudent:
    """Learns from explored decisions, one after the other.

    Parameters
    ----------
    settings
        The choices.
    space
        The search space.
    compiled
        False runs the same code as plain Python.

    """

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
        self._refresh = 1  # the version at which the average is made anew
        self._zero, self._one = np.zeros(1, np.int64), np.ones(1, np.int64)

    def _new(self, space: SearchSpace, settings: LearnerSettings, *, averaged: bool = False) -> Learner:
        by_action = space.action_features is not None
        return Learner(settings, space.sizes.actions, by_action=by_action, averaged=averaged, compiled=self.compiled)

    # --- policies ---

    def exploiting(self, stream: int) -> tuple[FrozenPolicy, int]:
        """The policy that acts when nothing is explored, and which of the kept ones it is (-1: the current one)."""
        if self.settings.exploit == "drawn":
            which = min(int(unit(mix(stream, DRAWING)) * len(self.kept)), len(self.kept) - 1)
            return self.kept[which], which
        return self.final(), -1

    def snapshot(self) -> FrozenPolicy:
        """The current policy as a copy, without the room that is kept for features to come."""
        policy, rows = (
            self.learner.policy(),
            [max(int(b.filled[0]), 1) for b in (self.learner.shared, self.learner.single)],
        )
        return frozen(policy._replace(stack=policy.stack[:, : rows[0]], single_stack=policy.single_stack[:, : rows[1]]))

    def final(self) -> FrozenPolicy:
        """The policy that acts when nothing is explored; of drawn ones, the last."""
        return self.current if self._average is None else self._average

    def acting(self) -> FrozenPolicy:
        """The final policy as a copy."""
        return self.snapshot() if self._average is None else frozen(self._average)

    def votes(self, features: Features, legal: np.ndarray) -> np.ndarray:
        """The chance of each action: how many members of the bag choose it, and `width` shared by all alike."""
        made = np.where(legal, self.settings.width / legal.sum(), 0.0)
        lesson = self._lesson(features, legal.size)
        for member in self._bag:
            costs = self._said(member, lesson)
            made[int(np.argmin(np.where(legal, costs, np.inf)))] += (1.0 - self.settings.width) / len(self._bag)
        return made

    def _said(self, learner: Learner, lesson: Lessons) -> np.ndarray:
        """What a learner says that actions cost."""
        return costs_in(lesson, learner.policy(), compiled=self.compiled)[0]

    # --- learning ---

    def learn(self, decision: Decision, loss: float) -> None:
        """Learn from the loss of a decision that explored."""
        features = Features.of(decision)
        lesson, legal, action = self._lesson(features, decision.legal.size), decision.legal, decision.action
        guess = None if self._guesses is None else self._said(self._guesses, lesson)
        made = estimate(self.settings.estimator, legal, action, decision.chance_action, loss, guess)
        costs, weight = lesson.slots.costs, lesson.slots.weight
        costs[0], weight[0] = made.costs, made.weight
        self.learner.learn(lesson)
        for member, learner in enumerate(self._bag):
            copies = poisson(unit(mix(mix(mix(self.settings.seed, BAGGING), member), self.versions)))
            if copies:
                weight[0] = made.weight * copies
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

    def _lesson(self, features: Features, actions: int) -> Lessons:
        """One state as a lesson, with costs and weight to be filled in."""
        seen, by_action = features.runs()
        slots = slots_of(seen, np.zeros((1, actions), np.float32), np.ones(1, np.float32), by_action)
        wide = {"widest": seen.widest, "widest_action": by_action.widest}
        return lessons_of(slots, self._zero, self._one, example=self._zero, **wide)

    def report(self) -> dict[str, Any]:
        """How many policies there were, and how many features the current one knows."""
        return {"policies": self.versions, "features": self.learner.report()["features"]}


def poisson(u: float) -> int:
    """How often an example is in a resample of the data, for a number drawn from [0, 1): a Poisson variable of mean 1.

    >>> [poisson(u) for u in (0.1, 0.5, 0.8, 0.95)]
    [0, 1, 2, 3]
    """
    chance, copies = math.exp(-1.0), 0
    while u >= chance and copies < MOST:
        u -= chance
        copies += 1
        chance /= copies
    return copies
