"""The structured contextual bandit (Algorithm 2): show one structure, receive its loss, and learn from it."""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from lols.bandit.advice import with_advice
from lols.bandit.decider import Decider, Shown
from lols.bandit.entries import WHOLE, Decision, Entry, Event, Log, Loss, Snapshot, check_fields, check_id, check_loss
from lols.bandit.exploring import epsilon_schedule
from lols.bandit.guard import Guard
from lols.bandit.knowledge import Knowledge, from_bytes, to_bytes
from lols.bandit.log import MemoryLog, SqliteLog
from lols.bandit.pace import SafePace
from lols.bandit.policy import BanditPolicy
from lols.bandit.retrace import Retracer
from lols.bandit.schema import changeable, fixed, schema_of
from lols.bandit.settings import SAFE, settings_of
from lols.bandit.sqlite_log import Durability, begun_before
from lols.bandit.student import BanditStudent
from lols.bandit.walk import EXPLOIT, WalkPlan
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError, shown
from lols.kernels.kernel import DISABLED
from lols.learners.settings import LearnerSettings

REMEMBERED = 100_000  # entries of the default log, in memory
RECENT = 100  # decisions in which policy and reference are compared
FEWEST = 1000  # entries that closing a log writes a snapshot for


class Audited(NamedTuple):
    """The policy after an entry of a log, as a snapshot has noted it, and as it is learned again."""

    place: int
    noted: str
    found: str

    @property
    def same(self) -> bool:
        """Whether they are the same, bit for bit."""
        return self.noted == self.found


Answer = Literal["accepted", "duplicate", "late", "unknown"]


class StructuredBandit:
    """Improves a live system: decides what to show, and learns from the loss of it.

    Parameters
    ----------
    space
        The search space. The truth is not needed.
    reference
        The current system. It must not need the truth (`needs_truth=False`).
    algorithm
        `"gaps"`: every action of every round is drawn by inverse gap weighting, on costs that a sketched regression
        predicts, and all steps learn. `"deviations"`: a round that explores deviates at one step, and this one is
        learned from; the options from `beta` to `keep` are its own. `"paper"`: Algorithm 2 as printed. By default
        `"gaps"`, or `"deviations"` if one of its options, another learner or a log of version 0.2 is given.
    epsilon
        How often to explore: a number, `"decay:FROM:POWER"` or `"theory:ROUNDS:STEPS:POLICIES"`. For gaps, the chance
        of each step to be drawn, by default 1, which ends by itself; for the others 0.1, and with a guard, too.
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
        How costs become weights: `"csoaa"`, `"hinge"` or `"secoc"`; or `lols.LearnerSettings`. For gaps, by default,
        `LearnerSettings("csoaa", "sketch", directions=32)`; give it a `decay` if the world changes.
    update
        The online update, if `learner` is a name.
    gap
        For gaps: an action whose cost may be by x higher than the lowest of K has the chance 1 / (K + gap x T √n), at
        one of T steps, after n losses. By default 50.
    optimism
        For gaps: by how many standard deviations, divided by T, costs may be below those predicted. By default 0.3.
    pace
        For gaps: `"safe"`, by default, begins with the reference and lets the policy act in more and more steps, as
        long as its losses allow (see `lols.bandit.pace`); `"free"` lets it act in all of them. A guard has a pace of
        its own.
    advice
        How much cheaper the reference's action is predicted to be at first. The policy then starts as the reference,
        and unlearns this where it is wrong. A good value is the cost of one wrong action: 0.1 by default, less for long
        structures. 0 starts without this feature; it is the default for gaps, and for a reference that draws at random.
    baseline
        Whether to subtract the mean loss so far from losses. This shifts costs by a constant and reduces noise. By
        default only deviations do.
    guard
        A `Guard`, or True for one with its defaults: the reference is shown until the learned policy is better with
        confidence. Half of epsilon is then used to show the other one of the two, to compare them. With epsilon=0 the
        policy is an apprentice: for gaps, it learns from the losses of the reference, which alone is shown.
    patience
        The number of decisions to wait for a loss. A later one is logged and counted, but not learned from.
    log
        Where decisions and losses are written before they take effect: the name of an SQLite file, or a log. By default
        the last hundred thousand entries are kept in memory. A log with entries is replayed, which rebuilds the policy
        bit for bit.
    durability
        For a log given as a file name: `"process"` or `"power"` (see `SqliteLog`).
    snapshot_every
        The number of entries of a log in a file after which what was learned is written into it, so that it need not
        be learned again when the log is opened; 0 for never.
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
    >>> bandit.learn(shown.id, loss=0.5), bandit.learn(shown.id, loss=0.5), bandit.learn("another", loss=0.5)
    ('accepted', 'duplicate', 'unknown')
    >>> bandit.report()["losses"]
    1

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        reference: Reference | None = None,
        *,
        algorithm: str | None = None,
        epsilon: float | str | None = None,
        beta: float | None = None,
        exploration: str | None = None,
        width: float | None = None,
        bag: int | None = None,
        randomise: str | None = None,
        estimator: str | None = None,
        exploit: str | None = None,
        keep: int | None = None,
        learner: str | LearnerSettings | None = None,
        update: str | None = None,
        advice: float | None = None,
        gap: float | None = None,
        optimism: float | None = None,
        pace: str | None = None,
        baseline: bool | None = None,
        guard: Guard | bool = False,
        patience: int = 100_000,
        log: Log | str | os.PathLike[str] | None = None,
        durability: Durability | None = None,
        snapshot_every: int = 10_000,
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
        if algorithm is None and begun_before(log):  # with the only default of its time
            algorithm = "deviations"
        self.settings = settings_of(
            algorithm,
            by_rules=reference.action is not None and not reference.random,
            guard=bool(guard),
            epsilon=epsilon,
            exploration=exploration,
            randomise=randomise,
            estimator=estimator,
            exploit=exploit,
            learner=learner,
            update=update,
            advice=advice,
            baseline=baseline,
            patience=patience,
            seed=seed,
            beta=beta,
            width=width,
            bag=bag,
            keep=keep,
            gap=gap,
            optimism=optimism,
            pace=pace,
        )
        self.space = with_advice(space, reference) if self.settings.advice else space
        self.reference = reference
        self.guard: Guard | None = (Guard() if guard else None) if isinstance(guard, bool) else guard
        if space.fixed_actions is None and str(epsilon).startswith("theory"):
            raise ConfigurationError("epsilon='theory:...' needs one number of actions for all objects: give a number")
        self._epsilon = epsilon_schedule(self.settings.epsilon, space.fixed_actions or 2)
        self.compiled = compiled
        self._one_at_a_time = threading.RLock()
        self._decider = Decider(self.space, self.reference, compiled=compiled, checks=checks)
        check_whole("snapshot_every", snapshot_every, 0)
        self._snapshot_every = snapshot_every
        self._begin()
        every = self._student.needs_every()
        self._retracer = Retracer(self.space, every=every, brief=True, compiled=compiled)
        self._schema = schema_of(self.space)
        self.log = self._opened(log, durability)
        self.log.space = self.space
        try:
            self._restore()
            self._note_settings()
        except BaseException:
            self.log.close()
            raise

    # --- from the log ---

    def _begin(self) -> None:
        """Start with nothing learned."""
        if self.guard is not None:  # a new one, because another bandit may use the same object
            self.guard = Guard(self.guard.confidence, self.guard.memory)
        self._pace = SafePace()
        self._student = BanditStudent(self.settings, self.space, compiled=self.compiled)
        # Decisions whose loss is awaited, with the losses of their steps so far.
        self._pending: dict[int, dict[int, float] | None] = {}
        self._counts: dict[str, Any] = {"decisions": 0, "explored": 0, "losses": 0, "late": 0, "loss": 0.0}
        self._steps = 0, 0.0  # the number of losses of single steps so far, and their sum
        self._recent: deque[str] = deque(maxlen=RECENT)  # decisions with the answers of the reference
        self._behind = False  # whether the log may have an entry that the policy has not learned from
        self._snapped = 0  # the place of the last snapshot

    def _restore(self) -> None:
        """Take what the log knows: its last snapshot, and the entries behind it."""
        wanted = self.settings, self.guard
        self._first_settings()
        self._begin()
        snapshots = self.log.snapshots()
        if snapshots and snapshots[-1].state is not None:
            self._know(from_bytes(snapshots[-1].state))
            self._snapped = snapshots[-1].place
        self._replay(self._snapped)
        self._wanted = wanted

    def _replay(self, after: int = 0) -> None:
        for entry in self.log.replay(after):
            if isinstance(entry, Decision):
                check_fields(entry)
            elif isinstance(entry, Loss):
                for loss in entry.losses.values():
                    check_loss(loss)
            self._take(entry)

    def _catch_up(self) -> None:
        """Rebuild everything from the log after an interrupt between writing an entry and learning from it."""
        if self._behind:
            before = {**vars(self)}
            try:
                self._restore()
                self.settings, self.guard = before["settings"], self.guard
            except BaseException:
                vars(self).update(before)
                raise

    def _write(self, entry: Entry, decision: Decision | None = None) -> bool:
        """Write an entry, and apply it; False if it is there already."""
        self._behind = True
        try:
            written = self.log.append(entry)
        except LolsError:  # nothing was written
            self._behind = False
            raise
        if written:
            self._take(entry, decision)
        self._behind = False
        if self._snapshot_every and self.log.place() - self._snapped >= self._snapshot_every:
            self.snapshot()
        return written

    def _opened(self, log: Log | str | os.PathLike[str] | None, durability: Durability | None) -> Log:
        if isinstance(log, (str, os.PathLike)):
            return SqliteLog(log, durability=durability or "process", identity=self.identity())
        if durability is not None:
            raise ConfigurationError("durability has no effect: it is for a log given as a file name")
        return MemoryLog(REMEMBERED) if log is None else log

    def _settings_value(self) -> dict[str, Any]:
        return {"settings": changeable(self.settings), "guard": self.guard and self.guard.identity()}

    def _first_settings(self) -> None:
        """Take the settings with which the log begins, if it has noted them."""
        text = self.log.about("settings")
        if text is not None:
            self._change(json.loads(text))

    def _change(self, value: Mapping[str, Any]) -> None:
        """Go on with other settings."""
        known = {name: each for name, each in value["settings"].items() if name in changeable(self.settings)}
        self.settings = replace(self.settings, **known)
        held = value.get("guard")
        if (self.guard and self.guard.identity()) != held:
            self.guard = None if held is None else Guard(**held)

    def _note_settings(self) -> None:
        """Write settings that are not those of the log into it."""
        (settings, guard), log = self._wanted, self.log
        if log.reading:
            return
        there = self._settings_value()
        here = {"settings": changeable(settings), "guard": guard and guard.identity()}
        if not log.place():
            self.settings = settings
            self._change(here)
            self._begin()
            log.note("settings", json.dumps(self._settings_value(), sort_keys=True))
        elif there != here:
            if isinstance(log, SqliteLog):
                self._write(Event("settings", here, time.time()))
            else:
                self._take(Event("settings", here))

    @classmethod
    def algorithm2(
        cls, space: SearchSpace | Task | type[Task], reference: Reference | None = None, **options: Any
    ) -> StructuredBandit:
        """The paper's Algorithm 2: uniform deviations, inverse propensity, and a drawn policy to exploit."""
        return cls(space, reference, algorithm="paper", **options)

    def warm_up(self, obj: Any) -> StructuredBandit:
        """Compile ahead, or load from the cache, what deciding and learning need; returns the bandit itself.

        Call it before the first request, with an object like those to come. A twin of this bandit, which knows nothing
        and explores in every round, decides and learns; this one stays as it is, and its log, too.
        """
        twin = copy.copy(self)
        twin._one_at_a_time, twin.log, twin._epsilon = threading.RLock(), MemoryLog(REMEMBERED), lambda _: 1.0
        twin._begin()
        for _ in range(2):  # what was learned is used in the second round
            answer = twin.decide(obj)
            twin.learn(answer.id, 0.0)
            twin.predict(obj)
        twin.show_reference(obj)
        decision = twin.log.find(answer.id)
        if self.compiled and not DISABLED and decision is not None and decision.explored:
            twin._student.warm_up(self._retracer(decision))
        return self

    # --- deciding ---

    def decide(self, obj: Any, id: str | int | None = None, *, activate: bool = True) -> Shown:
        """Choose a structure to show for an object; it is written to the log before it is returned.

        Parameters
        ----------
        obj
            The object. What is JSON goes into the log as it is.
        id
            The id of the event, a text of your own; by default the number of the decision. The same id gives the same
            answer again, from the log, and nothing new is written.
        activate
            Whether the structure is shown at once. If not, no loss is awaited until `activate`, or a loss, says that it
            was shown.

        """
        with self._one_at_a_time:
            self._catch_up()
            number = self.log.decisions()
            name = str(number) if id is None else check_id(id)
            earlier = self.log.find(name)
            if earlier is not None and id is not None:
                return self._again(obj, earlier)
            while earlier is not None:  # an event has the number as its id
                name += "'"
                earlier = self.log.find(name)
            answer, decision = self._decider.decide(obj, self._policy(number), name, active=activate)
            self._write(decision._replace(number=number))
            return answer

    def _again(self, obj: Any, earlier: Decision) -> Shown:
        """The answer of an earlier decision."""
        if earlier.context is not None and earlier.object != obj:
            raise LolsError(
                f"decision {shown(earlier.id)}: its id was used for another object: give each event its own"
            )
        try:
            return self._decider.again(obj, earlier)
        except LolsError as error:
            raise LolsError(f"{error}; or its id was used for another object") from None

    def activate(self, id: str | int) -> Answer:
        """Say that a structure is shown that was not shown at once: its loss is awaited from now on.

        Returns "accepted", "duplicate" if that is known already, or "unknown".
        """
        with self._one_at_a_time:
            self._catch_up()
            decision = self.log.find(check_id(id))
            if decision is None:
                return "unknown"
            if decision.active or decision.number in self._pending or self.log.parts(decision.id):
                return "duplicate"
            self._write(Event("active", {"number": decision.number}, time.time()))
            return "accepted"

    def show_reference(self, obj: Any) -> Any:
        """The structure of the reference; nothing is logged."""
        return self._decider.predict(obj, self._student.current, by_reference=True)

    def predict(self, obj: Any) -> Any:
        """The structure of `policy()`, without exploration; nothing is logged."""
        with self._one_at_a_time:
            return self._decider.predict(obj, self._policy().final)

    # --- learning ---

    def learn(
        self,
        id: str | int,
        loss: float | None = None,
        losses: Sequence[float | None] | Mapping[int, float] | None = None,
    ) -> Answer:
        """Report losses of a decision, at any time and in any order.

        Parameters
        ----------
        id
            The id of the decision.
        loss
            The loss of the whole structure, from 0 to 1.
        losses
            The losses of its steps, one for each, such as whether there was no click on a slot; or some of them, by
            the number of the step. None in a list is for one that is not known yet: report it later.

        Returns
        -------
        "accepted"; "duplicate" if all of it was reported before, which is ignored; "late" if it came after more
        decisions than `patience`: it is logged and counted, but not learned from; "unknown" if there is no such
        decision.

        """
        with self._one_at_a_time:
            self._catch_up()
            parts = _parts(loss, losses)
            decision = self.log.find(check_id(id))
            if decision is None:
                return "unknown"
            length = decision.actions.size
            if max(parts, default=WHOLE) >= length or (isinstance(losses, Sequence) and len(losses) > length):
                raise LolsError(
                    f"decision {shown(decision.id)}: it has {length} steps, and there are losses of more: give one for "
                    "each step at most"
                )
            late = self._is_late(decision)
            if not self._write(Loss(decision.id, parts, time.time()), decision):
                return "duplicate"
            return "late" if late else "accepted"

    def take_over(self, entry: Entry) -> bool:
        """Write an entry of another log, and learn from it; False if it is there already."""
        with self._one_at_a_time:
            self._catch_up()
            return self._write(entry)

    def _is_late(self, decision: Decision) -> bool:
        return decision.number < self._counts["decisions"] - self.settings.patience

    def _take(self, entry: Entry, decision: Decision | None = None) -> None:
        """Apply an entry of the log, when it is written and when the log is replayed."""
        if isinstance(entry, Decision):
            self._take_decision(entry)
        elif isinstance(entry, Loss):
            decision = decision or self.log.find(entry.id)
            if decision is None or decision.number >= self._counts["decisions"]:
                raise LolsError(f"unknown decision {shown(entry.id)}: give a log that keeps all entries")
            self._take_loss(entry, decision)
        elif entry.kind == "active":
            self._pending[int(entry.value["number"])] = None
        elif entry.kind == "settings":
            self._change(entry.value)
            self._student.settings = self.settings
            self._epsilon = epsilon_schedule(self.settings.epsilon, self.space.fixed_actions or 2)

    def _take_decision(self, entry: Decision) -> None:
        counts, pending, fixed_actions = self._counts, self._pending, self.space.fixed_actions
        if entry.number != counts["decisions"]:
            raise LolsError(
                f"decision {counts['decisions']} is missing from the log: give a log that keeps all entries"
            )
        if entry.seen is not None:
            width, by_action = entry.seen.legal.shape[1], entry.seen.lessons.slots.action_start.shape[0] > 0
            if fixed_actions not in (None, width):
                raise LolsError(
                    f"decision {entry.id} has {width} actions and the space {fixed_actions}: give the space of the log"
                )
            if by_action != (self.space.action_features is not None):
                which = "the decision" if by_action else "the space"
                raise LolsError(f"decision {entry.id}: only {which} has features of actions: give the space of the log")
        counts["decisions"] += 1
        counts["explored"] += entry.explored
        if entry.baseline is not None and entry.context is not None:
            self._recent.append(entry.id)
        if entry.active:
            pending[entry.number] = None
        if pending:
            oldest = next(iter(pending))
            if oldest <= entry.number - self.settings.patience:
                del pending[oldest]

    def _take_loss(self, entry: Loss, decision: Decision) -> None:
        counts, pending, number = self._counts, self._pending, decision.number
        late = self._is_late(decision)
        whole = self._settled(entry, decision, late)
        if whole is not None:
            counts["losses"] += 1
            counts["loss"] += whole
        steps = [float(loss) for step, loss in entry.losses.items() if step != WHOLE]
        self._steps = self._steps[0] + len(steps), self._steps[1] + sum(steps)
        if late:
            counts["late"] += 1
            pending.pop(number, None)
            return
        known = decision.context is not None or decision.seen is not None
        if decision.explored or (known and self._student.learns_all):
            mean = counts["loss"] / counts["losses"] if self.settings.baseline and counts["losses"] else 0.0
            of_steps = self._steps[1] / self._steps[0] if self.settings.baseline and self._steps[0] else 0.0
            centred = {k: float(loss) - (mean if k == WHOLE else of_steps) for k, loss in entry.losses.items()}
            self._student.learn(decision, self._retracer(decision), centred)
        if whole is not None:
            self._pace.saw(whole, by_reference=decision.by_reference, steps=decision.actions.size)
        if self.guard is not None and whole is not None:
            if not decision.explored:
                self.guard.saw(whole, by_reference=decision.guarded)
            elif decision.chances.size:
                self.guard.saw(whole, by_reference=False)

    def _settled(self, entry: Loss, decision: Decision, late: bool) -> float | None:
        """The loss of the whole structure, once, when it is known: it is given, or those of all steps are."""
        pending, number = self._pending, decision.number
        if late:
            return float(entry.losses[WHOLE]) if WHOLE in entry.losses else None
        if number not in pending and (decision.active or len(self.log.parts(entry.id)) > len(entry.losses)):
            return None
        known = {**(pending.get(number) or {}), **entry.losses}
        if WHOLE not in known and len(known) < decision.actions.size:
            pending[number] = known
            return None
        pending.pop(number, None)
        return float(known[WHOLE]) if WHOLE in known else sum(map(float, known.values())) / len(known)

    # --- state ---

    def report(self) -> dict[str, Any]:
        """Counts of decisions, explored ones, and losses: sum, mean, ignored, late, and still awaited."""
        with self._one_at_a_time:
            counts = {**self._counts, "ignored": self.log.duplicates()}
            mean = counts["loss"] / counts["losses"] if counts["losses"] else None
            report = {**counts, "mean_loss": mean, "awaited": len(self._pending), **self._student.report()}
            if self._student.learns_all:
                report["agreement"] = self._agreement()
            return report if self.guard is None else {**report, "trusted": self.guard.trusted}

    def _agreement(self) -> float | None:
        """In which share of the last decisions policy and reference would take the same action, step by step."""
        same = total = 0
        weights, plan = self._policy().final, WalkPlan(EXPLOIT, 0, 0.0, 0.0, 0, 1.0)
        for decision in filter(None, map(self.log.find, self._recent)):
            _, own = self._decider.walk(decision.object, weights, plan)
            one, other = own.actions.tolist(), cast(np.ndarray, decision.baseline).tolist()
            same += sum(a == b for a, b in zip(one, other))
            total += max(len(one), len(other))
        return same / total if total else None

    def policy(self) -> BanditPolicy:
        """A copy of what the bandit decides by: see `BanditPolicy`."""
        with self._one_at_a_time:
            return self._policy().copy()

    def _policy(self, number: int | None = None) -> BanditPolicy:
        """The policy of now; its weights share memory with the learner."""
        epsilon = self._epsilon(self._counts["decisions"] if number is None else number)
        trusted = None if self.guard is None else self.guard.trusted
        student, paced = self._student, self.settings.pace == SAFE and self.guard is None
        return BanditPolicy(
            student.weights(),
            self.settings,
            self._schema,
            student.versions - 1,
            epsilon,
            trusted,
            *((self._pace.steps, self._pace.compared) if paced else (None, 0.0)),
        )

    def snapshot(self) -> None:
        """Write what was learned to the log, so that it need not be learned again when the log is opened."""
        with self._one_at_a_time:
            self._catch_up()
            place, policy = self.log.place(), self._policy()
            state = to_bytes(self._knowledge())
            self.log.keep(Snapshot(place, policy.version, policy.digest(), state, time.time()))
            self._snapped = place

    def audit(self) -> list[Audited]:
        """Learn everything in the log again from its beginning, and compare the policies with those of then.

        Returns the digest of the policy for each snapshot, and for the last entry, as it was noted and as it is found;
        for the last entry, it is compared with the policy of now, which was learned from the last snapshot on.
        """
        with self._one_at_a_time:
            self._catch_up()
            noted = {snapshot.place: snapshot.digest for snapshot in self.log.snapshots()}
            noted[self.log.place()] = self._policy().digest()
            twin, found = copy.copy(self), []
            twin._first_settings()
            twin._begin()
            for place, entry in enumerate(self.log.replay(), start=1):
                twin._take(entry)
                if place in noted:
                    found.append(Audited(place, noted[place], twin._policy().digest()))
            return found

    def _knowledge(self) -> Knowledge:
        numbers = {"counts": self._counts, "steps": self._steps, **self._settings_value()}
        guard = self.guard and self.guard.state()
        more = {"pace": self._pace.state(), "compared": list(self._recent)}
        return Knowledge({**numbers, "recent": guard, **more}, self._pending, self._student.state())

    def _know(self, knowledge: Knowledge) -> None:
        self._change(knowledge.numbers)
        self._begin()
        self._counts, self._steps = dict(knowledge.numbers["counts"]), tuple(knowledge.numbers["steps"])
        self._pending = dict(knowledge.pending)
        if self.guard is not None:
            self.guard.load(knowledge.numbers["recent"])
        self._recent.extend(knowledge.numbers["compared"])
        self._pace.load(knowledge.numbers["pace"])
        self._student.load(knowledge.student)
        self._epsilon = epsilon_schedule(self.settings.epsilon, self.space.fixed_actions or 2)

    def identity(self) -> Mapping[str, Any]:
        """What the weights mean: the space, the settings that cannot change on the way, and the version of learning."""
        return {**self._schema, "settings": fixed(self.settings)}

    def close(self) -> None:
        """Close the log."""
        if self._snapshot_every and not self._behind and self.log.place() - self._snapped >= FEWEST:
            self.snapshot()
        self.log.close()

    def __enter__(self) -> StructuredBandit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parts(loss: float | None, losses: Sequence[float | None] | Mapping[int, float] | None) -> dict[int, float]:
    """Losses by step, checked."""
    parts: dict[int, float] = {} if loss is None else {WHOLE: loss}
    if isinstance(losses, Mapping):
        if any(not isinstance(step, int | np.integer) or step < 0 for step in losses):
            raise LolsError("losses by step: give the numbers of steps, from 0")
        parts |= {int(step): value for step, value in losses.items()}
    elif losses is not None:
        if isinstance(losses, str) or not hasattr(losses, "__len__"):
            raise LolsError(f"losses {shown(losses)}: give a list of numbers, one for each step")
        parts |= {step: value for step, value in enumerate(losses) if value is not None}
    if not parts:
        raise LolsError("no loss is given: give `loss`, `losses`, or both")
    for value in parts.values():
        check_loss(value)
    return {step: float(value) for step, value in parts.items()}
