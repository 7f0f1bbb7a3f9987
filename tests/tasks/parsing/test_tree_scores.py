"""Scores of trees, against the official scorer and against counting word by word."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.parsing.scores import CONTENT_RELATIONS, RelationCounts, TreeScores, tree_scores
from lols.tasks.parsing.trees import check_trees, read_heads

# content and function words, with and without subtypes, and names that the scorer does not know
NAMES = ["root", "nsubj", "nsubj:pass", "obl:tmod:x", "obl", "case", "det", "det:poss", "punct", "cc", "odd", "odd:ly"]
Trees = list[list[tuple[int, int]]]  # head and label of each word


@st.composite
def tree_pairs(draw: st.DrawFn) -> tuple[Trees, Trees]:
    """Gold and predicted trees with single roots; the predicted ones keep about half of the gold ones."""
    pairs: tuple[Trees, Trees] = ([], [])
    label = st.integers(0, len(NAMES) - 1)
    for length in draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)):
        heads = draw(tree(length))
        labels = draw(st.lists(label, min_size=length, max_size=length))
        others = heads if draw(st.booleans()) else draw(tree(length))
        new_labels = [old if draw(st.booleans()) else draw(label) for old in labels]
        pairs[0].append(list(zip(heads, labels, strict=True)))
        pairs[1].append(list(zip(others, new_labels, strict=True)))
    return pairs


@st.composite
def tree(draw: st.DrawFn, length: int) -> list[int]:
    order = draw(st.permutations(range(length)))
    heads = [-1] * length
    for k in range(1, length):
        heads[order[k]] = draw(st.sampled_from(order[:k]))
    return heads


def columns(trees: Trees) -> tuple[np.ndarray, np.ndarray]:
    words = np.array([word for sentence in trees for word in sentence], np.int64).reshape(-1, 2)
    return words[:, 0].copy(), words[:, 1].copy()


def scores_of(gold: Trees, predicted: Trees, counted: np.ndarray | None = None) -> TreeScores:
    offsets = np.cumsum([0, *map(len, gold)])
    return tree_scores(*columns(gold), *columns(predicted), NAMES, offsets, counted=counted)


def official(gold: str, predicted: str) -> dict[str, Any]:
    scorer = pytest.importorskip("udtools.udeval")
    return scorer.evaluate(*(scorer.load_conllu(io.StringIO(text), "f", {}) for text in (gold, predicted)))


def assert_equal(scores: TreeScores, expected: dict[str, Any]) -> None:
    """The same numbers to the last bit: they come from the same counts."""
    assert scores.words == expected["Words"].correct == expected["Words"].gold_total
    assert scores.uas == expected["UAS"].f1 and scores.las == expected["LAS"].f1
    clas = expected["CLAS"]
    assert (scores.content.correct, scores.content.predicted, scores.content.gold) == (
        clas.correct,
        clas.system_total,
        clas.gold_total,
    )
    assert (scores.clas, scores.content.precision, scores.content.recall) == (clas.f1, clas.precision, clas.recall)


# --- the official scorer ----------------------------------------------------------------------------------------------


def test_content_relations_are_those_of_the_scorer() -> None:
    assert pytest.importorskip("udtools.udeval").CONTENT_DEPRELS == CONTENT_RELATIONS


@given(tree_pairs())
def test_scores_equal_the_official_ones(pair: tuple[Trees, Trees]) -> None:
    texts = [
        "".join(
            "".join(f"{i}\tw\t_\t_\t_\t_\t{h + 1}\t{NAMES[a]}\t_\t_\n" for i, (h, a) in enumerate(sentence, 1)) + "\n"
            for sentence in trees
        )
        for trees in pair
    ]
    assert_equal(scores_of(*pair), official(*texts))


def perturbed(heads: np.ndarray, offsets: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Other trees with the same roots: some words hang elsewhere, but not below themselves."""
    made = heads.copy()
    for begin, end in itertools.pairwise(offsets.tolist()):
        for word in np.flatnonzero(rng.random(end - begin) < rate).tolist():
            at = new = int(rng.integers(end - begin))
            while at not in (-1, word):
                at = int(made[begin + at])
            if at < 0 and made[begin + word] >= 0:
                made[begin + word] = new
    return made


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_scores_of_a_treebank_equal_the_official_ones() -> None:
    """With multi-word tokens, empty nodes and subtypes."""
    gold = conll.read(Path(os.environ["LOLS_DATA"], "ewt-dev.conllu.gz"), ["head", "deprel"])
    gold_heads = read_heads(gold, 0)
    column = intern(Texts(gold.buffer, gold.begin[1], gold.end[1]))
    names, rng = column.texts.strings(), np.random.default_rng(5)
    heads = perturbed(gold_heads, gold.offsets, 0.3, rng)
    assert (check_trees(heads, gold.offsets).cycles < 0).all()
    changed = rng.random(len(heads)) < 0.2
    labels = np.where(changed, rng.integers(0, len(names), len(heads)), column.numbers)

    written = conll.replace(gold, "head", [str(n) for n in range(200)], heads + 1)
    written = conll.replace(conll.parse(written, ["head"]), "deprel", names, labels)
    expected = official(gold.buffer.tobytes().decode(), written.decode())
    scores = tree_scores(gold_heads, column.numbers, heads, labels, names, gold.offsets)
    assert_equal(scores, expected)
    assert 0.5 < scores.las_full < scores.las < scores.uas < 0.9 and scores.exact < scores.exact_heads < 0.5
    same = tree_scores(gold_heads, column.numbers, gold_heads, column.numbers, names, gold.offsets)
    assert same.uas == same.las == same.las_full == same.clas == same.exact_heads == same.exact == 1.0


# --- counting word by word --------------------------------------------------------------------------------------------


def twin(gold: Trees, predicted: Trees, counted: list[bool]) -> TreeScores:
    marks = iter(counted)
    sentences = [
        [(g, p) for g, p in zip(*both, strict=True) if next(marks)] for both in zip(gold, predicted, strict=True)
    ]
    sentences = [sentence for sentence in sentences if sentence]
    words = [word for sentence in sentences for word in sentence]

    def part(right: list[bool]) -> float:
        return sum(right) / len(right) if right else 0.0

    def bare(label: int) -> str:
        return NAMES[label].split(":")[0]

    def counts(name_of: Callable[[int], str], names: Collection[str]) -> RelationCounts:
        """Of the words whose label has one of some names."""
        named = [(g[0], name_of(g[1]), p[0], name_of(p[1])) for g, p in words]
        return RelationCounts(
            correct=sum(a in names and (h, a) == (i, b) for h, a, i, b in named),
            predicted=sum(b in names for _, _, _, b in named),
            gold=sum(a in names for _, a, _, _ in named),
            attached=sum(a in names and h == i for h, a, i, _ in named),
        )

    table = {name: counts(NAMES.__getitem__, {name}) for name in NAMES}
    return TreeScores(
        words=len(words),
        sentences=len(sentences),
        uas=part([g[0] == p[0] for g, p in words]),
        las=part([g[0] == p[0] and bare(g[1]) == bare(p[1]) for g, p in words]),
        las_full=part([g == p for g, p in words]),
        content=counts(bare, CONTENT_RELATIONS),
        exact_heads=part([all(g[0] == p[0] for g, p in sentence) for sentence in sentences]),
        exact=part([all(g == p for g, p in sentence) for sentence in sentences]),
        by_relation={name: row for name, row in table.items() if row.predicted + row.gold},
    )


@settings(max_examples=100)
@given(tree_pairs(), st.data(), st.booleans())
def test_scores_equal_their_twin(pair: tuple[Trees, Trees], data: st.DataObject, all_count: bool) -> None:
    size = sum(map(len, pair[0]))
    counted = [True] * size if all_count else data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    scores = scores_of(*pair, None if all_count else np.array(counted))
    expected = twin(*pair, counted)
    assert scores == expected
    assert list(scores.by_relation) == list(expected.by_relation)


def test_scores_by_hand() -> None:
    # The cats were seen. They sleep
    gold = [[(1, 6), (3, 2), (3, 5), (-1, 0), (3, 8)], [(1, 1), (-1, 0)]]
    made = [[(1, 7), (3, 1), (1, 5), (-1, 0), (0, 8)], [(1, 1), (-1, 0)]]
    scores = scores_of(gold, made)
    assert (scores.words, scores.sentences) == (7, 2)
    assert (scores.uas, scores.las, scores.las_full) == (5 / 7, 5 / 7, 3 / 7)
    assert scores.content == RelationCounts(4, 4, 4, 4) and scores.clas == 1.0
    assert (scores.exact_heads, scores.exact) == (0.5, 0.5)
    assert scores.by_relation["nsubj"] == RelationCounts(1, 2, 1, 1)
    assert scores.by_relation["nsubj:pass"] == RelationCounts(0, 0, 1, 1)
    assert scores.by_relation["nsubj"].precision == 0.5 and scores.by_relation["nsubj"].recall == 1.0
    assert scores.by_relation["nsubj:pass"].precision == 0.0 and scores.by_relation["nsubj:pass"].f1 == 0.0
    assert "obl" not in scores.by_relation
    without = scores_of(gold, made, np.array([True, True, False, True, False, False, False]))
    assert (without.words, without.sentences, without.uas, without.exact_heads, without.exact) == (3, 1, 1.0, 1.0, 0.0)


def test_content_words_count_on_both_sides() -> None:
    """A content word taken for a function word costs recall, the other way round it costs precision."""
    missed = scores_of([[(-1, 0), (0, 1)]], [[(-1, 0), (0, 5)]])
    assert (missed.content.precision, missed.content.recall, missed.clas) == (1.0, 0.5, 2 / 3)
    invented = scores_of([[(-1, 0), (0, 5)]], [[(-1, 0), (0, 1)]])
    assert (invented.content.precision, invented.content.recall, invented.clas) == (0.5, 1.0, 2 / 3)


def test_nothing_to_score() -> None:
    empty = np.zeros(0, np.int64)
    scores = tree_scores(empty, empty, empty, empty, [], np.array([0, 0]))
    assert scores == (0, 0, 0.0, 0.0, 0.0, RelationCounts(0, 0, 0, 0), 0.0, 0.0, {}, None) and scores.clas == 0.0
    assert scores_of([[(-1, 0)]], [[(-1, 0)]], np.array([False]))[:3] == (0, 0, 0.0)


def test_what_is_no_tree_is_scored_too() -> None:
    """A parser that is being built may give several roots, or a cycle."""
    assert scores_of([[(-1, 0), (0, 1)]], [[(-1, 0), (-1, 0)]]).uas == 0.5
    assert scores_of([[(-1, 0), (0, 1)]], [[(1, 0), (0, 1)]]).uas == 0.5


def test_errors_name_place_and_fix() -> None:
    one, two, offsets = np.zeros(1, np.int64), np.zeros(2, np.int64), np.array([0, 1])
    for arguments, message in [
        ((one, two, one, one), "1 heads but 2 gold labels: give both for every word"),
        ((one, one, two, one), "1 heads but 2 predicted heads"),
        ((one, one, one, two), "1 heads but 2 predicted labels"),
        ((one, one + 1, one, one), "word 0 has label number 1, but there are 1 labels"),
        ((one, one, one, one - 1), "word 0 has label number -1, but there are 1 labels"),
        ((one, one, one + 1, one), "word 0 of sentence 0 has head 1"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            tree_scores(*arguments, ["root"], offsets)
    with pytest.raises(ConfigurationError, match="1 heads but 2 marks"):
        tree_scores(one, one, one, one, ["root"], offsets, counted=np.ones(2, np.bool_))
