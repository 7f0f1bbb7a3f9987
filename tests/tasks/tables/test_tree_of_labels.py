"""Trees of labels: their arrays say what the lists say, and each way to make one does what its name says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.tasks.tables.tree_of_labels import NOTHING, LabelTree, by_frequency, by_similarity, flat, halves, nested

pytestmark = pytest.mark.uncompiled

COUNTS = st.one_of(
    st.lists(st.integers(0, 7), min_size=1, max_size=12),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=12),
    st.lists(st.integers(0, 40).map(lambda k: 2**k), min_size=1, max_size=12),
)


@st.composite
def lists_of_labels(draw: Any, most: int = 9, arity: int = 4) -> Any:
    """Random trees as lists, sometimes with nodes that have a single child, and a bare label for one label."""
    order = draw(st.permutations(range(draw(st.integers(1, most)))))

    def below(part: list[int]) -> Any:
        if len(part) == 1:
            made = part[0]
        else:
            cuts = sorted(draw(st.sets(st.integers(1, len(part) - 1), min_size=1, max_size=arity - 1)))
            made = [below(part[i:j]) for i, j in zip([0, *cuts], [*cuts, len(part)], strict=True)]
        return [made] if draw(st.integers(0, 9)) == 9 else made

    return below(list(order))


# --- by hand: trees are lists -----------------------------------------------------------------------------------------


def leaves(part: Any) -> list[int]:
    return [label for child in part for label in leaves(child)] if isinstance(part, list) else [part]


def depth(part: Any) -> int:
    return 1 + max(map(depth, part)) if isinstance(part, list) else 0


def depths(part: Any, above: int = 0) -> dict[int, int]:
    """How many decisions lead to each label."""
    if not isinstance(part, list):
        return {part: above}
    return {label: steps for child in part for label, steps in depths(child, above + 1).items()}


def nodes(part: Any) -> Iterator[list[Any]]:
    """The nodes of a tree, depth first: in the order of their numbers."""
    if isinstance(part, list):
        yield part
        for child in part:
            yield from nodes(child)


def assert_consistent(tree: LabelTree, lists: Any) -> None:
    """Every array against the tree as lists."""
    lists = lists if isinstance(lists, list) else [lists]
    order, every = leaves(lists), list(nodes(lists))
    assert tree.nested() == lists
    assert tree.order.tolist() == order and sorted(order) == list(range(tree.labels))
    assert tree.leaf_of[tree.order].tolist() == list(range(tree.labels))
    assert tree.depth == depth(lists) and tree.arity == max(map(len, every))
    assert tree.children.shape == tree.first.shape == tree.last.shape == (len(every), tree.arity)
    at = {id(part): number for number, part in enumerate(every)}
    for number, part in enumerate(every):
        assert (tree.children[number, len(part) :] == NOTHING).all()
        for a, child in enumerate(part):
            first, last = tree.first[number, a], tree.last[number, a]
            assert order[first:last] == leaves(child)
            reached = at[id(child)] if isinstance(child, list) else -first - 1
            assert tree.children[number, a] == reached


def assert_same(one: LabelTree, other: LabelTree) -> None:
    for mine, its in zip(one, other, strict=True):
        assert np.array_equal(mine, its) and np.asarray(mine).dtype == np.asarray(its).dtype


# --- any tree ---------------------------------------------------------------------------------------------------------


@given(lists_of_labels())
def test_arrays_say_what_the_lists_say_and_lists_come_back(lists: Any) -> None:
    labels = len(leaves(lists))
    tree = nested(lists, labels)
    assert_consistent(tree, lists)
    assert_same(nested(tree.nested(), labels), tree)


@given(lists_of_labels())
def test_tuples_and_numbers_of_numpy_do_as_well(lists: Any) -> None:
    def other(part: Any) -> Any:
        return tuple(map(other, part)) if isinstance(part, list) else np.int64(part)

    labels = len(leaves(lists))
    assert_same(nested(other(lists), labels), nested(lists, labels))


@given(lists_of_labels(), st.data())
def test_a_label_that_is_missing_or_strange_or_there_twice_is_named_as_wrong(lists: Any, data: st.DataObject) -> None:
    labels = len(leaves(lists))
    label, instead = data.draw(st.integers(0, labels - 1)), data.draw(st.integers(-2, labels + 2))

    def other(part: Any) -> Any:
        return list(map(other, part)) if isinstance(part, list) else instead if part == label else part

    if instead == label:
        assert_same(nested(other(lists), labels), nested(lists, labels))
    else:
        with pytest.raises(ConfigurationError, match=f"each of the {labels} labels as a leaf, once"):
            nested(other(lists), labels)
    for count in (labels - 1, labels + 1):
        with pytest.raises(ConfigurationError, match=f"each of the {count} labels as a leaf, once"):
            nested(lists, count)


@pytest.mark.parametrize("wrong", [[], [[]], [0, []], [0, [1, []]], [[0, 1], ()]], ids=repr)
def test_a_node_without_children_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="has nothing below it: leave it out"):
        nested(wrong, 2)


@pytest.mark.parametrize(
    "wrong",
    [None, "01", {0: 1}, {0, 1}, range(2), np.arange(2), [0, None], [0, 1, None], ["0", "1"], ["a", 1], [0, 1.5]]
    + [[0.0, 1.0], [0, float("nan")], [0, float("inf")], [0, {1: 1}], [np.arange(2)], [0, [1, "x"]]],
    ids=repr,
)
def test_what_is_no_list_and_no_number_of_a_label_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        nested(wrong, 2)


def test_a_tree_is_too_deep_or_can_be_written_down_again() -> None:
    built = 0
    for deep in (100, 400, 600, 900, 3000):
        lists: Any = deep
        for label in reversed(range(deep)):
            lists = [label, lists]
        try:
            tree = nested(lists, deep + 1)
        except ConfigurationError as error:
            assert "nest it less" in str(error)
            continue
        assert tree.depth == deep
        back, at = tree.nested(), 0
        while isinstance(back, list):
            label, back = back
            assert label == at
            at += 1
        assert back == deep
        built += 1
    assert built >= 1


# --- ways to make one -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [1, 2, 3, 17])
def test_a_flat_tree_is_one_decision_in_the_order_of_the_labels(labels: int) -> None:
    assert_consistent(flat(labels), list(range(labels)))


@given(st.integers(1, 40).flatmap(lambda labels: st.permutations(range(labels))))
def test_halves_keep_the_order_and_are_as_deep_as_they_must_be(order: list[int]) -> None:
    tree = halves(order)
    assert_consistent(tree, tree.nested())
    assert tree.order.tolist() == list(order)
    assert tree.depth == max(1, int(np.ceil(np.log2(len(order))))) and tree.arity == min(2, len(order))
    for part in nodes(tree.nested()):
        if len(part) == 2:
            assert len(leaves(part[1])) - len(leaves(part[0])) in (0, 1)


@pytest.mark.parametrize("order", [[0, 0], [0, 2], [-1, 0], [1, 2]])
def test_halves_of_labels_that_are_not_there_are_refused(order: list[int]) -> None:
    with pytest.raises(ConfigurationError, match="each of the 2 labels as a leaf, once"):
        halves(order)


@pytest.mark.parametrize(
    "make",
    [
        lambda: flat(0),
        lambda: halves([]),
        lambda: by_frequency(np.zeros(0, np.int64)),
        lambda: by_similarity(np.zeros((0, 2))),
    ],
    ids=["flat", "halves", "by_frequency", "by_similarity"],
)
def test_a_tree_of_no_labels_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


@given(COUNTS)
def test_frequent_labels_lie_near_the_root(counts: list[int]) -> None:
    tree = by_frequency(np.array(counts))
    assert_consistent(tree, tree.nested())
    assert tree.arity == min(2, len(counts))
    assert [counts[label] for label in tree.order] == sorted(counts, reverse=True)
    weights = np.maximum(np.array(counts, np.float64), 0.5)
    chances, steps = weights / weights.sum(), depths(tree.nested())
    taken = np.array([steps[label] for label in range(len(counts))])
    for part in nodes(tree.nested()):
        sums = np.cumsum(weights[leaves(part)])
        if len(part) == 2:  # no cut leaves the two sides more alike
            left = sums[len(leaves(part[0])) - 1]
            assert abs(2 * left - sums[-1]) == np.abs(2 * sums[:-1] - sums[-1]).min()
    # Fano's code: at most one bit more than the entropy. And no part that is split again has more than two thirds of
    # the whole: if its larger side had more, moving one label to the other side would make them more alike.
    assert (chances * taken).sum() <= (chances * -np.log2(chances)).sum() + 1 + 1e-9
    assert (taken <= 1 + np.log(1 / chances) / np.log(1.5) + 1e-9).all()
    for label, other in np.argwhere(weights[:, np.newaxis] >= 4 * weights):
        assert taken[label] <= taken[other]


@given(st.lists(st.integers(1, 50), max_size=6), st.integers(1, 20))
def test_labels_that_were_never_met_share_a_balanced_part(met: list[int], unmet: int) -> None:
    steps = depths(by_frequency(np.array(met + [0] * unmet)).nested())
    taken = [steps[label] for label in range(len(met), len(met) + unmet)]
    assert max(taken) <= min(taken) + np.ceil(np.log2(unmet)) + 1
    assert met == [] or max(taken) >= max(steps[label] for label in range(len(met)))


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 6), st.integers(1, 4))
def test_clusters_far_apart_come_into_different_subtrees(seed: int, levels: int, size: int, dimensions: int) -> None:
    # Two clusters of two clusters of two and so on, each split far narrower than the one above; labels in any order.
    rng = np.random.default_rng(seed)
    clusters = np.arange(2**levels)
    places = sum((clusters >> level & 1) * 100.0**level for level in range(levels))
    direction = rng.normal(size=dimensions)
    centres = np.repeat(places, size)[:, np.newaxis] * direction / np.linalg.norm(direction)
    centres += rng.uniform(-1, 1, centres.shape) / 100
    shuffled = rng.permutation(len(centres))
    tree = by_similarity(centres[shuffled])
    assert_consistent(tree, tree.nested())
    assert tree.depth == max(1, int(np.ceil(np.log2(len(centres)))))
    found = {frozenset(leaves(part)) for part in [*nodes(tree.nested()), *range(len(centres))]}
    for level in range(levels + 1):
        for group in np.unique(clusters >> level):
            members = np.flatnonzero(np.repeat(clusters >> level, size)[shuffled] == group)
            assert frozenset(members.tolist()) in found


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 3))
def test_any_centres_give_a_tree_equal_ones_and_a_single_one_too(seed: int, labels: int, dimensions: int) -> None:
    for centres in (
        np.random.default_rng(seed).integers(-1, 2, (labels, dimensions)).astype(np.float64),
        np.zeros((labels, dimensions)),
    ):
        tree = by_similarity(centres)
        assert_consistent(tree, tree.nested())
        assert_same(by_similarity(centres.copy()), tree)
