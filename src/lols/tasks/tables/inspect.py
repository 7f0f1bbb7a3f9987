"""What a classifier's model file is, as plain values: classes, their tree, columns, and what the features speak for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.engine.policy import in_role
from lols.engine.table import features_by_row, is_fixed
from lols.errors import LolsError
from lols.tasks.inspect import Inspection, Sides, speaking
from lols.tasks.tables.columns import ColumnCode, knot_id, scaled_id
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.input import column_names
from lols.tasks.tables.options import VERBS, ClassifierInspectOptions
from lols.tasks.tables.rows import type_ids
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.tree_of_labels import NOTHING

if TYPE_CHECKING:
    from rich.console import Console

FORMS = {"bins": "in bins", "scaled": "scaled", "both": "in bins and scaled", "curve": "as curves"}
MATTER = 8  # columns that matter most
MOST = 24  # classes whose costs are shown as a table
WIDEST = 60  # columns that are listed
FAR = 2.5e11  # seconds: dates beyond the year 9999 are shown as numbers
NAMED = 3  # classes below a child that are named


def inspect_classifier(
    classifier: Any, values: dict[str, Any], asked: ClassifierInspectOptions
) -> ClassifierInspection:
    """What is in the file of a classifier; the features are those of one node of its tree.

    A feature's weight is what it adds to the predicted cost of a child, less what it adds to the others on average.
    """
    found, policy, node = classifier.task_, classifier.model_.policy, asked.node
    names = [str(name) for name in found.classes]
    for name in asked.label or ():
        if name not in names:
            raise LolsError(f"there is no class '{name}' in this model: choose from {', '.join(names)}")
    nodes = found.tree.children.shape[0]
    if not 0 <= node < nodes:
        raise LolsError(f"--node is {node}: the tree has the nodes 0 to {nodes - 1}")
    values |= {
        "classes": names,
        "tree": _nested(found.tree.nested(), names),
        "depth": found.tree.depth,
        "nodes": nodes,
        "node": node,
        "cost_matrix": None if found.matrix is None else found.matrix.tolist(),
        **_columns(found.encoder),
        "importances": dict(zip(column_names(classifier), classifier.feature_importances_.tolist(), strict=True)),
    }
    if isinstance(values["columns"], int):
        del values["importances"]
    if asked.top and not policy.thresholds:
        values["features_of"] = {} if is_fixed(policy.shared) else _speaking(found, policy, asked)
    return ClassifierInspection(values, VERBS, asked.top)


class ClassifierInspection(Inspection):
    """What is in a classifier's file."""

    WHAT, SEVERAL = "child", "children"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Classes, tree and columns."""
        found = self.values
        yield "classes", f"{len(found['classes'])}: {' '.join(found['classes'])}"
        yield "tree", f"{_counted(found['nodes'], 'node')}, {_counted(found['depth'], 'decision')} at most"
        if found["label_map"] is not None:
            yield "label map", f"of {len(found['label_map'])} labels"
        if isinstance(found["columns"], int):
            yield "columns", f"{found['columns']:,} of a sparse matrix"
            return
        kinds = [column["kind"] for column in found["columns"]]
        how = FORMS[found["numeric"]]
        texts = f", {kinds.count('text')} of texts" if "text" in kinds else ""
        yield "columns", f"{kinds.count('number')} of numbers ({how}), {kinds.count('category')} of categories{texts}"
        most = sorted(found["importances"].items(), key=lambda pair: -pair[1])[:MATTER]
        if any(share for _, share in most):
            yield "matter most", ", ".join(f"{name} {100 * share:.0f} %" for name, share in most if share >= 0.005)
        if found["interactions"]:
            yield "interactions", ", ".join(f"{a} * {b}" for a, b in found["interactions"])
        if found["files"] is not None:
            yield "labels", f"in column {found['files']['label']}"

    def show_more(self, console: Console) -> None:
        """The tree, the costs and the columns."""
        from lols.tasks.show import NONE, plain_table, show_matrix, write

        found = self.values
        write(console, "\ntree of classes: decisions by their number")
        for line in drawn(found["tree"]):
            write(console, "  " + line)
        classes, matrix = found["classes"], found["cost_matrix"]
        if matrix is not None and len(classes) <= MOST:
            write(console)
            cells = [[f"{cost:g}" if cost else NONE for cost in row] for row in matrix]
            show_matrix(console, "cost: true \\ predicted", classes, cells)
        if isinstance(found["columns"], int):
            return
        write(console)
        table = plain_table("column", "holds", "background: no feature")
        for column in found["columns"][:WIDEST]:
            one, more = ("bin", "bins") if column["kind"] == "number" else ("category", "categories")
            holds = f"{column['values']:,} {one if column['values'] == 1 else more}"
            holds = "words" if column["kind"] == "text" else holds
            often = (column["background"] or "").removeprefix(column["name"]).strip()
            table.add_row(column["name"], holds, often)
        write(console, table)
        if len(found["columns"]) > WIDEST:
            write(console, f"and {len(found['columns']) - WIDEST} more")

    def feature_heading(self) -> str:
        """What the lists of features are of."""
        node = f"a child of node {self.values['node']}"
        return f"features that speak most for {node}: what each adds to its predicted cost, compared with the others"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _nested(tree: Any, names: Sequence[str]) -> Any:
    return [_nested(part, names) for part in tree] if isinstance(tree, list) else names[tree]


def _columns(encoder: Encoder) -> dict[str, Any]:
    if not isinstance(encoder, TableEncoder):
        return {"columns": int(encoder.scales.size), "numeric": "sparse", "interactions": [], "missing": []}
    columns = [
        {"name": c.name, "kind": c.kind, "values": c.size - 1, "background": _background(c)} for c in encoder.columns
    ]
    interactions = [list(pair) for pair in encoder.interactions]
    return {
        "columns": columns,
        "numeric": encoder.numeric,
        "interactions": interactions,
        "missing": list(encoder.missing),
    }


def _background(column: ColumnCode) -> str | None:
    """The commonest value of a column of numbers, which is no feature."""
    return None if column.background < 0 else value_name(column, column.background)


# --- the tree ---


def drawn(tree: Any) -> list[str]:
    """A tree as indented lines; nodes are numbered as the model numbers them.

    >>> print("\\n".join(drawn([["a", "b"], "c"])))
    0
    ├─ 1
    │  ├─ a
    │  └─ b
    └─ c
    """
    numbers = iter(range(1 << 30))

    def lines(part: Any) -> list[str]:
        if not isinstance(part, list):
            return [str(part)]
        made = [str(next(numbers))]
        for k, child in enumerate(part):
            last = k == len(part) - 1
            first, *rest = lines(child)
            made.append(("└─ " if last else "├─ ") + first)
            made += [("   " if last else "│  ") + line for line in rest]
        return made

    return lines(tree)


def below(task: ClassificationTask, node: int, action: int) -> list[str]:
    """The classes below a child."""
    tree = task.tree
    order = tree.order[tree.first[node, action] : tree.last[node, action]]
    return [str(task.classes[label]) for label in order]


def child_name(task: ClassificationTask, node: int, action: int) -> str:
    """A child as it is shown: its class, or those below it."""
    classes = below(task, node, action)
    more = f" and {len(classes) - NAMED} more" if len(classes) > NAMED + 1 else ""
    shown = " | ".join(classes[:NAMED] if more else classes) + more
    child = int(task.tree.children[node, action])
    return shown if child < 0 else f"{shown} (node {child})"


# --- features ---


class FeatureNames:
    """What the features of an encoder are called."""

    def __init__(self, encoder: Encoder):
        self.encoder = encoder
        kinds = encoder.types if isinstance(encoder, TableEncoder) else 1
        self.types = {int(identity): kind for kind, identity in enumerate(type_ids(kinds).tolist())}
        if isinstance(encoder, TableEncoder):
            numbers = [(k, c) for k, c in enumerate(encoder.columns) if c.kind == "number"]
            self.own = {scaled_id(k): f"{c.name}, scaled" for k, c in numbers}
            if encoder.numeric == "curve":
                self.own |= {
                    knot_id(k, n): f"{c.name} near {_edge(c, edge)}"
                    for k, c in numbers
                    for n, edge in enumerate(c.edges)
                }
        else:
            self.own = {int(identity): f"column {k}, scaled" for k, identity in enumerate(encoder.ids.tolist())}

    def of(self, identity: int) -> str:
        """The name of a feature."""
        kind = self.types.get(identity)
        if kind is not None:
            return type_name(self.encoder, kind)
        name = self.own.get(identity)
        if name is None and isinstance(self.encoder, TableEncoder) and self.encoder.texts:
            name = f"a word of {self.encoder.columns[self.encoder.text_column(identity)].name}"
        return "?" if name is None else name

    def ids(self) -> np.ndarray:
        """All features that there can be."""
        return np.array([*self.types, *self.own], np.int64)


def type_name(encoder: Encoder, kind: int) -> str:
    """The name of a type of feature: a column's value, or those of two columns."""
    if kind == 0 or not isinstance(encoder, TableEncoder):
        return "always"
    k = int(np.searchsorted(encoder.first, kind, side="right")) - 1
    code = kind - int(encoder.first[k])
    if k < len(encoder.columns):
        return value_name(encoder.columns[k], code)
    first, second = (encoder.columns[c] for c in encoder.pairs[k - len(encoder.columns)])
    return f"{value_name(first, code // second.size)} & {value_name(second, code % second.size)}"


def value_name(column: ColumnCode, code: int) -> str:
    """A column's value, or range of values, by its number.

    >>> column = ColumnCode("age", "number", np.array([18.0, 65.0]), [], 2)
    >>> [value_name(column, code) for code in range(4)]
    ['age missing', 'age < 18', 'age in [18, 65)', 'age ≥ 65']
    """
    if code == 0:
        return f"{column.name} missing"
    if column.kind == "category":
        return f"{column.name} = {column.texts[code - 1]}"
    edges = column.edges
    if edges.size == 0:
        return f"{column.name} given"
    if code == 1:
        return f"{column.name} < {_edge(column, edges[0])}"
    if code > edges.size:
        return f"{column.name} ≥ {_edge(column, edges[-1])}"
    return f"{column.name} in [{_edge(column, edges[code - 2])}, {_edge(column, edges[code - 1])})"


def _edge(column: ColumnCode, value: float) -> str:
    """As short as it can be without becoming another one, but not longer than anybody reads.

    >>> column = ColumnCode("age", "number", np.zeros(0), [], 0)
    >>> [_edge(column, value) for value in (146.0, 1234567.0, 0.1 + 0.2)]
    ['146', '1234567', '0.3']
    >>> _edge(column._replace(dates=True), 86400.0), _edge(column._replace(dates=True), 90000.5)
    ('1970-01-02', '1970-01-02T01:00:00')
    """
    if column.dates and abs(value) < FAR:
        text = str(np.datetime64(int(value), "s"))
        return text.removesuffix("T00:00:00")
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e12 else f"{value:.6g}"


def _speaking(task: ClassificationTask, policy: Any, asked: ClassifierInspectOptions) -> dict[str, Sides]:
    """For each child of a node the features that speak most for it."""
    names, node = FeatureNames(task.encoder), asked.node
    legal = np.flatnonzero(task.tree.children[node] != NOTHING)
    known = {int(in_role(np.int64(i), node)): int(i) for i in names.ids()}
    ids = features_by_row(policy.shared, policy.stack.shape[1])
    here = np.array([k for k, i in enumerate(ids.tolist()) if i in known], np.int64)
    shares = np.diff(policy.chances, prepend=0.0).astype(np.float32)
    pushes = relative(np.tensordot(shares, policy.stack[:, here][:, :, legal], axes=1))
    weights = {
        child_name(task, node, action): pushes[:, j]
        for j, action in enumerate(legal.tolist())
        if not asked.label or set(asked.label) & set(below(task, node, action))
    }
    own = np.array([known[int(i)] for i in ids[here]], np.int64)
    return speaking(own, weights, asked.top, asked.against, lambda _: names.of)


def relative(weights: np.ndarray) -> np.ndarray:
    """Costs `[feature, child]` less the average of the other children's."""
    others = max(weights.shape[1] - 1, 1)
    made: np.ndarray = weights - (weights.sum(axis=1, keepdims=True) - weights) / others
    return made
