"""A classification task: classes, their tree, costs, and how rows become features; the model file holds it all."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.policy import add_features, decode, types_of
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError, shown
from lols.io.costs import check_matrix
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct
from lols.tasks.problem import Defaults, Problem
from lols.tasks.tables import space as label_tree
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.targets import Targets
from lols.tasks.tables.tree_of_labels import NOTHING, LabelTree, nested

HASHING = 1  # to be raised when features get other numbers: models trained before would not know them again
Encoder = TableEncoder | SparseEncoder


class ClassificationTask(Problem):
    """What a classifier's search space is made of.

    Parameters
    ----------
    classes
        The classes, in the order of their numbers.
    tree
        Their tree.
    encoder
        How rows become features.
    matrix
        What it costs to predict the class of a column where that of a row is true; None for 1 unless it is right.
    skill
        How often the suboptimal teacher goes to the best child.

    """

    DEFAULTS = Defaults(rate=0.2, neighbours=8)  # like the bins chosen on random splits of KDD99
    DECISIONS = "classes"

    def __init__(
        self,
        classes: Sequence[Any],
        tree: LabelTree,
        encoder: Encoder,
        *,
        matrix: np.ndarray | None = None,
        skill: float = 0.5,
    ):
        if not 0.0 <= skill <= 1.0:
            raise ConfigurationError(f"skill is {skill}; it is a probability, from 0 to 1")
        if len(classes) != tree.labels:
            raise ConfigurationError(f"the tree has {tree.labels} labels, but there are {len(classes)} classes")
        self.classes, self.tree, self.encoder, self.matrix, self.skill = list(classes), tree, encoder, matrix, skill

    @cached_property
    def space(self) -> SearchSpace:
        """The search space."""
        order = self.tree.order
        matrix = None if self.matrix is None else self.matrix[order][:, order]
        return label_tree.make_space(self.tree, matrix, self.skill)

    def reference(self, name: str) -> Reference:
        """A teacher of this task by name."""
        found = label_tree.references(name)
        if found is None:
            raise ConfigurationError(f"unknown reference '{name}': choose optimal, suboptimal or bad")
        return found

    def examples(self, rows: Rows, targets: Targets | None = None) -> Examples:
        """Rows in columns, with what is right if that is known."""
        items = self.encoder.items(rows, self.tree.children.shape[0])
        _, labels, _, vectors, weights = targets or Targets(self.classes, None, None, None)
        leaves = None if labels is None else self.tree.leaf_of[labels]
        by_leaf = None if vectors is None else vectors[:, self.tree.order]
        return label_tree.make_examples(self.space, items, leaves, by_leaf, weights)

    def with_classes(self, names: Sequence[Any]) -> ClassificationTask:
        """The same task with further classes, which become children of the root; this one if there are none.

        Classes, nodes and children so far keep their numbers, so what was learned of them holds.
        """
        added = [name for name in names if name not in self.classes]
        if not added:
            return self
        if self.matrix is not None:
            raise ConfigurationError(
                f"{shown(added[0])} is a new class, and the model's cost matrix does not say what mistakes about it "
                "cost: train anew with one that does"
            )
        if {isinstance(name, str) for name in added} != {isinstance(name, str) for name in self.classes}:
            raise ConfigurationError(f"{shown(added[0])} is a new class, but texts and numbers cannot both be classes")
        count = len(self.classes)
        tree = nested([*self.tree.nested(), *range(count, count + len(added))], count + len(added))
        return ClassificationTask([*self.classes, *added], tree, self.encoder, skill=self.skill)

    def labels_of(self, states: np.ndarray) -> np.ndarray:
        """The numbers of the classes that end states stand for."""
        return self.tree.order[states.reshape(-1, 2)[:, label_tree.LEAF] - 1]

    def class_costs(self, policy: FrozenPolicy, rows: Rows, *, compiled: bool = True) -> np.ndarray:
        """How much more each class seems to cost than the one that the policy chooses.

        On the way from the root, what each child costs more than the cheapest beside it, added up: 0 for the choice. Of
        several policies that are drawn from, as in Searn, the average, less that of the cheapest class.
        """
        if rows.rows == 0:
            return np.zeros((0, self.tree.labels), np.float32)
        return self.costs_of(policy, self.examples(rows), compiled=compiled)

    def costs_of(self, policy: FrozenPolicy, examples: Examples, *, compiled: bool = True) -> np.ndarray:
        """The same for rows that are examples already."""
        made = np.zeros((len(examples), self.tree.labels), np.float32)
        weights = np.diff(policy.chances, prepend=0.0)
        nodes, actions = self.tree.children.shape
        columns = policy.stack.shape[2]
        widest = int(np.diff(examples.items.start).max(initial=0))
        work = LeafScratch(
            rows=np.zeros(widest, np.int64),
            whole=np.zeros(columns, np.float32),
            part=np.zeros(columns, np.float32),
            summed=np.zeros(columns, np.float32),
            costs=np.zeros(actions, np.float32),
            above=np.zeros(nodes, np.float32),
        )
        for component, weight in enumerate(weights.tolist()):
            head = (examples.items, policy, component, float(weight), self.tree.children)
            leaf_costs_kernel(compiled, *head, work, made)
        if weights.size > 1:
            made -= made.min(axis=1, keepdims=True)
        return made[:, self.tree.leaf_of]

    def examples_of(self, data: Any, *, truth: bool = True) -> Examples:
        """Rows with or without what is right."""
        return self.examples(*data)

    def judged(self, model: Any, examples: Examples, data: Any, chosen: np.ndarray | None = None) -> Any:
        """See `lols.tasks.tables.confidence`."""
        raise NotImplementedError

    # --- files ---

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""
        table, tensors = self.encoder.describe()
        made = {
            "name": "classifier",
            "hashing": HASHING,
            "classes": [c.item() if isinstance(c, np.generic) else c for c in self.classes],
            "tree": self.tree.nested(),
            "skill": self.skill,
            "table": table,
        }
        return made, tensors | ({} if self.matrix is None else {"costs": self.matrix})

    @classmethod
    def from_description(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> ClassificationTask:
        """The task that a model file describes."""
        if task["hashing"] != HASHING:
            raise ValueError("it numbers features another way; train again with this version")
        classes = list(task["classes"])
        kinds = {type(c) for c in classes}
        if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(classes)) != len(classes):
            raise ValueError("the classes are not distinct names or numbers")
        if kinds == {float} and not np.isfinite(classes).all():
            raise ValueError("the classes are not distinct names or numbers")
        matrix = tensors.get("costs")
        matrix = (
            None if matrix is None else check_matrix(matrix, len(classes), sys.float_info.max)
        )  # as earlier versions allowed
        encoder: Encoder = (SparseEncoder if "scales" in tensors else TableEncoder).from_description(
            task["table"], tensors
        )
        return cls(classes, nested(task["tree"], len(classes)), encoder, matrix=matrix, skill=float(task["skill"]))


class LeafScratch(Struct):
    """Working memory for the costs of leaves."""

    rows: np.ndarray
    whole: np.ndarray
    part: np.ndarray
    summed: np.ndarray
    costs: np.ndarray
    above: np.ndarray  # what each node costs


def leaf_costs(of, policy, component, weight, children, scratch, out):
    """Add `weight` times the costs of all leaves for every row; a node's number is larger than its parent's."""
    whole, part, summed, costs, above = scratch.whole, scratch.part, scratch.summed, scratch.costs, scratch.above
    for row in range(out.shape[0]):
        above[0] = 0.0
        low, high = types_of(of, row)
        for node in range(children.shape[0]):
            for j in range(whole.size):
                whole[j] = 0.0
            for k in range(low, high):
                for j in range(part.size):
                    part[j] = 0.0
                first, last = of.start[of.types[k]], of.start[of.types[k] + 1]
                add_features(policy, component, of, first, last, node, scratch.rows, part)
                for j in range(whole.size):
                    whole[j] += part[j]
            for j in range(whole.size):
                summed[j] = np.float32(0.0) + whole[j]
            decode(policy, summed, costs)
            least = np.float32(np.inf)
            for a in range(costs.size):
                if children[node, a] != NOTHING:
                    least = min(least, costs[a])
            for a in range(costs.size):
                child = children[node, a]
                if child == NOTHING:
                    continue
                total = above[node] + (costs[a] - least)
                if child >= 0:
                    above[child] = total
                else:
                    out[row, -child - 1] += np.float32(weight) * total


leaf_costs_kernel = Kernel(leaf_costs)
