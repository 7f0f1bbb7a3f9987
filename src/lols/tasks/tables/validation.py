"""Checks of tables and labels: by scikit-learn where it is installed, so that its tools find what they expect.

Without it, what is needed of these checks: tables of two dimensions, with the columns of training.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.errors import LolsError


def installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported."""
    return (package in sys.modules and sys.modules[package] is not None) or (
        package not in sys.modules and importlib.util.find_spec(package) is not None
    )


def is_sparse(array: Any) -> bool:
    """Whether it is a sparse matrix of SciPy, of any kind."""
    return hasattr(array, "tocsr") and hasattr(array, "nnz")


def checked_frame(estimator: Any, X: Any, names: Sequence[Any], *, reset: bool) -> None:
    """Keep the names of a data frame's columns, or compare them with those of training."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:
        _note(estimator, len(names), names if all(isinstance(name, str) for name in names) else None, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)


def check_names(estimator: Any, names: Sequence[str], *, reset: bool) -> None:
    """The same for other tables whose columns have names."""
    _note(estimator, len(names), names, reset=reset)


def checked_array(estimator: Any, X: Any, *, reset: bool) -> Any:
    """An array of two dimensions, or a sparse matrix by rows, with as many columns as in training."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:
        made = X.tocsr() if is_sparse(X) else np.asarray(X)
        if made.ndim != 2:
            what = f"{made.ndim} dimension{'s' if made.ndim != 1 else ''}"
            raise LolsError(f"the table has {what}: give rows of cells, such as [[1, 'red'], [2, 'blue']]") from None
        _note(estimator, made.shape[1], None, reset=reset)
        return made
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
    return validate_data(estimator, X, reset=reset, **checks)


def checked_labels(y: Any, rows: int) -> np.ndarray:
    """Labels in one dimension, as many as there are rows."""
    try:
        from sklearn.utils import column_or_1d
        from sklearn.utils.validation import check_consistent_length
    except ImportError:
        made = np.asarray(y)
        made = made.ravel() if made.ndim == 2 and made.shape[1] == 1 else made
        if made.shape != (rows,):
            raise LolsError(f"y has the shape {made.shape}, but there are {rows} rows: give a label for each") from None
        return made
    made = np.asarray(column_or_1d(np.asarray(y), warn=True))
    check_consistent_length(np.empty(rows), made)
    return made


def check_classes(y: np.ndarray) -> None:
    """Whether labels are classes, and not numbers with fractions, as scikit-learn asks."""
    try:
        from sklearn.utils.multiclass import check_classification_targets
    except ImportError:
        if y.dtype.kind == "f" and (y != np.round(y)).any():
            raise LolsError(
                f"the labels are numbers with fractions, such as {y[y != np.round(y)][0]}: give classes"
            ) from None
    else:
        check_classification_targets(y)


def _note(estimator: Any, count: int, names: Sequence[str] | None, *, reset: bool) -> None:
    if reset:
        estimator.n_features_in_ = count
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    if count != estimator.n_features_in_:
        raise LolsError(f"the table has {count} columns, but in training there were {estimator.n_features_in_}")
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        wrong = next(k for k, (a, b) in enumerate(zip(known, names, strict=True)) if a != b)
        raise LolsError(f"column {wrong} is '{names[wrong]}', but in training it was '{known[wrong]}'")
