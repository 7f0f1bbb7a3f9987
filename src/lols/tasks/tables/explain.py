"""How a classifier decides about one row: the path down the tree, and which features led it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.engine.policy import in_role
from lols.engine.table import lookup
from lols.errors import LolsError
from lols.tasks.explain import ExplainedDecision, Explanation, FollowedPath, Reason
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

CHILDREN = 12  # of a node that are shown
CELLS = 400  # characters of a row


@dataclass(frozen=True, kw_only=True)
class ClassifiedRow(Explanation):
    """The path of a row from the root to a class; the actions at a node are its children.

    The loss of a child is the cost of the cheapest class below, which is what the optimal teacher makes of it. A state
    is the number of a node, and the classes below each child.
    """

    true: str | None
    place: str
    shown: tuple[str, ...]

    ACTION, RIGHT, LOSS = "child", "the one above the true class", "the cost of the cheapest class below"

    def about(self, model: str) -> list[str]:
        """The row, and what is right."""
        text = ", ".join(self.shown)
        row = f"{self.place}: {text if len(text) <= CELLS else text[: CELLS - 2] + ' …'}" if self.place else ""
        if self.true is None:
            return [row, f"predicted {self.output} by {model}"]
        right = "which is right" if self.output == self.true else f"true {self.true}: a cost of {self.loss:g}"
        return [row, f"predicted {self.output}, {right}; by {model}", *self.roll_out_text()]

    def cells(self, decision: ExplainedDecision) -> dict[str, list[str]]:
        """The node."""
        return {"node": [str(decision.state["node"])]}

    def old_values(self, top: int | None) -> dict[str, Any]:
        """The decisions by other names, with the costs of the cheapest classes."""
        turns = []
        for each in self.decisions:
            actions = {a.action: a for a in each.actions}
            children = [
                {"name": name, "classes": classes, "predicted": actions[name].predicted, "cost": actions[name].loss}
                | {"taken": actions[name].taken}
                for name, classes in each.state["classes"].items()
            ]
            reasons = [reason._asdict() for reason in each.reasons]
            turns.append({"node": each.state["node"], "children": children, "reasons": reasons})
        return {"predicted": self.output, "true": self.true, "cost": self.loss, "turns": turns}


def explain_row(
    classifier: Any,
    rows: Rows,
    true: int | None = None,
    *,
    costs: np.ndarray | None = None,
    words: Mapping[int, str] | None = None,
    top: int = 5,
    place: str = "",
    shown: Sequence[str] = (),
) -> ClassifiedRow:
    """Follow a classifier with one encoded row; `true` is the number of its class, `costs` are those of all classes.

    `words` are the names of features that only the row itself knows, `place` says where it is in a file, and `shown`
    are its cells as they are printed.

    >>> from lols import CostSensitiveClassifier
    >>> X = [[colour, k] for k in range(9) for colour in ("red", "green", "blue")]
    >>> model = CostSensitiveClassifier(tree="order").fit(X, [colour[0] for colour, _ in X])
    >>> made = explain_row(model, model._rows([["red", 3]]), true=2, top=1)
    >>> made.output, made.loss, [(each.taken.action, each.reasons[0].feature) for each in made.decisions]
    ('r', 0.0, [('g | r (node 1)', 'x0 = red'), ('r', 'x0 = red')])
    """
    task: ClassificationTask = classifier.task_
    tree, policy = task.tree, classifier._fitted.policy
    run = classifier._fitted.run(task.examples(rows), scores=True)
    taken, label = run.actions(0).astype(np.int64), int(task.labels_of(run.states)[0])
    if costs is None and true is not None:
        costs = (1.0 - np.eye(tree.labels) if task.matrix is None else task.matrix)[true]
    path = FollowedPath(taken, run.costs(0))
    nodes = [0]
    for action in taken.tolist():
        nodes.append(int(tree.children[nodes[-1], action]))
    if costs is not None:
        losses = _cheapest(task, nodes[:-1], costs)
        path = path._replace(losses=losses, costs=losses - losses.min(axis=1, keepdims=True), roll_out="reference")
    identities, values = _features(task, rows)
    names = FeatureNames(task.encoder)
    names.own |= words or {}
    decisions = []
    for step, (node, action) in enumerate(zip(nodes, taken.tolist(), strict=False)):
        legal = np.flatnonzero(tree.children[node] != NOTHING).tolist()
        pushes = np.zeros(0)
        if not policy.thresholds and len(legal) > 1:
            pushes = -relative(_weights(policy, identities, values, node)[:, legal])[:, legal.index(action)]
        order = [k for k in np.argsort(-np.abs(pushes), kind="stable")[:top].tolist() if pushes[k] != 0.0]
        reasons = tuple(Reason(_named(names, int(identities[k]), float(values[k])), float(pushes[k])) for k in order)
        right = [a for a in legal if true is not None and str(task.classes[true]) in below(task, node, a)]
        actions, reference = path.actions(step, partial(child_name, task, node), right), None
        if path.costs is not None:
            reference = child_name(task, node, int(path.costs[step].argmin()))
        costly = path.costs is not None and bool(path.costs[step, action] > 0.0)
        state = {"node": node, "classes": {child_name(task, node, a): below(task, node, a) for a in legal}}
        decisions.append(ExplainedDecision(step + 1, state, actions, reference, costly, reasons))
    return ClassifiedRow(
        decisions=tuple(decisions),
        output=str(task.classes[label]),
        reference="optimal",
        loss=None if costs is None else float(costs[label]),
        roll_out=path.roll_out,
        true=None if true is None else str(task.classes[true]),
        place=place,
        shown=tuple(shown),
    )


def _cheapest(task: ClassificationTask, nodes: Sequence[int], costs: np.ndarray) -> np.ndarray:
    """The cost of the cheapest class below each child of some nodes; infinite where there is no child."""
    tree = task.tree
    least = np.full((len(nodes), tree.children.shape[1]), np.inf)
    for k, node in enumerate(nodes):
        for a in np.flatnonzero(tree.children[node] != NOTHING).tolist():
            least[k, a] = costs[tree.order[tree.first[node, a] : tree.last[node, a]]].min()
    return least


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
