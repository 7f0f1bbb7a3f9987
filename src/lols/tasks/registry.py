"""Which estimators there are, and which of them wrote a model file."""

from __future__ import annotations

import importlib
import os
from typing import Any

from lols.errors import ModelFileError

__all__ = ["ESTIMATORS", "estimator", "load_estimator"]

# The name of an estimator in model files and on the command line, and its class.
ESTIMATORS = {
    "tagger": "lols.tasks.tagging.estimator:Tagger",
    "parser": "lols.tasks.parsing.estimator:Parser",
    "pipeline": "lols.tasks.pipeline.estimator:Pipeline",
    "classifier": "lols.tasks.tables.estimator:CostSensitiveClassifier",
}


def estimator(name: str) -> Any:
    """The class of an estimator.

    >>> estimator("tagger").__name__
    'Tagger'
    """
    module, _, kind = ESTIMATORS[name].partition(":")
    return getattr(importlib.import_module(module), kind)


def load_estimator(path: str | os.PathLike[str], *, threads: int = 1) -> Any:
    """The estimator that a file holds."""
    from lols.io.model_file import read_tensors

    header, tensors = read_tensors(path, "model")
    task = header.get("task")
    name = task.get("name") if isinstance(task, dict) else None
    if name in ESTIMATORS:
        return estimator(name).from_file(path, header, tensors, threads=threads)
    if name is None:
        raise ModelFileError(f"{path}: a model of a search space of your own; load it with lols.load(path, space)")
    if name == "program":
        raise ModelFileError(f"{path}: a model of a program of your own; load it with lols.load(path, program)")
    raise ModelFileError(f"{path}: a model of '{name}', which this version of lols does not know; install a newer one")
