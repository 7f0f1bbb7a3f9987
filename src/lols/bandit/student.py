"""What a bandit has learned: its learner, the policies of earlier rounds, and a regression for cost estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lols.bandit.advice import follow_advice
from lols.bandit.entries import WHOLE, Decision
from lols.bandit.estimates import estimate
from lols.bandit.policy import CURRENT, FINAL, KEPT, MEMBER, arrays_of, weights_of
from lols.bandit.seen import Seen
from lols.bandit.settings import BAG, BanditSettings
from lols.contract.space import SearchSpace
from lols.engine.lessons import predicted_costs
from lols.engine.structures import FrozenPolicy, Lessons
from lols.kernels.ahead import prepare_all
from lols.kernels.hashing import mix, unit
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings
from lols.learners.sketch import settled

KEEPING, BAGGING = 23, 25  # purposes of draws
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
        return Learner(settings, space.fixed_actions, by_action=by_action, averaged=averaged, compiled=self.compiled)

    # --- policies ---

    def weights(self) -> dict[str, FrozenPolicy]:
        """The weights that a `BanditPolicy` has, by their names there; they share memory with the learners."""
        weights = {CURRENT: self.current}
        if self._average is not None:
            weights[FINAL] = self._average
        weights |= {f"{KEPT}/{k}": kept for k, kept in enumerate(self.kept)} if self.settings.exploit == "drawn" else {}
        return weights | {f"{MEMBER}/{k}": learner.policy() for k, learner in enumerate(self._bag)}

    def snapshot(self) -> FrozenPolicy:
        """A copy of the current policy, without the spare room for new features."""
        policy = settled(self.learner.policy(), compiled=self.compiled)
        rows, single = (max(int(bank.filled[0]), 1) for bank in (self.learner.shared, self.learner.single))
        return frozen(policy._replace(stack=policy.stack[:, :rows], single_stack=policy.single_stack[:, :single]))

    def _predicted(self, learner: Learner, lesson: Lessons) -> np.ndarray:
        """The costs of actions that a learner predicts."""
        return predicted_costs(lesson, learner.policy(), compiled=self.compiled)[int(lesson.first[0])]

    # --- learning ---

    @property
    def learns_all(self) -> bool:
        """Whether it learns from every decision, explored or not."""
        return self.settings.estimator == "all"

    def needs_every(self) -> bool:
        """Whether it learns from the features of every legal action, not only of those that were taken."""
        return self.settings.estimator not in ("mtr", "all")

    def learn(self, decision: Decision, seen: Seen, losses: Mapping[int, float]) -> None:
        """Learn from losses of a decision: of its steps, or of the `WHOLE` structure."""
        if self.learns_all:
            self._learn_all(seen, losses)
            return
        loss = losses.get(decision.step, losses.get(WHOLE))
        if loss is None:
            return
        seen = seen.only(decision.step)
        lesson, legal, action = seen.lessons, seen.legal[0], decision.action
        guess = None if self._guesses is None else self._predicted(self._guesses, lesson)
        estimated = estimate(self.settings.estimator, legal, action, decision.chance_action, loss, guess)
        costs, weight = seen.slot("costs"), seen.slot("weight")
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
        self._next()

    def _learn_all(self, seen: Seen, losses: Mapping[int, float]) -> None:
        """Learn from all steps: from a loss of their own if they have one, else from that of the whole structure.

        A regression of the costs of actions that were taken is right whatever their chances were, so that all of them
        count the same, also those of the reference.
        """
        costs, weight = seen.slot("costs"), seen.slot("weight")
        costs[:] = np.inf
        for k, (step, action) in enumerate(zip(seen.steps.tolist(), seen.taken.tolist(), strict=True)):
            loss = losses.get(step, losses.get(WHOLE))
            weight[k] = 0.0 if loss is None else 1.0
            costs[k, action] = 0.0 if loss is None else loss
        self.learner.learn(seen.lessons)
        self._next()

    def _next(self) -> None:
        """Go on to the next policy."""
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

    def warm_up(self, seen: Seen) -> None:
        """Have ready what learning from such states needs, also when there are many."""
        lessons = seen.lessons
        for learner in filter(None, (self.learner, self._guesses, *self._bag)):
            prepare_all(learner.calls(lessons))

    def report(self) -> dict[str, Any]:
        """The number of policies so far, and the number of features of the current one."""
        return {"policies": self.versions, "features": self.learner.report()["features"]}

    # --- state ---

    def state(self) -> dict[str, np.ndarray]:
        """A copy of all that later rounds depend on, without unused rows."""
        state = {"versions": np.array([self.versions, self._refresh, len(self.kept), self._average is not None])}
        for name, learner in self._learners():
            state |= {f"{name}.{part}": array for part, array in learner.state().items()}
        for name, weights in [("average", self._average), *((f"kept/{k}", kept) for k, kept in enumerate(self.kept))]:
            if weights is not None:
                state |= {f"{name}.{part}": array for part, array in arrays_of(weights).items()}
        return state

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state of a student with the same settings."""
        self.versions, self._refresh, kept, averaged = (int(number) for number in state["versions"])
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in state.items():
            owner, _, part = name.partition(".")
            parts.setdefault(owner, {})[part] = array
        for name, learner in self._learners():
            learner.load(parts[name])
        self.kept = [weights_of(parts[f"kept/{k}"]) for k in range(kept)]
        self._average = weights_of(parts["average"]) if averaged else None
        self.current = self.learner.policy()

    def _learners(self) -> Iterator[tuple[str, Learner]]:
        yield "learner", self.learner
        if self._guesses is not None:
            yield "guesses", self._guesses
        yield from ((f"member/{k}", learner) for k, learner in enumerate(self._bag))


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
