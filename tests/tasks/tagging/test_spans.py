"""Spans as labels: schemes, legal sequences without dead ends, conversions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError
from lols.tasks.tagging.span_oracle import completions
from lols.tasks.tagging.spans import (
    automaton,
    convert_columns,
    detect_scheme,
    detect_scheme_columns,
    label_parts,
    make_labels,
    span_marks,
)
from tests.tasks.tagging.span_twin import (
    WITH_AUTOMATON,
    convert,
    labels_of,
    legal,
    legal_sequences,
    read_spans,
    spans_of_legal,
)

SCHEMES = ("bio", "iob1", "bilou", "bioes")


def satisfies(labels: list[str], scheme: str) -> bool:
    """The definition of legal sequences, in words of neighbours."""
    padded = ["O", *labels, "O"]
    for before, label in itertools.pairwise(padded):
        inside = before[0] in "BI" and before != "O"
        if scheme == "bio":
            fine = label[0] != "I" or (inside and before[2:] == label[2:])
        elif scheme == "iob1":
            fine = label[0] != "B" or before[2:] == label[2:]
        elif inside:
            fine = label[0] in "ILE" and before[2:] == label[2:]
        else:
            fine = label[0] in "OBUS"
        if not fine:
            return False
    return True


# --- schemes ----------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-NP", "I-NP"], "bio"),
        (["B-NP"], "bio"),
        (["O", "I-NP"], "iob1"),
        (["O", "B-A-B", "I-A-B", "L-A-B", "U-A-B"], "bilou"),
        (["O", "U-A"], "bilou"),
        (["O", "B-A", "E-A"], "bioes"),
        (["S-A"], "bioes"),
        (["O", "U-A", "S-A"], None),
        (["O"], None),
        ([], None),
        (["B-A", "NN"], None),
        (["-LRB-", "NN", "O"], None),
        (["B", "I", "O"], None),
        (["O", "B-"], None),
    ],
)
def test_detect_scheme(labels: list[str], scheme: str | None) -> None:
    assert detect_scheme(labels) == scheme


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["B-A", "I-A", "B-A"], ["O"]], "bio"),
        ([["I-A", "I-A", "B-A", "O"], [], ["I-A", "I-B"]], "iob1"),
        ([["I-A"], ["B-A"]], "bio"),  # the beginning of a sentence touches nothing
        ([["I-A", "B-B"]], "bio"),
        ([["O"], ["O"]], "bio"),
        ([[]], "bio"),
    ],
)
def test_detect_scheme_from_sequences(sentences: list[list[str]], scheme: str) -> None:
    labels = ["O", "B-A", "I-A", "B-B", "I-B"]
    numbers = np.array([labels.index(label) for sentence in sentences for label in sentence], np.int64)
    offsets = np.cumsum([0, *map(len, sentences)])
    assert detect_scheme_columns(numbers, offsets, labels) == scheme


@pytest.mark.uncompiled
def test_detect_scheme_from_sequences_leaves_the_others_alone() -> None:
    numbers, offsets = np.array([1]), np.array([0, 1])
    assert detect_scheme_columns(numbers, offsets, ["O", "U-A"]) == "bilou"
    assert detect_scheme_columns(numbers, offsets, ["NN", "VB"]) is None


@pytest.mark.uncompiled
def test_make_labels() -> None:
    assert make_labels("bio", ["I-B-C", "O", "B-A"]) == ["O", "B-A", "B-B-C", "I-A", "I-B-C"]
    assert make_labels("bioes", ["U-A"]) == ["O", "B-A", "E-A", "I-A", "S-A"]
    assert make_labels("bilou", []) == ["O"]
    assert make_labels(None, ["VB", "NN", "VB"]) == ["NN", "VB"]


@pytest.mark.uncompiled
def test_errors_name_place_and_fix() -> None:
    offsets = np.array([0, 1])
    with pytest.raises(ConfigurationError, match="'bmewo': choose one of bio, iob1, bilou, bioes"):
        convert_columns(np.array([0]), offsets, ["O"], ["O"], "bio", "bmewo")
    with pytest.raises(ConfigurationError, match="'NN' is not a span label: write it as O or"):
        make_labels("bio", ["NN"])
    with pytest.raises(
        ConfigurationError, match="'L-A' is not a label of the scheme 'bio': its labels are O and B-TYPE"
    ):
        automaton("bio", ["O", "L-A"])
    with pytest.raises(ConfigurationError, match="convert the labels to 'bio'"):
        automaton("iob1", ["O", "I-A"])
    with pytest.raises(ConfigurationError, match="without the label 'L-A'"):
        automaton("bilou", ["O", "B-A", "I-A"])
    with pytest.raises(ConfigurationError, match="without the label 'E-A'"):
        automaton("bioes", ["O", "B-A", "S-A"])
    with pytest.raises(ConfigurationError, match="without the label 'O'"):
        automaton("bio", ["I-A"])
    with pytest.raises(ConfigurationError, match="'U-A' is needed, but not among the target labels: see make_labels"):
        convert_columns(np.array([1]), offsets, ["O", "B-A"], ["O", "B-A"], "bio", "bilou")
    with pytest.raises(ConfigurationError, match="'O' is needed"):
        convert_columns(np.array([0]), offsets, ["O", "B-A"], ["B-A"], "bio", "bio")
    with pytest.raises(ConfigurationError, match="word 1 has label number 2, but there are 2 labels"):
        convert_columns(np.array([1, 2]), np.array([0, 2]), ["O", "B-A"], ["O", "B-A"], "bio", "bio")
    with pytest.raises(ConfigurationError, match="offsets must rise from 0 to the number of words, which is 2"):
        span_marks(np.array([0, 0]), offsets, label_parts(["O"], "bio"))
    with pytest.raises(ConfigurationError, match="unknown loss 'spans': choose hamming or f1"):
        completions(np.array([0]), offsets, automaton("bio", ["O", "B-A"]), "spans")
    with pytest.raises(ConfigurationError, match="these are plain tags: choose loss 'hamming'"):
        completions(np.array([0]), offsets, automaton(None, ["NN"]), "f1")


# --- legal sequences --------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize("scheme", WITH_AUTOMATON)
def test_automaton_and_legal_follow_the_definition(scheme: str) -> None:
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    for length in range(5 if scheme == "bio" else 4):
        allowed = {tuple(labels[a] for a in sequence) for sequence in legal_sequences(machine, length)}
        every = set(itertools.product(labels, repeat=length))
        assert allowed == {sequence for sequence in every if satisfies(list(sequence), scheme)}
        assert allowed == {sequence for sequence in every if legal(sequence, scheme)}


@pytest.mark.uncompiled
def test_legal_in_iob1() -> None:
    for sequence in itertools.product(make_labels("iob1", ["I-A", "I-B"]), repeat=4):
        assert legal(sequence, "iob1") == satisfies(list(sequence), "iob1")


@pytest.mark.uncompiled
@pytest.mark.parametrize("scheme", [*WITH_AUTOMATON, None])
def test_no_dead_ends(scheme: str | None) -> None:
    """At every word of every sentence of up to six, whatever was legal before leaves something legal to do."""
    machine = automaton(scheme, labels_of(scheme, 3) if scheme else ["NN", "VB"])
    for length in range(1, 7):
        reached = {0}
        for i in range(length):
            for q in reached:
                after = machine.next[q][machine.next[q] >= 0]
                assert (machine.can_end[after] if i == length - 1 else after >= 0).any()
            reached = {int(r) for q in reached for r in machine.next[q] if r >= 0}
        assert reached == set(range(len(machine.next)))


@pytest.mark.uncompiled
def test_unconstrained() -> None:
    machine = automaton(None, ["NN", "VB", "IN"])
    assert machine.next.tolist() == [[0, 0, 0]] and machine.can_end.tolist() == [True]
    cost_to_go = completions(np.array([0, 2, 1]), np.array([0, 1, 3]), machine, "hamming")
    assert cost_to_go.tolist() == [[0.0, np.inf]] * 5


# --- conversions ------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    "row",
    [
        {
            "bio": ["B-A", "I-A", "B-A", "O", "B-B", "B-A"],
            "iob1": ["I-A", "I-A", "B-A", "O", "I-B", "I-A"],
            "bilou": ["B-A", "L-A", "U-A", "O", "U-B", "U-A"],
            "bioes": ["B-A", "E-A", "S-A", "O", "S-B", "S-A"],
        },
        {
            "bio": ["O", "B-x-y", "I-x-y", "I-x-y"],
            "iob1": ["O", "I-x-y", "I-x-y", "I-x-y"],
            "bilou": ["O", "B-x-y", "I-x-y", "L-x-y"],
            "bioes": ["O", "B-x-y", "I-x-y", "E-x-y"],
        },
        {scheme: [] for scheme in SCHEMES},
    ],
)
def test_convert_by_hand(row: dict[str, list[str]]) -> None:
    for source, target in itertools.product(SCHEMES, SCHEMES):
        assert convert(row[source], source, target) == row[target]


@pytest.mark.uncompiled
def test_illegal_sequences_are_read_as_conlleval_does() -> None:
    assert convert(["I-A", "I-B", "I-B", "O", "I-B"], "bio", "bio") == ["B-A", "B-B", "I-B", "O", "B-B"]
    assert read_spans(["B-A", "B-A", "L-B", "L-B", "I-B", "U-B", "I-B"], "bilou") == [
        (0, 1, "A"),
        (1, 2, "A"),
        (2, 3, "B"),
        (3, 4, "B"),
        (4, 5, "B"),
        (5, 6, "B"),
        (6, 7, "B"),
    ]


@pytest.mark.uncompiled
@pytest.mark.parametrize("scheme", WITH_AUTOMATON)
def test_conversions_lose_nothing(scheme: str) -> None:
    labels = labels_of(scheme, 2)
    for sequence in legal_sequences(automaton(scheme, labels), 4):
        written = [labels[a] for a in sequence]
        assert set(read_spans(written, scheme)) == spans_of_legal(written)
        for target in SCHEMES:
            there = convert(written, scheme, target)
            assert satisfies(there, target)
            assert convert(there, target, scheme) == written


@pytest.mark.uncompiled
@given(st.data(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_convert_columns_equals_its_twin(data: st.DataObject, source: str, target: str) -> None:
    """On any sequence, legal or not, with empty sentences."""
    labels, written = labels_of(source, 3), labels_of(target, 3)[::-1]
    sentences = data.draw(st.lists(st.lists(st.sampled_from(range(len(labels))), max_size=8), max_size=5))
    numbers = np.array([a for sentence in sentences for a in sentence], np.int64)
    offsets = np.cumsum([0, *map(len, sentences)])
    made = convert_columns(numbers, offsets, labels, written, source, target)
    assert made.dtype == np.int64
    for sentence, start in zip(sentences, offsets):
        expected = convert([labels[a] for a in sentence], source, target)
        assert [written[a] for a in made[start : start + len(sentence)]] == expected


@pytest.mark.uncompiled
def test_nothing_but_outside() -> None:
    numbers, offsets = np.zeros(2, np.int64), np.array([0, 2])
    assert convert_columns(numbers, offsets, ["O"], ["B-A", "O"], "bio", "bilou").tolist() == [1, 1]
