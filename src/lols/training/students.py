"""What is trained: the linear learner, with the fused driver, or a policy of the user's, with the lock-step driver."""

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
from lols.engine.drivers.lock_step import ROOM, LockStepDriver
from lols.engine.structures import Batch, FrozenPolicy
from lols.errors import ConfigurationError, LolsError
from lols.learners.learner import Learner
from lols.policies.files import check_saved, kind_of, state_of
from lols.policies.protocol import checked
from lols.training.algorithms import Algorithm
from lols.training.mixture import PolicyMixture

if TYPE_CHECKING:
    from lols.training.trainer import Trainer


class Student(ABC):
    """What a training run trains: has a policy that rolls in and out, learns from batches, and returns a policy."""

    learner: Learner | None = None

    @abstractmethod
    def driver(self, examples: Examples) -> FusedDriver:
        """A driver for these examples."""

    def begin_pass(self) -> None:  # noqa: B027  (most have nothing to do)
        """Called before each pass."""

    def end_pass(self, rounds: int) -> None:  # noqa: B027
        """Called after each pass, with its number of rounds."""

    def reference_weight(self) -> float | None:
        """The probability of the reference in roll-ins and roll-outs; None if the schedule determines it."""
        return None

    @abstractmethod
    def rolling_policy(self) -> Any:
        """The policy that rolls in and out."""

    @abstractmethod
    def learn(self, batch: Batch) -> None:
        """Learn from the lessons of a batch."""

    @abstractmethod
    def keep(self) -> None:
        """Keep a copy of the current policy, to be returned in the end."""

    @abstractmethod
    def policy(self) -> Any:
        """The policy that the algorithm returns."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The settings, as plain values for model files."""

    def identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return self.describe()

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Numbers for the report: rounds, states, memory."""

    def check_resumable(self) -> None:  # noqa: B027
        """Raise an error if checkpoints cannot be written."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that learning goes on from, as named arrays."""

    @abstractmethod
    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Restore such a state."""


class LinearStudent(Student):
    """The linear learner; for Searn a new one in each pass, and the mixture of them."""

    learner: Learner

    def __init__(self, trainer: Trainer, rounds: int):
        chosen = trainer.algorithm
        self.trainer, self.learner = trainer, trainer.new_learner()
        self.mixture = PolicyMixture(chosen, rounds) if chosen.restart else None
        self.snapshot: FrozenPolicy | None = None

    def driver(self, examples: Examples) -> FusedDriver:
        trainer = self.trainer
        how: Any = {"threads": trainer.threads, "together": trainer.together(len(examples))}
        driver = FusedDriver(trainer.space, examples, trainer.reference, **how, compiled=trainer.compiled)
        if trainer.compiled and not DISABLED:
            compile_ahead(self.calls(driver))
        return driver

    def calls(self, driver: FusedDriver) -> list[tuple[Any, tuple[Any, ...]]]:
        """The kernels of training and prediction with arguments of the right types."""
        calls = driver.calls(self.learner.policy(), self.trainer.plan)
        return [calls.search, *self.learner.calls(calls.lessons), calls.predict, *calls.evaluate]

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
        self.snapshot = self.learner.last()

    def policy(self) -> FrozenPolicy:
        """Searn's mixture, the policy that was kept, or the average or the last one."""
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
            # Rows are only ever added, so the rows of the snapshot are the first rows of the learner.
            policy = self.learner.last()
            stack, single = np.zeros_like(policy.stack), np.zeros_like(policy.single_stack)
            old, old_single = tensors["snapshot.stack"], tensors["snapshot.single"]
            if old.ndim != 3 or old.shape[::2] != stack.shape[::2] or old_single.ndim != 2 or len(old_single) != 1:
                raise LolsError(f"'snapshot' has shapes {old.shape} and {old_single.shape}, which do not fit")
            rows, single_rows = min(old.shape[1], stack.shape[1]), min(old_single.shape[1], single.shape[1])
            stack[:, :rows], single[:, :single_rows] = old[:, :rows], old_single[:, :single_rows]
            self.snapshot = policy._replace(stack=stack, single_stack=single)


class PolicyStudent(Student):
    """A policy that the user gave."""

    def __init__(self, trainer: Trainer):
        self.trainer, self.own = trainer, trainer.policy
        self.snapshot: Any = None
        self.rounds, self.states = 0, 0

    def driver(self, examples: Examples) -> FusedDriver:
        trainer = self.trainer
        how: Any = {"threads": trainer.threads, "compiled": trainer.compiled, "room": getattr(self.own, "room", ROOM)}
        self._driver = LockStepDriver(trainer.space, examples, trainer.reference, **how)
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
        """The policy that was kept, or its average, or a copy; without these methods the policy itself."""
        if self.snapshot is not None:
            return self.snapshot
        method = "averaged" if self.trainer.algorithm.returned == "average" else "frozen"
        return getattr(self.own, method)() if hasattr(self.own, method) else self.own

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


def adapted(policy: Any, chosen: Algorithm, options: Mapping[str, Any]) -> Algorithm:
    """The algorithm, adapted to a policy that the user gave; an error if the options ask for what it cannot do."""
    kind = type(checked(policy)).__name__
    if chosen.restart:
        raise ConfigurationError(
            f"{chosen.name} trains a new learner in every pass, which is not possible with policy=...: choose lols, "
            "aggrevate, dagger or cloning"
        )
    if chosen.returned == "drawn" and not hasattr(policy, "frozen"):
        raise ConfigurationError(f"returned='drawn' needs copies: give {kind} a method `frozen`, or choose 'last'")
    if chosen.returned == "average" and not hasattr(policy, "averaged"):
        if options.get("returned") == "average":
            raise ConfigurationError(
                f"returned='average' needs an average: give {kind} a method `averaged`, or choose 'last'"
            )
        return replace(chosen, returned="last")
    return chosen
