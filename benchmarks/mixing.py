"""How near pass mode comes to one machine: ``python -m benchmarks.mixing [--minutes M] [--jobs N] [--choose]``.

EWT tagging (UPOS) and parsing, and KDD99, with 2, 8 and 32 shards, five seeds, everything else by default; and one-shot
averaging, where shards are trained to the end and averaged once. With `--choose`, other ways to mix as well, one seed
each: they are compared on EWT's dev part, and the test parts are for the one that is best there. Shards are trained in
one process: any number of workers gives the same weights. No run begins after M minutes; each result is a line of JSON
in the output file, as it comes.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(os.environ.get("LOLS_DATA", "data"))
TASKS = ("parsing", "tagging", "kdd99")  # the longest first
ONE_SHOT = -1


class Run(NamedTuple):
    """One training; no shards is one machine, no legs is the default."""

    task: str
    shards: int = 0
    legs: int = 0
    first: int = 8
    by: str = "squares"
    squares: str = "independent"
    seed: int = 0


def runs(seeds: int, tasks: list[str], choose: bool) -> list[Run]:
    """All runs, in order."""
    ways = [(0, 0), (32, 0), (8, 0), (2, 0)]
    made = [Run(task, *way) for way, task in product(ways, tasks)]
    if choose:
        others: list[Any] = [(1, 1), (4, 1), (16, 8), (4, 8, "rounds")]  # first: as published
        others += [(4, 8, "squares", kind) for kind in ("sum", "mean")]
        made += [
            Run(task, shards, *way)
            for way, shards, task in product(others, (8, 32), tasks)
            if task != "kdd99"  # it has no dev part, and takes what is best for the others
        ]
    more = product(range(1, seeds), ways, tasks)
    made += [Run(task, *way, seed=seed) for seed, way, task in more]
    return made + [Run(task, 8, ONE_SHOT, 1, seed=seed) for seed, task in product(range(seeds), tasks)]


class OneShot:
    """Shards that are trained to the end on their own, and averaged once by their rounds."""

    def __init__(self, learning: Any, data: Any, workers: Any, shards: int, legs: tuple[int, int]):
        from lols.training.mixing import Mixing

        self.mixing, self.learning = Mixing(learning, data, workers, shards, (1, 1)), learning

    def passes(self, bar: Any) -> Any:
        """All passes at once."""
        from lols.learners.changes import Detour, apply_changes
        from lols.learners.mixing import mixed
        from lols.training.mixing import train_shard

        learning, mixing, ends = self.learning, self.mixing, []
        whole = learning.policy.learner
        for shard in range(len(mixing._data)):
            learner = learning.recipe.new_learner()
            learning.policy.go_on(learner)
            detour = Detour(learner)
            for number in range(learning.passes):
                learning.go_to(number, 0)
                mixing._share_whole()
                apply_changes(learner, train_shard(list(mixing._tasks())[shard]).changes)
            ends.append(detour.changes())
        apply_changes(whole, mixed(whole, ends, by="rounds"))
        learning.policy.go_on(whole)
        learning.go_to(learning.passes, 0)
        yield


def measured(run: Run, share: float = 1.0) -> dict[str, Any]:
    """Train on a share of the data, and evaluate."""
    import lols
    import lols.training.mixing as mixing
    import lols.training.trainer as trainer
    from lols.engines import InProcess
    from lols.learners.mixing import mixed

    began = time.perf_counter()
    mixing.mixed = functools.partial(mixed, by=run.by, squares=run.squares)  # type: ignore[assignment]
    mixing.FIRST = run.first
    trainer.Mixing = OneShot if run.legs == ONE_SHOT else mixing.Mixing  # type: ignore[misc,assignment]
    legs = run.legs if run.legs > 0 else None
    engine = InProcess(sync="pass", shards=run.shards, legs=legs) if run.shards else None
    options: dict[str, Any] = {"seed": run.seed, "engine": engine, "progress": False, "threads": 1}
    if run.task == "kdd99":
        from lols.io.costs import read_cost_matrix, read_label_map

        classes, costs = read_cost_matrix("kdd99")
        known = {"classes": classes, "cost_matrix": costs, "label_map": read_label_map("kdd99")}
        model: Any = lols.CostSensitiveClassifier(**known, **options).fit_files([str(DATA / "kdd99-10percent.csv.gz")])
        found = model.evaluate_file(str(DATA / "kdd99-corrected.csv.gz")).as_dict()
        scores = {"test": 100 * (1 - found["error"]), "cost": found["cost"]}
    else:
        kind, name = (lols.Tagger, "accuracy") if run.task == "tagging" else (lols.Parser, "las")
        model = kind(**options).fit_files([part_of("ewt-train.conllu.gz", share)])
        scores = {
            part: 100 * model.evaluate_file(str(DATA / f"ewt-{part}.conllu.gz")).as_dict()[name]
            for part in ("dev", "test")
        }
    return run._asdict() | scores | {"seconds": time.perf_counter() - began}


def part_of(name: str, share: float) -> str:
    """A file with the first sentences of another."""
    import gzip
    import tempfile

    if share == 1.0:
        return str(DATA / name)
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        sentences = file.read().split("\n\n")
    with tempfile.NamedTemporaryFile("w", suffix=".conllu", delete=False, encoding="utf-8") as out:
        out.write("\n\n".join(sentences[: int(share * len(sentences))]) + "\n\n")
    return out.name


def summary(found: list[dict[str, Any]]) -> list[str]:
    """A line for each way: mean and standard deviation on the test part, and the differences to one machine."""
    lines = []
    for task in TASKS:
        groups: dict[tuple[Any, ...], dict[int, dict[str, float]]] = {}
        for each in (each for each in found if each["task"] == task):
            groups.setdefault(tuple(each[name] for name in Run._fields[1:-1]), {})[each["seed"]] = each
        one = groups.get(tuple(Run("")[1:-1]), {})
        for (shards, legs, first, by, squares), seeds in sorted(groups.items()):
            how = "" if not shards else "one shot" if legs == ONE_SHOT else "default"
            how = f"{legs} legs, {first} times at first, {by}, {squares}" if legs > 0 else how
            values = [each["test"] for each in seeds.values()]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            line = f"{task:8} {shards or 1:3} shards {how:40} test {statistics.mean(values):.2f} ± {spread:.2f}"
            for part in ("test", "dev", "cost"):
                paired = [each[part] - one[seed][part] for seed, each in seeds.items() if part in each and seed in one]
                line += f"  {part} {statistics.mean(paired):+.3f}" if paired and shards else ""
            lines.append(f"{line}  ({len(values)} seeds)")
    return lines


def main() -> None:
    """Run what there is time for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--share", type=float, default=1.0, help="of the training sentences")
    parser.add_argument("--output", default="reports/mixing.jsonl")
    asked = parser.parse_args()
    Path(asked.output).parent.mkdir(parents=True, exist_ok=True)
    end, found = time.monotonic() + 60 * asked.minutes, []
    upcoming = iter(runs(asked.seeds, asked.tasks, asked.choose))
    with open(asked.output, "a") as out, ProcessPoolExecutor(asked.jobs) as pool:
        waiting = {pool.submit(measured, run, asked.share) for run in islice(upcoming, asked.jobs)}
        while waiting:
            done = next(as_completed(waiting))
            waiting.discard(done)
            found.append(done.result())
            print(json.dumps(found[-1]), file=out, flush=True)
            following = next(upcoming, None) if time.monotonic() < end else None
            if following is not None:
                waiting.add(pool.submit(measured, following, asked.share))
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
