"""Label maps and cost matrices: small CSV files, or the name of a contest."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from lols.engine.structures import LARGEST_COST
from lols.errors import ConfigurationError, LolsError, short, shown
from lols.io.opening import read_text

NUMBER = f"give a number from 0 on, at most {LARGEST_COST:g}"
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
            raise LolsError(
                f"{path}, line {line}: '{short(name)}' is '{short(group)}' here and '{short(made[name])}' before"
            )
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
            if not 0.0 <= cost <= LARGEST_COST:
                column = short(classes[predicted])
                raise LolsError(f"{path}, line {line}, column '{column}': '{short(cell)}' is not a cost: {NUMBER}")
            made[true, predicted] = cost
    return classes, made


def check_matrix(matrix: Any, classes: int, largest: float = LARGEST_COST) -> np.ndarray:
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
    wrong = ~are_costs(made, largest)
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        raise LolsError(f"row {row}, column {column} of the cost matrix is {made[row, column]}: {NUMBER}")
    return made


def are_costs(values: np.ndarray, largest: float = LARGEST_COST) -> np.ndarray:
    """Which values can be costs: they must not be negative, nor so large that their squares overflow."""
    fine: np.ndarray = (values >= 0.0) & (values <= largest)
    return fine


def cost_matrix_of(given: Any, classes: Sequence[Any]) -> np.ndarray:
    """A cost matrix in the order of the classes, from an array, a data frame or a dictionary.

    The rows and columns of a data frame are found by their names; if only the columns have names, the rows are in the
    same order. A dictionary has the costs of pairs (true, predicted), or for each true class a dictionary by predicted
    class; what it does not name costs 0 if it is right, and else 1.

    >>> cost_matrix_of({("yes", "no"): 5}, ["no", "yes"]).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    >>> cost_matrix_of({"yes": {"no": 5}, "no": {"yes": 2}}, ["no", "yes"]).tolist()
    [[0.0, 2.0], [5.0, 0.0]]
    """
    if isinstance(given, Mapping):
        return check_matrix(_from_pairs(given, classes), len(classes))
    columns = names_in(given)
    if columns is None:
        return check_matrix(given, len(classes))
    index = getattr(given, "index", None)
    rows = columns if index is None or _are_numbers(index) else list(index)
    made = check_matrix(given, len(classes))
    return made[
        np.ix_(
            class_order(rows, classes, "rows of the cost matrix"),
            class_order(columns, classes, "columns of the cost matrix"),
        )
    ]


def names_in(given: Any) -> list[Any] | None:
    """The names of the columns of a data frame; None for arrays, and for frames whose columns are only numbered."""
    names = getattr(given, "column_names", None) or getattr(given, "columns", None)
    return None if names is None or callable(names) or _are_numbers(names) else list(names)


def _are_numbers(names: Any) -> bool:
    """Whether names are the numbers that pandas gives without being asked."""
    return type(names).__name__ == "RangeIndex"


def _numbers(classes: Sequence[Any]) -> dict[Any, int]:
    """The numbers of classes by their names; in files, names of classes are texts."""
    return {str(name): k for k, name in enumerate(classes)} | {name: k for k, name in enumerate(classes)}


def class_order(names: Sequence[Any], classes: Sequence[Any], what: str) -> np.ndarray:
    """For each class the place of its name."""
    places = {numbers: k for k, numbers in enumerate(_number(name, _numbers(classes), what) for name in names)}
    if len(places) != len(classes):
        missing = next(k for k in range(len(classes)) if k not in places)
        raise LolsError(f"the {what} do not name the class {shown(classes[missing])}: name each once")
    return np.array([places[k] for k in range(len(classes))])


def _number(name: Any, numbers: Mapping[Any, int], what: str) -> int:
    number = numbers.get(name, numbers.get(str(name)))
    if number is None:
        known = ", ".join(short(each) for each in dict.fromkeys(map(str, numbers)))
        raise LolsError(f"the {what} name {shown(name)}, which is not one of the classes {short(known, 400)}")
    return number


def _from_pairs(given: Mapping[Any, Any], classes: Sequence[Any]) -> np.ndarray:
    made, numbers = 1.0 - np.eye(len(classes)), _numbers(classes)
    pairs: dict[Any, Any] = {}
    for true, value in given.items():
        if isinstance(value, Mapping):
            pairs |= {(true, predicted): cost for predicted, cost in value.items()}
        elif isinstance(true, tuple) and len(true) == 2:
            pairs[true] = value
        else:
            form = "{(true, predicted): cost}, or {true: {predicted: cost}}"
            raise LolsError(f"the cost matrix has the key {shown(true)}: give {form}")
    for (true, predicted), cost in pairs.items():
        if not isinstance(cost, Real) or not 0.0 <= float(cost) <= LARGEST_COST:
            raise LolsError(f"the cost of predicting {shown(predicted)} for {shown(true)} is {shown(cost)}: {NUMBER}")
        made[
            _number(true, numbers, "keys of the cost matrix"), _number(predicted, numbers, "keys of the cost matrix")
        ] = float(cost)
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
