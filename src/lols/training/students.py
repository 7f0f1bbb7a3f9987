"""Who is trained: the linear learner, with the fused driver; or a policy of the user's own, in lock-step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.compile.ahead import compile_ahead
from lols.engine.compile.kernel import DISABLED
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.lock_step import LockStepDriver
from lols.engine.structures import Batch, FrozenPolicy
from lols.errors import ConfigurationError
from lols.learners.learner import Learner, frozen
from lols.policies.files import check_saved, kind_of, state_of
from lols.policies.protocol import checked
from lols.training.algorithms import Algorithm
from lols.training.mixture import PolicyMixture

if TYPE_CHECKING:
    from lols.training.trainer import Trainer

__all__ = ["LinearStudent", "PolicyStudent", "Student", "fitting"]


class Student(ABC):
    """What a training run needs: someone who rolls in and out, learns from batches, and comes to a policy."""

    learner: Learner | None = None

    @abstractmethod
    def driver(self, examples: Examples) -> FusedDriver:
        """A driver for these examples."""

    def begin_pass(self) -> None:  # noqa: B027  (most have nothing to do)
        """A pass begins."""

    def end_pass(self, rounds: int) -> None:  # noqa: B027
        """A pass of so many rounds is over."""

    def reference_weight(self) -> float | None:
        """The chance of the reference in roll-ins and roll-outs; None where the schedule says."""
        return None

    @abstractmethod
    def rolling_policy(self) -> Any:
        """The policy that rolls in and out, as the driver takes it."""

    @abstractmethod
    def learn(self, batch: Batch) -> None:
        """Learn from what the driver collected."""

    @abstractmethod
    def keep(self) -> None:
        """Keep the policy as it is now: it is the one to be returned."""

    @abstractmethod
    def policy(self) -> Any:
        """The policy that the algorithm returns."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to fit."""
        return self.describe()

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """What it has come to."""

    def check_resumable(self) -> None:  # noqa: B027
        """Make sure that checkpoints can be written."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that learning goes on from, as named arrays."""

    @abstractmethod
    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Go on from there."""


class LinearStudent(Student):
    """The linear learner; for Searn one after the other, and the mixture of them."""

    learner: Learner

    def __init__(self, trainer: Trainer, rounds: int):
        chosen = trainer.algorithm
        self.trainer, self.learner = trainer, trainer.new_learner()
        self.mixture = PolicyMixture(chosen, rounds) if chosen.restart else None
        self.snapshot: FrozenPolicy | None = None

    def driver(self, examples: Examples) -> FusedDriver:
        trainer = self.trainer
        made = FusedDriver(
            trainer.space, examples, trainer.reference, threads=trainer.threads, compiled=trainer.compiled
        )
        if trainer.compiled and not DISABLED:
            search, predict = made.calls(self.learner.policy(), trainer.plan)
            compile_ahead([search, *self.learner.calls(search[1][6].lessons), predict])
        return made

    def begin_pass(self) -> None:
        if self.mixture is not None:
            self.mixture.begin(self.learner)

    def end_pass(self, rounds: int) -> None:
        if self.mixture is not None:
            self.mixture.end(self.learner, rounds)

    def reference_weight(self) -> float | None:
        return None if self.mixture is None else self.mixture.reference_weight

    def rolling_policy(self) -> FrozenPolicy:
        return self.learner.policy() if self.mixture is None else self.mixture.policy(self.learner)

    def learn(self, batch: Batch) -> None:
        self.learner.learn(batch.lessons)

    def keep(self) -> None:
        self.snapshot = frozen(self.learner.policy())

    def policy(self) -> FrozenPolicy:
        """Searn's mixture, the policy that was kept, or the average or last one."""
        if self.mixture is not None:
            return self.mixture.final(self.learner)
        return self.trainer.returned_policy(self.learner) if self.snapshot is None else self.snapshot

    def describe(self) -> dict[str, Any]:
        return self.learner.describe()

    def identity(self) -> dict[str, Any]:
        return asdict(self.trainer.settings)

    def report(self) -> dict[str, Any]:
        return self.learner.report()

    def state(self) -> dict[str, np.ndarray]:
        tensors = {f"learner.{k}": v for k, v in self.learner.state().items()}
        if self.snapshot is not None:
            tensors |= {"snapshot.stack": self.snapshot.stack, "snapshot.single": self.snapshot.single_stack}
        return tensors | (self.mixture.state() if self.mixture is not None else {})

    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.learner.load({k.removeprefix("learner."): v for k, v in tensors.items() if k.startswith("learner.")})
        if self.mixture is not None:
            self.mixture.load(tensors, self.learner)
        if "snapshot.stack" in tensors:
            # Rows are only ever added, so the snapshot's rows are the first of the learner's.
            policy = frozen(self.learner.policy())
            stack, single = np.zeros_like(policy.stack), np.zeros_like(policy.single_stack)
            old, old_single = tensors["snapshot.stack"], tensors["snapshot.single"]
            rows, single_rows = min(old.shape[1], stack.shape[1]), min(old_single.shape[1], single.shape[1])
            stack[:, :rows], single[:, :single_rows] = old[:, :rows], old_single[:, :single_rows]
            self.snapshot = policy._replace(stack=stack, single_stack=single)


class PolicyStudent(Student):
    """A policy of the user's own."""

    def __init__(self, trainer: Trainer):
        self.trainer, self.own = trainer, trainer.policy
        self.snapshot: Any = None
        self.rounds, self.states = 0, 0

    def driver(self, examples: Examples) -> FusedDriver:
        trainer = self.trainer
        self._driver = LockStepDriver(trainer.space, examples, trainer.reference, compiled=trainer.compiled)
        return self._driver

    def rolling_policy(self) -> Any:
        return self.own

    def learn(self, batch: Batch) -> None:
        states, costs, weights = self._driver.lesson(batch)
        self.rounds += batch.lessons.example.size
        self.states += len(states)
        self.own.update(states, costs, weights)

    def keep(self) -> None:
        self.snapshot = self.own.frozen()

    def policy(self) -> Any:
        """The policy that was kept, or an average if there is one, or a copy; else the policy itself."""
        if self.snapshot is not None:
            return self.snapshot
        way = "averaged" if self.trainer.algorithm.returned == "average" else "frozen"
        return getattr(self.own, way)() if hasattr(self.own, way) else self.own

    def describe(self) -> dict[str, Any]:
        return {"policy": kind_of(self.own)}

    def report(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "states": self.states}

    def check_resumable(self) -> None:
        kind = type(self.own).__name__
        check_saved(self.own, "a checkpoint")
        if self.trainer.algorithm.returned == "drawn":
            raise ConfigurationError(f"returned='drawn' has no checkpoints with {kind}: choose 'last' or 'average'")

    def state(self) -> dict[str, np.ndarray]:
        seen = np.array([self.rounds, self.states], np.int64)
        return {f"policy.{k}": v for k, v in state_of(self.own).items()} | {"seen": seen}

    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.rounds, self.states = (int(n) for n in tensors["seen"])
        self.own.load({k.removeprefix("policy."): v for k, v in tensors.items() if k.startswith("policy.")})


def fitting(policy: Any, chosen: Algorithm, given: Mapping[str, Any]) -> Algorithm:
    """The algorithm, as far as a policy of the user's own can take part in it; a contradiction is an error."""
    kind = type(checked(policy)).__name__
    if chosen.restart:
        raise ConfigurationError(
            f"{chosen.name} trains a new learner in every pass, which a policy of your own cannot: choose lols, "
            "aggrevate, dagger or cloning"
        )
    if chosen.returned == "drawn" and not hasattr(policy, "frozen"):
        raise ConfigurationError(f"returned='drawn' needs copies: give {kind} a method `frozen`, or choose 'last'")
    if chosen.returned == "average" and not hasattr(policy, "averaged"):
        if given.get("returned") == "average":
            raise ConfigurationError(f"returned='average' needs one: give {kind} a method `averaged`, or choose 'last'")
        return replace(chosen, returned="last")
    return chosen
