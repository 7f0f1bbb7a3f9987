"""How good classifications are: average cost, errors, and which class was taken for which."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.tasks.tables.targets import Targets
from lols.training.calibration import Reliability


@dataclass(frozen=True)
class ClassScores:
    """The scores of predictions on labelled rows."""

    rows: int
    cost: float  # on average
    error: float  # the share of wrong classes
    classes: list[Any]
    confusion: np.ndarray  # [true, predicted]: how many rows
    reliability: Reliability | None = None  # of the confidence in classes; None if that is unknown

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
            **({} if self.reliability is None else self.reliability.as_dict()),
        }


def score_classes(
    classes: list[Any], targets: Targets, predicted: np.ndarray, confidence: np.ndarray | None = None
) -> ClassScores:
    """Compare predictions, as numbers of classes, and the confidence in them with what is right."""
    count, labels = len(classes), targets.cheapest
    confusion = np.bincount(labels * count + predicted, minlength=count * count).reshape(count, count)
    scores = scores_of_confusion(classes, confusion, targets.matrix)
    if targets.vectors is not None:
        scores = replace(scores, cost=float(targets.vectors[np.arange(predicted.size), predicted].mean()))
    if confidence is not None:
        scores = replace(scores, reliability=Reliability.of(confidence, predicted == labels))
    return scores


def scores_of_confusion(classes: list[Any], confusion: np.ndarray, matrix: np.ndarray | None) -> ClassScores:
    """The scores that follow from which class was taken for which how often, with costs by matrix or 1 a mistake."""
    rows = int(confusion.sum())
    if rows == 0:
        raise LolsError("there are no rows to evaluate on")
    costs = 1.0 - np.eye(len(classes)) if matrix is None else matrix
    error = 1.0 - float(np.trace(confusion)) / rows
    return ClassScores(rows, float((confusion * costs).sum() / rows), error, classes, confusion)
