"""What the examples share: one task learned in four ways, and a table that compares each of them with the teacher.

All are measured on the same test examples, so that differences are paired: their intervals come from resampling test
examples, each with its mean over the seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import lols

__all__ = ["STRATEGIES", "TEACHER", "compare", "follow", "interval", "options", "show", "summary", "typical"]

STRATEGIES: dict[str, dict[str, Any]] = {
    "imitation (DAgger)": {"algorithm": "dagger"},
    "reference roll-outs": {"roll_out": "reference"},
    "LOLS": {},
    "learned roll-outs": {"roll_out": "learned"},
}
TEACHER = "the teacher"
RESAMPLES = 2000


def options(description: str, argv: list[str] | None, size: int, *, pictures: bool = False) -> argparse.Namespace:
    """The options that each example has."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--size", type=int, default=size, help=f"training examples (default {size})")
    parser.add_argument("--tests", type=int, default=1000, help="test examples (default 1000)")
    parser.add_argument("--seeds", type=int, default=3, help="models for each strategy (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="what data and models are drawn from (default 0)")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object, and nothing else")
    if pictures:
        parser.add_argument("--svg", type=Path, help="draw an example, before and after, into this file")
    parser.add_argument("--uncompiled", action="store_true", help="run as plain Python: slow, for small sizes")
    chosen = parser.parse_args(argv)
    for name in ("size", "tests", "seeds"):
        if getattr(chosen, name) < 1:
            parser.error(f"--{name} must be at least 1")
    os.environ.setdefault("LOLS_ANNOUNCE", "0")  # said here instead
    if not (chosen.json or chosen.uncompiled):
        print("The first run compiles, which takes about a minute.\n", flush=True)
    return chosen


def compare(
    task: Any, train: list[Any], test: list[Any], chosen: argparse.Namespace, **training: Any
) -> tuple[dict[str, np.ndarray], lols.Model]:
    """The loss on each test example, for teacher and strategies, a row for each seed; and the first model of LOLS."""
    training["compiled"] = not chosen.uncompiled
    learn_from, measure_on = lols.Examples(task, train), lols.Examples(task, test)
    models = {
        name: [
            lols.train(task, learn_from, seed=seed, **strategy, **training)
            for seed in range(chosen.seed, chosen.seed + chosen.seeds)
        ]
        for name, strategy in STRATEGIES.items()
    }
    first = models["LOLS"][0]
    losses = {TEACHER: first.reference_losses(measure_on)[np.newaxis]}
    losses |= {name: np.stack([model.losses(measure_on) for model in made]) for name, made in models.items()}
    return losses, first


def follow(task: Any, obj: Any) -> Any:
    """What the task's own teacher makes of one object: its steps from start to end, as plain Python."""
    space = task.space
    examples = lols.Examples(space, [obj])
    x, y = examples.example(0)
    state, legal = np.zeros(int(examples.states[0]), np.int32), np.zeros(space.sizes.actions, bool)
    space.start(x, state)
    space.actions(x, state, legal)
    while legal.any():
        space.step(x, state, task.teacher.action(x, y, state))
        legal[:] = False
        space.actions(x, state, legal)
    return space.output(x, state)


def typical(losses: dict[str, np.ndarray], quantile: float = 0.5) -> int:
    """The test example at which the first model of LOLS gains as much as at the median of all, or at a quantile.

    >>> typical({TEACHER: np.array([[5.0, 5.0, 5.0]]), "LOLS": np.array([[1.0, 3.0, 4.0]])})
    1
    """
    order = np.argsort(losses[TEACHER][0] - losses["LOLS"][0], kind="stable")
    return int(order[round(quantile * (order.size - 1))])


def interval(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of a mean, by the bootstrap.

    >>> low, high = interval(np.array([0.9, 1.1] * 50))
    >>> low < 1.0 < high, high - low < 0.1
    (True, True)
    """
    drawn = np.random.default_rng(seed).integers(differences.size, size=(RESAMPLES, differences.size))
    low, high = np.percentile(differences[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def summary(losses: dict[str, np.ndarray], best: str, seed: int = 0) -> list[dict[str, Any]]:
    """For each row of the table: mean, its standard error, and the difference to the teacher with its interval.

    `best` is the row that shows what is possible: it closes the whole gap.
    """
    means = {name: by_seed.mean(axis=0) for name, by_seed in losses.items()}
    gap = (means[TEACHER] - means[best]).mean()
    rows: list[dict[str, Any]] = []
    for name, each in means.items():
        row = {"name": name, "mean": float(each.mean()), "error": float(each.std() / np.sqrt(each.size))}
        if name != TEACHER:
            low, high = interval(each - means[TEACHER], seed)
            row |= {"difference": float((each - means[TEACHER]).mean()), "low": low, "high": high}
            row |= {"closed": float((means[TEACHER] - each).mean() / gap), "seeds": losses[name].mean(axis=1).tolist()}
        rows.append(row)
    return rows


def show(losses: dict[str, np.ndarray], best: str, unit: str, chosen: argparse.Namespace, began: float) -> None:
    """Print the table, or with `--json` the figures."""
    rows, seconds = summary(losses, best, chosen.seed), time.perf_counter() - began
    if chosen.json:
        print(json.dumps({"rows": rows, "size": chosen.size, "tests": chosen.tests, "seconds": seconds}))
        return
    gain = (losses["LOLS"] - losses["reference roll-outs"]).mean(axis=0)
    low, high = interval(gain, chosen.seed)
    print(f"{unit:<26}{'mean':>8}{'± s.e.':>9}{'to teacher':>13}   {'95 % interval':<18}{'gap closed':>10}")
    for row in rows:
        line = f"{row['name']:<26}{row['mean']:>8.3f}{row['error']:>9.3f}"
        if "difference" in row:
            between = f"[{row['low']:+.3f}, {row['high']:+.3f}]"
            line += f"{row['difference']:>+13.3f}   {between:<18}{row['closed']:>10.0%}"
        print(line)
    print(f"\nLOLS to reference roll-outs: {gain.mean():+.3f} [{low:+.3f}, {high:+.3f}]")
    print(
        f"{chosen.tests} test examples, {chosen.size} to learn from, {chosen.seeds} seeds; "
        f"intervals by the paired bootstrap; {seconds:.0f} s."
    )
