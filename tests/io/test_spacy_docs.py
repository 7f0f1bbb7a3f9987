"""Sentences to spaCy's Doc and back."""

from __future__ import annotations

import pytest

import lols
from lols.io import Sentence

spacy = pytest.importorskip("spacy")

COLUMNS = {
    "form": ["A", "dog", "barks"],
    "lemma": ["a", "dog", "bark"],
    "upos": ["DET", "NOUN", "VERB"],
    "xpos": ["DT", "NN", "VBZ"],
    "feats": ["_", "Number=Sing", "_"],
    "head": ["2", "3", "0"],
    "deprel": ["det", "nsubj", "root"],
    "misc": ["_", "_", "SpaceAfter=No"],
}


def test_there_and_back() -> None:
    one, two = (
        Sentence(COLUMNS),
        Sentence({name: values[1:] for name, values in COLUMNS.items()} | {"head": ["2", "0"]}),
    )
    doc = lols.io.to_spacy([one, two], spacy.blank("en").vocab)
    assert doc.text == "A dog barksdog barks" and [token.dep_ for token in doc][:3] == ["det", "nsubj", "ROOT"]
    assert [token.head.text for token in doc] == ["dog", "barks", "barks", "barks", "barks"]
    assert len(list(doc.sents)) == 2 and doc[1].pos_ == "NOUN" and str(doc[1].morph) == "Number=Sing"
    first, second = lols.io.from_spacy(doc)
    assert first.columns == COLUMNS and first.tree == one.tree and second.tree == two.tree


def test_words_alone() -> None:
    doc = spacy.blank("en")("It barks. Loudly!")
    (only,) = lols.io.from_spacy(doc)
    assert only.words == ["It", "barks", ".", "Loudly", "!"] and "head" not in only.columns
    made = lols.io.to_spacy([Sentence({"form": ["a", "b"]}), Sentence({"form": ["c"]})], doc.vocab)
    assert [len(span) for span in made.sents] == [2, 1] and not made.has_annotation("DEP")
