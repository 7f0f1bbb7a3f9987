"""CSV files as Arrow record batches: read in pieces of whole lines, each scanned by the kernels of `csv_scan`.

Pieces are scanned ahead, in several threads if asked for, as long as quotes only enclose whole cells. From the first
piece on with other quotes, a lone carriage return, or a cut inside a quoted cell, the file is scanned with care: one
piece after the other, each beginning where the last complete row of the one before ended.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lols.errors import LolsError, shown
from lols.io import csv_scan as kernels
from lols.io.csv_head import LONGEST, Head, records
from lols.io.opening import first_bad_byte, is_compressed, not_text, opened, reading

TEXT = pa.dictionary(pa.int32(), pa.string())
BAD_BYTE = -1  # what a scan may end with besides the kernel's codes
SHOWN = 1 << 20  # bytes of a wrong row that are looked at


class Mark(NamedTuple):
    """A batch begins with this row, in this line; `plain` if each of its rows is one line."""

    row: int
    line: int
    plain: bool


class LinePiece(NamedTuple):
    """Whole lines, `size` bytes in memory that has `PADDING` bytes more."""

    memory: bytearray
    size: int

    def content(self, begin: int = 0) -> bytes:
        """The bytes from a place on."""
        return bytes(memoryview(self.memory)[begin : self.size])


class Scanned(NamedTuple):
    """The rows of a piece up to a place, or the code and the place of what is wrong."""

    code: int
    place: int
    rows: int
    lines: int  # before the place
    batch: Any = None


def read_batches(
    head: Head, order: list[int], names: list[str], piece: int, threads: int, note: Callable[[Mark], None]
) -> Iterator[Any]:
    """The rows of a file in batches, the columns in this order and under these names; `note` is called for each."""
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(opened(head.path))
        pieces, scanner = _Pieces(stream, head, piece), _Scanner(head, order, names)
        # With one thread, only compressed files are read and scanned at the same time.
        workers = threads if threads > 1 else int(is_compressed(stream))
        pool = stack.enter_context(ThreadPoolExecutor(workers)) if workers else None
        waiting: deque[tuple[LinePiece, Callable[[], Scanned]]] = deque()
        careful = False
        row, line = 0, head.line
        while True:
            while len(waiting) <= workers and (part := pieces.next()) is not None:
                waiting.append((part, pool.submit(scanner, part).result if pool else partial(scanner, part, careful)))
            if not waiting:
                return
            part, result = waiting.popleft()
            scanned = result()
            if scanned.code == kernels.ODD:
                pieces.put_back(b"".join(p.content() for p in (part, *(later for later, _ in waiting))))
                waiting.clear()
                careful, workers, pool = True, 0, None
                continue
            if scanned.code == kernels.OPEN and not pieces.ended:
                pieces.carry(part.content(scanned.place), scanned.place > 0)
            elif scanned.code != kernels.FINE:
                raise _error(head, part, scanned, line + scanned.lines)
            note(Mark(row, line, scanned.rows == scanned.lines))
            row += scanned.rows
            line += scanned.lines
            pieces.spare.append(part.memory)
            if scanned.rows:
                yield scanned.batch


class _Pieces:
    """Cuts a file into pieces of whole lines, of about `size` bytes each."""

    def __init__(self, stream: Any, head: Head, size: int):
        self.stream, self.path = stream, head.path
        self.size = self.wanted = min(max(size, 1), LONGEST)
        self.rest = b""  # the beginning of the next piece
        self.again = io.BytesIO()  # to be read before the stream
        self.spare: list[bytearray] = []  # memory that can be used again
        self.ended = False
        with reading(self.path):
            stream.seek(head.start)

    def put_back(self, data: bytes) -> None:
        """Read these bytes, all since some piece, again; this is done once at most."""
        self.again, self.rest, self.ended = io.BytesIO(data + self.rest), b"", False

    def carry(self, data: bytes, progress: bool) -> None:
        """Begin the next piece with these bytes; without progress, it is twice as long."""
        self.rest = data + self.rest
        self.wanted = self.size if progress else len(self.rest)

    def next(self) -> LinePiece | None:
        """The next piece, if there is one."""
        while not self.ended:
            if len(self.rest) > LONGEST:
                raise LolsError(f"{self.path}: has a row of more than {LONGEST} bytes; is it a table, or a quote open?")
            room = len(self.rest) + self.wanted
            memory = self.spare.pop() if self.spare else bytearray(0)
            if len(memory) < room + 1 + kernels.PADDING:
                memory = bytearray(room + 1 + kernels.PADDING)
            memory[: len(self.rest)] = self.rest
            filled = self._fill(memory, len(self.rest), room)
            end, self.ended = filled, filled < room
            if not self.ended:
                end = memory.rfind(b"\n", 0, filled) + 1 or memory.rfind(b"\r", 0, filled - 1) + 1
            elif filled and memory[filled - 1] != kernels.NEWLINE:
                memory[filled] = kernels.NEWLINE
                end = filled = filled + 1
            self.rest = bytes(memoryview(memory)[end:filled])
            if end > 0 or self.ended:
                self.wanted = self.size
                return LinePiece(memory, end) if end > 0 else None
            self.wanted = len(self.rest)  # so that a long line is not copied again and again
        return None

    def _fill(self, memory: bytearray, filled: int, room: int) -> int:
        """Read until this many bytes of the memory are filled, or the file ends."""
        with memoryview(memory) as view, reading(self.path):
            for source in (self.again, self.stream):
                while filled < room and (count := source.readinto(view[filled:room])):
                    filled += count
        return filled


class _Scanner:
    """Turns pieces into batches; several threads may call it at once."""

    def __init__(self, head: Head, order: list[int], names: list[str]):
        self.head, self.order = head, order
        self.schema = pa.schema([(name, TEXT) for name in names])
        self.arenas: list[np.ndarray] = []
        self.shifts = np.full(head.columns, kernels.FIRST, np.int64)  # tables begin as large as the last ones became

    def __call__(self, piece: LinePiece, careful: bool = False) -> Scanned:
        count, memory = self.head.columns, piece.memory
        buffer = np.frombuffer(memory, np.uint8)
        lines = int(kernels.line_ends(buffer, piece.size))
        width = 16 * (lines // 16 | 1) + 32  # an odd number of cache lines, so that columns do not share their sets
        block = pa.allocate_buffer(4 * width * count)
        codes = np.frombuffer(block, np.int32).reshape(count, width)
        tables, report = np.empty((count, kernels.WIDTH), np.int64), np.empty(kernels.CELLS, np.int64)
        shifts = self.shifts
        least = int(kernels.need(1 << (64 - shifts)).sum())
        arena = self.arenas.pop() if self.arenas else np.empty(0, np.uint64)
        if arena.size < least:
            arena = np.empty(2 * least, np.uint64)
        with np.errstate(over="ignore"):  # hashes wrap around
            kernels.prepare(shifts, tables, arena, report)
            while True:
                kernels.scan(buffer, piece.size, ord(self.head.separator), careful, codes, tables, arena, report)
                if report[kernels.CODE] != kernels.ROOM:
                    break
                grown = np.empty(4 * arena.size, np.uint64)
                grown[: arena.size] = arena
                arena = grown
        code, place, rows = (int(report[k]) for k in (kernels.CODE, kernels.AT, kernels.ROW))
        batch = None
        if code in (kernels.FINE, kernels.OPEN):
            bad = first_bad_byte(memoryview(memory)[:place]) if report[kernels.RARE] else -1
            if code == kernels.OPEN:  # texts that only the incomplete row has come last: leave them out
                tables[:, kernels.COUNT] = codes[:, :rows].max(axis=1, initial=-1) + 1
            if bad >= 0:
                code, place = BAD_BYTE, bad
            else:
                batch = self._batch(buffer, block, codes[:, :rows], tables, arena)
        self.arenas.append(arena)
        self.shifts = tables[:, kernels.SHIFT].copy()
        lines = lines if place == piece.size else int(kernels.line_ends(buffer, place))
        return Scanned(code, place, rows, lines, batch)

    def _batch(self, buffer: np.ndarray, block: Any, codes: np.ndarray, tables: np.ndarray, arena: np.ndarray) -> Any:
        counts = tables[:, kernels.COUNT].tolist()
        offsets = np.empty(sum(counts) + len(counts), np.int32)
        texts = np.empty(int(tables[:, kernels.BYTES].sum()), np.uint8)
        kernels.fill(buffer, tables, arena, offsets, texts)
        ends, content = pa.py_buffer(offsets), pa.py_buffer(texts)
        columns, at, begin = [], 0, 0
        for c, distinct in enumerate(counts):
            numbers = pa.Array.from_buffers(
                pa.int32(), codes.shape[1], [None, block.slice(c * codes.strides[0], 4 * codes.shape[1])]
            )
            places, size = ends.slice(4 * at, 4 * distinct + 4), int(offsets[at + distinct])
            strings = pa.StringArray.from_buffers(distinct, places, content.slice(begin, size))
            columns.append(_column(numbers, strings, bool(tables[c, kernels.ESCAPED])))
            at += distinct + 1
            begin += size
        return pa.RecordBatch.from_arrays([columns[c] for c in self.order], schema=self.schema)


def _column(numbers: Any, strings: Any, escaped: bool) -> Any:
    """A column of a batch, each of its texts once."""
    if escaped:
        texts = [_unquoted(text) for text in strings.to_pylist()]
        strings = pa.array(texts, pa.string())
        if len(set(texts)) < len(texts):
            return pc.take(strings, numbers).dictionary_encode()
    return pa.DictionaryArray.from_arrays(numbers, strings, safe=False)


def _unquoted(text: str) -> str:
    """A cell without its quotes; other cells do not begin with one.

    >>> _unquoted('"an ""ox"" "'), _unquoted('"a" b'), _unquoted("plain")
    ('an "ox" ', 'a b', 'plain')
    """
    if not text.startswith('"'):
        return text
    quoted, _, rest = text[1:].replace('""', "\0").partition('"')
    return quoted.replace("\0", '"') + rest.replace("\0", '""')


def line_of(head: Head, row: int) -> int:
    """The line of a row of a file, found by reading the file."""
    with opened(head.path) as stream, reading(head.path):
        stream.read(head.start)
        text = io.TextIOWrapper(stream, "utf-8", "replace", newline="")
        try:
            return head.line - 1 + next(itertools.islice(records(text, head.separator), row, None)).line
        finally:
            text.detach()


def _error(head: Head, piece: LinePiece, scanned: Scanned, line: int) -> LolsError:
    """What is wrong at a place of a piece, in this line."""
    if scanned.code == BAD_BYTE:
        return not_text(piece.content(), scanned.place, head.path, line)
    place = f"{head.path}, line {line}"
    if scanned.code == kernels.OPEN:
        return LolsError(f"{place}: a quote opens in this row and is never closed; close it")
    text = piece.content(scanned.place)[:SHOWN].decode("utf-8", "replace")
    count = len(next(records(io.StringIO(text, newline=""), head.separator)).cells)
    row = text.split("\n", 1)[0].rstrip("\r")
    fix = "correct the row, or name the separator"
    return LolsError(f"{place}: {count} columns instead of {head.columns}: {shown(row)}; {fix}")
