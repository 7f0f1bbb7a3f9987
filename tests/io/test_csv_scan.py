"""Cells found and numbered by the kernels, against splitting and dictionaries."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.io import csv_scan
from lols.io.csv_file import BAD_BYTE, LinePiece, Scanned, _Scanner
from lols.io.csv_head import Head
from lols.kernels import words
from lols.kernels.kernel import kernel

CELL = st.one_of(
    st.text(st.sampled_from("ab0.é文"), max_size=3),
    st.sampled_from(
        ["12345678", "123456789", "12345678" * 2, "12345678" * 2 + "x", "x" + "12345678" * 2, 'a"b', "q" * 70]
    ),
)


def scan(content: bytes, columns: int, separator: str = ",", room: int | None = None, careful: bool = False) -> Scanned:
    """Scan a piece of a file; `room` is the number of words in memory beyond what the first tables take."""
    scanner = _Scanner(
        Head("t.csv", separator, columns, None, 0, 1), list(range(columns)), [f"{c}" for c in range(columns)]
    )
    if room is not None:
        scanner.arenas.append(np.full(csv_scan.need(64) * columns + room, 0xABCD, np.uint64))
    return scanner(LinePiece(bytearray(content + bytes(csv_scan.PADDING)), len(content)), careful)


def numbered(texts: list[str]) -> tuple[list[int], list[str]]:
    """The slow twin of a column."""
    known: dict[str, int] = {}
    return [known.setdefault(text, len(known)) for text in texts], list(known)


def columns_of(batch: Any) -> list[tuple[list[int], list[str]]]:
    """Numbers and texts of each column."""
    batch.validate(full=True)
    return [(column.indices.to_pylist(), column.dictionary.to_pylist()) for column in batch.columns]


# --- many bytes at once -----------------------------------------------------------------------------------------------


@kernel
def compiled_bits(buffer, at, byte, made):
    equal = words.equal_bits(buffer, at, byte)
    made[0] = words.word_at(buffer, at)
    made[1] = equal
    made[2] = words.rare_bits(buffer, at)
    made[3] = words.lowest_bit(equal) if equal != 0 else 0


@given(st.binary(min_size=80, max_size=80), st.integers(0, 16), st.integers(0, 255))
def test_bits_are_those_of_the_plain_version(content: bytes, at: int, byte: int) -> None:
    buffer = np.frombuffer(content, np.uint8).copy()
    buffer[at + byte % 64] = byte  # so that there is one
    equal = words.equal_bits(buffer, at, byte)
    plain = words.word_at(buffer, at), equal, words.rare_bits(buffer, at), words.lowest_bit(equal)
    made = np.zeros(4, np.uint64)
    compiled_bits(buffer, at, byte, made)
    assert made.tolist() == [int(word) for word in plain]
    assert [int(equal) >> k & 1 for k in range(64)] == [int(b == byte) for b in buffer[at : at + 64]]
    assert [int(plain[2]) >> k & 1 for k in range(64)] == [int(b == 0 or b > 127) for b in buffer[at : at + 64]]
    assert plain[3] == buffer[at : at + 64].tolist().index(byte)


# --- cells ------------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(st.data(), st.integers(1, 4), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_cells_are_numbered_as_a_dictionary_does(data: st.DataObject, columns: int, separator: str, end: str) -> None:
    rows = data.draw(st.lists(st.lists(CELL, min_size=columns, max_size=columns), max_size=12))
    lines = [separator.join(row) for row in rows]
    blank = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    for k in blank:
        lines.insert(k, "")
    scanned = scan("".join(line + end for line in lines).encode(), columns, separator)
    kept = [row for row in rows if row != [""]]
    assert (scanned.code, scanned.rows, scanned.lines) == (csv_scan.FINE, len(kept), len(lines))
    assert columns_of(scanned.batch) == [numbered([row[c] for row in kept]) for c in range(columns)]


@pytest.mark.uncompiled
@pytest.mark.parametrize("room", [None, 0, 1000])
@pytest.mark.parametrize("long", ["", "a long beginning of a cell "])
def test_tables_grow_and_the_scan_goes_on(room: int | None, long: str) -> None:
    rows = [[f"{long}{k % 7}", f"{long}{k}"] for k in range(300)] * 2
    scanned = scan("".join(f"{a},{b}\n" for a, b in rows).encode(), 2, room=room)
    assert columns_of(scanned.batch) == [numbered([row[c] for row in rows]) for c in range(2)]


@settings(max_examples=5)
@given(st.integers(0, 1 << 30), st.sampled_from([1 << 5, 1 << 15, 1 << 16, 150_000]))
def test_many_distinct_texts(seed: int, count: int) -> None:
    texts = [f"{k:x}" * (1 + k % 3) for k in np.random.default_rng(seed).integers(0, 1 << 40, count).tolist()]
    scanned = scan("".join(f"{text}\n" for text in texts).encode(), 1)
    assert columns_of(scanned.batch) == [numbered(texts)]


@pytest.mark.uncompiled
@pytest.mark.parametrize("before", [0, 1, 62, 63, 64, 65, 128])
def test_what_is_odd_is_found_wherever_it_is(before: int) -> None:
    start = b"x" * before + b","
    for odd in (
        b'"a""b"\n',
        b'"a"b\n',
        b'a\n"b","c\n',
        b"\ra,b\n",
        b"\r\r\n",
        b'a\r"b"\n',
        b'"a"\rb\n',
        b'b"\n"a",b""c\n"\n',
    ):
        assert scan(start + odd, 2).code == csv_scan.ODD
    for fine in (b'"a"\r\n', b'"\ra,\r\n"\n"b","c"\n', b'x"a"b"\n', b"b\r\n", b'b "\r\n\r\n', b'b\n 2"",x\n'):
        assert scan(start + fine, 2).code == csv_scan.FINE


@pytest.mark.uncompiled
@given(
    st.lists(st.tuples(*[st.text(st.sampled_from("ab,\n\r é"), max_size=40)] * 2), min_size=1, max_size=9), st.data()
)
def test_quoted_cells_are_read_at_full_speed(rows: list[tuple[str, str]], data: st.DataObject) -> None:
    def write(cell: str) -> str:
        bare = not set(cell) & set(",\n\r") and data.draw(st.booleans())
        return cell if bare else f'"{cell}"'

    scanned = scan("".join(",".join(map(write, row)) + "\n" for row in rows).encode(), 2)
    assert (scanned.code, scanned.rows) == (csv_scan.FINE, len(rows))
    assert columns_of(scanned.batch) == [numbered([row[c] for row in rows]) for c in range(2)]


@pytest.mark.uncompiled
@pytest.mark.parametrize("careful", [False, True])
@given(text=st.text(st.sampled_from('",\n\rax'), max_size=140))
def test_whatever_is_read_is_what_the_csv_module_reads(text: str, careful: bool) -> None:
    """A careful scan reads everything up to a quote that is left open; another one may leave it to that."""
    rows = [row for row in csv.reader(io.StringIO(text + "\n", newline="")) if row]
    columns = len(rows[0]) if rows else 1
    scanned = scan((text + "\n").encode(), columns, careful=careful)
    if scanned.code == csv_scan.COLUMNS:
        assert [len(row) for row in rows[: scanned.rows]] == [columns] * scanned.rows
        assert len(rows[scanned.rows]) != columns
    elif scanned.code == csv_scan.OPEN:
        assert careful and columns_of(scanned.batch) == [
            numbered([row[c] for row in rows[: scanned.rows]]) for c in range(columns)
        ]
        closed = [row for row in csv.reader(io.StringIO(text + '\n"\n', newline="")) if row]
        assert scanned.rows == len(rows) - 1 == len(closed) - 1
    elif scanned.code == csv_scan.FINE:
        assert columns_of(scanned.batch) == [numbered([row[c] for row in rows]) for c in range(columns)]
    else:
        assert not careful and scanned.code == csv_scan.ODD


@pytest.mark.uncompiled
def test_a_wrong_row_is_where_the_report_says() -> None:
    for row in (b"c\n", b"c,d,e\n", b"c,d,\n", b" \n"):
        scanned = scan(b"a,b\n\n" + row + b"e,f\n", 2)
        assert (scanned.code, scanned.place) == (csv_scan.COLUMNS, 5)


@pytest.mark.uncompiled
@pytest.mark.parametrize("bad", [b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_no_text_are_found(bad: bytes) -> None:
    scanned = scan(b"a,b\n" * 20 + b"\xc3\xa9" + bad + b",b\n", 2)
    assert (scanned.code, scanned.place) == (BAD_BYTE, 82)


@pytest.mark.uncompiled
def test_what_is_behind_the_end_does_not_matter() -> None:
    scanner = _Scanner(Head("t.csv", ",", 2, None, 0, 1), [0, 1], ["a", "b"])
    memory = bytearray(b'a,b\n"\0,\n\r\xff' * 20)
    assert scanner(LinePiece(memory, 4)).batch.to_pylist() == [{"a": "a", "b": "b"}]
