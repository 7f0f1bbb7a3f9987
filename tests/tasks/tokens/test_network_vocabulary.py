"""What a network knows of strings: words, affixes and shapes; in files; grown by further sentences."""

from __future__ import annotations

from lols.tasks.tokens.corpus import corpus_of
from lols.tasks.tokens.vocabulary import ASPECTS, FIRST, LONGEST, NOTHING, UNKNOWN, NetworkVocabulary

SENTENCES = [["Walking", "talking", "TALKING"], ["walked", "Is", "is", "42"]]


def test_affixes_and_shapes_that_were_seen_twice_have_numbers() -> None:
    known = NetworkVocabulary.of(corpus_of(SENTENCES))
    assert known.aspects == {
        "prefix3": ["wal", "tal"],
        "suffix2": ["ng", "is"],
        "suffix3": ["ing"],
        "shape": ["Xx", "x"],
    }
    first = 2  # after the form and the word
    rows = known.rows(corpus_of([["Wales", "stalking", "I", "on"]]))[:, first : first + len(ASPECTS)]
    assert rows.tolist() == [
        [FIRST, UNKNOWN, UNKNOWN, FIRST],
        [UNKNOWN, FIRST, FIRST, FIRST + 1],
        [NOTHING, NOTHING, NOTHING, UNKNOWN],
        [NOTHING, UNKNOWN, NOTHING, FIRST + 1],
    ]
    assert known.sizes()["given"] == [FIRST + len(values) for values in known.aspects.values()]
    assert known.rows(corpus_of(SENTENCES)).shape[1] == known.width == 2 + len(ASPECTS) + LONGEST


def test_a_vocabulary_is_read_as_it_was_written() -> None:
    corpus = corpus_of([[{"word": w, "upos": "X"} for w in sentence] for sentence in SENTENCES])
    known = NetworkVocabulary.of(corpus, ["upos"])
    written = known.tensors()
    assert NetworkVocabulary.from_tensors(written, ["upos"]) == known
    without = {name: array for name, array in written.items() if ".aspect." not in name}
    older = NetworkVocabulary.from_tensors(without, ["upos"])  # of a model that knew no affixes
    assert older.aspects == {} and older.words == known.words and older.grown(corpus).aspects == {}


def test_what_is_known_keeps_its_number_when_a_vocabulary_grows() -> None:
    known = NetworkVocabulary.of(corpus_of(SENTENCES))
    grown = known.grown(corpus_of([["Zounds", "sounds", "zounds", "rounds"]]))
    for name, values in known.aspects.items():
        assert grown.aspects[name][: len(values)] == values
    assert grown.aspects["suffix3"] == ["ing", "nds"] and grown.aspects["prefix3"][2:] == ["zou"]
