"""Texts cut into sentences and words: no character is lost, and what is one word stays whole."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lols
from lols.errors import LolsError
from lols.io.opening import read_text

PIECES = [
    *"aZéß1 .,!?…()\"'-/:@#&_*\n\r\t",
    "\u0301",
    "\u200d",
    "\u00a0",
    "\u2029",
    "\ufe0f",
    "\U0001f44d",
    "\U0001f1e9",
    "。",
]
WORDS = [
    "Mr.",
    "No.",
    "e.g.",
    "U.S.",
    "10:30",
    "http://a.b/(c)",
    "www.",
    "x@y.org",
    ":-)",
    "...",
    "\n\n",
    " I ",
    "हि",
    "\udc80",
]


@given(st.text() | st.lists(st.sampled_from([*PIECES, *WORDS])).map("".join))
@example("(a b.) C d.")
@example('He said "Stop!" Then left.')
@example("\u0301 a\u0301\u200d b\u200d\u200d c")
def test_words_and_the_spaces_between_them_give_the_text_back(text: str) -> None:
    sentences = lols.io.split_text(text)
    assert all(sentences)
    at = 0
    for word in (word for sentence in sentences for word in sentence):
        begin = text.index(word, at)
        assert word and not text[at:begin].strip() and not any(c.isspace() for c in word)
        at = begin + len(word)
    assert not text[at:].strip()


@pytest.mark.parametrize(
    "word",
    [
        *("https://example.org/a_(b)?c=1&d=2#e", "http://localhost:8080/x", "www.example.org", "example.org/path/"),
        *("first.last+tag@mail.example.co.uk", "10:30", "10:30am", "1,000.50", "1.000,50", "3/4", "12/31/2004", "..."),
        *("…", "!!!", "?!", "--", ":-)", "Mr.", "e.g.", "U.S.", "a.m.", "Ph.D.", "it's", "l'été", "well-known"),
        *("AT&T", "#topic", "@name", "file.txt", "3.5", "हिन्दी", "می‌خواهم", "e\u0301te\u0301", "👩‍👩‍👧", "👍🏽", "🇩🇪"),
    ],
)
def test_what_is_one_word_is_not_cut(word: str) -> None:
    for after in (["Smith"], ["(", "or", "1", ")"]):
        found = lols.io.split_text(f"see {word} {' '.join(after).replace('( ', '(').replace(' )', ')')}")
        assert [w for sentence in found for w in sentence] == ["see", word, *after]


def test_sentences() -> None:
    cut = lols.io.split_text
    assert cut("(a b.) C d.") == [["(", "a", "b", ".", ")"], ["C", "d", "."]]
    assert cut("Mr. and Mrs. Smith?  It's 3.5 km.\n\nno end") == [
        ["Mr.", "and", "Mrs.", "Smith", "?"],
        ["It's", "3.5", "km", "."],
        ["no", "end"],
    ]
    assert cut('He said "Stop!" Then J. K. Rowling left. No. 5 is mine? No. (Yes.)') == [
        ["He", "said", '"', "Stop", "!", '"'],
        ["Then", "J.", "K.", "Rowling", "left", "."],
        ["No.", "5", "is", "mine", "?"],
        ["No", "."],
        ["(", "Yes", ".", ")"],
    ]
    assert [len(s) for s in cut("Acme Inc. Was it? On Jan. 5 at 9 a.m. 20 came. 2. The next. e.g. this")] == [
        2,
        3,
        9,
        7,
    ]
    assert cut("你好。“我是！”好") == [["你好", "。"], ["“", "我是", "！", "”"], ["好"]]
    assert cut("Fin ! L'été. ça va. Élan") == [["Fin", "!"], ["L'été", ".", "ça", "va", "."], ["Élan"]]
    assert cut("one\r\ntwo\r\n\r\nthree\r\rfour\u2029five") == [["one", "two"], ["three"], ["four"], ["five"]]
    assert cut(" \n ") == cut("") == []


@pytest.mark.parametrize("text", [None, b"a", ["a"], 5])
def test_a_text_is_a_string(text: object) -> None:
    with pytest.raises(LolsError, match=f"a text is a string; this is {type(text).__name__}"):
        lols.io.split_text(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "piece", ["a.B.", "(", "www.", "a@", "+-.", "http://(", ". (", "\u0301", "\u200da", "(a", "1,"]
)
def test_long_texts_without_spaces_take_no_long_time(piece: str) -> None:
    begin = time.process_time()
    lols.io.split_text(piece * (100_000 // len(piece)))
    assert time.process_time() - begin < 5  # 0.1 to 0.3


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_a_treebank_from_its_text() -> None:
    """F1 of words in the texts of EWT's sentences; a multi-word token is one word."""
    right = ours = theirs = 0
    blocks = read_text(Path(os.environ["LOLS_DATA"], "ewt-dev.conllu.gz")).strip().split("\n\n")
    for lines in (block.split("\n") for block in blocks):
        words, until = [], 0
        for cells in (line.split("\t") for line in lines if not line.startswith("#")):
            first, *last = cells[0].split("-")
            if "." not in first and int(first) > until:
                words.append(cells[1])
                until = int(last[0]) if last else until
        text = next(line.removeprefix("# text = ") for line in lines if line.startswith("# text = "))
        true, found = _spans(words), _spans([w for sentence in lols.io.split_text(text) for w in sentence])
        right, ours, theirs = right + len(true & found), ours + len(found), theirs + len(true)
    assert 2 * right / (ours + theirs) > 0.985  # 0.944 when words were cut at every mark


def _spans(words: list[str]) -> set[tuple[int, int]]:
    """Where words begin and end among the characters of a text without spaces."""
    spans, at = set(), 0
    for word in words:
        size = len("".join(word.split()))
        spans.add((at, at + size))
        at += size
    return spans
