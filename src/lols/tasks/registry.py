"""Which estimators there are, and which of them wrote a model file."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from lols.contract.threads import Threads
from lols.errors import ModelFileError
from lols.tasks.verbs import BEST_SO_FAR

if TYPE_CHECKING:
    from lols.tasks.verbs import VerbReport, Verbs


class Entry(NamedTuple):
    """Where an estimator is defined, as `module:name`."""

    estimator: str
    verbs: str = ""  # its `VERBS`, where they can be had without importing the estimator


# By the name of each estimator in model files and on the command line. A new task is one line here.
ESTIMATORS = {
    "tagger": Entry("lols.tasks.tagging.estimator:Tagger", "lols.tasks.tagging.options:VERBS"),
    "parser": Entry("lols.tasks.parsing.estimator:Parser", "lols.tasks.parsing.options:VERBS"),
    "pipeline": Entry("lols.tasks.pipeline.estimator:Pipeline", "lols.tasks.pipeline.options:VERBS"),
    "classifier": Entry("lols.tasks.tables.estimator:CostSensitiveClassifier", "lols.tasks.tables.options:VERBS"),
}


def estimator(name: str) -> Any:
    """The class of an estimator.

    >>> estimator("tagger").__name__
    'Tagger'
    """
    return _object(ESTIMATORS[name].estimator)


def verbs(name: str) -> Verbs:
    """What the verbs of an estimator take.

    >>> verbs("classifier").unit
    'rows'
    """
    entry = ESTIMATORS[name]
    found: Verbs = _object(entry.verbs) if entry.verbs else estimator(name).VERBS
    return found


class StoredModel(NamedTuple):
    """A model file that was read: what an estimator, or a search space or a program of the user's own, left in it."""

    path: str
    header: dict[str, Any]
    tensors: dict[str, Any]

    @property
    def name(self) -> str | None:
        """The estimator's name; None if none wrote the file."""
        task = self.header.get("task")
        name = task.get("name") if isinstance(task, dict) else None
        return name if isinstance(name, str | None) else repr(name)

    @property
    def verbs(self) -> Verbs | None:
        """What the verbs of the estimator take; None if there is none."""
        return verbs(self.name) if self.name in ESTIMATORS else None

    def load(self, *, threads: Threads = None, policy: Any = None) -> Any:
        """The estimator in the file."""
        if self.name in ESTIMATORS:
            kind, how = estimator(self.name), {"threads": threads, "policy": policy}
            return kind.from_whole_file(self.path, self.header, self.tensors, **how)
        if self.name in (None, "program"):
            own, what = ("program", "program") if self.name else ("search space", "space")
            raise ModelFileError(
                f"{self.path}: a model of a {own} of your own; load it with lols.load(path, {what}), or on the command "
                "line name its Python file: --task FILE.py"
            )
        self.check_finished()
        raise ModelFileError(
            f"{self.path}: a model of '{self.name}', which this version of lols does not know; install a newer one"
        )

    def check_finished(self) -> None:
        """Raise an error for what training keeps beside its checkpoint."""
        if self.name == BEST_SO_FAR:
            raise ModelFileError(
                f"{self.path}: what training keeps beside its checkpoint, the best pass so far, and no whole model: "
                "run the command again with --resume, which goes on and writes the model"
            )

    def inspect(self, **options: Any) -> VerbReport:
        """What is in the file."""
        self.check_finished()
        if self.name in ESTIMATORS:
            report: VerbReport = estimator(self.name).inspect_file(self.path, self.header, self.tensors, **options)
            return report
        from lols.tasks.inspect import inspect_own

        return inspect_own(self.path, self.header, self.tensors, **options)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file."""
    from lols.io.model_file import read_tensors

    return StoredModel(os.fspath(path), *read_tensors(path, "model"))


def _object(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
