"""Lifting and lowering of crossing arcs, against brute force, and on real trees."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.parsing.projective import crossing, lift, lower
from lols.tasks.parsing.trees import check_trees, read_heads

LABELS = 3
Tree = list[int]


@st.composite
def trees(draw: st.DrawFn, single: bool = False) -> list[Tree]:
    """Sentences, some without words, most with crossing arcs; with several roots unless told otherwise."""
    made = []
    for length in draw(st.lists(st.integers(0, 9), max_size=3)):
        order = draw(st.permutations(range(length)))
        tree = [-1] * length
        for k in range(1, length):
            tree[order[k]] = draw(st.sampled_from(order[:k] if single else [-1, *order[:k]]))
        made.append(tree)
    return made


def columns(sentences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x for sentence in sentences for x in sentence], np.int64), np.cumsum([0, *map(len, sentences)])


def numbers(data: st.DataObject, sentences: list[Tree], lowest: int = 0) -> list[list[int]]:
    number = st.integers(lowest, LABELS - 1)
    return [data.draw(st.lists(number, min_size=len(tree), max_size=len(tree))) for tree in sentences]


# --- twins ------------------------------------------------------------------------------------------------------------


def descends(tree: Tree, word: int, head: int) -> bool:
    while word >= 0 and word != head:
        word = tree[word]
    return word == head


def twin_crossing(tree: Tree) -> list[bool]:
    between = [range(min(w, h) + 1, max(w, h)) for w, h in enumerate(tree)]
    return [any(not descends(tree, w, h) for w in words) for words, h in zip(between, tree, strict=True)]


def twin_lift(tree: Tree, labels: list[int]) -> tuple[Tree, list[int]]:
    made, origin = list(tree), [-1] * len(tree)
    while any(marks := twin_crossing(made)):
        _, word = min((abs(w - made[w]), w) for w in range(len(tree)) if marks[w])
        made[word] = made[made[word]]
        origin[word] = labels[tree[word]]
    return made, origin


def twin_lower(tree: Tree, labels: list[int], origin: list[int]) -> Tree:
    made = list(tree)
    for word in range(len(tree)):
        level = [made[word]] if origin[word] >= 0 else []
        while level:
            level = [d for h in level for d in range(len(made)) if made[d] == h and d != word]
            if fitting := [d for d in level if labels[d] == origin[word]]:
                made[word] = fitting[0]
                break
    return made


# --- random trees -----------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(trees())
def test_crossing_equals_its_twin(sentences: list[Tree]) -> None:
    found = crossing(*columns(sentences))
    assert found.dtype == np.bool_
    assert found.tolist() == [mark for tree in sentences for mark in twin_crossing(tree)]


@pytest.mark.uncompiled
@given(st.data(), trees())
def test_lift_equals_its_twin(data: st.DataObject, sentences: list[Tree]) -> None:
    labels = numbers(data, sentences)
    heads, offsets = columns(sentences)
    before = heads.copy()
    lifted = lift(heads, columns(labels)[0], offsets)
    expected = [twin_lift(tree, own) for tree, own in zip(sentences, labels, strict=True)]
    assert lifted.heads.tolist() == [head for tree, _ in expected for head in tree]
    assert lifted.origin.tolist() == [label for _, origin in expected for label in origin]
    assert heads.tolist() == before.tolist()
    assert not crossing(lifted.heads, offsets).any()
    assert ((lifted.origin >= 0) == (lifted.heads != heads)).all()


@pytest.mark.uncompiled
@given(trees(single=True))
def test_lifting_leaves_the_root_alone(sentences: list[Tree]) -> None:
    heads, offsets = columns(sentences)
    lifted = lift(heads, np.zeros(len(heads), np.int64), offsets)
    assert ((lifted.heads < 0) == (heads < 0)).all()


@pytest.mark.uncompiled
@given(st.data(), trees())
def test_lower_equals_its_twin_and_gives_trees(data: st.DataObject, sentences: list[Tree]) -> None:
    """Whatever a model says: any label anywhere, and any word lifted."""
    labels, origin = numbers(data, sentences, -1), numbers(data, sentences, -1)
    heads, offsets = columns(sentences)
    before = heads.copy()
    lowered = lower(heads, columns(labels)[0], columns(origin)[0], offsets)
    expected = [twin_lower(*each) for each in zip(sentences, labels, origin, strict=True)]
    assert lowered.tolist() == [head for tree in expected for head in tree]
    assert heads.tolist() == before.tolist()
    old, new = check_trees(heads, offsets), check_trees(lowered, offsets)
    assert (new.cycles < 0).all()
    assert (new.roots <= old.roots).all() and ((new.roots > 0) == (old.roots > 0)).all()


@pytest.mark.uncompiled
@given(trees())
def test_labels_that_tell_words_apart_restore_one_lifted_arc(sentences: list[Tree]) -> None:
    heads, offsets = columns(sentences)
    labels = np.arange(len(heads))
    lifted = lift(heads, labels, offsets)
    lowered = lower(lifted.heads, labels, lifted.origin, offsets)
    for begin, end in itertools.pairwise(offsets):
        if (lifted.origin[begin:end] >= 0).sum() <= 1:
            assert lowered[begin:end].tolist() == heads[begin:end].tolist()


@pytest.mark.uncompiled
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_all_small_trees(length: int) -> None:
    """Rare ones, too: where the order of arcs of one length matters, or a lifted arc makes another one cross."""
    every = np.array(list(itertools.product(range(-1, length), repeat=length)), np.int64)
    is_tree = check_trees(every.ravel(), np.arange(len(every) + 1) * length).cycles < 0
    sentences = every[is_tree].tolist()
    assert len(sentences) == (length + 1) ** (length - 1)  # Cayley's formula
    heads, offsets = columns(sentences)
    own = list(range(length))
    labels = np.tile(own, len(sentences))
    lifted = lift(heads, labels, offsets)
    expected = [twin_lift(tree, own) for tree in sentences]
    assert crossing(heads, offsets).tolist() == [mark for tree in sentences for mark in twin_crossing(tree)]
    assert lifted.heads.tolist() == [head for tree, _ in expected for head in tree]
    assert lifted.origin.tolist() == [label for _, origin in expected for label in origin]
    lowered = lower(lifted.heads, labels, lifted.origin, offsets)
    assert lowered.tolist() == [head for tree, origin in expected for head in twin_lower(tree, own, origin)]


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_a_hearing_is_scheduled_on_the_issue_today() -> None:
    """The example of everyone: "on" belongs to "hearing", and crosses "scheduled", the root."""
    heads = np.array([1, 3, 3, -1, 1, 6, 4, 3])
    labels = np.array([0, 1, 2, 3, 4, 0, 5, 6])
    offsets = np.array([0, 8])
    assert np.flatnonzero(crossing(heads, offsets)).tolist() == [4]
    lifted = lift(heads, labels, offsets)
    assert lifted.heads.tolist() == [1, 3, 3, -1, 3, 6, 4, 3]
    assert lifted.origin.tolist() == [-1, -1, -1, -1, 1, -1, -1, -1]
    assert lower(lifted.heads, labels, lifted.origin, offsets).tolist() == heads.tolist()


@pytest.mark.uncompiled
def test_lifted_twice() -> None:
    heads, labels, offsets = np.array([-1, 4, 0, 2, 3, 0]), np.arange(6), np.array([0, 6])
    assert np.flatnonzero(crossing(heads, offsets)).tolist() == [1]
    lifted = lift(heads, labels, offsets)
    assert lifted.heads.tolist() == [-1, 2, 0, 2, 3, 0] and lifted.origin.tolist() == [-1, 4, -1, -1, -1, -1]
    assert lower(lifted.heads, labels, lifted.origin, offsets).tolist() == heads.tolist()


@pytest.mark.uncompiled
def test_several_roots() -> None:
    """An arc that spans another root is lifted to where roots are, and finds its way back."""
    heads, labels, offsets = np.array([-1, -1, 0]), np.array([1, 2, 3]), np.array([0, 3])
    assert crossing(heads, offsets).tolist() == [False, False, True]
    lifted = lift(heads, labels, offsets)
    assert lifted.heads.tolist() == [-1, -1, -1] and lifted.origin.tolist() == [-1, -1, 1]
    assert lower(lifted.heads, labels, lifted.origin, offsets).tolist() == heads.tolist()


@pytest.mark.uncompiled
def test_a_word_stays_where_no_head_fits() -> None:
    heads, labels, offsets = np.array([-1, 0, 1, 0]), np.array([0, 1, 2, 1]), np.array([0, 4])
    # 0 is above, not below; 2 is below the word itself; nothing is labelled 7
    for wanted in (0, 2, 7):
        assert lower(heads, labels, np.array([-1, wanted, -1, -1]), offsets).tolist() == heads.tolist()
    assert lower(heads, labels, np.array([-1, 1, -1, -1]), offsets).tolist() == [-1, 3, 1, 0]
    # the first is lowered below the last, which then finds nothing but its own subtree
    assert lower(heads, labels, np.array([-1, 1, -1, 1]), offsets).tolist() == [-1, 3, 1, 0]
    assert lower(heads, labels, np.array([2, -1, -1, -1]), offsets).tolist() == heads.tolist()


@pytest.mark.uncompiled
def test_errors_name_place_and_fix() -> None:
    heads, labels, offsets = np.array([-1, 1, 0]), np.zeros(3, np.int64), np.array([0, 1, 3])
    for attempt in (
        lambda: crossing(heads, offsets),
        lambda: lift(heads, labels, offsets),
        lambda: lower(heads, labels, labels, offsets),
    ):
        with pytest.raises(ConfigurationError, match="sentence 1 has a cycle: give trees, see"):
            attempt()
    with pytest.raises(ConfigurationError, match="3 heads but 2 labels: give both for every word"):
        lift(heads, labels[:2], offsets)
    with pytest.raises(ConfigurationError, match="3 heads but 1 origins"):
        lower(heads, labels, labels[:1], offsets)
    with pytest.raises(ConfigurationError, match="word 0 of sentence 0 has head 5"):
        crossing(np.array([5]), np.array([0, 1]))


def test_long_sentences() -> None:
    length = 10_000
    offsets, labels = np.array([0, length]), np.arange(length)
    chain = np.arange(length) - 1
    flat, braid = np.zeros(length, np.int64), np.maximum(chain - 1, 0)
    flat[0] = braid[0] = -1
    for heads in (chain, flat):
        assert not crossing(heads, offsets).any()
        assert lift(heads, labels, offsets).heads.tolist() == heads.tolist()
    assert crossing(braid, offsets).sum() == length - 3
    lifted = lift(braid, labels, offsets)
    assert not crossing(lifted.heads, offsets).any()
    assert lower(lifted.heads, labels, lifted.origin, offsets).tolist() == braid.tolist()


# --- real trees -------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_most_of_a_treebank_is_restored() -> None:
    found = conll.read(Path(os.environ["LOLS_DATA"], "ewt-train.conllu.gz"), ["head", "deprel"])
    heads, offsets = read_heads(found, 0), found.offsets
    labels = intern(Texts(found.buffer, found.begin[1], found.end[1])).numbers
    lifted = lift(heads, labels, offsets)
    assert not crossing(lifted.heads, offsets).any()
    moved = lifted.origin >= 0
    assert (crossing(heads, offsets).sum(), moved.sum()) == (354, 357)
    assert len(np.unique(np.searchsorted(offsets, np.flatnonzero(moved), side="right"))) == 288
    lowered = lower(lifted.heads, labels, lifted.origin, offsets)
    assert (check_trees(lowered, offsets).cycles < 0).all()
    assert (lowered == heads)[~moved].all()
    assert (lowered == heads)[moved].mean() > 0.91
    for begin, end in itertools.pairwise(offsets):
        if moved[begin:end].any():
            tree, own = heads[begin:end].tolist(), labels[begin:end].tolist()
            made, origin = twin_lift(tree, own)
            assert made == lifted.heads[begin:end].tolist() and origin == lifted.origin[begin:end].tolist()
            assert twin_lower(made, own, origin) == lowered[begin:end].tolist()
