"""Tables for tests of the classifier: numbers and texts, with classes that follow from them, more or less."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols import CostSensitiveClassifier
from lols.tasks.tables.data import GivenTable, TableOptions
from lols.tasks.tables.input import table_of
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.targets import Targets

COLOURS = ["red", "green", "blue", "grey"]


def table(
    rows: int, classes: int = 5, seed: int = 0, noise: float = 0.0, gaps: float = 0.1
) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Columns of numbers and texts, some cells missing, and the number of each row's class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    said = np.where(rng.uniform(size=rows) < noise, rng.integers(0, classes, rows), y)
    size = [float(v) for v in np.round(said * 10 + rng.uniform(-4, 4, rows), 3)]
    count = [int(v) for v in rng.integers(0, 5, rows)]
    colour = [COLOURS[(v + c) % 4] for v, c in zip(said.tolist(), count, strict=True)]
    word = [f"w{v}" for v in said.tolist()]
    columns: dict[str, list[Any]] = {"size": size, "count": count, "colour": colour, "word": word}
    for column in ("colour", "word"):
        for row in np.flatnonzero(rng.uniform(size=rows) < gaps):
            columns[column][row] = None
    return columns, y


def numbers(rows: int, classes: int = 4, seed: int = 0, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points around a centre for each class."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(classes, 6)) * 3
    y = rng.integers(0, classes, rows)
    return centres[y] + spread * rng.normal(size=(rows, 6)), y


def classifier(**options: Any) -> CostSensitiveClassifier:
    """A classifier with all settings given, so that none is chosen."""
    given = {"passes": 2, "progress": False, "batch_size": 16, "numeric": "bins", "tree": "order"}
    return CostSensitiveClassifier(**(given | options))


def weights(model: CostSensitiveClassifier) -> list[bytes]:
    """All that a model file keeps in arrays."""
    return [array.tobytes() for _, array in sorted(model.contents()[1].items())]


def scans_of(model: CostSensitiveClassifier, X: Any) -> list[ColumnScan]:
    """What the columns of a table hold."""
    return GivenTable(TableOptions.of(model), table_of(model, X, reset=True), [], Targets([], None, None, None)).scans
