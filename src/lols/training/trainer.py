"""Training: a recipe, data, and what people want meanwhile: progress, checkpoints, a choice after each pass."""

from __future__ import annotations

import copy
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

from lols.contract.examples import Examples
from lols.errors import ConfigurationError
from lols.io.whole_file import check_writable
from lols.kernels.ahead import prepare_all
from lols.kernels.kernel import DISABLED, compile_seconds
from lols.training.algorithms import Algorithm
from lols.training.checkpoint import read_checkpoint, write_checkpoint
from lols.training.learning import Learning
from lols.training.learning_state import LearningState
from lols.training.loop import Searcher, learn
from lols.training.mixing import Mixing, shards_and_legs
from lols.training.model import Model, model_of
from lols.training.plans import TRICKS
from lols.training.progress import Progress
from lols.training.recipe import OPTIONS as OF_RECIPES
from lols.training.recipe import Recipe
from lols.training.sources import DataSource, InPieces, source_of
from lols.training.stream import Stream


class Interruption:
    """Notes the first Ctrl-C, and lets the second one through; does nothing unless it is wanted.

    >>> with Interruption(wanted=True) as interruption:
    ...     interruption.asked
    False
    """

    def __init__(self, *, wanted: bool):
        self.asked = False
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if self._wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def obey(self) -> None:
        """Stop if Ctrl-C was pressed."""
        if self.asked:
            raise KeyboardInterrupt


__all__ = ["FITTING", "OPTIONS", "TRICKS", "Trainer"]


class Trainer(Recipe):
    __doc__ = (Recipe.__doc__ or "").replace(
        "What is learned, from whom, and how.", "Trains a policy for a search space under a reference."
    )

    def fit(
        self,
        data: Iterable[Any] | Examples | InPieces,
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
            The user's objects, or `Examples` in columns, or `InPieces` of more than memory holds.
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
        source = source_of(self, data)
        if start is not None and start.data != source.digest():
            averaged = self.new_policy()
            averaged.go_on(start.learner)
            start.begin_average(averaged.returned())
        learning = Learning(self, source.count, source.batch_size(self), start)
        if checkpoint is not None:
            source.check_resumable()
            learning.policy.check_resumable()
            check_writable(checkpoint)
        saved = time.monotonic()
        with (
            Searcher(learning, source, first=True) as searcher,
            progress if isinstance(progress, Progress) else self.bar(source.measure, progress) as bar,
            Interruption(wanted=checkpoint is not None and self.engine.sync == "exact") as interruption,
        ):
            if source.first is not None:
                searcher.turn_to(source.first, np.arange(len(source.first)))
            if resume and checkpoint is not None and Path(checkpoint).exists():
                if learning.unsettled:
                    searcher.turn_to(*next(iter(source.parts(learning))))
                read_checkpoint(checkpoint, learning, source)
                bar.go_on(source.progress(learning), learning.pass_)
            history = getattr(after_pass, "history", ())
            with closing(self._steps(learning, source, searcher, bar)) as steps:
                try:
                    for _ in steps:
                        bar.advance(source.progress(learning), loss=learning.progressive_loss)
                        if learning.offset == 0:
                            enough = after_pass is not None and after_pass(learning.pass_ - 1, self.model_of(learning))
                            bar.end_pass(learning.pass_, loss=learning.progressive_loss)
                            if enough:
                                break  # without a checkpoint: one of this pass would be gone on from
                        late = time.monotonic() - saved >= checkpoint_every
                        if checkpoint is not None and learning.whole and (late or interruption.asked):
                            write_checkpoint(checkpoint, learning, source, history)
                            saved = time.monotonic()
                        interruption.obey()
                except KeyboardInterrupt:
                    if checkpoint is not None and self.engine.sync == "pass":  # nothing has changed since the last leg
                        write_checkpoint(checkpoint, learning, source, history)
                    raise
        self.state = learning.state()
        if self.state is not None:
            self.state.data = source.digest()
        model = self.model_of(learning)
        compiling = compile_seconds() - compiling
        model.report |= {"seconds_total": time.perf_counter() - began, "seconds_compiling": compiling}
        return model

    def _steps(
        self, learning: Learning, source: DataSource, searcher: Searcher, bar: Progress
    ) -> Generator[None, None, None]:
        """Learn: go on by a batch each time, or with `sync="pass"` by a part of a pass."""
        engine = self.engine
        if engine.sync == "pass":
            with engine.start() as workers:
                yield from Mixing(learning, source.data, workers, *shards_and_legs(engine)).passes(bar)
        elif engine.LOCAL:
            yield from learn(learning, source, searcher)
        else:
            with engine.start() as workers:
                searcher.send_to(workers)
                for _ in learn(learning, source, searcher):
                    if self.algorithm.restart and learning.offset == 0:
                        searcher.begin_again()
                    bar.say(f"{workers.alive} workers")
                    yield

    def stream(self, start: LearningState | None = None) -> Stream:
        """A stream, whose examples are learned from as they arrive.

        Parameters
        ----------
        start
            The state of learning to go on from; None to begin anew.

        """
        return Stream(self, start)

    def untrained(self) -> Model:
        """A model that has learned nothing, to compare with, or to follow the reference."""
        weights = self.new_learner().policy()
        return Model(self.space, weights, self.plan, threads=self.threads, compiled=self.compiled)

    def model_of(self, learning: Learning) -> Model:
        """What was learned so far as a model."""
        return model_of(learning)

    def warm_up(self, data: Iterable[Any] | Examples) -> Self:
        """Compile ahead, or load from the cache, what training and prediction need, given a few labelled examples.

        Nothing is learned: `fit` and the model's `predict` then begin at once.

        Parameters
        ----------
        data
            A few objects like those to come.

        """
        if not self.policy.has_weights:
            twin = copy.copy(self)
            twin.policy, twin.passes = copy.deepcopy(self.policy), 1
            twin.fit(data, progress=False)
            twin.policy.warm_up()
        elif self.compiled and not DISABLED:
            source, policy = source_of(self, data), self.new_policy()
            with source.driver(policy, self, source.first) as driver:
                prepare_all(source.calls(policy, driver, self))
        return self

    def bar(self, examples: Any, wanted: bool | None = None, title: str = "training", unit: str = "steps") -> Any:
        """A progress bar for training on these examples."""
        if isinstance(examples, InPieces) and not examples.by_steps:
            unit = examples.unit
        return Progress(wanted, self.passes * int(examples.steps.sum()), title, unit, self.passes)


FITTING = [name for name, each in inspect.signature(Trainer.fit).parameters.items() if each.kind is each.KEYWORD_ONLY]
OPTIONS = [*OF_RECIPES, *(each.name for each in fields(Algorithm) if each.name not in ("name", "cites"))]
