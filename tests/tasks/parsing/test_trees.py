"""Heads read from files, cycles and roots, against obvious versions of the same."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from lols.tasks.parsing.trees import check_heads, check_trees, read_heads, require_trees, single_root


def columns(sentences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([h for sentence in sentences for h in sentence], np.int64), np.cumsum([0, *map(len, sentences)])


@st.composite
def any_heads(draw: st.DrawFn) -> list[list[int]]:
    """Sentences, some without words, with heads that need not be trees."""
    lengths = draw(st.lists(st.integers(0, 7), max_size=4))
    return [draw(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n)) for n in lengths]


def on_cycle(heads: list[int], word: int) -> bool:
    """Whether climbing leads back to the word."""
    at = word
    for _ in heads:
        at = heads[at]
        if at < 0:
            return False
        if at == word:
            return True
    return False


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(any_heads())
def test_heads_come_back_from_a_file(sentences: list[list[int]]) -> None:
    written = [[-1 if head == word else head for word, head in enumerate(heads)] for heads in sentences if heads]
    text = "\n".join("".join(f"w {head + 1}\n" for head in heads) for heads in [*written, [-1]])
    found = conll.parse(text.encode(), ["1", "2"])
    heads, offsets = columns([*written, [-1]])
    made = read_heads(found, 1)
    assert made.dtype == np.int64 and made.tolist() == heads.tolist()
    assert found.offsets.tolist() == offsets.tolist()


@pytest.mark.uncompiled
def test_multiword_tokens_and_empty_nodes_have_no_heads() -> None:
    lines = ["1-2\tdon't", "1\tdo", "2\tn't", "2.1\tgo", "3\tgo"]
    heads = ["_", "03", "3", "_", "0"]
    text = "".join(f"{line}\t_\t_\t_\t_\t{head}\tdep\t_\t_\n" for line, head in zip(lines, heads, strict=True))
    assert read_heads(conll.parse(text.encode(), ["head"], format="conllu"), 0).tolist() == [2, 2, -1]


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "_",
            "f.txt, line 5: the head '_' is not a number; give the number of a word of the sentence, or 0 for the root",
        ),
        ("2a", "f.txt, line 5: the head '2a' is not a number; give"),
        ("-", "f.txt, line 5: the head '-' is not a number; give"),
        ("+1", "f.txt, line 5: the head '+1' is not a number; give"),
        ("é", "f.txt, line 5: the head 'é' is not a number; give"),
        ("", "f.txt, line 5: there is no head; give the number"),
        ("-1", "f.txt, line 5: the head '-1' is not a word of sentence 2 (of length 3); give a number from 0"),
        ("4", "f.txt, line 5: the head '4' is not a word of sentence 2 (of length 3); give a number"),
        ("18446744073709551617", "f.txt, line 5: the head '18446744073709551617' is not a word of sentence 2"),
        ("2", "f.txt, line 5: word 2 of sentence 2 is its own head; give another word, or 0 for the root"),
    ],
)
def test_wrong_heads_are_named(head: str, message: str) -> None:
    text = f"a\t0\n\n\nb\t0\nc\t{head}\nd\t2\n"
    found = conll.parse(text.encode(), ["2"], path="f.txt", format="tsv", header=False)
    with pytest.raises(LolsError, match=f"^{re.escape(message)}") as caught:
        read_heads(found, 0)
    assert "\n" not in str(caught.value)


@pytest.mark.uncompiled
def test_a_column_that_is_not_there() -> None:
    found = conll.parse(b"a b\n", ["1", "3"], optional=["3"], path="f.txt")
    with pytest.raises(LolsError, match=r"^f.txt, line 1: there is no head; give the number"):
        read_heads(found, 1)


@pytest.mark.uncompiled
def test_cycles_are_named() -> None:
    found = conll.parse(b"a 0\nb 1\n\nc 0\nd 3\ne 4\nf 2\ng 2\n", ["2"], path="f.txt")
    heads = read_heads(found, 0)
    with pytest.raises(LolsError) as caught:
        require_trees(heads, found)
    place = "f.txt, line 5: word 2 of sentence 2 is on a cycle; "
    assert str(caught.value) == place + "give a word of it a head outside of it, or 0 for the root"
    heads[3] = -1
    require_trees(heads, found)


# --- arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(any_heads())
def test_check_trees_equals_its_twin(sentences: list[list[int]]) -> None:
    heads, offsets = columns(sentences)
    found = check_trees(heads, offsets)
    assert found.roots.tolist() == [sentence.count(-1) for sentence in sentences]
    expected = [next((w for w in range(len(s)) if on_cycle(s, w)), -1) for s in sentences]
    assert found.cycles.tolist() == expected


@pytest.mark.uncompiled
@given(any_heads())
def test_single_root_equals_its_twin(sentences: list[list[int]]) -> None:
    heads, offsets = columns(sentences)
    before = heads.copy()
    made, changed = single_root(heads, offsets)
    expected = []
    for sentence in sentences:
        root = sentence.index(-1) if -1 in sentence else -1
        expected.append([root if head < 0 and word != root else head for word, head in enumerate(sentence)])
    assert made.tolist() == [head for sentence in expected for head in sentence]
    assert changed.tolist() == [k for k, sentence in enumerate(sentences) if sentence.count(-1) > 1]
    assert heads.tolist() == before.tolist()
    assert (check_trees(made, offsets).cycles >= 0).tolist() == (check_trees(heads, offsets).cycles >= 0).tolist()


def test_long_sentences_take_linear_time() -> None:
    length = 200_000
    chain = np.arange(length) - 1
    offsets = np.array([0, length])
    for heads in (chain, np.append(chain[2:], [length - 1, -1])):
        assert check_trees(heads, offsets).cycles.tolist() == [-1]
    ring = np.roll(np.arange(length), 1)
    assert check_trees(ring, offsets).cycles.tolist() == [0]
    assert check_trees(ring, offsets).roots.tolist() == [0]


@pytest.mark.uncompiled
def test_errors_name_place_and_fix() -> None:
    heads = np.array([1, -1, 0, 2])
    with pytest.raises(ConfigurationError, match="offsets must rise from 0 to the number of words, which is 4"):
        check_trees(heads, np.array([0, 3]))
    with pytest.raises(ConfigurationError, match="offsets must rise"):
        single_root(heads, np.array([0, 5, 4]))
    with pytest.raises(ConfigurationError, match="word 1 of sentence 1 has head 2: give one from 0 to 1, or -1 for a"):
        check_trees(heads, np.array([0, 2, 4]))
    with pytest.raises(ConfigurationError, match="word 0 of sentence 2 has head -2: give one from 0 to 0"):
        check_heads(np.array([-1, -2]), np.array([0, 1, 1, 2]))
    with pytest.raises(ConfigurationError, match="4 heads but 3 labels: give both for every word"):
        check_heads(heads, np.array([0, 4]), labels=np.zeros(3))


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
@pytest.mark.parametrize("name", ["ewt-dev.conllu.gz", "craft-dev.conllu.gz", "wsj-test.conll.gz"])
def test_real_files_are_trees(name: str) -> None:
    found = conll.read(Path(os.environ["LOLS_DATA"], name), ["head"])
    heads = read_heads(found, 0)
    require_trees(heads, found)
    assert (check_trees(heads, found.offsets).roots == 1).all()
    assert len(single_root(heads, found.offsets)[1]) == 0
    texts = [found.buffer[b:e].tobytes() for b, e in zip(found.begin[0], found.end[0])]
    assert (heads + 1).tolist() == [int(text) for text in texts]
