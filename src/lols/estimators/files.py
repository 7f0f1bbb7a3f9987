"""Model files that say which estimator wrote them."""

from __future__ import annotations

import os
from typing import Any

from lols.errors import ModelFileError
from lols.io.model_file import read_tensors

__all__ = ["load_estimator"]


def load_estimator(path: str | os.PathLike[str], *, threads: int = 1) -> Any:
    """The estimator that a file holds."""
    header, tensors = read_tensors(path, "model")
    task = header.get("task")
    name = task.get("name") if isinstance(task, dict) else None
    if name == "tagger":
        from lols.estimators.tagger import Tagger

        return Tagger.from_file(path, header, tensors, threads=threads)
    if name == "parser":
        from lols.estimators.parser import Parser

        return Parser.from_file(path, header, tensors, threads=threads)
    if name == "pipeline":
        from lols.estimators.pipeline import Pipeline

        return Pipeline.from_file(path, header, tensors, threads=threads)
    if name == "classifier":
        from lols.estimators.classifier import CostSensitiveClassifier

        return CostSensitiveClassifier.from_file(path, header, tensors, threads=threads)
    if name is None:
        raise ModelFileError(f"{path}: a model of a search space of your own; load it with lols.load(path, space)")
    if name == "program":
        raise ModelFileError(f"{path}: a model of a program of your own; load it with lols.load(path, program)")
    raise ModelFileError(f"{path}: a model of '{name}', which this version of lols does not know; install a newer one")
