"""Trees of labels as arrays: split in half in an order, by frequency or by similarity, or as given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, shown
from lols.tasks.tables.rows import Rows

NOTHING = np.iinfo(np.int32).min
MOST_CELLS = 1 << 23  # nodes times the most children of one
MOST_NODES = 64  # for each label
DIMENSIONS = 256  # that features are hashed to, to compare classes
TREES = ("order", "frequency", "similarity")

Nested = Any  # a label's number, or a list of trees


class LabelTree(NamedTuple):
    """Nodes in arrays; node 0 is the root, and leaves are numbered from left to right."""

    children: np.ndarray  # [node, action]: a node, or minus a leaf minus 1, or NOTHING
    first: np.ndarray  # [node, action]: the leaves below a child: from this one
    last: np.ndarray  # to before this one
    order: np.ndarray  # the label of each leaf
    depth: int

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return int(self.order.size)

    @property
    def arity(self) -> int:
        """The most children of a node."""
        return int(self.children.shape[1])

    @property
    def leaf_of(self) -> np.ndarray:
        """The leaf of each label."""
        made = np.empty(self.order.size, np.int64)
        made[self.order] = np.arange(self.order.size)
        return made

    def nested(self) -> Nested:
        """The tree as lists of lists of labels' numbers."""
        made: list[list[Nested]] = [[] for _ in self.children]  # children have higher numbers: filled in place
        for parts, row in zip(made, self.children.tolist(), strict=True):
            parts.extend(int(self.order[-c - 1]) if c < 0 else made[c] for c in row if c != NOTHING)
        return made[0]


def nested(tree: Nested, labels: int) -> LabelTree:
    """A tree from lists of lists of labels' numbers, each of which must be there once.

    >>> tree = nested([[0, 1], 2], labels=3)
    >>> tree.children.tolist(), tree.order.tolist(), tree.depth
    ([[1, -3], [-1, -2]], [0, 1, 2], 2)
    """
    children: list[list[int]] = []
    spans: list[list[tuple[int, int]]] = []
    order: list[int] = []

    def add(parts: Sequence[Nested]) -> tuple[int, int]:
        """Add a node and all below it: its number, and how deep it is."""
        if not parts:
            raise ConfigurationError("a node of the tree of labels has nothing below it: leave it out")
        node, deepest = len(children), 1
        children.append([])
        spans.append([])
        for part in parts:
            first = len(order)
            if isinstance(part, list | tuple):
                child, depth = add(part)
                deepest = max(deepest, depth + 1)
            elif not isinstance(part, int | np.integer):
                raise ConfigurationError(
                    f"{shown(part)} in the tree of labels is neither a list nor the number of a label"
                )
            else:
                child = -first - 1
                order.append(int(part))
            children[node].append(child)
            spans[node].append((first, len(order)))
        return node, deepest

    try:
        _, depth = add(tree if isinstance(tree, list | tuple) else [tree])
    except RecursionError:
        raise ConfigurationError("the tree of labels is too deep: nest it less") from None
    if sorted(order) != list(range(labels)):
        raise ConfigurationError(f"the tree of labels must have each of the {labels} labels as a leaf, once")
    arity = max(len(c) for c in children)
    shape = (len(children), arity)
    if shape[0] * shape[1] > MOST_CELLS or shape[0] > MOST_NODES * labels:
        raise ConfigurationError(
            f"the tree of labels has {shape[0]} nodes, and one of them {shape[1]} children, which are too many: leave "
            "out nodes with one child, or split large ones"
        )
    made = np.full(shape, NOTHING, np.int32)
    first, last = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for node, row in enumerate(children):
        made[node, : len(row)] = row
        first[node, : len(row)] = [f for f, _ in spans[node]]
        last[node, : len(row)] = [n for _, n in spans[node]]
    return LabelTree(made, first, last, np.array(order, np.int64), depth)


def flat(labels: int) -> LabelTree:
    """One decision among all labels.

    >>> flat(3).children.tolist()
    [[-1, -2, -3]]
    """
    return nested(list(range(labels)), labels)


def halves(order: Sequence[int]) -> LabelTree:
    """Split the labels in half, in this order, again and again: the paper's tree.

    >>> halves(range(5)).nested()
    [[0, 1], [2, [3, 4]]]
    """
    return nested(_split(list(order), lambda part: len(part) // 2), len(order))


def by_frequency(counts: np.ndarray) -> LabelTree:
    """Split the labels, the most frequent first, so that both sides are met about equally often.

    Frequent labels come to lie near the root: a decision takes as many steps on average as the labels have bits of
    entropy, about.

    >>> by_frequency(np.array([1, 8, 2, 1])).nested()
    [1, [2, [0, 3]]]
    """
    order = np.argsort(-counts, kind="stable").tolist()
    # A label that was never met still needs a place; with this much weight, they share a balanced part of the tree.
    weights = np.maximum(counts.astype(np.float64), 0.5)

    def middle(part: list[int]) -> int:
        sums = np.cumsum(weights[part])
        return int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2))) + 1

    return nested(_split(order, middle), counts.size)


def by_similarity(centres: np.ndarray) -> LabelTree:
    """Split the labels in half along the direction in which their centres `[label, dimension]` differ most.

    >>> by_similarity(np.array([[0.0], [9.0], [1.0], [8.0]])).nested()
    [[0, 2], [3, 1]]
    """

    def sides(part: list[int]) -> Nested:
        if len(part) <= 2:
            return [sides([label]) for label in part] if len(part) == 2 else part[0] if part else []
        among = centres[part] - centres[part].mean(axis=0)
        direction = np.linalg.svd(among, full_matrices=False)[2][0]
        direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
        order = [part[k] for k in np.argsort(among @ direction, kind="stable")]
        return [sides(order[: len(order) // 2]), sides(order[len(order) // 2 :])]

    whole = sides(list(range(centres.shape[0])))
    return nested(whole, centres.shape[0])


def _split(order: list[int], middle: Any) -> Nested:
    if len(order) <= 1:
        return order[0] if order else []
    at = middle(order)
    return [_split(order[:at], middle), _split(order[at:], middle)]


def make_tree(wanted: Any, classes: Sequence[Any], counts: np.ndarray, centres: Callable[[], np.ndarray]) -> LabelTree:
    """The tree of classes: by name, as nested lists of classes, or None for flat classification."""
    if wanted is None:
        return flat(len(classes))
    if isinstance(wanted, list | tuple):
        numbers = {name: k for k, name in enumerate(classes)}

        def numbered(part: Any) -> Any:
            if isinstance(part, list | tuple):
                return [numbered(p) for p in part]
            if part not in numbers:
                raise ConfigurationError(f"the tree names {shown(part)}, which is not a class")
            return numbers[part]

        return nested(numbered(wanted), len(classes))
    if wanted == "order":
        return halves(range(len(classes)))
    if wanted == "frequency":
        return by_frequency(counts)
    if wanted == "similarity":
        return by_similarity(centres())
    raise ConfigurationError(
        f"tree is {shown(wanted)}: choose auto, {', '.join(TREES)}, nested lists of classes, or None"
    )


def centres_of(rows: Rows, labels: np.ndarray, count: int) -> np.ndarray:
    """The mean of each class in a few dimensions that features are hashed to."""
    made = np.zeros(count * DIMENSIONS)
    of_type = (
        np.repeat(labels, np.diff(rows.bounds)) * DIMENSIONS
        + (rows.types.astype(np.int64) * 2654435761 >> 7) % DIMENSIONS
    )
    made += np.bincount(of_type, minlength=made.size)
    if rows.start.size:
        own = np.repeat(labels, np.diff(rows.start)) * DIMENSIONS + (rows.ids >> 7) % DIMENSIONS
        made += np.bincount(own, weights=rows.values, minlength=made.size)
    return made.reshape(count, DIMENSIONS) / np.maximum(np.bincount(labels, minlength=count), 1)[:, np.newaxis]


def tree_of(name: str) -> str | None:
    """How classes are split; `flat` is one decision among all."""
    if name not in ("auto", *TREES, "flat"):
        raise ConfigurationError(f"--tree is '{name}': choose auto, {', '.join(TREES)} or flat")
    return None if name == "flat" else name
