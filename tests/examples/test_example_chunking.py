"""The example of chunks: short, true to the contract, never an illegal tag, learns on made and on real sentences."""

from __future__ import annotations

import doctest
import json
import os

import chunking
import pytest
from helpers import phrases

from lols.contract.checks import check_space
from tests.examples.example_checks import check_length, check_page, run
from tests.tasks.tagging.span_twin import spans_of_legal


def legal(tags: list[str]) -> bool:
    """Whether each I continues a chunk of its own kind."""
    return all(tag[0] != "I" or last[1:] == tag[1:] for last, tag in zip(["O", *tags], tags))


def slow_f1(gold: list[list[str]], found: list[list[str]]) -> float:
    chunks = [[(k, *span) for k, tags in enumerate(side) for span in spans_of_legal(tags)] for side in (gold, found)]
    return 2 * len(set(chunks[0]) & set(chunks[1])) / (len(chunks[0]) + len(chunks[1]))


@pytest.fixture(scope="module")
def learned():
    """Sentences that were not learned from, and the chunks found in them."""
    sentences = phrases.generate(90, 1)
    return sentences[60:], chunking.ours(sentences[:60], sentences[60:], 0, passes=2, roll_out="none", compiled=False)


def test_the_task_is_short_and_the_page_shows_it():
    check_length("chunking", "Chunks")
    check_page("chunking", "Chunks")


def test_the_contract_is_kept():
    assert check_space(chunking.Chunks, chunking.prepared(phrases.generate(5, 1))) == []


def test_tags_are_numbered_so_that_an_inside_follows_its_beginning():
    assert len(chunking.TAGS) == 23
    for last, before in enumerate(chunking.TAGS):
        for a, tag in enumerate(chunking.TAGS):
            assert chunking.may_follow(last, a) == legal([before.replace("I-", "B-"), tag])


def test_the_looks_beside_the_last_tag_are_the_ones_named():
    sentence = {"words": ["a", "dog", "barks"], "pos": ["DT", "NN", "VBZ"], "tags": ["B-NP", "I-NP", "B-VP"]}
    rows = chunking.looks(sentence)
    assert len({len(set(row)) for row in rows}) == 1
    assert [rows[1][k] for k in chunking.WITH_TAG] == ["w0dog", "10NN", "20NN VBZ", "3-1DT NN VBZ"]


def test_made_sentences_are_legal():
    assert doctest.testmod(phrases).failed == 0
    assert all(legal(sentence["tags"]) for sentence in phrases.generate(50, 2))


def test_it_learns_and_only_says_what_is_legal(learned):
    test, found = learned
    assert all(map(legal, found))
    scores = chunking.scores(test, found)
    assert scores["f1"] == pytest.approx(slow_f1([sentence["tags"] for sentence in test], found))
    assert scores["f1"] > 0.8


def test_the_command_prints_a_table_or_json(capsys, monkeypatch):
    small = ("--generated", "--sentences", "12", "--seeds", "1", "--uncompiled")
    monkeypatch.setattr(chunking, "PASSES", 1)
    monkeypatch.setattr(chunking, "builtin", lambda train, test, seed: [sentence["tags"] for sentence in test])
    printed = run(chunking.main, capsys, *small)
    assert printed.startswith("generated sentences")
    assert "this task, LOLS" in printed
    monkeypatch.setattr(chunking, "compare", lambda *_: {"lols.Tagger": {"f1": [1.0]}})
    assert json.loads(run(chunking.main, capsys, *small, "--json"))["systems"] == {"lols.Tagger": {"f1": [1.0]}}


def test_the_library_s_own_tagger_gives_tags_for_the_same_sentences(monkeypatch):
    fitted = []
    monkeypatch.setattr(chunking.lols.Tagger, "fit", lambda self, rows, tags: fitted.append((rows, tags)) or self)
    monkeypatch.setattr(chunking.lols.Tagger, "predict", lambda self, rows: [["O"] * len(row) for row in rows])
    sentences = phrases.generate(2, 1)
    found = chunking.builtin(sentences[:1], sentences[1:], 0)
    assert list(map(len, found)) == [len(sentences[1]["words"])]
    assert fitted[0][0][0][0] == {"word": sentences[0]["words"][0], "pos": sentences[0]["pos"][0]}


def test_bad_options_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        chunking.main(["--seeds", "0"])
    assert "at least 1" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_a_part_of_the_real_sentences_reaches_its_floor():
    train, test = map(chunking.read, chunking.data_files())
    assert (len(train), len(test)) == (8936, 2012)
    found = chunking.ours(train[:3000], test, 0, passes=2)
    assert all(map(legal, found))
    assert chunking.scores(test, found)["f1"] > 0.9
