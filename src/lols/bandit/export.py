"""The decisions of a log as a table: one row for each, with its losses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lols.bandit.entries import WHOLE, Decision, Log, Loss
from lols.errors import ConfigurationError, LolsError
from lols.io.whole_file import write_whole

AT_ONCE = 10_000  # rows of a group in a Parquet file


def rows_of(log: Log) -> Iterator[dict[str, Any]]:
    """A row for each decision: what was shown for which object, with which chances, and its losses so far.

    `loss` is that of the whole structure; `losses` has one for each step, None where it is not known.
    """
    losses: dict[str, dict[int, float]] = {}
    for entry in log.replay():
        if isinstance(entry, Loss):
            losses.setdefault(entry.id, {}).update(entry.losses)
    for entry in log.replay():
        if isinstance(entry, Decision):
            yield _row(entry, losses.get(entry.id, {}))


def _row(entry: Decision, losses: Mapping[int, float]) -> dict[str, Any]:
    steps = [losses.get(step) for step in range(entry.actions.size)]
    return {
        "id": entry.id,
        "number": entry.number,
        "time": entry.time,
        "context": entry.context,
        "actions": entry.actions.tolist(),
        "chances": entry.chances.astype(float).tolist(),
        "baseline": None if entry.baseline is None else entry.baseline.tolist(),
        "explored": entry.explored,
        "step": entry.step,
        "action": entry.action,
        "chance_action": entry.chance_action,
        "propensity": None if math.isnan(entry.propensity) else entry.propensity,
        "version": entry.version,
        "guarded": entry.guarded,
        "active": entry.active,
        "loss": losses.get(WHOLE),
        "losses": steps if any(loss is not None for loss in steps) else None,
    }


def export(log: Log, path: Path) -> int:
    """Write the decisions of a log to a Parquet file, or as lines of JSON; the number of rows."""
    if path.suffix == ".parquet":
        return _write_parquet(log, path)
    if path.suffix not in (".jsonl", ".ndjson"):
        raise ConfigurationError(f"{path}: give a file whose name ends in .parquet or .jsonl")
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(log)]
    write_whole(path, "".join(lines).encode())
    return len(lines)


def _write_parquet(log: Log, path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise LolsError("Parquet files need pyarrow: pip install 'lols[tables]'; or give a .jsonl file") from None
    kinds = {"id": pa.string(), "number": pa.int64(), "time": pa.float64(), "context": pa.string()}
    kinds |= {"actions": pa.list_(pa.int32()), "chances": pa.list_(pa.float32()), "baseline": pa.list_(pa.int32())}
    kinds |= {"explored": pa.bool_(), "step": pa.int64(), "action": pa.int64(), "chance_action": pa.float64()}
    kinds |= {"propensity": pa.float64(), "version": pa.int64(), "guarded": pa.bool_(), "active": pa.bool_()}
    schema = pa.schema(kinds | {"loss": pa.float64(), "losses": pa.list_(pa.float64())})
    count, rows = 0, rows_of(log)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema) as writer:
        while group := [row for row, _ in zip(rows, range(AT_ONCE), strict=False)]:
            writer.write_table(pa.Table.from_pylist(group, schema))
            count += len(group)
    write_whole(path, sink.getvalue().to_pybytes())
    return count
