"""What the first lines of a comma-separated file tell: the separator, and whether the first one is a line of names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lols.errors import LolsError
from lols.io.opening import opened, reading

__all__ = ["Head", "look", "records"]

BOM = b"\xef\xbb\xbf"  # how some programs begin UTF-8 text
SEPARATORS = ",;\t|"
LINES = 101  # how many lines are looked at
SAMPLE, LONGEST = 1 << 20, 1 << 30
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
ABSENT = {"", "?", "-", "na", "n/a", "nan", "null", "none"}  # cells that tell nothing about a column


class Head(NamedTuple):
    """How a comma-separated file is laid out."""

    path: str
    separator: str
    columns: int
    names: list[str] | None  # the first line, if it has names
    start: int  # where the rows begin, in uncompressed bytes
    line: int  # the number of the line that begins there


def look(
    path: str, separator: str | None = None, header: bool | None = None, known: Sequence[str] | None = None
) -> Head:
    """Look at the first lines of a file; where the `known` names are all in the first line, it is one of names.

    >>> import tempfile; path = tempfile.mkdtemp() + "/ages.csv"
    >>> _ = open(path, "w").write("name;age\\nAda;36\\n")
    >>> look(path)[1:]
    (';', 2, ['name', 'age'], 9, 2)
    """
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise LolsError(f"separator: {separator!r} cannot be one; give one ASCII character, such as ',' or '\\t'")
    with opened(path) as stream, reading(path):
        sample = _sample(stream)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LolsError(f"{path}: is UTF-16; save it as UTF-8")
    start = len(BOM) if sample.startswith(BOM) else 0
    text = sample[start:].decode("utf-8", "surrogateescape")  # so that each character is so many bytes
    if separator is None:
        tab = path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        separator = "\t" if tab else _separator(text)
    found = list(records(text, separator))
    if not found:
        raise LolsError(f"{path}: is empty; give a table with a row of data")
    cells = [record.cells for record in found]
    if header is None:
        again = known is not None and sorted(known) == sorted(cell.strip() for cell in cells[0])
        header = again or _has_names(cells[0], cells[1:])
    if not header:
        return Head(path, separator, len(cells[0]), None, start, 1)
    if len(found) == 1:
        raise LolsError(f"{path}: has a line of column names and no row of data; add one, or say that it has no header")
    names = [cell.strip() for cell in cells[0]]
    _check_names(path, names, found[0].line)
    before = text[: found[0].end].encode("utf-8", "surrogateescape")
    return Head(path, separator, len(names), names, start + len(before), found[0].line + 1)


def _check_names(path: str, names: Sequence[str], line: int) -> None:
    """Whether the bytes of the names are text; those of the rows are checked when they are read."""
    for name in names:
        for character in name:
            if character == "\0" or "\udc80" <= character <= "\udcff":
                byte = character.encode("utf-8", "surrogateescape")[0]
                what = "a zero byte" if byte == 0 else f"byte 0x{byte:02x} is not UTF-8"
                raise LolsError(f"{path}, line {line}: {what}; save the table as UTF-8 text")


class Record(NamedTuple):
    """A row of a file, where it ends, and the line at which it does."""

    cells: list[str]
    end: int
    line: int


def _sample(stream: Any) -> bytes:
    """The first lines."""
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


def records(text: str, separator: str) -> Iterator[Record]:
    """The first rows, without blank lines."""
    end, count = 0, 0

    def lines() -> Iterator[str]:
        nonlocal end
        for line in io.StringIO(text, newline=""):
            end += len(line)
            yield line

    limit = csv.field_size_limit(LONGEST)
    try:
        reader = csv.reader(lines(), delimiter=separator)
        for cells in reader:
            if cells:
                yield Record(cells, end, reader.line_num)
                count += 1
            if count == LINES:
                return
    finally:
        csv.field_size_limit(limit)


def _separator(text: str) -> str:
    """The character that gives the same number of columns in all lines, as many as possible; else in most of them."""
    best, chosen = (False, 0), ","
    for character in SEPARATORS:
        counts = [len(record.cells) for record in records(text, character)]
        columns, lines = Counter(counts).most_common(1)[0] if counts else (0, 0)
        if columns > 1 and 10 * lines >= 9 * len(counts):
            found = (lines == len(counts), columns)
            if found > best:
                best, chosen = found, character
    return chosen


def _has_names(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a line is one of names: no number in it, and numbers below, or its cells nowhere below."""
    # The first name may be missing: this is how tables are written whose rows have names, too.
    if any(NUMBER.fullmatch(cell) for cell in first) or not all(cell.strip() for cell in first[1:]):
        return False
    if len(first) == 1 and not first[0].strip():
        return False
    columns = [[row[k] for row in rows if k < len(row)] for k in range(len(first))]
    for name, column in zip(first, columns, strict=True):
        telling = [cell for cell in column if cell.strip().lower() not in ABSENT]
        if telling and all(NUMBER.fullmatch(cell) for cell in telling) and name.strip().lower() not in ABSENT - {""}:
            return True
    if len({cell.strip() for cell in first}) < len(first):
        return False
    return not any(cell in column for cell, column in zip(first, columns, strict=True))


# --- files ------------------------------------------------------------------------------------------------------------
