"""What `lols.optimise` needs of a problem: trainers, encoded instances, and the heuristic as a model like any other."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import as_space, as_teacher
from lols.contract.threads import chosen_threads
from lols.errors import ConfigurationError, SpaceError
from lols.programs.model import ProgramModel
from lols.programs.program import Program
from lols.programs.training import ProgramTrainer, check_same_program
from lols.training.model import Model
from lols.training.trainer import Trainer


class HeuristicProblem(Protocol):
    """A task or a program, with its heuristic."""

    reference: Reference | None
    draws_by: str  # where a random heuristic gets its random numbers from

    def encoded(self, objects: Sequence[Any]) -> Any:
        """Instances as trainers and models take them; their loss must be known."""

    def most(self, data: Any) -> tuple[float, float]:
        """How many steps and actions encoded instances have at most."""

    def trainer(self, **options: Any) -> Trainer:
        """A trainer that the heuristic teaches."""

    def keeping(self, model: Any) -> Any:
        """The same model, deciding by the heuristic."""

    def learned(self, model: Any) -> Any:
        """The same model, deciding by its policy."""

    def check_start(self, model: Any) -> None:
        """Raise an error if a model is not of this problem."""


class SpaceProblem:
    """A task, or a search space with a reference."""

    draws_by = "its fourth argument"

    def __init__(self, task: Any, reference: Any, threads: Any):
        self.space: SearchSpace = as_space(task)
        self.reference: Reference | None = as_teacher(reference, self.space)
        self.threads = chosen_threads(threads)

    def encoded(self, objects: Sequence[Any]) -> Examples:
        """Examples in columns; the loss must be known."""
        examples = Examples(self.space, objects)
        if not examples.has_truth:
            raise SpaceError(
                "`encode` gave no truth `y`, so the loss of a result is unknown: return lols.Example(x, y) with what "
                "`loss` and `cost` read of `y`"
            )
        return examples

    def most(self, data: Examples) -> tuple[float, float]:
        """How many steps and actions encoded instances have at most."""
        return int(data.steps.max()), data.most_actions

    def trainer(self, **options: Any) -> Trainer:
        """A trainer that the heuristic teaches."""
        return Trainer(self.space, self.reference, threads=self.threads, **options)

    def keeping(self, model: Model) -> Model:
        """The same model, deciding by the heuristic."""
        return _with(model, self.reference)

    def learned(self, model: Model) -> Model:
        """The same model, deciding by its policy."""
        return _with(model, None)

    def check_start(self, model: Any) -> None:
        """Raise an error if a model is not of this task."""
        if not isinstance(model, Model):
            raise ConfigurationError(
                f"resume is of type {type(model).__name__}: give what lols.optimise returned, or a model of it"
            )
        if (model.space.name, model.space.fixed_actions) != (self.space.name, self.space.fixed_actions):
            raise ConfigurationError(
                f"resume is a model of {model.space.name}, and this is {self.space.name}: give one of the same task"
            )


class ProgramProblem:
    """A program, which names its reference at each decision."""

    reference: Reference | None = None
    draws_by = "an argument of its own"

    def __init__(self, program: Program, reference: Any, threads: Any):
        if reference is not None:
            raise ConfigurationError(
                "reference has no effect: a program gives its reference at each call of predict; leave it out"
            )
        self.program, self.threads = program, threads
        self.trainer(passes=1)  # which refuses threads

    def encoded(self, objects: Sequence[Any]) -> Sequence[Any]:
        """The instances themselves."""
        return objects

    def most(self, data: Any) -> tuple[float, float]:
        """How many steps and actions instances have at most; of steps, a program does not say."""
        return math.inf, ProgramTrainer(self.program, passes=1).untrained().most_actions(data)

    def trainer(self, **options: Any) -> Trainer:
        """A trainer that the program's reference teaches."""
        return ProgramTrainer(self.program, threads=self.threads, **options)

    def keeping(self, model: ProgramModel) -> ProgramModel:
        """The same model, deciding by the heuristic."""
        return _with(model, True)

    def learned(self, model: ProgramModel) -> ProgramModel:
        """The same model, deciding by its policy."""
        return _with(model, False)

    def check_start(self, model: Any) -> None:
        """Raise an error if a model is not of a program with the same actions."""
        try:
            check_same_program(self.program, model)
        except ConfigurationError as error:
            raise ConfigurationError(str(error).replace("start", "resume", 1)) from None


def problem_of(task: Any, reference: Any, threads: Any) -> HeuristicProblem:
    """The problem of a task, a search space or a program."""
    kind = ProgramProblem if isinstance(task, Program) else SpaceProblem
    problem: HeuristicProblem = kind(task, reference, threads)
    return problem


def _with(model: Any, kept: Any) -> Any:
    """A copy of a model that has kept this reference."""
    other = copy.copy(model)
    other.kept_reference = kept
    return other
