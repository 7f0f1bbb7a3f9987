"""The layout of a token-per-line file: its format, the number of its columns, and the columns that names stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lols.contract.whole_numbers import number_in
from lols.errors import LolsError, shown
from lols.io.opening import BOM, without_compression

FORMATS = ("conllu", "conllx", "columns", "tsv")  # in the order of the kernels' modes
WORDS = "words"  # plain columns, of which there is one: a word on each line
TITLES = {"conllu": "CoNLL-U", "conllx": "CoNLL-X", "columns": "plain columns", "tsv": "TSV"}
SUFFIXES = {"conllu": "conllu", "conllx": "conllx", "tsv": "tsv"}  # other suffixes do not decide
NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
ALIASES = {"cpostag": "upos", "postag": "xpos", "phead": "deps", "pdeprel": "misc"}  # what CoNLL-X calls them
KEYED = ("feats", "misc")  # columns of key=value pairs
ID = re.compile(rb"[0-9]+([-.][0-9]+)?")


class TokenLayout(NamedTuple):
    """The layout of all lines of a file."""

    path: str
    format: str
    guessed: bool  # from the first lines, so that later ones may still turn CoNLL-X into CoNLL-U
    width: int  # columns of a token
    line: int  # the line with that number of columns
    at: int  # where tokens may begin, after byte order mark and header
    first_line: int  # the number of the line that begins there
    names: tuple[str, ...]  # of the header, if there is one
    form: int  # the column that must not be empty, or -1


def find_layout(
    data: bytes, path: str, columns: Sequence[str], format: str | None, header: bool | None, line: int, final: bool
) -> TokenLayout | None:
    """Read as many lines as it takes; None if these bytes do not decide, and they are not the `final` ones.

    >>> layout = find_layout(b"The DT B-NP\\ncat NN I-NP\\n", "a.txt", ["1"], None, None, 1, True)
    >>> layout.format, layout.width
    ('columns', 3)
    """
    if format is not None and format not in (*FORMATS, WORDS):
        raise LolsError(f"{path}: there is no format {format!r}; use one of {', '.join((*FORMATS, WORDS))}")
    at = len(BOM) if line == 1 and data.startswith(BOM) else 0
    known = "columns" if format == WORDS else format or format_of_name(path)
    found = known or _guess(data, at, final)
    if found is None:
        return None
    if header and found != "tsv":
        raise LolsError(f"{path}: {TITLES[found]} has no header; leave it out, or use format='tsv'")
    layout = TokenLayout(path, found, known is None, len(NAMES), line, at, line, (), 1)
    if found in ("conllu", "conllx"):
        return layout
    for begin, end, number in _lines(data, at, line):
        cells = _cells(data[begin:end], found)
        if found == "columns" and cells[0].startswith(b"-DOCSTART-"):
            continue
        layout = layout._replace(width=1 if format == WORDS else len(cells), line=number, form=0)
        names = tuple(cell.decode() for cell in cells)
        if found == "tsv" and (header or (header is None and any(name in names for name in _named(columns)))):
            form = names.index("form") if "form" in names else -1
            layout = layout._replace(names=names, at=min(end + 1, len(data)), first_line=number + 1, form=form)
        return layout
    return None


def format_of_name(path: str) -> str | None:
    """The format that the end of a file's name says; None if it says nothing."""
    name = without_compression(path)
    return SUFFIXES.get(name.rpartition(".")[2]) if "." in name else None


def _guess(data: bytes, at: int, final: bool) -> str | None:
    """The format that the first token line has: ten columns between tabs with an id first, or else plain columns."""
    comments = lines = 0
    for begin, end, _ in _lines(data, at, 1):
        text = data[begin:end]
        cells = _cells(text, "tsv")
        if text.startswith(b"#"):
            comments += lines == comments and len(cells) != len(NAMES)
        elif not text.startswith(b"-DOCSTART-"):
            if len(cells) == len(NAMES) and ID.fullmatch(cells[0]):
                return "conllu" if comments or not cells[0].isdigit() else "conllx"
            return "columns"
        lines += 1
    return "columns" if lines and final else None


def _lines(data: bytes, at: int, line: int) -> Iterator[tuple[int, int, int]]:
    """Begin, end and number of each line that is not blank."""
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            end = len(data)
        if data[at:end].strip(b" \t\r"):
            yield at, end, line
        at = end + 1
        line += 1


def _cells(line: bytes, format: str) -> list[bytes]:
    line = line.removesuffix(b"\r")
    return re.split(rb"[ \t]+", line.strip(b" \t")) if format == "columns" else line.split(b"\t")


def _named(columns: Sequence[str]) -> list[str]:
    """The columns asked for that are neither numbers nor `last`."""
    return [column for column in columns if not column.isdecimal() and column != "last"]


def resolve(column: str, layout: TokenLayout, optional: bool = False) -> tuple[int, bytes]:
    """The 0-based number of a column (-1 if an optional one is missing), and the key inside it, if any.

    >>> layout = TokenLayout("a.conllu", "conllu", False, 10, 1, 0, 1, (), 1)
    >>> resolve("XPOS", layout), resolve("2", layout), resolve("last", layout), resolve("feats:Case", layout)
    ((4, b''), (1, b''), (9, b''), (5, b'Case'))
    """
    if column.isdecimal():
        number = number_in(column)
        if 1 <= number <= layout.width:
            return number - 1, b""
        if number > 0 and optional:
            return -1, b""
        reason = f"there are {layout.width} columns" if number > 0 else "columns are numbered from 1"
        raise LolsError(
            f"{layout.path}, line {layout.line}: there is no column {column[:20]}, {reason}; ask for another one"
        )
    index = _by_name(column, layout)
    if index is not None:
        return index, b""
    base, _, key = column.partition(":")
    if has_keys(column, layout.format) and key and not re.search(r"[=|\s]", key):
        return NAMES.index(base.lower()), key.encode()
    if layout.format in ("tsv", "columns") and optional:
        return -1, b""
    raise LolsError(f"{layout.path}: there is no column {shown(column)}; ask for {_offer(layout)}")


def has_keys(column: str, format: str) -> bool:
    """Whether a name stands for a key inside a column."""
    base, colon, _ = column.partition(":")
    return bool(colon) and base.lower() in KEYED and format in ("conllu", "conllx")


def _by_name(column: str, layout: TokenLayout) -> int | None:
    low = column.lower()
    if layout.format in ("conllu", "conllx"):
        if layout.format == "conllx":
            low = ALIASES.get(low, low)
        names: tuple[str, ...] = NAMES
    elif layout.names:
        if column in layout.names:
            return layout.names.index(column)
        names = tuple(name.lower() for name in layout.names)
    else:
        names = ("form",)
    if low in names:
        return names.index(low)
    return layout.width - 1 if column == "last" else None


def _offer(layout: TokenLayout) -> str:
    """The columns of a file, for error messages."""
    numbers = f"a number from 1 to {layout.width}, or 'last'" if layout.width > 1 else "1"
    if layout.format in ("conllu", "conllx"):
        more = (*NAMES, *ALIASES) if layout.format == "conllx" else NAMES
        return f"{', '.join(more)}, feats:KEY, misc:KEY, {numbers}"
    if layout.names:
        return f"{', '.join(map(shown, layout.names))}, {numbers}"
    return f"form, {numbers}" + (" (with header=True, for a name in the first line)" if layout.format == "tsv" else "")
