"""The command line. Whatever needs Numba is imported inside the commands, so that `lols --help` is instant."""

from __future__ import annotations

from lols.cli import (
    bandit,
    certify,
    evaluate,
    explain,
    inspect,
    new_task,
    predict,
    reproduce,
    train,
    train_classifier,
    train_parser,
    train_pipeline,
    warmup,
)
from lols.cli.base import app, main

__all__ = [
    "app",
    "bandit",
    "certify",
    "evaluate",
    "explain",
    "inspect",
    "main",
    "new_task",
    "predict",
    "reproduce",
    "train",
    "train_classifier",
    "train_parser",
    "train_pipeline",
    "warmup",
]
