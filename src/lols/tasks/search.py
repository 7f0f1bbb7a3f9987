"""What the estimators share: the options of algorithm and learner, the training that follows from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from lols.contract.examples import Examples
from lols.engine.compile.kernel import compile_seconds
from lols.learners.settings import LearnerSettings
from lols.tasks.base import Estimator, not_fitted
from lols.tasks.choice import Choice
from lols.training.algorithms import Algorithm, algorithm
from lols.training.model import Model
from lols.training.trainer import Trainer

__all__ = ["SearchEstimator"]

PRUNE = 2


class SearchEstimator(Estimator):
    """An estimator whose options are those of a `Trainer`, with defaults that suit sentences."""

    RATE: ClassVar[float]  # of AdaGrad with the hinge, chosen like the templates on held-out sentences
    UNIT: ClassVar[str] = "tokens"  # what a step is, on the progress bar
    NEIGHBOURS: ClassVar[int] = 1  # examples that stay together when they are shuffled
    algorithm: str | Algorithm
    roll_in: str | None
    roll_out: str | None
    beta: Any
    mix: str | None
    reference: str
    learner: str
    update: str | None
    rate: float | None
    slack: float | None
    passes: int
    batch_size: Any
    shuffle: bool
    seed: int
    threads: int
    patience: int | None
    progress: bool | None
    margin: str = "unit"
    prune: int | str | None = None
    task_: Any
    model_: Model

    def _algorithm(self) -> str | Algorithm:
        """The algorithm that is meant; `"auto"` is what measured best with a teacher like this one."""
        if self.algorithm != "auto":
            return self.algorithm
        if any(choice is not None for choice in self._choices()):
            return "lols"
        return "aggrevate" if self.reference == "optimal" else algorithm("lols", beta="auto")

    def _choices(self) -> tuple[Any, ...]:
        """What says that roll-outs by the learner are wanted; None where nothing was said."""
        return self.roll_out, self.beta, self.mix

    def _together(self) -> int:
        """How many examples see the same policy."""
        return int(self.batch_size)

    def _trainer(self, task: Any) -> Trainer:
        options = {name: getattr(self, name) for name in ("roll_in", "roll_out", "beta", "mix")}
        chosen = algorithm(self._algorithm(), **options)
        margins = self.learner == "hinge"
        # Under another teacher the best action may be neither the teacher's nor one that the learner likes yet, and a
        # learner that starts anew likes nothing yet.
        fits = margins and self.reference == "optimal" and not chosen.restart
        prune = (PRUNE if fits else None) if self.prune == "auto" else self.prune
        if prune is not None and chosen.roll_out in ("mixture", "learned"):
            chosen = algorithm(chosen, prune=prune)
        update = self.update or ("nag" if self.learner == "csoaa" else "adagrad")
        rate = self.RATE if self.rate is None and (self.learner, update) == ("hinge", "adagrad") else self.rate
        settings = LearnerSettings(
            self.learner,
            update,
            rate=rate,
            margin=self.margin if margins else "unit",
            slack=self.slack if margins and not chosen.restart else None,
        )
        return Trainer(
            task.space,
            task.reference(self.reference),
            algorithm=chosen,
            learner=settings,
            passes=self.passes,
            batch_size=self._together(),
            seed=self.seed,
            threads=self.threads,
            shuffle=self.shuffle,
            neighbours=self.NEIGHBOURS,
        )

    def _train(
        self,
        task: Any,
        make_examples: Callable[[], Examples],
        score: Callable[[Model], dict[str, float]] | None,
        **fitting: Any,
    ) -> Trainer:
        """Train, keep the best model, and note how it went."""
        began, compiling = time.perf_counter(), compile_seconds()
        examples = make_examples()
        trainer = self._trainer(task)
        bar = trainer.bar(examples, self.progress, "training", self.UNIT)
        choice = Choice(task.space, score, self.patience, bar, fitting.get("checkpoint"))
        choice.resume(fitting.get("checkpoint") if fitting.get("resume") else None)
        model = trainer.fit(examples, progress=bar, after_pass=choice if score is not None else None, **fitting)
        self.task_, self.model_ = task, choice.best or model
        self.model_.report = model.report
        self.model_.about["best_pass"] = choice.best_pass
        choice.forget()
        spent, compiled = time.perf_counter() - began, compile_seconds() - compiling
        self.model_.report |= {"seconds_total": spent, "seconds_compiling": compiled, "dev": choice.history}
        return trainer

    def _options(self) -> dict[str, Any]:
        """The options that a model file keeps: all that are plain values."""
        return {k: v for k, v in self.get_params().items() if v is None or isinstance(v, str | int | float)}

    def _check_fitted(self) -> None:
        if not hasattr(self, "task_"):
            raise not_fitted(type(self).__name__)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "task_")
