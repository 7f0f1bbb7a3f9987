"""Tables that scikit-learn ships or makes: the classifier with its defaults beside LightGBM and logistic regression.

Each table is split at random, three quarters for training, several times; figures are the mean accuracy on the rest and
its standard deviation over splits. All systems use their defaults; logistic regression gets standardised columns.

    python -m benchmarks.tables --splits 5
    python -m benchmarks.tables --splits 3 --calibration    # instead: how reliable its confidence is
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lols import CostSensitiveClassifier

Table = tuple[np.ndarray, np.ndarray]


def houses(rows: int = 4000, seed: int = 0) -> Table:
    """Districts of houses in four classes of price: a formula with two cities, in columns like those of California."""
    rng = np.random.default_rng(seed)
    income, age, rooms = rng.lognormal(1.2, 0.5, rows), rng.uniform(1, 52, rows), rng.lognormal(1.6, 0.3, rows)
    bedrooms, people = rng.lognormal(0.0, 0.1, rows), rng.lognormal(7.0, 0.7, rows)
    together, north, west = rng.lognormal(1.0, 0.3, rows), rng.uniform(32, 42, rows), rng.uniform(-124, -114, rows)
    first = np.exp(-((north - 34.0) ** 2 + (west + 118.0) ** 2) / 2.0)
    second = np.exp(-((north - 37.7) ** 2 + (west + 122.4) ** 2) / 1.5)
    price = 0.45 * income + 0.012 * age + 1.5 * (first + second) - 0.25 * together + 0.5 * bedrooms
    price += rng.normal(0.0, 0.5, rows)
    X = np.column_stack([income, age, rooms, bedrooms, people, together, north, west])
    return X, np.digitize(price, np.quantile(price, [0.25, 0.5, 0.75]))


def tables() -> Iterator[tuple[str, Table]]:
    """The tables by name."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, getattr(datasets, f"load_{name}")(return_X_y=True)
    yield "moons", datasets.make_moons(2000, noise=0.25, random_state=0)
    yield "hastie", datasets.make_hastie_10_2(4000, random_state=0)
    three: dict[str, Any] = {"n_informative": 6, "n_redundant": 4, "n_classes": 3, "flip_y": 0.05}
    yield "three classes", datasets.make_classification(5000, 20, random_state=1, **three)
    yield "noisy", datasets.make_classification(3000, 30, n_informative=5, flip_y=0.1, random_state=2)
    yield "houses", houses()


def systems() -> dict[str, Callable[[], Any]]:
    """What makes a classifier of each system."""
    from lightgbm import LGBMClassifier

    return {
        "lols": lambda: CostSensitiveClassifier(progress=False),
        "lols as for large tables": lambda: CostSensitiveClassifier(
            numeric="bins", tree="order", passes=5, progress=False
        ),
        "LightGBM": lambda: LGBMClassifier(verbose=-1, n_jobs=1),
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def calibration(splits: int) -> None:
    """Print the calibration error on each table, and the part of it that chance alone explains."""
    print("| table | test rows | calibration error | by chance alone |\n|---|---|---|---|")
    for name, (X, y) in tables():
        found = []
        for split in range(splits):
            train_x, test_x, train_y, test_y = train_test_split(X, y, test_size=0.25, random_state=split, stratify=y)
            model = CostSensitiveClassifier(calibrate=True, progress=False).fit(train_x, train_y)
            seen = model.evaluate(test_x, test_y).reliability
            found.append((seen.error, seen.by_chance))
        error, chance = np.mean(found, axis=0)
        print(f"| {name} | {len(test_y):,} | {error:.3f} | {chance:.3f} |", flush=True)


def main() -> None:
    """Print the table of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of tables")
    parser.add_argument("--calibration", action="store_true", help="measure confidence instead of accuracy")
    given = parser.parse_args()
    if given.calibration:
        calibration(given.splits)
        return
    made = systems()
    CostSensitiveClassifier(progress=False).fit(
        *datasets.load_iris(return_X_y=True)
    )  # compiled before anything is timed
    seconds = dict.fromkeys(made, 0.0)
    fits = 0
    print("| table | rows × columns | " + " | ".join(made) + " |")
    print("|---|---|" + "---|" * len(made))
    for name, (X, y) in tables():
        if given.only and name not in given.only:
            continue
        found: dict[str, list[float]] = {system: [] for system in made}
        for split in range(given.splits):
            train_x, test_x, train_y, test_y = train_test_split(X, y, test_size=0.25, random_state=split, stratify=y)
            fits += 1
            for system, make in made.items():
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of names of columns
                    found[system].append(make().fit(train_x, train_y).score(test_x, test_y))
                seconds[system] += time.process_time() - began
        best = max(np.mean(scores) for scores in found.values())
        cells = [f"{np.mean(s):.3f} ± {np.std(s):.3f}" for s in found.values()]
        cells = [f"**{c}**" if np.mean(s) == best else c for c, s in zip(cells, found.values(), strict=True)]
        print(f"| {name} | {X.shape[0]:,} × {X.shape[1]} | " + " | ".join(cells) + " |", flush=True)
    spent = " | ".join(f"{seconds[system] / max(fits, 1):.2f}" for system in made)
    print(f"| CPU seconds for a fit and a score, on average | | {spent} |")


if __name__ == "__main__":
    main()
