"""The rounds of a log in chunks, and a regression that learns from them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lols.bandit.decider import lessons_in
from lols.bandit.entries import check_fields
from lols.bandit.follow import Followed
from lols.bandit.log import Decision, Log, check_loss
from lols.engine.lessons import predicted_costs
from lols.engine.structures import Lessons
from lols.errors import ConfigurationError, LolsError
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings

CHUNK = 128  # the most rounds in a chunk
GROWTH = 2  # the first chunks are smaller: the number of rounds before them, divided by this


class Rounds:
    """Decisions with their losses, in the order of the decisions.

    The log is read twice: for the losses, which are kept, and for the decisions. Decisions that are not `usable` are
    counted in `left_out`.
    """

    def __init__(self, log: Log, usable: Callable[[Decision], bool], since: int = 0):
        self.log, self.usable, self.since, self.left_out = log, usable, since, 0
        count = log.decisions()
        if count == 0:
            raise LolsError("the log is empty: give one with decisions and losses")
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
        """Decisions and their losses; the first chunks are small, because the regression has learned little yet."""
        held: list[Decision] = []
        seen = self.left_out = 0
        for entry in self.log.replay():
            if not isinstance(entry, Decision) or entry.id >= self.losses.size or np.isnan(self.losses[entry.id]):
                continue
            if not self.usable(entry):
                self.left_out += 1
                continue
            check_fields(entry)
            held.append(entry)
            if len(held) >= min(CHUNK, 1 + seen // GROWTH):
                seen += len(held)
                yield held, self.losses[[d.id for d in held]]
                held = []
        if held:
            yield held, self.losses[[d.id for d in held]]


class Regression:
    """Predicts the costs of actions, from the rounds so far.

    A prediction is the mean loss so far plus that of a linear regressor for each action (CSOAA, with the scale-free
    update of the paper), clipped to the range of losses, 0 to 1.
    """

    def __init__(self, actions: int, *, by_action: bool, compiled: bool = True):
        settings = LearnerSettings("csoaa", "nag")
        self._learner = Learner(settings, actions, by_action=by_action, averaged=False, compiled=compiled)
        self.count, self.total = 0, 0.0

    @property
    def mean(self) -> float:
        """The mean of the targets so far; one half before the first."""
        return self.total / self.count if self.count else 0.5

    def guess(self, followed: Followed) -> np.ndarray:
        """The predicted cost of each action in each slot."""
        learner = self._learner
        predicted = predicted_costs(followed.lessons, learner.policy(), compiled=learner.compiled)
        return np.clip(predicted.astype(np.float64) + self.mean, 0.0, 1.0)

    def learn(self, followed: Followed, after: np.ndarray) -> None:
        """Learn from the losses `after` the actions taken."""
        lessons = followed.lessons
        used = np.concatenate([first + np.arange(n) for first, n in zip(lessons.first, lessons.filled)])
        aims = np.clip(after[used], 0.0, 1.0)
        self.count += used.size
        self.total += float(aims.sum())
        slots = lessons.slots
        slots.costs[:] = np.inf
        slots.costs[used, followed.taken[used]] = aims - self.mean
        slots.weight[:] = 1.0
        self._learner.learn(lessons)


def stacked(
    decisions: Sequence[Decision], like: Decision | None = None
) -> tuple[Lessons, np.ndarray, np.ndarray, np.ndarray]:
    """The states of deviations as lessons, their legal actions, the actions taken, and the chances of these.

    All must have as many actions as `like`, the first decision of the log.
    """
    like = decisions[0] if like is None else like
    for d in decisions:  # kernels do not check it
        if (d.legal.size, d.action_start.size) != (like.legal.size, like.action_start.size):
            raise LolsError(f"decision {d.id} has other actions than those before it: evaluate logs of one space only")
    lessons = lessons_in(decisions)
    taken, chances = (np.array([getattr(d, name) for d in decisions]) for name in ("action", "chance_action"))
    return lessons, np.stack([d.legal for d in decisions]), taken, chances
