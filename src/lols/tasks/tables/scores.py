"""How good classifications are: average cost, errors, and which class was taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.errors import LolsError
from lols.tasks.tables.targets import Targets
from lols.training.calibration import Reliability, added

if TYPE_CHECKING:
    from rich.console import Console

MOST = 24  # classes whose confusions are shown as a table
WORST = 20  # confusions that are listed where there are more classes


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


# --- text -------------------------------------------------------------------------------------------------------------


def unknown_text(unknown: dict[str, int]) -> list[str]:
    """How many cells had categories that training never showed, as a line if there are any."""
    if not unknown:
        return []
    columns = ", ".join(f"{name} {count:,}" for name, count in sorted(unknown.items(), key=lambda item: -item[1]))
    return [f"cells whose category training never showed, left out: {columns}"]


@dataclass(frozen=True)
class ClassifierScores:
    """Cost, errors, which class was taken for which, and every class."""

    scores: ClassScores
    unknown: dict[str, int]
    plot: str | None = None
    note: str = ""  # on costs

    @classmethod
    def of_parts(cls, parts: Sequence[ClassifierScores]) -> ClassifierScores:
        """The scores of all parts of a table, from those of each."""
        unknown: Counter[str] = Counter()
        for part in parts:
            unknown.update(part.unknown)
        scores = [part.scores for part in parts]
        rows = sum(each.rows for each in scores)
        confusion = np.sum([each.confusion for each in scores], axis=0)
        whole = replace(
            scores[0],
            rows=rows,
            cost=sum(each.cost * each.rows for each in scores) / rows,
            error=1.0 - float(np.trace(confusion)) / rows,
            confusion=confusion,
            reliability=added(each.reliability for each in scores),
        )
        return cls(whole, dict(unknown), note=next((part.note for part in parts if part.note), ""))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        drawn = {} if self.plot is None else {"plot": self.plot}
        return self.scores.as_dict() | {"unknown": self.unknown} | drawn | ({"note": self.note} if self.note else {})

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print them."""
        from lols.tasks.show import show_again, show_calibration, show_matrix, show_scores, write

        found = self.scores
        headline = f"cost {found.cost:.4f} per row on {found.rows:,} rows, error {100 * found.error:.2f} %"
        write(console, headline)
        if self.note:
            write(console, self.note)
        for line in unknown_text(self.unknown):
            write(console, line)
        show_calibration(console, found.reliability)
        write(console)
        classes, confusion = [str(name) for name in found.classes], found.confusion.tolist()
        if len(classes) <= MOST:
            cells = [[_count_cell(n, k == j) for j, n in enumerate(row)] for k, row in enumerate(confusion)]
            show_matrix(console, "true \\ predicted", classes, cells)
        else:
            _show_worst(console, classes, confusion)
        write(console)
        lines = show_scores(console, "class", found.by_class(), whole=whole)
        show_again(console, [headline], lines + (len(classes) if len(classes) <= MOST else 0))
        if self.plot is not None:
            write(console, f"\n{self.plot} written")


def _count_cell(count: int, right: bool) -> Any:
    from lols.tasks.show import NONE, styled

    return NONE if not count else styled(f"{count:,}", "bold") if right else f"{count:,}"


def _show_worst(console: Console, classes: list[str], confusion: list[list[int]]) -> None:
    from lols.tasks.show import write

    pairs = [(n, a, b) for a, row in enumerate(confusion) for b, n in enumerate(row) if n and a != b]
    pairs.sort(key=lambda pair: -pair[0])
    more = f" and {len(pairs) - WORST} more" if len(pairs) > WORST else ""
    write(console, "most frequent mistakes (true → predicted):")
    listed = ", ".join(f"{classes[a]} → {classes[b]} {n:,}" for n, a, b in pairs[:WORST])
    write(console, listed + more)
