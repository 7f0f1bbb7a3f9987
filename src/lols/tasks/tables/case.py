"""A classifier and labelled rows as a case for a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.choosing import Draw
from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.tasks.case import Case, Naming, draw_examples, teacher_of
from lols.tasks.tables.cells import cells_of_batch
from lols.tasks.tables.files import LabelNumbers, TablePiece, check_columns, encoded, table_encoder
from lols.tasks.tables.input import Targets
from lols.tasks.tables.inspect import child_name
from lols.tasks.tables.rows import Rows, joined

__all__ = ["rows_case", "table_case"]


def rows_case(classifier: Any, X: Any, y: Any, costs: Any, reference: str | None, limit: int | None, seed: int) -> Case:
    """The case of a table and labels or costs as `fit` takes them."""
    rows, task = classifier._rows(X), classifier.task_
    known = Targets(task.classes, None, task.matrix, None)
    targets = classifier._targets(rows.rows, y, costs, known)
    examples = task.examples(rows, targets.labels, targets.vectors, targets.weights)
    return _case(classifier, *draw_examples(examples, limit, seed), reference)


def table_case(classifier: Any, source: Any, label: str, reference: str | None, limit: int | None, seed: int) -> Case:
    """A classifier and a table, of which no more than the rows that may be drawn are held."""
    encoder, task = table_encoder(classifier), classifier.task_
    names = [column.name for column in encoder.columns]
    check_columns(source, names, label)
    numbers = LabelNumbers(label, [str(name) for name in task.classes], classifier.label_map)
    draw = Draw(limit, seed)
    parts: list[Rows] = []
    labels: list[np.ndarray] = []
    for batch in source.batches():
        cells = cells_of_batch(batch, [*names, label], source.typed)
        true = numbers.number(cells.pop(label), draw.count, source)
        rows = encoded(encoder, TablePiece(draw.count, batch.num_rows, cells, None), source)
        kept = draw.more(batch.num_rows)
        parts.append(rows.take(kept))
        labels.append(true[kept])
    if not parts:
        raise LolsError(f"{source.paths[0]}: there are no rows; give a table with some")
    chosen = draw.chosen()
    examples = task.examples(joined(parts).take(chosen), np.concatenate(labels)[chosen])
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
