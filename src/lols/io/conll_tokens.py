"""The tokens of a file by column: `Sentences`, and the parsing of bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lols.contract.choosing import runs
from lols.errors import LolsError, shown
from lols.io import conll_scan as kernels
from lols.io.conll_layout import FORMATS, TITLES, TokenLayout, find_layout, resolve
from lols.io.opening import first_bad_byte, not_text

LONE_RETURN = re.compile(rb"\r(?!\n|\Z)")  # a file may end without a newline
ONE_TOKEN = "give a file with one token on each line"
ONE_WORD = "write one word on each line, and a blank line after each sentence"
CACHED = 1 << 16
WINDOW = 8192  # bytes in which separators are sought at a time: their places stay in the nearest cache


class Sentences(NamedTuple):
    """Tokens of a file, by column: texts are slices of one buffer.

    >>> from lols.io import conll
    >>> two = conll.parse(b"The DT\\ncat NN\\n\\nIt PRP\\n", ["form", "last"])
    >>> two.offsets.tolist(), two.lines.tolist()
    ([0, 2, 3], [1, 2, 4])
    >>> [two.buffer[begin:end].tobytes() for begin, end in zip(two.begin[1], two.end[1])]
    [b'DT', b'NN', b'PRP']
    """

    path: str
    format: str  # "conllu", "conllx", "columns" or "tsv"
    buffer: np.ndarray  # uint8, the bytes as read; cannot be written to
    offsets: np.ndarray  # int64 [sentences + 1]: the token at which each sentence begins
    lines: np.ndarray  # int64 [tokens]: 1-based line number in the file
    begin: np.ndarray  # int64 [columns asked for, tokens]: where each text begins in the buffer
    end: np.ndarray  # int64 [columns asked for, tokens]; both are 0 for the texts of a missing column
    columns: tuple[str, ...]  # as asked
    width: int  # the number of columns in the file

    def select(self, chosen: np.ndarray) -> Sentences:
        """The sentences with these numbers."""
        tokens, offsets = runs(self.offsets, chosen)
        begin, end = (np.take(places, tokens, axis=1) for places in (self.begin, self.end))
        return self._replace(offsets=offsets, lines=self.lines[tokens], begin=begin, end=end)


class Places(NamedTuple):
    """The result of a scan: arrays as in `Sentences`."""

    offsets: np.ndarray
    lines: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def parse(
    data: bytes,
    columns: Sequence[str | int],
    *,
    path: str = "<bytes>",
    format: str | None = None,
    header: bool | None = None,
    optional: Sequence[str | int] = (),
    first_line: int = 1,
) -> Sentences:
    """Find the tokens in bytes; arguments are those of `lols.io.conll.read`, and the number of the first line.

    >>> words = parse(b"# text = Go!\\n1\\tGo\\tgo\\tVERB\\tVB\\tMood=Imp|Person=2\\t0\\troot\\t_\\tSpaceAfter=No\\n",
    ...               ["form", "upos", "feats:Mood"])
    >>> words.format, [words.buffer[b:e].tobytes() for b, e in zip(words.begin[:, 0], words.end[:, 0])]
    ('conllu', [b'Go', b'VERB', b'Imp'])
    """
    return Reader(path, columns, format, header, optional).parse(data, first_line)


class Reader:
    """Parses the pieces of a file, one after the other; the first one decides on the layout of all."""

    def __init__(
        self,
        path: str,
        columns: Sequence[str | int],
        format: str | None,
        header: bool | None,
        optional: Sequence[str | int],
    ):
        self.path = path
        self.columns = tuple(map(str, [columns] if isinstance(columns, str) else columns))
        self.format = format
        self.header = header
        self.optional = frozenset(map(str, [optional] if isinstance(optional, str) else optional))
        self.layout: TokenLayout | None = None  # None until there is a token
        if extra := sorted(self.optional.difference(self.columns)):
            raise LolsError(f"{path}: optional column {extra[0]!r} is not asked for; put it among the columns, too")

    def parse(self, data: bytes, line: int) -> Sentences:
        """The sentences of a whole file, or of the last piece of it."""
        found = self.piece(data, line, True)
        if found is not None:
            return found
        if self.layout is None:
            raise LolsError(f"{self.path}: there is no token in it; {ONE_TOKEN}")
        nothing = np.zeros((len(self.columns), 0), np.int64)
        buffer = np.frombuffer(data, np.uint8)
        return self._sentences(buffer, Places(np.zeros(1, np.int64), np.zeros(0, np.int64), nothing, nothing))

    def piece(self, data: bytes | memoryview, line: int, final: bool = False) -> Sentences | None:
        """The sentences of a piece that begins with a certain line, or None if there is no token in it."""
        buffer = np.frombuffer(data, np.uint8)
        if (place := first_bad_byte(data)) >= 0:
            raise not_text(data, place, self.path, line + bytes(data[:place]).count(b"\n"))
        if _has_return(data) and (lone := LONE_RETURN.search(data)):
            at = line + bytes(data[: lone.start()]).count(b"\n")
            raise LolsError(
                f"{self.path}, line {at}: a carriage return without a newline after it; end lines with \\n or \\r\\n"
            )
        if self.layout is None:
            layout = find_layout(bytes(data), self.path, self.columns, self.format, self.header, line, final)
        else:
            layout = self.layout._replace(at=0, first_line=line)
        if layout is None:
            return None
        resolved = [resolve(column, layout, column in self.optional) for column in self.columns]
        format, found = places(buffer, layout, [index for index, _ in resolved])
        if found.lines.size == 0:
            return None
        self.layout = layout._replace(format=format)
        if format == "tsv" and layout.width == 1:
            self._check_words(buffer)
        for begin, end, (_, key) in zip(found.begin, found.end, resolved):
            if key:
                kernels.narrow(buffer, begin, end, np.frombuffer(key, np.uint8))
        return self._sentences(buffer, found)

    def _sentences(self, buffer: np.ndarray, found: Places) -> Sentences:
        assert self.layout is not None
        return Sentences(self.path, self.layout.format, buffer, *found, self.columns, self.layout.width)

    def _check_words(self, buffer: np.ndarray) -> None:
        """A line of text is not a word; only a file with further columns may have words with spaces in them."""
        assert self.layout is not None
        if not (buffer == kernels.SPACE).any():
            return
        _, words = places(buffer, self.layout, [0])
        for begin, end, line in zip(words.begin[0].tolist(), words.end[0].tolist(), words.lines.tolist()):
            text = buffer[begin:end].tobytes().decode()
            if " " in text.strip():
                raise LolsError(f"{self.path}, line {line}: {shown(text)} has spaces in it; {ONE_WORD}")


def _has_return(data: bytes | memoryview) -> bool:
    """Whether there is a carriage return; sought in pieces that fit into the cache, which takes a fifth of the time."""
    return any(b"\r" in bytes(data[k : k + CACHED]) for k in range(0, len(data), CACHED))


def newlines(buffer: np.ndarray) -> int:
    """The number of newlines in bytes."""
    return int(np.count_nonzero(buffer == kernels.NEWLINE))


def places(buffer: np.ndarray, layout: TokenLayout, picks: Sequence[int]) -> tuple[str, Places]:
    """Scan bytes for tokens and for columns, which are given by their 0-based numbers; return the format, too."""
    room = newlines(buffer) + 1
    marks = np.empty(min(WINDOW, buffer.size + 1), np.int64)
    starts, ends = np.empty((2, layout.width), np.int64)
    offsets, lines = np.empty(room + 1, np.int64), np.empty(room, np.int64)
    begin, end = np.empty(len(picks) * room, np.int64), np.empty(len(picks) * room, np.int64)
    report = np.zeros(kernels.CELLS, np.int64)
    kernels.scan(
        buffer,
        layout.at,
        layout.first_line,
        FORMATS.index(layout.format),
        layout.width,
        layout.form,
        np.array(picks, np.int64),
        marks,
        starts,
        ends,
        offsets,
        lines,
        begin.reshape(len(picks), room),
        end.reshape(len(picks), room),
        report,
    )
    if report[kernels.CODE] == kernels.RANGE and layout.guessed:
        return places(buffer, layout._replace(format="conllu"), picks)
    if report[kernels.CODE] != kernels.FINE:
        raise LolsError(_explain(buffer, layout, report))
    tokens, sentences = int(report[kernels.TOKENS]), int(report[kernels.SENTENCES])
    return layout.format, Places(
        _fitted(offsets, 1, sentences + 1)[0],
        _fitted(lines, 1, tokens)[0],
        _fitted(begin, len(picks), tokens),
        _fitted(end, len(picks), tokens),
    )


def _fitted(array: np.ndarray, rows: int, size: int) -> np.ndarray:
    """The rows of an array cut down to a size, in place: new memory would take longer than the copying."""
    room = array.size // max(rows, 1)
    for row in range(1, rows):
        array[row * size : (row + 1) * size] = array[row * room : row * room + size]
    array.resize(rows * size, refcheck=False)  # nothing else refers to it
    return array.reshape(rows, size)


def _explain(buffer: np.ndarray, layout: TokenLayout, report: np.ndarray) -> str:
    """The message for what a kernel reports."""
    code, line, found, place = report[: kernels.PLACE + 1].tolist()
    where = f"{layout.path}, line {line}:"
    title = TITLES[layout.format]
    if code == kernels.COUNT and layout.format in ("conllu", "conllx"):
        return f"{where} {found} columns, but {title} has {layout.width}; separate them by single tabs"
    if code == kernels.COUNT:
        if layout.format == "columns" and layout.width == 1:
            return f"{where} {found} words instead of one; {ONE_WORD}"
        hint = "" if layout.format == "tsv" else f" (of a text: {ONE_WORD}), or use format='tsv' if only tabs separate"
        return (
            f"{where} {found} columns, but {layout.width} in line {layout.line}; give all lines the same number{hint}"
        )
    if code == kernels.EMPTY_SENTENCE:
        return f"{where} a sentence without any word begins here; remove it, or the blank line that cuts it off"
    if code == kernels.EMPTY_FORM:
        return f"{where} the word in column {layout.form + 1} is empty; write it, or _ for none"
    text = buffer[place : place + 40].tobytes().split(b"\t")[0].decode(errors="replace")
    if code == kernels.IDENTITY:
        return f"{where} the id {text!r} is not a CoNLL-U id (such as 3, 3-4 or 5.1); number words from 1"
    return f"{where} the id {text!r} is one of CoNLL-U, not of CoNLL-X; read the file with format='conllu'"
