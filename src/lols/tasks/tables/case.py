"""A classifier and labelled rows as a case for a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.choosing import Draw
from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.tasks.case import Case, Naming, draw_examples, teacher_of
from lols.tasks.tables.inspect import child_name
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import labelled_reader, table_encoder
from lols.tasks.tables.reading import encoded
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.targets import Targets, together


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
    encoder, task = table_encoder(classifier), classifier.task_
    draw, known = Draw(limit, seed), Targets(task.classes, None, task.matrix, None)
    parts: list[Rows] = []
    targets: list[Targets] = []
    for piece in labelled_reader(classifier, source, layout).pieces():
        kept = draw.more(piece.rows)
        parts.append(encoded(encoder, piece, source).take(kept))
        targets.append(known._replace(labels=piece.labels, vectors=piece.costs).take(kept))
    if not parts:
        raise LolsError(f"{source.paths[0]}: there are no rows; give a table with some")
    chosen = draw.chosen()
    examples = task.examples(joined(parts).take(chosen), together(targets).take(chosen))
    return _case(classifier, examples, draw.count, reference)


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
