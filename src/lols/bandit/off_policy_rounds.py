"""The rounds of a log, a few at a time, deviations side by side, and a regression that learns on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lols.bandit.decider import Features
from lols.bandit.follow import Followed
from lols.bandit.log import Decision, Log, check_loss
from lols.bandit.stored import costs_in
from lols.engine.lessons import FeatureRuns, lessons_of, slots_of
from lols.engine.structures import Lessons
from lols.errors import ConfigurationError, LolsError
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings

__all__ = ["Regression", "Rounds", "stacked"]

CHUNK = 128  # rounds that are looked at together
GROWTH = 2  # the first ones are fewer: this part of what was seen before


class Rounds:
    """Decisions with their losses, in the order of the decisions, however late the losses came.

    Parameters
    ----------
    log
        It is read twice: for the losses, of which 8 bytes each are kept, and for the decisions.
    usable
        Whether a decision says anything; those that do not are counted in `left_out`.
    since
        The first decision to look at.

    """

    def __init__(self, log: Log, usable: Callable[[Decision], bool], since: int = 0):
        self.log, self.usable, self.since, self.left_out = log, usable, since, 0
        count = log.decisions()
        if count == 0:
            raise LolsError("the log is empty: there is nothing to evaluate a policy with")
        if not 0 <= since < count:
            raise ConfigurationError(f"since is {since}: the log holds decisions 0 to {count - 1}")
        self.losses = np.full(count, np.nan)
        for entry in log.replay():
            if not isinstance(entry, Decision) and since <= entry.id < count and np.isnan(self.losses[entry.id]):
                check_loss(entry.loss)
                self.losses[entry.id] = entry.loss
        if np.isnan(self.losses).all():
            raise LolsError(f"none of {count - since} decisions of the log has a loss yet: wait for some")

    def chunks(self) -> Iterator[tuple[list[Decision], np.ndarray]]:
        """Some rounds at a time, few at first: nothing is known to guess from before the first have been learned."""
        held: list[Decision] = []
        seen = self.left_out = 0
        for entry in self.log.replay():
            if not isinstance(entry, Decision) or entry.id >= self.losses.size or np.isnan(self.losses[entry.id]):
                continue
            if not self.usable(entry):
                self.left_out += 1
                continue
            held.append(entry)
            if len(held) >= min(CHUNK, 1 + seen // GROWTH):
                seen += len(held)
                yield held, self.losses[[d.id for d in held]]
                held = []
        if held:
            yield held, self.losses[[d.id for d in held]]


class Regression:
    """Guesses what actions cost, from the rounds that it has learned from so far.

    Guesses are the mean loss so far, and what a linear regressor for each action (CSOAA, with the scale-free update of
    the paper) says on top of it. A loss lies between 0 and 1, and so does a guess.
    """

    def __init__(self, actions: int, *, by_action: bool, compiled: bool = True):
        settings = LearnerSettings("csoaa", "nag")
        self._learner = Learner(settings, actions, by_action=by_action, averaged=False, compiled=compiled)
        self.count, self.total = 0, 0.0

    @property
    def mean(self) -> float:
        """The mean of what was learned from; one half before that."""
        return self.total / self.count if self.count else 0.5

    def guess(self, made: Followed) -> np.ndarray:
        """What each action costs in each slot."""
        learner = self._learner
        found = costs_in(made.lessons, learner.policy(), compiled=learner.compiled)
        return np.clip(found.astype(np.float64) + self.mean, 0.0, 1.0)

    def learn(self, made: Followed, after: np.ndarray) -> None:
        """Learn from what followed the actions taken."""
        used = np.concatenate([first + np.arange(n) for first, n in zip(made.lessons.first, made.lessons.filled)])
        aims = np.clip(after[used], 0.0, 1.0)
        self.count += used.size
        self.total += float(aims.sum())
        slots = made.lessons.slots
        slots.costs[:] = np.inf
        slots.costs[used, made.taken[used]] = aims - self.mean
        slots.weight[:] = 1.0
        self._learner.learn(made.lessons)


def stacked(
    decisions: Sequence[Decision], like: Decision | None = None
) -> tuple[Lessons, np.ndarray, np.ndarray, np.ndarray]:
    """The states of deviations as slots, their legal actions, the actions taken, and the chances of those.

    All must have as many actions as `like`, the first of the log.
    """
    like = decisions[0] if like is None else like
    count, actions, by_action = len(decisions), like.legal.size, like.action_start.size > 0
    for d in decisions:
        _check(d, actions, by_action)
    legal = np.stack([d.legal for d in decisions])
    runs = [Features.of(d).runs() for d in decisions]
    seen, own = (FeatureRuns.joined([pair[side] for pair in runs]) for side in (0, 1))
    costs, weight = np.full((count, actions), np.inf, np.float32), np.ones(count, np.float32)
    every, ones = np.arange(count), np.ones(count, np.int64)
    wide = {"widest": seen.widest, "widest_action": own.widest}
    lessons = lessons_of(slots_of(seen, costs, weight, own), every, ones, example=every, **wide)
    taken = np.array([d.action for d in decisions])
    return lessons, legal, taken, np.array([d.chance_action for d in decisions])


def _check(d: Decision, actions: int, by_action: bool) -> None:
    """Refuse a decision that does not fit the others, or itself: kernels do not look twice."""
    if d.legal.size != actions or d.action_start.size != (actions if by_action else 0):
        raise LolsError(f"decision {d.id} has other actions than those before it: evaluate logs of one space only")
    if not 0 <= d.action < actions or not d.legal[d.action]:
        raise LolsError(f"decision {d.id}: its action {d.action} is not legal where it was taken")
    if not d.chance_action > 0.0:
        raise LolsError(f"decision {d.id}: its action cannot have been taken with the chance {d.chance_action}")
    if by_action:
        ends = d.action_start.min(), d.action_stop.max(), (d.action_stop - d.action_start).min()
        if ends[0] < 0 or ends[1] > d.action_ids.size or ends[2] < 0:
            raise LolsError(f"decision {d.id}: the features of its actions are not where it says")
