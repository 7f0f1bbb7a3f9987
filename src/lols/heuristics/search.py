"""The search of `lols.optimise` for the best strategy, within its time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.errors import SpaceError
from lols.heuristics.budget import Lines, OutOfTime, TimeBudget, Watch
from lols.heuristics.instances import CHOOSING, REPORTING, InstancePart, Instances
from lols.heuristics.problems import HeuristicProblem
from lols.heuristics.report import CLAIRVOYANT, Attempt, Comparison, OptimisationReport
from lols.heuristics.strategies import NAMES, STRATEGIES, SampleSizes, Strategy, ladder
from lols.learners.settings import LearnerSettings
from lols.training.learning_state import start_of
from lols.training.progress import duration

TRYING, AGAIN = 0.3, 0.2  # of the time: all strategies, and the best two once more; the rest is for the best one
FEW = 8  # instances that show how long everything takes
LOOKS = 30  # at the instances that choose, in all
PASSES, MOST_PASSES = 3, 50  # over the instances of one attempt: as planned, and at most if there is time
SHORT = 0.05  # seconds that may be those of beginning to work, rather than of the work
PATIENCE = 3.0  # seconds for what is wanted of a report after an interruption


class Result(NamedTuple):
    """A policy, and its mean loss on the choosing instances."""

    loss: float
    model: Any
    strategy: Strategy


class TrainingPace(NamedTuple):
    """What training looks at in an instance, and the seconds that it takes."""

    sampling: SampleSizes
    seconds: float


class Earlier(NamedTuple):
    """What is gone on from: a model, its strategy, and what was spent on it."""

    model: Any
    strategy: Strategy | None
    seconds: float
    instances: int


@dataclass
class StrategySearch:
    """The search for the best strategy."""

    problem: HeuristicProblem
    instances: Instances
    budget: TimeBudget
    lines: Lines
    seed: int
    best_of: int
    sample_steps: int | None
    earlier: Earlier | None = None

    interrupted: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    best: Result | None = None
    pace: dict[str, TrainingPace] = field(default_factory=dict)  # by algorithm; those that are too slow are missing
    alone: bool = False  # whether there is time for one strategy only
    follows: float = 0.0  # seconds of a policy for one instance
    samples: float = 0.0  # seconds of the best of several samples for one instance
    looking: float = 0.0  # seconds of one look at the choosing instances
    reporting: float = 0.0  # seconds of the report
    held_out: int = REPORTING
    used: int = 0  # training instances, at most in one attempt
    heuristic: float = math.inf  # its mean loss on the choosing instances

    def run(self) -> tuple[Any, OptimisationReport]:
        """Try strategies, train the best one for the rest of the time, and compare it with the heuristic."""
        self._meet()
        try:
            if self._measure():
                self._learn()
        except KeyboardInterrupt:
            self.interrupted = True
            self.lines.say("interrupted: the report is of the best policy so far")
        return self._reported()

    @property
    def cheap(self) -> float:
        """Seconds that a measurement may take."""
        return max(0.01 * self.budget.seconds, 4 * SHORT)

    # --- how long everything takes ---

    def _meet(self) -> None:
        """Follow the heuristic on a few instances, one by one."""
        self.guide = self.problem.keeping(self.problem.trainer(passes=1, seed=self.seed).untrained())
        times: list[float] = []
        while len(times) < FEW and sum(times) < 0.02 * self.budget.seconds:
            part = self.instances.one(len(times))
            if not times:
                self._losses(part, self.guide)  # compiles
            times.append(self.budget.timed(partial(self._heuristic, part)) / 2)
        self.slowest, self.guided = int(np.argmax(times)), float(np.mean(times))
        if self.instances.given * 2 * self.guided < 0.1 * self.budget.seconds and self.instances.given:
            self._heuristic(self.instances.every())

    def _heuristic(self, part: InstancePart) -> np.ndarray:
        """The heuristic's losses; it must give the same ones again."""
        losses = self._losses(part, self.guide)
        if not np.array_equal(losses, self._losses(part, self.guide)):
            raise SpaceError(
                f"the heuristic is not deterministic: let it draw by lols.uniform(rng), {self.problem.draws_by}"
            )
        return losses

    def _measure(self) -> bool:
        """Measure what training, a look at the choosing instances and the report take; whether anything can be tried.

        It begins with one instance, the slowest of a few, and with as little of it as possible.
        """
        slow, seconds = self.instances.one(self.slowest), self.budget.seconds
        untrained = self.problem.learned(self.guide)
        self._losses(slow, untrained)  # compiles
        self.follows = self._each(lambda part: self._losses(part, untrained), slow)
        self.guided = self._each(lambda part: self._losses(part, self.guide), slow)
        both = self.follows + self.guided
        self.choosing = self.instances.choosing(min(max(int(0.25 * seconds / (LOOKS * both)), FEW), CHOOSING))
        self.heuristic = float(self._heuristic(self.choosing).mean())
        self.lines.say(f"the heuristic: {self.heuristic:.4g}")
        self.looking = self.follows * len(self.choosing)
        self.held_out = min(max(int(0.1 * seconds / both), 2 * FEW), REPORTING)
        if self.best_of > 1:
            self._measure_samples(slow, untrained)
        self.reporting = self.held_out * (2 * both + self.samples)
        strategies = self._strategies()
        for algorithm in dict.fromkeys(strategy.algorithm for strategy in strategies):
            if not self.alone:
                self._measure_training(next(each for each in strategies if each.algorithm == algorithm), slow)
        self._note_pace()
        return bool(self.pace)

    def _each(self, work: Callable[[InstancePart], Any], one: InstancePart) -> float:
        """The seconds of some work for an instance: for one alone, or if there is time for a few, or for more."""
        seconds = self._timed(partial(work, one))
        for count in (FEW, CHOOSING):
            if seconds * count > self.cheap:
                break
            part = self.instances.training(count)
            seconds = self._timed(partial(work, part)) / len(part)
        return max(seconds, 1e-9)

    def _timed(self, work: Callable[[], Any]) -> float:
        """The seconds of some work, the least of three if there is time: another process may have delayed it."""
        seconds = self.budget.timed(work)
        for _ in range(2):
            if seconds < self.cheap:
                seconds = min(seconds, self.budget.timed(work))
        return seconds

    def _measure_samples(self, slow: InstancePart, model: Any) -> None:
        """Measure what the best of several samples takes; without the time for it, it is left out."""
        self._losses(slow, model, best_of=2)  # compiles
        count = seconds = 0.0
        while count < self.best_of and 4 * seconds <= self.cheap:
            count = min(4 * count or 2, self.best_of)
            seconds = self._timed(partial(self._losses, slow, model, best_of=int(count)))
        self.samples = seconds * self.best_of / count
        if count == self.best_of:
            self.samples = self._each(lambda part: self._losses(part, model, best_of=self.best_of), slow)
        most = int(0.25 * self.budget.seconds / self.samples)
        if most < 2 * FEW:
            self.notes.append(f"The best of {self.best_of} samples is left out: it takes {_shown(self.samples)} each.")
            self.best_of, self.samples = 1, 0.0
        else:
            self.held_out = min(self.held_out, most)

    def _measure_training(self, strategy: Strategy, slow: InstancePart) -> None:
        """Find out how much of an instance training can look at: ever more, until it takes too long."""
        left = max(self._left(), TRYING * self.budget.seconds)
        limit = TRYING * left / len(STRATEGIES) / (2 * FEW)
        longest = max(limit if self.pace else left / (2 * FEW), 2 * SHORT)  # if nothing else is tried
        if 2 * self.follows > longest:
            return

        def train(sampling: SampleSizes, part: InstancePart) -> Any:
            return self._trained(strategy, part, 1, sampling)

        if 10 * self.follows > self.cheap:
            self.lines.say(
                f"measuring {strategy.name} on a part of one instance; a policy takes {_shown(self.follows)}"
            )
        tried: list[TrainingPace] = []
        for sampling in ladder(self.sample_steps, *self.problem.most(slow.data)):
            seconds = self._timed(partial(train, sampling, slow))
            if not tried and SHORT < seconds < 0.1 * self.budget.seconds:  # memory was new
                seconds = min(seconds, self._timed(partial(train, sampling, slow)))
            tried.append(TrainingPace(sampling, seconds))
            self.lines.whisper(f"{strategy.name}: {_shown(seconds)} for {sampling} of an instance")
            if seconds > max(limit, SHORT):
                break
        fitting = [pace for pace in tried if pace.seconds <= max(limit, SHORT)]
        if not fitting and tried[0].seconds <= longest:
            fitting, self.alone = tried[:1], True
        paces = (TrainingPace(each, self._each(partial(train, each), slow)) for each, _ in fitting[:1] + fitting[:0:-1])
        least = chosen = next(paces, None)
        if least is not None and chosen is not None:
            for pace in paces:  # from the one that looks at most; less of an instance need not be faster
                if pace.seconds <= max(limit, 2 * least.seconds):
                    chosen = pace
                    break
            self.pace[strategy.algorithm] = chosen

    def _note_pace(self) -> None:
        """Say what large instances do not leave time for."""
        wanted = SampleSizes(self.sample_steps)
        if any(pace.sampling != wanted for pace in self.pace.values()):
            each = "; ".join(f"{NAMES[algorithm]}: {pace.sampling}" for algorithm, pace in self.pace.items())
            self.notes.append(f"There is no time to deviate everywhere in an instance. {each}.")
        if len(self.choosing) < CHOOSING and self.follows * CHOOSING * LOOKS > 0.25 * self.budget.seconds:
            self.notes.append(
                f"A policy takes {_shown(self.follows)} for an instance: {len(self.choosing)} chose the strategy."
            )
        if not self.pace:
            self.notes.append(
                f"No strategy could be tried: a policy takes {_shown(self.follows)} for an instance, and training on "
                "one takes longer. Give more minutes, or smaller instances: with features of actions, a policy that "
                "was trained on small instances decides larger ones."
            )
        for note in self.notes:
            self.lines.say(note)

    # --- learning ---

    def _learn(self) -> None:
        """Try all strategies, the two best once more, and train the best one for the rest of the time."""
        if self.earlier is not None and self.earlier.strategy is not None:
            self._go_on(self.earlier)
            return
        possible = [strategy for strategy in STRATEGIES if strategy.algorithm in self.pace]
        if self.alone:
            self._attempt(possible[0], self._left())
            return
        left = self._left()
        share = TRYING * left / len(STRATEGIES)
        attempts = [self._attempt(s, share) for s in STRATEGIES if self._affordable(s, share)]
        tried = sorted((each for each in attempts if each is not None), key=lambda each: each.loss)
        again = [self._attempt(each.strategy, AGAIN * left / 2) for each in tried[:2]]
        finals = sorted((each for each in again if each is not None), key=lambda each: each.loss) or tried
        if finals:
            self._attempt(finals[0].strategy, self._left())

    def _go_on(self, earlier: Earlier) -> None:
        """Train the earlier policy for the whole time, from its weights."""
        model, strategy = self.problem.learned(earlier.model), earlier.strategy
        assert strategy is not None
        loss = float(self._losses(self.choosing, model).mean())
        self.best = Result(loss, model, strategy)
        self.lines.say(f"the policy so far: {loss:.4g}")
        if self._affordable(strategy, self._left()):
            self._attempt(strategy, self._left(), model)

    def _strategies(self) -> tuple[Strategy, ...]:
        known = self.earlier and self.earlier.strategy
        return (known,) if known else STRATEGIES

    def _left(self) -> float:
        """What is left of the time for training."""
        return max(self.budget.left() - self.reporting, 0.0)

    def _affordable(self, strategy: Strategy, seconds: float) -> bool:
        """Whether a strategy gets through a few instances in its time; the first one is tried in any case."""
        pace = self.pace.get(strategy.algorithm)
        if pace is not None and (pace is next(iter(self.pace.values())) or FEW * pace.seconds <= seconds):
            return True
        self.attempts.append(Attempt(strategy.name, 0, 0, 0.0, math.nan))
        self.lines.say(f"{strategy.name}: left out, too slow for this budget")
        return False

    def _trained(
        self, strategy: Strategy, part: InstancePart, passes: int, sampling: SampleSizes, start: Any = None, **more: Any
    ) -> Any:
        settings = LearnerSettings("hinge", "adagrad", margin=strategy.margin, scale=None)
        trainer = self.problem.trainer(
            algorithm=strategy.algorithm, learner=settings, passes=passes, seed=self.seed,
            **sampling._asdict(), **strategy.options,
        )  # fmt: skip
        state = None if start is None else start_of(start, trainer)
        with part.named():
            return trainer.fit(part.data, start=state, **{"progress": False} | more)

    def _attempt(self, strategy: Strategy, seconds: float, start: Any = None) -> Result | None:
        """Train for about this many seconds: the policy after the pass that was best on the choosing instances."""
        began, (sampling, each) = self.budget.spent(), self.pace[strategy.algorithm]
        count = (seconds - PASSES * self.looking) / (PASSES * each + self.instances.seconds_each)
        part = self.instances.training(max(FEW, int(count)), self.earlier.instances if self.earlier else 0)
        self.used = max(self.used, len(part))
        results: list[Result] = []

        def after_pass(number: int, model: Any) -> bool:
            before = self.budget.spent()
            results.append(Result(float(self._losses(self.choosing, model).mean()), model, strategy))
            if self.best is None or results[-1].loss < self.best.loss:
                self.best = results[-1]
            now = self.budget.spent()
            self.looking = now - before
            self.lines.whisper(f"{strategy.name}: {results[-1].loss:.4g} after pass {number + 1}")
            return now - began >= seconds * len(results) / (len(results) + 1)

        watch = Watch(strategy.name, self.budget, self.lines, began + 1.5 * seconds + 1.0)
        try:
            self._trained(strategy, part, MOST_PASSES, sampling, start, progress=watch, after_pass=after_pass)
        except OutOfTime:
            self.lines.say(f"{strategy.name}: stopped, it takes longer than expected")
        finally:
            best = min(results, key=lambda result: result.loss, default=None)
            took, loss = self.budget.spent() - began, math.nan if best is None else best.loss
            self.attempts.append(Attempt(strategy.name, len(part), len(results), took, loss))
        if best is None:
            return None
        training = max(took - len(results) * self.looking, 0.1 * took)
        self.pace[strategy.algorithm] = TrainingPace(sampling, training / (len(part) * len(results)))
        self.lines.say(f"{strategy.name}: {best.loss:.4g} after {took:.1f} s")
        if len(results) == MOST_PASSES and took < 0.5 * seconds and not self.instances.given:
            others = self._attempt(strategy, seconds - took, start)  # it was faster than expected: more instances
            return min((each for each in (best, others) if each is not None), key=lambda each: each.loss)
        return best

    # --- the report ---

    def _reported(self) -> tuple[Any, OptimisationReport]:
        """The model that decides, and how it compares with the heuristic on instances that chose nothing."""
        count, best_of = self.held_out, self.best_of
        if self.interrupted:
            count = min(count, max(int(PATIENCE / max(2 * (self.follows + self.guided), 1e-9)), FEW))
            best_of = best_of if 0.0 < self.samples * count < PATIENCE else 1
        part = self.instances.reporting(count)
        heuristic = self._losses(part, self.guide)
        rows, model, kept = [Comparison.of("heuristic", heuristic, heuristic)], self.guide, True
        strategy = None if self.best is None else self.best.strategy
        if self.best is not None:
            model = self.best.model
            greedy = self._losses(part, model)
            rows.append(Comparison.of("learned", greedy, heuristic))
            kept = not (self.best.loss < self.heuristic and float(greedy.mean()) <= float(heuristic.mean()))
            model = self.problem.keeping(model) if kept else model
            if best_of > 1:
                losses = self._losses(part, model, best_of=best_of, seed=self.seed)
                row = Comparison.of(f"learned, best of {best_of}", losses, heuristic)
                rows.append(row._replace(note=CLAIRVOYANT.format(best_of)))
        earlier = 0.0 if self.earlier is None else self.earlier.seconds
        model.about = model.about | {
            "optimised": {
                "strategy": strategy and strategy.name,
                "kept_heuristic": kept,
                "seconds": round(earlier + self.budget.spent(), 1),
                "instances": self.used + (self.earlier.instances if self.earlier else 0),
                "seed": self.seed,
            }
        }
        return model, OptimisationReport(
            attempts=tuple(self.attempts),
            chosen=strategy.name if strategy is not None else "",
            held_out=len(part),
            rows=tuple(rows),
            seconds=self.budget.total(),
            kept_heuristic=kept,
            compiling=self.budget.compiling(),
            budget=self.budget.seconds,
            earlier=earlier,
            interrupted=self.interrupted,
            notes=tuple(self.notes),
        )

    def _losses(self, part: InstancePart, model: Any, **search: Any) -> np.ndarray:
        with part.named():
            losses: np.ndarray = model.losses(part.data, **search)
        return losses


def _shown(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10.0 else duration(seconds)
