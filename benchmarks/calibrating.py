"""How many labelled rows it takes to calibrate a trained classifier for data that have changed.

The rows of a table are drawn at random as samples of several sizes, or are its first ones; the model is calibrated with
the sample, and the calibration error is that on all other rows.

    lols train classifier kdd99-10percent.csv.gz --label-map kdd99 --cost-matrix kdd99 --calibrate -o kdd.lols
    python -m benchmarks.calibrating kdd.lols kdd99-corrected.csv.gz
"""

from __future__ import annotations

import argparse

import numpy as np

import lols
from lols.tasks.tables.predicting import drawn_rows
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.targets import Targets
from lols.training.calibration import Reliability

SIZES = (200, 500, 1_000, 2_000, 5_000, 20_000)


def error(model: lols.CostSensitiveClassifier, rows: Rows, true: np.ndarray) -> float:
    """The calibration error on some rows."""
    numbers, sure = model.confident_rows(rows)
    return Reliability.of(sure, numbers == true).error


def calibrated(model: lols.CostSensitiveClassifier, rows: Rows, targets: Targets, sample: np.ndarray) -> float:
    """The error on the rows that are not in the sample, after the model was calibrated with it."""
    model._recalibrate(model._judged_on(rows.take(sample), targets.take(sample)))
    rest = np.setdiff1d(np.arange(rows.rows), sample)
    return error(model, rows.take(rest), targets.cheapest[rest])


def main() -> None:
    """Print the table of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a calibrated classifier")
    parser.add_argument("table", help="a labelled table")
    parser.add_argument("--samples", type=int, default=10, help="how many are drawn of each size")
    given = parser.parse_args()
    model = lols.load(given.model)
    layout = model.file_columns
    rows, targets, count = drawn_rows(model, model.open_file(given.table, layout), layout, None, 0)
    print(f"before: {error(model, rows, targets.cheapest):.4f} on {count:,} rows\n")
    print(
        "| sample | rows drawn at random | the worst of these samples | the first rows of the file |\n|---|---|---|---|"
    )
    for size in (size for size in SIZES if size < count):
        orders = [np.random.default_rng(seed).permutation(count)[:size] for seed in range(given.samples)]
        found = [calibrated(model, rows, targets, np.sort(order)) for order in orders]
        first = calibrated(model, rows, targets, np.arange(size))
        print(f"| {size:,} | {np.mean(found):.4f} | {max(found):.4f} | {first:.4f} |", flush=True)


if __name__ == "__main__":
    main()
