"""The tables that a classifier is given, of any kind: their columns, checked and looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError, short, shown
from lols.io.csv_head import check_distinct
from lols.tasks.tables.cells import Cells, NoNumber, arrow, cells_of_array, cells_of_batch
from lols.tasks.tables.meanings import MISSING
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.targets import names_text
from lols.tasks.tables.validation import check_names, checked_array, checked_frame, is_sparse

LISTS = ("classes", "categorical", "numerical", "ignore", "text", "missing", "interactions")  # options


class InputTable(NamedTuple):
    """A table's columns, or a sparse matrix."""

    rows: int
    columns: dict[str, Cells]
    matrix: Any = None


def check_lists(estimator: Any) -> None:
    """Options that list names must be lists."""
    for name in LISTS:
        value = getattr(estimator, name)
        if value is not None and not hasattr(value, "__iter__"):
            raise ConfigurationError(f"{name} is {shown(value)}; give a list")


def table_of(estimator: Any, X: Any, *, reset: bool) -> InputTable:
    """Columns from a data frame, an Arrow table, an array, lists or dictionaries; a sparse matrix as it is."""
    if reset:
        check_lists(estimator)
    if _is_frame(X):
        names = list(getattr(X, "column_names", None) or X.columns)
        check_distinct([str(name) for name in names])
        checked_frame(estimator, X, names, reset=reset)
        made = _frame(X)
        return made._replace(columns=dict(zip(column_names(estimator), made.columns.values(), strict=True)))
    named = _named(X, () if reset else getattr(estimator, "feature_names_in_", ()))
    if named is not None:
        if not named:
            raise LolsError("the dictionaries are empty: give rows such as {'age': 17, 'colour': 'red'}")
        check_distinct(list(named))
        check_names(estimator, list(named), reset=reset)
        return InputTable(len(X), {name: cells_of_array(array) for name, array in named.items()})
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
    """Nested lists as objects: else NumPy would make texts of numbers beside texts, and numbers of Booleans."""
    if not isinstance(X, list | tuple) or not all(isinstance(row, list | tuple) for row in X):
        return X
    try:
        return np.array(X, dtype=object) if np.asarray(X).dtype.kind in "USfiumM" else X
    except ValueError:
        return X  # to be told what is wrong with it


def _named(X: Any, known: Iterable[str]) -> dict[str, np.ndarray] | None:
    """The columns of a list of dictionaries, or of an array with named fields; None for anything else.

    The `known` columns come first. A column that a dictionary does not have is missing there.
    """
    if isinstance(X, np.ndarray) and X.dtype.names:
        return {name: X[name] for name in X.dtype.names}
    if not isinstance(X, list | tuple) or not X or not all(isinstance(row, Mapping) for row in X):
        return None
    made = {}
    for name in dict.fromkeys([*known, *(name for row in X for name in row)]):
        made[str(name)] = np.empty(len(X), dtype=object)
        made[str(name)][:] = [row.get(name) for row in X]
    return made


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
                raise ConfigurationError(f"{what} names '{name}', which is not a column; there are {names_text(names)}")
            if kinds[name] not in (None, kind):
                raise ConfigurationError(f"column '{name}' is said to be two things: name it once")
            kinds[name] = kind
    made = {name: kind for name, kind in kinds.items() if kind != "ignore"}
    if not made:
        raise ConfigurationError("all columns are ignored: leave one")
    return made


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
