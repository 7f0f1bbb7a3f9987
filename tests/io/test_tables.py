"""Tables in files, against Python's csv module and Arrow's own readers."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.io.csv_file import TEXT
from lols.io.csv_head import _has_names, _separator
from lols.io.tables import TableSource, as_table, open_table

PLAIN = st.text(st.sampled_from("ab1. é文'\"")).filter(lambda s: not s.startswith('"'))
WILD = st.text(st.sampled_from('ab1 é"\n,;'), max_size=5)
LONG = st.sampled_from(["12345678", "123456789", "12345678" * 2, "12345678" * 2 + "x", "12345678y" * 40])
again = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def rows_of(table: TableSource, **options: Any) -> list[list[str]]:
    """All rows, after a look at the batches."""
    rows: list[list[str]] = []
    for batch in table.batches(**options):
        batch.validate(full=True)
        assert batch.schema.names == table.names and batch.num_rows > 0
        for column in batch.columns:
            assert column.type == TEXT and column.null_count == 0
            texts = column.dictionary.to_pylist()
            assert texts == list(dict.fromkeys(column.to_pylist()))  # each once, in the order of appearance
        rows += map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


def fails(*paths: Any, **options: Any) -> str:
    """What the error says, one line."""
    with pytest.raises(LolsError) as caught:
        rows_of(open_table(list(paths), **options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- CSV --------------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@again
@given(st.data())
def test_a_table_is_what_the_csv_module_reads(tmp_path: Path, data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 4))
    cell = data.draw(st.sampled_from([st.one_of(PLAIN, LONG), st.one_of(PLAIN, WILD, LONG)]))
    rows = data.draw(st.lists(st.lists(cell, min_size=columns, max_size=columns), min_size=1, max_size=12))
    end, separator = data.draw(st.sampled_from(["\n", "\r\n"])), data.draw(st.sampled_from(",;\t|"))
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, lineterminator=end).writerows(rows)
    text = stream.getvalue()
    if data.draw(st.booleans()):
        text = text.removesuffix(end)
    if not text:
        return
    content = text.encode()
    if data.draw(st.booleans()):
        content = b"\xef\xbb\xbf" + content
    path = write(tmp_path / "t.csv", gzip.compress(content) if data.draw(st.booleans()) else content)
    piece, threads = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 2))
    table = open_table(path, header=False, separator=separator)
    expected = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    assert expected == rows
    assert rows_of(table, piece=piece, threads=threads) == rows
    assert rows_of(table) == rows
    reader, begin = csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1
    for row, _ in enumerate(reader):
        assert table.place(row) == f"{path}, line {begin}"
        begin = reader.line_num + 1


@pytest.mark.uncompiled
@again
@given(st.lists(st.text(st.sampled_from('",\rax'), max_size=30), max_size=9), st.integers(1, 60), st.integers(1, 2))
def test_any_text_is_read_as_by_the_csv_module(tmp_path: Path, lines: list[str], piece: int, threads: int) -> None:
    """Quotes and line ends anywhere: the same rows in the same lines, up to the first wrong one."""
    text = "x,y\n" + "".join(line + "\n" for line in lines)
    path = write(tmp_path / "t.csv", text)
    reader, rows, begins, line = csv.reader(io.StringIO(text, newline="")), [], [], 1
    for row in reader:
        if row:
            rows.append(row)
            begins.append(line)
        line = reader.line_num + 1
    closed = sum(1 for row in csv.reader(io.StringIO(text + '"\n', newline="")) if row) > len(rows)
    table = open_table(path, header=False, separator=",")
    wrong = next((k for k, row in enumerate(rows) if len(row) != 2), None)
    if wrong is None and closed:
        assert rows_of(table, piece=piece, threads=threads) == rows
        assert [table.place(k) for k in range(len(rows))] == [f"{path}, line {begin}" for begin in begins]
    else:
        with pytest.raises(LolsError) as caught:
            rows_of(table, piece=piece, threads=threads)
        line = begins[-1] if wrong is None else begins[wrong]
        assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.uncompiled
@pytest.mark.parametrize("piece", [1, 5, 17, 1 << 20])
def test_both_ways_of_reading_give_the_same(tmp_path: Path, piece: int) -> None:
    rows = [[f"{k % 3}", f"name {k}", "", "x" * (k % 20)] for k in range(40)]
    plain = "".join(",".join(row) + "\n" for row in rows)
    fast = open_table(write(tmp_path / "fast.csv", plain), header=False)
    some = plain.replace("name 12", '"name 12"').replace("name 0", '"name 0"')
    half = open_table(write(tmp_path / "half.csv", some), header=False)
    slow = open_table(write(tmp_path / "slow.csv", plain.replace("name 0", '"na"me 0')), header=False)
    late = open_table(write(tmp_path / "late.csv", plain.replace("name 39", '"na"me 39')), header=False)
    for table in (fast, half, slow, late):
        assert rows_of(table, piece=piece) == rows_of(table, piece=piece, threads=3) == rows
        assert [table.place(k).split()[-1] for k in (0, 7, 39)] == ["1", "8", "40"]


@pytest.mark.uncompiled
@pytest.mark.parametrize(("begin", "end"), [("", ""), ('"', '"'), ('""', "")])
def test_cells_stay_as_they_stand(tmp_path: Path, begin: str, end: str) -> None:
    text = f"\n a ,,NA\r\n\n\n{begin}1.50{end},null, \n\r\n?,\té,nan"
    table = open_table(write(tmp_path / "t.txt", text), header=False, separator=",")
    assert rows_of(table, piece=3) == [[" a ", "", "NA"], ["1.50", "null", " "], ["?", "\té", "nan"]]
    assert [table.place(k).split()[-1] for k in range(3)] == ["2", "5", "7"]


@pytest.mark.uncompiled
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_quoted_cells_may_have_lines(tmp_path: Path, piece: int) -> None:
    path = write(tmp_path / "t.csv", 'a,b\n1,"x\n\ny"\n2,"""\n"""\n')
    table = open_table(path)
    assert rows_of(table, piece=piece) == [["1", "x\n\ny"], ["2", '"\n"']]
    assert [table.place(k) for k in range(2)] == [f"{path}, line 2", f"{path}, line 5"]


@pytest.mark.uncompiled
def test_old_line_ends_and_open_quotes(tmp_path: Path) -> None:
    old = open_table(write(tmp_path / "old.csv", "a,1\rb,2\r" * 20))
    assert rows_of(old, piece=16) == [["a", "1"], ["b", "2"]] * 20
    path = write(tmp_path / "open.csv", 'a,1\n"b,2\nc,3\n' + "d,4\n" * 200)
    message = f"{path}, line 2: a quote opens in this row and is never closed; close it"
    assert fails(path, header=False, separator=",") == message
    with pytest.raises(LolsError) as caught:
        rows_of(open_table(path, header=False, separator=","), piece=16)
    assert str(caught.value) == message


def test_a_batch_may_be_kept_while_the_next_ones_are_read(tmp_path: Path) -> None:
    rows = [[f"{k}", f"{k * k}"] for k in range(500)]
    path = write(tmp_path / "t.csv", "".join(f"{a},{b}\n" for a, b in rows))
    kept = list(open_table(path).batches(piece=50, threads=2))
    assert len(kept) > 50
    assert [list(row.values()) for batch in kept for row in batch.to_pylist()] == rows
    begun: Any = open_table(path).batches(piece=50, threads=2)
    next(begun)
    begun.close()


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b;c\nd,e\n", ","),
        ("a;b\n1,5;2\n2,5;3\n", ";"),
        ("a\tb\tc\nd\te,f\tg\n", "\t"),
        ("a|b\nc|d\n", "|"),
        ("one\ntwo\n", ","),
        ('"a;b",c\n"d;e;f",g\n', ","),
        ("a;b\n" * 99 + "a;b;c\n", ";"),
        ("", ","),
    ],
)
def test_the_separator_is_found(text: str, separator: str) -> None:
    assert _separator(text) == separator


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name,age\nAda,36\n", True),
        ("name,age\nAda,\nBob,NA\nCy,7\n", True),
        ("Ada,36\nBob,37\n", False),
        ("x,y\na,b\nc,d\n", True),
        ("a,b\na,c\n", False),
        (",age\nAda,36\n", True),
        ("name,\nAda,36\n", False),
        ("age,age\n36,37\n", True),  # so that the names are refused, and not learned from
        ("red,red\nblue,red\n", False),
        ("?,?,a\n1,2,b\n", False),
        ("1,2\n3,4\n", False),
    ],
)
def test_a_line_of_names_is_told_from_data(text: str, names: bool) -> None:
    rows = list(csv.reader(text.splitlines()))
    assert _has_names(rows[0], rows[1:]) is names


@pytest.mark.uncompiled
def test_names_of_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", '"a\nb", c ,\n1,2,3\n')
    table = open_table(path, header=True)
    assert table.names == ["a\nb", "c", "column3"] and rows_of(table) == [["1", "2", "3"]]
    assert table.place(0) == f"{path}, line 3"
    assert open_table(path, header=False).names == ["column1", "column2", "column3"]
    table = open_table(path, header=True, names=["x", "y", "z"])
    assert table.names == ["x", "y", "z"] and rows_of(table) == [["1", "2", "3"]]
    assert fails(path, header=True, names=["x"]) == f"{path}: 3 columns, but 1 names are given; name each"
    assert "two columns are called 'a'" in fails(write(path, "a,a\n1,2\n"), header=True)
    assert "two columns are called 'a'" in fails(write(path, "a,a,b\n1,2,c\n3,4,c\n"))


@pytest.mark.uncompiled
def test_files_follow_each_other(tmp_path: Path) -> None:
    one = write(tmp_path / "1.csv", "a,b\n1,2\n3,4\n")
    two = write(tmp_path / "2.tsv", gzip.compress(b"b\ta\n6\t5\n"))
    three = write(tmp_path / "3.csv", "7,8\n")  # as made by cutting a file
    table = open_table([one, two, three])
    for _ in range(2):
        assert rows_of(table, piece=1) == [["1", "2"], ["3", "4"], ["5", "6"], ["7", "8"]]
    assert [table.place(k) for k in range(4)] == [
        f"{one}, line 2",
        f"{one}, line 3",
        f"{two}, line 2",
        f"{three}, line 1",
    ]
    other = write(tmp_path / "4.csv", "a,c\n1,2\n")
    assert fails(one, other) == f"{other}: column 'c' is in {other}, but not in {one}; make them the same"
    assert fails(other, one).startswith(f"{one}: column 'b' is in {one}, but not in {other}")
    wide = write(tmp_path / "5.csv", "1,2,3\n")
    assert fails(three, wide) == f"{wide}: 3 columns, but {three} has 2; make them the same"


NOT_TEXT = (
    (b"\0", "is zero, so this is not text; give a text file"),
    (b"\xb7", "(0xb7) is not UTF-8; convert the file, e.g. with iconv -f latin1 -t utf-8"),
)


@pytest.mark.uncompiled
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    wrong = "3 columns instead of 2: 'e,f,g'; correct the row, or name the separator"
    for quote in ("", '"', '""'):
        text = f"a,{quote}b{quote}\n\nc,d\ne,f,g\n"
        assert fails(write(path, text), separator=",", header=False) == f"{path}, line 4: {wrong}"
        for bad, what in NOT_TEXT:
            content = f"a,{quote}b{quote}\n\nc,".encode() + bad + b"\n"
            assert fails(write(path, content), header=False) == f"{path}, line 3: byte 3 {what}"
    for bad, what in NOT_TEXT:
        assert fails(write(path, b"\na,b" + bad + b"\n1,2\n")) == f"{path}, line 2: byte 4 {what}"
    assert fails(write(path, "\n\n")) == f"{path}: is empty; give a table with a row of data"
    assert fails(write(path, "")) == f"{path}: is empty; give a table with a row of data"
    assert "no row of data" in fails(write(path, "a,b\n"), header=True)
    assert "UTF-16" in fails(write(path, "a,b\n".encode("utf-16")))
    assert "no such file" in fails(tmp_path / "none.csv")
    assert "is a folder" in fails(tmp_path)
    assert "no file" in fails()
    assert "cannot be one" in fails(write(path, "a,b\n"), separator="ab")
    packed = gzip.compress(os.urandom(3000).hex().encode() + b"\n")
    assert "damaged compressed data" in fails(write(tmp_path / "t.gz", packed[:-1000]))
    assert "not compressed" in fails(write(tmp_path / "t.gz", "a,b\n"))


# --- other formats and tables in memory -------------------------------------------------------------------------------

DATA: dict[str, list[Any]] = {"a": [1, 2, None, 4], "b": ["x", None, "z", "x"], "c": [0.5, 1.5, 2.5, None]}


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_other_formats_come_back(tmp_path: Path, kind: str) -> None:
    path, table = tmp_path / "t", pa.table(DATA)
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=3)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path, chunksize=3)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, 1)
    source = open_table(path)
    assert source.names == ["a", "b", "c"]
    for _ in range(2):
        assert pa.Table.from_batches(source.batches()).to_pydict() == DATA
    assert source.place(2) == f"{path}, row 3"
    more = tmp_path / "more"
    pyarrow.parquet.write_table(table.select(["c", "a", "b"]), more)
    both = open_table([path, more])
    assert pa.Table.from_batches(both.batches()).to_pydict() == {name: 2 * cells for name, cells in DATA.items()}
    assert both.place(4) == f"{more}, row 1"
    assert open_table(path, names=["x", "y", "z"]).names == ["x", "y", "z"]
    content = path.read_bytes()
    for size in (8, len(content) // 2, len(content) - 1):
        assert fails(write(tmp_path / "cut", content[:size])).startswith(f"{tmp_path / 'cut'}: damaged data (")


OVERWRITTEN = """
import os, sys
from lols.errors import LolsError
from lols.io.tables import open_table

batches = open_table(sys.argv[1]).batches()
next(batches)
os.truncate(sys.argv[1], 64)
try:
    print(sum(batch.num_rows for batch in batches))
except LolsError as error:
    print(error)
"""


def test_a_file_that_is_overwritten_while_it_is_read_is_an_error_of_one_line(tmp_path: Path) -> None:
    path, table = tmp_path / "t.arrow", pa.table({"a": np.arange(1 << 20)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, 1 << 14)
    ran = subprocess.run([sys.executable, "-c", OVERWRITTEN, path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr  # -7 is SIGBUS, which no program survives
    assert re.fullmatch(rf"{path}: damaged data \(.*\); make or fetch the file again\n", ran.stdout)


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table(DATA).slice(0, 0), tmp_path / "p")
    pyarrow.feather.write_feather(pa.table(DATA).slice(0, 0), tmp_path / "f")
    assert "is empty" in fails(tmp_path / "p") and "is empty" in fails(tmp_path / "f")


def test_texts_that_are_not_utf8_name_the_column(tmp_path: Path) -> None:
    places, letters = pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"ok\xff\xfe")
    texts = pa.Array.from_buffers(pa.string(), 2, [None, places, letters])
    table = pa.table({"n": [1, 2], "text": texts})
    pyarrow.parquet.write_table(table, tmp_path / "p")
    pyarrow.feather.write_feather(table, tmp_path / "f", compression="uncompressed")
    for name in "pf":
        with pytest.raises(LolsError, match=rf"{name}, column 'text': damaged data \(Invalid UTF8 sequence"):
            list(open_table(tmp_path / name).batches())


def test_tables_in_memory() -> None:
    table = pa.table(DATA)
    frame = pl.DataFrame(DATA)
    for data in (table, table.to_batches()[0], DATA, frame, frame.lazy(), table.to_reader()):
        assert as_table(data).to_pydict() == DATA
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"])}, index=[5, 6])
    assert as_table(frame).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    for data in (3, [1, 2], "t.csv", {"a": [1], "b": [1, 2]}):
        with pytest.raises(LolsError) as caught:
            as_table(data)
        assert "\n" not in str(caught.value)


# --- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_a_real_table_has_all_its_rows() -> None:
    table = open_table(Path(os.environ["LOLS_DATA"], "kdd99-10percent.csv.gz"))
    assert table.names == [f"column{k}" for k in range(1, 43)]
    counts: dict[str, int] = {}
    for batch in table.batches(threads=2):
        for pair in batch.column(41).value_counts().to_pylist():
            counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    assert sum(counts.values()) == 494021 and len(counts) == 23 and counts["smurf."] == 280790


def test_the_time_to_open_a_table_is_linear_in_its_columns(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        names = [f"c{k}" for k in range(count)]
        one = write(tmp_path / "1.csv", ",".join(names) + "\n" + "1," * (count - 1) + "1\n")
        two = write(tmp_path / "2.csv", ",".join(reversed(names)) + "\n" + "1," * (count - 1) + "1\n")
        began = time.process_time()
        open_table([one, two])
        return time.process_time() - began

    few, many = (min(seconds(count) for _ in range(3)) for count in (4000, 32000))
    assert many < 24 * few  # 8 times as many; where it was quadratic, 50 times as long


def test_what_was_read_of_a_parquet_file_is_not_kept(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=1 << 19)
    table, path = pa.table({f"x{k}": np.roll(numbers, k) for k in range(16)}), tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, path, row_group_size=1 << 12, use_dictionary=False, compression="none")
    held = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - held for _ in open_table(path).batches())
    assert most < table.nbytes // 2
