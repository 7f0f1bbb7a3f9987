"""How many decisions a second: `decide` and `learn` of ten steps, in memory and with the log on disk, one core.

``python benchmarks/bandit.py`` prints the best of several runs; ten features a step, five actions, default settings.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import lols
from lols.datasets.worlds import tagging_space

STEPS, LABELS, OBJECTS = 10, 5, 2000
RUNS = 5


def decisions_per_second(objects: list[Any], rounds: int, **options: Any) -> float:
    """One run; what is compiled or opened first is not counted."""
    rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    with lols.StructuredBandit(tagging_space(labels=LABELS), rules, seed=1, **options) as bandit:
        began = 0.0
        for number in range(-300, rounds):
            if number == 0:
                began = time.perf_counter()
            shown = bandit.decide(objects[number % len(objects)])
            bandit.learn(shown.id, 0.5)
        return rounds / (time.perf_counter() - began)


def main() -> None:
    """Measure, and print a table."""
    draw = np.random.default_rng(0)
    objects = [{"words": draw.integers(0, 500, STEPS).tolist()} for _ in range(OBJECTS)]
    table = Table("log", "decisions of ten steps a second, best of runs", "worst")
    with tempfile.TemporaryDirectory() as folder:
        cases: list[tuple[str, int, dict[str, Any]]] = [
            ("in memory", 10_000, {}),
            ("a file", 5_000, {"log": "a"}),
            ("a file, every entry synced", 300, {"log": "b", "durability": "power"}),
        ]
        for name, rounds, options in cases:
            found = []
            for run in range(RUNS):
                place = {"log": Path(folder) / f"{options['log']}{run}.log"} if "log" in options else {}
                found.append(decisions_per_second(objects, rounds, **{**options, **place}))
            table.add_row(name, f"{max(found):,.0f}", f"{min(found):,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
