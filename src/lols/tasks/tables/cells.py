"""The cells of a column as numbers or as numbered texts, from any kind of table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError, short
from lols.kernels.kernel import kernel
from lols.kernels.layout import readonly
from lols.tasks.tables import meanings
from lols.tasks.tables.meanings import NAMES, SECOND, absent, floats_of, kind_of, number_in, number_text, seconds_of

TEXT = 57  # bytes of a Python string besides its characters, and of its place in a list
NUMBERS = frozenset({int, float, np.int32, np.int64, np.float32, np.float64})  # types of plain objects
TRUTH = frozenset({bool, np.bool_})
SAY_SO = "name the column as categorical, or the text as one that means a missing value"


class Cells(NamedTuple):
    """A column of a piece of a table: numbers, or codes of distinct texts."""

    numbers: np.ndarray | None = None  # float64, NaN where there is none
    codes: np.ndarray | None = None  # int32, which text; -1 where there is none
    texts: Sequence[str] = ()
    typed: bool = True  # False where all cells are texts, as in CSV: they may stand for numbers
    truths: bool = False  # whether the numbers are Booleans
    form: str = "number"  # what numbers are: also "date" or "span", the seconds of dates or durations

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
            if np.isnan(self.numbers[row]):
                return ""
            return NAMES[int(self.numbers[row])] if self.truths else number_text(float(self.numbers[row]))
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
    if cells.truths:
        return Cells(codes=np.where(np.isnan(cells.numbers), -1, cells.numbers).astype(np.int32), texts=NAMES)
    values, codes = np.unique(cells.numbers, return_inverse=True)
    codes = np.where(np.isnan(cells.numbers), -1, codes).astype(np.int32)
    return Cells(codes=codes, texts=[number_text(v) for v in values.tolist() if v == v])  # NaN, if any, is the last


def numbers_in(cells: Cells) -> np.ndarray:
    """The cells as numbers; NaN where there is none."""
    if cells.numbers is not None:
        return cells.numbers
    assert cells.codes is not None
    made = np.full(len(cells.texts) + 1, np.nan)
    for k, text in enumerate(cells.texts):
        with contextlib.suppress(ValueError):
            made[k] = number_in(text)
    found: np.ndarray = made[cells.codes]  # code -1 is the last one
    return found


def cells_of_array(values: np.ndarray) -> Cells:
    """The cells of a NumPy array: numbers as they are, other values as texts; None and NaN are missing."""
    if values.dtype.kind in "fiub":
        return Cells(numbers=values.astype(np.float64, copy=False), truths=values.dtype.kind == "b")
    if values.dtype.kind in "mM":
        times = values.astype("datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]")
        numbers = np.where(np.isnat(times), np.nan, times.astype(np.int64) / SECOND)
        return Cells(numbers=numbers, form="date" if values.dtype.kind == "M" else "span")
    quick = _quick_cells(values)
    return _slow_cells(values) if quick is None else quick


def _quick_cells(values: np.ndarray) -> Cells | None:
    """The cells of objects that are all plain numbers, Booleans or texts, or missing; None for others."""
    listed = values.tolist()
    types = set(map(type, listed)) - {type(None)}
    if types <= NUMBERS or types <= TRUTH:
        try:
            numbers = values.astype(np.float64)
        except OverflowError:
            return None
        return Cells(numbers=numbers, truths=types <= TRUTH or bool(np.isnan(numbers).all()))
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
            codes[row] = texts.setdefault(meanings.written(value), len(texts))
            kinds.add(kind_of(value))
    form = next(iter(kinds)) if kinds in ({"date"}, {"span"}) else "number"
    if kinds <= {"number", "truth"} or form != "number":
        read = {"date": meanings.moment, "span": meanings.length, "number": meanings.number}[form]
        numbers = np.array([np.nan if c < 0 else read(v) for c, v in zip(codes, values, strict=True)])
        return Cells(numbers=numbers, truths=kinds <= {"truth"}, form=form)
    return Cells(codes=codes, texts=list(texts), typed="number" not in kinds)  # texts may stand for missing numbers


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
            codes=meanings.plain(codes.cast(pa.int32()), np.int32),
            texts=column.dictionary.to_pylist(),
            typed=typed,
        )
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        dates = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        return Cells(numbers=seconds_of(column), form="date" if dates else "span")
    if pa.types.is_null(kind):
        return Cells(numbers=np.full(len(column), np.nan))
    if not any(f(kind) for f in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)):
        raise LolsError(f"column '{short(name)}' holds {kind}; a column must hold numbers or texts: leave it out")
    return Cells(numbers=floats_of(column), truths=pa.types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")
