"""Write labels into columns of a token-per-line file, and keep every other byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lols.errors import LolsError
from lols.io.conll_layout import NAMES, TITLES, TokenLayout, find_layout, has_keys, resolve
from lols.io.conll_scan import NEWLINE, TAB, fill
from lols.io.conll_tokens import Sentences, parse, places
from lols.io.opening import BOM
from lols.io.strings import Texts

ABSENT = ("", "_")  # labels for a missing value


def replace(sentences: Sentences, column: str | int, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """The bytes of sentences, with one column's texts replaced.

    Parameters
    ----------
    sentences
        as read
    column
        any column of the file, asked for in reading or not; in plain columns and TSV also the one after the last,
        which is appended; or a key such as ``feats:Case``, which the labels ``_`` and the empty one remove
    labels, numbers
        token t gets ``labels[numbers[t]]``

    >>> from lols.io import conll
    >>> two = conll.parse(b"The DT\\r\\ncat  NN", ["form"])
    >>> conll.replace(two, "2", ["NN", "DET"], np.array([1, 0]))
    b'The DET\\r\\ncat  NN'
    >>> conll.replace(two, "3", ["B", "I"], np.array([0, 1]))
    b'The DT B\\r\\ncat  NN I'
    """
    column = str(column)
    labels = list(labels)
    numbers = np.ascontiguousarray(numbers, np.int64)
    keyed = has_keys(column, sentences.format)
    _check(sentences, labels, numbers, keyed)
    if numbers.size == 0:
        return sentences.buffer.tobytes()
    if column in sentences.columns and not keyed:
        row = sentences.columns.index(column)
        if sentences.end[row].any():  # or else the column is missing
            return _fill(sentences, sentences.begin[row], sentences.end[row], labels, numbers)
    found = _find(sentences, column)
    if found.appended:
        return _append(sentences, column, found, labels, numbers)
    if found.key:
        labels, numbers = _cells(sentences, found, labels, numbers)
    return _fill(sentences, found.begin, found.end, labels, numbers)


def replace_columns(sentences: Sentences, changes: Mapping[str, tuple[Sequence[str], np.ndarray]]) -> bytes:
    """The bytes of sentences, with the texts of several columns replaced; keys and missing columns are refused.

    >>> from lols.io import conll
    >>> two = conll.parse(b"The DT 2\\ncat NN 0", ["form"])
    >>> conll.replace_columns(two, {"3": (["0", "1"], np.array([0, 1])), "2": (["X"], np.array([0, 0]))})
    b'The X 0\\ncat X 1'
    """
    begins, ends, numbers = [], [], []
    labels: list[str] = []
    for column, (names, chosen) in changes.items():
        chosen = np.ascontiguousarray(chosen, np.int64)
        _check(sentences, list(names), chosen, False)
        if column in sentences.columns and sentences.end[sentences.columns.index(column)].any():
            row = sentences.columns.index(column)
            begins.append(sentences.begin[row])
            ends.append(sentences.end[row])
        elif chosen.size:
            found = _find(sentences, column)
            if found.appended or found.key:
                raise LolsError(f"{sentences.path}: there is no column {column!r} to be replaced; add it first")
            begins.append(found.begin)
            ends.append(found.end)
        numbers.append(chosen + len(labels))
        labels += names
    if not begins:
        return sentences.buffer.tobytes()
    order = np.argsort([begin[0] for begin in begins])  # columns stand in the same order in every line
    interleaved = (np.stack([arrays[k] for k in order], axis=1).reshape(-1) for arrays in (begins, ends, numbers))
    begin, end, number = interleaved
    return _fill(sentences, begin, end, labels, number)


def add_confidence(data: bytes, sentences: Sentences, confidence: Mapping[str, np.ndarray]) -> bytes:
    """Bytes with the lines of sentences, and the confidence in what was predicted: one number a token for each name.

    In CoNLL-U they go to MISC, as `UposConfidence=0.9871` for the name `upos`; elsewhere they are appended as columns.

    >>> from lols.io import conll
    >>> data = b"The DT\\r\\ncat NN"
    >>> conll.add_confidence(data, conll.parse(data, ["form"]), {"2": np.array([1.0, 0.51239])})
    b'The DT 1.0000\\r\\ncat NN 0.5124'
    """
    if sentences.format == "conllx":
        raise LolsError(f"{sentences.path}: CoNLL-X has no place for confidence; give CoNLL-U, plain columns or TSV")
    lines = data.split(b"\n")
    ends = np.flatnonzero(sentences.buffer == NEWLINE)
    at = np.searchsorted(ends, sentences.begin[0]).tolist()  # the lines of the tokens, of which each has a form
    texts = [[f"{value:.4f}" for value in values.tolist()] for values in confidence.values()]
    keys = ["".join(part[:1].upper() + part[1:] for part in f"{name}:confidence".split(":")) for name in confidence]
    for line, values in zip(at, zip(*texts, strict=True), strict=True):
        cells = lines[line].removesuffix(b"\r")
        rest = lines[line][len(cells) :]
        if sentences.format == "conllu":
            before, tab, misc = cells.rpartition(b"\t")
            cell = misc.decode()
            for key, value in zip(keys, values, strict=True):
                cell = _cell(cell, key, value, False)
            lines[line] = before + tab + cell.encode() + rest
        else:
            between = "\t" if sentences.format == "tsv" or b"\t" in cells else " "
            lines[line] = cells + "".join(between + value for value in values).encode() + rest
    if sentences.format == "tsv" and at and (above := [k for k in range(at[0]) if lines[k].strip()]):
        header = lines[above[-1]].removesuffix(b"\r")  # only a header stands before the first token
        lines[above[-1]] = header + "".join(f"\t{key}" for key in keys).encode() + lines[above[-1]][len(header) :]
    return b"\n".join(lines)


def as_conllu(sentences: Sentences) -> Sentences:
    """Words alone as CoNLL-U, with nothing in the other columns; what was asked for is asked for again.

    >>> from lols.io import conll
    >>> as_conllu(conll.parse(b"It\\nrains\\n", ["form", "upos"], optional=["upos"])).buffer.tobytes()
    b'1\\tIt\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\n2\\trains\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\n\\n'
    """
    _, found = places(sentences.buffer, _layout(sentences, header=False), [0])
    words = Texts(sentences.buffer, found.begin[0], found.end[0]).strings()[-sentences.lines.size :]  # without a header
    empty = "\t_" * (len(NAMES) - 2)
    blocks = [
        "".join(f"{k}\t{word}{empty}\n" for k, word in enumerate(words[first:last], 1))
        for first, last in pairwise(sentences.offsets.tolist())
    ]
    data = "".join(f"{block}\n" for block in blocks).encode()
    return parse(data, sentences.columns, path=sentences.path, format="conllu")


def _check(sentences: Sentences, labels: list[str], numbers: np.ndarray, keyed: bool) -> None:
    """Raise an error for labels that would not be read back as one cell."""
    tokens = sentences.lines.size
    if numbers.shape != (tokens,):
        raise LolsError(f"{sentences.path}: {tokens} tokens, but {numbers.size} labels for them; give each token one")
    if tokens and not 0 <= numbers.min() <= numbers.max() < len(labels):
        raise LolsError(
            f"{sentences.path}: a label has a number that is not between 0 and {len(labels) - 1}; correct it"
        )
    plain = sentences.format == "columns"
    forbidden = re.compile("[\t\n\r\0\ud800-\udfff" + " " * plain + "|" * keyed + "]")
    for k in np.flatnonzero(np.bincount(numbers, minlength=1)).tolist():
        if forbidden.search(labels[k]) or (plain and not labels[k]):
            place = f"a cell of {TITLES[sentences.format]}"
            raise LolsError(f"{sentences.path}: the label {labels[k]!r} cannot be {place}; rename it")


class _Found(NamedTuple):
    """The places of the texts of a column that was not read."""

    begin: np.ndarray  # of the last column if one is to be appended
    end: np.ndarray
    key: bytes
    sorted: bool  # whether keys are to be kept in order
    appended: bool
    header: int  # where the header ends that gets one more name, or -1


def _find(sentences: Sentences, column: str) -> _Found:
    """Scan the buffer again."""
    path, format, tokens = sentences.path, sentences.format, sentences.lines.size
    if format in ("conllu", "conllx"):
        index, key = resolve(column, _layout(sentences))
        found = places(sentences.buffer, _layout(sentences), [index])[1]
        return _Found(found.begin[0], found.end[0], key, column.lower().startswith("feats:"), False, -1)
    layout = _layout(sentences)
    _, found = places(sentences.buffer, layout, [layout.width - 1])
    header = -1
    if found.lines.size == tokens + 1:  # only a header looks like a token without being one
        header = int(found.end[0, 0])
        layout = _layout(sentences, header=True)
    asked = column in sentences.columns  # and missing, since it is searched for here
    if format == "tsv" and not layout.names and not asked and _is_name(column) and found.lines[0] < sentences.lines[0]:
        # The header was in an earlier piece of the file.
        raise LolsError(f"{path}: {column!r} is not among the columns read; ask for it there, too (it may be optional)")
    if column == str(layout.width + 1) or (asked and _is_name(column)):
        return _Found(found.begin[0, -tokens:], found.end[0, -tokens:], b"", False, True, header)
    index, _ = resolve(column, layout)
    if index != layout.width - 1:
        _, found = places(sentences.buffer, layout, [index])
    return _Found(found.begin[0, -tokens:], found.end[0, -tokens:], b"", False, False, -1)


def _layout(sentences: Sentences, header: bool = False) -> TokenLayout:
    """The layout of sentences that have been read."""
    fixed = sentences.format in ("conllu", "conllx")  # so that only the byte order mark matters
    data = sentences.buffer[: len(BOM) if fixed else None].tobytes()
    layout = find_layout(data, sentences.path, (), sentences.format, header, 1, True)
    assert layout is not None
    return layout._replace(form=-1)


def _is_name(column: str) -> bool:
    return not column.isdecimal() and column != "last"


def _append(sentences: Sentences, column: str, found: _Found, labels: list[str], numbers: np.ndarray) -> bytes:
    """The bytes with a new last column, after the separator of the line."""
    before = np.maximum(found.begin - 1, 0)
    tabs = sentences.buffer[before] == TAB
    if sentences.format == "tsv":
        tabs[:] = True
    numbers = numbers + len(labels) * tabs
    labels = [" " + label for label in labels] + ["\t" + label for label in labels] + ["\t" + column]
    end = found.end
    if found.header >= 0:
        end = np.concatenate([[found.header], end])
        numbers = np.concatenate([[len(labels) - 1], numbers])
    return _fill(sentences, end, end, labels, numbers)


def _cells(sentences: Sentences, found: _Found, labels: list[str], numbers: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The distinct cells with the values of their keys replaced, and the number of the cell of each token."""
    seen: dict[tuple[bytes, int], int] = {}
    cells: list[str] = []
    result = np.empty_like(numbers)
    for t, (begin, end, number) in enumerate(zip(found.begin.tolist(), found.end.tolist(), numbers.tolist())):
        old = sentences.buffer[begin:end].tobytes()
        if (old, number) not in seen:
            seen[old, number] = len(cells)
            cells.append(_cell(old.decode(), found.key.decode(), labels[number], found.sorted))
        result[t] = seen[old, number]
    return cells, result


def _cell(cell: str, key: str, value: str, ordered: bool) -> str:
    """One cell with the value of a key set, or removed.

    >>> _cell("Gender=Fem|number=Sing", "Mood", "Ind", True), _cell("A=1", "A", "_", True)
    ('Gender=Fem|Mood=Ind|number=Sing', '_')
    """
    items = [] if cell in ABSENT else cell.split("|")
    keys = [item.partition("=")[0] if "=" in item else None for item in items]
    if value in ABSENT:
        if key not in keys:
            return cell
        del items[keys.index(key)]
        return "|".join(items) or "_"
    if key in keys:
        items[keys.index(key)] = f"{key}={value}"
    else:
        # Universal Dependencies require FEATS to be sorted, ignoring case; MISC may have any order.
        later = [k for k, item in enumerate(items) if item.lower().partition("=")[0] > key.lower()] if ordered else []
        items.insert(later[0] if later else len(items), f"{key}={value}")
    return "|".join(items)


def _fill(sentences: Sentences, begin: np.ndarray, end: np.ndarray, labels: list[str], numbers: np.ndarray) -> bytes:
    """The buffer with labels in place of slices."""
    if "" in labels and sentences.format in ("conllu", "conllx"):
        # An empty cell may stay empty, but a text is not replaced by an empty cell.
        empty = np.array([label == "" for label in labels])
        numbers = np.where(empty[numbers] & (end > begin), len(labels), numbers)
        labels = [*labels, "_"]
    texts = [label.encode("utf-8", "replace") for label in labels]  # only labels without a token need replacing
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    buffer = sentences.buffer
    size = buffer.size + int(np.diff(starts)[numbers].sum() - (end - begin).sum())
    out = np.empty(size, np.uint8)
    fill(buffer, begin, end, numbers, np.frombuffer(b"".join(texts), np.uint8), starts, out)
    return out.tobytes()
