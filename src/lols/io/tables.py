"""Tables in files as streams of Arrow record batches: CSV, Parquet, Arrow and Feather, read in constant memory."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, LolsError, shown

try:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as error:
    raise ConfigurationError("tables in files need pyarrow: pip install 'lols[tables]'") from error
from lols.io.csv_file import Mark, line_of, read_batches
from lols.io.csv_head import Head, check_distinct, read_head
from lols.io.opening import opened, reading, reason

PIECE = 1 << 22  # bytes of a CSV file in a batch
PARQUET, ARROW = b"PAR1", b"ARROW1"  # the first bytes of such files
ROWS = 1 << 16  # the most of a Parquet file in a batch
CELLS = 1 << 21  # of wide ones
BUFFERED = {"pre_buffer": False, "buffer_size": 1 << 16}  # else all that was read of a file stays in memory


class TableSource:
    """One or more files with the same columns, read as one table; see `open_table`."""

    def __init__(self, files: Sequence[_File], names: Sequence[str]):
        self.names = list(names)
        self.paths = [file.path for file in files]
        self.typed = not any(isinstance(file, _Csv) for file in files)  # all cells of CSV files are texts
        self._files = list(files)
        first = files[0]
        self.format = first.kind  # "csv", "parquet" or "arrow"
        self.header = None if isinstance(first, _Csv) and first.names is None else list(first.names or self.names)
        self.separator = first.head.separator if isinstance(first, _Csv) else None
        self._begins: list[int] = []  # the first row of each file that `batches` has reached

    def batches(self, piece: int = PIECE, threads: int = 1) -> Iterator[Any]:
        """The rows in batches; every call begins with the first row.

        Parameters
        ----------
        piece
            the approximate number of bytes of a CSV file in a batch
        threads
            how many pieces of a CSV file are scanned at once

        Returns
        -------
        Iterator[pa.RecordBatch]
            cells of CSV files are ``pa.dictionary(pa.int32(), pa.string())``, the texts unchanged: an empty cell
            is an empty text; the other formats keep the types of the file
        """
        self._begins = []
        row = 0
        for file in self._files:
            self._begins.append(row)
            for batch in file.batches(self.names, piece, threads):
                yield batch
                row += batch.num_rows

    def place(self, row: int) -> str:
        """The place of a row that `batches` has reached: file and line, or file and row."""
        k = max(k for k, begin in enumerate(self._begins or [0]) if begin <= row)
        return self._files[k].place(row - (self._begins or [0])[k])


def open_table(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    separator: str | None = None,
) -> TableSource:
    """Open the files of a table, each in the format that its first bytes show.

    Parameters
    ----------
    paths
        a file or several: CSV (also compressed), Parquet, Arrow or Feather. If they have column names, the
        columns of later files are put into the order of the first one
    header
        whether CSV files begin with a row of column names; None to decide by the first rows
    names
        names for the columns in place of those in the files; without a header the default is column1, column2, ...
    separator
        the character between the cells of CSV files; None to decide between comma, semicolon, tab and bar

    >>> import tempfile; path = tempfile.mkdtemp() + "/ages.csv"
    >>> _ = open(path, "w").write("name,age\\nAda,36\\nBob,\\n")
    >>> table = open_table(path)
    >>> table.names, [batch.to_pylist() for batch in table.batches()]
    (['name', 'age'], [[{'name': 'Ada', 'age': '36'}, {'name': 'Bob', 'age': ''}]])
    >>> table.place(1)[-6:]
    'line 3'
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not paths:
        raise LolsError("no file; name at least one")
    files: list[_File] = []
    first_names: list[str] | None = None
    for number, path in enumerate(os.fspath(path) for path in paths):
        # Later files are like the first one: if it has no header, they have none.
        has_header = False if number > 0 and header is None and first_names is None else header
        file = _opened_file(path, has_header, separator, first_names)
        if number == 0:
            first_names = file.names
        elif file.count != files[0].count and (first_names is None or file.names is None):
            raise LolsError(
                f"{path}: {file.count} columns, but {files[0].path} has {files[0].count}; make them the same"
            )
        file.arrange(first_names, files[0] if files else file)
        files.append(file)
    count = files[0].count
    if names is not None and len(names) != count:
        raise LolsError(f"{files[0].path}: {count} columns, but {len(names)} names are given; name each")
    chosen = list(names) if names is not None else first_names or [f"column{k + 1}" for k in range(count)]
    chosen = [name or f"column{k + 1}" for k, name in enumerate(chosen)]
    check_distinct(chosen, f"{files[0].path}: ", "rename one, or give names")
    return TableSource(files, chosen)


def as_table(data: Any) -> Any:
    """A table in memory as a ``pa.Table``: from pandas, polars, pyarrow, or a dictionary of columns.

    >>> as_table({"a": [1, 2], "b": ["x", None]}).to_pylist()
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': None}]
    """
    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if isinstance(data, Mapping):
            return pa.table({str(name): column for name, column in data.items()})
        if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "collect_schema") and hasattr(data, "collect"):  # polars, not yet computed
            data = data.collect()
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise LolsError(f"the {type(data).__name__} cannot be converted to a table: {reason(error)}") from error
    kinds = "a pandas or polars data frame, a pyarrow table, or a dictionary of columns"
    raise LolsError(f"a {type(data).__name__} is not a table; give {kinds}")


def text_array(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array; ``pa.array`` would import pandas, which takes longer than small files do.

    >>> text_array(["a", "", "bé"]).to_pylist()
    ['a', '', 'bé']
    """
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))


def index_array(numbers: np.ndarray) -> Any:
    """Whole numbers as an Arrow array, likewise."""
    made = np.ascontiguousarray(numbers, np.int64)
    return pa.Array.from_buffers(pa.int64(), made.size, [None, pa.py_buffer(made)])


# --- one file ---------------------------------------------------------------------------------------------------------


class _File(ABC):
    """A file, and the order in which its columns are read."""

    kind = "csv"

    def __init__(self, path: str, names: list[str] | None, count: int):
        self.path, self.names, self.count = path, names, count
        self.order = list(range(count))

    def arrange(self, names: list[str] | None, first: _File) -> None:
        """Put the columns into the order of the first file, if both have names."""
        if names is None or self.names is None or names == self.names:
            return
        for ours, theirs, more, less in ((self.names, names, self, first), (names, self.names, first, self)):
            known = set(theirs)
            name = next((name for name in ours if name not in known), None)
            if name is not None:
                raise LolsError(
                    f"{self.path}: column {shown(name)} is in {more.path}, but not in {less.path}; make them the same"
                )
        check_distinct(self.names, f"{self.path}: ", "rename one, or give names")
        places = {name: k for k, name in enumerate(self.names)}
        self.order = [places[name] for name in names]

    @abstractmethod
    def batches(self, names: list[str], piece: int, threads: int) -> Iterator[Any]:
        """The rows in batches, the columns in order and under these names."""

    def place(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.path}, row {row + 1}"


class _Csv(_File):
    def __init__(self, head: Head):
        super().__init__(head.path, head.names, head.columns)
        self.head = head
        self.marks: list[Mark] = []

    def batches(self, names: list[str], piece: int, threads: int) -> Iterator[Any]:
        self.marks = []
        return read_batches(self.head, self.order, names, piece, threads, self.marks.append)

    def place(self, row: int) -> str:
        mark = next((m for m in reversed(self.marks) if m.row <= row), None)
        line = mark.line + row - mark.row if mark is not None and mark.plain else line_of(self.head, row)
        return f"{self.path}, line {line}"


class _Binary(_File):
    """A Parquet or Arrow file."""

    def __init__(self, path: str, parquet: bool):
        self.parquet, self.kind = parquet, "parquet" if parquet else "arrow"
        with _arrow(path), self._reader(path) as reader:
            schema = reader.schema_arrow if parquet else reader.schema
            empty = parquet and reader.metadata.num_rows == 0
        super().__init__(path, list(schema.names), len(schema.names))
        if not self.count or empty:
            raise LolsError(f"{path}: is empty; give a table with a row of data")

    def _reader(self, path: str) -> Any:
        return (
            pyarrow.parquet.ParquetFile(path, **BUFFERED)
            if self.parquet
            else pyarrow.ipc.open_file(pa.OSFile(path))  # not mapped: others may overwrite the file
        )

    def batches(self, names: list[str], piece: int, threads: int) -> Iterator[Any]:
        rows = 0
        with _arrow(self.path), self._reader(self.path) as reader:
            if self.parquet:
                batches = reader.iter_batches(min(ROWS, max(1, CELLS // self.count)))
            else:
                batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
            for batch in batches:
                rows += batch.num_rows
                for column, name in zip(self.order, names, strict=True):
                    self._check(batch.column(column), name)
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays([batch.column(c) for c in self.order], names=names)
        if rows == 0:
            raise LolsError(f"{self.path}: is empty; give a table with a row of data")

    def _check(self, column: Any, name: str) -> None:
        """Raise an error if offsets point anywhere, or if texts are not UTF-8."""
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise LolsError(
                f"{self.path}, column {name!r}: damaged data ({reason(error)}); make or fetch the file again"
            ) from error


@contextlib.contextmanager
def _arrow(path: str) -> Iterator[None]:
    """Turn the errors of Arrow into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise LolsError(f"{path}: damaged data ({reason(error)}); make or fetch the file again") from error


def _opened_file(path: str, header: bool | None, separator: str | None, names: list[str] | None) -> _File:
    """A file in the format that its first bytes show."""
    with opened(path) as stream, reading(path):
        magic = stream.read(len(ARROW))
    if magic.startswith((PARQUET, ARROW)):
        return _Binary(path, magic.startswith(PARQUET))
    return _Csv(read_head(path, separator, header, names))
