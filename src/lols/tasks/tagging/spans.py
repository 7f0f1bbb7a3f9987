"""Spans (chunks, entities) written as one label for each word: schemes, legal sequences, conversions.

A label is `O` or PREFIX-TYPE. In all schemes `B` begins a span and `I` goes on. In `bio` (IOB2) every span begins with
`B`; in `iob1` only one that touches another of its type does, the others begin with `I`. In `bilou` and `bioes` the
last word of a span says so (`L`, `E`), and so does a span of one word (`U`, `S`).

Sequences that are illegal in their scheme are read as the script `conlleval` of the CoNLL shared tasks reads them. That
is one rule for all schemes: a span begins at a label that says so, and at any other label but `O` if it comes first,
after `O`, after the last word of a span, or after another type; it ends before the next one and before `O`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from lols.errors import ConfigurationError
from lols.kernels.kernel import kernel

PREFIXES = {"bio": "BI", "iob1": "BI", "bilou": "BILU", "bioes": "BIES"}
MOST_MOVES = 1 << 22  # of an automaton: with 1,400 types of spans in BIO it has as many
CLOSED = ("bilou", "bioes")  # a span that was begun must be ended by a label of its own


class Automaton(NamedTuple):
    """Which label may follow which, in arrays that compiled code can read.

    State 0 is the start, and also "no span is open"; in state 1 + k a span of type k is open. Types are in the order of
    their names. Without a scheme there is one state, and every label is legal.
    """

    next: np.ndarray
    """int64 [states, labels]: the state after a label, -1 where the label is illegal."""
    can_end: np.ndarray
    """bool [states]: whether a sequence may end there."""
    opens: np.ndarray
    """bool [labels]: the label begins a span (B, U, S)."""
    closes: np.ndarray
    """bool [labels]: the label is the last of its span (L, U, E, S); never in `bio`, where only the next one tells."""
    types: np.ndarray
    """int64 [labels]: the type of the label, -1 for O."""


class LabelParts(NamedTuple):
    """What each label says: as in `Automaton`, with the names of the types."""

    opens: np.ndarray
    closes: np.ndarray
    types: np.ndarray
    names: list[str]


def detect_scheme(labels: Iterable[str]) -> str | None:
    """The scheme that a set of labels looks like, or None if these are plain tags.

    The set alone cannot tell `iob1` from `bio` where both `B` and `I` occur: it is `bio` then, and
    `detect_scheme_columns` looks closer.

    >>> detect_scheme(["O", "B-PER", "I-PER"]), detect_scheme(["O", "U-PER"]), detect_scheme(["NN", "VB", "O"])
    ('bio', 'bilou', None)
    """
    split = [_split(label) for label in labels]
    prefixes = {prefix for prefix, _ in split} - {"O"}
    if prefixes == {"I"}:
        return "iob1"
    fitting = [scheme for scheme in ("bio", "bilou", "bioes") if prefixes <= set(PREFIXES[scheme])]
    return fitting[0] if prefixes and fitting else None


def detect_scheme_columns(numbers: np.ndarray, offsets: np.ndarray, labels: Sequence[str]) -> str | None:
    """The scheme of a whole corpus: `iob1` if no span begins with `B` but those that touch another of their type.

    >>> labels = ["O", "B-PER", "I-PER"]
    >>> detect_scheme_columns(np.array([2, 2, 1, 0]), np.array([0, 4]), labels)
    'iob1'
    >>> detect_scheme_columns(np.array([2, 2, 1, 0]), np.array([0, 2, 4]), labels)
    'bio'
    """
    scheme = detect_scheme(labels)
    if scheme != "bio":
        return scheme
    _check_columns(numbers, offsets, len(labels))
    parts = label_parts(labels, scheme)
    types = parts.types[numbers]
    before = np.concatenate([[-1], types[:-1]])[: len(types)]
    starts = offsets[:-1]
    before[starts[starts < len(types)]] = -1
    apart = (types >= 0) & (types != before)
    begun = parts.opens[numbers[apart]]
    return "iob1" if len(begun) and not begun.any() else "bio"


def make_labels(scheme: str | None, seen: Iterable[str]) -> list[str]:
    """All labels of a scheme for the types seen, `O` first, so that every span can be begun, continued and ended.

    The labels seen may be of another scheme; only their types count. Without a scheme, they are sorted as they are.

    >>> make_labels("bilou", ["B-PER", "B-LOC"])
    ['O', 'B-LOC', 'B-PER', 'I-LOC', 'I-PER', 'L-LOC', 'L-PER', 'U-LOC', 'U-PER']
    """
    if scheme is None:
        return sorted(set(seen))
    _check_scheme(scheme)
    types = set()
    for label in seen:
        prefix, kind = _split(label)
        if prefix not in "OBILUES":
            raise ConfigurationError(f"'{label}' is not a span label: write it as O or as PREFIX-TYPE, such as B-PER")
        types.add(kind)
    return ["O", *sorted(f"{prefix}-{kind}" for prefix in PREFIXES[scheme] for kind in types - {""})]


def label_parts(labels: Sequence[str], scheme: str) -> LabelParts:
    """Take labels apart: what begins or ends a span, and of which type.

    >>> label_parts(["O", "B-LOC", "I-LOC", "I-PER"], "bio").types.tolist()
    [-1, 0, 0, 1]
    """
    _check_scheme(scheme)
    split = [_split(label) for label in labels]
    for label, (prefix, _) in zip(labels, split):
        if prefix not in "O" + PREFIXES[scheme]:
            hint = f"its labels are O and {', '.join(p + '-TYPE' for p in PREFIXES[scheme])}"
            raise ConfigurationError(f"'{label}' is not a label of the scheme '{scheme}': {hint}")
    names = sorted({kind for _, kind in split} - {""})
    numbers = {kind: number for number, kind in enumerate(names)}
    return LabelParts(
        opens=np.array([prefix in "BUS" for prefix, _ in split], np.bool_),
        closes=np.array([prefix in "LUES" for prefix, _ in split], np.bool_),
        types=np.array([numbers.get(kind, -1) for _, kind in split], np.int64),
        names=names,
    )


def automaton(scheme: str | None, labels: Sequence[str]) -> Automaton:
    """The legal sequences of a scheme over these labels, without dead ends.

    At the last word a label `a` is legal in state `q` if `next[q, a]` may end; there always is one.

    >>> machine = automaton("bio", ["O", "B-PER", "I-PER"])
    >>> machine.next.tolist()
    [[0, 1, -1], [0, 1, 1]]
    """
    if scheme is None:
        none = np.zeros(len(labels), np.bool_)
        every = np.zeros((1, len(labels)), np.int64)
        return Automaton(every, np.ones(1, np.bool_), none, none.copy(), np.full(len(labels), -1, np.int64))
    if scheme == "iob1":
        raise ConfigurationError("the scheme 'iob1' has no automaton: convert the labels to 'bio', and results back")
    opens, closes, types, names = label_parts(labels, scheme)
    if (1 + len(names)) * len(labels) > MOST_MOVES:
        raise ConfigurationError(f"there are {len(names)} types of spans, which are too many: use fewer, or plain tags")
    moves = np.full((1 + len(names), len(labels)), -1, np.int64)
    goes_on, after = (types >= 0) & ~opens, np.where((types < 0) | closes, 0, 1 + types)
    for q in range(1 + len(names)):
        legal = np.where(goes_on, types == q - 1, q == 0 or scheme not in CLOSED)
        moves[q, legal] = after[legal]
    can_end = np.ones(1 + len(names), np.bool_)
    can_end[1:] = scheme not in CLOSED
    for q in {0, *moves[0].tolist()} - {-1}:
        if not can_end[moves[q][moves[q] >= 0]].any():
            missing = "O" if q == 0 else f"{PREFIXES[scheme][2]}-{names[q - 1]}"
            raise ConfigurationError(f"without the label '{missing}' some sentences cannot end: see make_labels")
    return Automaton(moves, can_end, opens, closes, types)


def convert_columns(
    numbers: np.ndarray,
    offsets: np.ndarray,
    source_labels: Sequence[str],
    target_labels: Sequence[str],
    source: str,
    target: str,
) -> np.ndarray:
    """Write the labels of a corpus in another scheme, or in the same one to mend illegal sequences.

    >>> bio, bilou = ["O", "B-PER", "I-PER"], make_labels("bilou", ["B-PER"])
    >>> made = convert_columns(np.array([1, 2, 0, 1]), np.array([0, 3, 4]), bio, bilou, "bio", "bilou")
    >>> [bilou[number] for number in made]
    ['B-PER', 'L-PER', 'O', 'U-PER']
    """
    _check_scheme(target)
    parts = label_parts(source_labels, source)
    begins, ends = span_marks(numbers, offsets, parts)
    numbers, offsets = np.ascontiguousarray(numbers, np.int64), np.ascontiguousarray(offsets, np.int64)
    known = {label: number for number, label in enumerate(target_labels)}
    wanted = [
        f"{_prefix(target, touches, begin, end)}-{name}"
        for name in parts.names
        for touches in (False, True)
        for begin in (False, True)
        for end in (False, True)
    ]
    table = np.array([known.get(label, -1) for label in wanted], np.int64).reshape(-1, 8)
    made = np.empty(len(numbers), np.int64)
    missing = _rewrite(numbers, offsets, parts.types, begins, ends, table, known.get("O", -1), made)
    if missing >= -1:
        label = "O" if missing < 0 else wanted[missing]
        raise ConfigurationError(f"label '{label}' is needed, but not among the target labels: see make_labels")
    return made


def span_marks(
    numbers: np.ndarray, offsets: np.ndarray, parts: LabelParts | Automaton
) -> tuple[np.ndarray, np.ndarray]:
    """For each word of a corpus: the type of the span that begins there, or -1; and whether one ends with it.

    >>> machine = automaton("bio", ["O", "B-PER", "I-PER"])
    >>> begins, ends = span_marks(np.array([1, 2, 0, 1]), np.array([0, 3, 4]), machine)
    >>> begins.tolist(), ends.tolist()
    ([0, -1, -1, 0], [False, True, False, True])
    """
    _check_columns(numbers, offsets, len(parts.types))
    begins, ends = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.bool_)
    numbers, offsets = np.ascontiguousarray(numbers, np.int64), np.ascontiguousarray(offsets, np.int64)
    _mark(numbers, offsets, parts.opens, parts.closes, parts.types, begins, ends)
    return begins, ends


@kernel
def _mark(numbers, offsets, opens, closes, types, begins, ends):
    for k in range(len(offsets) - 1):
        before = -1
        for i in range(offsets[k], offsets[k + 1]):
            a = numbers[i]
            begun = types[a] >= 0 and (opens[a] or before < 0 or closes[before] or types[before] != types[a])
            begins[i] = types[a] if begun else -1
            ends[i] = types[a] >= 0
            if before >= 0 and types[a] >= 0 and not begun:
                ends[i - 1] = False
            before = a


@kernel
def _rewrite(numbers, offsets, types, begins, ends, table, outside, made):
    """Fill `made`; gives the entry of the table that is needed and missing, -1 for O, -2 if nothing is missing."""
    for k in range(len(offsets) - 1):
        before = -1
        for i in range(offsets[k], offsets[k + 1]):
            kind = types[numbers[i]]
            made[i] = outside
            entry = -1
            if kind >= 0:
                entry = 4 * int(kind == before) + 2 * int(begins[i] >= 0) + int(ends[i])
                made[i] = table[kind, entry]
                entry += 8 * kind
            if made[i] < 0:
                return entry
            before = kind
    return -2


def _split(label: str) -> tuple[str, str]:
    """Prefix and type, `("O", "")` for O, `("?", "")` for what is not a span label."""
    prefix, _, kind = label.partition("-")
    if label == "O" or (len(prefix) == 1 and kind and prefix in "BILUES"):
        return prefix, kind
    return "?", ""


def _prefix(scheme: str, touches: bool, begins: bool, ends: bool) -> str:
    """How a scheme marks a word of a span: does it begin or end it, and is the word before of the same type?"""
    if scheme in CLOSED and ends:
        return PREFIXES[scheme][3 if begins else 2]
    return "B" if begins and (scheme != "iob1" or touches) else "I"


def _check_scheme(scheme: str) -> None:
    if scheme not in PREFIXES:
        raise ConfigurationError(f"unknown scheme '{scheme}': choose one of {', '.join(PREFIXES)}")


def _check_columns(numbers: np.ndarray, offsets: np.ndarray, labels: int) -> None:
    """Compiled code does not look where it reads."""
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(numbers) or (np.diff(offsets) < 0).any():
        raise ConfigurationError(f"offsets must rise from 0 to the number of words, which is {len(numbers)}")
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < labels):
        place = int(np.flatnonzero((numbers < 0) | (numbers >= labels))[0])
        raise ConfigurationError(f"word {place} has label number {numbers[place]}, but there are {labels} labels")
