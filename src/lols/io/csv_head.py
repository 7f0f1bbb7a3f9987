"""The first lines of a CSV file: the separator, the number of columns, and whether the first row holds column names."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lols.errors import LolsError, shown
from lols.io.opening import BOM, first_bad_byte, not_text, opened, reading, without_compression

SEPARATORS = ",;\t|"
ROWS = 101  # that are looked at
SAMPLE, LONGEST = 1 << 20, 1 << 30  # bytes that are looked at; bytes of the longest row
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
ABSENT = {"", "?", "-", "na", "n/a", "nan", "null", "none"}  # cells that do not show what a column holds


class Head(NamedTuple):
    """The layout of a CSV file."""

    path: str
    separator: str
    columns: int
    names: list[str] | None  # the first row, if it holds names
    start: int  # where the rows begin, in uncompressed bytes
    line: int  # the number of the line that begins there


def read_head(
    path: str, separator: str | None = None, header: bool | None = None, names: Sequence[str] | None = None
) -> Head:
    """Find the layout of a file; a first row with exactly these `names`, in any order, is a header.

    >>> import tempfile; path = tempfile.mkdtemp() + "/ages.csv"
    >>> _ = open(path, "w").write("name;age\\nAda;36\\n")
    >>> read_head(path)[1:]
    (';', 2, ['name', 'age'], 9, 2)
    """
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise LolsError(f"separator: {separator!r} cannot be one; give one ASCII character, such as ',' or '\\t'")
    with opened(path) as stream, reading(path):
        sample = _sample(stream)
    start = len(BOM) if sample.startswith(BOM) else 0
    text = sample[start:].decode("utf-8", "surrogateescape")  # encodes to the same bytes again
    if separator is None:
        tab = without_compression(path).endswith((".tsv", ".tab"))
        separator = "\t" if tab else _separator(text)
    rows = _first_records(text, separator)
    if not rows:
        raise LolsError(f"{path}: is empty; give a table with a row of data")
    first, others = rows[0], rows[1:]
    end = start + len(text[: first.end].encode("utf-8", "surrogateescape"))
    if (place := first_bad_byte(sample[:end])) >= 0:
        raise not_text(sample, place, path, 1 + sample.count(b"\n", 0, place))
    stripped = [cell.strip() for cell in first.cells]
    if header is None:
        named = names is not None and sorted(names) == sorted(stripped)
        header = named or _has_names(first.cells, [record.cells for record in others])
    if not header:
        return Head(path, separator, len(stripped), None, start, 1)
    if not others:
        raise LolsError(f"{path}: has a row of column names and no row of data; add one, or say that it has no header")
    return Head(path, separator, len(stripped), stripped, end, first.last_line + 1)


def _sample(stream: Any) -> bytes:
    """The first lines: at least one, and whole ones where the file goes on."""
    wanted, sample = SAMPLE, b""
    while data := stream.read(wanted - len(sample)):
        sample += data
        if len(sample) == wanted:
            if b"\n" in sample or b"\r" in sample or wanted >= LONGEST:
                break
            wanted *= 4
    if len(sample) == wanted:
        sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b"\r")) + 1] or sample
    return sample


class Record(NamedTuple):
    """A row, where it ends in the text, and its first and last line."""

    cells: list[str]
    end: int
    line: int
    last_line: int


def records(lines: Iterable[str], separator: str) -> Iterator[Record]:
    """The rows in lines of text, read by Python's csv module; blank lines are left out."""
    end, line = 0, 1

    def counted() -> Iterator[str]:
        nonlocal end
        for text in lines:
            end += len(text)
            yield text

    limit = csv.field_size_limit(LONGEST)
    try:
        reader = csv.reader(counted(), delimiter=separator)
        for cells in reader:
            if cells:
                yield Record(cells, end, line, reader.line_num)
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _first_records(text: str, separator: str) -> list[Record]:
    return list(itertools.islice(records(io.StringIO(text, newline=""), separator), ROWS))


def _separator(text: str) -> str:
    """The character that gives the same number of columns in all rows, as many as possible; else in most rows."""
    best, chosen = (False, 0), ","
    for character in SEPARATORS:
        counts = [len(record.cells) for record in _first_records(text, character)]
        columns, rows = Counter(counts).most_common(1)[0] if counts else (0, 0)
        if columns > 1 and 10 * rows >= 9 * len(counts):
            quality = (rows == len(counts), columns)
            if quality > best:
                best, chosen = quality, character
    return chosen


def _has_names(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: it has no number, and a column has numbers below it or no cell repeats one."""
    # The first name may be missing: tables whose rows have names, too, are written like that.
    if any(NUMBER.fullmatch(cell) for cell in first) or not all(cell.strip() for cell in first[1:]):
        return False
    if len(first) == 1 and not first[0].strip():
        return False
    columns = [[row[k] for row in rows if k < len(row)] for k in range(len(first))]
    for name, column in zip(first, columns, strict=True):
        present = [cell for cell in column if cell.strip().lower() not in ABSENT]
        if present and all(NUMBER.fullmatch(cell) for cell in present) and name.strip().lower() not in ABSENT - {""}:
            return True
    if len({cell.strip() for cell in first}) < len(first):
        return False
    return not any(cell in column for cell, column in zip(first, columns, strict=True))


def check_distinct(names: Sequence[str], place: str = "", fix: str = "rename one") -> None:
    """Raise an error that begins with a place if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LolsError(f"{place}two columns are called {shown(name)}; {fix}")
        seen.add(name)
