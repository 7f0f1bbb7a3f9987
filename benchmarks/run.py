"""All benchmarks of the engine, as ratios in one run on one machine: `make bench`.

Speed beside Vowpal Wabbit's built-in sequence task and beside the same task written against its Python hook; what a
second core gives; what the batch size costs; memory over passes; start-up.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lols
from benchmarks import data, vw
from benchmarks.tagging_space import make_space

ROLL_OUTS = ("none", "reference", "mixture", "learned")
STARTUP = """
import time; began = time.perf_counter()
import lols; imported = time.perf_counter() - began
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
space = tagging_space(12); sentences = tagging_data(20)
model = {make}
began_predicting = time.perf_counter()
model.predict(sentences[:1])
print(imported, time.perf_counter() - began)
"""


class Bench:
    """The corpus in columns, and one timed training run of ours."""

    def __init__(self) -> None:
        self.corpus = data.load()
        self.labels = len(self.corpus.tags)
        self.space, self.reference = make_space(self.labels)
        began = time.perf_counter()
        self.train = lols.Examples(self.space, self.corpus.train, truth=True)
        self.encoding_seconds = time.perf_counter() - began
        self.test = lols.Examples(self.space, self.corpus.test, truth=True)
        self.tokens = int(self.train.steps.sum())

    def ours(self, *, repeats: int = 3, passes: int = 1, encoded: bool = False, **options: Any) -> dict[str, float]:
        """Tokens a second (best of some runs; compilation apart, encoding as asked for) and accuracy."""
        seconds = []
        for _ in range(repeats):
            model = lols.train(self.space, self.train, self.reference, passes=passes, **options)
            seconds.append(model.report["seconds_total"] - model.report["seconds_compiling"])
        best = min(seconds) + (self.encoding_seconds if encoded else 0.0)
        wrong = float(model.losses(self.test).sum())
        return {
            "tokens_per_second": self.tokens * passes / best,
            "accuracy": 1.0 - wrong / float(self.test.steps.sum()),
            "bytes_per_feature": model.report["bytes_per_feature"],
        }


def speed(bench: Bench, console: Console, hook_tokens: int) -> dict[str, Any]:
    """One pass with every roll-out: ours, the built-in task, the hook as documented and as fast as we could make it."""
    lols.train(bench.space, bench.corpus.train[:20], bench.reference, passes=1)
    table = Table(
        "roll-out", "system", "tokens/s", "ours is faster by", "accuracy", title="Training, one pass, one thread"
    )
    made: dict[str, Any] = {}
    for roll_out in ROLL_OUTS:
        row: dict[str, Any] = {"lols": bench.ours(roll_out=roll_out)}
        row["lols, encoding included"] = {
            "tokens_per_second": 1.0 / (1.0 / row["lols"]["tokens_per_second"] + bench.encoding_seconds / bench.tokens),
            "accuracy": row["lols"]["accuracy"],
        }
        corpus = bench.corpus
        with tempfile.TemporaryDirectory() as folder:
            built_in = vw.builtin(corpus.train, corpus.test, bench.labels, "learned", roll_out, 1, Path(folder))
        row["VW built-in task (C++)"] = built_in._asdict()
        row["VW Python hook"] = vw.hook(corpus.train, bench.labels, roll_out, hook_tokens, tuned=False)._asdict()
        row["VW Python hook, tuned"] = vw.hook(corpus.train, bench.labels, roll_out, hook_tokens)._asdict()
        for system, result in row.items():
            ratio = row["lols"]["tokens_per_second"] / result["tokens_per_second"]
            accuracy = "" if "hook" in system else f"{100 * result['accuracy']:.2f}"
            table.add_row(roll_out, system, f"{result['tokens_per_second']:,.0f}", f"{ratio:,.1f}x", accuracy)
        table.add_section()
        made[roll_out] = row
    console.print(table)
    return made


def threads(bench: Bench, console: Console) -> dict[str, Any]:
    """What a second core gives at the default batch size; the weights are the same."""
    table = Table("roll-out", "1 thread", "2 threads", "speed-up", title="A second core (tokens/s)")
    made = {}
    for roll_out in ("reference", "mixture", "learned"):
        # Interleaved, and the best of each: other load on the machine should hit both alike.
        runs = [[bench.ours(repeats=1, roll_out=roll_out, threads=n, passes=3) for n in (1, 2)] for _ in range(5)]
        one, two = (max(pair[n]["tokens_per_second"] for pair in runs) for n in (0, 1))
        made[roll_out] = two / one
        table.add_row(roll_out, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}x")
    console.print(table)
    return made


def batches(bench: Bench, console: Console, seeds: int) -> dict[str, Any]:
    """Accuracy at batch size 1 (Algorithm 1 as printed), at the default, and beyond."""
    table = Table("batch size", "accuracy", "sd", "tokens/s", title=f"Batch size (LOLS, 5 passes, {seeds} seeds)")
    made = {}
    for size in (1, 16, None):
        runs = [bench.ours(repeats=1, passes=5, seed=s, batch_size=size, threads=2) for s in range(seeds)]
        accuracy = [100 * r["accuracy"] for r in runs]
        made[str(size or "default")] = {"mean": float(np.mean(accuracy)), "sd": float(np.std(accuracy, ddof=1))}
        fastest = max(r["tokens_per_second"] for r in runs)
        table.add_row(
            str(size or "default (64)"),
            f"{np.mean(accuracy):.2f}",
            f"{np.std(accuracy, ddof=1):.2f}",
            f"{fastest:,.0f}",
        )
    console.print(table)
    return made


def memory(bench: Bench, console: Console) -> dict[str, Any]:
    """Peak memory of the process after each pass: flat once all features have been seen."""
    peaks: list[float] = []

    def note(_number: int, _model: lols.Model) -> None:
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    model = lols.train(bench.space, bench.train, bench.reference, passes=10, roll_out="none", after_pass=note)
    growth = peaks[-1] - peaks[1]
    console.print(
        f"Memory: peak {peaks[1]:.0f} MB after pass 2, {peaks[-1]:.0f} MB after pass 10 (growth {growth:.1f} MB); "
        f"{model.report['features']:,} features, {model.report['bytes_per_feature']:.0f} bytes each"
    )
    return {"peaks_mb": peaks, "bytes_per_feature": model.report["bytes_per_feature"]}


def startup(console: Console) -> dict[str, Any]:
    """A fresh process with a cold and with a warm cache: import, and everything up to the first prediction."""
    made: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lols"
        fit = "lols.train(space, sentences, tagging_references()['optimal'])"
        environment = {"NUMBA_CACHE_DIR": folder, "PATH": "", "LOLS_ANNOUNCE": "0"}
        for name, make in (
            ("training, cold cache", f"{fit}; model.save({str(path)!r})"),
            ("training, warm cache", fit),
            ("prediction with a saved model, warm cache", f"lols.load({str(path)!r}, space)"),
        ):
            command = [sys.executable, "-c", STARTUP.format(make=make)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            imported, total = (float(v) for v in done.stdout.split())
            made[name] = {"import": imported, "total": total}
            console.print(f"Start-up, {name}: import lols {imported:.2f} s, first prediction after {total:.2f} s")
    return made


def main() -> None:
    """Run all, print tables, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hook-tokens", type=int, default=800, help="tokens that the slow Python hook is given")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the accuracy comparison")
    parser.add_argument("--json", type=Path, default=Path("reports/bench.json"), help="where the figures go")
    options = parser.parse_args()
    console = Console(width=110)
    bench = Bench()
    console.print(
        f"Corpus {bench.corpus.name}: {bench.tokens:,} training tokens, {bench.labels} tags; encoding took "
        f"{bench.encoding_seconds:.2f} s (plain Python, once)"
    )
    made = {
        "corpus": bench.corpus.name,
        "speed": speed(bench, console, options.hook_tokens),
        "threads": threads(bench, console),
        "batches": batches(bench, console, options.seeds),
        "memory": memory(bench, console),
        "startup": startup(console),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(made, indent=2))
    console.print(f"Figures written to {options.json}")


if __name__ == "__main__":
    main()
