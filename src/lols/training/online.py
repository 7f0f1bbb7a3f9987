"""Models of your own tasks that go on learning: after training, and after they were read from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

from lols.contract.examples import Examples
from lols.contract.sharing import exclusive
from lols.contract.space import Reference
from lols.contract.user_frames import warn
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.training.algorithms import Algorithm
from lols.training.learning_state import start_of, without_state
from lols.training.model import Model
from lols.training.policy_stream import PolicyStream, learning_copy
from lols.training.stream import Stream
from lols.training.trainer import Trainer


class OnlineModel(Model):
    """A model that learns on, with the algorithm, the learner and the batch size of its training.

    This is what `lols.train` and `lols.load` return for a task of your own. After training, and after loading a file
    that was saved with `keep_state=True`, learning goes on exactly; else it starts from the weights alone. Of a policy
    that is not linear, the copy learns on that its method `onward` makes: see `PolicyStream`.
    """

    @exclusive
    def partial_fit(self, objects: Iterable[Any], reference: Reference | None = None) -> Self:
        """Learn from further objects, in the given order, taught by the task's reference unless another is given.

        Parameters
        ----------
        objects
            The objects of the user, or `Examples` in columns.
        reference
            The teacher; None for the task's.

        """
        stream = vars(self).get("_stream")
        if stream is None or reference is not None:
            stream = self._opened(reference)
        teacher = stream.trainer.reference
        given = list(objects)
        if not given:
            return self
        stream.learn(Examples(self.space, given, truth=self.space.truth_for(teacher), decided=True))
        self._stream, self.calibration = stream, None  # which is that of the policy before
        vars(self).pop("policy", None)  # it is made again when it is asked for
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
        """Let go of what only further learning needs."""
        self.policy = self.policy
        vars(self).pop("_stream", None)
        self.learning = None
        return self

    def __getattr__(self, name: str) -> Any:
        stream = vars(self).get("_stream")
        if name != "policy" or stream is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        with self._lock.here():
            if "policy" not in vars(self):
                made = stream.model()
                self.plan, self.learning = made.plan, stream.state()
                self.about = self.about | {"examples": made.about["examples"]}
                self.report = self.report | made.report
                self.policy = made.policy
            return self.policy

    def _settle(self) -> None:
        _ = self.policy  # made of what the stream has learned since

    @exclusive
    def contents(self, *given: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and arrays of the model file."""
        self.policy = self.policy
        return super().contents(*given, **options)

    def _opened(self, reference: Reference | None) -> Stream | PolicyStream:
        """A stream that begins where this model is."""
        if self.kept_reference is not None:
            raise ConfigurationError(
                "this model decides by its reference, which does not learn: go on with lols.optimise(..., "
                "resume=model), or with lols.train(..., start=model)"
            )
        if not isinstance(self.policy, FrozenPolicy):
            return self.trainer(reference, policy=learning_copy(self.policy)).stream()
        trainer = self.trainer(reference)
        self.policy = self.policy
        start = start_of(self, trainer)
        if self.learning is None:
            warn(without_state("this model"))
        return trainer.stream(start)

    def trainer(self, reference: Reference | None = None, **changed: Any) -> Trainer:
        """A trainer with the options of this model's training, but for those that are given."""
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
        return Trainer(self.space, reference, **options | own | changed)


def _names(kind: Any) -> set[str]:
    return {each.name for each in fields(kind)}
