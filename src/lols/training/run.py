"""One training run: the order of batches, β, progress so far, and checkpoints that resume bit for bit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.identity import LEARNING, identity_of
from lols.engine.structures import Batch
from lols.errors import LolsError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.kernels.hashing import mix
from lols.training.adaptive import AdaptiveBeta
from lols.training.algorithms import Algorithm, schedules
from lols.training.learning_state import LearningState
from lols.training.mixing import shards_and_legs
from lols.training.model import Model
from lols.training.order import shuffled
from lols.training.students import LinearStudent, PolicyStudent, Student

if TYPE_CHECKING:
    from lols.training.trainer import Trainer


class TrainingRun:
    """The state of one training run, which a checkpoint contains."""

    def __init__(self, trainer: Trainer, examples: Examples):
        self.trainer, self.examples = trainer, examples
        self.first_round, self.first_pass = 0, 0  # where something is gone on from
        self.start: LearningState | None = None
        self._began: str | None = None
        chosen = trainer.algorithm
        self.count = len(examples)
        self.total = trainer.passes * self.count
        self.batch_size: int = trainer.together(len(examples))
        self.begin_again()
        self.adaptive = AdaptiveBeta()
        self.schedules = schedules(chosen)
        self.pass_, self.offset = 0, 0
        self.sums = np.zeros((trainer.passes, 2))
        # The online-to-batch conversion draws a round; it is drawn in advance, so that one copy is enough.
        self.drawn_round = mix(mix(trainer.seed, 0xD12A), 1) % self.total + 1 if chosen.returned == "drawn" else 0
        self.steps_done = 0

    def go_on(self, start: LearningState) -> None:
        """Begin where other training has ended: rounds and passes are counted on."""
        self.start, self._began = start, start.digest()
        self.first_round, self.first_pass, self.adaptive = start.rounds, start.passes, replace(start.adaptive)
        self.begin_again()

    def state(self) -> LearningState | None:
        """What learning can go on from; None where a policy is not the linear learner's."""
        if not isinstance(self.student, LinearStudent) or self.student.mixture is not None:
            return None
        return LearningState(self.student.learner, self.first_pass + self.pass_, replace(self.adaptive))

    def begin_again(self) -> None:
        """Begin with a student that has learned nothing."""
        trainer = self.trainer
        self.student: Student = LinearStudent(trainer, self.total) if trainer.policy is None else PolicyStudent(trainer)
        if self.start is not None and isinstance(self.student, LinearStudent):
            self.student.learner = self.start.learner

    # --- batches ---

    def batches(
        self, rearranged: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Batches of example numbers with their rounds, from the current position on."""
        count, size = len(self.examples), self.batch_size
        while self.pass_ < self.trainer.passes:
            order = rearranged(self._order(self.pass_))
            if self.offset == 0:
                self.student.begin_pass()
            while self.offset < count:
                until = min(self.offset + size, count)
                at = np.arange(self.offset, until)
                self._next = (self.pass_, until) if until < count else (self.pass_ + 1, 0)
                yield order[at], self.first_round + self.pass_ * count + at
                if self.offset == 0:
                    break

    def _order(self, number: int) -> np.ndarray:
        count = len(self.examples)
        if not self.trainer.shuffle:
            return np.arange(count)
        return shuffled(count, mix(mix(self.trainer.seed, 0x0DE2), self.first_pass + number), self.trainer.neighbours)

    @property
    def done(self) -> int:
        """Rounds done so far."""
        return self.pass_ * len(self.examples) + self.offset

    @property
    def data(self) -> Any:
        """What shards are made of."""
        return self.examples

    @property
    def progress(self) -> int:
        """How far the run is, in the unit of the progress bar."""
        return self.steps_done

    def driver(self) -> Any:
        """The driver that searches the examples, to be used in a `with` statement."""
        return self.student.driver(self.examples)

    @property
    def progressive_loss(self) -> float:
        """Mean loss of the roll-ins of this pass, each before its example was learned from."""
        number = min(self.pass_ if self.offset else self.pass_ - 1, self.trainer.passes - 1)
        return float(self.sums[number, 0] / max(self.sums[number, 1], 1.0))

    def betas(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β of roll-out and roll-in for the next rounds."""
        weight = self.student.reference_weight()
        if weight is not None:
            return np.full(rounds.size, weight), np.full(rounds.size, weight)
        out, into = (
            np.full(rounds.size, self.adaptive.beta) if s is None else s(rounds, self.first_round + self.total)
            for s in self.schedules
        )
        return out, into

    def learn(self, batch: Batch) -> None:
        """Learn from the lessons of a batch, and update the state of the run."""
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

    # --- the model ---

    def model(self) -> Model:
        """The model as it is now."""
        trainer = self.trainer
        about = {
            "algorithm": plain(trainer.algorithm),
            "learner": self.student.describe(),
            "passes": trainer.passes,
            "passes_done": self.pass_,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "examples": self.count,
            "reference": trainer.reference.name,
            "beta": self.adaptive.beta if trainer.plan.compare else None,
        }
        seen = self.sums[self.sums[:, 1] > 0]
        report = {
            "progressive_loss": (seen[:, 0] / seen[:, 1]).tolist(),
            "beta": float(self.betas(np.array([self.first_round + max(self.done - 1, 0)]))[0][0]),
            **self.student.report(),
        }
        threads, compiled = trainer.threads, trainer.compiled
        return Model(
            trainer.space, self.student.policy(), trainer.plan, about, report, threads=threads, compiled=compiled
        )

    # --- checkpoints ---

    def _identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to belong to this run."""
        trainer = self.trainer
        return {
            "version of learning": LEARNING,
            "algorithm": plain(trainer.algorithm),
            "learner": self.student.identity(),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "shuffle": trainer.shuffle,
            "neighbours": trainer.neighbours,
            **({} if self._began is None else {"start": self._began}),
            **self._shards(),
            **self._task_and_data(),
        }

    def _shards(self) -> dict[str, Any]:
        """How the data are cut, unless the run is exact."""
        engine = self.trainer.engine
        if engine.sync == "exact":
            return {}
        shards, (first, others) = shards_and_legs(engine)
        return {"number of shards": shards, "number of legs": others, "number of legs in the first pass": first}

    def _task_and_data(self) -> dict[str, Any]:
        """Digests of the space, the reference and the data."""
        return {
            "space": identity_of(self.trainer.space.functions()),
            "reference": identity_of(self.trainer.reference.functions()),
            "data": self.data_digest(),
        }

    def data_digest(self) -> str:
        """A digest of the examples."""
        digest = hashlib.sha256()
        for column in (*self.examples.x, *self.examples.y, self.examples.items):
            for part in column:
                digest.update(np.ascontiguousarray(part).ravel().data)
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str], history: Sequence[Any] = ()) -> None:
        """Write a checkpoint, with what was found after the passes so far."""
        header = {
            "identity": self._identity(),
            "pass": self.pass_,
            "offset": self.offset,
            "rivalry": self.adaptive.state(),
            "history": list(history),
        }
        write_tensors(path, "checkpoint", header, self.student.state() | {"sums": self.sums})

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint."""
        header, tensors = read_tensors(path, "checkpoint")
        identity = header.get("identity")
        identity = identity if isinstance(identity, dict) else {}
        if "version of learning" not in identity:
            raise ModelFileError(
                f"{path}: a checkpoint of lols 0.2 or before: train on with that version, or delete it"
            )
        for name, value in self._identity().items():
            if identity.get(name) != value:
                raise ModelFileError(
                    f"{path}: made with another {name}; resume with the same data and options, or delete it"
                )
        rivalry = header.get("rivalry")
        if self.trainer.plan.compare and isinstance(rivalry, dict) and not rivalry.keys() & {"squares", "weights"}:
            raise ModelFileError(f"{path}: made by a version with another beta='auto'; delete it and train anew")
        try:
            self._take_over(header, tensors)
        except LolsError as error:
            raise ModelFileError(f"{path}: {error}") from error
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RuntimeError) as error:
            raise ModelFileError(f"{path}: the checkpoint is damaged ({type(error).__name__}: {error})") from error

    def _take_over(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        self.student.load(tensors)
        if tensors["sums"].shape != self.sums.shape or tensors["sums"].dtype != self.sums.dtype:
            raise ValueError(f"'sums' has shape {tensors['sums'].shape}")
        self.sums = tensors["sums"].copy()
        self.pass_, self.offset = int(header["pass"]), int(header["offset"])
        legs = "number of legs" if self.pass_ else "number of legs in the first pass"
        most = self._shards().get(legs, len(self.examples))
        if not (0 <= self.pass_ <= self.trainer.passes and 0 <= self.offset < most):
            raise ValueError(f"it is at example {self.offset} of pass {self.pass_}")
        self.adaptive = AdaptiveBeta(**header["rivalry"])
        if not all(0.0 <= number < np.inf for number in self.adaptive.state().values()):
            raise ValueError(f"'rivalry' is {header['rivalry']}")


def plain(chosen: Algorithm) -> dict[str, Any]:
    """An algorithm as plain values, for model files."""
    return {k: v if v is None or isinstance(v, bool | int | float) else str(v) for k, v in vars(chosen).items()}
