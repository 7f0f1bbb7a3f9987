"""An obvious parser of token-per-line files, and random files for it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from hypothesis import strategies as st

from lols.io import conll

FORMATS = ["conllu", "conllx", "columns", "tsv"]


class Mistake(Exception):
    """A line that is wrong."""


def twin(data: bytes, format: str) -> list[list[tuple[int, list[bytes]]]]:
    """Sentences of tokens, each a line number and its cells."""
    sentences: list[list[tuple[int, list[bytes]]]] = []
    tokens: list[tuple[int, list[bytes]]] = []
    width = 10 if format.startswith("conll") else 0
    opened = 0
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n") + [b""], 1):
        if not line.strip(b" \t\r"):
            if tokens:
                sentences.append(tokens)
            elif opened and format == "conllu":
                raise Mistake(opened)
            tokens, opened = [], 0
            continue
        opened = opened or number
        line = line.removesuffix(b"\r")
        cells = [cell for cell in re.split(rb"[ \t]+", line) if cell] if format == "columns" else line.split(b"\t")
        if format == "conllu" and line.startswith(b"#"):
            continue
        if format == "columns" and cells[0].startswith(b"-DOCSTART-"):
            continue
        width = width or len(cells)
        if len(cells) != width:
            if format == "conllx" and line.startswith(b"#"):
                continue
            raise Mistake(number)
        extra = re.fullmatch(rb"[0-9]+[-.][0-9]+", cells[0])
        if format == "conllx" and extra:
            raise Mistake(number)
        if format == "conllu" and extra:
            continue
        if format == "conllu" and not re.fullmatch(rb"[0-9]+", cells[0]):
            raise Mistake(number)
        if not cells[1 if format.startswith("conll") else 0]:
            raise Mistake(number)
        tokens.append((number, cells))
    if not sentences:
        raise Mistake(0)
    if format == "tsv" and width == 1:
        for number, cells in itertools.chain.from_iterable(sentences):
            if b" " in cells[0].strip():
                raise Mistake(number)
    return sentences


TEXT = st.text(st.sampled_from("aZ_#-.=|1é文😀\u00a0\u2028"), min_size=1, max_size=4)
CELL = st.one_of(TEXT, TEXT, TEXT, st.just("a b"), st.just(""))
NUMBER = st.integers(1, 120).map(str)


def line_of(first: st.SearchStrategy[str], width: int) -> st.SearchStrategy[str]:
    rest = st.lists(TEXT, min_size=width - 1, max_size=width - 1)
    return st.tuples(first, rest).map(lambda parts: "\t".join([parts[0], *parts[1]]))


def joined(separators: str, *around: str) -> st.SearchStrategy[str]:
    before, after = around or ("", "")
    return st.lists(TEXT, min_size=3, max_size=3).map(lambda cells: before + separators.join(cells) + after)


SPAN = line_of(st.tuples(NUMBER, st.sampled_from("-."), NUMBER).map("".join), 10)
COMMENT = CELL.map("# ".__add__)
BLANK = st.sampled_from(["", "", "", " ", "\t \t", " " * 9])
RUNS = [joined(" "), joined("\t"), joined(" \t "), joined("  "), joined(" ", " ", " \t"), joined("\t", "", " ")]
WORDS = {
    "conllu": line_of(NUMBER, 10),
    "conllx": st.one_of(line_of(NUMBER, 10), line_of(NUMBER, 10), line_of(st.just("#"), 10)),
    "columns": st.one_of(*RUNS),
    "tsv": st.tuples(TEXT, CELL, CELL).map("\t".join),
}
OTHERS = {
    "conllu": [SPAN, COMMENT],
    "conllx": [COMMENT],
    "columns": [st.sampled_from(["-DOCSTART- -X- O", "-DOCSTART-"])],
}
WRONG = [
    SPAN,
    COMMENT,
    line_of(st.sampled_from(["#", "1-", ".1", "x", "1-2-3", ""]), 10),
    st.lists(CELL, max_size=11).map("\t".join),
    st.lists(CELL, max_size=4).map(" ".join),
    st.tuples(CELL, CELL, CELL).map("\t".join),
]


def flat(lists: Iterable[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(lists))


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, str]:
    """Bytes and their format; in half of them every line is right."""
    format = draw(st.sampled_from(FORMATS))
    others = st.lists(st.one_of(*OTHERS[format]), max_size=2) if format in OTHERS else st.just([])
    blanks = st.one_of(st.just([]), st.lists(BLANK, max_size=3))
    units = [st.tuples(blanks, others, WORDS[format].map(lambda line: [line]), blanks).map(flat)] * 6
    if draw(st.booleans()):
        units += [st.lists(st.one_of(WORDS[format], BLANK, *WRONG), max_size=2)]
    lines = flat(draw(st.lists(st.one_of(*units), max_size=draw(st.sampled_from([2, 5, 15])))))
    ends = ["\n"] if draw(st.booleans()) else ["\n", "\r\n"]
    text = "".join(line + draw(st.sampled_from(ends)) for line in lines)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return (draw(st.sampled_from(["", "", "\ufeff"])) + text).encode(), format


def texts(sentences: conll.Sentences, row: int) -> list[bytes]:
    return [sentences.buffer[b:e].tobytes() for b, e in zip(sentences.begin[row], sentences.end[row], strict=True)]


def twin_or_line(data: bytes, format: str) -> tuple[list[list[tuple[int, list[bytes]]]] | None, int]:
    try:
        return twin(data, format), 0
    except Mistake as mistake:
        return None, mistake.args[0]


def line_in(message: str) -> int:
    assert "\n" not in message
    found = re.search(r", line (\d+): .*; ", message)
    return int(found[1]) if found else 0


def ten(identity: str = "1", form: str = "Go", feats: str = "_", misc: str = "_") -> str:
    return "\t".join([identity, form, "go", "VERB", "VB", feats, "0", "root", "_", misc]) + "\n"
