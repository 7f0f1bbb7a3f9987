"""What the examples of operations research share: rules, learned policy and solver on the same instances, in one table.

A solver is a function of an instance and a number of seconds that returns the loss it reaches, or None if it finds
nothing in that time. Without OR-Tools (`pip install 'lols[bench]'`) its rows are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import joblib
import numpy as np

import lols

__all__ = ["INSTALLED", "MINUTE", "compare", "cp_sat", "options", "solve_all"]

BEST_OF, MINUTE = 64, 60.0
INSTALLED = importlib.util.find_spec("ortools") is not None
WORKERS = 8  # of CP-SAT: each has a strategy of its own, also on fewer cores
Solver = Callable[[Any, float], float | None]
Plain = Callable[[Any], float]


def options(description: str, argv: list[str] | None, **more: Any) -> argparse.Namespace:
    """The options that each example has, and `more`: options of its own with their default."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, value in more.items():
        choices = value if isinstance(value, tuple) else None
        default = choices[0] if choices else value
        parser.add_argument(f"--{name}", type=type(default), default=default, choices=choices)
    parser.add_argument("--minutes", type=float, default=0.7, help="time to learn in (default 0.7)")
    parser.add_argument("--seed", type=int, default=0, help="what instances and policies are drawn from (default 0)")
    parser.add_argument("--tests", type=int, default=30, help="instances to compare on (default 30)")
    parser.add_argument("--long", type=float, default=1.0, help="seconds of the solver for an instance (default 1)")
    parser.add_argument("--minute", type=int, default=0, help="instances that the solver has a minute for (default 0)")
    parser.add_argument("--together", type=int, default=1, help="instances that are solved at a time (default 1)")
    chosen = parser.parse_args(argv)
    if chosen.tests < 2:
        parser.error("--tests must be at least 2")
    return chosen


def compare(
    task: Any,
    draw: Callable[[np.random.Generator], Any],
    rules: Mapping[str, lols.Reference | Plain],
    solvers: Mapping[str, Solver],
    chosen: argparse.Namespace,
    draw_test: Callable[[np.random.Generator], Any] | None = None,
    **learning: Any,
) -> Any:
    """Learn from the last rule, and print a table with all of them, the learned policy and the solvers.

    A rule is a reference, or a function that gives the loss of an instance. `draw_test` draws the instances of the
    table, if they are others than those to learn from; `learning` are options of `lols.optimise`. "Gap closed" is how
    much of the way from the last rule to the best that is known, instance by instance, each of them goes.
    """
    teacher, rule = list(rules.items())[-1]
    found = lols.optimise(task, draw, rule, minutes=chosen.minutes, best_of=1, seed=chosen.seed, **learning)
    rng = np.random.default_rng([chosen.seed, 1])  # others than those that were learned from
    test = [(draw_test or draw)(rng) for _ in range(chosen.tests)]
    examples, model = lols.Examples(task, test), found.model
    rows = {
        name: _timed(lambda rule=rule: np.array([rule(instance) for instance in test]))
        if callable(rule)
        else _timed(lambda rule=rule: model.reference_losses(examples, rule), compiling=True)
        for name, rule in rules.items()
    }
    kept = found.report.kept_heuristic
    rows["learned"] = _timed(lambda: model.losses(examples), compiling=True)
    model.losses(examples, best_of=2)  # compiles
    same = rows[f"learned, best of {BEST_OF}"] = _timed(lambda: model.losses(examples, best_of=BEST_OF))
    wanted, solvers = solvers, solvers if INSTALLED else {}
    for name, solver in solvers.items():
        for words, seconds in (("the same time", same[1]), (f"{chosen.long:g} s", chosen.long)):
            rows[f"{name}, {words}"] = solve_all(solver, test, seconds, chosen.together), seconds
    _print(rows, teacher)
    if solvers and chosen.minute > 0:
        print(f"\nThe first {chosen.minute} of them:", flush=True)
        some = {name: (losses[: chosen.minute], seconds) for name, (losses, seconds) in rows.items()}
        for name, solver in solvers.items():
            reached = solve_all(solver, test[: chosen.minute], MINUTE, chosen.together)
            some[f"{name}, a minute"] = reached, MINUTE
        _print(some, teacher)
    print(
        f"\n{len(test)} instances; learned in {found.report.seconds:.0f} s by {found.report.chosen}, from: {teacher}."
    )
    if kept:
        print("The learned policy was not better than the rule on held-out instances, so predictions are the rule's;")
        print("with samples, each is the better one of the rule's and the best sample.")
    if wanted and not INSTALLED:
        print("The rows of the solver are left out: pip install 'lols[bench]' installs OR-Tools.")
    return found


def solve_all(solver: Solver, instances: Sequence[Any], seconds: float, together: int) -> np.ndarray:
    """What a solver reaches on each instance, several at a time; NaN where it finds nothing."""
    work = (joblib.delayed(solver)(instance, seconds) for instance in instances)
    found = joblib.Parallel(n_jobs=together)(work)
    return np.array([np.nan if loss is None else loss for loss in found])


def _timed(losses: Callable[[], np.ndarray], *, compiling: bool = False) -> tuple[np.ndarray, float]:
    """Losses, and seconds for an instance; without the first time, if that may compile."""
    if compiling:
        losses()
    began = time.perf_counter()
    found = losses()
    return found, (time.perf_counter() - began) / found.size


def _print(rows: Mapping[str, tuple[np.ndarray, float]], teacher: str) -> None:
    base, best = rows[teacher][0], np.nanmin([losses for losses, _ in rows.values()], axis=0)
    print(f"{'':<32}{'loss':>10}{'to teacher':>12}{'± s.e.':>8}{'gap closed':>12}{'ms each':>10}")
    for name, (losses, seconds) in rows.items():
        known = ~np.isnan(losses)
        if not known.any():
            print(f"{name:<32}{'none':>10}{'':>32}{1000.0 * seconds:>10.2f}")
            continue
        change = 100.0 * (losses - base)[known] / base[known].mean()
        error = change.std() / np.sqrt(change.size)
        line = f"{name:<32}{losses[known].mean():>10.3f}{change.mean():>+11.2f}%{error:>8.2f}"
        closed = f"{(base - losses)[known].sum() / max((base - best)[known].sum(), 1e-9):.0%}"
        note = "" if known.all() else f"  on the {known.sum()} instances that it solved"
        print(f"{line}{closed:>12}{1000.0 * seconds:>10.2f}{note}")


def cp_sat(model: Any, seconds: float) -> float | None:
    """The value of the best solution that CP-SAT finds in so many seconds."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = WORKERS
    status = solver.solve(model)
    return solver.objective_value if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
