"""The structured contextual bandit (Algorithm 2): show one structure, receive its loss, and learn from it."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from lols.bandit.advice import with_advice
from lols.bandit.decider import Decider
from lols.bandit.entries import Decision, Loss, check_fields, check_loss
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.guard import Guard
from lols.bandit.log import Log, MemoryLog, SqliteLog
from lols.bandit.settings import BAG, STEPS, BanditSettings, effective
from lols.bandit.sqlite_log import Durability
from lols.bandit.student import BanditStudent
from lols.bandit.walk import EXPLOIT, EXPLORE, RANDOMISED, REFERENCE, WalkPlan
from lols.contract.identity import LEARNING, identity_of
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix, unit
from lols.kernels.kernel import DISABLED
from lols.learners.settings import LearnerSettings

EXPLORING = 21  # a purpose of draws
RATE, ADVICE = 0.1, 0.1  # by default
REMEMBERED = 100_000  # entries of the default log, in memory


class Shown(NamedTuple):
    """A structure to show, and the id under which its loss is to be reported.

    Attributes
    ----------
    id
        What `learn` takes with the loss.
    output
        The structure to show.
    explored
        Whether this round explored.

    """

    id: int
    output: Any
    explored: bool


class StructuredBandit:
    """Improves a live system: decides what to show, and learns from the loss of it.

    Parameters
    ----------
    space
        The search space. The truth is not needed.
    reference
        The current system. It must not need the truth (`needs_truth=False`).
    epsilon
        How often to explore: a number, `"decay:FROM:POWER"` or `"theory:ROUNDS:STEPS:POLICIES"`.
    beta
        The probability that the reference completes a deviation, by default 0.5; otherwise the learned policy does.
    exploration
        How the action of a deviation is drawn: `"uniform"`; `"boltzmann"`, by predicted cost at the temperature
        `width`; `"plausible"`, among the actions whose predicted cost is at most `width` above the lowest; or `"bag"`,
        by the votes of policies trained on different resamples of the losses.
    width
        Of `"boltzmann"`, the temperature; of `"plausible"`, the largest predicted cost above the lowest (choose it
        larger than `advice`, or at first only the reference's actions are tried); of `"bag"`, the share of uniform
        exploration. By default 0.15.
    bag
        The number of policies in the bag, by default 5.
    randomise
        `"deviation"`: a round that explores deviates at one step, as in the paper. `"steps"`: every action of every
        round is drawn; a step explores with probability epsilon divided by the most steps that there may be. Then the
        bandit learns from (nearly) all rounds, has no beta, and other policies can be evaluated from the log.
    estimator
        How one loss becomes the costs of all actions: `"ips"`, `"direct"`, `"dr"` or `"mtr"` (see `estimate`). `"auto"`
        is `"mtr"` for csoaa and `"dr"` for other learners.
    exploit
        The policy that acts when nothing is explored: the `"last"`, one `"drawn"` from those so far, as in the paper,
        or their `"average"`.
    keep
        The number of policies to draw from, a random sample of all so far; by default 10.
    learner
        How costs become weights: `"csoaa"`, `"hinge"` or `"secoc"`; or `lols.LearnerSettings`.
    update
        The online update, if `learner` is a name.
    advice
        How much cheaper the reference's action is predicted to be at first. The policy then starts as the reference,
        and unlearns this where it is wrong. A good value is the cost of one wrong action: 0.1 by default, less for long
        structures. 0 starts without this feature; it is the default for a reference that draws at random.
    baseline
        Whether to subtract the mean loss so far from losses. This shifts costs by a constant and reduces noise.
    guard
        A `Guard`, or True for one with its defaults: the reference is shown until the learned policy is better with
        confidence. Half of epsilon is then used to show the other one of the two, to compare them.
    patience
        The number of decisions to wait for a loss. A later one is logged and counted, but not learned from.
    log
        Where decisions and losses are written before they take effect: the name of an SQLite file, or a log. By default
        the last hundred thousand entries are kept in memory. A log with entries is replayed, which rebuilds the policy
        bit for bit.
    durability
        For a log given as a file name: `"process"` or `"power"` (see `SqliteLog`).
    seed
        The seed of all random numbers.
    compiled
        False runs the same code as plain Python.
    checks
        Whether functions of your own are checked on the first object: see `lols.Trainer`.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=0.5, seed=1, compiled=False)
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
        beta: float | None = None,
        exploration: str = "plausible",
        width: float | None = None,
        bag: int | None = None,
        randomise: str = "deviation",
        estimator: str = "auto",
        exploit: str = "average",
        keep: int | None = None,
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
        checks: bool = True,
    ):
        space = as_space(space)
        reference = as_teacher(reference, space)
        if reference.needs_truth:
            raise ConfigurationError(
                "the reference needs the truth, which a live system does not have: give one with needs_truth=False"
            )
        if isinstance(learner, str):
            calm = learner == "csoaa" and update in (None, "nag")
            learner = LearnerSettings(learner, update or ("nag" if calm else "adagrad"), rate=RATE if calm else None)
        elif update is not None:
            raise ConfigurationError("update has no effect: set it in the LearnerSettings")
        if estimator == "auto":
            estimator = "mtr" if learner.reduction == "csoaa" else "dr"
        if advice is None:
            advice = ADVICE if reference.action is not None and not reference.random else 0.0
        self.settings = BanditSettings(
            epsilon=epsilon,
            exploration=exploration,
            randomise=randomise,
            estimator=estimator,
            exploit=exploit,
            learner=learner,
            advice=advice,
            baseline=baseline,
            patience=patience,
            seed=seed,
            **effective(exploration, randomise, exploit, beta=beta, width=width, bag=bag, keep=keep),
        )
        self.space, self.reference = with_advice(space, reference) if advice else space, reference
        self.guard: Guard | None = (Guard() if guard else None) if isinstance(guard, bool) else guard
        self._epsilon = epsilon_schedule(epsilon, space.action_count)
        self._compiled, self._checks = compiled, checks
        self._one_at_a_time = threading.RLock()
        self._begin()
        self.log = self._opened(log, durability)
        try:
            self._replay()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Start with nothing learned."""
        settings, compiled = self.settings, self._compiled
        if self.guard is not None:  # a new one, because another bandit may use the same object
            self.guard = Guard(self.guard.confidence, self.guard.memory)
        self._student = BanditStudent(settings, self.space, compiled=compiled)
        votes = self._student.votes if settings.exploration == BAG else None
        self._decider = Decider(
            self.space,
            self.reference,
            self._student.learner.columns,
            votes=votes,
            compiled=compiled,
            checks=self._checks,
        )
        # Decisions without a loss yet; for those that did not explore only whether the reference was shown.
        self._pending: dict[int, Decision | bool] = {}
        self._counts = {"decisions": 0, "explored": 0, "losses": 0, "late": 0, "loss": 0.0}
        self._behind = False  # whether the log may have an entry that the policy has not learned from

    def _replay(self) -> None:
        for entry in self.log.replay():
            if isinstance(entry, Decision):
                check_fields(entry)
            else:
                check_loss(entry.loss)
            self._take(entry)

    def _catch_up(self) -> None:
        """Rebuild everything from the log after an interrupt between writing an entry and learning from it."""
        if self._behind:
            before = {**vars(self)}
            try:
                self._begin()
                self._replay()
            except BaseException:
                vars(self).update(before)
                raise

    def _write(self, entry: Decision | Loss) -> bool:
        """Write an entry, and apply it; False for a second loss."""
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
            raise ConfigurationError("durability has no effect: it is for a log given as a file name")
        return MemoryLog(REMEMBERED) if log is None else log

    @classmethod
    def algorithm2(
        cls, space: SearchSpace | Task | type[Task], reference: Reference | None = None, **options: Any
    ) -> StructuredBandit:
        """The paper's Algorithm 2: uniform deviations, inverse propensity, and a drawn policy to exploit.

        Parameters
        ----------
        space
            The search space, or a `Task`.
        reference
            The current system, which is the teacher.
        **options
            Options of the class that change what the paper's algorithm does, such as `seed` and `log`.

        """
        fixed: dict[str, Any] = {"exploration": "uniform", "randomise": "deviation", "estimator": "ips"}
        fixed |= {"exploit": "drawn", "baseline": False, "advice": 0.0, "guard": False}
        twice = sorted(set(fixed) & set(options))
        if twice:
            raise ConfigurationError(f"{twice[0]} is part of Algorithm 2: leave it out, or use StructuredBandit itself")
        return cls(space, reference, **fixed, **options)

    def warm_up(self, obj: Any) -> StructuredBandit:
        """Compile ahead, or load from the cache, what deciding and learning need; returns the bandit itself.

        Call it before the first request, with an object like those to come. A twin of this bandit, which knows nothing
        and explores in every round, decides and learns; this one stays as it is, and its log, too.

        Parameters
        ----------
        obj
            An object like those to come; nothing is learned from it.

        """
        twin = copy.copy(self)
        twin._one_at_a_time, twin.log, twin._epsilon = threading.RLock(), MemoryLog(REMEMBERED), lambda _: 1.0
        twin._begin()
        for _ in range(2):  # what was learned is used in the second round
            shown = twin.decide(obj)
            decision = twin._pending[shown.id]
            twin.learn(shown.id, 0.0)
            twin.predict(obj)
        twin.show_reference(obj)
        if self._compiled and not DISABLED and isinstance(decision, Decision):
            twin._student.warm_up(decision)
        return self

    # --- deciding ---

    def decide(self, obj: Any) -> Shown:
        """Choose a structure to show for an object; it is written to the log before it is returned.

        Parameters
        ----------
        obj
            What the space encodes: a request, a page, a sentence.

        """
        with self._one_at_a_time:
            self._catch_up()
            number = self.log.decisions()
            stream = mix(mix(self.settings.seed, 0xBA4D), number)
            epsilon = self._epsilon(number)
            mode = self._mode(stream, epsilon)
            policy, which = (self._student.current, -1) if mode == EXPLORE else self._student.exploiting(stream)
            output, decision = self._walk(obj, policy, mode, stream, epsilon)
            version, guarded = self._student.versions - 1, mode == REFERENCE
            self._write(decision._replace(id=number, version=version, policy=which, guarded=guarded))
            return Shown(number, output, decision.explored)

    def _mode(self, stream: int, epsilon: float) -> int:
        """The mode of a round: exploring, by the learned policy, or by the reference."""
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
        """The structure of the reference; nothing is logged.

        Parameters
        ----------
        obj
            What the space encodes, as for `decide`.

        """
        with self._one_at_a_time:
            return self._walk(obj, self._student.current, REFERENCE, 0, 0.0)[0]

    def predict(self, obj: Any) -> Any:
        """The structure of `policy()`, without exploration; nothing is logged.

        Parameters
        ----------
        obj
            What the space encodes, as for `decide`.

        """
        with self._one_at_a_time:
            return self._walk(obj, self._student.final(), EXPLOIT, 0, 0.0)[0]

    def _walk(self, obj: Any, policy: FrozenPolicy, mode: int, stream: int, epsilon: float) -> tuple[Any, Decision]:
        settings = self.settings
        plan = WalkPlan(mode, stream, settings.beta, epsilon, settings.drawing, settings.width)
        return self._decider.walk(obj, policy, plan)

    # --- learning ---

    def learn(self, id: int, loss: float) -> None:
        """Report the loss of a decision, at any time and in any order. A second loss of a decision is ignored.

        Parameters
        ----------
        id
            The id that `decide` gave.
        loss
            The loss of what was shown, from 0 to 1.

        """
        with self._one_at_a_time:
            self._catch_up()
            self._write(Loss(id, loss))

    def _take(self, entry: Decision | Loss) -> None:
        """Apply an entry of the log, when it is written and when the log is replayed."""
        counts, pending = self._counts, self._pending
        if isinstance(entry, Decision):
            if entry.id != counts["decisions"]:
                raise LolsError(
                    f"decision {counts['decisions']} is missing from the log: give a log that keeps all entries"
                )
            actions = self.space.action_count
            if entry.legal.size not in (0, actions):
                raise LolsError(
                    f"decision {entry.id} has {entry.legal.size} actions and the space {actions}: give the space of "
                    "the log"
                )
            if entry.explored and (entry.action_start.size > 0) != (self.space.action_features is not None):
                which = "the space" if self.space.action_features is not None else "the decision"
                raise LolsError(f"decision {entry.id}: only {which} has features of actions: give the space of the log")
            counts["decisions"] += 1
            counts["explored"] += entry.explored
            pending[entry.id] = entry if entry.explored else entry.guarded
            oldest = next(iter(pending))
            if oldest <= entry.id - self.settings.patience:
                del pending[oldest]
            return
        loss = float(entry.loss)  # a log in memory may hold another numeric type
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

    # --- state ---

    def report(self) -> dict[str, Any]:
        """Counts of decisions, explored ones, and losses: sum, mean, ignored, late, and still awaited."""
        with self._one_at_a_time:
            counts = {**self._counts, "ignored": self.log.duplicates()}
            mean = counts["loss"] / counts["losses"] if counts["losses"] else None
            report = {**counts, "mean_loss": mean, "awaited": len(self._pending), **self._student.report()}
            return report if self.guard is None else {**report, "trusted": self.guard.trusted}

    def policy(self) -> FrozenPolicy:
        """A copy of the policy that acts when nothing is explored; the last one if they are drawn."""
        with self._one_at_a_time:
            return self._student.acting()

    def identity(self) -> Mapping[str, Any]:
        """What the log depends on: the space, the reference and all settings."""
        return {
            "learning": LEARNING,
            "space": {
                "name": self.space.name,
                "actions": self.space.action_count,
                "settings": {name: _plain(value) for name, value in sorted(self.space.settings.items())},
                "source": identity_of(self.space.functions()),
            },
            "reference": {"name": self.reference.name, "source": identity_of(self.reference.functions())},
            "settings": asdict(self.settings),
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
