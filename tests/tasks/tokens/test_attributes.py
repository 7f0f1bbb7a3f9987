"""What features look at in a word: the kernel against plain Python, character by character, in any script."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lols.io.strings import texts_of
from lols.tasks.tokens import attributes
from lols.tasks.tokens.attributes import (
    ATTRIBUTES,
    NOTHING,
    OUTSIDE,
    Attribute,
    attribute,
    attribute_text,
    attribute_values,
    hash_text,
)

NAMES = ["word", "lower", "prefix1", "prefix3", "prefix12", "suffix1", "suffix2", "suffix5", "shape", "class"]
NAMES += ["length", "digits"]
WANTED = [attribute(name) for name in NAMES]
# Dotted and dotless i, title case, sharp s, letters without case, marks, digits of other scripts, dashes, other planes.
STRANGE = "İıIiǅǆßẞﬁ文字א\u0301\u0308\u200d٣५𝟗²Ⅷ-–—‐.,'𝐀𐐀𐐨😀\ufffd\u00ad\u00a0Ωώς"
WORD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text(st.sampled_from(STRANGE), max_size=8),
    st.text(st.sampled_from("aBc1-."), max_size=20),
)


def text(name: str, string: str) -> str | None:
    which = attribute(name)
    assert which is not None
    return attribute_text(which, string)


@pytest.mark.uncompiled
@settings(max_examples=150)
@given(st.lists(WORD, max_size=8))
@example(["", "a", STRANGE, "\U0010ffff", "\0"])
def test_values_are_hashes_of_the_texts(words: list[str]) -> None:
    values = attribute_values(texts_of(words), WANTED)
    assert values.shape == (len(NAMES), len(words) + 1) and values.dtype == np.int64
    for a, which in enumerate(WANTED):
        for t, word in enumerate(words):
            said = attribute_text(which, word)
            assert values[a, t] == (NOTHING if said is None else hash_text(said)), (NAMES[a], word, said)
    assert (values[:, -1] == OUTSIDE).all()


def test_characters_of_all_planes_have_their_class_and_case() -> None:
    words = [chr(p) for p in range(1, 0x110000, 13) if not 0xD800 <= p < 0xE000]
    names = ["lower", "shape", "class", "digits"]
    values = attribute_values(texts_of(words), [attribute(n) for n in names])
    for a, name in enumerate(names):
        said = {w: str(text(name, w)) for w in words}
        hashes = {s: hash_text(s) for s in set(said.values())}
        assert values[a, :-1].tolist() == [hashes[said[w]] for w in words]


def test_more_strange_characters_than_are_learned_at_once() -> None:
    words = [chr(p) + chr(p + 1) for p in range(0xAC00, 0xAC00 + 11_000, 2)]
    values = attribute_values(texts_of(words), [attribute("word"), attribute("shape")])
    assert values[0, :-1].tolist() == [hash_text(w) for w in words]
    assert set(values[1, :-1].tolist()) == {hash_text("x")}


@pytest.mark.uncompiled
def test_too_short_for_an_affix_is_nothing() -> None:
    values = attribute_values(texts_of(["", "a", "ab", "abc", "äöü", "😀😀"]), [Attribute(2, 3), Attribute(3, 3)])
    assert (values[:, [0, 1, 2, 5]] == NOTHING).all()
    assert values[:, [3, 4]].tolist() == [[hash_text("abc"), hash_text("äöü")]] * 2


@pytest.mark.uncompiled
def test_no_strings_and_no_attributes() -> None:
    assert attribute_values(texts_of([]), WANTED).tolist() == [[OUTSIDE]] * len(WANTED)
    assert attribute_values(texts_of(["a"]), []).shape == (0, 2)


@pytest.mark.uncompiled
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(1, 9))
def test_affixes_are_the_first_and_last_characters(word: str, size: int) -> None:
    assert attribute_text(Attribute(2, size), word) == (word[:size] if len(word) >= size else None)
    assert attribute_text(Attribute(3, size), word) == (word[len(word) - size :] if len(word) >= size else None)


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("name", "word", "wanted"),
    [
        ("word", "İstanbul", "İstanbul"),
        ("lower", "İSTANBUL", "İstanbul"),  # its lower case has two characters, so it stays
        ("lower", "ÄẞΣ", "äßσ"),
        ("shape", "McDonald's", "XxXx'x"),
        ("shape", "12-year", "d-x"),
        ("shape", "U.S.", "X.X."),
        ("shape", "ǅungla", "Xx"),  # title case
        ("shape", "e\u0301le\u0300ve", "x"),  # marks go with their letters
        ("shape", "٣५9", "d"),
        ("shape", "文字", "x"),
        ("shape", "...", "."),
        ("shape", "dd", "x"),
        ("class", "USA", "ACc"),
        ("class", "A", "AC"),
        ("class", "Usa", "C"),
        ("class", "eBay", "c"),
        ("class", "usa", ""),
        ("class", "B2-B.", "ACcd-."),
        ("class", "2", "d"),
        ("class", "a–b", "-"),
        ("class", "", ""),
        ("length", "", "0"),
        ("length", "𝐀𐐀", "2"),
        ("length", "a" * 14, "14"),
        ("length", "a" * 15, "15"),
        ("length", "a" * 99, "15"),
        ("digits", "B-52x", "b-00x"),
        ("digits", "५Ⅷ²", "0ⅷ²"),  # Roman eight and a superscript are numbers, but no digits
    ],
)
def test_what_is_said_of_words(name: str, word: str, wanted: str) -> None:
    assert text(name, word) == wanted


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    "name",
    ["", "Word", "words", "tense", "prefix", "suffix", "prefix0", "suffix0", "word1", "lower2", "shape3", "suffix-1",
     "suffix 3", "3", "prefix3.5", "_word"],
)  # fmt: skip
def test_other_names_are_no_attributes(name: str) -> None:
    assert attribute(name) is None


@pytest.mark.uncompiled
def test_every_attribute_that_is_listed_has_its_name() -> None:
    kinds = {attribute(name.replace("N", "3")) for name in ATTRIBUTES}
    assert None not in kinds and len(kinds) == len(ATTRIBUTES)


@pytest.mark.uncompiled
@given(st.lists(st.text(max_size=6), max_size=30, unique=True))
def test_different_texts_have_different_values_which_mean_something(texts: list[str]) -> None:
    values = [hash_text(t) for t in texts]
    assert len(set(values)) == len(values) and not {NOTHING, OUTSIDE} & set(values)


@pytest.mark.uncompiled
def test_a_hash_that_would_mean_nothing_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (NOTHING, OUTSIDE):
        monkeypatch.setattr(attributes, "mix", lambda a, b, value=value: value)
        assert hash_text("a") == 2


def test_the_tables_agree_with_unicode_on_upper_case() -> None:
    for point in range(0x20, 0x3000):
        upper = unicodedata.category(chr(point)) in ("Lu", "Lt")
        assert (text("class", chr(point)) == "AC") == upper
