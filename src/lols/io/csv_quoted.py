"""The slow way to read comma-separated files, for what the kernels leave aside: quotes in quotes, and complaints."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from lols.errors import LolsError
from lols.io.conll_scan import check, newlines
from lols.io.csv_head import LONGEST, Head, records
from lols.io.opening import opened, reading, reason

__all__ = ["BYTE", "LEAST", "TEXT", "LinePiece", "Mark", "complaint", "line_of", "quoted"]

TEXT = pa.dictionary(pa.int32(), pa.string())
BYTE = 4  # what a scan may end with besides the kernel's codes: a byte that is zero or not UTF-8
LEAST = 1 << 20  # the smallest block for Arrow's reader: a row must fit in


class Mark(NamedTuple):
    """A batch begins with this row, in this line; `plain` if each row of it is a line."""

    row: int
    line: int
    plain: bool


class LinePiece(NamedTuple):
    """Whole lines; behind them is room for what the kernels look at in vain."""

    memory: bytearray
    size: int
    plain: bool = True

    def content(self) -> np.ndarray:
        """The lines."""
        return np.frombuffer(self.memory, np.uint8, self.size)


def line_of(head: Head, row: int) -> int:
    """The line of a row of a file, found by reading the file."""
    limit = csv.field_size_limit(LONGEST)
    with opened(head.path) as stream, reading(head.path):
        stream.read(head.start)
        text = io.TextIOWrapper(stream, "utf-8", "replace", newline="")
        lines = csv.reader(text, delimiter=head.separator)
        begin = 0
        try:
            for cells in lines:
                row -= bool(cells)
                if row < 0:
                    break
                begin = lines.line_num
        finally:
            csv.field_size_limit(limit)
            text.detach()
    return head.line + begin


def complaint(head: Head, content: np.ndarray, code: int, place: int, line: int) -> LolsError:
    """What is wrong at a place of a piece whose first line has this number."""
    line += int(newlines(content[:place]))
    where = f"{head.path}, line {line}"
    if code == BYTE:
        what = "a zero byte" if content[place] == 0 else f"byte 0x{content[place]:02x} is not UTF-8"
        return LolsError(f"{where}: {what}; save the table as UTF-8 text")
    text = content[place : place + LEAST].tobytes().decode("utf-8", "replace")
    cells = next(records(text, head.separator)).cells
    return _wrong_count(head, line, len(cells), text.split("\n", 1)[0].rstrip("\r"))


def _wrong_count(head: Head, line: int, found: int, text: str) -> LolsError:
    """A row that has too few columns or too many."""
    text = text if len(text) <= 60 else text[:57] + "..."
    fix = "correct the row, or name the separator"
    return LolsError(f"{head.path}, line {line}: {found} columns instead of {head.columns}: {text!r}; {fix}")


class _Lines(io.RawIOBase):
    """Pieces as a file for Arrow to read, each byte checked."""

    def __init__(self, head: Head, pieces: Iterator[LinePiece], line: int):
        self.head, self.pieces, self.line = head, pieces, line
        self.view = memoryview(b"")

    def readable(self) -> bool:
        """Of course."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or all; fewer at the end only, since Arrow takes what it gets for a block."""
        parts: list[bytes] = []
        while size != 0 and (self.view or self._next()):
            taken = len(self.view) if size < 0 else min(size, len(self.view))
            parts.append(bytes(self.view[:taken]))
            self.view = self.view[taken:]
            size -= taken if size > 0 else 0
        return b"".join(parts)

    def _next(self) -> bool:
        """Take the next piece, if there is one."""
        piece = next(self.pieces, None)
        if piece is None:
            return False
        content = piece.content()
        if (place := int(check(content, content.view(np.int8)))) >= 0:
            raise complaint(self.head, content, BYTE, place, self.line)
        self.line += int(newlines(content))
        self.view = memoryview(content.tobytes())
        return True


def quoted(
    head: Head,
    order: list[int],
    names: list[str],
    block: int,
    pieces: Iterator[LinePiece],
    row: int,
    line: int,
    note: Callable[[Mark], None],
) -> Iterator[Any]:
    """The rest of a file, by Arrow's reader."""
    wrong: list[Any] = []

    def noted(row: Any) -> str:
        wrong.append(row)
        return "error"

    kept = [f"{c}" for c in range(head.columns)]
    first = row
    try:
        reader = pyarrow.csv.open_csv(
            pa.PythonFile(_Lines(head, pieces, line), mode="r"),
            pyarrow.csv.ReadOptions(column_names=kept, use_threads=False, block_size=block),
            pyarrow.csv.ParseOptions(
                delimiter=head.separator,
                newlines_in_values=True,
                invalid_row_handler=noted,
            ),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(kept, TEXT), null_values=[]),
        )
        for batch in reader:
            note(Mark(row, line, False))
            row += batch.num_rows
            if batch.num_rows:
                schema = pa.schema([(name, TEXT) for name in names])
                yield pa.RecordBatch.from_arrays([batch.column(c) for c in order], schema=schema)
    except pa.ArrowInvalid as error:
        if wrong:
            bad = wrong[0]
            raise _wrong_count(head, line_of(head, first + bad.number - 1), bad.actual_columns, bad.text) from None
        raise LolsError(f"{head.path}, line {line} or later: {reason(error)}; is a quote left open?") from None
