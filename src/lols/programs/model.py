"""A trained program: runs with the learned policy, and is saved and loaded like any model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lols.contract.frames import as_objects
from lols.engine.structures import FrozenPolicy, Plan
from lols.errors import ModelFileError, SpaceError
from lols.io.model_file import PICKLED, from_bytes, read_tensors, to_bytes, write_tensors
from lols.programs.choices import ActionChoices
from lols.programs.program import Program
from lols.programs.rolling import Following, FollowingTeacher
from lols.programs.scorer import Scorer
from lols.training.learning_state import LearningState, StoredState
from lols.training.model import Model, make_model


class ProgramModel:
    """A policy for a program.

    Parameters
    ----------
    program
        The program.
    policy, plan
        The weights, and how to follow them.
    about
        Algorithm, learner, seed and other facts, kept in the model file.
    report
        Figures of the training: progressive loss per pass, seconds, memory.
    learning
        What `lols.train(..., start=model)` goes on from; without it, from the weights alone.

    """

    def __init__(
        self,
        program: Program,
        policy: FrozenPolicy,
        plan: Plan,
        about: dict[str, Any] | None = None,
        report: dict[str, Any] | None = None,
        *,
        compiled: bool = True,
        learning: LearningState | StoredState | None = None,
    ):
        self.program, self.policy, self.plan, self.compiled = program, policy, plan, compiled
        self.learning = learning
        self.about, self.report = about or {}, report or {}
        self._parts: tuple[Any, Any, Any] | None = None

    def __repr__(self) -> str:
        return f"ProgramModel({self.program.name}, {self.program.actions} actions)"

    def predict(self, objects: Iterable[Any]) -> list[Any]:
        """The program's results for some objects."""
        return [result for result, _ in self._follow(Following, objects, truth=False)]

    def predict_one(self, obj: Any) -> Any:
        """The program's result for one object."""
        return self.predict([obj])[0]

    def losses(self, objects: Iterable[Any]) -> np.ndarray:
        """The loss of the policy on each object; the objects must have their truth."""
        return self._losses(Following, objects)

    def evaluate(self, objects: Iterable[Any]) -> float:
        """The mean loss of the policy on objects with their truth."""
        return float(self.losses(objects).mean())

    def reference_losses(self, objects: Iterable[Any]) -> np.ndarray:
        """The loss of the program's reference on each object, to compare the policy with."""
        return self._losses(FollowingTeacher, objects)

    def reference_needs_truth(self, objects: Iterable[Any]) -> bool:
        """Whether the program's reference cannot answer for each object when the truth is not available."""
        try:
            self._follow(FollowingTeacher, objects, truth=False)
        except Exception:  # of the program, whatever it is, where `reference_losses` has none
            return True
        return False

    def _losses(self, kind: type[Following], objects: Iterable[Any]) -> np.ndarray:
        losses = [loss for _, loss in self._follow(kind, objects, truth=True)]
        if not losses:
            raise SpaceError("there are no examples: give at least one")
        return np.array(losses, np.float64)

    def _follow(self, kind: type[Following], objects: Iterable[Any], *, truth: bool) -> list[tuple[Any, float]]:
        """Result and loss of the program for each object."""
        if self._parts is None:
            scorer = Scorer(self.compiled)
            scorer.follow(self.policy, bool(self.plan.random_ties))
            self._parts = (self.program, ActionChoices(self.program.actions, self.program.labels), scorer)
        search = kind(*self._parts)
        return [search.result(x, n, truth=truth, seed=self.plan.seed) for n, x in enumerate(as_objects(objects))]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the program by the name of its function, the policy as the content of a model file."""
        return {
            "program": self.program,
            "file": to_bytes("model", *self._contents()),
            "report": self.report,
            "compiled": self.compiled,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        content, how = from_bytes(state["file"], "model"), {"compiled": state["compiled"]}
        vars(self).update(vars(_made(PICKLED, *content, state["program"], **how)) | {"report": state["report"]})

    def save(self, path: str | os.PathLike[str], *, keep_state: bool = False) -> None:
        """Write the model file, atomically. It holds weights and facts, not the program.

        With `keep_state` it has the learner's state as well, so that learning goes on exactly.
        """
        write_tensors(path, "model", *self._contents(keep_state=keep_state))

    def _contents(self, *, keep_state: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        model = Model(self.program.space, self.policy, self.plan, self.about, learning=self.learning)
        task = {"name": "program", "labels": plain_labels(self.program.labels)}
        return model.contents(task, keep_state=keep_state)


def load_program(path: str | os.PathLike[str], program: Program, *, compiled: bool = True) -> ProgramModel:
    """Read a model file for a program; if its code has changed since, `about["program_changed"]` says so."""
    return _made(path, *read_tensors(path, "model"), program, compiled=compiled)


def _made(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    program: Program,
    *,
    compiled: bool,
) -> ProgramModel:
    task: Mapping[str, Any] = header.get("task") or {}
    if task.get("name") != "program":
        raise ModelFileError(f"{path}: not of a program; `lols inspect` says what it is")
    model = make_model(path, header, tensors, program.space, compiled=compiled)
    if task.get("labels") != plain_labels(program.labels):
        raise ModelFileError(f"{path}: trained with other labels, or in another order; load it with the same ones")
    about = {name: fact for name, fact in model.about.items() if name != "space_changed"}
    if about.get("program") not in (program.source, program.digest):
        about["program_changed"] = True
    return ProgramModel(program, model.policy, model.plan, about, compiled=compiled, learning=model.learning)


def plain_labels(labels: list[Any] | None) -> list[Any] | None:
    """Labels as values of JSON."""
    if labels is None:
        return None
    return [label if isinstance(label, str | int | float | None) else repr(label) for label in labels]
