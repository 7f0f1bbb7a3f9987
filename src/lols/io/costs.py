"""Label maps and cost matrices: small CSV files, or the name of a contest."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from lols.errors import ConfigurationError, LolsError
from lols.io.opening import read_text

__all__ = ["KNOWN", "check_matrix", "mapped", "read_cost_matrix", "read_label_map"]

KNOWN = ("kdd99",)  # contests whose files come with the library


def read_label_map(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read `name,class` from each line of a file, or take the map of a contest: `kdd99`.

    >>> read_label_map("kdd99")["smurf"]
    'dos'
    """
    made: dict[str, str] = {}
    for line, row in _rows(path, "classes"):
        if len(row) != 2 or not all(row):
            raise LolsError(f"{path}, line {line}: not a name and its class: write name,class")
        name, group = bare(row[0]), row[1]
        if made.get(name, group) != group:
            raise LolsError(f"{path}, line {line}: '{name}' is '{group}' here and '{made[name]}' before")
        made[name] = group
    return made


def read_cost_matrix(path: str | os.PathLike[str]) -> tuple[list[str], np.ndarray]:
    """Read a matrix whose first line names the classes; a row for each true class in that order, columns predicted.

    >>> classes, costs = read_cost_matrix("kdd99")
    >>> classes, costs[4].tolist()
    (['normal', 'probe', 'dos', 'u2r', 'r2l'], [4.0, 2.0, 2.0, 2.0, 0.0])
    """
    rows = _rows(path, "costs")
    _, classes = rows[0]
    if len(set(classes)) != len(classes) or not all(classes):
        raise LolsError(f"{path}, line {rows[0][0]}: the header names a class twice, or not at all")
    if len(rows) - 1 != len(classes):
        raise LolsError(f"{path}: {len(rows) - 1} rows of costs for {len(classes)} classes: give a row for each class")
    made = np.zeros((len(classes), len(classes)))
    for true, (line, row) in enumerate(rows[1:]):
        if len(row) == len(classes) + 1 and row[0] == classes[true]:
            row = row[1:]  # a row may begin with its class
        if len(row) != len(classes):
            raise LolsError(f"{path}, line {line}: {len(row)} costs for {len(classes)} classes")
        for predicted, cell in enumerate(row):
            try:
                cost = float(cell)
            except ValueError:
                cost = math.nan
            if not 0.0 <= cost < math.inf:
                raise LolsError(
                    f"{path}, line {line}, column '{classes[predicted]}': '{cell}' is no cost: give a number from 0 on"
                )
            made[true, predicted] = cost
    return classes, made


def check_matrix(matrix: np.ndarray, classes: int) -> np.ndarray:
    """A cost matrix as an array, checked: square, of one row per class, all costs finite and not negative."""
    try:
        made = np.asarray(matrix, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise LolsError("the cost matrix is not made of numbers: give rows of equal length, from 0 on") from None
    if made.shape != (classes, classes):
        raise LolsError(
            f"the cost matrix has the shape {made.shape}, but there are {classes} classes: give a row and a column "
            "for each"
        )
    wrong = ~(np.isfinite(made) & (made >= 0.0))
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        raise LolsError(
            f"row {row}, column {column} of the cost matrix is {made[row, column]}: give a number from 0 on"
        )
    return made


def mapped(labels: Sequence[str], label_map: Mapping[str, str] | None) -> list[str | None]:
    """The classes of labels; None for those that the map does not have. Dots at the end of a label do not count."""
    if label_map is None:
        return list(labels)
    if not isinstance(label_map, Mapping):
        raise ConfigurationError(
            f"label_map is a {type(label_map).__name__}: give a dictionary, such as lols.io.costs.read_label_map reads"
        )
    return [label_map.get(bare(label)) for label in labels]


def bare(label: str) -> str:
    """A label without spaces around it and dots at its end.

    >>> bare(" normal. ")
    'normal'
    """
    return label.strip().rstrip(".")


def _rows(path: str | os.PathLike[str], what: str) -> list[tuple[int, list[str]]]:
    """The rows of a small CSV file that are not blank, with their line numbers."""
    if str(path) in KNOWN:
        text = resources.files("lols.datasets").joinpath(f"{path}-{what}.csv").read_text(encoding="utf-8")
    else:
        if not Path(path).exists():
            raise LolsError(f"{path}: there is no such file; name a CSV file, or {', '.join(KNOWN)}")
        text = read_text(path)
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise LolsError(f"{path}, line {reader.line_num}: not a line of a CSV file ({error})") from None
    made = [(line, row) for line, row in rows if any(row)]
    if not made:
        raise LolsError(f"{path}: empty; see the documentation for what belongs there")
    return made
