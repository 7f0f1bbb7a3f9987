"""How near pass mode comes to one machine: ``python -m benchmarks.mixing [--minutes M] [--jobs N]``.

EWT tagging (UPOS) and parsing, and KDD99, with 2, 8 and 32 shards, five seeds, everything else by default; and one-shot
averaging, where shards are trained to the end and averaged once. Shards are trained in one process: any number of
workers gives the same weights. Runs begin in the order of the seeds, and none begins after M minutes. Figures go to
reports/mixing.json as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATA = Path(os.environ.get("LOLS_DATA", "data"))
TASKS = ("tagging", "parsing", "kdd99")


class Run(NamedTuple):
    """One training; no shards is one machine, no legs is one-shot averaging."""

    task: str
    shards: int
    legs: int
    seed: int
    squares: str = "mean"


def runs(seeds: int) -> list[Run]:
    """All runs, in order."""
    ways = [(0, 1), (2, 4), (8, 4), (32, 4), (8, 1), (32, 1), (8, 0)]
    first = [Run(task, *way, 0) for way in ways for task in TASKS]
    compared = [Run(task, 8, 4, 0, "sum") for task in TASKS]
    return first + compared + [Run(task, *way, seed) for seed in range(1, seeds) for way in ways for task in TASKS]


class OneShot:
    """Shards that are trained to the end on their own, and averaged once by their rounds."""

    def __init__(self, run: Any, workers: Any, shards: int, legs: int):
        from lols.training.mixing import Mixing

        self.mixing, self.run = Mixing(run, workers, shards, 1), run

    def passes(self, bar: Any) -> Any:
        """All passes at once."""
        from lols.engines.protocol import Kept
        from lols.learners.mixing import changes_since, mixed
        from lols.training.mixing import train_shard

        run, mixing = self.run, self.mixing
        empty, ends = run.student.learner.state(), []
        for shard in range(len(mixing._data)):
            state = empty
            for number in range(run.trainer.passes):
                run.pass_ = number
                task = list(mixing._tasks(Kept(state), 0))[shard]
                state = mixed(state, [train_shard(task).changes])
            ends.append(changes_since(empty, state))
        run.student.learner.load(mixed(empty, ends, by="rounds"))
        run.pass_, run.offset = run.trainer.passes, 0
        yield


def measured(run: Run) -> dict[str, Any]:
    """Train and evaluate."""
    import functools

    import lols
    import lols.training.mixing as mixing
    import lols.training.trainer as trainer
    from lols.engines import InProcess

    began = time.perf_counter()
    mixing.mixed = functools.partial(MIXED or _keep(mixing), squares=run.squares)
    engine = None if not run.shards else InProcess(sync="pass", shards=run.shards, legs=run.legs or 1)
    trainer.Mixing = OneShot if run.shards and not run.legs else mixing.Mixing  # type: ignore[misc,assignment]
    options: dict[str, Any] = {"seed": run.seed, "engine": engine, "progress": False}
    if run.task == "kdd99":
        from lols.io.costs import read_cost_matrix, read_label_map

        classes, costs = read_cost_matrix("kdd99")
        known = {"classes": classes, "cost_matrix": costs, "label_map": read_label_map("kdd99")}
        model: Any = lols.CostSensitiveClassifier(**known, **options).fit_files([str(DATA / "kdd99-10percent.csv.gz")])
        found = model.evaluate_file(str(DATA / "kdd99-corrected.csv.gz")).as_dict()
        scores = {"accuracy": 100 * (1 - found["error"]), "cost": found["cost"]}
    else:
        kind, name = (lols.Tagger, "accuracy") if run.task == "tagging" else (lols.Parser, "las")
        model = kind(**options).fit_files([str(DATA / "ewt-train.conllu.gz")])
        scores = {name: 100 * model.evaluate_file(str(DATA / "ewt-test.conllu.gz")).as_dict()[name]}
    return run._asdict() | scores | {"seconds": time.perf_counter() - began}


MIXED: Any = None


def _keep(mixing: Any) -> Any:
    global MIXED
    MIXED = mixing.mixed
    return MIXED


def summary(found: list[dict[str, Any]]) -> list[str]:
    """A line for each way: mean and standard deviation, and the difference to one machine."""
    lines = []
    for task in TASKS:
        score = "las" if task == "parsing" else "accuracy"
        groups: dict[tuple[int, int, str], list[float]] = {}
        for each in found:
            if each["task"] == task:
                groups.setdefault((each["shards"], each["legs"], each["squares"]), []).append(each[score])
        one = np.mean(groups.get((0, 1, "mean"), [float("nan")]))
        for (shards, legs, squares), values in sorted(groups.items()):
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            how = f"{shards or 1:3} shards, {legs} legs" if legs else f"{shards:3} shards, one shot"
            mean = statistics.mean(values)
            lines.append(
                f"{task:8} {how:20} {squares:5} {mean:.2f} ± {spread:.2f}  {mean - one:+.2f}  ({len(values)} seeds)"
            )
    return lines


def main() -> None:
    """Run what there is time for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", default="reports/mixing.json")
    asked = parser.parse_args()
    Path(asked.output).parent.mkdir(parents=True, exist_ok=True)
    end, found, upcoming = time.monotonic() + 60 * asked.minutes, [], iter(runs(asked.seeds))
    with ProcessPoolExecutor(asked.jobs) as pool:
        waiting = {pool.submit(measured, run) for run in islice(upcoming, asked.jobs)}
        while waiting:
            done = next(as_completed(waiting))
            waiting.discard(done)
            found.append(done.result())
            print(json.dumps(found[-1]), flush=True)
            Path(asked.output).write_text(json.dumps(found, indent=1))
            following = next(upcoming, None) if time.monotonic() < end else None
            if following is not None:
                waiting.add(pool.submit(measured, following))
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
