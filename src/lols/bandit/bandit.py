"""The structured contextual bandit: show one structure, see one loss, and get better than the rules (Algorithm 2)."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from lols.bandit.advice import with_advice
from lols.bandit.decider import Decider, DecisionWalk
from lols.bandit.entries import Decision, Loss
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.guard import Guard
from lols.bandit.log import Log, MemoryLog, SqliteLog
from lols.bandit.settings import BAG, STEPS, BanditSettings
from lols.bandit.sqlite_log import Durability
from lols.bandit.student import BanditStudent
from lols.bandit.walk import EXPLOIT, EXPLORE, RANDOMISED, REFERENCE, WalkPlan
from lols.contract.digest import digest_functions
from lols.contract.hashing import mix, unit
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError, LolsError
from lols.learners.settings import LearnerSettings

__all__ = ["Shown", "StructuredBandit"]

EXPLORING = 21  # a purpose of draws
RATE, ADVICE = 0.1, 0.1  # by default
REMEMBERED = 100_000  # entries of a log in memory that nobody gave


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
        How often to explore: a number, `"decay:FROM:POWER"` or `"theory:ROUNDS:STEPS:POLICIES"`.
    beta
        The probability with which the reference completes a deviation, else the learned policy.
    exploration, width
        How a deviation's action is drawn: `"uniform"`; `"boltzmann"`, by predicted cost at the temperature `width`;
        `"plausible"`, among those that seem to cost at most `width` more than the best (take it larger than `advice`,
        or only the reference's actions are tried at first); or `"bag"`, by the votes of policies that each learned from
        another resample of the losses, with a share `width` for all actions alike.
    bag
        How many policies are in the bag.
    randomise
        `"deviation"`: a round that explores deviates at one time, as in the paper. `"steps"`: every action of every
        round is drawn, the exploration's share being epsilon over the most steps that there may be; (nearly) all rounds
        are learned from then, beta has no part, and the log can tell the value of other policies.
    estimator
        How one loss becomes the costs of all actions: `"ips"`, `"direct"`, `"dr"` or `"mtr"` (see `estimate`). `"auto"`
        is `"mtr"` for csoaa and `"dr"` for other learners.
    exploit
        Which policy acts when nothing is explored: the `"last"`, one `"drawn"` from those so far, as in the paper, or
        their `"average"`.
    keep
        How many policies are kept to be drawn from, a random sample of all so far.
    learner, update
        How costs become weights (see `lols.LearnerSettings`).
    advice
        How much cheaper the reference's action seems to be to begin with: the policy then starts out as the reference,
        and unlearns that where it is wrong. About what one wrong action costs: 0.1 by default, less where structures
        are long. 0 to start from nothing, without that feature; so it is for rules that draw at random.
    baseline
        Whether losses are taken relative to their mean so far: the same costs but for a constant, with less noise.
    guard
        A `Guard`, or True for one with its defaults: the reference is shown until the learned policy is better with
        confidence. Half of epsilon then goes into showing the other one of the two, to compare them.
    patience
        For how many decisions a loss is waited for: one that comes later is written down and counted, not learned from.
    log
        Where decisions and losses are written before they count: a file (SQLite), or a log; by default in memory, where
        the last hundred thousand entries are kept. A log that has entries already is replayed: the policy is rebuilt
        bit for bit.
    durability
        Of a log that is a file: `"process"` or `"power"` (see `SqliteLog`).
    seed
        One number behind all randomness.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=0.5, seed=1)
    >>> shown = bandit.decide({"words": [4, 5]})
    >>> bandit.learn(shown.id, loss=0.5)
    >>> bandit.report()["losses"]
    1

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        reference: Reference | None = None,
        *,
        epsilon: float | str = 0.1,
        beta: float = 0.5,
        exploration: str = "plausible",
        width: float = 0.15,
        bag: int = 5,
        randomise: str = "deviation",
        estimator: str = "auto",
        exploit: str = "average",
        keep: int = 10,
        learner: str | LearnerSettings = "csoaa",
        update: str | None = None,
        advice: float | None = None,
        baseline: bool = True,
        guard: Guard | bool = False,
        patience: int = 100_000,
        log: Log | str | os.PathLike[str] | None = None,
        durability: Durability | None = None,
        seed: int = 0,
        compiled: bool = True,
    ):
        space = as_space(space)
        reference = as_teacher(reference, space)
        if reference.needs_truth:
            raise ConfigurationError(
                "the reference needs the truth, which a live system does not know: give rules with needs_truth=False"
            )
        if isinstance(learner, str):
            calm = learner == "csoaa" and update in (None, "nag")
            learner = LearnerSettings(learner, update or ("nag" if calm else "adagrad"), rate=RATE if calm else None)
        elif update is not None:
            raise ConfigurationError("update has no effect: it is part of the LearnerSettings that were given")
        if estimator == "auto":
            estimator = "mtr" if learner.reduction == "csoaa" else "dr"
        if advice is None:
            advice = ADVICE if reference.action is not None and not reference.random else 0.0
        self.settings = BanditSettings(
            epsilon, beta, exploration, width, bag, randomise, estimator, exploit, keep, learner, advice, baseline,
            patience, seed,
        )  # fmt: skip
        self.space, self.reference = with_advice(space, reference) if advice else space, reference
        self.guard: Guard | None = (Guard() if guard else None) if isinstance(guard, bool) else guard
        self._epsilon = epsilon_schedule(epsilon, space.sizes.actions)
        self._compiled = compiled
        self._one_at_a_time = threading.RLock()
        self._begin()
        self.log = self._opened(log, durability)
        try:
            self._replay()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Know nothing yet."""
        settings, compiled = self.settings, self._compiled
        if self.guard is not None:  # one of its own: another bandit may have been given the same
            self.guard = Guard(self.guard.confidence, self.guard.memory)
        self._student = BanditStudent(settings, self.space, compiled=compiled)
        votes = self._student.votes if settings.exploration == BAG else None
        self._decider = Decider(
            self.space, self.reference, self._student.learner.columns, votes=votes, compiled=compiled
        )
        # what waits for its loss: decisions that explored; of others, whether the reference was shown
        self._pending: dict[int, Decision | bool] = {}
        self._counts = {"decisions": 0, "explored": 0, "losses": 0, "late": 0, "loss": 0.0}
        self._behind = False  # whether the log may know more than the policy

    def _replay(self) -> None:
        for entry in self.log.replay():
            self._take(entry)

    def _catch_up(self) -> None:
        """After an interrupt between writing an entry and having learned from it: begin again from the log."""
        if self._behind:
            before = {**vars(self)}
            try:
                self._begin()
                self._replay()
            except BaseException:
                vars(self).update(before)
                raise

    def _write(self, entry: Decision | Loss) -> bool:
        """Write an entry, and take what follows from it; False for a second loss."""
        self._behind = True
        try:
            written = self.log.append(entry)
        except LolsError:  # nothing was written
            self._behind = False
            raise
        if written:
            self._take(entry)
        self._behind = False
        return written

    def _opened(self, log: Log | str | os.PathLike[str] | None, durability: Durability | None) -> Log:
        if isinstance(log, (str, os.PathLike)):
            return SqliteLog(log, durability=durability or "process", identity=self.identity())
        if durability is not None:
            raise ConfigurationError("durability has no effect: it is that of a log given as a file name")
        return MemoryLog(REMEMBERED) if log is None else log

    @classmethod
    def algorithm2(
        cls, space: SearchSpace | Task | type[Task], reference: Reference | None = None, **options: Any
    ) -> StructuredBandit:
        """The paper's Algorithm 2 as printed: uniform deviations, inverse propensity, exploiting a drawn policy."""
        fixed: dict[str, Any] = {"exploration": "uniform", "randomise": "deviation", "estimator": "ips"}
        fixed |= {"exploit": "drawn", "baseline": False, "advice": 0.0, "guard": False}
        twice = sorted(set(fixed) & set(options))
        if twice:
            raise ConfigurationError(f"{twice[0]} is part of Algorithm 2: leave it out, or use StructuredBandit itself")
        return cls(space, reference, **fixed, **options)

    # --- deciding ---

    def decide(self, obj: Any) -> Shown:
        """What to show for an object; written to the log before it is returned."""
        with self._one_at_a_time:
            self._catch_up()
            number = self.log.decisions()
            stream = mix(mix(self.settings.seed, 0xBA4D), number)
            epsilon = self._epsilon(number)
            mode = self._mode(stream, epsilon)
            policy, which = (self._student.current, -1) if mode == EXPLORE else self._student.exploiting(stream)
            walk = self._walk(obj, policy, mode, stream, epsilon)
            decision = Decision(
                id=number,
                explored=walk.step >= 0,
                step=walk.step,
                action=walk.action,
                by_reference=walk.by_reference,
                chance_step=walk.chance_step,
                chance_action=walk.chance_action,
                version=self._student.versions - 1,
                policy=which,
                guarded=mode == REFERENCE,
                propensity=walk.propensity,
                **walk.features._asdict(),
                legal=walk.legal,
                predicted=walk.predicted,
                trail=walk.trail,
                chances=walk.chances,
            )
            self._write(decision)
            return Shown(number, walk.output, decision.explored)

    def _mode(self, stream: int, epsilon: float) -> int:
        """Who makes the structure of a round: a deviation, the learned policy, or the reference in its place."""
        u = unit(mix(stream, EXPLORING))
        if self.guard is None:
            mode = EXPLORE if u < epsilon else EXPLOIT
        elif u < epsilon / 2:
            mode = EXPLORE
        else:
            other_one = u < epsilon
            mode = EXPLOIT if self.guard.trusted != other_one else REFERENCE
        return RANDOMISED if self.settings.randomise == STEPS and mode != REFERENCE else mode

    def show_reference(self, obj: Any) -> Any:
        """What the rules would show; nothing is logged."""
        with self._one_at_a_time:
            return self._walk(obj, self._student.current, REFERENCE, 0, 0.0).output

    def predict(self, obj: Any) -> Any:
        """What `policy()` would show, without exploring; nothing is logged."""
        with self._one_at_a_time:
            return self._walk(obj, self._student.final(), EXPLOIT, 0, 0.0).output

    def _walk(self, obj: Any, policy: FrozenPolicy, mode: int, stream: int, epsilon: float) -> DecisionWalk:
        settings = self.settings
        return self._decider.walk(
            obj, policy, WalkPlan(mode, stream, settings.beta, epsilon, settings.drawing, settings.width)
        )

    # --- learning ---

    def learn(self, id: int, loss: float) -> None:
        """Take the loss of what was shown: later, in any order; a second one for the same decision is ignored."""
        with self._one_at_a_time:
            self._catch_up()
            self._write(Loss(id, loss))

    def _take(self, entry: Decision | Loss) -> None:
        """What follows from an entry of the log, now and when the log is replayed."""
        counts, pending = self._counts, self._pending
        if isinstance(entry, Decision):
            if entry.id != counts["decisions"]:
                raise LolsError(
                    f"decision {counts['decisions']} is gone from the log: give a log that keeps all entries"
                )
            actions = self.space.sizes.actions
            if entry.legal.size not in (0, actions):
                raise LolsError(
                    f"decision {entry.id} has {entry.legal.size} actions and the space {actions}: give the space that "
                    "the log was made with"
                )
            counts["decisions"] += 1
            counts["explored"] += entry.explored
            pending[entry.id] = entry if entry.explored else entry.guarded
            oldest = next(iter(pending))
            if oldest <= entry.id - self.settings.patience:
                del pending[oldest]
            return
        loss = float(entry.loss)  # a log in memory may have kept another kind of number
        counts["losses"] += 1
        counts["loss"] += loss
        decision = pending.pop(entry.id, None)
        if decision is None:
            counts["late"] += 1
        elif isinstance(decision, Decision):
            mean = counts["loss"] / counts["losses"] if self.settings.baseline else 0.0
            self._student.learn(decision, loss - mean)
            if self.guard is not None and self.settings.randomise == STEPS:
                self.guard.saw(loss, by_reference=False)
        elif self.guard is not None:
            self.guard.saw(loss, by_reference=decision)

    # --- what is known ---

    def report(self) -> dict[str, Any]:
        """Counts: decisions, how many explored, losses, their sum and mean, second ones ignored, too late, awaited."""
        with self._one_at_a_time:
            counts = {**self._counts, "ignored": self.log.duplicates()}
            mean = counts["loss"] / counts["losses"] if counts["losses"] else None
            made = {**counts, "mean_loss": mean, "awaited": len(self._pending), **self._student.report()}
            return made if self.guard is None else {**made, "trusted": self.guard.trusted}

    def policy(self) -> FrozenPolicy:
        """The policy that acts when nothing is explored, as a copy; of drawn ones, the last."""
        with self._one_at_a_time:
            return self._student.acting()

    def identity(self) -> Mapping[str, Any]:
        """What the log depends on: the space, the rules and all settings."""
        return {
            "space": {
                "name": self.space.name,
                "actions": self.space.sizes.actions,
                "settings": {name: _plain(value) for name, value in sorted(self.space.settings.items())},
                "digest": digest_functions(self.space.functions()),
            },
            "reference": {"name": self.reference.name, "digest": digest_functions(self.reference.functions())},
            "settings": self.settings.identity(),
            "guard": None if self.guard is None else self.guard.identity(),
        }

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    def __enter__(self) -> StructuredBandit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _plain(value: Any) -> Any:
    """A setting of a space as a value of JSON."""
    return value.tolist() if hasattr(value, "tolist") else value
