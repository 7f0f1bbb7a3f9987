"""Estimators of your own: a `lols.Task` on plain Python objects, with all verbs on files.

A subclass names the task. Files have an object in each line, which is the line itself, and predictions are lines as
well; a subclass may read and write them in other ways. With a line in `lols.tasks.registry.ESTIMATORS` it can be
trained, predicted with, evaluated, explained, inspected and certified on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.opening import opened
from lols.tasks.case import Case, case_of
from lols.tasks.options import is_plain
from lols.tasks.replay import ReplayedFile
from lols.tasks.search import Judges, SearchEstimator
from lols.tasks.verbs import CertifyOptions, Evaluation, Say, VerbReport, Verbs, silent
from lols.training.calibration import Judged
from lols.training.clock import Clock
from lols.training.confidence import judged_steps
from lols.training.model import make_model

if TYPE_CHECKING:
    from rich.console import Console


class ObjectTask(NamedTuple):
    """A task as `SearchEstimator` trains it; its own teacher is the only one, and called optimal."""

    task: type[Task]

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.task.space

    def reference(self, name: str) -> Reference:
        """The teacher."""
        if name != "optimal":
            raise ConfigurationError(f"unknown reference '{name}': the task has one, which is called optimal")
        return self.task.teacher


@dataclass(frozen=True)
class ObjectScores:
    """The average loss."""

    examples: int
    loss: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return asdict(self)

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print it."""
        from lols.tasks.show import write

        write(console, f"loss {self.loss:.4f} per example on {self.examples:,} examples")


class ObjectEstimator(SearchEstimator):
    """The base of estimators whose examples are plain Python objects, by default the lines of a file.

    A subclass defines the first two of the following. Its name is that of the command, in small letters, and the first
    line of its docstring says what its files are, unless it has `VERBS` of its own.
    """

    TASK: ClassVar[type[Task]]  # the search problem, with a teacher of its own
    SAMPLE: ClassVar[str]  # the text of a tiny labelled file, by which `lols warmup` has things compiled
    ACTIONS: ClassVar[Sequence[str] | None] = None  # what the actions are called; by default by their numbers
    HELP = "Train a model, and write a model file."

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "VERBS"):
            about = (cls.__doc__ or "").partition("\n")[0]
            cls.VERBS = Verbs(cls.__name__.lower(), "lines", about, options={"certify": CertifyOptions})

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

    # --- Python objects ---

    @exclusive
    def fit(self, X: Sequence[Any], y: None = None, *, dev: Sequence[Any] | None = None, **fitting: Any) -> Self:
        """Train on labelled objects; with `dev` objects, the pass with the least loss on them is kept."""
        if not len(X):
            raise LolsError(f"there are no {self.VERBS.unit} to learn from: give at least one")
        task = ObjectTask(self.TASK)
        truth = task.space.truth_for(task.space.teacher)
        held = None if dev is None else Examples(task.space, list(dev), truth=truth)
        score = None if held is None else (lambda model: {"cost": model.evaluate(held)})
        teacher = task.reference(self.reference)
        judges = Judges(
            lambda model, part, _: judged_steps(model, part, teacher),
            None if held is None else (lambda model: judged_steps(model, held, teacher)),
        )
        goes_on = self._goes_on()
        self._train(task, lambda: Examples(task.space, list(X), truth=truth), score, judges, goes_on=goes_on, **fitting)
        return self

    @on_snapshot
    def predict(self, X: Sequence[Any], *, confidence: bool = False) -> Any:
        """The task's output for each object; with `confidence` also that in each step, as `Model.predict` gives it."""
        self._check_fitted()
        return self.model_.predict(X, confidence=confidence)

    @exclusive
    def calibrate_with(self, X: Sequence[Any]) -> Self:
        """Fit confidences to labelled objects that training did not see; returns the estimator itself."""
        self._check_fitted()
        self._recalibrate(self._judged_on(self.model_.labelled(list(X), self.model_.space.teacher)))
        return self

    def _judged_on(self, examples: Examples) -> dict[str, Judged]:
        return {"steps": judged_steps(self.model_, examples, self.task_.reference(self.reference))}

    @on_snapshot
    def scores(self, X: Sequence[Any]) -> Any:
        """All actions of all steps, as `Model.scores` gives them."""
        self._check_fitted()
        return self.model_.scores(X)

    @on_snapshot
    def score(self, X: Sequence[Any], y: None = None) -> float:
        """Minus the average loss."""
        self._check_fitted()
        return -self.model_.evaluate(X)

    # --- files ---

    @property
    def file_columns(self) -> Any:
        """Where things are in files like those of training."""
        return getattr(self, "columns_", self.VERBS.files())

    def objects_of(self, path: str, layout: Any) -> list[Any]:
        """The objects in a file."""
        with opened(path) as stream:
            data = stream.read()
        try:
            objects = self.read(data.decode("utf-8"), layout)
        except UnicodeDecodeError as error:
            raise LolsError(f"{path}: byte {error.start + 1} is not UTF-8; convert the file") from None
        return [objects[k] for k in path.chosen(len(objects))] if isinstance(path, ReplayedFile) else objects

    def fit_read(self, paths: list[str], dev: str | None, layout: Any, say: Say, **fitting: Any) -> Self:
        """Read files, and train on their objects."""
        clock = Clock()
        objects = [each for path in paths for each in self.objects_of(path, layout)]
        held = None if dev is None else self.objects_of(dev, layout)
        reading = clock.working()
        if objects:
            say(f"{len(objects):,} {self.VERBS.unit}")
        self.columns_ = layout
        self.fit(objects, dev=held, **fitting)
        self.training_facts_ = {"examples": len(objects), "seconds_reading": reading}
        return self

    @on_snapshot
    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a file with its predictions."""
        layout, _ = self.asked("predict", options)
        self.model_.threads = threads
        clock, objects = Clock(), self.objects_of(path, layout)
        out.write(self.text(objects, self.predict(objects)).encode())
        return {"examples": len(objects), "examples_per_second": len(objects) / clock.working()}

    def labelled_examples(self, path: str, layout: Any) -> Examples:
        """The examples of a labelled file."""
        objects = self.objects_of(path, layout)
        if not objects:
            raise LolsError(f"{path}: there are no {self.VERBS.unit} in it; give a file with some")
        return self.model_.labelled(objects)

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """The average loss on a labelled file."""
        layout, _ = self.asked("evaluate", options)
        clock, examples = Clock(), self.labelled_examples(path, layout)
        reading, self.model_.threads = clock.working(), threads
        return Evaluation(ObjectScores(len(examples), self.model_.evaluate(examples)), len(examples), reading)

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which steps on a labelled file are right."""
        layout, _ = self.asked("calibrate", options)
        return self._judged_on(self.labelled_examples(path, layout))

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show the steps of one example: the actions with their predicted costs, and what deviations would cost."""
        from lols.tasks.explain import ExampleReport, explain_object

        layout, _ = self.asked("explain", options)
        objects = self.objects_of(path, layout)
        if not 1 <= number <= len(objects):
            what = f"there is no {self.VERBS.one} {number}; it has {len(objects):,}, and they are counted from 1"
            raise LolsError(f"{path}: {what}")
        explanation = explain_object(self, objects, number)
        return ExampleReport(self.named, path, self.VERBS.one, number, len(objects), explanation)

    # --- certificates ---

    @on_snapshot
    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate from labelled objects."""
        self._check_fitted()
        return self._case(self.model_.labelled(list(data), self.model_.space.teacher), reference, limit, seed)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled file."""
        layout, asked = self.asked("certify", options)
        return self._case(self.labelled_examples(path, layout), getattr(asked, "reference", None), limit, seed)

    def _case(self, examples: Examples, reference: str | None, limit: int | None, seed: int) -> Case:
        return case_of(self, examples, self.action_name, reference, limit, seed)

    def action_name(self, action: int) -> str:
        """What an action is called."""
        return str(action) if self.ACTIONS is None else self.ACTIONS[action]

    # --- compilation ---

    def prepare(self) -> None:
        """Predict the sample."""
        self.predict(self.read(self.SAMPLE, self.VERBS.files()))

    def rehearse(self) -> None:
        """Train on the sample, and predict it."""
        sample = self.read(self.SAMPLE, self.VERBS.files())
        self._trainer(ObjectTask(self.TASK)).warm_up(sample)
        self.fit(sample, dev=sample).prepare()

    # --- model files ---

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file; the functions of the task are not in it."""
        self._check_fitted()
        described = {"name": self.VERBS.name, "options": self._options(), "files": asdict(self.file_columns)}
        contents: tuple[dict[str, Any], dict[str, np.ndarray]] = self.model_.contents(
            described, keep_state=self.keep_state
        )
        return contents

    @classmethod
    def from_file(
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], *, threads: Threads = None
    ) -> Self:
        """The estimator that a file's header and arrays describe."""
        try:
            task, known = header["task"], cls().get_params()
            options = {k: v for k, v in dict(task["options"]).items() if k in known and is_plain(v)}
            loaded = cls(**options | {"threads": threads})
            loaded.columns_ = cls.VERBS.files(**task["files"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        loaded.task_ = ObjectTask(cls.TASK)
        loaded.model_ = make_model(path, header, tensors, cls.TASK.space, threads=threads)
        return loaded
