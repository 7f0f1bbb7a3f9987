"""Training a program: passes, algorithms and checkpoints of `lols.Trainer`, over objects instead of columns."""

from __future__ import annotations

import hashlib
from typing import Any

from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.engine.drivers.fused import KernelCall
from lols.errors import ConfigurationError
from lols.policies.own import as_policy
from lols.policies.policy import Policy
from lols.programs.driver import TRICKS, ProgramDriver
from lols.programs.model import ProgramModel, plain_labels
from lols.programs.program import Program
from lols.training.learning import Learning
from lols.training.progress import Progress
from lols.training.sources import InMemory
from lols.training.trainer import Trainer


class ProgramObjects(InMemory):
    """Objects that a program decides on, instead of examples in columns."""

    def driver(self, policy: Policy, recipe: Any, examples: Any) -> Any:
        """The driver that runs the program."""
        return ProgramDriver(recipe.program, examples, recipe.tricks, recipe.compiled)

    def calls(self, policy: Policy, driver: Any, recipe: Any) -> list[KernelCall]:
        """A program is not compiled."""
        return []

    def progress(self, learning: Learning) -> int:
        """The progress, in objects: the number of decisions is not known in advance."""
        return learning.done

    def digest(self) -> str:
        """A digest of the objects; those whose `repr` is an address are not compared."""
        digest = hashlib.sha256(str(len(self.examples)).encode())
        for number, obj in enumerate(self.examples):
            shown = repr(obj)
            digest.update((f"{number}" if " at 0x" in shown else shown).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def identity(self, recipe: Any) -> dict[str, Any]:
        """Program and objects, to compare with a checkpoint."""
        return {
            "program": recipe.program.source,
            "set of labels": plain_labels(recipe.program.labels),
            "data": self.digest(),
        }


class ProgramTrainer(Trainer):
    """Trains a policy for a program; the options are those of `lols.Trainer`.

    Parameters
    ----------
    program
        The program; it gives its reference at each decision.
    tricks
        Speed tricks to switch off, for example `{"merge": False}`; the result is the same without them.
    options
        Algorithm, learner, passes, batch size, seed, ... as for `lols.Trainer`. Programs run in one thread.

    """

    IN_MEMORY = ProgramObjects

    def __init__(self, program: Program, *, tricks: dict[str, bool] | None = None, **options: Any):
        unknown = set(tricks or {}) - set(TRICKS)
        if unknown:
            raise ConfigurationError(f"unknown trick '{min(unknown)}' of programs: choose from {', '.join(TRICKS)}")
        given = options.get("policy")
        if given is not None and not as_policy(given).has_weights:
            raise ConfigurationError("policy has no effect: programs are trained with the linear learner")
        if options.get("threads") not in (None, 1, "auto"):
            raise ConfigurationError("threads has no effect: a program is plain Python and runs in one thread")
        super().__init__(program.space, program.teacher, **options)
        if self.settings.slack is not None:
            raise ConfigurationError("slack has no effect: programs learn from all states")
        self.program = program
        self.tricks = dict.fromkeys(TRICKS, True) | (tricks or {})
        self.plan = self.plan._replace(closed_form=self.tricks["closed_form"])

    def untrained(self) -> ProgramModel:  # type: ignore[override]
        """A model that has learned nothing, to compare with, or to follow the reference."""
        model = super().untrained()
        about = {"program": self.program.source}
        return ProgramModel(self.program, model.policy, model.plan, about, compiled=self.compiled)

    def look_over(self, examples: Any, driver: Any) -> None:
        """Programs check their arguments at each call."""

    def encoded(self, data: Any, *, labelled: bool = True) -> Any:
        """The objects themselves, in a list."""
        objects = list(as_objects(data))
        if labelled and not objects:
            raise ConfigurationError("there are no examples to learn from: give at least one")
        return objects

    def model_of(self, learning: Learning) -> ProgramModel:  # type: ignore[override]
        """What was learned so far as a model."""
        model = super().model_of(learning)
        about = model.about | {"program": self.program.source}
        return ProgramModel(self.program, model.policy, model.plan, about, model.report, compiled=model.compiled)

    def bar(self, examples: Any, wanted: bool | None = None, title: str = "training", unit: str = "examples") -> Any:
        """A progress bar that counts objects, because the number of decisions is not known in advance."""
        return Progress(wanted, self.passes * len(examples), title, unit, self.passes)


def program_trainer(program: Program, data: Any, reference: Any = None, **options: Any) -> ProgramTrainer:
    """The trainer of `lols.train` for a program and its data."""
    if isinstance(data, Examples):
        raise ConfigurationError("the data are Examples in columns: give a program your own objects")
    if reference is not None:
        raise ConfigurationError("reference has no effect: a program gives its reference at each call of predict")
    return ProgramTrainer(program, **options)


def check_same_program(program: Program, start: Any) -> None:
    """Raise an error if a model to go on from is not of a program with the same labels."""
    if start is None:
        return
    if not isinstance(start, ProgramModel):
        raise ConfigurationError(f"start is of type {type(start).__name__}: give a model of this program")
    if (start.program.actions is None) != (program.actions is None):
        was = "candidates: go on with a program that chooses among them"
        if program.actions is None:
            was = "actions: go on with a program that predicts them"
        raise ConfigurationError(f"start was trained for {was}")
    if plain_labels(start.program.labels) != plain_labels(program.labels):
        raise ConfigurationError("start was trained with other labels, or in another order: go on with the same ones")
