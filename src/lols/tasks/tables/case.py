"""A classifier and labelled rows as a case for a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.tasks.case import Case, draw_examples, teacher_of
from lols.tasks.problem import Naming
from lols.tasks.tables.inspect import child_name
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import drawn_rows
from lols.tasks.tables.targets import Targets


def rows_case(classifier: Any, X: Any, y: Any, costs: Any, reference: str | None, limit: int | None, seed: int) -> Case:
    """The case of a table and labels or costs as `fit` takes them."""
    rows, task = classifier._rows(X), classifier.task_
    known = Targets(task.classes, None, task.matrix, None)
    targets = classifier._targets(rows.rows, y, costs, known)
    examples = task.examples(rows, targets)
    return _case(classifier, *draw_examples(examples, limit, seed), reference)


def table_case(
    classifier: Any, source: Any, layout: TableFiles, reference: str | None, limit: int | None, seed: int
) -> Case:
    """A classifier and a table, of which no more than the rows that may be drawn are held."""
    rows, targets, count = drawn_rows(classifier, source, layout, limit, seed)
    return _case(classifier, classifier.task_.examples(rows, targets), count, reference)


def _case(classifier: Any, examples: Examples, of: int, reference: str | None) -> Case:
    """The case of a classifier; decisions are named by the classes below a child, at each node of the tree."""
    task = classifier.task_
    teacher, named = teacher_of(classifier, reference)
    children = task.tree.children

    def nodes(deviations: Any, taken: np.ndarray) -> np.ndarray:
        """The node at which each decision was made."""
        made = np.zeros(taken.size, np.int64)
        for step in range(1, int(deviations.step.max(initial=0)) + 1):
            now = np.flatnonzero(deviations.step == step)
            made[now] = children[made[now - 1], taken[now - 1]]
        return made

    def name_of(node: int, action: int) -> str:
        return child_name(task, node, action).partition(" (node ")[0]

    naming = Naming(name_of, nodes)
    return Case(classifier._fitted, examples, teacher, naming, of, named, taught_by=classifier.reference)
