"""What the tests of classifiers on the command line share."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

from lols.io.model_file import read_tensors
from tests.cli.calling import PROGRESS, Ran, run

CLASSES = ["ask", "no", "yes"]
GIVEN = ("--numeric", "bins", "--tree", "order", "--passes", 5)  # all settings, so that none is chosen
COSTS = "ask,no,yes\n0,1,2\n1,0,1\nyes,4,1,0\n"


def fine(*arguments: Any) -> Ran:
    """What a command does; prediction may say something on standard error."""
    made = run(*arguments)
    assert made.code == 0 and (PROGRESS.sub("", made.err) == "" or arguments[0] == "predict"), made
    return made


def rows(count: int, seed: int, noise: float = 0.1) -> list[list[str]]:
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        age, colour, size = chance.randint(1, 80), chance.choice(["red", "blue", "light, green"]), chance.gauss(0, 9)
        label = "no" if age < 40 else "yes" if colour == "red" else "ask"
        label = chance.choice(CLASSES) if chance.random() < noise else label
        made.append(["" if chance.random() < 0.05 else str(age), colour, f"{size:.2f}", label])
    return made


def write(path: Path, table: list[list[str]], header: bool = True, separator: str = ",", end: str = "\n") -> Path:
    with open(path, "w", newline="") as file:
        out = csv.writer(file, delimiter=separator, lineterminator=end)
        out.writerows(([["age", "colour", "size", "label"]] if header else []) + table)
    return path


def read(path: Path) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


def train(*arguments: Any) -> dict[str, Any]:
    return fine("train", "classifier", *GIVEN, *arguments, "--json").json


def weights(path: Path) -> dict[str, Any]:
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in read_tensors(path, "model")[1].items()}
