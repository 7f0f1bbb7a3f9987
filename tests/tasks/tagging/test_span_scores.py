"""Scores of spans, against a transcript of conlleval's rules and against seqeval."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.tasks.tagging.span_scores import SpanScores, span_scores
from lols.tasks.tagging.spans import make_labels
from lols.tasks.tokens.counts import F1Counts
from tests.tasks.tagging.span_twin import convert

SCHEMES = ("bio", "iob1", "bilou", "bioes")
TYPES = ["B-LOC", "B-PER", "B-X-Y"]
Sentences = list[list[str]]

# conlleval's table: a chunk ends between these two prefixes, and begins between those; E and S as in seqeval
ENDS = ("BB", "BS", "BO", "IB", "IS", "IO", "EB", "EI", "EE", "ES", "EO", "SB", "SI", "SE", "SS", "SO")
BEGINS = ("BB", "IB", "OB", "EB", "SB", "BS", "IS", "OS", "ES", "SS", "OI", "EI", "SI", "OE", "EE", "SE")


def twin_counts(gold: Sentences, predicted: Sentences) -> dict[str, F1Counts]:
    """Conlleval's own procedure: word by word, with one flag for a chunk that is correct so far."""
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for gold_labels, labels in zip(gold, predicted, strict=True):
        in_correct, kind = False, ""
        before = ("O", "", "O", "")
        for gold_label, label in zip([*gold_labels, "O"], [*labels, "O"], strict=True):
            now = (*_prefix_and_type(gold_label), *_prefix_and_type(label))
            gold_begins, gold_ends = _boundaries(*before[:2], *now[:2])
            begins, ends = _boundaries(*before[2:], *now[2:])
            if in_correct:
                if gold_ends and ends:
                    in_correct = False
                    correct[kind] += 1
                elif gold_ends != ends or now[1] != now[3]:
                    in_correct = False
            if gold_begins and begins and now[1] == now[3]:
                in_correct, kind = True, now[1]
            if gold_begins:
                there[now[1]] += 1
            if begins:
                found[now[3]] += 1
            before = now
    return {kind: F1Counts(correct[kind], found[kind], there[kind]) for kind in found | there}


def _prefix_and_type(label: str) -> tuple[str, str]:
    return label[0].replace("L", "E").replace("U", "S"), label[2:]


def _boundaries(prefix_before: str, kind_before: str, prefix: str, kind: str) -> tuple[bool, bool]:
    begins = prefix_before + prefix in BEGINS or (prefix != "O" and kind_before != kind)
    ends = prefix_before + prefix in ENDS or (prefix_before != "O" and kind_before != kind)
    return begins, ends


def columns(sentences: Sentences, labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array([labels.index(label) for sentence in sentences for label in sentence], np.int64)
    return numbers, np.cumsum([0, *map(len, sentences)])


def scores_of(gold: Sentences, predicted: Sentences, scheme: str) -> SpanScores:
    labels = make_labels(scheme, TYPES)
    (gold_numbers, offsets), (numbers, _) = columns(gold, labels), columns(predicted, labels)
    return span_scores(gold_numbers, numbers, offsets, labels, scheme)


def random_pair(data: Any, scheme: str) -> tuple[Sentences, Sentences]:
    """Label sequences without regard to what is legal; the predicted ones keep some of the gold ones."""
    label = st.sampled_from(make_labels(scheme, TYPES))
    words = data.draw(st.lists(st.lists(st.tuples(label, label, st.booleans()), max_size=9), min_size=1, max_size=4))
    gold = [[g for g, _, _ in sentence] for sentence in words]
    return gold, [[g if same else p for g, p, same in sentence] for sentence in words]


@pytest.mark.uncompiled
@given(st.data(), st.sampled_from(SCHEMES), st.booleans())
def test_scores_equal_their_twin(data: st.DataObject, scheme: str, legal: bool) -> None:
    gold, predicted = random_pair(data, scheme)
    if legal:
        gold, predicted = ([convert(s, scheme, scheme) for s in side] for side in (gold, predicted))
    scores = scores_of(gold, predicted, scheme)
    expected = twin_counts(gold, predicted)
    assert {kind: counts for kind, counts in scores.by_type.items() if counts.predicted + counts.gold} == expected
    for name in ("correct", "predicted", "gold"):
        assert getattr(scores, name) == sum(getattr(counts, name) for counts in expected.values())


@pytest.mark.uncompiled
@given(st.data(), st.sampled_from(SCHEMES), st.booleans())
def test_scores_equal_seqeval(data: st.DataObject, scheme: str, legal: bool) -> None:
    seqeval = pytest.importorskip("seqeval.metrics")
    gold, predicted = random_pair(data, scheme)
    if legal:
        gold, predicted = ([convert(s, scheme, scheme) for s in side] for side in (gold, predicted))
    scores = scores_of(gold, predicted, scheme)
    known = [  # seqeval reads E and S where we may have L and U
        [[label.replace("L-", "E-", 1).replace("U-", "S-", 1) for label in sentence] for sentence in side]
        for side in (gold, predicted)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [getattr(seqeval, name)(*known) for name in ("precision_score", "recall_score", "f1_score")]
    assert [scores.precision, scores.recall, scores.f1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.uncompiled
@given(st.data(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_scores_do_not_depend_on_the_scheme(data: st.DataObject, source: str, target: str) -> None:
    gold, predicted = random_pair(data, source)
    converted = ([convert(sentence, source, target) for sentence in side] for side in (gold, predicted))
    assert scores_of(gold, predicted, source) == scores_of(*converted, target)


@pytest.mark.uncompiled
def test_scores_by_hand() -> None:
    gold = [["B-LOC", "I-LOC", "O", "B-PER"], ["B-PER"]]
    predicted = [["B-LOC", "I-LOC", "O", "B-LOC"], ["O"]]
    scores = scores_of(gold, predicted, "bio")
    assert (scores.correct, scores.predicted, scores.gold) == (1, 2, 3)
    assert (scores.precision, scores.recall, scores.f1) == (1 / 2, 1 / 3, 2 / 5)
    assert scores.by_type == {"LOC": F1Counts(1, 2, 1), "PER": F1Counts(0, 0, 2), "X-Y": F1Counts(0, 0, 0)}
    assert scores.by_type["LOC"].precision == 0.5 and scores.by_type["LOC"].recall == 1.0


@pytest.mark.uncompiled
def test_a_span_of_two_sentences_is_two_spans() -> None:
    labels, numbers = ["O", "B-A", "I-A"], np.array([1, 2, 2])
    for offsets, count in ([0, 2, 3], 2), ([0, 3], 1):
        found = span_scores(numbers, numbers, np.array(offsets), labels, "bio")
        assert found.correct == found.predicted == found.gold == count


@pytest.mark.uncompiled
def test_nothing_to_score() -> None:
    empty = np.zeros(0, np.int64)
    scores = span_scores(empty, empty, np.array([0, 0]), ["O", "B-A"], "bio")
    assert (scores.precision, scores.recall, scores.f1, scores.correct) == (0.0, 0.0, 0.0, 0)
    assert span_scores(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([0, 1]), ["O"], "bio").by_type == {}


@pytest.mark.uncompiled
def test_errors_name_place_and_fix() -> None:
    one, offsets = np.zeros(1, np.int64), np.array([0, 1])
    with pytest.raises(ConfigurationError, match="1 gold but 2 predicted labels: give both for every word"):
        span_scores(one, np.zeros(2, np.int64), offsets, ["O"], "bio")
    with pytest.raises(ConfigurationError, match="'NN' is not a label of the scheme 'bio'"):
        span_scores(one, one, offsets, ["NN"], "bio")
    with pytest.raises(ConfigurationError, match="word 0 has label number -1, but there are 1 labels"):
        span_scores(one, one - 1, offsets, ["O"], "bio")
