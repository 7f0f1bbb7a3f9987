"""The estimator: options, a `Problem` and a `Format`; every flow from data to a model and back is here, once.

    fit, fit_files        data -> _fit -> _train -> the trainer
    partial_fit           data -> _stream_for -> the stream
    predict, evaluate     data -> _predicted
    verbs on files        a format's data, the same ways

A subclass names its problem and format, brings data into columns (`_data`), and says what is special about it.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads, chosen_threads
from lols.engines import ExampleFiles
from lols.errors import ConfigurationError, LolsError, ModelFileError, warn
from lols.io.room import Room
from lols.kernels.hashing import mix
from lols.kernels.kernel import compile_seconds
from lols.learners.settings import LearnerSettings
from lols.tasks.base import BaseEstimator
from lols.tasks.best_pass import Choice
from lols.tasks.case import Case, draw_examples, pair_of
from lols.tasks.format import ExampleReader, Format, InParts, by_workers, never, scanned
from lols.tasks.options import LEARNING, SEARCH, estimator, is_plain, option
from lols.tasks.pieces import in_order, one_thread
from lols.tasks.problem import Problem, TaskData
from lols.tasks.verbs import FromWeights, NoOptions, Say, Scores
from lols.training.algorithms import Algorithm, algorithm
from lols.training.calibration import (
    Calibration,
    Judged,
    NoSciPy,
    check_enough,
    fit_calibration,
    not_calibrated,
    together,
)
from lols.training.clock import Clock
from lols.training.confidence import StepScores
from lols.training.learning_state import start_of, without_state
from lols.training.model import Model, make_model
from lols.training.order import shuffled
from lols.training.trainer import Trainer

FOLDS, PARTS = 5, 10  # held out for confidences: each of 5 parts in turn, or one of 10
MANY = 5000  # examples, from which on one part will do


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
class Estimator(BaseEstimator):
    """What learns to solve a search problem: the options that all of them share, and how data become a model."""

    PROBLEM: ClassVar[type[Problem]]
    AGAIN = (
        *("algorithm", "roll_in", "roll_out", "beta", "mix", "reference", "prune", "margin"),
        *("rate", "passes", "batch_size", "shuffle", "seed", "threads", "patience", "keep_state"),
    )
    BY_WORKERS: ClassVar[bool] = True  # whether workers may read the files of training themselves
    # Options that a model file does not have: who did the work, and how it began.
    NOT_KEPT: ClassVar[tuple[str, ...]] = ("engine", "warm_start")

    task_: Problem = field(init=False)
    model_: Model = field(init=False)
    columns_: Any = field(init=False)  # where things are in the files of training, if it was files
    _stream: Any = field(init=False, default=None)  # what goes on learning
    _model: Model | None = field(init=False, default=None)  # what the stream had learned when it was last asked for

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

    # --- what a subclass says -----------------------------------------------------------------------------------------

    def _data(self, X: Any, y: Any = None) -> TaskData:
        """What users give, in columns."""
        raise NotImplementedError

    def _format(self, layout: Any, **training: Any) -> Format:
        """How files that are laid out so are read and written; `training` are further options of `fit_files`."""
        raise NotImplementedError

    def _proposed(self, scan: Any, **fitting: Any) -> Problem:
        """The problem that data pose; `fitting` says where training is saved."""
        return self.PROBLEM.propose(scan, self)

    def _proposed_for(self, data: Any, classes: Sequence[Any] | None) -> Problem:
        """The problem that the first data of a stream pose, in which there can be these classes."""
        return self._proposed(data.scan(stream=True))

    def _note(self, scan: Any, *, anew: bool, stream: bool = False) -> None:
        """Note what else the model file holds of data that were learned from."""

    def _about_data(self) -> dict[str, Any]:
        """What a model says of the data that it learned from in a stream."""
        return {}

    def _tune(self, held: Any, goes_on: bool) -> None:
        """Change what was learned by what the dev data say, if there are any."""

    def _tuned(self, model: Model) -> Model:
        """What a stream has learned, with what dev data have said before."""
        return model

    def _as_learned(self) -> Model:
        """The model without what `_tune` has changed."""
        return self._fitted

    # --- algorithm and learner ----------------------------------------------------------------------------------------

    @property
    def is_linear(self) -> bool:
        """Whether the policy is linear."""
        return True

    def _linear(self) -> dict[str, Any]:
        """How the linear learner learns: settings of `lols.policies.Linear`, whether given or not."""
        return {name: getattr(self, name) for name in ("learner", "update", "rate", "slack")}

    def _said(self, name: str) -> bool:
        """Whether an option was given, which may be in the policy."""
        return self._changed(name)

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

    def _pruned(self, chosen: Algorithm) -> Algorithm:
        """The algorithm with fewer roll-outs, if that is wanted."""
        return chosen

    def _margin(self, problem: Any) -> str:
        """The margin of the hinge."""
        return "unit"

    def _together(self) -> int:
        """How many examples see the same policy."""
        return int(self.batch_size)

    def _without_effect(self, chosen: Algorithm) -> Iterator[tuple[str, str]]:
        """Options that change nothing beside the others, and why. `LearnerSettings` knows of those that it has."""
        linear = self._linear()
        if linear["learner"] != "hinge" and linear["slack"] is not None:
            yield "slack", f"{linear['learner']} learns from all states, only the hinge can pass over some"
        elif chosen.restart and linear["slack"] is not None:
            yield "slack", f"{chosen.name} learns from all states, because its learner starts anew in every pass"

    def _empty_policy(self, problem: Problem) -> Any:
        """A policy like the one that is trained, but for what it learned; None for the linear one."""
        return None

    def _trainer(self, problem: Any, examples: int | None = None) -> Trainer:
        """The trainer for a problem; `examples` is their number if it is known."""
        options = {name: getattr(self, name) for name in ("roll_in", "roll_out", "beta", "mix")}
        chosen = self._pruned(algorithm(self._algorithm(), **options))
        for name, why in self._without_effect(chosen):
            if self._said(name):
                raise ConfigurationError(f"{name} has no effect: {why}; leave it out")
        linear, defaults = self._linear(), problem.DEFAULTS
        learner = linear.pop("learner")
        margins, update = learner == "hinge", linear["update"] or ("nag" if learner == "csoaa" else "adagrad")
        if linear["rate"] is None and (learner, update) == ("hinge", "adagrad"):
            linear["rate"] = defaults.rate
        margin = {"margin": self._margin(problem) if margins else "unit"}
        slack = linear["slack"] if margins and not chosen.restart else None
        settings = LearnerSettings(learner, **margin | linear | {"update": update, "slack": slack})
        return Trainer(
            problem.space,
            problem.reference(self.reference),
            algorithm=chosen,
            learner=settings if self.is_linear else None,
            policy=self._empty_policy(problem),
            passes=self.passes,
            batch_size=self._together(),
            seed=self.seed,
            threads=self.threads,
            shuffle=self.shuffle,
            neighbours=defaults.neighbours if self.shuffle else 1,
            engine=self.engine,
        )

    # --- training -----------------------------------------------------------------------------------------------------

    @exclusive
    def fit(self, X: Any, y: Any = None, *, dev: Any = None, checkpoint: Any = None, resume: bool = False) -> Self:
        """Train from scratch, or go on with `warm_start`. With `dev` data, the pass that does best on them is kept.

        `dev` is a pair like X and y. `checkpoint` names a file to which training is saved as it goes, and from which an
        interrupted one goes on with `resume`.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.
        y
            Their truths: tags or labels; None if the objects have them.
        dev
            A pair like X and y that is not learned from, to keep the best pass and to calibrate with.
        checkpoint
            A file to which the training is saved as it goes.
        resume
            Whether to continue from the checkpoint, if there is one.

        """
        held = None if dev is None else self._labelled(dev)
        return self._fit(self._data(X, y), held, checkpoint=checkpoint, resume=resume)

    def _labelled(self, given: Any) -> TaskData:
        """Labelled data as they are given to `fit`."""
        return self._data(*given)

    def fit_read(
        self,
        paths: list[str],
        dev: str | None,
        layout: Any,
        say: Say,
        *,
        checkpoint: Any = None,
        resume: bool = False,
        **training: Any,
    ) -> Self:
        """Read files, train on them, and note what was in them."""
        fitting: dict[str, Any] = {"checkpoint": checkpoint, "resume": resume}
        form = self._format(layout, **training).settled(paths)
        if by_workers(self, paths, dev):
            return self._fit_own_files(form, paths, dev, say, **fitting)
        data: Any = form.read(paths)
        held: Any = None if dev is None else form.agreed(data).read([dev])
        data.check()
        if isinstance(data, InParts):
            data.check_training(self, dev)
        for line in data.remarks(held):
            say(line)
        self.columns_ = data.layout
        self._fit(data, held, **fitting)
        for line in self._remarks(data):
            say(line)
        reading = data.seconds + (0.0 if held is None else held.seconds)
        self.training_facts_ = data.facts() | self._facts() | {"seconds_reading": reading}
        return self

    def _remarks(self, data: Any) -> list[str]:
        """What is to be said of files after training on them."""
        return []

    def _facts(self) -> dict[str, Any]:
        """What is to be reported of the problem, and of what was done with the data."""
        return {}

    def _fit(self, data: Any, dev: Any = None, **fitting: Any) -> Self:
        """Train on data in columns."""
        data.check()
        goes_on, places = self._goes_on(), None
        scan = data.scan()
        if goes_on:
            problem, places = self.task_.grown(data)
        else:
            problem = self._proposed(scan, **fitting)
        held = None if dev is None else problem.held_out(dev)

        def judge(model: Model, part: Examples, chosen: np.ndarray) -> Judged:
            return problem.judged(model, part, data, chosen)

        judges = Judges(judge, None if held is None else held.judged)
        examples = (
            partial(data.examples_of, problem) if isinstance(data, InParts) else partial(problem.examples_of, data)
        )
        self._train(problem, examples, held, judges, goes_on=goes_on, places=places, **fitting)
        self._note(scan, anew=not goes_on)
        return self

    def _fit_own_files(self, form: Format, paths: list[str], dev: str | None, say: Say, **fitting: Any) -> Self:
        """Train on files that workers read: a first map over them finds what must be agreed on."""
        clock = Clock()
        scans = scanned(self, form.scan, paths)
        scan = scans[0].joined(scans[1:])
        form = form.agreed(scan)
        dev_data: Any = None if dev is None else form.read([dev])
        reading = clock.working()
        say(scan.summary(len(paths)))
        problem = self._proposed(scan, **fitting)
        held = None if dev_data is None else problem.held_out(dev_data)
        files = ExampleFiles(paths, ExampleReader(form, problem).examples, len(scan), scan.steps)
        judges = Judges(never, None if held is None else held.judged)
        self._train(problem, lambda: files, held, judges, **fitting)
        self.columns_ = form.layout
        self._note(scan, anew=True)
        self.training_facts_ = scan.facts() | self._facts() | {"seconds_reading": reading}
        return self

    def _train(
        self,
        problem: Any,
        make_examples: Callable[[], Any],
        score: Callable[[Model], dict[str, float]] | None,
        judges: Judges,
        *,
        goes_on: bool = False,
        places: np.ndarray | None = None,
        **fitting: Any,
    ) -> None:
        """Train, keep the best model, fit its confidences if that is wanted, and note how it went.

        If it goes on with what was learned, `places` are the numbers of the actions so far among those of the problem.
        """
        began, compiling = time.perf_counter(), compile_seconds()
        examples = make_examples()
        trainer = self._trainer(problem, len(examples))
        if goes_on and not trainer.policy.has_weights:
            trainer.policy.asked.begin_with(self._fitted.policy)
        elif goes_on:
            fitting["start"] = start_of(self._as_learned(), trainer, places)
            self._fitted.learning = None  # it is stale from here on, whatever happens
        kept = self._fitted.calibration if goes_on and problem.decides_like(self.task_) else None
        bar = trainer.bar(examples, self.progress, "training", problem.DEFAULTS.unit)
        choice = Choice(problem.space, score, self.patience, bar, fitting.get("checkpoint"))
        choice.policy = partial(self._empty_policy, problem)
        choice.resume(fitting.get("checkpoint") if fitting.get("resume") else None)
        model = trainer.fit(examples, progress=bar, after_pass=choice if score is not None else None, **fitting)
        self.task_, self.model_ = problem, choice.best or model
        self.model_.report = model.report
        self.model_.about |= {"best_pass": choice.best_pass, "passes_done": model.about["passes_done"]}
        self._tune(score, goes_on)
        if goes_on and judges.dev is None:
            self.model_.calibration = kept  # nothing can be held out of what was learned before
        else:
            self._calibrate(problem, examples, judges)
        spent, compiled = time.perf_counter() - began, compile_seconds() - compiling
        self.model_.report |= {"seconds_total": spent, "seconds_compiling": compiled, "dev": choice.history}
        keeps = trainer.policy.has_weights and (problem.DEFAULTS.keeps or self.keep_state or self.warm_start)
        self.model_.learning = trainer.state if keeps else None
        self.path_ = self._stream = self._model = None

    # --- going on -----------------------------------------------------------------------------------------------------

    @property
    def _fitted(self) -> Model:
        """The model; what a stream has learned since becomes one when it is asked for."""
        with self._lock.here():
            if self._stream is not None and self._model is None:
                about = self._about_data()
                self._model = self.model_ = self._tuned(self._stream.model())
                self.model_.learning = self._stream.state()
                self.model_.about |= about
            return self.model_

    def _goes_on(self) -> bool:
        """Whether `fit` goes on with what was learned; a model from a file is not forgotten without a word."""
        if not self.__sklearn_is_fitted__():
            return False
        if self.warm_start:
            self._check_going_on()
            self._say_from_weights()
        elif self.path_ is not None:
            warn(
                f"fit begins anew and forgets what {self.path_} has learned: to go on, set warm_start=True, or use "
                "partial_fit"
            )
        return self.warm_start

    def _check_going_on(self) -> None:
        """Raise an error if the options ask for another kind of policy than what was learned has."""

    def starts_from_weights(self) -> str | None:
        """What is to be said where learning goes on without the learner's state; None if it has it."""
        if self._fitted.learning is not None or self._stream is not None:
            return None
        if not self._fitted.decides.has_weights:
            return f"{self.named} goes on from its weights, with a new optimiser: a network keeps no state of learning"
        return without_state(self.named)

    def _say_from_weights(self) -> None:
        """Warn if learning goes on without the learner's state."""
        note = self.starts_from_weights()
        if note is not None:
            warn(note, FromWeights)

    @exclusive
    def partial_fit(self, X: Any, y: Any = None, classes: Sequence[Any] | None = None) -> Self:
        """Learn from the next examples of a stream, in the given order.

        Over the whole data, this is `fit` with one pass and `shuffle=False`, bit for bit, however the data is cut. What
        was loaded goes on from the learner's state if its file has it, else from the weights.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.
        y
            Their truths: tags or labels; None if the objects have them.
        classes
            All labels that may come, in the first call; later only new ones.

        """
        return self._learn(self._data(X, y), classes)

    def _learn(self, data: Any, classes: Sequence[Any] | None = None) -> Self:
        """Learn from the next data of a stream, in columns."""
        if len(data):
            data.check()
        if self.__sklearn_is_fitted__():
            problem, places = self.task_.grown(data, () if classes is None else list(classes))
        else:
            problem, places = self._proposed_for(data, classes), None
        stream = self._stream_for(problem, places)
        if data.size:
            stream.learn(problem.examples_of(data))
        self.task_, self._stream, self._model = problem, stream, None
        self._note(data.scan(stream=True), anew=False, stream=True)
        return self

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn from one example of a stream; the first call of `partial_fit` must have settled what there can be.

        Parameters
        ----------
        x
            An input.
        y
            Its truth.

        """
        return self.partial_fit([x], None if y is None else [y])

    @exclusive
    def stop_learning(self) -> Self:
        """Free the memory that only further learning needs: with many actions, that is most of it."""
        self._check_fitted()
        self.model_ = self._fitted
        self._stream = self.model_.learning = None
        return self

    def _stream_for(self, problem: Problem, places: np.ndarray | None) -> Any:
        """What goes on learning: the stream so far, or a new one where there is none or the problem has grown."""
        if not self.__sklearn_is_fitted__():
            return self._trainer(problem).stream()
        if self._stream is not None and problem is self.task_:
            return self._stream
        return self._opened(problem, places)

    def _opened(self, problem: Any, places: np.ndarray | None = None) -> Any:
        """A stream that goes on with what was learned so far."""
        self._say_from_weights()
        trainer = self._trainer(problem)
        if not trainer.policy.has_weights:
            trainer.policy.asked.begin_with(self._fitted.policy)
            return trainer.stream()
        return trainer.stream(start_of(self._as_learned(), trainer, places))

    # --- confidence ---------------------------------------------------------------------------------------------------

    def calibrated(self) -> Calibration:
        """The calibration of the model; an error that says what to do if there is none."""
        calibration = self._fitted.calibration
        if calibration is None:
            raise not_calibrated(self.named)
        return calibration

    @exclusive
    def calibrate_with(self, X: Any, y: Any = None) -> Self:
        """Fit confidences to labelled data that training did not see; returns the estimator itself.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.
        y
            Their truths: tags or labels; None if the objects have them.

        """
        self._check_fitted()
        self._recalibrate(self._judged(self._data(X, y)))
        return self

    def _judged(self, data: Any) -> dict[str, Judged]:
        """Which decisions on labelled data are right."""
        if not data.size:
            check_enough(0)
        return {self.task_.DECISIONS: self.task_.held_out(data).judged(self._fitted)}

    def _calibrate(self, problem: Any, examples: Examples, judges: Judges) -> None:
        """Fit confidences to dev data, or to data that were held out of a second training."""
        if self.calibrate is False:
            return
        if judges.dev is not None:
            self.model_.calibration = fit_calibration(judges.dev(self.model_), "dev data")
            return
        plan = self._second_training(examples) if self.calibrate else self._short_training(examples)
        if plan is None:
            return
        found = [judges.part(model, part, chosen) for model, part, chosen in self._held_out(problem, examples, plan)]
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
        self, problem: Any, examples: Examples, plan: SecondTraining
    ) -> Iterator[tuple[Model, Examples, np.ndarray]]:
        """Models that did not see a part of the examples, with that part."""
        count, parts = len(examples), plan.parts
        neighbours = min(problem.DEFAULTS.neighbours, count // parts)
        order = shuffled(count, mix(mix(self.seed, 0xCA11), parts), neighbours)
        for k in range(plan.used):
            low, high = k * count // parts, (k + 1) * count // parts
            others = np.concatenate([order[:low], order[high:]])[: plan.learned]
            rest, chosen = some(examples, np.sort(others)), np.sort(order[low:high])
            trainer = plan.estimator._trainer(problem, len(rest))
            bar = trainer.bar(rest, self.progress, "calibrating", problem.DEFAULTS.unit)
            yield trainer.fit(rest, progress=bar), some(examples, chosen), chosen

    # --- prediction ---------------------------------------------------------------------------------------------------

    @on_snapshot
    def predict(self, X: Any, *, confidence: bool = False) -> Any:
        """What is decided for each example; with `confidence` a pair: this, and how likely it is to be right.

        For that the estimator must be calibrated.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.
        confidence
            Whether a pair is returned: the predictions, and the probability that each is right.

        """
        data = self._data(X)
        outputs, sure = self._predicted(data, confidence)
        made = data.cut(self.task_.named(outputs))
        return made if sure is None else (made, data.cut(sure))

    def predict_one(self, x: Any) -> Any:
        """What is decided for one example.

        Parameters
        ----------
        x
            An input.

        """
        return self.predict([x])[0]

    def _predicted(self, data: Any, confidence: bool = False) -> tuple[Any, Any]:
        """What is decided on data in columns, and how likely it is to be right, if it is asked for."""
        self._check_fitted()
        if confidence:
            self.calibrated()
        return self.task_.predicted(self._fitted, data, confidence=confidence)

    def _session(self) -> Callable[[Any, bool], tuple[Any, Any]]:
        """What predicts one part of a data set after the other, on one thread; it may remember things."""
        return self._predicted

    @on_snapshot
    def scores(self, X: Any) -> list[StepScores]:
        """All actions of all steps of each example: costs, and probabilities if the model is calibrated.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.

        """
        data = self._data(X)
        self._check_fitted()
        return self._fitted.scores(self.task_.examples_of(data, truth=False)) if len(data) else []

    # --- evaluation ---------------------------------------------------------------------------------------------------

    @on_snapshot
    def evaluate(self, X: Any, y: Any = None) -> Any:
        """Compare predictions with the truth.

        Parameters
        ----------
        X
            The inputs: sentences, rows, or objects of a task.
        y
            Their truths: tags or labels; None if the objects have them.

        """
        self._check_fitted()
        return self._evaluated(self._data(X, y), NoOptions())

    def _evaluated(self, data: Any, asked: Any) -> Scores:
        """Scores on labelled data, as the options of the verb want them."""
        raise NotImplementedError

    def _knows_confidence(self) -> bool:
        """Whether predictions come with their confidence."""
        return self._fitted.calibration is not None

    # --- verbs on files -----------------------------------------------------------------------------------------------

    def taught_by(self, reference: str | None) -> Self:
        """The estimator with another teacher, which must be one of its problem's; the same if none is named."""
        if reference is None:
            return self
        self.task_.reference(reference)
        other = copy.copy(self)
        other.reference = reference
        return other

    def threads_for(self, threads: Threads) -> int:
        """How many threads may share the policy."""
        return chosen_threads(threads)

    def _read(self, path: str, layout: Any, asked: Any) -> Any:
        """The labelled data in a file like those of training."""
        return self._format(layout).settled([path]).read([path])

    @on_snapshot
    def predict_pieces(
        self, path: Any, layout: Any, asked: Any, *, threads: Threads = None
    ) -> Iterator[tuple[bytes, int]]:
        """The file with predictions, piece by piece, and how much there is in each."""
        form, idle, problem = self._format(layout), deque[Any](), self.task_

        def work(piece: Any) -> tuple[bytes, int]:
            data = form.inputs(piece)
            if not data.size:
                return form.write(piece, problem, None, None), 0
            session = idle.pop() if idle else self._session()
            outputs, sure = session(data, asked.confidence)
            idle.append(session)
            return form.write(piece, problem, outputs, sure), data.size

        with one_thread(*self.models()):
            yield from in_order(work, form.pieces(path), self.threads_for(threads))

    # --- certificates -------------------------------------------------------------------------------------------------

    @on_snapshot
    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate from labelled data as `fit` takes them."""
        self._check_fitted()
        given: Any = self._certified(data)
        given.check()
        return self._case(given, reference, limit, seed)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled file."""
        layout, asked = self.asked("certify", options)
        return self._case(self._read(path, layout, asked), asked.reference, limit, seed)

    def _certified(self, data: Any) -> TaskData:
        """What an estimator is certified on: data as they are given to `fit`."""
        return self._labelled(pair_of(data))

    def _case(self, data: Any, reference: str | None, limit: int | None, seed: int) -> Case:
        """The case of labelled data, of which at most `limit` examples are drawn."""
        problem, named = self.task_, reference or self.reference
        examples, count = draw_examples(problem.examples_of(data), limit, seed)
        teacher, notes = problem.reference(named), tuple(problem.notes(data))
        return Case(self._fitted, examples, teacher, problem.naming, count, named, notes, self.reference)

    # --- model files --------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        """The options that a model file keeps: plain values, but for those that it never has."""
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in self.NOT_KEPT}
        return {k: v for k, v in params.items() if is_plain(v)}

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What else a model file has: plain values, and arrays."""
        return {}, {}

    @classmethod
    def _described(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Problem:
        """The problem that a model file describes."""
        return cls.PROBLEM.from_description(task, tensors)

    @classmethod
    def _stored_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a model file that are plain values."""
        return {name: value for name, value in options.items() if is_plain(value)}

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        """Take over what else a model file has; damage is an error."""

    def _stored_policy(self, tensors: Mapping[str, np.ndarray], given: Any = None) -> Any:
        """What the policy of a model file is read into; None for the linear one."""
        if given is not None:
            raise ConfigurationError("policy has no effect: the file has everything; leave it out")
        return self._empty_policy(self.task_)

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file."""
        self._check_fitted()
        task, tensors = self.task_.describe()
        more, arrays = self._more_contents()
        layout = vars(self).get("columns_")
        files = None if layout is None else layout.describe()
        described = task | {"name": self.VERBS.name, "options": self._options(), "files": files} | more
        return self._fitted.contents(described, tensors | arrays, keep_state=self.keep_state)

    @classmethod
    def from_file(
        cls,
        path: Any,
        header: Mapping[str, Any],
        tensors: Mapping[str, np.ndarray],
        *,
        threads: Threads = None,
        room: Room | None = None,
        policy: Any = None,
    ) -> Self:
        """The estimator that the header and the arrays of a model file describe, or one part of such a file."""
        try:
            task, known = header["task"], cls().get_params()
            options = cls._stored_options({k: v for k, v in dict(task["options"]).items() if k in known})
            loaded = cls(**options | {"threads": threads})
            own = {name.removeprefix("task."): array for name, array in tensors.items() if name.startswith("task.")}
            loaded.task_ = cls._described(task, own)
            if task["files"] is not None:
                layout: Any = cls.VERBS.files
                loaded.columns_ = layout.from_description(task["files"])
            loaded._restore(task, own)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError, LolsError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        try:
            policy = loaded._stored_policy(tensors, policy)
        except LolsError as error:
            raise ModelFileError(f"{path}: {error}") from error
        space = loaded.task_.space
        loaded.model_ = make_model(path, header, tensors, space, policy=policy, threads=threads, room=room)
        return loaded
