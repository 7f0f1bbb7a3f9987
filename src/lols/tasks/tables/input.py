"""What a classifier is given: tables of any kind, labels, cost matrices and cost vectors, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError, short, shown
from lols.io.costs import NUMBER, are_costs, class_order, cost_matrix_of, mapped, names_in
from lols.io.csv_head import check_distinct
from lols.tasks.tables.cells import MISSING, Cells, NoNumber, absent, arrow, cells_of_array, cells_of_batch
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.tree_of_labels import TREES, LabelTree, by_frequency, by_similarity, flat, halves, nested
from lols.tasks.tables.validation import check_classes, checked_array, checked_frame, checked_labels, is_sparse
from lols.tasks.tables.weights import row_weights

__all__ = [
    "InputTable",
    "Targets",
    "as_columns",
    "as_sparse",
    "centres_of",
    "column_kinds",
    "column_names",
    "comma_note",
    "make_tree",
    "missing_texts",
    "names_text",
    "pair_of",
    "scan_table",
    "size_of",
    "table_of",
    "targets_of",
    "tree_of",
]

DIMENSIONS = 256


class InputTable(NamedTuple):
    """A table's columns, or a sparse matrix."""

    rows: int
    columns: dict[str, Cells]
    matrix: Any = None


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


def table_of(estimator: Any, X: Any, *, reset: bool) -> InputTable:
    """Columns from a data frame, an Arrow table, an array, or nested lists; a sparse matrix as it is."""
    if _is_frame(X):
        names = list(getattr(X, "column_names", None) or X.columns)
        check_distinct([str(name) for name in names])
        checked_frame(estimator, X, names, reset=reset)
        made = _frame(X)
        return made._replace(columns=dict(zip(column_names(estimator), made.columns.values(), strict=True)))
    array = checked_array(estimator, _listed(X), reset=reset)
    if is_sparse(array):
        from scipy import sparse

        made = sparse.csr_matrix(array)
        if not made.has_canonical_format:
            made = made.copy()
            made.sum_duplicates()
        return InputTable(made.shape[0], {}, made)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: give numbers or texts")
    return InputTable(
        array.shape[0], {name: cells_of_array(array[:, k]) for k, name in enumerate(column_names(estimator))}
    )


def column_names(estimator: Any) -> list[str]:
    """What the columns are called: as in the table that training saw, or x0, x1, ..., if there they had no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{k}" for k in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def _listed(X: Any) -> Any:
    """Nested lists with texts among numbers as objects: else NumPy would make texts of the numbers."""
    if not isinstance(X, list | tuple):
        return X
    try:
        return np.array(X, dtype=object) if np.asarray(X).dtype.kind in "US" else X
    except ValueError:
        return X  # to be told what is wrong with it


def _is_frame(X: Any) -> bool:
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__") or type(X).__module__.startswith("pyarrow")


def _frame(X: Any) -> InputTable:
    if hasattr(X, "iloc"):  # pandas: its columns of mixed values have no Arrow form
        made = {}
        for k, name in enumerate(X.columns):
            column = X.iloc[:, k]
            plain = column.dtype.kind if isinstance(column.dtype, np.dtype) else "x"
            if plain in "fiubmMO":
                made[str(name)] = cells_of_array(column.to_numpy())
            else:
                pa = arrow()
                try:
                    table = pa.table({str(name): pa.array(column, from_pandas=True)})
                except (pa.ArrowException, TypeError, ValueError):
                    raise LolsError(
                        f"column '{name}' holds {column.dtype}; a column must hold numbers or texts: leave it out"
                    ) from None
                made |= cells_of_batch(table, [str(name)])
        return InputTable(len(X), made)
    from lols.io.tables import as_table

    table = as_table(X)
    return InputTable(table.num_rows, cells_of_batch(table, table.column_names))


def as_sparse(table: InputTable) -> Any:
    """The columns of a table as a sparse matrix."""
    from scipy import sparse

    columns = []
    for name, cells in table.columns.items():
        if cells.numbers is None:
            raise LolsError(f"column '{name}' holds texts; training saw a sparse matrix, so give numbers")
        columns.append(np.nan_to_num(cells.numbers, nan=0.0))
    return sparse.csr_matrix(np.stack(columns, axis=1))


def as_columns(matrix: Any, names: Sequence[str]) -> dict[str, Cells]:
    """A sparse matrix as the columns of a table."""
    by_column = matrix.tocsc().astype(np.float64)
    return {name: Cells(numbers=by_column[:, [k]].toarray().ravel()) for k, name in enumerate(names)}


# --- columns ---


def missing_texts(missing: Sequence[str] | None) -> tuple[str, ...]:
    """The texts that mean a missing value."""
    return MISSING if missing is None else tuple(missing)


def column_kinds(
    names: Sequence[str],
    categorical: Sequence[str] | None,
    numerical: Sequence[str] | None,
    ignore: Sequence[str] | None,
    text: Sequence[str] | None = None,
) -> dict[str, str | None]:
    """For each column in use what it is said to hold; None to find out."""
    kinds: dict[str, str | None] = dict.fromkeys(names)
    for what, kind, chosen in (
        ("categorical", "category", categorical),
        ("numerical", "number", numerical),
        ("text", "text", text),
        ("ignore", "ignore", ignore),
    ):
        for name in [chosen] if isinstance(chosen, str) else chosen or ():
            if name not in kinds:
                raise ConfigurationError(f"{what} names '{name}', which is no column; there are {names_text(names)}")
            if kinds[name] not in (None, kind):
                raise ConfigurationError(f"column '{name}' is said to be two things: name it once")
            kinds[name] = kind
    made = {name: kind for name, kind in kinds.items() if kind != "ignore"}
    if not made:
        raise ConfigurationError("all columns are ignored: leave one")
    return made


def names_text(names: Sequence[str], most: int = 20) -> str:
    """The first columns or classes, for messages."""
    return ", ".join(short(name) for name in names[:most]) + (", ..." if len(names) > most else "")


def comma_note(names: Sequence[str]) -> str:
    """What to do about columns of numbers with decimal commas."""
    several = len(names) > 1
    quoted = ", ".join(f"'{short(name)}'" for name in names[:20]) + (", ..." if len(names) > 20 else "")
    what = f"columns {quoted} seem to hold" if several else f"column {quoted} seems to hold"
    where = "columns" if several else "column"
    return (
        f"{what} numbers with decimal commas, which are taken for categories: write points in place of the commas, or "
        f"name the {where} as categorical"
    )


def scan_table(
    columns: Mapping[str, Cells], kinds: Mapping[str, str | None], missing: Sequence[str]
) -> list[ColumnScan]:
    """Look at all cells of a table in memory."""
    scans = [ColumnScan(name, kind, missing) for name, kind in kinds.items()]
    for scan in scans:
        try:
            scan.look(columns[scan.name])
            scan.finish()
        except NoNumber as error:
            raise error.at(columns[scan.name], lambda row: f"row {row}") from None
    return scans


# --- labels and costs ---


def targets_of(
    rows: int,
    y: Any,
    costs: Any,
    *,
    classes: Any = None,
    matrix: Any = None,
    label_map: Mapping[str, str] | None = None,
) -> Targets:
    """Labels as numbers, costs and weights, from what `fit` was given; a vector of costs is a weight for each row."""
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
        if strange:
            row = int(np.argmax(y == strange[0]))
            raise LolsError(
                f"row {row}: label {shown(strange[0])} is not among the classes: {names_text([*map(str, names)])}"
            )
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


# --- trees ---


def make_tree(wanted: Any, classes: Sequence[Any], counts: np.ndarray, centres: Callable[[], np.ndarray]) -> LabelTree:
    """The tree of classes: by name, as nested lists of classes, or None for flat classification."""
    if wanted is None:
        return flat(len(classes))
    if isinstance(wanted, list | tuple):
        numbers = {name: k for k, name in enumerate(classes)}

        def numbered(part: Any) -> Any:
            if isinstance(part, list | tuple):
                return [numbered(p) for p in part]
            if part not in numbers:
                raise ConfigurationError(f"the tree names {shown(part)}, which is no class")
            return numbers[part]

        return nested(numbered(wanted), len(classes))
    if wanted == "order":
        return halves(range(len(classes)))
    if wanted == "frequency":
        return by_frequency(counts)
    if wanted == "similarity":
        return by_similarity(centres())
    raise ConfigurationError(
        f"tree is {shown(wanted)}: choose auto, {', '.join(TREES)}, nested lists of classes, or None"
    )


def centres_of(rows: Rows, labels: np.ndarray, count: int) -> np.ndarray:
    """The mean of each class in a few dimensions that features are hashed to."""
    made = np.zeros(count * DIMENSIONS)
    of_type = (
        np.repeat(labels, np.diff(rows.bounds)) * DIMENSIONS
        + (rows.types.astype(np.int64) * 2654435761 >> 7) % DIMENSIONS
    )
    made += np.bincount(of_type, minlength=made.size)
    if rows.start.size:
        own = np.repeat(labels, np.diff(rows.start)) * DIMENSIONS + (rows.ids >> 7) % DIMENSIONS
        made += np.bincount(own, weights=rows.values, minlength=made.size)
    return made.reshape(count, DIMENSIONS) / np.maximum(np.bincount(labels, minlength=count), 1)[:, np.newaxis]


# --- options as they are typed ---


def tree_of(name: str) -> str | None:
    """How classes are split; `flat` is one decision among all."""
    if name not in ("auto", *TREES, "flat"):
        raise ConfigurationError(f"--tree is '{name}': choose auto, {', '.join(TREES)} or flat")
    return None if name == "flat" else name


def pair_of(text: str) -> tuple[str, str]:
    """The two columns of an interaction.

    >>> pair_of("service * flag")
    ('service', 'flag')
    """
    first, star, second = (part.strip() for part in text.partition("*"))
    if not (first and star and second):
        raise ConfigurationError(f"--interaction is '{text}': name two columns, as A*B")
    return first, second


def size_of(text: str) -> int:
    """A number of bytes as people write it.

    >>> size_of("512MB"), size_of("2 GiB"), size_of("1.5k")
    (512000000, 2147483648, 1500)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", text.lower())
    unit = match and next((unit for unit in (match[2], match[2] + "b") if unit in SIZES), None)
    if match is None or unit is None:
        raise ConfigurationError(f"--memory is '{text}': give a number of bytes, such as 512MB or 2GB")
    return int(min(float(match[1]) * SIZES[unit], float(MOST_BYTES)))


MOST_BYTES = 1 << 60  # as good as no limit
SIZES = {"": 1, "b": 1}
SIZES |= {f"{name}b": 1000**k for k, name in enumerate("kmgt", 1)}
SIZES |= {f"{name}ib": 1024**k for k, name in enumerate("kmgt", 1)}
