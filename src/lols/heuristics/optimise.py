"""`lols.optimise`: learn to decide better than a heuristic, within a time budget, and say what came of it.

Several strategies are tried on a share of the instances; the best on instances that none of them saw is trained for
the rest of the time. What is reported comes from further instances, which chose nothing.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.contract.threads import chosen_threads
from lols.engine.compile.kernel import compile_seconds
from lols.errors import ConfigurationError, SpaceError
from lols.heuristics.report import Attempt, Comparison, OptimisationReport
from lols.learners.settings import LearnerSettings
from lols.plots.plans import side_by_side
from lols.training.model import Model
from lols.training.progress import on_terminal
from lols.training.trainer import Trainer

CHOOSING, REPORTING = 64, 200  # instances that are drawn to choose a strategy, and to report
SHARES = (0.3, 0.2, 0.5)  # of the time: trying all strategies, the best two once more, training the best one
FEW = 8  # instances that show how long training takes
PASSES, MOST_PASSES = 3, 50  # over the instances of one attempt: as planned, and at most if there is time
OFTEN = 5.0  # seconds between the lines of one attempt that is under way


class Strategy(NamedTuple):
    """A way to train."""

    name: str
    algorithm: str
    margin: str
    options: dict[str, Any]


STRATEGIES = tuple(
    Strategy(f"{name}, margin={margin!r}", algorithm, margin, options)
    for name, algorithm, options in (
        ("reference roll-outs", "aggrevate", {}),
        ('lols, beta="auto"', "lols", {"beta": "auto"}),
        ("lols, beta=0.5", "lols", {"beta": 0.5}),
    )
    for margin in ("cost", "weighted")
)


@dataclass
class Optimised:
    """A policy that was learned from a heuristic, and the report of how it compares with it.

    Parameters
    ----------
    model
        The learned policy.
    reference
        The heuristic.
    report
        What was tried, and the comparison on held-out instances. `print(report)` shows it.

    """

    model: Model
    reference: Reference
    report: OptimisationReport

    def predict(
        self,
        objects: Iterable[Any],
        *,
        improve: Callable[[Any, Any], Any] | None = None,
        **search: Any,
    ) -> list[Any]:
        """The output for each object: the learned policy's, or the heuristic's if the policy is not better.

        The options are those of `Model.predict`: `best_of`, `starts`, `beam`, `temperature`, `seed`. With a search by a
        policy that is not better, each output is the one of less loss, the heuristic's or that of the search.
        """
        if not self.report.kept_heuristic:
            return self.model.predict(objects, improve=improve, **search)
        given = list(objects)
        outputs = self.model.reference_outputs(given, self.reference)
        if self._searches(search) and given:
            found, losses = self.model.predict(given, **search), self.model.losses(given, **search)
            heuristic = self.model.reference_losses(given, self.reference)
            outputs = [new if a < b else old for new, old, a, b in zip(found, outputs, losses, heuristic, strict=True)]
        return outputs if improve is None else [improve(*pair) for pair in zip(given, outputs, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learned policy to a model file: `lols.load(path, task)` reads it."""
        self.model.save(path)

    def picture(
        self, instance: Any, draw: Callable[[Any, Any, Any], None], path: str | os.PathLike[str], **search: Any
    ) -> None:
        """Draw one instance before and after, as PNG, SVG or PDF by the ending of the path.

        `draw(axes, instance, output)` draws a plan with matplotlib, once for the heuristic and once for `predict` with
        the options of `search`.
        """
        outputs = [self.model.reference_outputs([instance], self.reference)[0], self.predict([instance], **search)[0]]
        losses = [self.model.reference_losses([instance], self.reference)[0], self._losses([instance], search)[0]]
        learned = f"learned, best of {search['best_of']}" if search.get("best_of", 1) > 1 else "learned"
        titles = [f"{name}: {loss:.4g}" for name, loss in zip(("heuristic", learned), losses, strict=True)]
        side_by_side(draw, [(instance, output) for output in outputs], titles, path)

    @staticmethod
    def _searches(search: dict[str, Any]) -> bool:
        return any(search.get(name) not in (None, 0, 1) for name in ("best_of", "starts", "beam"))

    def _losses(self, instances: list[Any], search: dict[str, Any]) -> np.ndarray:
        """The losses of what `predict` gives."""
        if not self.report.kept_heuristic:
            return self.model.losses(instances, **search)
        heuristic = self.model.reference_losses(instances, self.reference)
        return np.minimum(heuristic, self.model.losses(instances, **search)) if self._searches(search) else heuristic

    def __str__(self) -> str:
        return str(self.report)


def optimise(
    task: SearchSpace | Task | type[Task],
    instances: Iterable[Any] | Callable[[np.random.Generator], Any],
    reference: Reference | None = None,
    *,
    minutes: float = 2.0,
    best_of: int = 64,
    sample_steps: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> Optimised:
    """Learn a policy that decides better than a heuristic.

    The task's `reference` is the heuristic, and its `loss` what is to be small. Strategies and margins are compared on
    held-out instances within the time budget. If the best policy is not better than the heuristic on the instances of
    the report, predictions remain the heuristic's.

    Parameters
    ----------
    task
        A `Task` or `SearchSpace` whose loss can be computed without labels.
    instances
        A list of instances, or a function `draw(rng)` that returns a random one. With a function, training sees as many
        instances as there is time for. Of a list, a fifth chooses the strategy and a fifth is for the report.
    reference
        The heuristic; by default that of the task.
    minutes
        The time budget, compiling included. Training ends with the pass that exceeds it.
    best_of
        How many samples of the policy the last line of the report compares with the heuristic.
    sample_steps
        Deviate at this many random states of an instance; by default at all of them. With instances of hundreds of
        decisions, training then gets through many more of them.
    seed
        Of the instances that are drawn, and of training.
    threads
        Threads of training and prediction; by default all cores, at most 6. They do not change a policy, but with more
        of them the time suffices for more training.
    progress
        Whether to print what is tried; by default on a terminal only.

    """
    began = time.perf_counter()
    if not (isinstance(minutes, int | float) and 0.0 < minutes < math.inf):
        raise ConfigurationError(f"minutes is {minutes!r}; it must be a positive number")
    for name, value, least in (
        ("best_of", best_of, 1),
        ("seed", seed, 0),
        ("threads", threads, 1),
        ("sample_steps", sample_steps, 1),
    ):
        if value is not None and value < least:
            raise ConfigurationError(f"{name} is {value}; it must be at least {least}")
    space = as_space(task)
    search = _Search(space, as_teacher(reference, space), seed, chosen_threads(threads), best_of)
    search.began, search.say, search.sample_steps = began, _printer(progress, began), sample_steps
    return search.run(_Instances(space, instances, seed), 60.0 * minutes)


class _Instances:
    """Instances to train on, to choose a strategy by, and to report."""

    def __init__(self, space: SearchSpace, source: Any, seed: int):
        self.space, self._rng = space, np.random.default_rng(seed)
        self._draw = source if callable(source) else None
        self._training: list[Any] = []
        self.given: Examples | None = None  # a list as it is, so that errors have its numbers
        if self._draw is not None:
            choosing, reporting = self._drawn(CHOOSING), self._drawn(REPORTING)
        else:
            given = list(source)
            if len(given) < 10:
                raise ConfigurationError(
                    f"there are {len(given)} instances: give at least 10, or a function that draws"
                )
            self.given = self.encoded(given)
            order, fifth = self._rng.permutation(len(given)), max(2, len(given) // 5)
            parts = [[given[i] for i in part] for part in np.split(order, [fifth, 2 * fifth])]
            choosing, reporting, self._training = parts
        self.choosing, self.reporting = self.encoded(choosing), self.encoded(reporting)

    def _drawn(self, count: int) -> list[Any]:
        assert self._draw is not None
        try:
            return [self._draw(self._rng) for _ in range(count)]
        except Exception as error:
            raise ConfigurationError(
                f"the function that draws an instance fails with {type(error).__name__}: {error}; "
                "it is given a numpy.random.Generator"
            ) from error

    def encoded(self, objects: Sequence[Any]) -> Examples:
        """Examples of objects; the loss must be known."""
        examples = Examples(self.space, objects)
        if not examples.has_truth:
            raise SpaceError(
                "`encode` gave no truth `y`, so the loss of a result is unknown: return lols.Example(x, y) with what "
                "`loss` and `cost` read of `y`"
            )
        return examples

    def training(self, count: int) -> Examples:
        """The first `count` training instances, as far as there are."""
        if self._draw is not None and count > len(self._training):
            self._training += self._drawn(count - len(self._training))
        return self.encoded(self._training[:count])


class _Result(NamedTuple):
    """A policy, and its mean loss on the choosing instances."""

    loss: float
    model: Model
    strategy: Strategy


class _Search:
    """The search for the best strategy."""

    def __init__(self, space: SearchSpace, reference: Reference, seed: int, threads: int, best_of: int):
        self.space, self.reference, self.seed, self.threads = space, reference, seed, threads
        self.best_of, self.began, self.compiled = best_of, time.perf_counter(), compile_seconds()
        self.sample_steps: int | None = None
        self.attempts: list[Attempt] = []
        self.seconds_each: dict[str, float] = {}  # of training, for one instance
        self.evaluating = self.reporting = 0.0  # seconds of one look at the choosing instances, and of the report
        self.say: Callable[[str], None] = lambda _text: None

    def run(self, instances: _Instances, seconds: float) -> Optimised:
        """Try strategies, train the best one for the rest of the time, and compare it with the heuristic."""
        if instances.given is not None:
            self._heuristic(instances.given)
        heuristic = float(self._heuristic(instances.choosing).mean())
        self.say(f"the heuristic: {heuristic:.4g}")
        self._measure(instances)
        trying, again, _ = (share * self._left(seconds) for share in SHARES)
        share = trying / len(STRATEGIES)
        tried = [self._attempt(s, instances, share) for s in STRATEGIES if self._affordable(s, share)]
        tried.sort(key=lambda result: result.loss)
        finals = [self._attempt(result.strategy, instances, again / 2) for result in tried[:2]]
        chosen = min(finals, key=lambda result: result.loss).strategy
        last = self._attempt(chosen, instances, self._left(seconds))
        best = min([last, *finals, *tried], key=lambda result: result.loss)
        return self._reported(best, instances, best.loss < heuristic)

    def _left(self, seconds: float) -> float:
        """What is left of the time for training."""
        return max(seconds - (time.perf_counter() - self.began) - self.reporting, 0.0)

    def _heuristic(self, examples: Examples) -> np.ndarray:
        """The heuristic's losses; it must give the same ones again."""
        model = Trainer(self.space, self.reference, passes=1, threads=self.threads, seed=self.seed).untrained()
        losses = model.reference_losses(examples, self.reference)
        if not self.reference.random and not np.array_equal(losses, model.reference_losses(examples, self.reference)):
            raise SpaceError(
                "the heuristic is not deterministic: let it draw by lols.uniform(rng), its fourth argument"
            )
        return losses

    def _measure(self, instances: _Instances) -> None:
        """Measure what training, a look at the choosing instances and the report take, once kernels are compiled."""
        few = instances.training(FEW)
        for strategy in {s.algorithm: s for s in STRATEGIES}.values():
            model = self._trained(strategy, few, 1)
            self.seconds_each[strategy.algorithm] = _seconds(partial(self._trained, strategy, few, 1)) / len(few)
        model.evaluate(instances.choosing)
        self.evaluating = _seconds(lambda: model.evaluate(instances.choosing))
        if self.best_of > 1:
            model.losses(few, best_of=2)
            sample = _seconds(lambda: model.losses(few, best_of=self.best_of)) / len(few)
            self.reporting = sample * len(instances.reporting)

    def _affordable(self, strategy: Strategy, seconds: float) -> bool:
        """Whether a strategy gets through a few instances in its time; reference roll-outs are always tried."""
        needed = FEW * self.seconds_each[strategy.algorithm]
        if strategy.algorithm == STRATEGIES[0].algorithm or needed <= seconds:
            return True
        self.attempts.append(Attempt(strategy.name, 0, 0, 0.0, math.nan))
        self.say(f"{strategy.name}: left out, {FEW} instances take {needed:.1f} s")
        return False

    def _trained(
        self,
        strategy: Strategy,
        examples: Examples,
        passes: int,
        after_pass: Callable[[int, Model], bool] | None = None,
    ) -> Model:
        settings = LearnerSettings("hinge", "adagrad", margin=strategy.margin, scale=None)
        trainer = Trainer(
            self.space, self.reference, algorithm=strategy.algorithm, learner=settings, passes=passes, seed=self.seed,
            threads=self.threads, sample_steps=self.sample_steps, **strategy.options,
        )  # fmt: skip
        return trainer.fit(examples, progress=False, after_pass=after_pass)

    def _attempt(self, strategy: Strategy, instances: _Instances, seconds: float) -> _Result:
        """Train for about this many seconds: the policy after the pass that was best on the choosing instances."""
        began, each = time.perf_counter(), self.seconds_each[strategy.algorithm]
        examples = instances.training(max(FEW, int((seconds / PASSES - self.evaluating) / each)))
        results: list[_Result] = []
        said = began

        def after_pass(number: int, model: Model) -> bool:
            nonlocal said
            before = time.perf_counter()
            results.append(_Result(model.evaluate(instances.choosing), model, strategy))
            now = time.perf_counter()
            self.evaluating = now - before
            if now - said > OFTEN:
                self.say(f"  {strategy.name}: {results[-1].loss:.4g} after pass {number + 1}")
                said = now
            return now - began >= seconds * len(results) / (len(results) + 1)

        self._trained(strategy, examples, MOST_PASSES, after_pass)
        took, best = time.perf_counter() - began, min(results, key=lambda result: result.loss)
        training = max(took - len(results) * self.evaluating, 0.1 * took)
        self.seconds_each[strategy.algorithm] = training / (len(examples) * len(results))
        self.attempts.append(Attempt(strategy.name, len(examples), len(results), took, best.loss))
        self.say(f"{strategy.name}: {best.loss:.4g} after {took:.1f} s")
        best.model.about |= {"best_pass": best.model.about["passes_done"], "passes_done": len(results)}
        return best

    def _reported(self, result: _Result, instances: _Instances, better: bool) -> Optimised:
        examples, model = instances.reporting, result.model
        heuristic = model.reference_losses(examples, self.reference)
        greedy = model.losses(examples)
        rows = [Comparison.of("heuristic", heuristic, heuristic), Comparison.of("learned", greedy, heuristic)]
        kept = not (better and float(greedy.mean()) <= float(heuristic.mean()))
        if self.best_of > 1:
            samples = model.losses(examples, best_of=self.best_of, seed=self.seed)
            name = f"learned, best of {self.best_of}"
            rows.append(Comparison.of(name, np.minimum(samples, heuristic) if kept else samples, heuristic))
        report = OptimisationReport(
            attempts=tuple(self.attempts),
            chosen=result.strategy.name,
            held_out=len(examples),
            rows=tuple(rows),
            seconds=time.perf_counter() - self.began,
            kept_heuristic=kept,
            compiling=compile_seconds() - self.compiled,
        )
        return Optimised(model, self.reference, report)


def _seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _printer(progress: bool | None, began: float) -> Callable[[str], None]:
    """A function that prints a line with the time since `began`, or does nothing."""
    if not (on_terminal() if progress is None else progress):
        return lambda _text: None
    return lambda text: print(f"{time.perf_counter() - began:6.0f} s  {text}", file=sys.stderr, flush=True)
