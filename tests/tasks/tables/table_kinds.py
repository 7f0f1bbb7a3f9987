"""One table in every form that a classifier takes, for tests."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Columns = Mapping[str, Sequence[Any]]  # numbers or texts; None where there is none


def number(value: Any) -> float:
    """A value as a number; dates are seconds."""
    if value is None:
        return float("nan")
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(seconds=1)
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days * 86400)
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(seconds=1)
    return float(value)


def is_text(column: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in column)


def pandas_plain(table: Columns) -> Any:
    made = {n: pd.Series(c, dtype=object) if is_text(c) else np.array([number(v) for v in c]) for n, c in table.items()}
    return pd.DataFrame(made)


def pandas_nullable(table: Columns) -> Any:
    made = {}
    for name, column in table.items():
        whole = not is_text(column) and all(v is None or (abs(v) < 2**53 and v == int(v)) for v in column)
        made[name] = pd.Series(column, dtype="string" if is_text(column) else "Int64" if whole else "Float64")
    return pd.DataFrame(made)


def pandas_category(table: Columns) -> Any:
    made: dict[str, Any] = {}
    for name, column in table.items():
        if is_text(column):
            found = sorted({v for v in column if v is not None}, reverse=True)
            made[name] = pd.Categorical(column, categories=["never there", *found])
        else:
            made[name] = pd.Series(column, dtype=object)
    return pd.DataFrame(made)


def polars_plain(table: Columns) -> Any:
    made = {n: pl.Series(c, dtype=pl.String if is_text(c) else pl.Float64, strict=False) for n, c in table.items()}
    return pl.DataFrame(made)


def polars_category(table: Columns) -> Any:
    made = {n: pl.Series(c, dtype=pl.Categorical if is_text(c) else pl.Float64, strict=False) for n, c in table.items()}
    return pl.DataFrame(made)


def arrow(table: Columns, text: Any = None, kind: Any = None) -> Any:
    kinds = {n: (text or pa.string()) if is_text(c) else (kind or pa.float64()) for n, c in table.items()}
    return pa.table(
        {
            n: pa.array([v if is_text(c) else None if v is None else float(v) for v in c], kinds[n])
            for n, c in table.items()
        }
    )


def arrow_dictionary(table: Columns) -> Any:
    """In two pieces, each with a dictionary of its own, one of them with nothing in it that means nothing."""
    half = len(next(iter(table.values()))) // 2
    made = {}
    for name, column in table.items():
        if not is_text(column):
            made[name] = pa.chunked_array([pa.array([None if v is None else float(v) for v in column], pa.float64())])
            continue
        pieces = []
        for part in (column[:half], column[half:]):
            texts: list[str | None] = ["never there", *sorted({v for v in part if v is not None}), None]
            codes = pa.array([texts.index(v) for v in part], pa.uint8())
            pieces.append(pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string())))
        made[name] = pa.chunked_array(pieces)
    return pa.table(made)


def listed(table: Columns) -> Any:
    return [list(row) for row in zip(*table.values(), strict=True)]


def objects(table: Columns) -> Any:
    rows = listed(table)
    made = np.empty((len(rows), len(table)), dtype=object)
    for k, row in enumerate(rows):
        made[k] = row
    return made


KINDS: dict[str, Callable[[Columns], Any]] = {
    "pandas": pandas_plain,
    "pandas nullable": pandas_nullable,
    "pandas category": pandas_category,
    "polars": polars_plain,
    "polars category": polars_category,
    "arrow": arrow,
    "arrow large": lambda table: arrow(table, pa.large_string()),
    "arrow view": lambda table: arrow(table, pa.string_view()),
    "arrow dictionary": arrow_dictionary,
    "arrow batch": lambda table: arrow(table).combine_chunks().to_batches()[0],
    "numpy": objects,
    "lists": listed,
}
