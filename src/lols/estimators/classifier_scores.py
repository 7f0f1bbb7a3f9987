"""How good classifications are: average cost, errors, and which class was taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.estimators.classifier_input import Targets

__all__ = ["ClassScores", "score_classes"]


@dataclass(frozen=True)
class ClassScores:
    """The scores of predictions on labelled rows."""

    rows: int
    cost: float  # on average
    error: float  # the share of wrong classes
    classes: list[Any]
    confusion: np.ndarray  # [true, predicted]: how many rows

    def by_class(self) -> dict[str, dict[str, float]]:
        """Precision, recall, F1 and number of rows of each class."""
        right, true, said = np.diag(self.confusion), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        made = {}
        for k, name in enumerate(self.classes):
            precision, recall = float(right[k] / max(said[k], 1)), float(right[k] / max(true[k], 1))
            f1 = 2 * precision * recall / max(precision + recall, 1e-12)
            made[str(name)] = {"precision": precision, "recall": recall, "f1": f1, "count": int(true[k])}
        return made

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "rows": self.rows,
            "cost": self.cost,
            "error": self.error,
            "classes": [str(c) for c in self.classes],
            "confusion": self.confusion.tolist(),
            "by_class": self.by_class(),
        }


def score_classes(classes: list[Any], targets: Targets, predicted: np.ndarray) -> ClassScores:
    """Compare predictions, as numbers of classes, with what is right."""
    if predicted.size == 0:
        raise LolsError("there are no rows to evaluate on")
    count = len(classes)
    labels = targets.cheapest
    if targets.vectors is not None:
        cost = float(targets.vectors[np.arange(predicted.size), predicted].mean())
    elif targets.matrix is not None:
        cost = float(targets.matrix[labels, predicted].mean())
    else:
        cost = float((labels != predicted).mean())
    confusion = np.bincount(labels * count + predicted, minlength=count * count).reshape(count, count)
    return ClassScores(int(predicted.size), cost, float((labels != predicted).mean()), classes, confusion)
