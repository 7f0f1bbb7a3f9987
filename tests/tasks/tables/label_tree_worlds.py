"""Random trees of labels, rows and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lols import feature
from lols.contract.examples import Examples, Items
from lols.contract.space import Reference, SearchSpace
from lols.tasks.tables.space import make_examples, make_space, references
from lols.tasks.tables.tree_of_labels import LabelTree, by_frequency, flat, halves, nested
from tests.tasks.tables.test_tree_of_labels import leaves, lists_of_labels

TEACHERS = ["optimal", "suboptimal", "bad"]
COSTS = ["labels", "many labels", "matrix", "vectors"]
LEARNERS = ["hinge", "csoaa"]
TREES = {
    "one label": flat(1),
    "two": flat(2),
    "flat": flat(5),
    "halves": halves([3, 0, 6, 2, 5, 1, 4]),
    "lopsided": by_frequency(2 ** np.arange(6)),
    "wide": nested([[0, 5, 3], 1, [[2, 7], [4], 6, 8]], 9),
    "chain": nested([[[[[2], 0], 1]]], 3),
}


def teacher(name: str) -> Reference:
    found = references(name)
    assert found is not None
    return found


@dataclass(frozen=True)
class World:
    """A tree and labelled rows, with the cost of every leaf, by hand."""

    tree: LabelTree
    space: SearchSpace
    examples: Examples
    costs: np.ndarray  # [row, leaf]


def rows_of(start: np.ndarray, ids: np.ndarray, values: np.ndarray) -> Items:
    """Rows of which each has its own features: where each begins, ids and values."""
    numbers = np.arange(start.size, dtype=np.int64)
    return Items(numbers, numbers[:-1], start, ids, values, lasting=0)


def bare_rows(count: int) -> Items:
    """Rows with one feature each."""
    return rows_of(np.arange(count + 1), np.array([feature(0, k) for k in range(count)]), np.ones(count, np.float32))


def random_costs(rng: np.random.Generator, shape: tuple[int, int], *, exact: bool) -> np.ndarray:
    """Costs of which many are equal and some are 0; sums of thirds are not exact, those of quarters are."""
    return rng.integers(0, 6, shape) / (4 if exact else 3)


def world_of(
    tree: LabelTree, kind: str, seed: int, rows: Items | None = None, *, exact: bool = False, skill: float = 0.5
) -> World:
    rng = np.random.default_rng(seed)
    rows = bare_rows(5) if rows is None else rows
    count, labels = rows.first.size - 1, tree.labels
    truth = rng.integers(0, labels, count)
    if kind in ("labels", "many labels"):
        space = make_space(tree, skill=skill, few=labels if kind == "labels" else 0)
        costs = 1.0 - np.eye(labels)[truth]
    elif kind == "matrix":
        matrix = random_costs(rng, (labels, labels), exact=exact)
        space = make_space(tree, matrix, skill=skill)
        costs = matrix[truth]
    else:
        space = make_space(tree, skill=skill)
        costs = random_costs(rng, (count, labels), exact=exact)
    given = {"costs": costs} if kind == "vectors" else {"leaves": truth}
    return World(tree, space, make_examples(space, rows, **given), costs)


@st.composite
def worlds(draw: Any) -> World:
    arity = draw(st.sampled_from([2, 4, 9]))
    lists = draw(lists_of_labels(arity=arity))
    tree = draw(st.sampled_from([nested(lists, len(leaves(lists))), flat(len(leaves(lists)))]))
    return world_of(tree, draw(st.sampled_from(COSTS)), draw(st.integers(0, 9999)))
