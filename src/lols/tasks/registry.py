"""Which estimators there are, and which of them wrote a model file."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from lols.errors import ModelFileError

if TYPE_CHECKING:
    from lols.tasks.verbs import Report, Verbs

__all__ = ["ESTIMATORS", "Entry", "estimator", "inspect_model", "load_estimator", "verbs"]


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


def load_estimator(path: str | os.PathLike[str], *, threads: int = 1) -> Any:
    """The estimator that a file holds."""
    from lols.io.model_file import read_tensors

    header, tensors = read_tensors(path, "model")
    name = name_in(header)
    if name in ESTIMATORS:
        loaded = estimator(name).from_file(path, header, tensors, threads=threads)
        loaded.path_ = os.fspath(path)
        return loaded
    if name is None:
        raise ModelFileError(f"{path}: a model of a search space of your own; load it with lols.load(path, space)")
    if name == "program":
        raise ModelFileError(f"{path}: a model of a program of your own; load it with lols.load(path, program)")
    raise ModelFileError(f"{path}: a model of '{name}', which this version of lols does not know; install a newer one")


def inspect_model(path: str | os.PathLike[str], **options: Any) -> Report:
    """What is in a model file: of an estimator, or of a search space or a program of your own."""
    from lols.io.model_file import read_tensors
    from lols.tasks.inspect import inspect_own

    header, tensors = read_tensors(path, "model")
    name = name_in(header)
    if name in ESTIMATORS:
        report: Report = estimator(name).inspect_file(path, header, tensors, **options)
        return report
    return inspect_own(path, header, tensors, **options)


def name_in(header: Any) -> Any:
    """The estimator's name in the header of a model file; None if there is none."""
    task = header.get("task")
    return task.get("name") if isinstance(task, dict) else None


def _object(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
