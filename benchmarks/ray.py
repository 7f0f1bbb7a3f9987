"""What engines cost and gain: ``python -m benchmarks.ray [--engine ray|processes] [--workers 1 2] [--rounds N]``.

EWT parsing with mixture roll-outs. All ways are open at the same time and take turns, a few batches each, so that the
ratios hold on a machine that others use, too: exact mode with some numbers of workers against this process, and pass
mode. Reported: ratios of speed, bytes for each batch, seconds of search and of learning; from these, how many workers
one learner can feed, and what many machines give in pass mode. Figures go to reports/ray.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("LOLS_DATA", "data"))
NETWORK = 1.25e9  # bytes a second, of the model on paper: 10 Gbit/s


class Found(Exception):
    """The trainer and the examples that an estimator would train with."""


def problem(sentences: int, batch: int) -> tuple[Any, Any]:
    """A trainer for parsing and its examples."""
    import gzip
    import tempfile

    import lols

    class Stopped(lols.Parser):
        def _train(self, task: Any, make_examples: Any, *more: Any, **fitting: Any) -> Any:
            examples = make_examples()
            raise Found(self._trainer(task, len(examples)), examples)

    with gzip.open(DATA / "ewt-train.conllu.gz", "rt") as file:
        text = "\n\n".join(file.read().split("\n\n")[:sentences]) + "\n\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.conllu").write_text(text)
        parser = Stopped(algorithm="lols", beta=0.5, prune=None, batch_size=batch, passes=100, progress=False)
        try:
            parser.fit_files([str(Path(folder) / "train.conllu")])
        except Found as found:
            trainer, examples = found.args
            return trainer, examples
    raise AssertionError


class Way:
    """One way to train: in this process, or by workers in exact mode."""

    def __init__(self, trainer: Any, examples: Any, workers: Any, stack: contextlib.ExitStack):
        from lols.engines.searcher import BatchSearcher

        self.trainer, self.run, self.workers = trainer, trainer.new_run(examples), workers
        self.driver = stack.enter_context(self.run.driver())
        if trainer.unsettled:
            import numpy as np

            trainer.settle(self.driver, np.arange(8))
            self.run.begin_again()
        self.searcher = self.driver if workers is None else BatchSearcher(workers, self.driver)
        self.batches = self.run.batches()
        self.seconds = {"search": [], "learn": []}  # type: dict[str, list[float]]

    def step(self, count: int) -> None:
        """Search some batches and learn from them."""
        for _ in range(count):
            indices, rounds = next(self.batches)
            began = time.perf_counter()
            policy = self.run.student.rolling_policy()
            batch = self.searcher.make_lessons(indices, rounds, policy, self.trainer.plan, *self.run.betas(rounds))
            searched = time.perf_counter()
            self.run.learn(batch)
            self.seconds["search"].append(searched - began)
            self.seconds["learn"].append(time.perf_counter() - searched)

    def a_batch(self, what: str) -> float:
        """The median of the seconds that a batch takes, after the first ones."""
        import statistics

        return statistics.median(self.seconds[what][WARM:])


WARM = 3


def in_passes(trainer: Any, examples: Any, engine: Any, shards: int, legs: int) -> dict[str, float]:
    """Examples a second in pass mode, after a first leg; and what is sent."""
    from lols.training.mixing import Mixing, mixed, train_shard

    run = trainer.new_run(examples)
    with engine.start() as workers:
        mixing = Mixing(run, workers, shards, legs)
        learner: Any = run.student.learner
        seconds, sent, mixes = [], 0, []
        for leg in range(min(legs, 3)):
            began = time.perf_counter()
            state = learner.state()
            shared = workers.share(state)
            results = list(workers.map(train_shard, mixing._tasks(shared, leg)))
            trained = time.perf_counter()
            learner.load(mixed(state, [result.changes for result in results]))
            seconds.append(time.perf_counter() - began)
            mixes.append(time.perf_counter() - trained)
            sent = sum(result.changes.nbytes for result in results)
    a_leg = len(examples) / legs
    return {"examples_per_second": a_leg / min(seconds[1:]), "bytes_received": sent, "seconds_mixing": min(mixes[1:])}


def main() -> None:
    """Measure, and print what follows."""
    from lols.engines import Processes, Ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="ray", choices=["ray", "processes"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--sentences", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--output", default="reports/ray.json")
    asked = parser.parse_args()
    kind: Any = Ray if asked.engine == "ray" else Processes
    trainer, examples = problem(asked.sentences, asked.batch)
    found: dict[str, Any] = {"engine": asked.engine, "batch": asked.batch, "sentences": len(examples)}
    with contextlib.ExitStack() as stack:
        ways = {0: Way(trainer, examples, None, stack)}
        if asked.engine == "ray":
            import ray

            ray.init(num_cpus=sum(asked.workers), include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        for count in asked.workers:
            ways[count] = Way(trainer, examples, stack.enter_context(kind(workers=count).start()), stack)
        for way in ways.values():
            way.step(WARM)
        for _ in range(asked.rounds):
            for way in ways.values():
                way.step(2)
        plain = ways[0]
        search, learn = plain.a_batch("search"), plain.a_batch("learn")
        found |= {"seconds_search": search, "seconds_learn": learn}
        for count in asked.workers:
            way, batches = ways[count], ways[count].searcher.batches
            sent, received = way.searcher.sent / batches, way.searcher.received / batches
            whole = way.a_batch("search") + way.a_batch("learn")
            found[f"exact {count}"] = {
                "ratio": (search + learn) / whole,
                "seconds_search": way.a_batch("search"),
                "bytes_sent": sent,
                "bytes_received": received,
            }
            print(
                f"exact, {count} workers: {(search + learn) / whole:.2f} times the speed of this process; a batch: "
                f"{sent / 1e3:,.0f} kB of weights, {received / 1e3:,.0f} kB of lessons",
                flush=True,
            )
        speed = asked.batch / (search + learn)
        found["examples_per_second"] = speed
    for count in asked.workers:
        passes = in_passes(trainer, examples, kind(workers=count), max(2, count), 4)
        found[f"pass {count}"] = passes | {"ratio": passes["examples_per_second"] / speed}
        print(f"pass, {count} workers: {passes['examples_per_second'] / speed:.2f} times the speed", flush=True)
    most = max(asked.workers)
    on_paper(found, most)
    Path(asked.output).parent.mkdir(parents=True, exist_ok=True)
    Path(asked.output).write_text(json.dumps(found, indent=1))


def on_paper(found: dict[str, Any], most: int) -> None:
    """From the measured seconds and bytes: how far exact mode goes, and what machines give in pass mode."""
    search, learn, exact = found["seconds_search"], found["seconds_learn"], found[f"exact {most}"]
    other = max(0.0, exact["seconds_search"] - search / most)  # sending, putting together, waiting
    network = (exact["bytes_sent"] + exact["bytes_received"]) / NETWORK
    serial = learn + max(other, network)
    print(f"a batch of {found['batch']}: search {search:.4f} s, learning {learn:.4f} s, the rest {other:.4f} s")
    print(f"exact mode: the learner is the bottleneck from {search / serial:.0f} workers on")
    a_pass = found["sentences"] / found["examples_per_second"]
    mixing, bytes_ = found[f"pass {most}"]["seconds_mixing"], found[f"pass {most}"]["bytes_received"]
    a_shard = mixing / max(2, most) + bytes_ / max(2, most) / NETWORK
    found["paper"] = {"serial_share": serial / (search + learn), "workers": search / serial, "seconds_a_shard": a_shard}
    for times in (1, 100, 10_000):  # larger data, of the same kind
        whole = times * a_pass
        print(
            f"pass mode, data {times:,} times as large: 100 workers are {whole / (whole / 100 + 4 * 100 * a_shard):.0f}"
        )


if __name__ == "__main__":
    main()
