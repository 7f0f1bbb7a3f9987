"""A trained model: a search space and a policy, in files that contain data only. It can go on learning."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.contract.sharing import Shareable, exclusive, on_snapshot
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import as_space, as_teacher
from lols.contract.threads import Threads
from lols.engine.beam import best_paths
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.predictions import Predictions
from lols.engine.sampling import best_samples
from lols.engine.structures import Plan
from lols.errors import ConfigurationError, warn
from lols.io.model_file import PICKLED, from_bytes, to_bytes, write_tensors
from lols.io.room import Room
from lols.learners.settings import LearnerSettings
from lols.policies.own import as_policy
from lols.policies.policy import Policy
from lols.training.algorithms import Algorithm
from lols.training.calibration import Calibration, not_calibrated, refitted
from lols.training.confidence import StepScores, confident_outputs, judged_steps, step_scores
from lols.training.learning import Learning
from lols.training.learning_state import LearningState, StoredState, start_of, without_state
from lols.training.loop import learn_on
from lols.training.model_file import contents_of, is_own, parts_of
from lols.training.model_html import model_html
from lols.training.recipe import Recipe


class Model(Shareable):
    """A policy for a search space, which can go on learning.

    Parameters
    ----------
    space
        The search space.
    policy
        Weights, and for Searn the probabilities of its components; or any `lols.policies.OwnPolicy`.
    plan
        How the engine follows the policy.
    about
        Algorithm, learner, seed and other facts, stored in the model file.
    report
        Results of training: progressive loss of each pass, seconds, memory.
    threads
        Threads of prediction; they do not change the result. None: what is fastest.
    compiled
        False runs the same code as plain Python.
    learning
        What it can go on learning from, if that was kept.
    calibration
        How predicted costs become probabilities, if that was fitted to held-out data.
    kept_reference
        The reference that decides in place of the policy, where `lols.optimise` found no policy that is better. With
        samples or a beam, each result is the one of less loss, the reference's or that of the search.

    """

    def __init__(
        self,
        space: SearchSpace,
        policy: Any,
        plan: Plan,
        about: dict[str, Any] | None = None,
        report: dict[str, Any] | None = None,
        threads: Threads = None,
        compiled: bool = True,
        learning: LearningState | StoredState | None = None,
        calibration: Calibration | None = None,
        kept_reference: Reference | None = None,
    ):
        self.space, self.plan = as_space(space), plan
        self.about, self.report = about or {}, report or {}
        self.threads, self.compiled = threads, compiled
        self.learning, self.calibration, self.kept_reference = learning, calibration, kept_reference
        self._policy: Any = policy
        self._going_on: Learning | None = None  # what goes on learning
        self._learned = False  # whether it has learned something since the policy was made

    @property
    def policy(self) -> Any:
        """The weights, or the object of the user's; after `partial_fit` they are made when they are asked for."""
        self._settle()
        return self._policy

    @policy.setter
    def policy(self, policy: Any) -> None:
        self._policy, self._learned = policy, False

    @property
    def decides(self) -> Policy:
        """The policy as training and search know it."""
        return as_policy(self.policy)

    def replaced(self, **changed: Any) -> Self:
        """A model with some arguments in place of its own; it shares the others."""
        given = {name: getattr(self, name) for name in inspect.signature(Model.__init__).parameters if name != "self"}
        return type(self)(**given | changed)

    def __repr__(self) -> str:
        actions = self.space.fixed_actions or "any number of"
        decides = f"policy: {self.decides.name}" if self.kept_reference is None else "decides by its reference"
        return f"Model({self.space.name or 'space'}, {actions} actions, {decides})"

    def _repr_html_(self) -> str:
        """What notebooks show: what it is, and how its training went."""
        return model_html(repr(self), self.about, self.report)

    @on_snapshot
    def predict(
        self,
        objects: Iterable[Any] | Examples,
        *,
        best_of: int = 1,
        starts: int = 1,
        beam: int = 1,
        temperature: float = 1.0,
        seed: int = 0,
        improve: Callable[[Any, Any], Any] | None = None,
        confidence: bool = False,
    ) -> Any:
        """The space's output for each of the user's objects.

        Parameters
        ----------
        objects
            What is to be predicted.
        best_of
            More than 1 draws as many samples from the policy for each object, and keeps the one of least loss. That
            takes a loss that can be computed without labels, as a schedule's length can. The first sample is the greedy
            prediction, so the result is never worse.
        starts
            How many of these samples are greedy, each after another first action, the most promising ones first. The
            rest is drawn.
        beam
            More than 1 follows as many paths at once, those that the policy likes best, and keeps the one of least
            loss, instead of samples.
        temperature
            Scales how far samples stray from the greedy prediction.
        seed
            Of the samples.
        improve
            `improve(object, output)` returns a better output, or the same one: a local search, for example.
        confidence
            Return a pair: the outputs, and for each of them an array with the probability of each step that it was the
            best one. The model must be calibrated, and the prediction greedy.

        """
        if confidence:
            if best_of != 1 or starts != 1 or beam != 1 or improve is not None:
                raise ConfigurationError("confidence is that of greedy steps: leave out best_of, starts, beam, improve")
            return confident_outputs(self, objects)
        if isinstance(objects, Examples):
            if improve is not None:
                raise ConfigurationError("improve needs your objects, and Examples are encoded: give the objects")
            given, examples = [], objects
        else:
            given = list(as_objects(objects))
            if not given:
                return []
            examples = Examples(self.space, given, truth=self._truth(searched=best_of > 1 or beam > 1))
        options: Any = {"starts": starts, "temperature": temperature, "seed": seed}
        predictions = self._searched(examples, best_of, beam, options)
        outputs = [predictions.output(i) for i in range(len(examples))]
        return outputs if improve is None else [improve(*pair) for pair in zip(given, outputs, strict=True)]

    def calibrated(self) -> Calibration:
        """The calibration; an error that says what to do if there is none."""
        if self.calibration is None:
            raise not_calibrated("this model")
        return self.calibration

    @on_snapshot
    def scores(self, objects: Iterable[Any] | Examples) -> list[StepScores]:
        """All actions of all steps: what they seem to cost, and their probabilities if the model is calibrated.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.

        """
        return step_scores(self, objects)

    @exclusive
    def calibrate_with(self, objects: Iterable[Any] | Examples, reference: Reference | None = None) -> Self:
        """Fit confidences to labelled objects that training did not see; returns the model itself.

        A step is right if no other action would have cost less, had the reference completed the result: that of the
        task unless another one is given.

        Parameters
        ----------
        objects
            Labelled objects that were not learned from.
        reference
            Who completes the results that steps are judged by; None for the task's.

        """
        teacher = as_teacher(reference, self.space)
        examples = objects if isinstance(objects, Examples) else self.labelled(objects, teacher)
        self.calibration = refitted(judged_steps(self, examples, reference), self.calibration).calibration
        return self

    def labelled(self, objects: Iterable[Any], reference: Reference | None = None) -> Examples:
        """Objects in columns, with the truth that their loss needs, and perhaps a reference."""
        return Examples(self.space, objects, truth=self.space.truth_for(reference))

    def _truth(self, *, searched: bool) -> bool | None:
        """What `Examples` is told of the truth where something is predicted: what a search and the reference need."""
        if searched:
            return self.space.truth_for(self.kept_reference)
        return False if self.kept_reference is None else bool(self.kept_reference.needs_truth) or None

    def _searched(self, examples: Examples, best_of: int, beam: int, options: dict[str, Any]) -> Predictions:
        """The greedy predictions, or the best ones of a search."""
        if best_of != 1 and beam != 1:
            raise ConfigurationError("best_of draws samples and beam follows the best paths: choose one of them")
        if beam != 1:
            predictions = best_paths(self, examples, beam)
        elif best_of != 1 or options["starts"] != 1:
            predictions = best_samples(self, examples, best_of, **options).predictions
        else:
            return self.run(examples)
        if self.kept_reference is not None:
            kept = self.run(examples)
            with self.driver(examples) as driver:
                losses = [driver.losses(each, self.policy) for each in (kept, predictions)]
            predictions.take_over(kept, np.flatnonzero(losses[0] <= losses[1]))
        return predictions

    def check_policy_decides(self, what: str) -> None:
        """Raise an error if the reference decides, of whose decisions there is no such thing."""
        if self.kept_reference is not None:
            raise ConfigurationError(
                f"this model decides by its reference, because no policy was better: there is no {what} of its policy"
            )

    def predict_one(self, obj: Any, **options: Any) -> Any:
        """The space's output for one object, with the options of `predict`.

        Parameters
        ----------
        obj
            An object of the user.
        **options
            Options of `predict`.

        """
        return self.predict([obj], **options)[0]

    def warm_up(self, objects: Iterable[Any]) -> Self:
        """Compile ahead, or load from the cache, what prediction needs, by predicting a few objects.

        Parameters
        ----------
        objects
            A few objects like those to come.

        """
        self.predict(objects)
        return self

    def run(self, examples: Examples, *, scores: bool = False, temperature: float = 0.0) -> Predictions:
        """Follow the policy on examples that are already in columns.

        With `scores` the predicted costs of all actions are kept. With a `temperature` above 0, so is the share of each
        action taken in a softmax of the costs. If the reference was kept, it is followed, which predicts no costs.
        """
        if self.kept_reference is not None:
            if scores or temperature > 0.0:
                self.check_policy_decides("confidence")
            with self.driver(examples, self.kept_reference) as driver:
                return driver.follow_teacher(self.plan, self.policy)
        with self.driver(examples) as driver:
            return driver.predict(self.policy, self.plan, scores=scores, temperature=temperature)

    def driver(self, examples: Examples, reference: Reference | None = None, **options: Any) -> FusedDriver:
        """What searches examples with the policy; options are those of `Policy.driver`."""
        how: Any = {"threads": self.threads, "compiled": self.compiled} | options
        return self.decides.driver(self.space, examples, reference, **how)

    def follower(self) -> Follower:
        """An object that follows the policy on one part of a data set after the other."""
        return Follower(self)

    @on_snapshot
    def losses(
        self,
        objects: Iterable[Any] | Examples,
        *,
        best_of: int = 1,
        starts: int = 1,
        beam: int = 1,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> np.ndarray:
        """The loss of the policy on each labelled object; the options are those of `predict`.

        Parameters
        ----------
        objects
            Labelled objects.
        best_of
            How many samples are drawn for each, of which the one of least loss counts.
        starts
            How many of the samples are greedy, each after another first action.
        beam
            How many paths a beam follows, of whose ends the one of least loss counts.
        temperature
            How much samples differ: the softmax of predicted costs is taken at this temperature.
        seed
            What random draws depend on.

        """
        examples = objects if isinstance(objects, Examples) else self.labelled(objects)
        options: Any = {"starts": starts, "temperature": temperature, "seed": seed}
        predictions = self._searched(examples, best_of, beam, options)
        with self.driver(examples) as driver:
            return driver.losses(predictions, self.policy)

    def evaluate(self, objects: Iterable[Any] | Examples) -> float:
        """The mean loss of the policy on labelled objects.

        Parameters
        ----------
        objects
            Labelled objects.

        """
        return float(self.losses(objects).mean())

    @on_snapshot
    def reference_losses(self, objects: Iterable[Any] | Examples, reference: Reference | None = None) -> np.ndarray:
        """The loss of a reference on each labelled object, for comparison with that of the policy.

        The reference is that of the task unless another one is given.

        Parameters
        ----------
        objects
            Labelled objects.
        reference
            The reference; None for the task's.

        """
        reference = as_teacher(reference, self.space)
        examples = objects if isinstance(objects, Examples) else self.labelled(objects, reference)
        with self.driver(examples, reference) as driver:
            return driver.losses(driver.follow_teacher(self.plan, self.policy), self.policy)

    @on_snapshot
    def reference_outputs(self, objects: Iterable[Any], reference: Reference | None = None) -> list[Any]:
        """The space's output for each object if a reference decides, by default that of the task.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.
        reference
            The reference that decides; None for the task's.

        """
        reference = as_teacher(reference, self.space)
        given = list(as_objects(objects))
        if not given:
            return []
        examples = Examples(self.space, given, truth=bool(reference.needs_truth) or None)
        with self.driver(examples, reference) as driver:
            predictions = driver.follow_teacher(self.plan, self.policy)
        return [predictions.output(i) for i in range(len(examples))]

    # --- going on ---

    @exclusive
    def partial_fit(self, objects: Iterable[Any], reference: Reference | None = None) -> Self:
        """Learn from further objects, in the given order, taught by the task's reference unless another is given.

        It learns with the algorithm, the learner and the batch size of its training. After training, and after loading
        a file that was saved with `keep_state=True`, learning goes on exactly; else it starts from the weights alone.
        Of a policy that is not linear, the copy learns on that its method `onward` makes.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.
        reference
            The teacher; None for the task's.

        """
        learning = self._going_on
        if learning is None or reference is not None:
            learning = self._opened(reference)
        given = list(objects)
        if not given:
            return self
        truth = self.space.truth_for(learning.recipe.reference)
        learn_on(learning, Examples(self.space, given, truth=truth, decided=True))
        self._going_on, self._learned, self.calibration = learning, True, None  # that was of the policy before
        return self

    def learn_one(self, obj: Any, reference: Reference | None = None) -> Self:
        """Learn from one object.

        Parameters
        ----------
        obj
            An object of the user.
        reference
            The teacher; None for the task's.

        """
        return self.partial_fit([obj], reference)

    @exclusive
    def stop_learning(self) -> Self:
        """Free the memory that only further learning needs."""
        self._settle()
        self._going_on = self.learning = None
        return self

    def _settle(self) -> None:
        """Take over what the stream has learned."""
        if not self._learned:
            return
        with self._lock.here():
            if self._learned and self._going_on is not None:
                made = model_of(self._going_on)
                self.plan, self.learning, self._policy = made.plan, self._going_on.state(), made.policy
                self.about = self.about | {"examples": made.about["examples"]}
                self.report = self.report | made.report
                self._learned = False

    def _opened(self, reference: Reference | None) -> Learning:
        """Learning that begins where this model is."""
        if self.kept_reference is not None:
            raise ConfigurationError(
                "this model decides by its reference, which does not learn: go on with lols.optimise(..., "
                "resume=model), or with lols.train(..., start=model)"
            )
        if not self.decides.has_weights:
            policy = self.decides.onward()
            batch = {} if policy.together is None else {"batch_size": policy.together}
            return Learning.open(self.recipe(reference, policy=policy, **batch))
        recipe = self.recipe(reference)
        start = start_of(self, recipe)
        if self.learning is None:
            warn(without_state("this model"))
        return Learning.open(recipe, start)

    def recipe(self, reference: Reference | None = None, **changed: Any) -> Recipe:
        """The options of this model's training, but for those that are given."""
        try:
            chosen = {k: v for k, v in dict(self.about["algorithm"]).items() if k in _names(Algorithm)}
            settings = {k: v for k, v in dict(self.about["learner"]).items() if k in _names(LearnerSettings)}
            options: dict[str, Any] = {
                "algorithm": Algorithm(**chosen),
                "learner": LearnerSettings(**settings) if changed.get("policy") is None else None,
                "batch_size": int(self.about["batch_size"]),
                "seed": int(self.about["seed"]),
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the model does not say how it was trained ({error}), so it cannot go on: train it with lols.train"
            ) from error
        own = {"threads": self.threads, "compiled": self.compiled}
        return Recipe(self.space, reference, **options | own | changed)

    # --- files ---

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the space by name, the policy as the content of a model file, which is data only."""
        state = super().__getstate__()
        state.pop("_going_on")
        if self.decides.has_weights:  # another one is pickled as its class wants it
            state = {name: state[name] for name in ("space", "report", "threads", "compiled")}
            state["file"] = to_bytes("model", *self.contents(keep_state=True))
            if self.kept_reference is not None and not is_own(self.kept_reference, self.space):
                state["kept_reference"] = self.kept_reference.plain
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("file", None)
        if content is not None:
            reference = state.pop("kept_reference", None)
            vars(self).update(vars(make_model(PICKLED, *from_bytes(content, "model"), state["space"], reference)))
        policy = state.pop("policy", None)  # as 0.2 and before called it
        own: dict[str, Any] = {} if policy is None else {"_policy": policy}
        vars(self).update({"_going_on": None, "_learned": False} | own | state)

    @exclusive
    def save(
        self,
        path: str | os.PathLike[str],
        *,
        task: Mapping[str, Any] | None = None,
        tensors: Mapping[str, np.ndarray] | None = None,
        keep_state: bool = False,
    ) -> None:
        """Write the model file atomically. Weights that are zero are left out.

        `task` and `tensors` are plain values and arrays that an estimator needs when it is loaded. With `keep_state`,
        the file has the learner's state as well, if the model has it, so that learning goes on exactly.

        Parameters
        ----------
        path
            Where to write; the file is whole or not there.
        task
            Facts about the task that the file shall have.
        tensors
            Arrays of the task that the file shall have.
        keep_state
            Whether the state of learning is stored, too, so that learning can go on.

        """
        write_tensors(path, "model", *self.contents(task, tensors, keep_state=keep_state))

    @exclusive
    def contents(
        self,
        task: Mapping[str, Any] | None = None,
        tensors: Mapping[str, np.ndarray] | None = None,
        *,
        keep_state: bool = False,
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file."""
        self._settle()
        return contents_of(self, task, tensors, keep_state=keep_state)


class Follower:
    """Follows a model's policy on one part of a data set after the other, in one thread.

    Scores of types of items are computed once, so each part must have the types of the part before, with the same
    numbers, and may have more.
    """

    def __init__(self, model: Model):
        self.model = model
        self._driver: FusedDriver | None = None

    def run(self, examples: Examples, *, temperature: float = 0.0) -> Predictions:
        """Follow the policy on the next part."""
        model, same = self.model, self._driver is not None
        if not model.decides.keeps_scores or model.kept_reference is not None:
            return model.run(examples, temperature=temperature)
        if self._driver is None:
            self._driver = model.decides.driver(model.space, examples, compiled=model.compiled)
        else:
            self._driver.turn_to(examples)
        return self._driver.predict(model.policy, model.plan, temperature=temperature, same=same)


def model_of(learning: Learning) -> Model:
    """What was learned so far as a model."""
    learning.finish_waiting()
    recipe = learning.recipe
    how: Any = {"threads": recipe.threads, "compiled": recipe.compiled}
    return Model(recipe.space, learning.policy.returned(), recipe.plan, learning.facts(), learning.report(), **how)


def make_model(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    space: SearchSpace,
    reference: Reference | None = None,
    *,
    policy: Any = None,
    threads: Threads = None,
    compiled: bool = True,
    room: Room | None = None,
) -> Model:
    """The model that a file's header and arrays describe, for a space.

    `reference` is the one that decides if the model has kept one, by default that of the space. `room` is what is left
    for its weights, if the file holds more than this model.
    """
    parts = parts_of(path, header, tensors, space, reference, policy=policy, compiled=compiled, room=room)
    return Model(space, **parts, threads=threads, compiled=compiled)


def _names(kind: Any) -> set[str]:
    return {each.name for each in fields(kind)}
