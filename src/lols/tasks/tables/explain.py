"""How a classifier decides about one row: the path down the tree, and which features led it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.engine.policy import in_role
from lols.engine.table import lookup
from lols.errors import LolsError
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.inspect import FeatureNames, below, child_name, relative
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import labelled_reader, table_encoder
from lols.tasks.tables.reading import TablePiece, encoded
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.task import ClassificationTask
from lols.tasks.tables.tree_of_labels import NOTHING
from lols.tasks.tables.words import WORD, word_id

if TYPE_CHECKING:
    from lols.io.tables import TableSource


@dataclass(frozen=True)
class Child:
    """A child of a node: `predicted` is its cost as the model predicts it, `cost` that of the cheapest class below."""

    name: str
    classes: tuple[str, ...]
    predicted: float
    cost: float | None
    taken: bool


@dataclass(frozen=True)
class Reason:
    """A feature, and by how much it made the child that was taken seem cheaper than the others, on average."""

    feature: str
    push: float


@dataclass(frozen=True)
class Turn:
    """A decision at a node; the most important reasons come first, and there are none where they cannot be computed."""

    node: int
    children: tuple[Child, ...]
    reasons: tuple[Reason, ...]

    @property
    def taken(self) -> Child:
        """The child that was taken."""
        return next(child for child in self.children if child.taken)

    @property
    def costly(self) -> bool:
        """Whether another child is known to have been better."""
        costs = [child.cost for child in self.children if child.cost is not None]
        return self.taken.cost is not None and self.taken.cost > min(costs)


@dataclass(frozen=True)
class TreeWalk:
    """The path from the root to a class; `cost` is what the prediction costs, if the truth is known."""

    predicted: str
    true: str | None
    cost: float | None
    turns: tuple[Turn, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return asdict(self)


def explain_row(
    classifier: Any,
    rows: Rows,
    true: int | None = None,
    *,
    costs: np.ndarray | None = None,
    words: Mapping[int, str] | None = None,
    top: int = 5,
) -> TreeWalk:
    """Follow a classifier with one encoded row; `true` is the number of its class, `costs` are those of all classes.

    `words` are the names of features that only the row itself knows.

    >>> from lols import CostSensitiveClassifier
    >>> X = [[colour, k] for k in range(9) for colour in ("red", "green", "blue")]
    >>> model = CostSensitiveClassifier(tree="order").fit(X, [colour[0] for colour, _ in X])
    >>> made = explain_row(model, model._rows([["red", 3]]), true=2, top=1)
    >>> made.predicted, made.cost, [(turn.taken.classes, turn.reasons[0].feature) for turn in made.turns]
    ('r', 0.0, [(('g', 'r'), 'x0 = red'), (('r',), 'x0 = red')])
    """
    task: ClassificationTask = classifier.task_
    tree, policy = task.tree, classifier._fitted.policy
    found = classifier._fitted.run(task.examples(rows), scores=True)
    taken, predicted = found.actions(0).astype(np.int64).tolist(), found.costs(0)
    label = int(task.labels_of(found.states)[0])
    if costs is None and true is not None:
        costs = (1.0 - np.eye(tree.labels) if task.matrix is None else task.matrix)[true]
    identities, values = _features(task, rows)
    names = FeatureNames(task.encoder)
    names.own |= words or {}
    turns, node = [], 0
    for step, action in enumerate(taken):
        legal = np.flatnonzero(tree.children[node] != NOTHING).tolist()
        children = tuple(
            Child(
                child_name(task, node, a),
                tuple(below(task, node, a)),
                float(predicted[step, a]),
                None if costs is None else float(costs[tree.order[tree.first[node, a] : tree.last[node, a]]].min()),
                a == action,
            )
            for a in legal
        )
        pushes = np.zeros(0)
        if not policy.thresholds and len(legal) > 1:
            pushes = -relative(_weights(policy, identities, values, node)[:, legal])[:, legal.index(action)]
        order = [k for k in np.argsort(-np.abs(pushes), kind="stable")[:top].tolist() if pushes[k] != 0.0]
        reasons = tuple(Reason(_named(names, int(identities[k]), float(values[k])), float(pushes[k])) for k in order)
        turns.append(Turn(node, children, reasons))
        node = int(tree.children[node, action])
    truth = None if true is None else str(task.classes[true])
    return TreeWalk(str(task.classes[label]), truth, None if costs is None else float(costs[label]), tuple(turns))


def _features(task: ClassificationTask, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The features of a row and their values, whatever the node."""
    items = task.encoder.items(rows, 1)
    spans = [slice(int(items.start[kind]), int(items.start[kind + 1])) for kind in items.types.tolist()]
    at = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    return items.ids[at], items.values[at]


def _weights(policy: Any, identities: np.ndarray, values: np.ndarray, node: int) -> np.ndarray:
    """What each feature adds to the predicted costs at a node; of several policies, on average."""
    shares = np.diff(policy.chances, prepend=0.0).astype(np.float32)
    made = np.zeros((identities.size, policy.stack.shape[2]), np.float32)
    for k, identity in enumerate(identities):
        row = int(lookup(policy.shared, in_role(np.int64(identity), node)))
        if row >= 0:
            made[k] = values[k] * (shares @ policy.stack[:, row])
    return made


def _named(names: FeatureNames, identity: int, value: float) -> str:
    name = names.of(identity)
    return name if value == 1.0 or name.startswith("'") else f"{name}: {value:.3g}"


def read_row(
    classifier: Any, source: TableSource, row: int, layout: TableFiles, *, labelled: bool
) -> tuple[Rows, TablePiece]:
    """One row of a table, counted from 0: its features; and its cells, with what is right if it is labelled."""
    reader, first = labelled_reader(classifier, source, layout, labelled=labelled), 0
    for batch in source.batches():
        if row < first + batch.num_rows:
            piece = reader.piece(_compact(batch.slice(row - first, 1)), row)
            return encoded(table_encoder(classifier), piece, source), piece
        first += batch.num_rows
    raise LolsError(f"{source.paths[0]}: there is no row {row + 1}; it has {first:,}")


def words_in(encoder: TableEncoder, piece: TablePiece) -> dict[int, str]:
    """What the words in a row's columns of texts are called, by their features."""
    found = {}
    for n, k in enumerate(encoder.texts):
        name = encoder.columns[k].name
        for word in WORD.findall(piece.columns[name].text(0).lower()):
            found[word_id(word, n)] = f"'{word}' in {name}"
    return found


def _compact(batch: Any) -> Any:
    """The same rows, with no more texts than they have."""
    columns = [c.dictionary_decode() if hasattr(c, "dictionary_decode") else c for c in batch.columns]
    return batch.from_arrays(columns, names=batch.schema.names)
