"""What the tests of spans share: all legal sequences, and the spans of one, found in another way than the library's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from lols.tasks.tagging.spans import Automaton, _prefix, label_parts, make_labels

WITH_AUTOMATON = ("bio", "bilou", "bioes")
TYPES = ("LOC", "PER", "X-Y")
Spans = set[tuple[int, int, str]]


def labels_of(scheme: str, types: int) -> list[str]:
    return make_labels(scheme, [f"B-{kind}" for kind in TYPES[:types]])


def legal_sequences(machine: Automaton, length: int) -> Iterator[tuple[int, ...]]:
    """All sequences that the automaton allows."""

    def extend(prefix: tuple[int, ...], q: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == length:
            if machine.can_end[q]:
                yield prefix
            return
        for a in np.flatnonzero(machine.next[q] >= 0).tolist():
            yield from extend((*prefix, a), int(machine.next[q, a]))

    return extend((), 0)


def spans_of_legal(labels: list[str]) -> Spans:
    """The spans of a legal sequence in bio, bilou or bioes, in another way than `read_spans`."""
    found = set()
    for i, label in enumerate(labels):
        if label[0] in "BUS":
            rest = itertools.takewhile(lambda other: other[0] in "ILE" and other != "O", labels[i + 1 :])
            found.add((i, i + 1 + (0 if label[0] in "US" else len(list(rest))), label[2:]))
    return found


def read_spans(labels: Sequence[str], scheme: str) -> list[tuple[int, int, str]]:
    """The spans of one sentence: first word, word after the last, type."""
    parts = label_parts(labels, scheme)
    spans: list[tuple[int, int, str]] = []
    for i, kind in enumerate(parts.types.tolist()):
        if kind < 0:
            continue
        if i == 0 or parts.opens[i] or parts.closes[i - 1] or parts.types[i - 1] != kind:
            spans.append((i, i + 1, parts.names[kind]))
        else:
            spans[-1] = (spans[-1][0], i + 1, spans[-1][2])
    return spans


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """Write the labels of one sentence in another scheme."""
    written, kinds = ["O"] * len(labels), [""] * len(labels)
    for begin, end, kind in read_spans(labels, source):
        for i in range(begin, end):
            touches = i > 0 and kinds[i - 1] == kind
            written[i] = f"{_prefix(target, touches, i == begin, i == end - 1)}-{kind}"
            kinds[i] = kind
    return written


def legal(labels: Sequence[str], scheme: str) -> bool:
    """Whether the labels of one sentence are what the scheme writes for the spans they stand for."""
    return convert(labels, scheme, scheme) == list(labels)
