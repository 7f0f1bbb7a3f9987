"""What engines cost and gain: ``python -m benchmarks.ray [--engine ray|processes] [--seconds S]``.

EWT parsing with mixture roll-outs (`algorithm="lols"`, β = 0.5), everything else by default but one thread. Four ways
to train take turns, a pass each, so that the ratios hold on a machine that others use, too: this process,
exact mode with one and with two workers, and pass mode with two shards on two workers. The first three do the same work
and learn the same bits. From the measured seconds and bytes follows, on paper, how many workers one learner can feed,
and what many machines give in pass mode. Takes under five minutes; figures go to reports/ray.json.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("LOLS_DATA", "data"))
NETWORK = 1.25e9  # bytes a second, of the model on paper: 10 Gbit/s


class Found(Exception):
    """The trainer and the examples that an estimator would train with."""


def problem(sentences: int, batch: int) -> tuple[Any, Any]:
    """A trainer for parsing and its examples."""
    import lols

    class Stopped(lols.Parser):
        def _train(self, task: Any, make_examples: Any, *more: Any, **fitting: Any) -> Any:
            examples = make_examples()
            raise Found(self._trainer(task, len(examples)), examples)

    with gzip.open(DATA / "ewt-train.conllu.gz", "rt", encoding="utf-8") as file:
        text = "\n\n".join(file.read().split("\n\n")[:sentences]) + "\n\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.conllu").write_text(text, encoding="utf-8")
        parser = Stopped(algorithm="lols", beta=0.5, batch_size=batch, passes=100, progress=False, threads=1)
        try:
            parser.fit_files([str(Path(folder) / "train.conllu")])
        except Found as found:
            trainer, examples = found.args
            return trainer, examples
    raise AssertionError


class Exact:
    """Training by workers in exact mode, or in this process."""

    def __init__(self, trainer: Any, examples: Any, workers: Any, stack: contextlib.ExitStack):
        from lols.training.learning import Learning
        from lols.training.loop import Searcher, learn
        from lols.training.sources import in_memory

        source = in_memory(trainer, examples)
        self.learning, self.workers = Learning(trainer, source.count, source.batch_size(trainer)), workers
        self.searcher = stack.enter_context(Searcher(self.learning, source, found=self._found))
        self.searcher.turn_to(source.first, np.arange(len(examples)))
        if workers is not None:
            self.searcher.send_to(workers)
        self.steps = learn(self.learning, source, self.searcher)
        self.count = len(examples) // self.learning.batch_size  # of a turn
        self.searched = 0.0
        self.search: list[float] = []
        self.learn: list[float] = []
        self.cpu: list[float] = []  # seconds of processors, here and in a single worker

    def cpu_seconds(self) -> float:
        """So far."""
        single = self.workers is not None and self.workers.alive == 1
        there = list(self.workers.map(resource.getrusage, [resource.RUSAGE_SELF])) if single else []
        return time.process_time() + sum(used.ru_utime + used.ru_stime for used in there)

    def turn(self) -> float:
        """Search some batches and learn from them; seconds."""
        cpu = self.cpu_seconds()
        seconds = self.batches_of_a_turn()
        self.cpu.append(self.cpu_seconds() - cpu)
        return seconds

    def batches_of_a_turn(self) -> float:
        """The same without counting seconds of processors."""
        whole = time.perf_counter()
        for _ in range(self.count):
            began = time.perf_counter()
            next(self.steps)
            self.search.append(self.searched - began)
            self.learn.append(time.perf_counter() - self.searched)
        return time.perf_counter() - whole

    def _found(self, _batch: Any) -> None:
        """Note when a batch has been searched."""
        self.searched = time.perf_counter()

    @property
    def bytes_a_batch(self) -> tuple[float, float]:
        """Of weights sent to the workers, and of lessons received."""
        by: Any = self.searcher._by
        return by.history.sent / by.batches, by.received / by.batches


class Silent:
    """A progress bar that shows nothing."""

    def say(self, words: str) -> None:
        """Nothing."""

    def advance(self, steps: int, loss: float) -> None:
        """Nothing."""


class Pass:
    """Training in pass mode."""

    def __init__(self, trainer: Any, examples: Any, workers: Any):
        import lols.training.mixing as mixing
        from lols.engines import InProcess
        from lols.training.learning import Learning
        from lols.training.sources import in_memory

        _, legs = mixing.shards_and_legs(InProcess(sync="pass", shards=workers.alive))
        source = in_memory(trainer, examples)
        learning = Learning(trainer, source.count, source.batch_size(trainer))
        self.mixing = mixing.Mixing(learning, source.data, workers, workers.alive, legs)
        self.legs: Iterator[None] = self.mixing.passes(Silent())
        self.serial: list[float] = []  # seconds of mixing
        self._module, self._mixed, self._apply = mixing, mixing.mixed, mixing.apply_changes

    def turn(self) -> float:
        """A pass; seconds."""
        began, waited = time.perf_counter(), 0.0

        def timed(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                nonlocal waited
                before = time.perf_counter()
                result = function(*arguments)
                waited += time.perf_counter() - before
                return result

            return call

        self._module.mixed, self._module.apply_changes = timed(self._mixed), timed(self._apply)
        for _ in range(self.mixing.legs_now):
            next(self.legs)
        self._module.mixed, self._module.apply_changes = self._mixed, self._apply
        self.serial.append(waited)
        return time.perf_counter() - began


def latency(workers: Any) -> float:
    """Seconds for a call of all workers that does nothing."""
    seconds = []
    for _ in range(50):
        began = time.perf_counter()
        list(workers.map(abs, [-1] * workers.alive))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    from lols.engines import Processes, Ray

    kind: Any = Ray if asked.engine == "ray" else Processes
    trainer, examples = problem(asked.sentences, asked.batch)
    found: dict[str, Any] = {"engine": asked.engine, "batch": asked.batch, "sentences": len(examples)}
    with contextlib.ExitStack() as stack:
        if asked.engine == "ray":
            import ray

            how: Any = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
            ray.init(address="local", num_cpus=5, _node_ip_address="127.0.0.1", **how)
            stack.callback(ray.shutdown)
        one, two, shards = (stack.enter_context(kind(workers=count).start()) for count in (1, 2, 2))
        for workers in (one, two, shards):
            all_there(workers)
        plain = Exact(trainer, examples, None, stack)
        ways: dict[str, Any] = {
            "this process": plain,
            "exact, 1 worker": Exact(trainer, examples, one, stack),
            "exact, 2 workers": Exact(trainer, examples, two, stack),
            "pass, 2 workers": Pass(trainer, examples, shards),
        }
        turns: dict[str, list[float]] = {name: [] for name in ways}
        end = time.monotonic() + asked.seconds
        while len(turns["this process"]) < 2 or time.monotonic() < end:
            for name, way in ways.items():
                turns[name].append(way.turn())
        first = 1  # the pass before compiles, and sends data
        base = turns["this process"][first:]
        for name, seconds in turns.items():
            ratios = [a / b for a, b in zip(base, seconds[first:], strict=True)]
            facts = {"seconds_a_turn": statistics.median(seconds[first:]), "speed": statistics.median(ratios)}
            facts |= {"least": min(ratios), "most": max(ratios), "speeds": ratios}
            if isinstance(ways[name], Exact) and ways[name].workers is not None:
                facts["bytes_sent"], facts["bytes_received"] = ways[name].bytes_a_batch
            found[name] = facts
        mixing, legs = ways["pass, 2 workers"], len(turns["pass, 2 workers"])
        found["pass, 2 workers"] |= {
            "bytes_sent": mixing.mixing.history.sent / legs,
            "bytes_received": mixing.mixing.received / legs,
            "seconds_mixing": statistics.median(mixing.serial[first:]),
        }
        alone = ways["exact, 1 worker"].cpu[first:]
        found["exact, 1 worker"]["processors"] = statistics.median(a / b for a, b in zip(alone, plain.cpu[first:]))
        after = plain.count * first
        found |= {"turns": len(base), "latency": latency(two)}
        found |= {f"seconds_{name}": statistics.median(getattr(plain, name)[after:]) for name in ("search", "learn")}
        exact = ways["exact, 2 workers"]
        found["seconds_search_2"] = statistics.median(exact.search[after:])
        same = exact.learning.policy.learner.state(), plain.learning.policy.learner.state()
        found["bit_identical"] = all((same[0][name] == same[1][name]).all() for name in same[0])
    return found


def all_there(workers: Any) -> None:
    """Wait until all workers have come, a minute at most."""
    wanted, end = getattr(workers, "_wanted", workers.alive), time.monotonic() + 60.0
    while workers.alive < wanted and time.monotonic() < end:
        list(workers.map(abs, range(wanted)))


def on_paper(found: dict[str, Any]) -> None:
    """From the measured seconds and bytes: how far exact mode goes, and what machines give in pass mode."""
    from lols.engines import InProcess
    from lols.training.mixing import shards_and_legs

    batch, exact = found["batch"], found["exact, 2 workers"]
    search, learn = found["seconds_search"] / batch, found["seconds_learn"] / batch  # of an example
    rest = max(0.0, found["seconds_search_2"] - found["seconds_search"] / 2 - found["latency"]) / batch
    network = (exact["bytes_sent"] + exact["bytes_received"]) / batch / NETWORK
    found["paper"] = {"search": search, "learn": learn, "sending": rest, "network": network, "exact": [], "pass": []}
    print(
        f"\nAn example: search {1e3 * search:.2f} ms, learning {1e3 * learn:.3f} ms, sending and putting together "
        f"{1e3 * rest:.3f} ms; a call of all workers {1e3 * found['latency']:.1f} ms"
    )
    print("\nExact mode on paper, times the speed of one process (the learner is the bottleneck from W workers on):")
    print("   batch      W    8 workers   32 workers   no limit")
    for size in (64, 256, 1024, 4096):
        serial = (learn + max(rest, network)) * size + found["latency"]
        alone = (search + learn) * size
        speeds = [alone / (search * size / workers + serial) for workers in (8, 32, 1 << 20)]
        found["paper"]["exact"].append([size, search * size / serial, *speeds])
        print(f"{size:8} {search * size / serial:6.0f} {speeds[0]:12.1f} {speeds[1]:12.1f} {speeds[2]:10.1f}")
    mixing = found["pass, 2 workers"]
    shard = (mixing["seconds_mixing"] + mixing["bytes_received"] / NETWORK) / 2  # the driver's work for each shard
    sent = mixing["bytes_sent"] / NETWORK  # to each machine, and growing with what the shards have changed
    a_pass = found["sentences"] * (search + learn)
    _, (_, legs) = shards_and_legs(InProcess(sync="pass", shards=100))
    print(
        "\nPass mode on paper, 100 machines of one core, data so many times as large, weights in proportion to a leg:"
    )
    for times in (10, 100, 1000, 10_000):
        whole = times * a_pass / legs
        leg = whole / 100 + 100 * (shard + sent) * min(times * 2 / 100, MOST_WEIGHTS)
        found["paper"]["pass"].append([times, whole / leg])
        print(f"{times:8,} times: {whole / leg:5.1f} times the speed of one process")


MOST_WEIGHTS = 20.0  # weights grow more slowly than data: at most so many times those of this run


def main() -> None:
    """Measure, and print what follows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="ray", choices=["ray", "processes"])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--sentences", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--output", default="reports/ray.json")
    asked = parser.parse_args()
    found = measure(asked)
    print(f"EWT parsing, mixture roll-outs, {found['sentences']} sentences, {found['turns']} turns of each way")
    print(f"{'':18} {'speed':>6} {'least':>6} {'most':>6} {'kB sent':>9} {'kB received':>12}")
    wanted = {"exact, 1 worker": 1 / 1.15, "exact, 2 workers": 1.5, "pass, 2 workers": 1.7}
    for name in ("this process", *wanted):
        facts = found[name]
        moved = "".join(
            f"{facts[key] / 1e3:{width},.0f}"
            for key, width in (("bytes_sent", 10), ("bytes_received", 13))
            if key in facts
        )
        goal = f"   (wanted: {wanted[name]:.2f})" if name in wanted else ""
        print(f"{name:18} {facts['speed']:6.2f} {facts['least']:6.2f} {facts['most']:6.2f} {moved}{goal}")
    used = found["exact, 1 worker"]["processors"]
    print(f"exact with one worker takes {used:.2f} times the processor time of this process (holds on busy machines)")
    print("bytes are for each batch, in pass mode for each pass")
    print(f"exact mode learned the same bits: {found['bit_identical']}")
    on_paper(found)
    Path(asked.output).parent.mkdir(parents=True, exist_ok=True)
    Path(asked.output).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
