"""The rounds of a log in chunks, and a regression that learns from them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lols.bandit.entries import WHOLE, Decision, Log, Loss, check_fields, check_loss
from lols.bandit.follow import Followed
from lols.bandit.seen import Seen
from lols.engine.lessons import NO_FEATURES, FeatureRuns, lessons_of, predicted_costs, slots_of
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
        self.losses = _losses(log, count)
        self.losses[:since] = np.nan
        if np.isnan(self.losses).all():
            raise LolsError(f"none of {count - since} decisions of the log has a loss yet: wait for some")

    def chunks(self) -> Iterator[tuple[list[Decision], np.ndarray]]:
        """Decisions and their losses; the first chunks are small, because the regression has learned little yet."""
        held: list[Decision] = []
        seen = self.left_out = 0
        for entry in self.log.replay():
            if not isinstance(entry, Decision) or not self._has_loss(entry.number):
                continue
            if not self.usable(entry):
                self.left_out += 1
                continue
            check_fields(entry)
            held.append(entry)
            if len(held) >= min(CHUNK, 1 + seen // GROWTH):
                seen += len(held)
                yield held, self.losses[[d.number for d in held]]
                held = []
        if held:
            yield held, self.losses[[d.number for d in held]]

    def _has_loss(self, number: int) -> bool:
        return number < self.losses.size and not np.isnan(self.losses[number])


def _losses(log: Log, count: int) -> np.ndarray:
    """The loss of each decision: of the whole structure, or the mean of those of its steps if all are known."""
    losses, numbers = np.full(count, np.nan), dict[str, tuple[int, int]]()
    known: dict[str, dict[int, float]] = {}
    for entry in log.replay():
        if isinstance(entry, Decision):
            numbers[entry.id] = entry.number, entry.actions.size
        elif isinstance(entry, Loss) and entry.id in numbers:
            for loss in entry.losses.values():
                check_loss(loss)
            (number, length), parts = numbers[entry.id], {**known.pop(entry.id, {}), **entry.losses}
            if WHOLE in parts or len(parts) == length:
                losses[number] = parts[WHOLE] if WHOLE in parts else sum(parts.values()) / length
            else:
                known[entry.id] = parts
    return losses


class Regression:
    """Predicts the costs of actions, from the rounds so far.

    A prediction is the mean loss so far plus that of a linear regressor for each action (CSOAA, with the scale-free
    update of the paper), clipped to the range of losses, 0 to 1.
    """

    def __init__(self, actions: int | None, *, by_action: bool, compiled: bool = True):
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


def stacked(seen: Sequence[Seen]) -> tuple[Lessons, np.ndarray, np.ndarray]:
    """States of several decisions as lessons, one round for each decision; their legal actions, and those taken.

    Objects with fewer actions than others have illegal ones in their place.
    """
    width = max(each.legal.shape[1] for each in seen)
    features, own = [], []
    for arrays in (each.compact() for each in seen):
        features.append(FeatureRuns(*(arrays[name] for name in ("start", "stop", "ids", "values"))))
        start = arrays["action_start"]
        if start.size:
            missing = ((0, 0), (0, width - start.shape[1]))
            runs = [np.pad(arrays[name], missing).reshape(-1) for name in ("action_start", "action_stop")]
            own.append(FeatureRuns(runs[0], runs[1], arrays["action_ids"], arrays["action_values"]))
    if own and len(own) < len(seen):
        raise LolsError(
            "some decisions have features of actions, and others have none: evaluate logs of one space only"
        )
    runs_of_states = FeatureRuns.joined(features)
    runs_of_actions = FeatureRuns.joined(own) if own else NO_FEATURES
    counts = np.array([each.taken.size for each in seen])
    count = int(counts.sum())
    slots = slots_of(
        runs_of_states, np.full((count, width), np.inf, np.float32), np.ones(count, np.float32), runs_of_actions
    )
    lessons = lessons_of(
        slots,
        np.cumsum(counts) - counts,
        counts,
        example=np.arange(len(seen)),
        widest=runs_of_states.widest,
        widest_action=runs_of_actions.widest,
    )
    legal = np.concatenate([np.pad(each.legal, ((0, 0), (0, width - each.legal.shape[1]))) for each in seen])
    return lessons, legal, np.concatenate([each.taken for each in seen])
