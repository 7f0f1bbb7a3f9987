"""What the values of a table mean, written or as objects: numbers, dates, durations, Booleans, missing values.

A value means the same whatever kind of table it comes in: texts of a CSV file are what the types of a data frame are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "null", "NULL", "None", "?")
SECOND = 1e6  # in microseconds
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TRUTHS = {name: k for k, word in enumerate(("false", "true")) for name in (word, word.capitalize(), word.upper())}
NAMES = ("False", "True")
WRITTEN = {"0": 0, "1": 1} | TRUTHS  # as numbers, too
DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?\s*", re.ASCII)
# Durations as Python, pandas and databases write them (1 day, 2:03:04), which times of day are, too; and ISO 8601's.
CLOCK = re.compile(
    r"\s*(?:([+-]?\d{1,9}) days?,?)?\s*(?:([+-])?(\d{1,9}):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?)?\s*", re.ASCII
)
ISO = re.compile(
    r"\s*([+-])?P(?=[\dT])(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?\s*",
    re.ASCII,
)
WHOLE = re.compile(r"(-?\d+)\.0+", re.ASCII)
BEGINS = frozenset(" +-.0123456789PtTfF")  # characters with which a text begins that may be more than a text


# --- texts ------------------------------------------------------------------------------------------------------------


def numbers_of(
    texts: Sequence[str], missing: Sequence[str] = MISSING, *, truths: bool = False
) -> tuple[np.ndarray, int]:
    """Texts as numbers, NaN where they mean a missing value; and the index of the first that is not a number, or -1.

    If the first text is a date as ISO 8601 writes it, all must be dates; their numbers are seconds, as those of dates
    in a data frame are. The same holds for durations and times of day; and for Booleans, if `truths` are wanted.

    >>> numbers_of(["1.5", " 2e3", "?", "x"])
    (array([1.5e+00, 2.0e+03,     nan,     nan]), 3)
    >>> numbers_of(["1970-01-02", "", "1970-01-01T00:01:00.5"])
    (array([8.64e+04,      nan, 6.05e+01]), -1)
    >>> numbers_of(["00:01:00", "1 days 00:00:00.5", "-1 day, 23:59:59", "PT2M"])[0].tolist()
    [60.0, 86400.5, -1.0, 120.0]
    """
    form = form_of(texts, missing)
    if len(texts) > 256 and form != "span":
        quick = _quick_numbers(texts, missing, form == "date")
        if quick is not None:
            return quick, -1
    read = READERS[form]
    if truths and next((text for text in texts if text not in missing), "") in TRUTHS:
        read = _truth
    numbers = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if text in missing:
            continue
        try:
            numbers[k] = read(text)
        except (ValueError, OverflowError):
            return numbers, k
    return numbers, -1


def form_of(texts: Iterable[str], missing: Sequence[str] = MISSING) -> str:
    """How the first text that is not missing is written: as a `date`, as a duration (`span`), else as a `number`."""
    first = next((text for text in texts if text not in missing), "")
    return "date" if DATE.fullmatch(first) else "number" if _microseconds(first) is None else "span"


def number_in(text: str) -> float:
    """A text as a number, or a `ValueError`."""
    if "_" in text:  # Python reads 1_000 as a number, other programs do not
        raise ValueError(text)
    return float(text)


def _date(text: str) -> float:
    """Seconds since 1970; a time without a zone is of UTC, as in data frames."""
    if DATE.fullmatch(text) is None:
        raise ValueError(text)
    return moment(datetime.fromisoformat(text.strip()))


def _span(text: str) -> float:
    """The seconds of a duration."""
    found = _microseconds(text)
    if found is None:
        raise ValueError(text)
    return found / SECOND


def _truth(text: str) -> float:
    """0 or 1 of a Boolean."""
    if text not in TRUTHS:
        raise ValueError(text)
    return float(TRUTHS[text])


READERS: dict[str, Callable[[str], float]] = {"number": number_in, "date": _date, "span": _span}


def _microseconds(text: str) -> int | None:
    """The microseconds of a duration; None if it is none."""
    if text[:1] not in BEGINS:
        return None
    found = CLOCK.fullmatch(text)
    if found is not None and (found[1] or found[3]):
        days, sign, hours, minutes, seconds, part = found.groups()
        whole = ((int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)) * 10**6 + _fraction(part)
        return int(days or 0) * 86_400 * 10**6 + (-whole if sign == "-" else whole)
    found = ISO.fullmatch(text)
    if found is None:
        return None
    sign, weeks, days, hours, minutes, seconds, part = found.groups()
    all_days = 7 * int(weeks or 0) + int(days or 0)
    clock = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    whole = (all_days * 86_400 + clock) * 10**6 + _fraction(part)
    return -whole if sign == "-" else whole


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(6, "0")[:6])


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
        return seconds_of(given.cast(pa.timestamp("us"))) if dates else floats_of(given)
    except pa.ArrowInvalid:
        return None


# --- categories -------------------------------------------------------------------------------------------------------


def meaning(text: str) -> str:
    """One spelling of what may be written in several ways: Booleans, dates and durations, and 2.0 for 2.

    >>> [meaning(text) for text in ("TRUE", "1970-01-02", "00:01:00", "2.0", "2.5", "red")]
    ['True', '86400', '60', '2', '2.5', 'red']
    """
    if text[:1] not in BEGINS:
        return text
    if text in TRUTHS:
        return NAMES[TRUTHS[text]]
    whole = WHOLE.fullmatch(text)
    if whole is not None:
        return whole[1]
    form = form_of((text,), ())
    if form == "number":
        return text
    try:
        return number_text(READERS[form](text))
    except (ValueError, OverflowError):  # the 30th of February
        return text


def one_spelling(texts: Mapping[str, int]) -> dict[str, int]:
    """The counts of categories, spelled in one way if all may be: all Booleans, all whole numbers, or all moments."""
    words = all(text in WRITTEN for text in texts) and any(text in TRUTHS for text in texts)
    if words:
        return _counted((NAMES[WRITTEN[text]], count) for text, count in texts.items())
    if all(text.removeprefix("-").isdecimal() or WHOLE.fullmatch(text) for text in texts):
        return _counted((meaning(text), count) for text, count in texts.items())
    if all(form_of((text,), ()) != "number" for text in texts):
        return _counted((meaning(text), count) for text, count in texts.items())
    return dict(texts)


def _counted(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for text, count in pairs:
        made[text] = made.get(text, 0) + count
    return made


def spellings(texts: Sequence[str]) -> dict[str, int]:
    """The number of each category, counted from 0, by its text and by what that means.

    >>> spellings(["true", "false"])["0"], spellings(["1.0", "2.5"])["1"]
    (1, 0)
    """
    made = {meaning(text): k for k, text in reversed([*enumerate(texts)])}
    if texts and all(text in WRITTEN for text in texts):
        by_truth = {WRITTEN[text]: k for k, text in reversed([*enumerate(texts)])}
        made |= {name: by_truth[truth] for name, truth in WRITTEN.items() if truth in by_truth}
    return made | {text: k for k, text in enumerate(texts)}


def number_text(value: float) -> str:
    """A number as it would stand in a file: whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


# --- objects ----------------------------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    """What an object in a table is."""
    if isinstance(value, bool | np.bool_):
        return "truth"
    if isinstance(value, date | np.datetime64):  # or a datetime, or pandas' Timestamp
        return "date"
    if isinstance(value, timedelta | time | np.timedelta64):
        return "span"
    return "number" if isinstance(value, Real | Decimal) else "text"


def moment(value: Any) -> float:
    """Seconds since 1970 of a date or time as an object."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64)) / SECOND
    when = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (when.replace(tzinfo=when.tzinfo or UTC) - EPOCH) // MICROSECOND / SECOND


def length(value: Any) -> float:
    """The seconds of a duration, or of a time of day since midnight, as an object."""
    if isinstance(value, np.timedelta64):
        return int(value.astype("timedelta64[us]").astype(np.int64)) / SECOND
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return value // MICROSECOND / SECOND


def number(value: Any) -> float:
    """A number as a float; one that is too large is infinite, as it is where a file is read."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def written(value: Any) -> str:
    """A value as a text; Python writes no decimals of thousands of digits."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
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


# --- Arrow ------------------------------------------------------------------------------------------------------------


def seconds_of(column: Any) -> np.ndarray:
    """Dates, times and durations in seconds, whatever their unit."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False)
    else:
        column = column.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us"), safe=False)
    return floats_of(column.cast(pa.int64())) / SECOND


def floats_of(column: Any) -> np.ndarray:
    """A column of numbers, NaN for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = pc.cast(column, pa.float64(), safe=False)
    return np.array(plain(made.fill_null(np.nan) if made.null_count else made, np.float64))


def plain(array: Any, kind: Any) -> np.ndarray:
    """The numbers of an Arrow array without nulls; its own `to_numpy` would import pandas, which takes a while."""
    values = array.buffers()[1]
    if len(array) == 0 or values is None:
        return np.zeros(0, kind)
    return np.frombuffer(values, kind, count=array.offset + len(array))[array.offset :]
