"""The memory that wide tables take: peaks of `lols train`, `evaluate` and `predict`, from Parquet and from CSV.

The table has numbers, a category of many values and a text: by default 100,000 rows of 1,000 columns.

    python -m benchmarks.wide_tables --folder /tmp/wide
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

MIB = 1 << 20


def pieces(rows: int, columns: int, size: int = 10_000) -> Any:
    """Parts of the table: the class depends on ten columns, the category and a word of the text."""
    rng = np.random.default_rng(0)
    for begin in range(0, rows, size):
        count = min(size, rows - begin)
        numbers = rng.normal(size=(count, columns - 2)).astype(np.float32).round(4)
        town, word = rng.integers(50_000, size=count), rng.integers(2000, size=(count, 8))
        score = numbers[:, :10].sum(axis=1) + 2.0 * (town % 2) + 2.0 * (word[:, 0] % 2) - 2.0
        made = {f"x{k}": numbers[:, k] for k in range(columns - 2)}
        texts = [" ".join(f"w{k}" for k in each) for each in word.tolist()]
        label = np.where(score + rng.normal(size=count) > 0, "yes", "no")
        yield pa.table(made | {"town": [f"town {k}" for k in town.tolist()], "text": texts, "label": label})


def write(folder: Path, rows: int, columns: int) -> dict[str, Path]:
    """The table as Parquet and as CSV."""
    made = {kind: folder / f"wide.{kind}" for kind in ("parquet", "csv")}
    if all(path.exists() for path in made.values()):
        return made
    parquet = text = None
    for piece in pieces(rows, columns):
        parquet = parquet or pyarrow.parquet.ParquetWriter(made["parquet"], piece.schema)
        text = text or pyarrow.csv.CSVWriter(made["csv"], piece.schema)
        parquet.write_table(piece)
        text.write_table(piece)
    for writer in (parquet, text):
        if writer is not None:
            writer.close()
    return made


def measured(*command: str) -> tuple[float, float]:
    """The peak memory of a command in MiB, and its CPU seconds."""
    made = subprocess.Popen([sys.executable, "-m", "lols", *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(made.pid, 0)
    if status:
        raise SystemExit(f"lols {' '.join(command)}: failed")
    found: resource.struct_rusage = usage
    return found.ru_maxrss * 1024 / MIB, found.ru_utime + found.ru_stime


def main() -> None:
    """Print the table of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("wide"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    model = str(given.folder / "wide.lols")
    print("| file | MiB | command | peak, MiB | CPU s |\n|---|---|---|---|---|")
    for kind, path in write(given.folder, given.rows, given.columns).items():
        size = f"| {kind} | {path.stat().st_size / MIB:,.0f} "
        for memory in ("2GB", "256MB"):
            options = ("--text", "text", "--memory", memory, "-o", model)
            peak, seconds = measured("train", "classifier", str(path), *options)
            print(f"{size}| train, --memory {memory} | {peak:,.0f} | {seconds:.0f} |", flush=True)
        for command in (
            ["evaluate", model, str(path)],
            ["predict", model, str(path), "-o", str(path) + ".out." + kind],
        ):
            peak, seconds = measured(*command)
            print(f"{size}| {command[0]} | {peak:,.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
