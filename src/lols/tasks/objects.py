"""Estimators of your own: a `lols.Task` on plain Python objects, with all verbs on files.

A subclass names the task. Files have an object in each line, which is the line itself, and predictions are lines as
well; a subclass may read and write them in other ways. With a line in `lols.tasks.registry.ESTIMATORS` it can be
trained, predicted with, evaluated, explained, inspected and certified on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.sharing import on_snapshot
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_teacher
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError
from lols.io.opening import opened
from lols.tasks.case import Case
from lols.tasks.estimator import Estimator
from lols.tasks.problem import Naming, Problem
from lols.tasks.replay import ReplayedFile
from lols.tasks.verbs import CertifyOptions, FileLayout, PageOptions, Scores, VerbReport, Verbs
from lols.training.calibration import Judged
from lols.training.clock import Clock
from lols.training.confidence import judged_steps
from lols.training.model import Model

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ObjectData:
    """Python objects."""

    objects: list[Any]
    unit: str = "examples"  # what they are called
    layout: Any = None  # how the files were laid out
    seconds: float = 0.0  # that reading took

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.objects)

    def check(self) -> None:
        """Raise an error if there are none."""
        if not self.objects:
            raise LolsError(f"there are no {self.unit} to learn from: give at least one")

    def scan(self, *, stream: bool = False) -> ObjectData:
        """Themselves: nothing has to be known of them before."""
        return self

    def joined(self, others: Sequence[ObjectData]) -> ObjectData:
        """All of several files."""
        return replace(self, objects=[each for data in (self, *others) for each in data.objects])

    def cut(self, values: Any) -> Any:
        """There is one output for each."""
        return values

    def remarks(self, held: Any) -> list[str]:
        """How many there are."""
        return [f"{len(self):,} {self.unit}"]

    def facts(self) -> dict[str, Any]:
        """The same, for reports."""
        return {"examples": len(self)}


@dataclass(frozen=True)
class ObjectFormat:
    """Files of objects.

    Parameters
    ----------
    parse, write_text
        The objects in the text of a file, and the text of objects with their outputs.
    layout
        Where things are in the files.
    unit
        What objects are called.

    """

    parse: Callable[[str, Any], list[Any]]
    write_text: Callable[[Sequence[Any], Sequence[Any]], str]
    layout: Any
    unit: str

    def settled(self, paths: Sequence[Any]) -> Self:
        """The same: nothing is left open."""
        return self

    def agreed(self, known: Any) -> Self:
        """The same."""
        return self

    def objects(self, path: Any) -> list[Any]:
        """The objects in a file."""
        with opened(path) as stream:
            data = stream.read()
        try:
            objects = self.parse(data.decode("utf-8"), self.layout)
        except UnicodeDecodeError as error:
            raise LolsError(f"{path}: byte {error.start + 1} is not UTF-8; convert the file") from None
        return [objects[k] for k in path.chosen(len(objects))] if isinstance(path, ReplayedFile) else objects

    def read(self, paths: Sequence[Any]) -> ObjectData:
        """The objects in files."""
        clock = Clock()
        objects = [each for path in paths for each in self.objects(path)]
        return ObjectData(objects, self.unit, self.layout, clock.working())

    def scan(self, path: Any) -> ObjectData:
        """The objects in one file."""
        return self.read([path])

    def pieces(self, path: Any) -> Iterator[ObjectData]:
        """A file as one piece."""
        yield self.read([path])

    def inputs(self, piece: ObjectData) -> ObjectData:
        """The objects."""
        return piece

    def write(self, piece: ObjectData, problem: Any, outputs: Any, sure: Any) -> bytes:
        """The text with outputs."""
        return self.write_text(piece.objects, outputs or []).encode()


class ObjectTask(Problem):
    """The problem of a search space that is the user's own; its own teacher is the only one, and called optimal."""

    def __init__(self, space: SearchSpace):
        self._space = space

    @classmethod
    def propose(cls, scan: Any, options: Any) -> Self:
        """The problem of the estimator's task, whatever the data are."""
        return cls(options.TASK.space)

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self._space

    def reference(self, name: str) -> Reference:
        """The teacher."""
        if name != "optimal":
            raise ConfigurationError(f"unknown reference '{name}': the task has one, which is called optimal")
        return as_teacher(None, self.space)

    def examples_of(self, data: ObjectData, *, truth: bool = True) -> Examples:
        """The objects as the task encodes them."""
        return Examples(self.space, data.objects, truth=truth and self.space.truth_for(self.space.teacher))

    def decides_like(self, other: Problem) -> bool:
        """Whether the space is the same."""
        return self.space is other.space

    def predicted(self, model: Model, data: ObjectData, *, confidence: bool = False) -> tuple[Any, Any]:
        """The outputs of the space, and the confidence in each step."""
        found = model.predict(data.objects, confidence=confidence)
        return found if confidence else (found, None)

    def judged(self, model: Model, examples: Examples, data: Any, chosen: np.ndarray | None = None) -> Judged:
        """Which steps are right: no other would have cost less, had the teacher completed the result."""
        return judged_steps(model, examples, self.reference("optimal"))

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Nothing: the functions of a task are in no model file."""
        return {}, {}


@dataclass(frozen=True)
class ObjectScores:
    """The average loss."""

    examples: int
    loss: float
    reliability: ClassVar[None] = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return asdict(self)

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print it."""
        from lols.tasks.show import write

        write(console, f"loss {self.loss:.4f} per example on {self.examples:,} examples")


class ObjectEstimator(Estimator):
    """The base of estimators whose examples are plain Python objects, by default the lines of a file.

    A subclass defines the first two of the following. Its name is that of the command, in small letters, and the first
    line of its docstring says what its files are, unless it has `VERBS` of its own.
    """

    PROBLEM = ObjectTask
    BY_WORKERS = False
    TASK: ClassVar[type[Task]]  # the search problem, with a teacher of its own
    SAMPLE: ClassVar[str]  # the text of a tiny labelled file, by which `lols warmup` has things compiled
    ACTIONS: ClassVar[Sequence[str] | None] = None  # what the actions are called; by default by their numbers
    HELP = "Train a model, and write a model file."

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "VERBS"):
            about = (cls.__doc__ or "").partition("\n")[0]
            cls.VERBS = Verbs(
                cls.__name__.lower(), "lines", about, options={"certify": CertifyOptions, "explain": PageOptions}
            )

    def read(self, text: str, layout: Any) -> list[Any]:
        """The objects in the text of a file, as the task encodes them; by default one for each line that has text."""
        return [self.read_line(line) for line in text.splitlines() if line.strip()]

    def read_line(self, line: str) -> Any:
        """The object in a line: by default the line itself."""
        return line

    def text(self, objects: Sequence[Any], outputs: Sequence[Any]) -> str:
        """The text of a file of objects with the outputs that were predicted for them; by default a line for each."""
        lists = (output if isinstance(output, list | tuple) else [output] for output in outputs)
        return "".join(" ".join(map(str, values)) + "\n" for values in lists)

    # --- objects as data ---

    def _data(self, X: Sequence[Any], y: None = None) -> ObjectData:
        return ObjectData(list(X), self.VERBS.unit)

    def _labelled(self, given: Sequence[Any]) -> ObjectData:
        return self._data(given)

    def _certified(self, data: Sequence[Any]) -> ObjectData:
        return self._data(data)

    def _format(self, layout: Any, **training: Any) -> Any:
        return ObjectFormat(self.read, self.text, layout, self.VERBS.unit)

    @property
    def file_columns(self) -> FileLayout:
        """Where things are in files like those of training."""
        found: FileLayout = vars(self).get("columns_") or self.VERBS.files()
        return found

    def _note(self, scan: Any, *, anew: bool, stream: bool = False) -> None:
        self.columns_ = self.file_columns

    def objects_of(self, path: str, layout: Any) -> list[Any]:
        """The objects in a file."""
        found: list[Any] = self._format(layout).objects(path)
        return found

    def _read(self, path: str, layout: Any, asked: Any) -> ObjectData:
        clock, objects = Clock(), self.objects_of(path, layout)
        if not objects:
            raise LolsError(f"{path}: there are no {self.VERBS.unit} in it; give a file with some")
        return ObjectData(objects, self.VERBS.unit, layout, clock.working())

    # --- what is known of them ---

    @on_snapshot
    def score(self, X: Sequence[Any], y: None = None) -> float:
        """Minus the average loss."""
        self._check_fitted()
        return -self._fitted.evaluate(X)

    def _evaluated(self, data: Any, asked: Any) -> Scores:
        return ObjectScores(len(data), self._fitted.evaluate(data.objects))

    @on_snapshot
    def predict_pieces(
        self, path: Any, layout: Any, asked: Any, *, threads: Threads = None
    ) -> Iterator[tuple[bytes, int]]:
        """The file with predictions, as one piece, whose objects threads share."""
        form = self._format(layout)
        self._fitted.threads = threads
        for piece in form.pieces(path):
            yield form.write(piece, self.task_, *self._predicted(piece, asked.confidence)), len(piece)

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show the steps of one example: the actions with their predicted costs, and what deviations would cost."""
        from lols.tasks.explain import ExampleReport, explain_object

        layout, asked = self.asked("explain", options)
        objects = self.objects_of(path, layout)
        if not 1 <= number <= len(objects):
            what = f"there is no {self.VERBS.one} {number}; it has {len(objects):,}, and they are counted from 1"
            raise LolsError(f"{path}: {what}")
        explanation = explain_object(self, objects, number)
        html = asked.html if isinstance(asked, PageOptions) else None
        return ExampleReport(self.named, path, self.VERBS.one, number, len(objects), explanation, html=html).written()

    def action_name(self, action: int) -> str:
        """What an action is called."""
        return str(action) if self.ACTIONS is None else self.ACTIONS[action]

    def _case(self, data: Any, reference: str | None, limit: int | None, seed: int) -> Case:
        naming = Naming(lambda _, action: self.action_name(action))
        return replace(super()._case(data, reference, limit, seed), naming=naming)

    @classmethod
    def _described(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> ObjectTask:
        return ObjectTask(cls.TASK.space)

    # --- compilation ---

    def prepare(self) -> None:
        """Predict the sample."""
        self.predict(self.read(self.SAMPLE, self.VERBS.files()))

    def rehearse(self) -> None:
        """Train on the sample, and predict it."""
        sample = self.read(self.SAMPLE, self.VERBS.files())
        self._trainer(ObjectTask(self.TASK.space)).warm_up(sample)
        self.fit(sample, dev=sample).prepare()
