"""How much each column matters to a classifier's decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.engine.policy import in_role
from lols.engine.table import features_by_row, is_fixed
from lols.tasks.tables.columns import knot_id, scaled_id
from lols.tasks.tables.data import Encoder
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.input import column_names
from lols.tasks.tables.rows import Rows, type_ids
from lols.tasks.tables.task import ClassificationTask
from lols.tasks.tables.tree_of_labels import NOTHING


def importances_of(classifier: Any, rows: Rows) -> np.ndarray:
    """The importance of each column of the table, in the order of training; they add up to 1.

    At each decision on the way of a row to its class, a column adds something to the margin: what the other children
    are predicted to cost on average, less what the one taken is. The importance is how much this differs, from row to
    row, from its mean over the rows that come to the decision: the mean absolute deviation, summed over decisions. A
    column that adds the same to all rows counts nothing, and neither does one that is ignored.
    """
    made = np.zeros(classifier.n_features_in_)
    task, policy = classifier.task_, classifier._fitted.policy
    if policy.thresholds or is_fixed(policy.shared) or rows.rows == 0:
        return made
    found = _deviations(task, policy, rows)
    if isinstance(task.encoder, TableEncoder):
        places = {name: k for k, name in enumerate(column_names(classifier))}
        made[[places[column.name] for column in task.encoder.columns]] = found
    else:
        made[:] = found
    total = made.sum()
    return made / total if total > 0.0 else made


def _deviations(task: ClassificationTask, policy: Any, rows: Rows) -> np.ndarray:
    """The mean absolute deviation of what each column of the encoder adds to margins."""
    items = task.encoder.items(rows, 1)
    lengths = np.diff(items.start)[items.types]
    at = np.repeat(items.start[:-1][items.types] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    of_row = np.repeat(np.repeat(np.arange(rows.rows), np.diff(items.bounds)), lengths)
    ids, which = np.unique(items.ids[at], return_inverse=True)
    values, (first, second) = items.values[at], _columns_of(task.encoder, ids)
    halves = np.where(second >= 0, 0.5, 1.0)  # what two columns have together is divided between them
    leaves = task.tree.leaf_of[np.argmin(task.class_costs(policy, rows), axis=1)][:, np.newaxis]
    row_of = {int(i): k for k, i in enumerate(features_by_row(policy.shared, policy.stack.shape[1]).tolist())}
    weights = np.tensordot(np.diff(policy.chances, prepend=0.0).astype(np.float32), policy.stack, axes=1)
    tree, columns = task.tree, _width(task.encoder)
    total = np.zeros(columns)
    for node in range(tree.children.shape[0]):
        legal = np.flatnonzero(tree.children[node] != NOTHING)
        below = (tree.first[node, legal] <= leaves) & (leaves < tree.last[node, legal])
        here = below.any(axis=1)
        if legal.size < 2 or not here.any():
            continue
        known = np.array([row_of.get(int(in_role(np.int64(i), node)), -1) for i in ids.tolist()])
        each = np.where(known[:, np.newaxis] >= 0, weights[known][:, legal], 0.0)[which]
        own = each[np.arange(each.shape[0]), below.argmax(axis=1)[of_row]]
        push = values * halves[which] * ((each.sum(axis=1) - own) / (legal.size - 1) - own)
        added = np.zeros(rows.rows * columns)
        for column in (first[which], second[which]):
            used = column >= 0
            added += np.bincount(of_row[used] * columns + column[used], weights=push[used], minlength=added.size)
        mine = added.reshape(rows.rows, columns)[here]
        total += np.abs(mine - mine.mean(axis=0)).sum(axis=0)
    return total / rows.rows


def _width(encoder: Encoder) -> int:
    return len(encoder.columns) if isinstance(encoder, TableEncoder) else int(encoder.scales.size)


def _columns_of(encoder: Encoder, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The column of each feature, and the other one of an interaction; -1 for none."""
    first, second = np.full((2, ids.size), -1, np.int64)
    if not isinstance(encoder, TableEncoder):
        own = {int(identity): k for k, identity in enumerate(encoder.ids.tolist())}
        first[:] = [own.get(identity, -1) for identity in ids.tolist()]
        return first, second
    numbers = [(k, c) for k, c in enumerate(encoder.columns) if c.kind == "number"]
    own = {scaled_id(k): k for k, _ in numbers} | {knot_id(k, n): k for k, c in numbers for n in range(c.edges.size)}
    kinds = {int(identity): kind for kind, identity in enumerate(type_ids(encoder.types).tolist())}
    for at, identity in enumerate(ids.tolist()):
        kind = kinds.get(identity)
        if kind is None:
            first[at] = own[identity] if identity in own else encoder.text_column(identity)
        elif kind > 0:
            column = int(np.searchsorted(encoder.first, kind, side="right")) - 1
            if column < len(encoder.columns):
                first[at] = column
            else:
                first[at], second[at] = encoder.pairs[column - len(encoder.columns)]
    return first, second
