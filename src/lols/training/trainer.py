"""Training with any algorithm: passes over batches of examples, with checkpoints that resume bit for bit."""

from __future__ import annotations

import copy
import inspect
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.contract.threads import Threads, check_threads
from lols.contract.whole_numbers import MOST, check_seed, check_whole
from lols.engine.compile.ahead import prepare_all
from lols.engine.compile.kernel import DISABLED, compile_seconds
from lols.engine.door import look_over
from lols.engine.structures import FrozenPolicy
from lols.engine.table import copied
from lols.engines import Engine, Files, as_engine
from lols.errors import ConfigurationError
from lols.io.whole_file import check_writable
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.learners.structures import SECOND_ORDER
from lols.training.algorithms import Algorithm, check_names
from lols.training.algorithms import algorithm as resolve
from lols.training.interruption import Interruption
from lols.training.learning_state import LearningState
from lols.training.mixing import Mixing, check_mixable, shards_and_legs
from lols.training.model import Model
from lols.training.plans import TRICKS, by_margin, check_scale, costs_above, plan_of, settings_of
from lols.training.progress import Progress
from lols.training.run import TrainingRun
from lols.training.students import LinearStudent, adapted

__all__ = ["TRICKS", "Trainer"]

LARGEST_BATCH = 64  # by default
LOOKED_AT = 8  # examples, to settle the margin
MOST_PASSES = 1_000_000


class Trainer:
    """Trains a policy for a search space under a reference.

    Parameters
    ----------
    space
        The search problem: a `SearchSpace` or a `Task`.
    reference
        The teacher, by default the one of the task.
    algorithm
        The name of a preset or an `Algorithm`; `options` override single choices, as in `lols.algorithm`.
    learner
        The name of a reduction (`"hinge"`, the default, `"csoaa"`, `"secoc"`) or `LearnerSettings`. With a name, margin
        and scale follow from the costs of the first examples: see `LearnerSettings`.
    update
        The online update, if `learner` is a name.
    policy
        A policy to be trained in place of the linear learner: see `lols.policies.Policy`.
    passes
        Passes over the data.
    batch_size
        How many examples are searched with the same policy. It changes the result; 1 is Algorithm 1 as printed. By
        default a fiftieth of the examples, at least 1 and at most 64: enough to keep several threads busy.
    seed
        Seed of all random numbers.
    threads
        Threads that share a batch; they do not change the result. None or `"auto"`: what is fastest, at most 6, and one
        for small data.
    shuffle
        Whether each pass visits the examples in a different order.
    neighbours
        How many neighbouring examples stay adjacent when they are shuffled, which is faster for small examples.
    compiled
        False runs the same code as plain Python, for debugging.
    tricks
        Optimisations to switch off, for example `{"merge": False}`; they do not change the result.
    engine
        Who does the work: this process (None), `"processes"`, `"ray"`, or an engine of `lols.engines` with settings of
        its own, such as `lols.engines.Ray(workers=8)`. With `sync="exact"` it does not change the result of the linear
        learner; that of a policy of your own is the same for any number of workers, but need not be that of none.
    checks
        Whether functions of your own are checked on a few examples before training, in about a tenth of a second: what
        makes results wrong is an error, what may is a warning. `lols.checks.check_space` examines more.
    options
        Single choices in place of those of the algorithm, such as `beta=0.5`, by the names of `Algorithm`.

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        reference: Reference | None = None,
        *,
        algorithm: str | Algorithm = "lols",
        learner: str | LearnerSettings | None = None,
        update: str | None = None,
        policy: Any = None,
        passes: int = 5,
        batch_size: int | None = None,
        seed: int = 0,
        threads: Threads = None,
        shuffle: bool = True,
        neighbours: int = 1,
        compiled: bool = True,
        tricks: dict[str, bool] | None = None,
        engine: str | Engine | None = None,
        checks: bool = True,
        **options: Any,
    ):
        for name, value, most in (
            ("passes", passes, MOST_PASSES),
            ("batch_size", batch_size, MOST),
            ("neighbours", neighbours, MOST),
        ):
            if value is not None:
                check_whole(name, value, most=most)
        check_seed(seed)
        check_threads(threads)
        if neighbours > 1 and not shuffle:
            raise ConfigurationError("neighbours has no effect: the examples are not shuffled; leave it out")
        unknown = set(tricks or {}) - set(TRICKS)
        if unknown:
            raise ConfigurationError(f"unknown trick '{min(unknown)}': choose from {', '.join(TRICKS)}")
        self.space = space = as_space(space)
        self.reference = as_teacher(reference, space)
        check_names(options, OPTIONS)
        self.algorithm = resolve(algorithm, **options)
        self.policy = policy
        if policy is not None:
            for name in (n for n, given in (("learner", learner), ("update", update)) if given is not None):
                raise ConfigurationError(f"{name} has no effect: the given policy has its own way to learn")
            self.algorithm = adapted(policy, self.algorithm, options)
            learner = "csoaa"  # for the plan: exact costs matter
        self.settings = self._asked = settings_of(learner, update, self.algorithm)
        self.passes, self.batch_size, self.seed, self.threads = passes, batch_size, seed, threads
        self.shuffle, self.neighbours, self.compiled, self.checks = shuffle, neighbours, compiled, checks
        self.tricks = dict.fromkeys(TRICKS, True) | (tricks or {})
        if self.algorithm.horizon is not None and space.cost is None:
            raise ConfigurationError(
                "horizon needs a space with `cost`: a loss that is known only at the end cannot be cut off"
            )
        self.engine = as_engine(engine)
        if self.engine.sync == "pass":
            check_mixable(self)
        self.plan = plan_of(self)

    def together(self, examples: int) -> int:
        """How many examples are searched with the same policy, of this many in all."""
        return self.batch_size or max(1, min(LARGEST_BATCH, examples // 50))

    def new_learner(self) -> Learner:
        """A linear learner without weights."""
        chosen = self.algorithm
        if self.policy is not None:
            raise ConfigurationError("this needs the linear learner: leave out policy, or use fit")
        return Learner(
            self.settings,
            self.space.fixed_actions,
            by_action=self.space.action_features is not None,
            averaged=chosen.restart or chosen.returned == "average",
            compiled=self.compiled,
        )

    def untrained(self) -> Model:
        """A model that has learned nothing, to compare with, or to follow the reference."""
        return Model(self.space, self.new_learner().policy(), self.plan, threads=self.threads, compiled=self.compiled)

    def returned_policy(self, learner: Learner) -> FrozenPolicy:
        """A copy of the policy that the algorithm returns: the average, or the current one."""
        if self.algorithm.returned == "average" and learner.averaged:
            policy = learner.policy(averaged=True)  # has its own copy of the weights
            return policy._replace(shared=copied(policy.shared), single=copied(policy.single))
        return learner.last()

    def adopt(self, settings: LearnerSettings) -> None:
        """Take the margin and the scale that earlier training has settled."""
        self.settings = replace(self.settings, margin=settings.margin, scale=settings.scale)
        self.plan = self.plan._replace(**by_margin(self))

    def fit(
        self,
        data: Iterable[Any] | Examples,
        *,
        start: LearningState | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
        progress: bool | Progress | None = None,
        after_pass: Callable[[int, Model], bool | None] | None = None,
    ) -> Model:
        """Train, and return the model.

        Parameters
        ----------
        data
            The user's objects, or `Examples` in columns.
        start
            What learning goes on from, which changes. On the same data, rounds and passes are counted on: the result is
            that of one training with more passes. On other data, a new average begins, with the present one.
        checkpoint
            A file to which training is saved as it goes.
        checkpoint_every
            The seconds between two checkpoints.
        resume
            Continue from the checkpoint if there is one; the result is bit-identical to that of an uninterrupted run.
        progress
            Whether to show progress: a bar on a terminal, else a line a pass; by default on a terminal only. Or the bar
            to be used, which counts steps.
        after_pass
            Called with the number of the pass and the current model; training stops if it returns True. A checkpoint
            at the end of a pass is written after this call, with the list `history` of the callable if it has one. A
            run that is interrupted between the two calls it for this pass again.

        """
        if resume and checkpoint is None:
            raise ConfigurationError("resume has no effect: name the checkpoint file")
        began, compiling = time.perf_counter(), compile_seconds()
        if start is not None:
            self.check_start()
        run = self.new_run(data)
        if start is not None:
            if start.data != run.data_digest():
                start.begin_average(self.returned_policy(start.learner))
            run.go_on(start)
        if checkpoint is not None:
            run.student.check_resumable()
            check_writable(checkpoint)
        saved = time.monotonic()
        with (
            run.driver() as driver,
            progress if isinstance(progress, Progress) else self.bar(run.examples, progress) as bar,
            Interruption(wanted=checkpoint is not None and self.engine.sync == "exact") as interruption,
        ):
            self.look_over(run.examples, driver)
            if self.unsettled and start is None:
                self.settle(driver, np.arange(min(LOOKED_AT, len(run.examples))))
                run.begin_again()
            if resume and checkpoint is not None and Path(checkpoint).exists():
                run.restore(checkpoint)
                bar.go_on(run.progress, run.pass_)
            with closing(self._steps(run, driver, bar)) as steps:
                try:
                    for _ in steps:
                        bar.advance(run.progress, loss=run.progressive_loss)
                        if run.offset == 0:
                            enough = after_pass is not None and after_pass(run.pass_ - 1, run.model())
                            bar.end_pass(run.pass_, loss=run.progressive_loss)
                            if enough:
                                break  # without a checkpoint: one of this pass would be gone on from
                        late = time.monotonic() - saved >= checkpoint_every
                        if checkpoint is not None and (late or interruption.asked):
                            run.save(checkpoint, getattr(after_pass, "history", ()))
                            saved = time.monotonic()
                        interruption.obey()
                except KeyboardInterrupt:
                    if checkpoint is not None and self.engine.sync == "pass":  # nothing has changed since the last leg
                        run.save(checkpoint, getattr(after_pass, "history", ()))
                    raise
        self.state = run.state()
        if self.state is not None:
            self.state.data = run.data_digest()
        model = run.model()
        compiling = compile_seconds() - compiling
        model.report |= {"seconds_total": time.perf_counter() - began, "seconds_compiling": compiling}
        return model

    def look_over(self, examples: Examples, driver: Any) -> None:
        """Check the functions on a few examples, unless `checks` is off."""
        if self.checks:
            look_over(self.space, self.reference, examples, (driver.bound, driver.bound_reference))

    def _steps(self, run: TrainingRun, driver: Any, bar: Progress) -> Generator[None, None, None]:
        """Train: go on by a batch each time, or with `sync="pass"` by a pass."""
        engine = self.engine
        if engine.sync == "pass":
            with engine.start() as workers:
                yield from Mixing(run, workers, *shards_and_legs(engine)).passes(bar)
        elif engine.LOCAL:
            yield from self._batches(run, driver)
        else:
            from lols.engines.searcher import BatchSearcher

            with engine.start() as workers:
                searcher = BatchSearcher(workers, driver, self.policy, whole=self.settings.update in SECOND_ORDER)
                for _ in self._batches(run, searcher):
                    if self.algorithm.restart and run.offset == 0:
                        searcher.begin_again()
                    bar.say(f"{workers.alive} workers")
                    yield

    def _batches(self, run: TrainingRun, searcher: Any) -> Iterator[None]:
        """Search each batch, and learn from it."""
        for indices, rounds in run.batches():
            beta, beta_in = run.betas(rounds)
            batch = searcher.make_lessons(indices, rounds, run.student.rolling_policy(), self.plan, beta, beta_in)
            if run.done == 0 and self.policy is None and not self.unsettled:
                check_scale(self.settings, batch.lessons)
            run.learn(batch)
            yield

    def check_start(self) -> None:
        """Raise an error if nothing can be gone on from."""
        if self.policy is not None:
            raise ConfigurationError("only the linear learner goes on from a state: give the policy that shall go on")
        if self.algorithm.restart:
            raise ConfigurationError(
                f"{self.algorithm.name} trains a new learner in every pass: it cannot go on; take another algorithm"
            )
        if self.engine.sync != "exact":
            raise ConfigurationError("sync has no effect: a model goes on with exact training; leave it out")

    @property
    def unsettled(self) -> bool:
        """Whether margin or scale are to be settled by the costs of the first examples."""
        return self._asked.open and self.policy is None

    def settle(self, driver: Any, few: np.ndarray) -> None:
        """Settle margin and scale by the costs of a few examples, before anything is learned."""
        teacher = np.ones(few.size)
        lessons = driver.make_lessons(few, few, self.new_learner().policy(), self.plan, teacher, teacher).lessons
        self.settings = self._asked.settled(costs_above(lessons), int(lessons.filled.max()))
        self.plan = self.plan._replace(**by_margin(self))

    def warm_up(self, data: Iterable[Any] | Examples) -> Self:
        """Compile ahead, or load from the cache, what training and prediction need, given a few labelled examples.

        Nothing is learned: `fit` and the model's `predict` then begin at once.
        """
        if self.policy is not None:
            twin = copy.copy(self)
            twin.policy, twin.passes = copy.deepcopy(self.policy), 1
            twin.fit(data, progress=False)
            if hasattr(twin.policy, "warm_up"):
                twin.policy.warm_up()
        elif self.compiled and not DISABLED:
            student = LinearStudent(self, 1)
            with student.driver(self.new_run(data).examples) as driver:
                prepare_all(student.calls(driver))
        return self

    def new_run(self, data: Iterable[Any] | Examples) -> TrainingRun:
        """A new run over a data set."""
        if isinstance(data, Files) and self.engine.sync == "pass":
            from lols.training.file_run import FileRun

            return FileRun(self, self.encoded(data.first(LOOKED_AT)), data)
        return TrainingRun(self, self.encoded(data))

    def encoded(self, data: Iterable[Any] | Examples, *, labelled: bool = True) -> Examples:
        """The data in columns, with their truth if it is needed; if they need not be `labelled`, where it is known."""
        truth = self.space.truth_for(self.reference) if labelled else None
        return data if isinstance(data, Examples) else Examples(self.space, data, truth=truth, decided=labelled)

    def bar(self, examples: Examples, wanted: bool | None = None, title: str = "training", unit: str = "steps") -> Any:
        """A progress bar for training on these examples."""
        return Progress(wanted, self.passes * int(examples.steps.sum()), title, unit, self.passes)


OPTIONS = [name for name, found in inspect.signature(Trainer).parameters.items() if found.kind is found.KEYWORD_ONLY]
