"""What a service has to reckon with: cold and warm starts, latency of single requests, memory, forks and threads.

    python -m benchmarks.serving [--requests N] [--json FILE]

Models are trained on data that the project generates. Each is loaded in new processes: with an empty cache of kernels
(cold), and with the one that is left (warm). Then one process forks workers after the first prediction, and one
predicts in threads; all must predict the same. Times are CPU times, of which other work on the machine takes nothing;
requests a second of threads are not, so look at them on an idle machine. Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("tagger", "parser", "classifier", "tsp")


def prepare(kind: str, path: Path) -> None:
    """Train a model and save it."""
    import lols

    if kind == "classifier":
        lols.CostSensitiveClassifier(seed=1, passes=1).fit(*rows(3000)).save(path)
    elif kind == "tsp":
        import tsp

        lols.train(tsp.Tour, tsp.maps(200, 1), passes=1, seed=1).save(path)
    else:
        sentences = generated()
        words = [sentence.forms for sentence in sentences]
        trees = [list(zip(sentence.heads, sentence.relations)) for sentence in sentences]
        if kind == "tagger":
            lols.Tagger(seed=1, passes=1).fit(words, [sentence.upos for sentence in sentences]).save(path)
        else:
            lols.Parser(seed=1, passes=1).fit(words, trees).save(path)


def generated() -> Any:
    """Sentences of a small grammar."""
    from lols.datasets.grammar import generate

    return generate(1000, seed=1)


def rows(count: int) -> tuple[list[list[Any]], list[str]]:
    """Rows of a table, and their classes."""
    table = [[k % 40, "red" if k % 3 else "blue", k % 7 / 7] for k in range(count)]
    return table, ["yes" if age < 20 else "ask" if colour == "red" else "no" for age, colour, _ in table]


def requests(kind: str) -> list[Any]:
    """What is asked of a model, one at a time."""
    if kind == "classifier":
        return [[row] for row in rows(100)[0]]
    if kind == "tsp":
        import tsp

        return [[places] for places in tsp.maps(100, 2)]
    return [[sentence.forms] for sentence in generated()[:100]]


def opened(kind: str, path: Path) -> Any:
    """A loaded model."""
    import lols

    if kind == "tsp":
        import tsp

        return lols.load(path, tsp.Tour)
    return lols.load(path)


def memory(kind: str) -> float:
    """A figure of this process in MB: `Rss`, `Pss`, or `Private`, which is its own alone."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(kind)) / 1024


def child(kind: str, path: Path, count: int) -> dict[str, float]:
    """In a new process: seconds until the first answer, milliseconds of single requests and of one in a batch, MB."""
    model = opened(kind, path)
    asked = requests(kind)
    loaded = time.process_time()
    model.predict(asked[0])
    first = time.process_time()
    took = sorted(seconds(lambda one=one: model.predict(one)) for one in (asked * count)[:count])
    batch = [one for (one,) in asked]
    together = min(seconds(lambda: model.predict(batch)) for _ in range(5)) / len(batch)
    return {
        "start": first, "first": first - loaded, "median": 1e3 * took[count // 2], "p99": 1e3 * took[int(0.99 * count)],
        "batch": 1e3 * together, "memory": memory("Rss"),
    }  # fmt: skip


def seconds(work: Callable[[], Any]) -> float:
    """The CPU time of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def forks(kind: str, path: Path, workers: int) -> dict[str, float]:
    """Fork after the first prediction: the parent's MB, and those of a worker's own after predictions."""
    model, asked = opened(kind, path), requests(kind)
    expected = [str(model.predict(one)) for one in asked]
    pipes = []
    for _ in range(workers):
        read, write = os.pipe()
        if os.fork() == 0:
            same = all(str(model.predict(one)) == right for one, right in zip(asked, expected))
            os.write(write, json.dumps([same, memory("Private")]).encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    answers = [json.loads(os.read(pipe, 1000)) for pipe in pipes]
    for _ in pipes:
        os.wait()
    assert all(same for same, _ in answers)
    return {"parent": memory("Rss"), "worker": max(private for _, private in answers)}


def threads(kind: str, path: Path, count: int) -> dict[str, float]:
    """Requests a second of one process, by threads that share a model."""
    model, asked = opened(kind, path), requests(kind)
    expected = [str(model.predict(one)) for one in asked]
    found = {}
    for number in (1, 2, 8):
        with ThreadPoolExecutor(number) as pool:
            began = time.perf_counter()
            answers = list(pool.map(lambda k: str(model.predict(asked[k % len(asked)])), range(count)))
            found[f"{number} threads"] = count / (time.perf_counter() - began)
        assert answers == [expected[k % len(asked)] for k in range(count)]
    return found


def in_process(what: str, kind: str, path: Path, count: int, cache: Path) -> dict[str, float]:
    """One of the functions above in a process of its own."""
    environment = os.environ | {"LOLS_CACHE": str(cache), "XDG_CACHE_HOME": str(cache), "LOLS_ANNOUNCE": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "examples")])
    command = [sys.executable, "-m", "benchmarks.serving", "--child", what, kind, str(path), str(count)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return json.loads(said or "{}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        what, kind, path, count = chosen.child[0], chosen.child[1], Path(chosen.child[2]), int(chosen.child[3])
        if what == "prepare":
            prepare(kind, path)
        else:
            print(json.dumps({"start": child, "forks": forks, "threads": threads}[what](kind, path, count)))
        return
    found: dict[str, Any] = {}
    columns = (
        "cold start, s",
        "warm start, s",
        "one request, ms",
        "99 %, ms",
        "in a batch of 100, ms",
        "MB",
        "MB, forked",
    )
    table = Table("model", *columns, "requests/s with 1, 2, 8 threads")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path, full, empty = Path(folder, f"{kind}.lols"), Path(folder, "full"), Path(folder, f"empty-{kind}")
            in_process("prepare", kind, path, 0, full)
            cold = in_process("start", kind, path, 1, empty)
            warm = [in_process("start", kind, path, chosen.requests, empty) for _ in range(3)]
            best = {key: min(run[key] for run in warm) for key in warm[0]}
            share = in_process("forks", kind, path, 4, empty)
            several = in_process("threads", kind, path, chosen.requests, empty)
            found[kind] = {"cold": cold, "warm": warm, "forks": share, "threads": several}
            table.add_row(
                kind, f"{cold['start']:.1f}", f"{best['start']:.2f}", f"{best['median']:.2f}", f"{best['p99']:.2f}",
                f"{best['batch']:.3f}", f"{best['memory']:.0f}", f"{share['worker']:.0f}",
                ", ".join(f"{several[f'{n} threads']:,.0f}" for n in (1, 2, 8)),
            )  # fmt: skip
    Console(width=160).print(table)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
