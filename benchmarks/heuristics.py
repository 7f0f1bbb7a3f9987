"""LOLS or reference roll-outs, if the teacher is a heuristic? Problems of operations research, good and bad rules.

``python benchmarks/heuristics.py`` trains each strategy for each rule on eight sets of instances and prints the table
of docs/results/problems.md; ``--only packing`` one problem. Short runs: twenty minutes on two cores, and some more for
compiling the first time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import bin_packing as packing
import graph_colouring as colouring
import job_shop
import tardiness
import tsp_insertion as insertion
import vrp

import lols

STRATEGIES: dict[str, dict[str, Any]] = {
    "reference": {"algorithm": "aggrevate"},
    "β = 0.5": {"algorithm": "lols", "beta": 0.5},
    "auto": {"algorithm": "lols", "beta": "auto"},
}
LEARNER = lols.LearnerSettings("hinge", "adagrad", margin="cost", scale=None)
PASSES, TESTS = 3, 200


class Problem(NamedTuple):
    """A problem: its task, what draws an instance, how many to learn from, and rules by name, good and bad."""

    task: Any
    draw: Callable[[np.random.Generator], Any]
    count: int
    good: str
    bad: str
    rules: dict[str, Any]


PROBLEMS = {
    "tardiness": Problem(
        tardiness.Tardiness, tardiness.draw, 100, "apparent tardiness cost", "earliest due date", tardiness.RULES
    ),
    "packing": Problem(
        packing.Packing,
        lambda rng: packing.draw(rng, items=120),
        60,
        "best fit",
        "worst fit",
        packing.RULES,
    ),
    "vehicles": Problem(vrp.Vehicles, vrp.draw, 150, "savings", "nearest neighbour", vrp.RULES),
    "colouring": Problem(
        colouring.Colouring,
        lambda rng: colouring.draw(rng, 30),
        60,
        "DSATUR",
        "first candidate",
        colouring.RULES,
    ),
    "job_shop": Problem(job_shop.JobShop, job_shop.draw, 100, "MWKR", "SPT", job_shop.RULES),
    "salesman": Problem(
        insertion.Trip, insertion.draw, 100, "farthest insertion", "nearest to the last", insertion.RULES
    ),
}


class Result(NamedTuple):
    """The mean losses of a rule and of the strategies that learn from it, on each set of instances."""

    rule: np.ndarray
    learned: dict[str, np.ndarray]

    def to_best(self, name: str) -> tuple[float, float]:
        """How much a strategy loses to the best one, and the paired standard error of that."""
        best = min(self.learned.values(), key=lambda losses: float(losses.mean()))
        difference = self.learned[name] - best
        return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size))

    def level(self, name: str) -> bool:
        """Whether a strategy is the best, or within two standard errors of it."""
        worse, error = self.to_best(name)
        return worse <= 2.0 * error


def study(problem: Problem, rule: str, sets: int, **training: Any) -> Result:
    """Train each strategy on each set of instances: each has its own to learn from, and its own to test on."""
    reference, rules = problem.rules[rule], []
    learned: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    options = {"learner": LEARNER, "passes": PASSES, "threads": 2, "progress": False} | training
    for seed in range(sets):
        rng = np.random.default_rng([seed, 11])
        drawn = [problem.draw(rng) for _ in range(problem.count + TESTS)]
        train = lols.Examples(problem.task, drawn[: problem.count])
        test = lols.Examples(problem.task, drawn[problem.count :])
        for name, strategy in STRATEGIES.items():
            model = lols.train(problem.task, train, reference, seed=seed, **strategy, **options)
            learned[name].append(float(model.losses(test).mean()))
        rules.append(float(model.reference_losses(test, reference).mean()))
    return Result(np.array(rules), {name: np.array(losses) for name, losses in learned.items()})


def cell(result: Result, name: str) -> str:
    """The mean loss, with what it loses to the best strategy; in bold if it is the best or level with it."""
    worse, error = result.to_best(name)
    text = f"{result.learned[name].mean():.3f}" + (f" (+{worse:.3f} ± {error:.3f})" if worse > 0.0 else "")
    return f"**{text}**" if result.level(name) else text


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--sets", type=int, default=8)
    chosen = parser.parse_args(argv)
    table = Table("problem", "rule", "the rule's loss", *STRATEGIES, "seconds")
    for name in chosen.only:
        problem = PROBLEMS[name]
        for rule in (problem.good, problem.bad):
            began = time.perf_counter()
            result = study(problem, rule, chosen.sets)
            seconds = f"{time.perf_counter() - began:.0f}"
            row = [name, rule, f"{result.rule.mean():.3f}", *(cell(result, each) for each in STRATEGIES), seconds]
            table.add_row(*row)
            print(" | ".join(row), file=sys.stderr, flush=True)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
