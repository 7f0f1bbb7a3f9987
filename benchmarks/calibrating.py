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
from lols.tasks.tables.data import EncodedTable
from lols.tasks.tables.predicting import drawn_rows
from lols.training.calibration import Reliability

SIZES = (200, 500, 1_000, 2_000, 5_000, 20_000)


def error(model: lols.CostSensitiveClassifier, data: EncodedTable) -> float:
    """The calibration error on some rows."""
    numbers, sure = model._predicted(data, confidence=True)
    return Reliability.of(sure, numbers == data.targets.cheapest).error


def calibrated(model: lols.CostSensitiveClassifier, data: EncodedTable, sample: np.ndarray) -> float:
    """The error on the rows that are not in the sample, after the model was calibrated with it."""
    model._recalibrate(model._judged(data.take(sample)))
    return error(model, data.take(np.setdiff1d(np.arange(len(data)), sample)))


def main() -> None:
    """Print the table of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a calibrated classifier")
    parser.add_argument("table", help="a labelled table")
    parser.add_argument("--samples", type=int, default=10, help="how many are drawn of each size")
    given = parser.parse_args()
    model = lols.load(given.model)
    layout = model.file_columns
    data, count = drawn_rows(model, model.open_file(given.table, layout), layout, None, 0)
    print(f"before: {error(model, data):.4f} on {count:,} rows\n")
    print(
        "| sample | rows drawn at random | the worst of these samples | the first rows of the file |\n|---|---|---|---|"
    )
    for size in (size for size in SIZES if size < count):
        orders = [np.random.default_rng(seed).permutation(count)[:size] for seed in range(given.samples)]
        found = [calibrated(model, data, np.sort(order)) for order in orders]
        first = calibrated(model, data, np.arange(size))
        print(f"| {size:,} | {np.mean(found):.4f} | {max(found):.4f} | {first:.4f} |", flush=True)


if __name__ == "__main__":
    main()
