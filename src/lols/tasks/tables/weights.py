"""How much each row counts: what its costs are multiplied by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.engine.structures import LARGEST_COST
from lols.errors import ConfigurationError, LolsError, shown
from lols.io.costs import are_costs

FORMS = 'give "balanced", or the weight of each class: {class: weight}'


def row_weights(given: Any, rows: int, what: str = "sample_weight") -> np.ndarray | None:
    """A weight for each row, checked; one number is that of all rows."""
    if given is None:
        return None
    try:
        made = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise LolsError(f"{what} is not made of numbers: give a number from 0 on for each row") from None
    if made.ndim == 0:
        made = np.full(rows, float(made))
    if made.ndim != 1:
        raise LolsError(f"{what} has {made.ndim} dimensions, sample weights must be 1D array or scalar")
    if made.size != rows:
        raise LolsError(f"{what} has the shape {made.shape}, but there are {rows} rows: give a number for each")
    wrong = ~are_costs(made)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise LolsError(f"row {row}: {what} is {made[row]}: give a number from 0 on, at most {LARGEST_COST:g}")
    if not made.any():
        raise LolsError(f"{what}: the weights of all rows are zero, so there is nothing to learn")
    return made


def class_weights(given: Any, classes: Sequence[Any], counts: np.ndarray) -> np.ndarray | None:
    """A weight for each class: by name, 1 where none is given; or `"balanced"`, so that all classes weigh the same.

    >>> class_weights("balanced", ["no", "yes"], np.array([30, 10])).tolist()
    [0.6666666666666666, 2.0]
    >>> class_weights({"yes": 5}, ["no", "yes"], np.array([30, 10])).tolist()
    [1.0, 5.0]
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        there = max(int((counts > 0).sum()), 1)
        return np.where(counts > 0, counts.sum() / (there * np.maximum(counts, 1)), 1.0)
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"class_weight is {shown(given)}: {FORMS}")
    numbers = {str(name): k for k, name in enumerate(classes)} | {name: k for k, name in enumerate(classes)}
    made = np.ones(len(classes))
    for name, weight in given.items():
        number = numbers.get(name, numbers.get(str(name)))
        if number is None:
            known = ", ".join(map(str, classes[:20]))
            raise ConfigurationError(f"class_weight names {shown(name)}, which is none of the classes {known}")
        try:
            made[number] = float(weight)
        except (TypeError, ValueError, OverflowError):
            made[number] = np.nan
        if not are_costs(made[number]):
            raise ConfigurationError(f"class_weight has {shown(weight)} for {shown(name)}: give a number from 0 on")
    return made


def product(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    """Both weights of each row together; None where there are none."""
    if first is None or second is None:
        return second if first is None else first
    made: np.ndarray = first * second
    return made


def weights_of(text: str) -> Any:
    """The weights of classes as they are typed.

    >>> weights_of("balanced"), weights_of("yes=5, no=0.5")
    ('balanced', {'yes': 5.0, 'no': 0.5})
    """
    if text.strip() == "balanced":
        return "balanced"
    made = {}
    for part in text.split(","):
        name, _, weight = (piece.strip() for piece in part.rpartition("="))
        try:
            made[name] = float(weight)
        except ValueError:
            name = ""
        if not name:
            raise ConfigurationError(f"--class-weight is '{text}': give balanced, or CLASS=WEIGHT,CLASS=WEIGHT")
    return made
