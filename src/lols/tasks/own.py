"""Models of the user's own tasks and programs, with the verbs that estimators have on files.

A file has a JSON value in each line, which the task encodes; the file of the task may have a function `read_line(line)`
that makes another object of a line. Predictions are lines of JSON as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError, short
from lols.io.opening import read_text
from lols.programs.model import ProgramModel
from lols.tasks.base import BaseEstimator
from lols.tasks.case import Case
from lols.tasks.objects import ObjectEstimator, ObjectScores, ObjectTask
from lols.tasks.own_options import VERBS
from lols.tasks.verbs import Evaluation, FileLayout, Say, VerbReport, silent
from lols.training.clock import Clock
from lols.training.model import Model

if TYPE_CHECKING:
    from rich.console import Console

ReadLine = Callable[[str], Any]


@dataclass(frozen=True)
class OwnScores(ObjectScores):
    """The average loss, and that of the teacher if there is one."""

    teacher_loss: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return asdict(self)

    def show(self, console: Console, *, whole: bool = True) -> None:
        """Print them."""
        from lols.tasks.show import write

        super().show(console, whole=whole)
        if self.teacher_loss is not None:
            write(console, f"the teacher: {self.teacher_loss:.4f}")


@dataclass(frozen=True)
class OwnFormat:
    """Files of JSON, or of what a function makes of each line."""

    read_line: ReadLine | None = None

    def objects(self, path: str) -> list[Any]:
        """The objects in a file."""
        lines = read_text(path).split("\n")
        return [self._object(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]

    def _object(self, path: str, number: int, line: str) -> Any:
        try:
            return json.loads(line) if self.read_line is None else self.read_line(line.removesuffix("\r"))
        except (ValueError, RecursionError) as error:
            if self.read_line is None:
                what = f"this is not JSON ({short(str(error))}); write a JSON value in each line, or give the file of "
                raise LolsError(f"{path}, line {number}: {what}the task a function read_line(line)") from None
            raise LolsError(f"{path}, line {number}: read_line fails with {type(error).__name__}: {error}") from error
        except Exception as error:
            raise LolsError(f"{path}, line {number}: read_line fails with {type(error).__name__}: {error}") from error

    def labelled(self, path: str) -> list[Any]:
        """The objects in a file that has some."""
        objects = self.objects(path)
        if not objects:
            raise LolsError(f"{path}: there are no examples in it; give a file with some")
        return objects


class OwnTask(ObjectEstimator):
    """A model of a task or a search space of the user's own."""

    VERBS = VERBS
    read_line_: ReadLine | None = None

    def objects_of(self, path: str, layout: Any = None) -> list[Any]:
        """The objects in a file."""
        return OwnFormat(self.read_line_).objects(path)

    @on_snapshot
    def predict_pieces(
        self, path: Any, layout: Any, asked: Any, *, threads: Threads = None
    ) -> Iterator[tuple[bytes, int]]:
        """A line of JSON for each object of a file, as one piece."""
        self.model_.threads = threads
        how = {"best_of": asked.best_of, "beam": asked.beam, "confidence": asked.confidence}
        found = self.model_.predict(self.objects_of(path), **how)
        if asked.confidence:
            found = [{"output": each, "confidence": sure} for each, sure in zip(*found, strict=True)]
        yield json_lines(found), len(found)

    def _evaluated(self, data: Any, asked: Any) -> OwnScores:
        """The average loss, beside that of the teacher."""
        model, teacher = self.model_, self.model_.space.teacher
        examples = self.task_.examples_of(data)
        loss = float(model.losses(examples, best_of=asked.best_of, beam=asked.beam).mean())
        of_teacher = None if teacher is None else float(model.reference_losses(examples, teacher).mean())
        return OwnScores(len(examples), loss, of_teacher)

    def _case(self, data: Any, reference: str | None, limit: int | None, seed: int) -> Case:
        found = super()._case(data, None, limit, seed)
        taught_by = str(self.model_.about.get("reference") or "")
        return replace(found, teacher=found.reference.name, taught_by=taught_by)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        self.model_.save(path, keep_state=self.model_.learning is not None)


class OwnProgram(BaseEstimator):
    """A model of a program of the user's own, of which plain Python knows nothing but results and losses."""

    VERBS = VERBS
    model_: ProgramModel
    read_line_: ReadLine | None = None

    def __init__(self) -> None:
        """There are no parameters."""

    @property
    def file_columns(self) -> FileLayout:
        """There is nothing to be said of lines."""
        return FileLayout()

    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a line of JSON for each object of a file."""
        self._check_search(options)
        clock, objects = Clock(), OwnFormat(self.read_line_).objects(path)
        out.write(json_lines(self.model_.predict(objects)))
        return {"examples": len(objects), "examples_per_second": len(objects) / clock.working()}

    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """The average loss on a labelled file, beside that of the program's reference."""
        self._check_search(options)
        clock, objects = Clock(), OwnFormat(self.read_line_).labelled(path)
        reading = clock.working()
        loss = float(self.model_.losses(objects).mean())
        teacher = float(self.model_.reference_losses(objects).mean())
        return Evaluation(OwnScores(len(objects), loss, teacher), len(objects), reading)

    def _check_search(self, options: Mapping[str, Any]) -> None:
        for name in options:
            if name != "confidence" or options[name]:
                self._plain_python(f"--{name.replace('_', '-')} has no effect")

    def _plain_python(self, what: str) -> NoReturn:
        raise ConfigurationError(
            f"{self.path_}: the model of a program, which is plain Python: {what}; use a lols.Task"
        )

    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Refuse."""
        self._plain_python("its steps cannot be explained")

    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """Refuse."""
        self._plain_python("it cannot be certified")

    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """Refuse."""
        self._plain_python("it cannot be certified")

    def calibrate_file(self, path: str, *, threads: Threads = None, **options: Any) -> NoReturn:
        """Refuse."""
        self._plain_python("it has no confidence to calibrate")


def own_model(model: Model | ProgramModel, path: str, *, read_line: ReadLine | None = None) -> OwnTask | OwnProgram:
    """The verbs of a model that was loaded for a task or program of the user's own."""
    made: Any
    if isinstance(model, ProgramModel):
        made = OwnProgram()
    else:
        seed = model.about.get("seed")
        made = OwnTask(seed=seed if isinstance(seed, int) else 0)
        made.task_ = ObjectTask(model.space)
    made.model_, made.path_, made.read_line_ = model, path, read_line
    return made


def json_lines(outputs: Iterable[Any]) -> bytes:
    """A line of JSON for each output."""
    return "".join(map(json_line, outputs)).encode()


def json_line(output: Any) -> str:
    """An output as a line of JSON; what JSON has no values for is a text.

    >>> import numpy as np
    >>> json_line({"plan": np.array([2, 0]), "cost": np.float64(1.5), "at": {3}})
    '{"plan": [2, 0], "cost": 1.5, "at": "{3}"}\\n'
    """
    try:
        return json.dumps(output, default=_plain, ensure_ascii=False) + "\n"
    except (TypeError, ValueError):  # keys that are no texts, or a value that contains itself
        return json.dumps(str(output), ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
