"""The structured contextual bandit: show one structure, see one loss, and get better than the rules (Algorithm 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lols.bandit.advice import follow_advice, with_advice
from lols.bandit.desk import Desk, Features, Walk
from lols.bandit.estimates import check_estimator_name, estimate
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.guard import Guard
from lols.bandit.log import Decision, Log, Loss, MemoryLog
from lols.bandit.walk import EXPLOIT, EXPLORATIONS, EXPLORE, REFERENCE, Way
from lols.engine.structures import Batch, Policy, Slots
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.hashing import mix, unit
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.space import Reference, SearchSpace
from lols.trainer import frozen

__all__ = ["Shown", "StructuredBandit"]

POLICIES = ("last", "drawn", "average")
EXPLORING, DRAWING, KEEPING, COMPARING = 21, 22, 23, 24  # purposes of draws
STALE = 1.05  # an averaged policy is made anew when it has learned this much more


class Shown(NamedTuple):
    """A structure to show, and the number under which its loss is reported."""

    id: int
    output: Any
    explored: bool


class StructuredBandit:
    """Decides, is told the loss of what was shown, and learns.

    Parameters
    ----------
    space
        The search space; the truth is never asked for.
    reference
        The rules that run today. They must not need the truth (`needs_truth=False`).
    epsilon
        How often to explore: a number, or `"decay:FROM:POWER"`.
    beta
        The probability with which the reference completes a deviation, else the learned policy.
    exploration, width
        How a deviation's action is drawn: `"uniform"`; `"boltzmann"`, by predicted cost at the temperature `width`; or
        `"plausible"`, among those that seem to cost at most `width` more than the best.
    estimator
        How one loss becomes the costs of all actions: `"ips"`, `"direct"`, `"dr"` or `"mtr"` (see `estimate`).
    exploit
        Which policy acts when nothing is explored: the `"last"`, one `"drawn"` from those so far, as in the paper, or
        their `"average"`.
    keep
        How many policies are kept to be drawn from, a random sample of all so far.
    learner, update
        How costs become weights (see `lols.LearnerSettings`).
    advice
        How much cheaper the reference's action seems to be to begin with: the policy then starts out as the reference,
        and unlearns that where it is wrong. 0 to start from nothing, without that feature.
    baseline
        Whether losses are taken relative to their mean so far: the same costs but for a constant, with less noise.
    guard
        A `Guard`, or True for one with its defaults: the reference is shown until the learned policy is better with
        confidence. Half of epsilon then goes into showing the other one of the two, to compare them.
    log
        Where decisions and losses are written before they count; in memory unless given. A log that has entries already
        is replayed: the policy is rebuilt bit for bit.
    seed
        One number behind all randomness.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=0.5, seed=1)
    >>> shown = bandit.decide({"words": [4, 5]})
    >>> bandit.learn(shown.id, loss=0.5)
    >>> bandit.report()["losses"]
    1

    """

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        *,
        epsilon: float | str = 0.1,
        beta: float = 0.5,
        exploration: str = "uniform",
        width: float = 0.2,
        estimator: str = "ips",
        exploit: str = "last",
        keep: int = 10,
        learner: str | LearnerSettings = "csoaa",
        update: str | None = None,
        advice: float = 0.0,
        baseline: bool = False,
        guard: Guard | bool = False,
        log: Log | None = None,
        seed: int = 0,
        compiled: bool = True,
    ):
        if reference.needs_truth:
            raise ConfigurationError(
                "the reference needs the truth, which a live system does not know: give rules with needs_truth=False"
            )
        if not 0.0 <= beta <= 1.0:
            raise ConfigurationError(f"beta is {beta}; it is a probability, from 0 to 1")
        for value, known, what in ((exploration, EXPLORATIONS, "exploration"), (exploit, POLICIES, "exploit")):
            if value not in known:
                raise ConfigurationError(f"unknown {what} '{value}': choose {', '.join(known)}")
        if not width > 0.0:
            raise ConfigurationError(f"width is {width}; it must be positive")
        if keep < 1:
            raise ConfigurationError(f"keep is {keep}; at least one policy must be kept")
        if isinstance(learner, str):
            learner = LearnerSettings(learner, update or "adagrad")
        elif update is not None:
            raise ConfigurationError("update has no effect: it is part of the LearnerSettings that were given")
        check_estimator_name(estimator, learner.reduction)
        if not advice >= 0.0:
            raise ConfigurationError(f"advice is {advice}; it must not be negative")
        if advice:
            space = with_advice(space, reference)
        self.space, self.reference, self.seed = space, reference, seed
        self.epsilon, self.beta, self.exploration, self.width = epsilon_schedule(epsilon), beta, exploration, width
        self.estimator, self.exploit, self.keep = estimator, exploit, keep
        by_action = space.action_features is not None
        self._learner = Learner(
            learner, space.sizes.actions, by_action=by_action, averaged=exploit == "average", compiled=compiled
        )
        if advice:
            follow_advice(self._learner, advice)
        self.baseline = baseline
        self._guesses: Learner | None = None
        if estimator in ("direct", "dr"):
            regression = LearnerSettings("csoaa", learner.update)
            self._guesses = Learner(
                regression, space.sizes.actions, by_action=by_action, averaged=False, compiled=compiled
            )
        self._desk = Desk(space, reference, self._learner.columns, compiled=compiled)
        self._kept: list[Policy] = [frozen(self._learner.policy())]
        self._versions = 1
        self._average: Policy | None = None
        self._refresh = 1  # the version at which the average is made anew
        self._pending: dict[int, Decision] = {}
        self.guard: Guard | None = (Guard() if guard else None) if isinstance(guard, bool) else guard
        self._awaited: dict[int, bool] = {}  # of what was shown without exploring: whether by the reference
        self._counts = {"decisions": 0, "explored": 0, "losses": 0, "ignored": 0, "loss": 0.0}
        self.log: Log = MemoryLog() if log is None else log
        for entry in self.log.replay():
            self._take(entry)

    @classmethod
    def algorithm2(cls, space: SearchSpace, reference: Reference, **options: Any) -> StructuredBandit:
        """The paper's Algorithm 2 as printed: uniform deviations, inverse propensity, exploiting a drawn policy."""
        fixed: dict[str, Any] = {"exploration": "uniform", "estimator": "ips", "exploit": "drawn"}
        twice = sorted(set(fixed) & set(options))
        if twice:
            raise ConfigurationError(f"{twice[0]} is part of Algorithm 2: leave it out, or use StructuredBandit itself")
        return cls(space, reference, **fixed, **options)

    # --- deciding ---

    def decide(self, obj: Any) -> Shown:
        """What to show for an object; written to the log before it is returned."""
        number = self.log.decisions()
        stream = mix(mix(self.seed, 0xBA4D), number)
        epsilon = self.epsilon(number)
        explore = unit(mix(stream, EXPLORING)) < (epsilon if self.guard is None else epsilon / 2)
        policy, which = (self._learner.policy(), -1) if explore else self._exploiting(stream)
        guarded = False
        if self.guard is not None and not explore:
            compare = unit(mix(stream, COMPARING)) * (1.0 - epsilon / 2) < epsilon / 2
            guarded = compare == self.guard.trusted
        walk = self._walk(obj, policy, EXPLORE if explore else REFERENCE if guarded else EXPLOIT, stream)
        decision = self._decision(number, explore, which, walk)._replace(guarded=guarded)
        self.log.append(decision)
        self._take(decision)
        return Shown(number, walk.output, explore)

    def show_reference(self, obj: Any) -> Any:
        """What the rules would show; nothing is logged."""
        return self._walk(obj, self._learner.policy(), REFERENCE, 0).output

    def predict(self, obj: Any) -> Any:
        """What the current policy would show without exploring; nothing is logged."""
        return self._walk(obj, self._exploiting(0)[0], EXPLOIT, 0).output

    def _walk(self, obj: Any, policy: Policy, mode: int, stream: int) -> Walk:
        way = Way(mode, stream, self.beta, 0.0, EXPLORATIONS[self.exploration], self.width)
        return self._desk.walk(obj, policy, way)

    def _exploiting(self, stream: int) -> tuple[Policy, int]:
        if self.exploit == "drawn":
            which = min(int(unit(mix(stream, DRAWING)) * len(self._kept)), len(self._kept) - 1)
            return self._kept[which], which
        return self._learner.policy() if self._average is None else self._average, -1

    def _decision(self, number: int, explored: bool, which: int, walk: Walk) -> Decision:
        found = walk.features
        empty = np.zeros(0, np.int64)
        return Decision(
            id=number,
            explored=explored,
            step=walk.step,
            action=walk.action,
            by_reference=walk.by_reference,
            chance_step=walk.chance_step,
            chance_action=walk.chance_action,
            version=int(self._counts["losses"]),
            policy=which,
            guarded=False,
            propensity=float("nan"),
            ids=empty if found is None else found.ids,
            values=np.zeros(0, np.float32) if found is None else found.values,
            action_start=empty if found is None else found.action_start,
            action_stop=empty if found is None else found.action_stop,
            action_ids=empty if found is None else found.action_ids,
            action_values=np.zeros(0, np.float32) if found is None else found.action_values,
            legal=walk.legal if explored else np.zeros(0, np.bool_),
            predicted=walk.predicted if explored else np.zeros(0, np.float32),
            trail=walk.trail,
            chances=np.zeros(0, np.float32),
        )

    # --- learning ---

    def learn(self, id: int, loss: float) -> None:
        """Take the loss of what was shown: later, in any order; a second one for the same decision is ignored."""
        entry = Loss(id, loss)
        if self.log.append(entry):
            self._take(entry)
        else:
            self._counts["ignored"] += 1

    def _take(self, entry: Decision | Loss) -> None:
        """What follows from an entry of the log, now and when the log is replayed."""
        counts = self._counts
        if isinstance(entry, Decision):
            counts["decisions"] += 1
            counts["explored"] += entry.explored
            if entry.explored:
                self._pending[entry.id] = entry
            elif self.guard is not None:
                self._awaited[entry.id] = entry.guarded
            return
        counts["losses"] += 1
        counts["loss"] += entry.loss
        if self.guard is not None and entry.id in self._awaited:
            self.guard.saw(entry.loss, by_reference=self._awaited.pop(entry.id))
        decision = self._pending.pop(entry.id, None)
        if decision is not None:
            self._update(decision, entry.loss)

    def _update(self, decision: Decision, loss: float) -> None:
        features = Features(
            decision.ids, decision.values, decision.action_start, decision.action_stop, decision.action_ids,
            decision.action_values,
        )  # fmt: skip
        if self.baseline:
            loss -= self._counts["loss"] / self._counts["losses"]
        guess = None
        if self._guesses is not None:
            guess = guessed(self._guesses, features, decision.legal)
        made = estimate(self.estimator, decision.legal, decision.action, decision.chance_action, loss, guess)
        self._learner.learn(batch_of(features, made.costs, made.weight))
        if self._guesses is not None:
            seen = np.full(decision.legal.size, np.inf)
            seen[decision.action] = loss
            self._guesses.learn(batch_of(features, seen, 1.0))
        self._versions += 1
        if self.exploit == "drawn":
            self._keep()
        if self.exploit == "average" and self._versions >= self._refresh:
            self._average = frozen(self._learner.policy(averaged=True))
            self._refresh = max(self._versions + 1, int(self._versions * STALE))

    def _keep(self) -> None:
        """Keep a random sample of all policies so far: each is in it with the same probability."""
        if len(self._kept) < self.keep:
            self._kept.append(frozen(self._learner.policy()))
            return
        key = mix(mix(self.seed, KEEPING), self._versions)
        place = int(unit(key) * self._versions)
        if place < self.keep:
            self._kept[place] = frozen(self._learner.policy())

    # --- what is known ---

    def report(self) -> dict[str, Any]:
        """Decisions, how many explored, losses, their mean, those ignored, and those still awaited of what explored."""
        counts = self._counts
        mean = counts["loss"] / counts["losses"] if counts["losses"] else None
        made = {**counts, "mean_loss": mean, "awaited": len(self._pending), "policies": self._versions}
        return made if self.guard is None else {**made, "trusted": self.guard.trusted}

    def policy(self) -> Policy:
        """The current policy, as a copy."""
        return frozen(self._learner.policy())

    def close(self) -> None:
        """Close the log."""
        self.log.close()


def batch_of(features: Features, costs: np.ndarray, weight: float) -> Batch:
    """One cost-sensitive example as a batch."""
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    slots = Slots(
        start=zero,
        stop=np.array([features.ids.size], np.int64),
        ids=features.ids,
        values=features.values,
        costs=costs.astype(np.float32)[np.newaxis],
        weight=np.array([weight], np.float32),
        action_start=features.action_start.reshape(-1, costs.size),
        action_stop=features.action_stop.reshape(-1, costs.size),
        action_ids=features.action_ids,
        action_values=features.action_values,
    )
    nothing = np.zeros(1)
    return Batch(zero, zero, nothing, nothing, zero, zero, zero, zero, one, np.zeros((1, 3)), slots)


def guessed(learner: Learner, features: Features, legal: np.ndarray) -> np.ndarray:
    """What a regression says that the actions cost."""
    policy = learner.policy()
    rows = _rows(policy.shared, features.ids)
    made = (features.values[rows >= 0, np.newaxis] * policy.stack[0, rows[rows >= 0]]).sum(axis=0, dtype=np.float64)
    if features.action_ids.size:
        own = _rows(policy.single, features.action_ids)
        weights = np.where(own >= 0, policy.single_stack[0, np.maximum(own, 0)], 0.0) * features.action_values
        for a in np.flatnonzero(legal):
            made[a] += weights[features.action_start[a] : features.action_stop[a]].sum(dtype=np.float64)
    return made


def _rows(table: Any, ids: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([lookup(table, int(i)) for i in ids], np.int64)
