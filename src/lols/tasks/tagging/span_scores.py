"""Precision, recall and F1 of spans over a corpus, counted as the CoNLL script `conlleval` counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lols.errors import ConfigurationError
from lols.kernels.kernel import kernel
from lols.tasks.tagging.spans import label_parts, span_marks
from lols.tasks.tokens.counts import F1Counts


@dataclass(frozen=True)
class SpanScores(F1Counts):
    """The counts over all types, and those of each type."""

    by_type: dict[str, F1Counts]


def span_scores(
    gold: np.ndarray, predicted: np.ndarray, offsets: np.ndarray, labels: Sequence[str], scheme: str
) -> SpanScores:
    """Compare predicted with gold spans: one is correct if begin, end and type are. Any label sequence can be read.

    >>> labels = ["O", "B-LOC", "I-LOC", "B-PER"]
    >>> scores = span_scores(np.array([1, 2, 0, 3]), np.array([1, 0, 0, 3]), np.array([0, 4]), labels, "bio")
    >>> scores.f1, scores.by_type["LOC"]
    (0.5, F1Counts(correct=0, predicted=1, gold=1))
    """
    if len(gold) != len(predicted):
        raise ConfigurationError(f"{len(gold)} gold but {len(predicted)} predicted labels: give both for every word")
    parts = label_parts(labels, scheme)
    counts = np.zeros((len(parts.names), 3), np.int64)
    _count(*span_marks(gold, offsets, parts), *span_marks(predicted, offsets, parts), counts)
    correct, found, there = counts.sum(axis=0).tolist()
    return SpanScores(correct, found, there, {name: F1Counts(*row) for name, row in zip(parts.names, counts.tolist())})


def added_spans(parts: Sequence[SpanScores]) -> SpanScores:
    """The scores of all parts of a corpus."""
    names = dict.fromkeys(name for part in parts for name in part.by_type)
    counts = {name: F1Counts.sum_of(part.by_type[name] for part in parts if name in part.by_type) for name in names}
    whole = F1Counts.sum_of(parts)
    return SpanScores(whole.correct, whole.predicted, whole.gold, counts)


@kernel
def _count(gold_begins, gold_ends, begins, ends, counts):
    # Spans end within their sentence, so the ends of sentences need no attention.
    together = False  # the last span that began, on either side, began on both and with one type
    for i in range(len(begins)):
        if begins[i] >= 0:
            counts[begins[i], 1] += 1
        if gold_begins[i] >= 0:
            counts[gold_begins[i], 2] += 1
        if begins[i] >= 0 or gold_begins[i] >= 0:
            together = begins[i] == gold_begins[i]
            kind = begins[i]
        if together and ends[i] and gold_ends[i]:
            counts[kind, 0] += 1
