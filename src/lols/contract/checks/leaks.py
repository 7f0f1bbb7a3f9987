"""Finds where the truth gets into the input: columns that are copies, and another truth to detect dependences."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.checks.findings import Findings
from lols.contract.examples import Examples, Ragged, Scalar, view

TRIES = 10


def find_copied_truth(examples: Examples, findings: Findings) -> None:
    """Report columns of x that equal a column of y in every example."""
    for x_name, x_column in zip(examples.x._fields, examples.x, strict=True):
        for y_name, y_column in zip(examples.y._fields, examples.y, strict=True):
            if _copied(x_column, y_column):
                message = (
                    f"puts the same values into column '{x_name}' of x as into column '{y_name}' of y, in every "
                    "example: the truth leaks into the input; leave it out of x"
                )
                findings.add("encode", f"copied:{y_name}", message)


def _copied(x_column: Any, y_column: Any) -> bool:
    if type(x_column) is not type(y_column) or not isinstance(x_column, Ragged | Scalar):
        return False
    same = all(np.array_equal(in_x, in_y) for in_x, in_y in zip(x_column, y_column, strict=True))
    return same and np.unique(y_column.values).size > 1  # equality of constant columns proves nothing


def altered_truth(examples: Examples, index: int, rng: np.random.Generator) -> Any:
    """A different truth of the same shape, with values drawn from the data set; None if there is none."""
    if not examples.has_truth:
        return None
    old = [np.asarray(view(column, index)) for column in examples.y]
    for _ in range(TRIES):
        new = [rng.choice(c.values, size=v.shape) if v.size else v for c, v in zip(examples.y, old, strict=True)]
        if not all(np.array_equal(*pair) for pair in zip(new, old, strict=True)):
            return type(examples.y)(*(value if value.ndim else value[()] for value in map(np.asarray, new)))
    return None
