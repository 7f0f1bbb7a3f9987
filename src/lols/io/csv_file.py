"""Comma-separated files as record batches: read in pieces, and each piece scanned by the kernels of `csv_scan`.

From the first piece on that has quotes in quotes, a lone carriage return, or a cut inside a quoted cell, the file goes
through Arrow's own reader: slower, but with the same result.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lols.errors import LolsError
from lols.io import csv_scan as kernels
from lols.io.conll_scan import check, newlines
from lols.io.csv_head import LONGEST, Head
from lols.io.csv_quoted import BYTE, LEAST, TEXT, LinePiece, Mark, complaint, quoted
from lols.io.opening import opened, reading

__all__ = ["read_batches"]


class Scanned(NamedTuple):
    """What came of a piece: a batch, or a code and where the trouble is."""

    batch: Any
    code: int
    rows: int
    lines: int
    place: int


def read_batches(
    head: Head, order: list[int], names: list[str], piece: int, threads: int, note: Callable[[Mark], None]
) -> Iterator[Any]:
    """The rows of a file in batches, the columns in some order and under their names; `note` hears of each batch."""
    with contextlib.ExitStack() as stack:
        threads = max(threads, 1)
        stream = stack.enter_context(opened(head.path))
        spare: list[bytearray] = []
        pieces = _pieces(stream, head, piece, spare)
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        if hasattr(stream, "fileobj"):  # unpack the next piece while this one is scanned
            pieces = _ahead(pieces, stack.enter_context(ThreadPoolExecutor(1)))
        scanner = _Scanner(head, order, names)
        waiting: deque[tuple[LinePiece, Future[Scanned]]] = deque()
        row, line = 0, head.line
        while True:
            for part in itertools.islice(pieces, max(threads + 1 - len(waiting), 0) if threads > 1 else 1):
                waiting.append((part, pool.submit(scanner, part) if threads > 1 else _done(scanner(part))))
            if not waiting:
                return
            part, future = waiting.popleft()
            scanned = future.result()
            if scanned.code == kernels.ODD:
                rest = itertools.chain([part], (p for p, _ in waiting), pieces)
                yield from quoted(head, order, names, max(piece, LEAST), rest, row, line, note)
                return
            if scanned.code != kernels.FINE:
                raise complaint(head, part.content(), scanned.code, scanned.place, line)
            note(Mark(row, line, scanned.rows == scanned.lines))
            row += scanned.rows
            line += scanned.lines
            spare.append(part.memory)
            if scanned.rows:
                yield scanned.batch


def _done(made: Scanned) -> Future[Scanned]:
    future: Future[Scanned] = Future()
    future.set_result(made)
    return future


def _ahead(pieces: Iterator[LinePiece], pool: ThreadPoolExecutor) -> Iterator[LinePiece]:
    """The same pieces, the next one fetched by another thread."""
    future = pool.submit(next, pieces, None)
    while (piece := future.result()) is not None:
        future = pool.submit(next, pieces, None)
        yield piece


def _pieces(stream: Any, head: Head, size: int, spare: list[bytearray]) -> Iterator[LinePiece]:
    """Whole lines of about `size` bytes, in memory taken from `spare` where there is some."""
    size = min(max(size, 1), LONGEST)
    rest, wanted, more = b"", size, True
    with reading(head.path):
        stream.seek(head.start)
        while more:
            room = len(rest) + wanted
            memory = spare.pop() if spare else bytearray(0)
            if len(memory) < room + 1 + kernels.PADDING:
                memory = bytearray(room + 1 + kernels.PADDING)
            memory[: len(rest)] = rest
            filled = len(rest)
            view = memoryview(memory)
            while filled < room and (got := stream.readinto(view[filled:room])):
                filled += got
            view.release()
            more = filled == room
            end = filled
            plain = True
            if more:
                end = memory.rfind(b"\n", 0, filled) + 1
                if end == 0:
                    end, plain = memory.rfind(b"\r", 0, filled - 1) + 1, False
            elif filled and memory[filled - 1] != kernels.NEWLINE:
                memory[filled] = kernels.NEWLINE
                end = filled = filled + 1
            rest = bytes(memoryview(memory)[end:filled])
            if end == 0 and more:
                if len(rest) > LONGEST:
                    raise LolsError(f"{head.path}: has a line of more than {LONGEST} bytes; is it a table?")
                wanted = len(rest)  # or else a long line would be copied again and again
                continue
            wanted = size
            if end > 0:
                yield LinePiece(memory, end, plain)


class _Scanner:
    """Makes pieces into batches; several threads may call it."""

    def __init__(self, head: Head, order: list[int], names: list[str]):
        self.head, self.order = head, order
        self.schema = pa.schema([(name, TEXT) for name in names])
        self.arenas: list[np.ndarray] = []
        self.shifts = np.full(head.columns, kernels.FIRST, np.int64)  # tables begin as large as the last ones became

    def __call__(self, piece: LinePiece) -> Scanned:
        if not piece.plain:
            return Scanned(None, kernels.ODD, 0, 0, 0)
        count, buffer, content = self.head.columns, np.frombuffer(piece.memory, np.uint8), piece.content()
        lines = int(newlines(content))
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
                kernels.scan(buffer, piece.size, ord(self.head.separator), codes, tables, arena, report)
                if report[kernels.CODE] != kernels.ROOM:
                    break
                grown = np.empty(4 * arena.size, np.uint64)
                grown[: arena.size] = arena
                arena = grown
        code, place, rows = (int(report[k]) for k in (kernels.CODE, kernels.AT, kernels.ROW))
        if code == kernels.FINE and report[kernels.RARE]:
            place = int(check(content, content.view(np.int8)))
            code = kernels.FINE if place < 0 else BYTE
        batch = self._batch(buffer, block, width, rows, tables, arena) if code == kernels.FINE else None
        self.arenas.append(arena)
        self.shifts = tables[:, kernels.SHIFT].copy()
        return Scanned(batch, code, rows, lines, place)

    def _batch(
        self, buffer: np.ndarray, block: Any, width: int, rows: int, tables: np.ndarray, arena: np.ndarray
    ) -> Any:
        counts, sizes = tables[:, kernels.COUNT].tolist(), tables[:, kernels.BYTES].tolist()
        offsets = np.empty(sum(counts) + len(counts), np.int32)
        texts = np.empty(sum(sizes), np.uint8)
        kernels.fill(buffer, tables, arena, offsets, texts)
        ends, content = pa.py_buffer(offsets), pa.py_buffer(texts)
        columns, at, begin = [], 0, 0
        for c, (distinct, size) in enumerate(zip(counts, sizes, strict=True)):
            numbers = pa.Array.from_buffers(pa.int32(), rows, [None, block.slice(4 * c * width, 4 * rows)])
            places = ends.slice(4 * at, 4 * distinct + 4)
            strings = pa.StringArray.from_buffers(distinct, places, content.slice(begin, size))
            columns.append(pa.DictionaryArray.from_arrays(numbers, strings, safe=False))
            at += distinct + 1
            begin += size
        return pa.RecordBatch.from_arrays([columns[c] for c in self.order], schema=self.schema)
