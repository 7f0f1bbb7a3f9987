"""Classification by a label tree: at every node one decision, which child to go to; a leaf is a label.

A binary tree takes log2(labels) decisions. A tree that is a root with a leaf for every label is one decision among all
labels: flat classification over the same learner. The functions are the same for any tree, which comes as settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.contract.examples import Examples, Items, Ragged, Scalar
from lols.contract.features import look, uniform
from lols.contract.space import Example, Reference, SearchSpace, Sizes, as_family
from lols.tasks.tables.tree_of_labels import NOTHING, LabelTree

FEW_LABELS = 64

# The state: the node, and the leaf plus one once it is reached. Leaves are numbered from left to right.
NODE, LEAF = 0, 1


def start(x, s):
    pass


def actions(x, s, legal):
    if s[LEAF] == 0:
        children = x.children[s[NODE]]
        for a in range(legal.size):
            legal[a] = children[a] != NOTHING


def step(x, s, a):
    child = x.children[s[NODE], a]
    if child >= 0:
        s[NODE] = child
    else:
        s[LEAF] = -child


def items(x, s, out):
    look(out, 0, s[NODE])


def features(x, s, out):
    pass


def key(x, s):
    return np.int64(s[NODE]) * (x.labels + 1) + s[LEAF]


def least(x, y, node, a):
    """The cost of the cheapest leaf below a child."""
    first, last = x.first[node, a], x.last[node, a]
    if y.costs.size > 0:
        found = y.costs[first]
        for leaf in range(first + 1, last):
            found = min(found, y.costs[leaf])
        return np.float64(found)
    if x.least_below.size > 0:
        return np.float64(x.least_below[y.label, x.entry[node, a]])
    return 0.0 if first <= y.label < last else 1.0


def cost(x, y, s, a):
    """By how much the cost of the cheapest leaf rises: from the root to a leaf, this adds up to the leaf's cost."""
    if x.rise.size > 0 and y.costs.size == 0:
        return y.weight * x.rise[y.label, x.entry[s[NODE], a]]
    below = least(x, y, s[NODE], a)
    if s[NODE] == 0:
        return y.weight * below
    here = np.inf
    for other in range(x.children.shape[1]):
        if x.children[s[NODE], other] != NOTHING:
            here = min(here, least(x, y, s[NODE], other))
    return y.weight * (below - here)


def loss(x, y, s):
    leaf = s[LEAF] - 1
    if y.costs.size > 0:
        return y.weight * np.float64(y.costs[leaf])
    if x.least_below.size > 0:
        return y.weight * np.float64(x.least_below[y.label, x.leaf_entry[leaf]])
    return 0.0 if leaf == y.label else y.weight


def output(x: Any, s: Any) -> int:
    return int(s[LEAF]) - 1


def encode(obj: Any) -> Example:
    raise TypeError("a label tree is filled by columns: use lols.CostSensitiveClassifier, or Examples.from_columns")


# --- teachers ---------------------------------------------------------------------------------------------------------


def best_costs(x, y, s, out):
    """What is still to pay for the cheapest leaf below each child: to the last bit what rolling out would cost."""
    node, here = s[NODE], np.inf
    if x.rise.size > 0 and y.costs.size == 0:
        rise, at, children = x.rise[y.label], x.entry[node], x.children[node]
        for a in range(out.size):
            if children[a] != NOTHING:
                out[a] = y.weight * rise[at[a]]
        return
    for a in range(out.size):
        if x.children[node, a] != NOTHING:
            out[a] = least(x, y, node, a)
            here = min(here, out[a])
    if node == 0:
        here = 0.0
    for a in range(out.size):
        if x.children[node, a] != NOTHING:
            out[a] = y.weight * (out[a] - here)


def best(x, y, s):
    """The child above the cheapest leaf, the first of them."""
    chosen, cheapest = 0, np.inf
    for a in range(x.children.shape[1]):
        if x.children[s[NODE], a] != NOTHING:
            below = least(x, y, s[NODE], a)
            if below < cheapest:
                chosen, cheapest = a, below
    return chosen


def suboptimal(x, y, s, rng):
    return best(x, y, s) if uniform(rng) < x.skill else 0


def bad(x, y, s):
    return 0


def teach(x, y, s, rng):
    """The action of one of these teachers, by its number."""
    if y.teacher == 0:
        return best(x, y, s)
    return suboptimal(x, y, s, rng) if y.teacher == 1 else bad(x, y, s)


def references(name: str) -> Reference | None:
    """A teacher by name: optimal, suboptimal (the best child with the probability `skill`, else the first) or bad."""
    teachers = {
        "optimal": Reference(action=best, costs=best_costs, name="label_tree:optimal"),
        "suboptimal": Reference(action=suboptimal, name="label_tree:suboptimal"),
        "bad": Reference(action=bad, needs_truth=False, name="label_tree:bad"),
    }
    return as_family(teachers, action=teach, costs=best_costs).get(name)


# --- space and examples -----------------------------------------------------------------------------------------------


def make_space(
    tree: LabelTree, matrix: np.ndarray | None = None, skill: float = 0.5, *, few: int = FEW_LABELS
) -> SearchSpace:
    """The search space of a tree; the cost matrix `[true, predicted]` is by leaf, and 0/1 unless given.

    Without a matrix, costs are looked up in tables if there are only a `few` labels, because these grow with the square
    of the labels.
    """
    settings = {
        "children": tree.children,
        "first": tree.first,
        "last": tree.last,
        "labels": np.int64(tree.labels),
        "skill": np.float64(skill),
        **_tables(tree, 1.0 - np.eye(tree.labels) if matrix is None and tree.labels <= few else matrix),
    }
    return SearchSpace(
        start=start,
        actions=actions,
        step=step,
        features=features,
        loss=loss,
        output=output,
        encode=encode,
        cost=cost,
        key=key,
        items=items,
        sizes=Sizes(
            state=2, actions=tree.arity, features=0, steps=tree.depth, items=1, roles=tree.children.shape[0], live=2
        ),
        settings=settings,
        nonnegative=True,
        name="lols.tasks.label_tree",
    )


def _tables(tree: LabelTree, matrix: np.ndarray | None) -> Mapping[str, np.ndarray]:
    """For every true label and child, `least_below`: the cost of the cheapest leaf; `rise`: what `cost` is there."""
    at = np.zeros(tree.children.shape, np.int64)
    at_leaf = np.zeros(tree.labels, np.int64)
    if matrix is None:
        none = np.zeros((0, 0), np.float64)
        return {"least_below": none, "rise": none, "entry": at, "leaf_entry": at_leaf}
    matrix = np.asarray(matrix, np.float64)
    cheapest: list[np.ndarray] = []
    rise: list[np.ndarray] = []
    for node, children in enumerate(tree.children):
        present = np.flatnonzero(children != NOTHING)
        below = [matrix[:, tree.first[node, a] : tree.last[node, a]].min(axis=1) for a in present]
        at[node, present] = len(cheapest) + np.arange(present.size)
        for a in present[children[present] < 0]:
            at_leaf[-children[a] - 1] = at[node, a]
        least = np.min(below, axis=0) if node != 0 else 0.0
        cheapest += below
        rise += [column - least for column in below]
    return {
        "least_below": np.ascontiguousarray(np.stack(cheapest, axis=1)),
        "rise": np.ascontiguousarray(np.stack(rise, axis=1)),
        "entry": at,
        "leaf_entry": at_leaf,
    }


def make_examples(
    space: SearchSpace,
    items: Items,
    leaves: np.ndarray | None = None,
    costs: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Examples:
    """Rows in columns: an item each; the true leaf, or the cost of every leaf; and what costs are multiplied by."""
    count = items.first.size - 1
    items = items._replace(types=items.types.astype(np.int32, copy=False))  # compiled once for all
    y: dict[str, Ragged | Scalar] | None = None
    if leaves is not None or costs is not None:
        vectors = np.zeros(0, np.float64) if costs is None else np.ascontiguousarray(costs, np.float64).ravel()
        stride = 0 if costs is None else costs.shape[1]
        y = {
            "label": Scalar(np.full(count, -1, np.int64) if leaves is None else leaves.astype(np.int64)),
            "weight": Scalar(np.ones(count) if weights is None else np.ascontiguousarray(weights, np.float64)),
            "costs": Ragged(vectors, np.arange(count + 1, dtype=np.int64) * stride),
        }
    steps = np.full(count, int(space.sizes.steps), np.int64)  # type: ignore[arg-type]
    return Examples.from_columns(space, count, {}, y, items, states=np.full(count, 2, np.int64), steps=steps)
