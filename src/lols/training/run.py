"""One training run: the order of batches, β, what was seen so far, and checkpoints that resume bit for bit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.contract.digest import digest_functions
from lols.contract.examples import Examples
from lols.contract.hashing import mix
from lols.engine.structures import Batch
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.training.adaptive import AdaptiveBeta
from lols.training.algorithms import Algorithm, schedules
from lols.training.model import Model
from lols.training.students import LinearStudent, PolicyStudent, Student

if TYPE_CHECKING:
    from lols.training.trainer import Trainer

__all__ = ["TrainingRun", "plain", "shuffled"]

MOST_TOGETHER = 64


class TrainingRun:
    """The moving parts of one training run: everything here goes into a checkpoint."""

    def __init__(self, trainer: Trainer, examples: Examples):
        self.trainer, self.examples = trainer, examples
        chosen = trainer.algorithm
        self.total = trainer.passes * len(examples)
        self.batch_size = trainer.batch_size or max(1, min(MOST_TOGETHER, len(examples) // 50))
        self.student: Student = LinearStudent(trainer, self.total) if trainer.policy is None else PolicyStudent(trainer)
        self.adaptive = AdaptiveBeta()
        self.schedules = schedules(chosen)
        self.pass_, self.offset = 0, 0
        self.sums = np.zeros((trainer.passes, 2))
        # The online-to-batch conversion draws a round; knowing it in advance, one copy is enough.
        self.drawn_round = mix(mix(trainer.seed, 0xD12A), 1) % self.total + 1 if chosen.returned == "drawn" else 0
        self.steps_done = 0

    # --- the order of things ---

    def batches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Batches of example numbers with their rounds, from where the run stands."""
        count, size = len(self.examples), self.batch_size
        while self.pass_ < self.trainer.passes:
            order = self._order(self.pass_)
            if self.offset == 0:
                self.student.begin_pass()
            while self.offset < count:
                until = min(self.offset + size, count)
                at = np.arange(self.offset, until)
                self._next = (self.pass_, until) if until < count else (self.pass_ + 1, 0)
                yield order[at], self.pass_ * count + at
                if self.offset == 0:
                    break

    def _order(self, number: int) -> np.ndarray:
        count = len(self.examples)
        if not self.trainer.shuffle:
            return np.arange(count)
        return shuffled(count, mix(mix(self.trainer.seed, 0x0DE2), number), self.trainer.neighbours)

    @property
    def done(self) -> int:
        """Rounds done so far."""
        return self.pass_ * len(self.examples) + self.offset

    @property
    def way(self) -> int:
        """How far it has come, as the progress bar counts."""
        return self.steps_done

    def driver(self) -> Any:
        """What takes the examples through stage 1, to be used with `with`."""
        return self.student.driver(self.examples)

    @property
    def progressive_loss(self) -> float:
        """Mean loss of the roll-ins of this pass, each made before its example was learned from."""
        number = min(self.pass_ if self.offset else self.pass_ - 1, self.trainer.passes - 1)
        return float(self.sums[number, 0] / max(self.sums[number, 1], 1.0))

    def betas(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β of roll-out and roll-in for the next rounds."""
        known = self.student.reference_weight()
        if known is not None:
            return np.full(rounds.size, known), np.full(rounds.size, known)
        out, into = (
            np.full(rounds.size, self.adaptive.beta) if s is None else s(rounds, self.total) for s in self.schedules
        )
        return out, into

    def learn(self, batch: Batch) -> None:
        """The second stage, and the bookkeeping."""
        self.student.learn(batch)
        self.steps_done += int(batch.lessons.filled.sum())
        self.sums[self.pass_] += (batch.losses[:, 0].sum(), batch.losses.shape[0])
        if self.trainer.plan.compare:
            self.adaptive.observe(batch.losses)
        before = self.done
        self.pass_, self.offset = self._next
        if before < self.drawn_round <= self.done:
            self.student.keep()
        if self.offset == 0:
            self.student.end_pass(len(self.examples))

    # --- what comes out ---

    def model(self) -> Model:
        """The model as it is now."""
        trainer = self.trainer
        about = {
            "algorithm": plain(trainer.algorithm),
            "learner": self.student.describe(),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "examples": len(self.examples),
            "reference": trainer.reference.name,
            "beta": self.adaptive.beta if trainer.plan.compare else None,
        }
        seen = self.sums[self.sums[:, 1] > 0]
        report = {
            "progressive_loss": (seen[:, 0] / seen[:, 1]).tolist(),
            "beta": float(self.betas(np.array([max(self.done - 1, 0)]))[0][0]),
            **self.student.report(),
        }
        threads, compiled = trainer.threads, trainer.compiled
        return Model(
            trainer.space, self.student.policy(), trainer.plan, about, report, threads=threads, compiled=compiled
        )

    # --- checkpoints ---

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run."""
        trainer = self.trainer
        return {
            "algorithm": plain(trainer.algorithm),
            "learner": self.student.identity(),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "shuffle": trainer.shuffle,
            "neighbours": trainer.neighbours,
            **self._task_and_data(),
        }

    def _task_and_data(self) -> dict[str, Any]:
        """The part of it that says what is learned, and from what."""
        digest = hashlib.sha256()
        for column in (*self.examples.x, *self.examples.y, self.examples.items):
            for part in column:
                digest.update(np.ascontiguousarray(part).tobytes())
        return {
            "space": digest_functions(self.trainer.space.functions()),
            "reference": digest_functions(self.trainer.reference.functions()),
            "data": digest.hexdigest(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        header = {
            "identity": self._identity(),
            "pass": self.pass_,
            "offset": self.offset,
            "rivalry": self.adaptive.state(),
        }
        write_tensors(path, "checkpoint", header, self.student.state() | {"sums": self.sums})

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint."""
        header, tensors = read_tensors(path, "checkpoint")
        found, mine = header.get("identity", {}), self._identity()
        for name, value in mine.items():
            if found.get(name) != value:
                raise ModelFileError(
                    f"{path}: made with another {name}; resume with the same data and options, or delete it"
                )
        try:
            self._take_over(header, tensors)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelFileError(f"{path}: the checkpoint is damaged ({type(error).__name__}: {error})") from error

    def _take_over(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        self.student.load(tensors)
        if tensors["sums"].shape != self.sums.shape:
            raise ValueError(f"'sums' has shape {tensors['sums'].shape}")
        self.sums = tensors["sums"].copy()
        self.pass_, self.offset = int(header["pass"]), int(header["offset"])
        self.adaptive = AdaptiveBeta(**header["rivalry"])


def plain(chosen: Algorithm) -> dict[str, Any]:
    """An algorithm as plain values, for model files."""
    return {k: v if v is None or isinstance(v, bool | int | float) else str(v) for k, v in vars(chosen).items()}


def shuffled(count: int, key: int, neighbours: int = 1) -> np.ndarray:
    """The numbers below `count` in an order of their own for each key, runs of `neighbours` left together.

    >>> shuffled(6, 1).tolist(), shuffled(6, 1, neighbours=2).tolist()
    ([3, 5, 2, 0, 1, 4], [4, 5, 0, 1, 2, 3])
    """
    generator = np.random.Philox(key=key & ((1 << 64) - 1))
    order = np.argsort(generator.random_raw(-(-count // neighbours)), kind="stable")
    if neighbours == 1:
        return order
    runs = (order[:, np.newaxis] * neighbours + np.arange(neighbours)).ravel()
    return runs[runs < count]
