"""Token-per-line files: reading, cutting and writing, against an obvious parser and on real data."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.io import conll, conll_tokens
from tests.io.conll_twin import files, line_in, ten, texts, twin, twin_or_line


@pytest.mark.uncompiled
@settings(max_examples=120)
@given(files(), st.sampled_from([1, 2, 7, 8192]))
def test_parse_is_its_twin(file: tuple[bytes, str], window: int) -> None:
    data, format = file
    wanted, line = twin_or_line(data, format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conll_tokens, "WINDOW", window)
        if wanted is None:
            with pytest.raises(LolsError) as caught:
                conll.parse(data, ["1"], format=format)
            assert line_in(str(caught.value)) == line
            return
        width = len(wanted[0][0][1])
        found = conll.parse(data, [*range(1, width + 1), "last"], format=format, first_line=1)
    assert found.offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    tokens = [token for sentence in wanted for token in sentence]
    assert found.lines.tolist() == [number for number, _ in tokens]
    for row in range(width):
        assert texts(found, row) == [cells[row] for _, cells in tokens]
    assert texts(found, width) == [cells[-1] for _, cells in tokens]
    assert found.buffer.tobytes() == data
    assert {array.dtype for array in (found.offsets, found.lines, found.begin, found.end)} == {np.dtype(np.int64)}
    assert found.begin.flags.c_contiguous and found.columns == (*map(str, range(1, width + 1)), "last")


@pytest.mark.uncompiled
@settings(max_examples=120)
@given(files(), st.data())
def test_replace_changes_nothing_but_the_column(file: tuple[bytes, str], data: st.DataObject) -> None:
    content, format = file
    wanted, _ = twin_or_line(content, format)
    if wanted is None:
        return
    width = len(wanted[0][0][1])
    column = data.draw(st.integers(1, width))
    asked = data.draw(st.sampled_from([column, width, 1]))
    found = conll.parse(content, [asked], format=format)
    old = [cells[column - 1].decode() for sentence in wanted for _, cells in sentence]
    assert conll.replace(found, column, old, np.arange(len(old))) == content
    labels = ["x", "longer-label", "é"]
    numbers = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(old), max_size=len(old))))
    lines = content.split(b"\n")
    rows = [number for sentence in wanted for number, _ in sentence]
    for row, number in zip(rows, numbers, strict=True):
        mark = b"\xef\xbb\xbf" if row == 1 and lines[0].startswith(b"\xef\xbb\xbf") else b""
        cells = re.split(rb"([ \t]+)" if format == "columns" else rb"(\t)", lines[row - 1].removeprefix(mark))
        ending = b"\r" * cells[-1].endswith(b"\r")
        cells[-1] = cells[-1].removesuffix(b"\r")
        places = [k for k in range(0, len(cells), 2) if cells[k] or format != "columns"]
        cells[places[column - 1]] = labels[number].encode()
        lines[row - 1] = mark + b"".join(cells) + ending
    assert conll.replace(found, str(column), labels, numbers) == b"\n".join(lines)


@settings(max_examples=120)
@given(files(), st.integers(1, 60))
def test_chunks_together_are_the_file(file: tuple[bytes, str], size: int) -> None:
    data, format = file
    wanted, line = twin_or_line(data, format)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(data)
        if wanted is None:
            with pytest.raises(LolsError) as caught:
                list(conll.chunks(path, ["1"], format=format, size=size))
            found = line_in(str(caught.value))
            # a first part of one column with spaces is taken for text before the part that contradicts it is read
            assert found == line or (format == "tsv" and found < line)
            return
        pieces = list(conll.chunks(path, ["1", "last"], format=format, size=size))
        whole = conll.read(path, ["1", "last"], format=format)
    assert b"".join(piece.buffer.tobytes() for piece in pieces) == data
    assert all(piece.lines.size for piece in pieces[:-1])
    assert np.concatenate([piece.lines for piece in pieces]).tolist() == whole.lines.tolist()
    assert np.concatenate([np.diff(piece.offsets) for piece in pieces]).tolist() == np.diff(whole.offsets).tolist()
    for row in range(2):
        assert [text for piece in pieces for text in texts(piece, row)] == texts(whole, row)
    if size < 10 and whole.offsets.size > 20:
        assert len(pieces) > 3


# --- formats and columns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.conllu", ten(), "conllu"),
        ("a.CONLLU.gz", ten(), "conllu"),
        ("a.conllx", ten(), "conllx"),
        ("a.conll", ten(), "conllx"),
        ("a.conll", "# text = Go\n" + ten(), "conllu"),
        ("a.conll", "\n#\n" + ten(), "conllu"),
        ("a.conll", ten("1-2") + ten(), "conllu"),
        ("a.conll", ten() + "\n" + ten() + ten("1.1"), "conllu"),
        ("a.conll", ten("#") + ten(), "conllx"),
        ("a.conll", "Go VB\n", "columns"),
        ("a.conll", ten("one"), "columns"),
        ("a.txt", ten(), "conllx"),
        ("a.txt", "# # B-NP\n1 CD I-NP\n", "columns"),
        ("a.txt", "# # B-NP\n", "columns"),
        ("a.txt", "-DOCSTART- -X- O\n\nGo\tVB\tO\n", "columns"),
        ("a.tsv", "New York\tNNP\n", "tsv"),
        ("a", "Go\n", "columns"),
    ],
)
def test_the_format_is_found(name: str, text: str, format: str) -> None:
    assert conll.parse(text.encode(), ["1"], path=name).format == format


def test_a_file_may_turn_out_to_be_conllu_in_a_later_piece(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(ten() + "\n" + ten() + "\n" + ten("1-2") + ten() + ten("2"))
    assert [piece.format for piece in conll.chunks(path, ["form"], size=40)] == ["conllx", "conllx", "conllu"]
    assert conll.read(path, ["form"]).lines.tolist() == [1, 3, 6, 7]


def test_columns_have_names_numbers_and_keys() -> None:
    data = ten(feats="Case=Nom|Number=Sing", misc="NER=B-PER|SpaceAfter=No").encode()
    wanted = {
        "FORM": b"Go",
        "2": b"Go",
        "last": b"NER=B-PER|SpaceAfter=No",
        "feats:Case": b"Nom",
        "Feats:Number": b"Sing",
        "feats:Cas": b"",
        "feats:Num": b"",
        "misc:NER": b"B-PER",
        "misc:SpaceAfter": b"No",
        "deprel": b"root",
    }
    found = conll.parse(data, list(wanted), format="conllu")
    assert [texts(found, row)[0] for row in range(len(wanted))] == list(wanted.values())
    found = conll.parse(data, ["cpostag", "POSTAG", "phead", "pdeprel", 5, "form"], format="conllx")
    assert [texts(found, row)[0] for row in range(6)] == [
        b"VERB",
        b"VB",
        b"_",
        b"NER=B-PER|SpaceAfter=No",
        b"VB",
        b"Go",
    ]
    assert texts(conll.parse(b"a b c\n", ["form", "last"]), 0) == [b"a"]
    assert conll.parse(b"a b c\n", []).begin.shape == (0, 1)


def test_a_header_names_columns(tmp_path: Path) -> None:
    data = b"\nword\tPOS\tmore\r\nNew York\tNNP\tx\n\nGo\tVB\t\n"
    found = conll.parse(data, ["POS", "word", "1"], format="tsv")
    assert [texts(found, row) for row in range(3)] == [[b"NNP", b"VB"], [b"New York", b"Go"], [b"New York", b"Go"]]
    assert found.lines.tolist() == [3, 5]
    assert texts(conll.parse(data, ["pos"], format="tsv", header=True), 0) == [b"NNP", b"VB"]
    assert texts(conll.parse(data, ["1"], format="tsv", header=False), 0) == [b"word", b"New York", b"Go"]
    assert texts(conll.parse(data, ["form"], format="tsv"), 0)[0] == b"word"
    with pytest.raises(LolsError, match=r"line 5: the word in column 3 is empty"):
        conll.parse(data.replace(b"more", b"form"), ["POS"], format="tsv", header=True)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"word\tpos\n\n\na b\tX\n\nc\tY\n\nd\tX\n")
    pieces = list(conll.chunks(path, ["pos", "ner"], optional=["ner"], size=4))
    assert [texts(piece, 0) for piece in pieces] == [[b"X", b"Y"], [b"X"]]
    again = b"".join(conll.replace(piece, "ner", ["O", "B"], np.ones(piece.lines.size)) for piece in pieces)
    assert again == b"word\tpos\tner\n\n\na b\tX\tB\n\nc\tY\tB\n\nd\tX\tB\n"
    again = b"".join(conll.replace(piece, "pos", ["Z"], np.zeros(piece.lines.size)) for piece in pieces)
    assert again == b"word\tpos\n\n\na b\tZ\n\nc\tZ\n\nd\tZ\n"
    assert conll.replace(pieces[0], "word", ["Z"], np.zeros(2)) == b"word\tpos\n\n\nZ\tX\n\nZ\tY\n\n"
    with pytest.raises(LolsError, match="'word' is not among the columns read; ask for it"):
        conll.replace(pieces[1], "word", ["Z"], np.zeros(1))


def test_an_optional_column_may_be_missing() -> None:
    found = conll.parse(b"a b\nc d\n", ["1", "3", 4], optional=["3", 4])
    assert texts(found, 1) == texts(found, 2) == [b"", b""]
    assert texts(conll.parse(b"a\tb\n", ["1", "ner"], format="tsv", optional=["ner"]), 1) == [b""]
    with pytest.raises(LolsError, match="optional column '5' is not asked for"):
        conll.parse(b"a b\n", ["1"], optional=["5"])


@pytest.mark.uncompiled
def test_a_column_is_appended_after_the_last() -> None:
    found = conll.parse("\ufeffa b \r\n-DOCSTART-\nc\t d\ne  f\t".encode(), ["1", "3"], optional=["3"])
    wanted = "\ufeffa b X \r\n-DOCSTART-\nc\t d Y\ne  f X\t".encode()
    assert conll.replace(found, "3", ["X", "Y"], np.array([0, 1, 0])) == wanted
    assert (
        conll.replace(conll.parse(b"a\tb\nc\t\n", ["1"], format="tsv"), 3, ["X"], np.zeros(2)) == b"a\tb\tX\nc\t\tX\n"
    )
    assert conll.replace(conll.parse(b"a\nb", ["1"]), "2", ["X"], np.zeros(2)) == b"a X\nb X"
    assert conll.replace(conll.parse(b"a b\tc\n", ["1"]), "4", ["X"], np.zeros(1)) == b"a b\tc\tX\n"
    with pytest.raises(LolsError, match=r"line 1: there is no column 4, there are 2 columns"):
        conll.replace(found, "4", ["X"], np.zeros(3))
    with pytest.raises(LolsError, match=r"there is no column 11"):
        conll.replace(conll.parse(ten().encode(), ["1"]), "11", ["X"], np.zeros(1))


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("column", "cell", "label", "wanted"),
    [
        ("feats:Case", "_", "Nom", "Case=Nom"),
        ("feats:Case", "Case=Acc", "Nom", "Case=Nom"),
        ("feats:Case", "Case=Acc", "_", "_"),
        ("feats:Case", "Case=Acc|Tense=Past", "", "Tense=Past"),
        ("feats:case", "Abbr=Yes|Definite=Def", "x", "Abbr=Yes|case=x|Definite=Def"),
        ("feats:Tense", "aspect=x|Mood=Ind", "Past", "aspect=x|Mood=Ind|Tense=Past"),
        ("feats:Case", "Number=Sing", "_", "Number=Sing"),
        ("misc:NER", "SpaceAfter=No", "B", "SpaceAfter=No|NER=B"),
        ("misc:NER", "NER=B|SpaceAfter=No", "O", "NER=O|SpaceAfter=No"),
        ("misc:NER", "NER", "O", "NER|NER=O"),
        ("misc:NER", "_", "", "_"),
    ],
)
def test_keys_are_put_and_removed(column: str, cell: str, label: str, wanted: str) -> None:
    base = column.partition(":")[0]
    before = "# x\n" + ten("1-2") + ten(**{base: cell}) + ten("2", "!")
    found = conll.parse(before.encode(), ["form", column])
    after = conll.replace(found, column, [label, ""], np.array([0, 1])).decode()
    assert after == "# x\n" + ten("1-2") + ten(**{base: wanted}) + ten("2", "!")
    if label not in ("", "_"):
        assert texts(conll.parse(after.encode(), [column]), 0) == [label.encode(), b""]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"a b\n\nc d\n", gzip.compress(b"a b\n\nc d\n")):
        for read in (lambda: [conll.read("-", ["2"])], lambda: list(conll.chunks("-", ["2"], size=1))):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))  # type: ignore
            assert [text for piece in read() for text in texts(piece, 0)] == [b"b", b"d"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a b\nc\n"))))  # type: ignore
    with pytest.raises(LolsError, match=r"^standard input, line 2: 1 columns, but 2 in line 1"):
        conll.read("-", ["1"])


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
@pytest.mark.parametrize(
    ("name", "format", "column", "sentences", "tokens", "labels"),
    [
        ("ewt-train.conllu.gz", "conllu", "xpos", 12544, 204577, 49),
        ("ewt-dev.conllu.gz", "conllu", "upos", 2001, 25147, 17),
        ("ewt-test.conllu.gz", "conllu", "deprel", 2077, 25094, None),
        ("craft-test.conllu.gz", "conllu", "xpos", 9099, 232619, None),
        ("wsj-test.conll.gz", "conllx", "postag", 513, 12146, None),
        ("wsj-train.conll.gz", "conllx", "4", 3401, 81938, 45),
        ("conll2000-train.txt.gz", "columns", "last", 8936, 211727, 22),
        ("conll2000-test.txt.gz", "columns", "last", 2012, 47377, None),
    ],
)
def test_real_files_come_back_byte_for_byte(
    name: str, format: str, column: str, sentences: int, tokens: int, labels: int | None
) -> None:
    path = Path(os.environ["LOLS_DATA"], name)
    content = gzip.decompress(path.read_bytes())
    found = conll.read(path, ["form", column])
    assert (found.format, found.offsets.size - 1, found.lines.size) == (format, sentences, tokens)
    old = [text.decode() for text in texts(found, 1)]
    known = sorted(set(old))
    assert labels is None or len(set(known) - {"_"}) == labels
    numbers = np.array([known.index(text) for text in old])
    assert conll.replace(found, column, known, numbers) == content
    pieces = list(conll.chunks(path, ["form"], size=1 << 18))
    assert len(pieces) > 1 and b"".join(piece.buffer.tobytes() for piece in pieces) == content
    assert np.concatenate([piece.lines for piece in pieces]).tolist() == found.lines.tolist()
    whole = twin(content, format)
    assert texts(found, 0) == [cells[format != "columns"] for sentence in whole for _, cells in sentence]
