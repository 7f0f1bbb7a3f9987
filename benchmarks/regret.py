"""The regret of Algorithm 2 where it is computed exactly: how it falls with the number of rounds (Corollary 2).

``python benchmarks/regret.py`` runs every learner for 10^3 to 10^6 rounds with 20 seeds, exploring as Corollary 2 says
for each number of rounds; prints a table for each; and draws the regret with its slope. It takes an hour on two cores;
what is done is kept, and ``--resume`` goes on from there. ``--seeds 4 --rounds 1000 10000 100000`` takes two minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lols.bandit.exploring import theory_epsilon
from lols.datasets.small_spaces import LADDER, SmallSpace, best_actions, ladder_space
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.runs import (
    RIDGE,
    Lives,
    Slope,
    log_log_slope,
    run_algorithm2,
    run_sides,
    tables_of,
)

BETA = 0.5
AT_ONCE = 8192  # versions that are averaged in one go
LEARNERS = {
    "ridge": RIDGE,
    "adagrad": LearnerSettings("csoaa", "adagrad", bits=8),
    "nag": LearnerSettings("csoaa", "nag", bits=8),
}  # AdaGrad is the bandit's default, NAG the paper's
ROUNDS = (1_000, 10_000, 100_000, 1_000_000)
WORLDS = {"right": (), "wrong": (2,)}  # the steps at which the rules are wrong
SETTINGS = (("right", "ridge"), ("right", "adagrad"), ("right", "nag"), ("wrong", "ridge"))
MEASURES = {
    "left": "Theorem 3, left side",
    "most": "with each policy's own deviations",
    "whole": "with what exploring costs",
    "to_best": "J less the least J",
    "of_class": "T δ_class",
}
COLOURS = {"ridge": "#1b6ca8", "adagrad": "#c8553d", "nag": "#5b8c5a"}


class Task(NamedTuple):
    """One run."""

    rules: str
    learner: str
    rounds: int
    seed: int
    gaps: tuple[float, ...]

    @property
    def place(self) -> str:
        """Under what its figures are kept, with those of other seeds."""
        return f"{self.rules}/{self.learner}/{self.rounds}"


def world_of(rules: str, gaps: Sequence[float]) -> SmallSpace:
    """A ladder of gaps, with rules that are right or wrong."""
    return ladder_space(gaps, wrong=WORLDS[rules])


def measure(task: Task) -> tuple[Task, dict[str, float]]:
    """Run, and compute the regret."""
    world, began = world_of(task.rules, task.gaps), time.perf_counter()
    lives = run_algorithm2(world, task.rounds, seed=task.seed, beta=BETA, learner=LEARNERS[task.learner])
    made = run_sides(world, lives, BETA)
    exact, least = world.exact(tables_of(world, lives.codes[-1:])), best_actions(world.follow, world.losses)
    optimum, reference = (float(world.exact(table[np.newaxis]).loss[0]) for table in (least, world.reference))
    return task, {
        "left": made.left,
        "most": made.most,
        "to_reference": made.to_reference,
        "whole": whole_regret(world, lives, BETA),
        "to_best": made.to_reference + reference - optimum,
        "last": float(exact.loss[0]) - optimum,
        "full": made.right,
        "of_class": made.of_class,
        "distinct": np.unique(lives.codes).size,
        "explored": lives.codes.size - 1,
        "seconds": time.perf_counter() - began,
    }


def whole_regret(space: SmallSpace, lives: Lives, beta: float) -> float:
    """The regret as section 6 means it: at each round's own averaged policy, and with what exploring costs.

    It is the mean over rounds of Theorem 3's left side at the average over all policies so far. In a round that
    exploits, the expected loss is that of the averaged policy; one that explores has the expected loss of a uniform
    deviation instead.
    """
    codes, which = np.unique(lives.codes, return_inverse=True)
    exact = space.exact(tables_of(space, codes))
    teacher, steps = space.exact(space.reference[np.newaxis]), space.steps
    out = beta * teacher.worths + (1.0 - beta) * exact.worths
    exploring = (exact.visits * out.mean(axis=-1)).sum(axis=1) / steps
    costs = exact.visits[..., np.newaxis] * exact.worths
    loss_before, costs_before, total = 0.0, np.zeros(costs.shape[1:]), 0.0
    for first in range(0, which.size, AT_ONCE):
        part = which[first : first + AT_ONCE]
        so_far = np.arange(first + 1, first + part.size + 1)
        losses = loss_before + np.cumsum(exact.loss[part])
        sums = costs_before + np.cumsum(costs[part], axis=0)
        loss_before, costs_before = losses[-1], sums[-1]
        mean = losses / so_far
        deviations = steps * mean - sums.min(axis=-1).sum(axis=-1) / so_far
        left = beta * (mean - teacher.loss[0]) + (1.0 - beta) * deviations
        spent = left + lives.epsilon * (exploring[part] - mean)
        total += float(lives.rounds[first : first + AT_ONCE] @ spent)
    return total / float(lives.rounds.sum())


def run_all(tasks: Sequence[Task], results: dict[str, dict[str, Any]], jobs: int, target: Path) -> None:
    """Run what is missing, the longest first; all that is done is written after each run."""
    missing = sorted((t for t in tasks if str(t.seed) not in results.get(t.place, {})), key=lambda t: -t.rounds)
    if not missing:
        return
    for learner in sorted({t.learner for t in missing}):
        measure(Task("right", learner, 100, 0, LADDER))  # compiled here, once, for all processes
    whole, done, began = sum(t.rounds for t in missing), 0, time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(measure, task) for task in missing]):
            task, found = future.result()
            results.setdefault(task.place, {})[str(task.seed)] = found
            write(target, task.gaps, results)
            done += task.rounds
            left = (time.perf_counter() - began) * (whole / done - 1.0) / 60.0
            print(
                f"{task.place} seed {task.seed}: {found['left']:.5f} in {found['seconds']:.1f} s; "
                f"{100 * done / whole:.0f} % done, about {left:.0f} minutes to go",
                file=sys.stderr,
                flush=True,
            )


def write(target: Path, gaps: Sequence[float], results: dict[str, Any], slopes: dict[str, Any] | None = None) -> None:
    """The figures so far."""
    target.parent.mkdir(parents=True, exist_ok=True)
    made = {"gaps": list(gaps), "beta": BETA, "runs": results, "slopes": slopes or {}}
    target.write_text(json.dumps(made, indent=1))


def figures(results: dict[str, dict[str, Any]], place: str, name: str) -> list[float]:
    """One measure of all seeds."""
    return [run[name] for run in results[place].values()]


def report(
    results: dict[str, dict[str, Any]], rounds: Sequence[int], policies: float, console: Console
) -> dict[str, Slope]:
    """Print the table; the slopes by rules, learner and measure."""
    slopes: dict[str, Slope] = {}
    for rules, learner in SETTINGS:
        if f"{rules}/{learner}/{rounds[0]}" not in results:
            continue
        seeds = len(results[f"{rules}/{learner}/{rounds[0]}"])
        title = f"csoaa, {learner}; the rules are {rules}; mean of {seeds} seeds"
        table = Table("regret", *(f"N = {n:,}" for n in rounds), "slope", "95 % interval", "last two", title=title)
        for name, words in MEASURES.items():
            runs = [figures(results, f"{rules}/{learner}/{n}", name) for n in rounds]
            slope = log_log_slope(rounds, runs)
            slopes[f"{rules}/{learner}/{name}"] = slope
            fits = np.isfinite(slope.value)
            interval = f"{slope.low:.2f} to {slope.high:.2f}" if fits else ""
            means = (f"{np.mean(values):.5f}" for values in runs)
            end = f"{log_log_slope(rounds[-2:], runs[-2:]).value:.3f}" if fits else ""
            table.add_row(words, *means, f"{slope.value:.3f}" if fits else "none: negative", interval, end)
        table.add_row("ε(N)", *(f"{theory_epsilon(n, 2, 3, policies):.3f}" for n in rounds))
        console.print(table)
    return slopes


def draw(results: dict[str, dict[str, Any]], slopes: dict[str, Slope], rounds: Sequence[int], target: Path) -> None:
    """The left side of Theorem 3 where the rules are right, on logarithmic scales."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    line = np.array([rounds[0] / 1.5, rounds[-1] * 1.5])
    first = None
    for learner, colour in COLOURS.items():
        slope = slopes.get(f"right/{learner}/left")
        if slope is None:
            continue
        runs = [np.array(figures(results, f"right/{learner}/{n}", "left")) for n in rounds]
        means = np.array([values.mean() for values in runs])
        bars = np.array([1.96 * values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0 for values in runs])
        first = means[0] if first is None else first
        axes.errorbar(
            rounds, means, yerr=np.minimum(bars, 0.99 * means), fmt="o", color=colour, capsize=3, markersize=5
        )
        label = f"csoaa, {learner}: slope {slope.value:.2f} ({slope.low:.2f} to {slope.high:.2f})"
        axes.plot(line, slope.height * line**slope.value, color=colour, linewidth=1.4, label=label)
    if first is not None:
        axes.plot(
            line, first * (line / rounds[0]) ** (-1 / 3), "--", color="#777777", linewidth=1.2, label="slope -1/3"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rounds N")
    axes.set_ylabel("left side of Theorem 3 at the averaged policy")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150)


def main() -> None:
    """Run, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs of each")
    parser.add_argument("--rounds", type=int, nargs="+", default=list(ROUNDS), help="numbers of rounds, at least two")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", nargs="+", metavar="RULES/LEARNER", help="such as right/ridge; all unless given")
    parser.add_argument("--gaps", type=float, nargs="+", default=list(LADDER), help="what is at stake in each context")
    parser.add_argument("--resume", action="store_true", help="keep the runs that the JSON file has")
    parser.add_argument("--json", type=Path, default=Path("reports/regret.json"), help="where the figures go")
    parser.add_argument("--plot", type=Path, default=Path("reports/regret.png"), help="where the drawing goes")
    options = parser.parse_args()
    rounds = sorted(set(options.rounds))
    if len(rounds) < 2 or options.seeds < 1:
        parser.error("a slope needs two numbers of rounds and a seed")
    known = {f"{rules}/{learner}" for rules, learner in SETTINGS}
    wanted = set(options.only or known)
    if not wanted <= known:
        parser.error(f"--only takes {', '.join(sorted(known))}")
    gaps = tuple(options.gaps)
    results: dict[str, dict[str, Any]] = {}
    if options.resume and options.json.exists():
        kept = json.loads(options.json.read_text())
        if (tuple(kept["gaps"]), kept["beta"]) != (gaps, BETA):
            parser.error(f"{options.json} has runs in another world: give another --json, or leave out --resume")
        results = kept["runs"]
    tasks = [
        Task(rules, learner, n, seed, gaps)
        for rules, learner in SETTINGS
        if f"{rules}/{learner}" in wanted
        for n in rounds
        for seed in range(options.seeds)
    ]
    run_all(tasks, results, options.jobs, options.json)
    chosen = {t.place: {str(s): results[t.place][str(s)] for s in range(options.seeds)} for t in tasks}
    console = Console(width=130)
    slopes = report(chosen, rounds, 2.0 ** world_of("right", gaps).reference.size, console)
    write(options.json, gaps, results, {name: slope._asdict() for name, slope in slopes.items()})
    draw(chosen, slopes, rounds, options.plot)
    console.print(f"Figures written to {options.json}, the drawing to {options.plot}")


if __name__ == "__main__":
    main()
