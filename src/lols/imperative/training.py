"""Training a program: the passes, algorithms and checkpoints of `lols.Trainer`, over objects instead of columns."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lols.engine.compiling import compile_seconds
from lols.errors import ConfigurationError
from lols.examples import Examples
from lols.frames import as_objects
from lols.imperative.driver import TRICKS, ProgramDriver
from lols.imperative.model import ProgramModel, plain_labels
from lols.imperative.program import Program
from lols.progress import Progress
from lols.trainer import Trainer
from lols.training_run import TrainingRun, plain

__all__ = ["ProgramTrainer", "train_program"]


class ProgramTrainer(Trainer):
    """Trains a policy for a program; the options are those of `lols.Trainer`.

    Parameters
    ----------
    program
        The program; it names its reference at each decision.
    tricks
        Speed tricks to switch off, for example `{"merge": False}`; the result is the same without them.
    options
        Algorithm, learner, passes, batch size, seed, ... as for `lols.Trainer`. Programs run in one thread.

    """

    def __init__(self, program: Program, *, tricks: dict[str, bool] | None = None, **options: Any):
        unknown = set(tricks or {}) - set(TRICKS)
        if unknown:
            raise ConfigurationError(f"unknown trick '{min(unknown)}' of programs: choose from {', '.join(TRICKS)}")
        if options.get("policy") is not None:
            raise ConfigurationError("policy has no effect: programs are trained with the linear learner")
        if options.get("threads") not in (None, 1):
            raise ConfigurationError("threads has no effect: a program is plain Python and runs in one thread")
        super().__init__(program.space, program.teacher, **options)
        if self.settings.slack is not None:
            raise ConfigurationError("slack has no effect: a program's states are all learned from")
        self.program = program
        self.tricks = dict.fromkeys(TRICKS, True) | (tricks or {})
        self.plan = self.plan._replace(closed_form=self.tricks["closed_form"])

    def fit(  # type: ignore[override]
        self,
        data: Iterable[Any],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
        progress: bool | Progress | None = None,
        after_pass: Callable[[int, ProgramModel], bool | None] | None = None,
    ) -> ProgramModel:
        """Train on objects, and give the model; the options are those of `lols.Trainer.fit`."""
        if resume and checkpoint is None:
            raise ConfigurationError("resume has no effect: name the checkpoint file")
        began, compiling = time.perf_counter(), compile_seconds()
        objects = list(as_objects(data))
        if not objects:
            raise ConfigurationError("there are no examples to learn from")
        run = ProgramRun(self, objects)
        if resume and checkpoint is not None and Path(checkpoint).exists():
            run.restore(checkpoint)
        saved = time.monotonic()
        driver = ProgramDriver(self.program, objects, self.tricks, self.compiled)
        bar = progress if isinstance(progress, Progress) else self._bar(len(objects), progress)
        with bar:
            for indices, rounds in run.batches():
                beta, beta_in = run.betas(rounds)
                run.learn(driver.collect(indices, rounds, run.student.rolling_policy(), self.plan, beta, beta_in))
                bar.advance(run.done, loss=run.progressive_loss)
                if checkpoint is not None and time.monotonic() - saved >= checkpoint_every:
                    run.save(checkpoint)
                    saved = time.monotonic()
                if run.offset == 0 and after_pass is not None and after_pass(run.pass_ - 1, run.model()):
                    break
        self.learner = run.student.learner
        model = run.model()
        compiling = compile_seconds() - compiling
        model.report |= {"seconds_total": time.perf_counter() - began, "seconds_compiling": compiling}
        return model

    def _bar(self, count: int, wanted: bool | None) -> Progress:
        return Progress(wanted, self.passes * count, "training", "examples")


class ProgramRun(TrainingRun):
    """One training run of a program."""

    def __init__(self, trainer: ProgramTrainer, objects: Sequence[Any]):
        super().__init__(trainer, objects)  # type: ignore[arg-type]
        self.program, self.objects = trainer.program, objects

    def model(self) -> ProgramModel:  # type: ignore[override]
        """The model as it is now."""
        made = super().model()
        about = made.about | {"program": self.program.digest}
        return ProgramModel(self.program, made.policy, made.plan, about, made.report, compiled=made.compiled)

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run; objects that do not show what they hold pass."""
        trainer, digest = self.trainer, hashlib.sha256(str(len(self.objects)).encode())
        for number, obj in enumerate(self.objects):
            shown = repr(obj)
            digest.update((f"{number}" if " at 0x" in shown else shown).encode("utf-8", "surrogatepass"))
        return {
            "algorithm": plain(trainer.algorithm),
            "learner": self.student.identity(),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "shuffle": trainer.shuffle,
            "neighbours": trainer.neighbours,
            "program": self.program.digest,
            "set of labels": plain_labels(self.program.labels),
            "data": digest.hexdigest(),
        }


def train_program(program: Program, data: Any, reference: Any = None, **options: Any) -> ProgramModel:
    """What `lols.train` does with a program."""
    if isinstance(data, Examples):
        raise ConfigurationError("these are Examples in columns: a program is given your own objects")
    if reference is not None:
        raise ConfigurationError("reference has no effect: a program names its reference at each call of predict")
    names = ("checkpoint", "checkpoint_every", "resume", "progress", "after_pass")
    fitting = {name: options.pop(name) for name in names if name in options}
    return ProgramTrainer(program, **options).fit(data, **fitting)
