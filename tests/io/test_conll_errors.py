"""Every way in which a token-per-line file can be wrong gives one line with place and fix."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lols.errors import LolsError
from lols.io import conll
from tests.io.conll_twin import ten, texts


def test_labels_that_would_break_the_file_are_refused() -> None:
    plain, tabs = conll.parse(b"a b\n", ["2"]), conll.parse(ten().encode(), ["xpos"])
    for sentences, column, label in [
        (plain, "2", "x y"),
        (plain, "2", ""),
        (plain, "2", "x\n"),
        (tabs, "xpos", "x\ty"),
        (tabs, "xpos", "x\r"),
        (tabs, "xpos", "\ud800"),
        (tabs, "feats:Case", "x|y"),
    ]:
        with pytest.raises(LolsError, match=r"the label .* cannot be a cell .*; rename it"):
            conll.replace(sentences, column, ["fine", label], np.ones(1))
        assert b"fine" in conll.replace(sentences, column, ["fine", label], np.zeros(1))
    assert b"\tx y\t" in conll.replace(tabs, "xpos", ["x y"], np.zeros(1))
    assert b"VERB\t_\t" in conll.replace(tabs, "xpos", [""], np.zeros(1))
    with pytest.raises(LolsError, match="between 0 and 0"):
        conll.replace(plain, "2", ["x"], np.ones(1))
    with pytest.raises(LolsError, match="1 tokens, but 2 labels"):
        conll.replace(plain, "2", ["x"], np.zeros(2))


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("data", "columns", "options", "message"),
    [
        (ten() + "2\tGo\n", ["form"], {"format": "conllu"}, r"f, line 2: 2 columns, but CoNLL-U has 10; separate"),
        (ten() + "2\tGo\n", ["form"], {}, r"f, line 2: 2 columns, but CoNLL-X has 10; separate"),
        ("a b\nc d e\n", ["1"], {}, r"f, line 2: 3 columns, but 2 in line 1; give all lines"),
        ("\na\tb\nc\n", ["1"], {"format": "tsv"}, r"f, line 3: 1 columns, but 2 in line 2; give all lines"),
        (
            ten(),
            ["pos"],
            {},
            r"f: there is no column 'pos'; ask for id, form, .*, pdeprel, feats:KEY, misc:KEY, a number",
        ),
        (ten(), ["feats:"], {}, r"f: there is no column 'feats:'; ask for"),
        ("a b\n", ["upos"], {}, r"f: there is no column 'upos'; ask for form, a number from 1 to 2, or 'last'"),
        ("a\n", ["upos"], {}, r"f: there is no column 'upos'; ask for form, 1$"),
        ("a\tb\n", ["c", "a"], {"format": "tsv"}, r"f: there is no column 'c'; ask for 'a', 'b', a number"),
        ("a\tb\n", ["upos"], {"format": "tsv"}, r"f: there is no column 'upos'; ask for form, .*header=True"),
        ("a b\n", ["3"], {}, r"f, line 1: there is no column 3, there are 2 columns; ask for another"),
        ("a b\n", ["0"], {"optional": ["0"]}, r"f, line 1: there is no column 0, columns are numbered from 1; ask"),
        (
            "# a\n\n" + ten(),
            ["form"],
            {"format": "conllu"},
            r"f, line 1: a sentence without any word begins here; remove",
        ),
        (ten() + "\n# a\n#b", ["form"], {"format": "conllu"}, r"f, line 3: a sentence without any word begins here; "),
        (ten(form=""), ["upos"], {}, r"f, line 1: the word in column 2 is empty; write it"),
        ("\tb\n", ["2"], {"format": "tsv"}, r"f, line 1: the word in column 1 is empty; write it"),
        (ten("1a"), ["form"], {"format": "conllu"}, r"f, line 1: the id '1a' is not a CoNLL-U id .*; number"),
        (ten("1-2"), ["form"], {"format": "conllx"}, r"f, line 1: the id '1-2' .*; read the file with format='conllu'"),
        ("", ["1"], {}, r"f: there is no token in it; give"),
        ("\n \n", ["1"], {"format": "conllu"}, r"f: there is no token in it; give"),
        ("-DOCSTART- -X- O\n\n", ["1"], {}, r"f: there is no token in it; give"),
        ("word\n", ["1"], {"format": "tsv", "header": True}, r"f: there is no token in it; give"),
        ("a b\n", ["1"], {"format": "xml"}, r"f: there is no format 'xml'; use one of conllu, conllx, columns, tsv"),
        ("a b\n", ["1"], {"header": True}, r"f: plain columns has no header; leave it out, or use format='tsv'"),
        (b"a b\ncaf\xe9 d\n", ["1"], {}, r"f, line 2: byte 4 \(0xe9\) is not UTF-8; convert"),
        (b"a b\n\0c d\n", ["1"], {}, r"f, line 2: byte 1 is zero, so this is not text; give"),
        ("a b\n".encode("utf-16"), ["1"], {}, r"f, line 1: this is UTF-16; convert"),
        ("a b\nc d\re f\n", ["1"], {}, r"f, line 2: a carriage return without a newline after it; end lines with"),
        ("a\rb\rc\r", ["1"], {}, r"f, line 1: a carriage return without a newline after it; end lines with"),
        (f"# text\r{ten()}\n{ten()}", ["form"], {"format": "conllu"}, r"f, line 1: a carriage return without"),
        ("a\nb c\n", ["1"], {}, r"f, line 2: 2 words instead of one; write one word on each line"),
        ("to be\nor not\n", ["1"], {"format": "words"}, r"f, line 1: 2 words instead of one; write one word on"),
        ("to be\nor not\n", ["1"], {"format": "tsv"}, r"f, line 1: 'to be' has spaces in it; write one word on each"),
    ],
)
def test_mistakes_are_one_line_with_place_and_fix(data, columns, options, message) -> None:
    content = data if isinstance(data, bytes) else data.encode()
    with pytest.raises(LolsError, match=message) as caught:
        conll.parse(content, columns, path="f", **options)
    assert "\n" not in str(caught.value)
    if "UTF-16" not in message:
        later = re.sub(r"line (\d+)", lambda found: f"line {int(found[1]) + 10}", message)
        with pytest.raises(LolsError, match=later):
            conll.parse(content, columns, path="f", first_line=11, **options)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LolsError, match="nowhere: there is no such file; correct the name"):
        conll.read(tmp_path / "nowhere", ["1"])
    with pytest.raises(LolsError, match="is a folder; give a file in it"):
        conll.read(tmp_path, ["1"])
    plain, zipped, cut, broken = (tmp_path / name for name in ("plain.txt.gz", "zipped", "cut.gz", "broken.gz"))
    plain.write_text("a b\n")
    with pytest.raises(LolsError, match="is not compressed by gzip, as its name says; rename it"):
        conll.read(plain, ["1"])
    content = gzip.compress(os.urandom(3000).hex().encode())
    cut.write_bytes(content[:2000])
    broken.write_bytes(content[:1000] + bytes(100) + content[1100:])
    for path in (cut, broken):
        for call in (conll.read, lambda *arguments: list(conll.chunks(*arguments, size=100))):
            with pytest.raises(LolsError, match=r"damaged compressed data \(.*\); make or fetch the file again"):
                call(path, ["1"])
    zipped.write_bytes(gzip.compress(b"a b\n") + gzip.compress(b"\nc d\n"))
    assert texts(conll.read(zipped, ["2"]), 0) == [b"b", b"d"]
    assert [texts(piece, 0) for piece in conll.chunks(zipped, ["2"], size=3)] == [[b"b"], [b"d"]]


def test_the_length_of_a_line_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conll, "LONGEST", 20)
    monkeypatch.setattr(conll, "BLOCK", 50)
    for count, fits in ((20, True), (21, False)):
        for place, ending in ((1, "\n"), (3, "\nb\n"), (3, ""), (30, "\nb\n")):
            path = tmp_path / "f"
            path.write_text("a\n" * (place - 2) + "\n" * (place > 1) + "x" * count + ending)
            for size in (1, 7, 20, 1000):
                if fits:
                    assert b"x" * count in [
                        t for piece in conll.chunks(path, ["1"], size=size) for t in texts(piece, 0)
                    ]
                    assert b"x" * count in texts(conll.read(path, ["1"]), 0)
                else:
                    wanted = re.escape(f"{path}, line {place}: has more than 20 bytes; give a file with one token on")
                    for call in (conll.read, lambda *arguments, size=size: list(conll.chunks(*arguments, size=size))):
                        with pytest.raises(LolsError, match=wanted):
                            call(path, ["1"])


def test_a_small_file_with_a_huge_line_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 27), 1))
    for call in (conll.read, lambda *arguments: list(conll.chunks(*arguments))):
        tracemalloc.start()
        with pytest.raises(LolsError, match=r"line 1: has more than 1,048,576 bytes; "):
            call(path, ["1"])
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
        tracemalloc.stop()
