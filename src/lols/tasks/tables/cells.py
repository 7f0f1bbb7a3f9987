"""The cells of a column as numbers or as numbered texts, from any kind of table."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from lols.engine.compile.kernel import kernel
from lols.engine.compile.layout import readonly
from lols.errors import ConfigurationError, LolsError, short

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "null", "NULL", "None", "?")
SECOND = 1e6  # in microseconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?\s*", re.ASCII)
TEXT = 57  # bytes of a Python string besides its characters, and of its place in a list
NUMBERS = frozenset({int, float, np.int32, np.int64, np.float32, np.float64})  # types of plain objects
TRUTHS = frozenset({bool, np.bool_})
SAY_SO = "name the column as categorical, or the text as one that means a missing value"


class Cells(NamedTuple):
    """A column of a piece of a table: numbers, or codes of distinct texts."""

    numbers: np.ndarray | None = None  # float64, NaN where there is none
    codes: np.ndarray | None = None  # int32, which text; -1 where there is none
    texts: Sequence[str] = ()
    typed: bool = True  # False where all cells are texts, as in CSV: they may stand for numbers
    truths: bool = False  # whether the numbers are Booleans
    dates: bool = False  # whether they are the seconds of dates

    @property
    def size(self) -> int:
        """The number of cells."""
        cells = self.numbers if self.numbers is not None else self.codes
        return 0 if cells is None else int(cells.size)

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes in memory."""
        if self.numbers is not None:
            return int(self.numbers.nbytes)
        return 4 * self.size + TEXT * len(self.texts) + sum(map(len, self.texts))

    def cut(self, begin: int, end: int) -> Cells:
        """The cells from one row to another, which share memory with these."""
        cells = self.numbers if self.numbers is not None else self.codes
        part = None if cells is None else cells[begin:end]
        return self._replace(numbers=part) if self.numbers is not None else self._replace(codes=part)

    def counts(self) -> np.ndarray:
        """The number of cells with each text."""
        assert self.codes is not None
        counts = np.zeros(len(self.texts), np.int64)
        _count(readonly(self.codes), counts)
        return counts

    def text(self, row: int) -> str:
        """One cell as text; empty where it is missing."""
        if self.numbers is not None:
            return "" if np.isnan(self.numbers[row]) else _text(float(self.numbers[row]))
        assert self.codes is not None
        return str(self.texts[int(self.codes[row])]) if self.codes[row] >= 0 else ""


@kernel
def _count(codes, counts):
    for row in range(codes.size):
        if codes[row] >= 0:
            counts[codes[row]] += 1


class NoNumber(LolsError):
    """A text where a number must be; `at` adds the row."""

    def __init__(self, column: str, text: str, place: str = "", *, fix: str = SAY_SO):
        super().__init__(
            f"{place + ', ' if place else ''}column '{short(column)}': '{short(text)}' is not a number; {fix}"
        )
        self.column, self.text, self.fix = column, text, fix

    def at(self, cells: Cells, place: Callable[[int], str]) -> NoNumber:
        """The same with the place of the first row that has the text."""
        assert cells.codes is not None
        row = int(np.argmax(cells.codes == list(cells.texts).index(self.text)))
        return NoNumber(self.column, self.text, place(row), fix=self.fix)


def as_texts(cells: Cells) -> Cells:
    """Numbers as texts, for a column of categories."""
    if cells.numbers is None:
        return cells
    values, codes = np.unique(cells.numbers, return_inverse=True)
    codes = np.where(np.isnan(cells.numbers), -1, codes).astype(np.int32)
    return Cells(codes=codes, texts=[_text(v) for v in values.tolist() if v == v])  # NaN, if any, is the last


def _text(value: float) -> str:
    """A number as it would stand in a file: whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


def numbers_of(texts: Sequence[str], missing: Sequence[str] = MISSING) -> tuple[np.ndarray, int]:
    """Texts as numbers, NaN where they mean a missing value; and the index of the first that is not a number, or -1.

    If the first text is a date as ISO 8601 writes it, all must be dates; their numbers are seconds, as those of dates
    in a data frame are.

    >>> numbers_of(["1.5", " 2e3", "?", "x"])
    (array([1.5e+00, 2.0e+03,     nan,     nan]), 3)
    >>> numbers_of(["1970-01-02", "", "1970-01-01T00:01:00.5"])
    (array([8.64e+04,      nan, 6.05e+01]), -1)
    """
    dates = are_dates(texts, missing)
    if len(texts) > 256:
        quick = _quick_numbers(texts, missing, dates)
        if quick is not None:
            return quick, -1
    read = _date if dates else _number
    numbers = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if text in missing:
            continue
        try:
            numbers[k] = read(text)
        except ValueError:
            return numbers, k
    return numbers, -1


def numbers_in(cells: Cells) -> np.ndarray:
    """The cells as numbers; NaN where there is none."""
    if cells.numbers is not None:
        return cells.numbers
    assert cells.codes is not None
    made = np.full(len(cells.texts) + 1, np.nan)
    for k, text in enumerate(cells.texts):
        with contextlib.suppress(ValueError):
            made[k] = _number(text)
    found: np.ndarray = made[cells.codes]  # code -1 is the last one
    return found


def are_dates(texts: Sequence[str], missing: Sequence[str] = MISSING) -> bool:
    """Whether the first text that is not missing is a date."""
    first = next((text for text in texts if text not in missing), "")
    return DATE.fullmatch(first) is not None


def _number(text: str) -> float:
    if "_" in text:  # Python reads 1_000 as a number, other programs do not
        raise ValueError(text)
    return float(text)


def _date(text: str) -> float:
    """Seconds since 1970; a time without a zone is of UTC, as in data frames."""
    if DATE.fullmatch(text) is None:
        raise ValueError(text)
    return _moment(datetime.fromisoformat(text.strip()))


def _moment(value: Any) -> float:
    """The same of a date or time as an object."""
    time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1) / SECOND


def _quick_numbers(texts: Sequence[str], missing: Sequence[str], dates: bool) -> np.ndarray | None:
    """The same, by Arrow, for many texts; None where Arrow does not read one of them as a number, or as a date."""
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return None
    array = pa.array(texts, pa.string())
    empty = pc.is_in(array, value_set=pa.array(list(missing), pa.string()))
    try:
        given = pc.if_else(empty, None, array)
        return _seconds(given.cast(pa.timestamp("us"))) if dates else _floats(given)
    except pa.ArrowInvalid:
        return None


def cells_of_array(values: np.ndarray) -> Cells:
    """The cells of a NumPy array: numbers as they are, other values as texts; None and NaN are missing."""
    if values.dtype.kind in "fiub":
        return Cells(numbers=values.astype(np.float64, copy=False), truths=values.dtype.kind == "b")
    if values.dtype.kind in "mM":
        times = values.astype("datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]")
        numbers = np.where(np.isnat(times), np.nan, times.astype(np.int64) / SECOND)
        return Cells(numbers=numbers, dates=values.dtype.kind == "M")
    quick = _quick_cells(values)
    return _slow_cells(values) if quick is None else quick


def _quick_cells(values: np.ndarray) -> Cells | None:
    """The cells of objects that are all plain numbers, Booleans or texts, or missing; None for others."""
    listed = values.tolist()
    types = set(map(type, listed)) - {type(None)}
    if types <= NUMBERS or types <= TRUTHS:
        try:
            numbers = values.astype(np.float64)
        except OverflowError:
            return None
        return Cells(numbers=numbers, truths=types <= TRUTHS or bool(np.isnan(numbers).all()))
    distinct = list(dict.fromkeys(listed)) if types <= {str, float} else []
    if not distinct or any(type(value) is float and value == value for value in distinct):
        return None
    texts = [value for value in distinct if type(value) is str]
    places = dict.fromkeys(distinct, -1) | {text: k for k, text in enumerate(texts)}
    return Cells(codes=np.fromiter(map(places.__getitem__, listed), np.int32, len(listed)), texts=texts)


def _slow_cells(values: np.ndarray) -> Cells:
    """The cells of any objects, one by one."""
    texts: dict[str, int] = {}
    codes = np.empty(values.size, np.int32)
    kinds = set()
    for row, value in enumerate(values.tolist()):
        if absent(value):
            codes[row] = -1
        else:
            codes[row] = texts.setdefault(_written(value), len(texts))
            kinds.add(_kind(value))
    read = _moment if kinds == {"date"} else _float
    if kinds <= {"number", "truth"} or kinds == {"date"}:
        numbers = np.array([np.nan if c < 0 else read(v) for c, v in zip(codes, values, strict=True)])
        return Cells(numbers=numbers, truths=kinds <= {"truth"}, dates=kinds == {"date"})
    return Cells(codes=codes, texts=list(texts), typed="number" not in kinds)  # texts may stand for missing numbers


def _kind(value: Any) -> str:
    """What an object in a table is."""
    if isinstance(value, bool | np.bool_):
        return "truth"
    if isinstance(value, date):  # or a datetime, or pandas' Timestamp
        return "date"
    return "number" if isinstance(value, Real | Decimal) else "text"


def _float(value: Any) -> float:
    """A number as a float; one that is too large is infinite, as it is where a file is read."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _written(value: Any) -> str:
    """A value as a text; Python writes no decimals of thousands of digits."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def absent(value: Any) -> bool:
    """Whether an object is None, NaN, NaT or pandas' NA."""
    if isinstance(value, str):
        return False
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA compared with itself is neither true nor false
        return True


def arrow() -> Any:
    """The library `pyarrow`, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ConfigurationError("this data frame needs pyarrow: pip install 'lols[tables]'") from None
    return pyarrow


def cells_of_batch(batch: Any, names: Sequence[str], typed: bool = True) -> dict[str, Cells]:
    """The cells of the named columns of an Arrow table or record batch."""
    return {name: _cells(name, batch.column(name), typed) for name in names}


def _cells(name: str, column: Any, typed: bool) -> Cells:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of no chunks, or too large for one
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_dictionary(kind) and (typed or column.null_count or not _is_text(kind.value_type)):
        # Unless made from CSV, a dictionary may have unused texts, repeated ones, and nulls.
        texts = column.dictionary.cast(pa.string()) if _is_text(kind.value_type) else column.dictionary
        column = pc.take(texts, column.indices)
        kind = column.type
    if _is_text(kind):
        column = column.cast(pa.string()).dictionary_encode()
        kind = column.type
    if pa.types.is_dictionary(kind):
        codes = column.indices
        codes = codes.fill_null(-1) if codes.null_count else codes
        return Cells(
            codes=_plain(codes.cast(pa.int32()), np.int32),
            texts=column.dictionary.to_pylist(),
            typed=typed,
        )
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return Cells(numbers=_seconds(column), dates=pa.types.is_timestamp(kind) or pa.types.is_date(kind))
    if pa.types.is_null(kind):
        return Cells(numbers=np.full(len(column), np.nan))
    if not any(f(kind) for f in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)):
        raise LolsError(f"column '{short(name)}' holds {kind}; a column must hold numbers or texts: leave it out")
    return Cells(numbers=_floats(column), truths=pa.types.is_boolean(kind))


def _seconds(column: Any) -> np.ndarray:
    """Dates, times and durations in seconds, whatever their unit."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False)
    else:
        column = column.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us"), safe=False)
    return _floats(column.cast(pa.int64())) / SECOND


def _floats(column: Any) -> np.ndarray:
    """A column of numbers, NaN for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = pc.cast(column, pa.float64(), safe=False)
    return np.array(_plain(made.fill_null(np.nan) if made.null_count else made, np.float64))


def _plain(array: Any, kind: Any) -> np.ndarray:
    """The numbers of an Arrow array without nulls; its own `to_numpy` would import pandas, which takes a while."""
    values = array.buffers()[1]
    if len(array) == 0 or values is None:
        return np.zeros(0, kind)
    return np.frombuffer(values, kind, count=array.offset + len(array))[array.offset :]


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")
