"""Sentences of files as Python objects: read, written, changed, and as tables."""

from __future__ import annotations

import copy
import gzip
import pickle
from pathlib import Path

import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lols
from lols.errors import LolsError
from lols.io import Sentence

TEXT = """# sent_id = 1
# text = Du bist
1-2\tDubist\t_\t_\t_\t_\t_\t_\t_\t_
1\tDu\tdu\tPRON\tPPER\tCase=Nom\t2\tnsubj\t_\tSpaceAfter=No
2\tbist\tsein\tAUX\tVAFIN\t_\t0\troot\t_\t_
2.1\tleer\t_\t_\t_\t_\t_\t_\t_\t_

1\tGeh\t_\tVERB\t_\t_\t0\troot\t_\t_

"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_is_read_and_written_back_as_it_was(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT.replace("\n", ending).encode())
    first, second = lols.io.read_conllu(path)
    assert first.words == ["Du", "bist"] and first.comments == ["# sent_id = 1", "# text = Du bist"]
    assert first == [
        {"word": "Du", "upos": "PRON", "xpos": "PPER", "feats": "Case=Nom"},
        {"word": "bist", "upos": "AUX", "xpos": "VAFIN", "feats": "_"},
    ]
    assert first.tree == [(2, "nsubj"), (0, "root")] and first.tags("lemma") == ["du", "sein"]
    assert second == [{"word": "Geh", "upos": "VERB"}]
    lols.io.write_conllu(path, [first, second])
    assert path.read_text() == TEXT
    for same in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert same == first and same.text() == first.text()


def test_compressed_files_and_files_without_a_last_blank_line(tmp_path: Path) -> None:
    (tmp_path / "a.conllu.gz").write_bytes(gzip.compress(TEXT.rstrip("\n").encode()))
    assert [s.words for s in lols.io.read_conllu(tmp_path / "a.conllu.gz")] == [["Du", "bist"], ["Geh"]]


@given(st.lists(st.lists(st.text("aäé→ b", min_size=1).filter(lambda w: w.strip() == w), min_size=1), min_size=1))
def test_any_words_come_back(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("any") / "a.conllu"
    lols.io.write_conllu(path, [Sentence({"form": words}) for words in sentences])
    assert [s.words for s in lols.io.read_conllu(path)] == sentences


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1\ta\n", "a.conllu, line 1: 2 columns, but CoNLL-U has 10"),
        ("\n\nx" + "\ta" * 9, "a.conllu, line 3: the id 'x' is not a CoNLL-U id"),
        ("# only\n\n", "a.conllu, line 1: a sentence without any word"),
        ("1\ta" + "\t_" * 8 + "\n2\t" + "\t_" * 8, "a.conllu, line 2: the word is empty; give its form, or _ if"),
    ],
)
def test_mistakes_in_files(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.conllu").write_text(text)
    with pytest.raises(LolsError, match=says):
        lols.io.read_conllu(tmp_path / "a.conllu")


def test_mistakes_in_python(tmp_path: Path) -> None:
    with pytest.raises(LolsError, match="have different lengths"):
        Sentence({"form": ["a"], "upos": []})
    with pytest.raises(LolsError, match="no column 'form' of words"):
        Sentence({"word": ["a"]})
    with pytest.raises(LolsError, match="has no tree in its columns"):
        _ = Sentence({"form": ["a"]}).tree
    with pytest.raises(LolsError, match="there is no column 'upos'"):
        Sentence({"form": ["a"]}).tags("upos")
    for wrong in (None, "", 5, float("nan"), ["b"], b"b"):
        with pytest.raises(LolsError, match=r"word 1 of a sentence: its form is .*; give a string with"):
            Sentence({"form": ["a", wrong]})  # type: ignore[list-item]
    for wrong in (None, float("nan"), ["b"]):
        with pytest.raises(LolsError, match=r"word 0 of a sentence: its upos is .*; give a string"):
            Sentence({"form": ["a"], "upos": [wrong]})  # type: ignore[list-item]
    assert Sentence({"form": ["a"], "head": [0], "deprel": ["root"]}).tree == [(0, "root")]  # type: ignore[list-item]
    with pytest.raises(LolsError, match="has a tab or a line end in it"):
        lols.io.write_conllu(tmp_path / "a", [Sentence({"form": ["a\tb"]})])
    assert not (tmp_path / "a").exists()


def test_columns_are_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The DT B-NP\ncat NN I-NP\n\nIt PRP B-NP\n")
    made = lols.io.read_columns(path)
    assert made[0][1] == {"word": "cat", "column2": "NN", "column3": "I-NP"}
    lols.io.write_columns(path, made, ["form", "column3"], separator=" ")
    assert path.read_text() == "The B-NP\ncat I-NP\n\nIt B-NP\n\n"
    path.write_text("a b\nc\n")
    with pytest.raises(LolsError, match=r"a.txt, line 2: 1 columns, not 2"):
        lols.io.read_columns(path)
    path.write_text("10\u00a0000\tNUM\n \u3000\t SYM \n")  # spaces of other kinds are parts of words
    assert [s.words for s in lols.io.read_columns(path)] == [["10\u00a0000", "\u3000"]]
    path.write_text("a;b\n;c\n")
    with pytest.raises(LolsError, match=r"a.txt, line 2: the word is empty; give its form, or leave the line out"):
        lols.io.read_columns(path, separator=";")


def test_a_changed_sentence_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(TEXT)
    first, _ = lols.io.read_conllu(tmp_path / "a.conllu")
    other = first.changed(tree=[(0, "root"), (1, "dep")], upos=["X", "Y"])
    assert other.tree == [(0, "root"), (1, "dep")] and other.comments == first.comments and first[0]["upos"] == "PRON"
    assert other.text().count("\n") == first.text().count("\n")


@pytest.mark.parametrize("make", [lols.io.to_pandas, lols.io.to_polars])
def test_frames_and_back(tmp_path: Path, make: object) -> None:
    (tmp_path / "a.conllu").write_text(TEXT)
    sentences = lols.io.read_conllu(tmp_path / "a.conllu")
    frame = make(sentences)  # type: ignore[operator]
    assert isinstance(frame, pandas.DataFrame | polars.DataFrame) and list(frame["sentence"]) == [1, 1, 2]
    again = lols.io.from_frame(frame)
    assert again == sentences and [s.tree for s in again] == [s.tree for s in sentences]
    with pytest.raises(LolsError, match="the frame has no column 'text'"):
        lols.io.from_frame(frame, word="text")


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, pandas.NaT])
def test_cells_of_frames_that_are_empty(missing: object) -> None:
    frame = pandas.DataFrame({"sentence": [1, 1], "form": ["a", "b"], "upos": ["X", missing]}, dtype=object)
    assert [s.tags("upos") for s in lols.io.from_frame(frame)] == [["X", "_"]]
    for column in ("form", "sentence"):
        wrong = frame.copy()
        wrong.loc[1, column] = missing
        with pytest.raises(LolsError, match=f"row 1 of the frame: its {column} is missing; fill it in"):
            lols.io.from_frame(wrong)
    with pytest.raises(LolsError, match="a data frame has columns; this is None"):
        lols.io.from_frame(None)


def test_what_notebooks_show_is_escaped() -> None:
    shown = Sentence({"form": ["<script>"], "upos": ["&"]})._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown and "&amp;" in shown
