"""Precision, recall and F1 of labelled spans, counted the way the CoNLL-2000 shared task's conlleval counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["SpanScores", "span_scores", "spans"]


class SpanScores(NamedTuple):
    """Shares, not per cent."""

    precision: float
    recall: float
    f1: float


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Return (start, end, kind) of each span, the end excluded.

    A span starts at B, and also at an I that does not continue a span of its own kind.

    >>> sorted(spans(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-PP"]))
    [(0, 2, 'NP'), (2, 3, 'NP'), (4, 5, 'VP'), (5, 6, 'PP')]
    """
    found = set()
    start, open_kind = 0, ""
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        if prefix == "I" and kind == open_kind:
            continue
        if open_kind:
            found.add((start, position, open_kind))
        start, open_kind = position, kind
    return found


def span_scores(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> SpanScores:
    """Score sentences of tags; a span counts as found where its start, its end and its kind are all right.

    >>> span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "I-VP"]])
    SpanScores(precision=1.0, recall=1.0, f1=1.0)
    >>> span_scores([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    SpanScores(precision=0.0, recall=0.0, f1=0.0)
    """
    right = wanted = made = 0
    for truth, guess in zip(gold, predicted, strict=True):
        if len(truth) != len(guess):
            raise ValueError(f"a sentence of {len(truth)} tags has {len(guess)} predictions; align them")
        in_truth, in_guess = spans(truth), spans(guess)
        right += len(in_truth & in_guess)
        wanted += len(in_truth)
        made += len(in_guess)
    precision, recall = right / made if made else 0.0, right / wanted if wanted else 0.0
    return SpanScores(precision, recall, 2 * right / (made + wanted) if made + wanted else 0.0)
