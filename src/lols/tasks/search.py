"""What the estimators share: the options of algorithm and learner, the training that follows from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.hashing import mix
from lols.contract.user_frames import warn
from lols.engine.compile.kernel import compile_seconds
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.tasks.base import Estimator, not_fitted
from lols.tasks.choice import Choice
from lols.tasks.options import LEARNING, SEARCH, estimator, is_plain, option
from lols.training.algorithms import Algorithm, algorithm
from lols.training.calibration import Judged, NoSciPy, fit_calibration, together
from lols.training.learning_state import start_of, without_state
from lols.training.model import Model
from lols.training.order import shuffled
from lols.training.stream import Stream
from lols.training.trainer import Trainer

PRUNE = 2
FOLDS, PARTS = 5, 10  # held out for confidences: each of 5 parts in turn, or one of 10
MANY = 5000  # examples, from which on one part will do
# Options that a model file does not have: who did the work, how it began, and templates, which the task describes.
NOT_KEPT = ("engine", "warm_start", "device", "templates", "more_templates")


class SecondTraining(NamedTuple):
    """What is held out of the training data for confidences, and who learns from the rest."""

    parts: int  # of equal size
    used: int  # held out one after the other
    estimator: Any
    learned: int  # examples of the others that are learned from, at most


class Judges(NamedTuple):
    """Who says which decisions of a model are right: on some of the training examples, and on dev data."""

    part: Callable[[Model, Examples, np.ndarray], Judged]  # is given the part, and the numbers of its examples
    dev: Callable[[Model], Judged] | None = None


@estimator
class SearchEstimator(Estimator):
    """An estimator that is trained by searching: the options that all of them share."""

    RATE: ClassVar[float | None] = None  # of AdaGrad with the hinge, chosen like the templates on held-out sentences
    UNIT: ClassVar[str] = "steps"  # what a step is, on the progress bar
    NEIGHBOURS: ClassVar[int] = 1  # examples that stay together when they are shuffled
    AGAIN = (
        *("algorithm", "roll_in", "roll_out", "beta", "mix", "reference", "prune", "margin"),
        *("rate", "passes", "batch_size", "shuffle", "seed", "threads", "patience", "keep_state"),
    )
    KEEPS: ClassVar[bool] = True  # whether the learner's state is kept in memory after `fit`, for `partial_fit`

    algorithm: str | Algorithm = option(
        default="lols",
        help="The algorithm: lols, aggrevate, dagger, cloning, searn; or auto: aggrevate with the optimal "
        "reference, whose costs are known without roll-outs, else lols with beta auto.",
        panel=SEARCH,
        kind=str,
        common=True,
    )
    roll_in: str | None = option(
        default=None,
        help="Which policy leads to the states learned from: learned, reference or mixture; by default the "
        "algorithm's.",
        panel=SEARCH,
    )
    roll_out: str | None = option(
        default=None,
        help="Which policy completes a deviation: mixture, reference, learned or none; by default the algorithm's.",
        panel=SEARCH,
    )
    beta: Any = option(
        default=None,
        help="The probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA.",
        panel=SEARCH,
        kind=str | None,
    )
    mix: str | None = option(
        default=None,
        help="How often the coin of a mixture is tossed: once per state, rollout, example or step; or expected: "
        "never, the costs of both roll-outs are averaged.",
        panel=SEARCH,
    )
    reference: str = option(
        default="optimal", help="The reference (teacher): optimal, suboptimal or bad.", panel=SEARCH, common=True
    )
    learner: str = option(
        default="hinge", help="How cost vectors become weights: hinge, csoaa or secoc.", panel=LEARNING
    )
    update: str | None = option(
        default=None,
        help="The update: adagrad, nag, gd, ridge, sketch or perceptron; by default nag for csoaa, else adagrad.",
        panel=LEARNING,
    )
    rate: float | None = option(
        default=None, help="The learning rate; by default one that suits learner and task.", panel=LEARNING
    )
    slack: float | None = option(
        default=0.0,
        help="With the hinge: pass over states whose best action wins by more than its margin and this much; "
        "None learns from all states.",
        cli=False,
    )
    passes: int = option(default=5, help="Passes over the training data.", panel=LEARNING, common=True)
    batch_size: Any = option(
        default=32,
        help="How many examples are searched with the same policy before it learns from them.",
        panel=LEARNING,
        kind=int,
    )
    shuffle: bool = option(default=True, help="Whether each pass takes the examples in another order.", panel=LEARNING)
    seed: int = option(default=0, help="The seed of all random choices.", panel=LEARNING, common=True)
    threads: int | str | None = option(
        default=None,
        help="Threads; their number does not change the result. By default what is fastest: all cores, but at most 6, "
        "and one for small data.",
        kind=int | None,
        common=True,
    )
    engine: Any = option(
        default=None,
        help="Who does the work: None for this process, `processes`, `ray`, or an engine of `lols.engines`, such as "
        "`lols.engines.Ray(workers=8)`.",
        cli=False,
    )
    patience: int | None = option(
        default=None,
        help="With dev data: stop after this many passes without improvement; by default never.",
        panel=LEARNING,
    )
    calibrate: bool | None = option(
        default=None,
        help="Whether confidences are fitted: to the dev data where there are any, else by a second training without a "
        "part of the data. None: with dev data only. The weights do not depend on it.",
        panel=LEARNING,
        flag="--calibrate/--no-calibrate",
        typed="Fit confidences: to the dev data if there are any, else by a second training without a part of the "
        "data. By default with dev data only. The weights do not depend on it.",
    )
    progress: bool | None = option(
        default=None,
        help="Whether to show progress: a bar on a terminal, else a line a pass; None for terminals only.",
        cli=False,
    )
    warm_start: bool = option(
        default=False, help="Whether `fit` goes on with what was learned before, in place of beginning anew.", cli=False
    )
    keep_state: bool = option(
        default=False,
        help="Keep the learner's state in the model file, so that learning can go on exactly; the file is about four "
        "times as large. Without it, learning goes on from the weights alone.",
        panel=LEARNING,
        flag="--keep-state",
    )

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

    def _without_effect(self, chosen: Algorithm) -> Iterator[tuple[str, str]]:
        """Options that change nothing beside the others, and why. `LearnerSettings` knows of those that it has."""
        if self.learner != "hinge":
            yield "margin", f"{self.learner} has no margin, only the hinge has"
            if self.slack is not None:
                yield "slack", f"{self.learner} learns from all states, only the hinge can pass over some"
        elif chosen.restart and self.slack is not None:
            yield "slack", f"{chosen.name} learns from all states, because its learner starts anew in every pass"

    def _margin(self, task: Any) -> str:
        """The margin of the hinge."""
        return getattr(self, "margin", "unit")

    def _changed(self, name: str) -> bool:
        """Whether an option, if there is one of this name, has another value than its default."""
        defaults = self._defaults()
        return name in defaults and repr(getattr(self, name)) != repr(defaults[name])

    def _empty_policy(self, task: Any) -> Any:
        """A policy like the one that is trained, but for what it learned; None for the linear one."""
        return None

    def _trainer(self, task: Any, examples: int | None = None) -> Trainer:
        """The trainer for a task; `examples` is their number if it is known."""
        options = {name: getattr(self, name) for name in ("roll_in", "roll_out", "beta", "mix")}
        chosen = algorithm(self._algorithm(), **options)
        margins = self.learner == "hinge"
        # Under another teacher the best action may be neither the teacher's nor one that the learner likes yet, and a
        # learner that starts anew likes nothing yet.
        fits = margins and self.reference == "optimal" and not chosen.restart
        asked = getattr(self, "prune", None)
        prune = (PRUNE if fits else None) if asked == "auto" else asked
        if prune is not None and chosen.roll_out in ("mixture", "learned"):
            chosen = algorithm(chosen, prune=prune)
        elif prune is not None and asked != "auto":
            raise ConfigurationError(f"prune has no effect: roll-outs are by {chosen.roll_out}, not by the learner")
        for name, why in self._without_effect(chosen):
            if self._changed(name):
                raise ConfigurationError(f"{name} has no effect: {why}; leave it out")
        update = self.update or ("nag" if self.learner == "csoaa" else "adagrad")
        rate = self.RATE if self.rate is None and (self.learner, update) == ("hinge", "adagrad") else self.rate
        settings = LearnerSettings(
            self.learner,
            update,
            rate=rate,
            margin=self._margin(task) if margins else "unit",
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
            neighbours=self.NEIGHBOURS if self.shuffle else 1,
            engine=self.engine,
        )

    def _train(
        self,
        task: Any,
        make_examples: Callable[[], Examples],
        score: Callable[[Model], dict[str, float]] | None,
        judges: Judges,
        *,
        goes_on: bool = False,
        places: np.ndarray | None = None,
        **fitting: Any,
    ) -> Trainer:
        """Train, keep the best model, fit its confidences if that is wanted, and note how it went.

        If it goes on with what was learned, `places` are the numbers of the actions so far among those of the task.
        """
        began, compiling = time.perf_counter(), compile_seconds()
        examples = make_examples()
        trainer = self._trainer(task, len(examples))
        if goes_on and trainer.policy is not None:
            trainer.policy.begin_with(self._fitted.policy)
        elif goes_on:
            fitting["start"] = start_of(self._as_learned(), trainer, places)
            self._fitted.learning = None  # it is stale from here on, whatever happens
        kept = self._fitted.calibration if goes_on and self._same_labels(task) else None
        bar = trainer.bar(examples, self.progress, "training", self.UNIT)
        choice = Choice(task.space, score, self.patience, bar, fitting.get("checkpoint"))
        choice.policy = partial(self._empty_policy, task)
        choice.resume(fitting.get("checkpoint") if fitting.get("resume") else None)
        model = trainer.fit(examples, progress=bar, after_pass=choice if score is not None else None, **fitting)
        self.task_, self.model_ = task, choice.best or model
        self.model_.report = model.report
        self.model_.about |= {"best_pass": choice.best_pass, "passes_done": model.about["passes_done"]}
        self._tune(score, goes_on)
        if goes_on and judges.dev is None:
            self.model_.calibration = kept  # nothing can be held out of what was learned before
        else:
            self._calibrate(task, examples, judges)
        spent, compiled = time.perf_counter() - began, compile_seconds() - compiling
        self.model_.report |= {"seconds_total": spent, "seconds_compiling": compiled, "dev": choice.history}
        keeps = trainer.policy is None and (self.KEEPS or self.keep_state or self.warm_start)
        self.model_.learning = trainer.state if keeps else None
        self.path_ = None
        return trainer

    def _tune(self, held: Any, goes_on: bool) -> None:
        """Change what was learned by what the dev data say, if there are any."""

    # --- going on ---

    def _as_learned(self) -> Model:
        """The model without what `_tune` has changed."""
        return self._fitted

    def _goes_on(self) -> bool:
        """Whether `fit` goes on with what was learned; a model from a file is not forgotten without a word."""
        if not self.__sklearn_is_fitted__():
            return False
        if self.warm_start:
            self._check_going_on()
            note = self.starts_from_weights()
            if note is not None:
                warn(note)
        elif self.path_ is not None:
            warn(
                f"fit begins anew and forgets what {self.path_} has learned: to go on, set warm_start=True, or use "
                "partial_fit"
            )
        return self.warm_start

    def _same_labels(self, task: Any) -> bool:
        """Whether a task that goes on has no new labels."""
        return task is self.task_

    def _check_going_on(self) -> None:
        """Raise an error if the options ask for another kind of policy than what was learned has."""

    def starts_from_weights(self) -> str | None:
        """What is to be said where learning goes on without the learner's state; None if it has it."""
        if self._fitted.learning is not None or self._stream is not None:
            return None
        if not isinstance(self._fitted.policy, FrozenPolicy):
            return f"{self.named} goes on from its weights, with a new optimiser: a network keeps no state of learning"
        return without_state(self.named)

    def _opened(self, task: Any, places: np.ndarray | None = None) -> Stream:
        """A stream that goes on with what was learned so far."""
        note = self.starts_from_weights()
        if note is not None:
            warn(note)
        trainer = self._trainer(task)
        return Stream(trainer, start_of(self._as_learned(), trainer, places))

    def _calibrate(self, task: Any, examples: Examples, judges: Judges) -> None:
        """Fit confidences to dev data, or to data that were held out of a second training."""
        if self.calibrate is False:
            return
        if judges.dev is not None:
            self.model_.calibration = fit_calibration(judges.dev(self.model_), "dev data")
            return
        plan = self._second_training(examples) if self.calibrate else self._short_training(examples)
        if plan is None:
            return
        found = [judges.part(model, part, chosen) for model, part, chosen in self._held_out(task, examples, plan)]
        try:
            self.model_.calibration = fit_calibration(together(found), "held-out data")
        except NoSciPy:
            if self.calibrate:
                raise

    def _second_training(self, examples: Examples) -> SecondTraining:
        """A tenth of the examples is held out of a training like the first, or of few examples each fifth in turn."""
        count = len(examples)
        if count < FOLDS:
            raise ConfigurationError(f"calibrate needs dev data, or {FOLDS} examples: there are {count}; leave it out")
        return SecondTraining(FOLDS, FOLDS, self, count) if count < MANY else SecondTraining(PARTS, 1, self, count)

    def _short_training(self, examples: Examples) -> SecondTraining | None:
        """What is held out of a shorter training, where confidences were not asked for; nothing unless it is cheap."""
        return None

    def _held_out(
        self, task: Any, examples: Examples, plan: SecondTraining
    ) -> Iterator[tuple[Model, Examples, np.ndarray]]:
        """Models that did not see a part of the examples, with that part."""
        count, parts = len(examples), plan.parts
        order = shuffled(count, mix(mix(self.seed, 0xCA11), parts), min(self.NEIGHBOURS, count // parts))
        for k in range(plan.used):
            low, high = k * count // parts, (k + 1) * count // parts
            others = np.concatenate([order[:low], order[high:]])[: plan.learned]
            rest, chosen = some(examples, np.sort(others)), np.sort(order[low:high])
            trainer = plan.estimator._trainer(task, len(rest))
            bar = trainer.bar(rest, self.progress, "calibrating", self.UNIT)
            yield trainer.fit(rest, progress=bar), some(examples, chosen), chosen

    def _options(self) -> dict[str, Any]:
        """The options that a model file keeps: plain values, but for who did the work, and what the task has."""
        params = {k: v for k, v in self.get_params().items() if k not in NOT_KEPT}
        return {k: v for k, v in params.items() if is_plain(v)}

    def _check_fitted(self) -> None:
        if not hasattr(self, "task_"):
            raise not_fitted(type(self).__name__)
