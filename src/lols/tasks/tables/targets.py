"""What is right for the rows of a table, and what mistakes cost: labels, cost matrices and cost vectors, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError, short, shown
from lols.io.costs import NUMBER, are_costs, class_order, cost_matrix_of, mapped, names_in
from lols.tasks.tables.meanings import absent
from lols.tasks.tables.validation import check_classes, checked_labels
from lols.tasks.tables.weights import row_weights

OF_MATRIX = ", which are those of the cost matrix"


class Targets(NamedTuple):
    """What is right, and what a mistake costs."""

    classes: list[Any]
    labels: np.ndarray | None  # numbers of classes
    matrix: np.ndarray | None
    vectors: np.ndarray | None  # [row, class]
    weights: np.ndarray | None = None  # what the costs of each row are multiplied by

    def take(self, chosen: np.ndarray) -> Targets:
        """Those of some rows."""
        labels, vectors, weights = (None if a is None else a[chosen] for a in (self.labels, self.vectors, self.weights))
        return self._replace(labels=labels, vectors=vectors, weights=weights)

    @property
    def cheapest(self) -> np.ndarray:
        """The number of the class that is right."""
        if self.labels is not None:
            return self.labels
        assert self.vectors is not None
        return np.argmin(self.vectors, axis=1)

    def counts(self) -> np.ndarray:
        """How often each class is right."""
        return np.bincount(self.cheapest, minlength=len(self.classes))


def together(parts: Sequence[Targets]) -> Targets:
    """The targets of rows one after the other."""
    columns = ([getattr(part, name) for part in parts] for name in ("labels", "vectors", "weights"))
    labels, vectors, weights = (None if each[0] is None else np.concatenate(each) for each in columns)
    return parts[0]._replace(labels=labels, vectors=vectors, weights=weights)


def targets_of(
    rows: int,
    y: Any,
    costs: Any,
    *,
    classes: Any = None,
    matrix: Any = None,
    label_map: Mapping[str, str] | None = None,
    grows: bool = False,
) -> Targets:
    """Labels as numbers, costs and weights, from what `fit` was given; a vector of costs is a weight for each row.

    Labels that are not among the classes are further classes if it `grows`, and else a mistake.
    """
    if y is None and costs is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels, or costs of each row")
    labels, names = None, None if classes is None else list(classes)
    if names is not None and len(set(names)) != len(names):
        raise ConfigurationError("classes names a class twice: name each once")
    if y is not None:
        y = _column(y, rows)
        check_classes(y)
        if label_map is not None:
            y = _mapped(y, label_map)
        found = np.unique(y)
        names = found.tolist() if names is None else names
        numbers = {name: k for k, name in enumerate(names)}
        strange = [value for value in found.tolist() if value not in numbers]
        if grows:
            names = [*names, *strange]
            numbers |= {name: k for k, name in enumerate(names)}
        elif strange:
            row, fixed = int(np.argmax(y == strange[0])), "" if matrix is None else OF_MATRIX
            known = names_text([*map(str, names)])
            raise LolsError(f"row {row}: label {shown(strange[0])} is not among the classes: {known}{fixed}")
        labels = np.array([numbers[value] for value in found.tolist()], np.int64)[np.searchsorted(found, y)]
    vectors = weights = None
    if isinstance(costs, Mapping):
        if names is None:
            raise ConfigurationError("a dictionary of costs needs labels: give y, or a vector of costs for each row")
        matrix = costs
    elif costs is not None:
        try:
            given = np.asarray(costs, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise LolsError("costs are not made of numbers: give rows of equal length, of numbers from 0 on") from None
        if given.ndim == 1 and y is not None:
            weights, given = row_weights(given, rows, "costs"), np.zeros((0, 0))
        if given.ndim != 2:
            raise LolsError(
                f"costs has {given.ndim} dimension{'s' if given.ndim != 1 else ''}: give a row for each example, a "
                "matrix of classes, or with labels what a mistake costs in each row"
            )
        if names is None:
            names = names_in(costs) or list(range(given.shape[1]))
        square = given.shape == (len(names), len(names))
        if square and rows == len(names) and y is not None:
            raise ConfigurationError("costs could be a matrix or one vector for each row: give a matrix as cost_matrix")
        if square and y is not None:
            matrix = costs
        elif weights is None:
            vectors = _vectors(given, rows, names, names_in(costs))
    assert names is not None
    return Targets(names, labels, None if matrix is None else cost_matrix_of(matrix, names), vectors, weights)


def _column(y: Any, rows: int) -> np.ndarray:
    made = checked_labels(y, rows)
    if made.dtype.kind == "O":
        wrong = [k for k, value in enumerate(made.tolist()) if absent(value)]
        if wrong:
            raise LolsError(f"row {wrong[0]}: the label is missing; leave the row out")
        kinds = {type(value) for value in made.tolist()}
        made = made.astype(str) if kinds == {str} else made
    if made.dtype.kind == "f" and not np.isfinite(made).all():
        raise ValueError(f"Input y contains NaN or infinity, in row {int(np.argmax(~np.isfinite(made)))}.")
    return made


def _mapped(y: np.ndarray, label_map: Mapping[str, str]) -> np.ndarray:
    found, numbers = np.unique(y.astype(str), return_inverse=True)
    made = mapped(found.tolist(), label_map)
    if None in made:
        wrong = made.index(None)
        raise LolsError(
            f"row {int(np.argmax(numbers == wrong))}: label '{short(found[wrong])}' is not in the label map"
        )
    return np.array(made)[numbers]


def _vectors(given: np.ndarray, rows: int, names: Sequence[Any], columns: Sequence[Any] | None) -> np.ndarray:
    if given.shape != (rows, len(names)):
        raise LolsError(
            f"costs has the shape {given.shape}; with {rows} rows and {len(names)} classes it must be "
            f"{(rows, len(names))}, or {(len(names), len(names))} for a matrix"
        )
    if columns is not None:
        given = given[:, class_order(columns, names, "columns of costs")]
    wrong = ~are_costs(given)
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        raise LolsError(f"row {row}, class {shown(names[column])}: a cost of {given[row, column]}: {NUMBER}")
    return given


def names_text(names: Sequence[str], most: int = 20) -> str:
    """The first columns or classes, for messages."""
    return ", ".join(short(name) for name in names[:most]) + (", ..." if len(names) > most else "")
