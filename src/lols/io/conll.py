"""Token-per-line files (CoNLL-U, CoNLL-X, plain columns, TSV), read by column and written back without loss.

Texts are slices of one buffer, found by a compiled scan: no Python object is created for a token. `replace` changes one
column and keeps every other byte: comments, multi-word tokens, empty nodes, line ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.io.conll_layout import format_of_name
from lols.io.conll_scan import last_cut
from lols.io.conll_tokens import ONE_TOKEN, Reader, Sentences, newlines, parse
from lols.io.conll_write import add_confidence, as_conllu, replace, replace_columns
from lols.io.opening import opened, reading

__all__ = [
    "Sentences",
    "add_confidence",
    "as_conllu",
    "chunks",
    "glance",
    "parse",
    "read",
    "replace",
    "replace_columns",
]

STDIN = "standard input"
BLOCK = 1 << 24  # bytes read at a time
LONGEST = 1 << 20  # bytes of a line: a small compressed file may hold a huge one


def read(
    path: str | os.PathLike[str],
    columns: Sequence[str | int],
    *,
    format: str | None = None,
    header: bool | None = None,
    optional: Sequence[str | int] = (),
) -> Sentences:
    """Read a whole file, compressed or not.

    Parameters
    ----------
    path
        the file, or "-" for standard input
    columns
        names (``id``, ``form``, ``lemma``, ``upos``, ``xpos``, ``feats``, ``head``, ``deprel``, ``deps``, ``misc`` in
        CoNLL-U and CoNLL-X; those of the header in TSV; ``form`` for the first of plain columns), numbers from 1,
        ``last``, or keys inside a column: ``feats:Case``, ``misc:NER``
    format
        ``conllu``, ``conllx``, ``columns`` (separated by spaces or tabs), ``tsv`` (by tabs only) or ``words`` (one
        word on each line); otherwise the file's name or its first token decides
    header
        whether a TSV file has a line of names first; None: if a name in `columns` is in the first line
    optional
        those of `columns` that may be missing

    Returns
    -------
    Sentences
        texts that are not there (an optional column, a key) are empty

    >>> import tempfile; path = tempfile.mkdtemp() + "/chunks.txt"
    >>> _ = open(path, "w").write("The DT B-NP\\ncat NN I-NP\\n\\nIt PRP B-NP\\n")
    >>> three = read(path, ["1", "last", "4"], optional=["4"])
    >>> three.format, three.offsets.tolist(), (three.end - three.begin).tolist()
    ('columns', [0, 2, 3], [[3, 3, 2], [4, 4, 4], [0, 0, 0]])
    """
    name = _name(path)
    reader = Reader(name, columns, format, header, optional)
    with opened(path, name) as stream:
        data = _fetch(stream, sys.maxsize, name, b"", 1)
    return reader.parse(data, 1)


def chunks(
    path: str | os.PathLike[str],
    columns: Sequence[str | int],
    *,
    format: str | None = None,
    header: bool | None = None,
    optional: Sequence[str | int] = (),
    size: int = 1 << 24,
) -> Iterator[Sentences]:
    """Read a file in pieces of about `size` bytes, cut between sentences; other arguments as for `read`.

    Line numbers continue from piece to piece, and the buffers together are the file. Only the last may have no token.

    >>> import tempfile; path = tempfile.mkdtemp() + "/chunks.txt"
    >>> _ = open(path, "w").write("The DT B-NP\\ncat NN I-NP\\n\\nIt PRP B-NP\\n")
    >>> [piece.lines.tolist() for piece in chunks(path, ["1"], size=10)]
    [[1, 2], [4]]
    """
    name = _name(path)
    reader = Reader(name, columns, format, header, optional)
    with opened(path, name) as stream:
        rest, line, wanted = b"", 1, max(size, 1)
        while data := _fetch(stream, wanted, name, rest, line):
            rest += data
            cut = int(last_cut(np.frombuffer(rest, np.uint8)))
            sentences = reader.piece(memoryview(rest)[:cut], line) if cut > 0 else None
            if sentences is None:
                wanted *= 2  # so that a long sentence is not searched again and again
                continue
            yield sentences
            line += newlines(sentences.buffer)
            rest, wanted = rest[cut:], max(size, 1)
        if rest or reader.layout is None:
            yield reader.parse(rest, line)


def glance(path: str | os.PathLike[str]) -> None:
    """Look at the first piece of a file that its name calls CoNLL-U or CoNLL-X, and raise an error if it is none.

    Cheap, so that it can be done before a model is loaded, which may take long. Of other files the model has to say how
    they are read.

    >>> import tempfile; path = tempfile.mkdtemp() + "/two.conllu"
    >>> _ = open(path, "w").write("# text = no word\\n\\n")
    >>> glance(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lols.errors.LolsError: ...two.conllu, line 1: a sentence without any word begins here; remove it, or the blank ...
    """
    name = _name(path)
    if not os.path.isfile(path) or format_of_name(name) not in ("conllu", "conllx"):
        return
    with opened(path, name) as stream:
        data = _fetch(stream, BLOCK, name, b"", 1)
    cut = len(data) if len(data) < BLOCK else int(last_cut(np.frombuffer(data, np.uint8)))
    if cut > 0:
        Reader(name, (), None, None, ()).piece(memoryview(data)[:cut], 1)


def _name(path: str | os.PathLike[str]) -> str:
    return STDIN if path == "-" else os.fspath(path)


def _fetch(stream: Any, size: int, name: str, before: bytes, line: int) -> bytes:
    """The next bytes, at most `size` of them, after those `before`, which begin with a line of this number."""
    blocks: list[bytes] = []
    start = before.rfind(b"\n") + 1 - len(before)  # of the line that we are in, relative to the next block
    with reading(name):
        while size > 0 and (block := stream.read(min(size, BLOCK))):
            while start + LONGEST < len(block):
                end = block.rfind(b"\n", max(start, 0), start + LONGEST + 1)
                if end < 0:
                    earlier = (before, *blocks, block[: max(start, 0)])
                    line += sum(part.count(b"\n") for part in earlier)
                    raise LolsError(f"{name}, line {line}: has more than {LONGEST:,} bytes; {ONE_TOKEN}")
                start = end + 1
            start = (block.rfind(b"\n") + 1 or start) - len(block)
            blocks.append(block)
            size -= len(block)
    return b"".join(blocks)
