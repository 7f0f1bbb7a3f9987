"""The classifier beside its competitors, on the same rows: ``python benchmarks/classifier.py [PART ...]``.

accuracy: average cost on KDD Cup 99, on the contest's test set and on random splits of the 10 % file, mean and standard
deviation over seeds. table2: the paper's comparison of strategies under its teachers. training, prediction: speed from
file to model and from file to file, reading included, as ratios to Vowpal Wabbit's command line. memory: the peak while
training. labels: how time grows with the number of classes.

``--quick`` takes few rows and one or two repeats: it shows that all works, and no figure of it means anything. Figures
go to reports/classifier.json part by part, as they come. The machine is shared: where others run beside, trust the
figures per CPU second, and the best of several runs.
"""

from __future__ import annotations

import gzip
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import parsing as shared
from benchmarks import vw
from benchmarks.parsing import ROLL_OUTS, Speed, lols
from benchmarks.tagging import LOLS, data
from lols import CostSensitiveClassifier
from lols.io.costs import bare, read_cost_matrix, read_label_map
from lols.io.tables import open_table
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.predicting import evaluate_files

QUICK = 20_000  # rows
SPLIT = 400_000
CATEGORIES = (1, 2, 3)  # KDD's columns of texts
# Published: the winner of the contest (Elkan 2000, SIGKDD Explorations 1(2)), and the paper's LOLS, which was trained
# on all 4,898,431 rows.
WINNER, PAPER_LOLS = 0.2331, 0.266
# Chang et al. 2015, Table 2: average cost; by roll-in, then by roll-out.
PAPER: dict[str, dict[str, Any]] = {
    "optimal": {"reference": (0.282, 0.282, 0.279), "learned": (0.267, 0.266, 0.266), "searn": 0.281},
    "bad": {"reference": (1.670, 1.664, 0.316), "learned": (0.266, 0.266, 0.266), "searn": 0.282},
}
TEACHERS = ("optimal", "suboptimal", "bad")
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class Bench(shared.Bench):
    """Where the files are: KDD's rows, unpacked, and split at random."""

    NAME = "classifier"

    def lines(self, name: str) -> list[bytes]:
        """The rows of a file."""
        with gzip.open(data() / name) as file:
            rows = file.read().splitlines()
        return rows[:: max(1, len(rows) // QUICK)] if self.quick else rows

    def put(self, name: str, rows: list[bytes]) -> str:
        """Write rows to a file of this run."""
        path = self.folder / name
        path.write_bytes(b"\n".join(rows) + b"\n")
        return str(path)

    @cached_property
    def train(self) -> str:
        """The 10 % file."""
        return self.put("train.csv", self.lines("kdd99-10percent.csv.gz"))

    @cached_property
    def test(self) -> str:
        """The contest's test set."""
        return self.put("test.csv", self.lines("kdd99-corrected.csv.gz"))

    def split(self, seed: int) -> tuple[str, str]:
        """The 10 % file, 400,000 rows drawn at random and the rest; both in the file's order."""
        rows = self.lines("kdd99-10percent.csv.gz")
        drawn = np.zeros(len(rows), bool)
        drawn[np.random.default_rng(seed).permutation(len(rows))[: SPLIT * len(rows) // 494_021]] = True
        parts = [
            [row for row, there in zip(rows, drawn.tolist(), strict=True) if there is which] for which in (True, False)
        ]
        return self.put(f"split{seed}.csv", parts[0]), self.put(f"rest{seed}.csv", parts[1])


def fitted(path: str, **options: Any) -> CostSensitiveClassifier:
    """A classifier with the contest's classes and costs, trained on a file with two threads."""
    classes, costs = read_cost_matrix("kdd99")
    known = {"classes": classes, "cost_matrix": costs, "label_map": read_label_map("kdd99"), "progress": False}
    return CostSensitiveClassifier(**{"threads": 2, **known, **options}).fit_files(path)


def cost(model: CostSensitiveClassifier, path: str) -> float:
    """The average cost on a file."""
    source = open_table(path)
    return evaluate_files(model, source, TableFiles(source.names[-1]), threads=1).cost


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


# --- Vowpal Wabbit ---


def vw_line(row: bytes, numbers: dict[str, int], costs: np.ndarray, classes: dict[str, str]) -> str:
    """A row in Vowpal Wabbit's format: zeros left out, logarithms of what is above 1, a cost for every class."""
    cells = row.decode().split(",")
    true = numbers[classes[bare(cells[-1])]]
    features = []
    for k, cell in enumerate(cells[:-1]):
        if k in CATEGORIES:
            features.append(f"c{k}={cell}")
        elif float(cell) != 0.0:
            number = float(cell)
            features.append(f"n{k}:{math.log1p(number) if number > 1.0 else number:g}")
    return " ".join(f"{k + 1}:{c:g}" for k, c in enumerate(costs[true].tolist())) + " | " + " ".join(features)


def vw_file(bench: Bench, name: str, rows: list[bytes], seed: int | None) -> Path:
    """Write rows in Vowpal Wabbit's format, shuffled unless there is no seed: in the file's order it learns nothing."""
    names, costs = read_cost_matrix("kdd99")
    numbers, classes = {c: k for k, c in enumerate(names)}, read_label_map("kdd99")
    order = np.arange(len(rows)) if seed is None else np.random.default_rng(seed).permutation(len(rows))
    target = bench.folder / name
    with target.open("w", encoding="utf-8") as file:
        file.writelines(vw_line(rows[k], numbers, costs, classes) + "\n" for k in order.tolist())
    return target


def vw_cost(predictions: Path, rows: list[bytes]) -> float:
    """The average cost of Vowpal Wabbit's predictions."""
    names, costs = read_cost_matrix("kdd99")
    numbers, classes = {c: k for k, c in enumerate(names)}, read_label_map("kdd99")
    true = [numbers[classes[bare(row.rpartition(b",")[2].decode())]] for row in rows]
    said = [int(float(line)) - 1 for line in predictions.read_text().split()]
    return float(np.mean(costs[true, said]))


def vw_train(bench: Bench, file: Path, passes: int = 1) -> tuple[float, float]:
    """Train Vowpal Wabbit's csoaa; wall and CPU seconds."""
    more = ["--passes", str(passes), "-c", "-k", "--holdout_off"] if passes > 1 else []
    return vw.run(["--csoaa", "5", "-d", str(file), "-f", str(bench.folder / "vw.model"), *more])


def vw_predict(bench: Bench, file: Path) -> tuple[float, float]:
    """Predict with it; wall and CPU seconds."""
    model, target = bench.folder / "vw.model", bench.folder / "vw.txt"
    return vw.run(["-t", "-i", str(model), "-d", str(file), "-p", str(target)])


# --- accuracy ---


def accuracy(bench: Bench) -> None:
    """The contest's test set, and random splits, for the tree, flat, and the paper's learner."""
    table = Table("system", "corrected", "random split", title=f"KDD99, average cost, {bench.seeds} seeds")
    splits = [bench.split(seed) for seed in range(bench.seeds)]
    for name, options in (
        ("lols", {}),
        ("lols, tree by similarity", {"tree": "similarity"}),
        ("lols, tree by frequency", {"tree": "frequency"}),
        ("lols, flat", {"tree": None}),
        ("lols, csoaa (the paper's learner)", {"learner": "csoaa"}),
        ("lols, flat csoaa", {"learner": "csoaa", "tree": None}),
    ):
        test = [cost(fitted(bench.train, seed=seed, **options), bench.test) for seed in range(bench.seeds)]
        drawn = [cost(fitted(a, seed=seed, **options), b) for seed, (a, b) in enumerate(splits)]
        bench.keep("accuracy", name, {"corrected": test, "random": drawn})
        table.add_row(name, spread(test), spread(drawn))
    rows, held = bench.lines("kdd99-10percent.csv.gz"), bench.lines("kdd99-corrected.csv.gz")
    target = vw_file(bench, "test.vw", held, None)
    for passes in (1, 5):
        found = []
        for seed in range(min(bench.seeds, 2)):
            vw_train(bench, vw_file(bench, "train.vw", rows, seed), passes)
            vw_predict(bench, target)
            found.append(vw_cost(bench.folder / "vw.txt", held))
        bench.keep("accuracy", f"Vowpal Wabbit csoaa, passes: {passes}", {"corrected": found})
        table.add_row(f"Vowpal Wabbit csoaa, passes: {passes}", spread(found), "")
    table.add_row("the contest's winner (published)", f"{WINNER}", "")
    table.add_row("the paper's LOLS, on ten times the rows (published)", f"{PAPER_LOLS}", "")
    bench.console.print(table)


def table2(bench: Bench) -> None:
    """Roll-ins by roll-outs under three teachers, Searn, and LOLS that finds its own beta."""
    splits = [bench.split(seed) for seed in range(bench.seeds)]
    tables = {
        where: Table("teacher", "roll-in", *ROLL_OUTS, title=f"KDD99, {where}: average cost{note}, {bench.learner}")
        for where, note in (("corrected", " (the paper's)"), ("random split", ""))
    }

    def cells(name: str, paper: float | None, **options: Any) -> dict[str, str]:
        options |= {"learner": bench.learner}
        test = [cost(fitted(bench.train, seed=seed, **options), bench.test) for seed in range(bench.seeds)]
        drawn = [cost(fitted(a, seed=seed, **options), b) for seed, (a, b) in enumerate(splits)]
        bench.keep("table2", f"{name}, {bench.learner}", {"corrected": test, "random": drawn})
        return {"corrected": spread(test) + ("" if paper is None else f" ({paper})"), "random split": spread(drawn)}

    for teacher in TEACHERS:
        known = PAPER.get(teacher, {})
        for roll_in in ("reference", "learned"):
            made = [
                cells(f"{teacher}, {roll_in} / {out}", paper, reference=teacher, roll_in=roll_in, roll_out=out)
                for out, paper in zip(ROLL_OUTS, known.get(roll_in, (None,) * 3), strict=True)
            ]
            for where, table in tables.items():
                table.add_row(teacher, roll_in, *(cell[where] for cell in made))
        own = cells(f"{teacher}, learned / mixture, beta auto", None, reference=teacher, beta="auto")
        searn = cells(f"{teacher}, searn", known.get("searn"), reference=teacher, algorithm="searn")
        for where, table in tables.items():
            table.add_row(teacher, "learned, β auto", "", own[where], "")
            table.add_row(teacher, "Searn", "", searn[where], "", end_section=True)
    for table in tables.values():
        bench.console.print(table)


# --- speed ---


def repeated(work: Callable[[], tuple[float, float]], tiny: Callable[[], tuple[float, float]], rows: int, repeats: int):
    """Rows a second of several runs, by the clock and by CPU time, without what the same takes on a few rows."""
    work()
    few = [tiny() for _ in range(3)]
    startup, startup_cpu = min(wall for wall, _ in few), min(cpu for _, cpu in few)
    runs = [work() for _ in range(repeats)]
    walls = [rows / max(wall - startup, 1e-3) for wall, _ in runs]
    return Speed(walls, [rows / max(cpu - startup_cpu, 1e-3) for _, cpu in runs], startup)


def ours(command: list[str], tiny: list[str], rows: int, repeats: int) -> Speed:
    """The same of one of our commands: what a tiny file takes is start-up, and taken off."""
    lols(*command)
    few = [lols(*tiny) for _ in range(3)]
    startup, startup_cpu = min(done.wall for done in few), min(done.cpu for done in few)
    runs = [lols(*command) for _ in range(repeats)]
    walls = [rows / max(run.wall - startup, 1e-3) for run in runs]
    return Speed(walls, [rows / max(run.cpu - startup_cpu, 1e-3) for run in runs], startup)


def training(bench: Bench) -> None:
    """One pass from file to model, reading included, and all but start-up counted, of both systems."""
    rows = bench.lines("kdd99-10percent.csv.gz")
    file, few = vw_file(bench, "train.vw", rows, 0), vw_file(bench, "few.vw", rows[::5000], 0)
    found = {
        "Vowpal Wabbit csoaa": repeated(
            lambda: vw_train(bench, file), lambda: vw_train(bench, few), len(rows), bench.repeats
        )
    }
    tiny = bench.put("few.csv", rows[::5000])
    for tree in ("order", "flat"):
        for threads in (1, 2):
            options = ["--label-map", "kdd99", "--cost-matrix", "kdd99", "--passes", "1", "--tree", tree]
            options += ["--threads", str(threads), "-o", bench.path("m.lols")]
            found[f"lols, tree {tree}, {threads} thread{'s' * (threads > 1)}"] = ours(
                ["train", "classifier", bench.train, *options],
                ["train", "classifier", tiny, *options],
                len(rows),
                bench.repeats,
            )
    show(bench, "training", f"Training, one pass over {len(rows):,} rows, from file to model", found)


def prediction(bench: Bench) -> None:
    """From file to a file of predictions, reading and writing included."""
    rows = bench.lines("kdd99-corrected.csv.gz")
    trained = bench.lines("kdd99-10percent.csv.gz")
    vw_train(bench, vw_file(bench, "train.vw", trained, 0))
    file, few = vw_file(bench, "test.vw", rows, None), vw_file(bench, "few.vw", rows[:3], None)
    found = {
        "Vowpal Wabbit csoaa": repeated(
            lambda: vw_predict(bench, file), lambda: vw_predict(bench, few), len(rows), bench.repeats
        )
    }
    tiny, model = bench.put("few.csv", rows[:50]), bench.path("m.lols")
    fitted(bench.train, passes=1).save(model)
    for more in (["--labels-only"], []):
        for threads in (1, 2):
            tail = ["-o", bench.path("out.csv"), "--threads", str(threads), *more]
            name = f"lols, {threads} thread{'s' * (threads > 1)}" + ("" if more else ", whole rows written")
            found[name] = ours(
                ["predict", model, bench.test, *tail], ["predict", model, tiny, *tail], len(rows), bench.repeats
            )
    show(bench, "prediction", f"Prediction for {len(rows):,} rows, from file to file", found)


def show(bench: Bench, part: str, title: str, found: dict[str, Speed]) -> None:
    """The first row is what the others are compared with."""
    columns = ("median", "best", "per CPU s", "ratio, median", "ratio, best", "ratio, CPU", "start-up s")
    table = Table("system, rows/s", *columns, title=title)
    base = next(iter(found.values()))
    against = statistics.median(base.wall), max(base.wall), statistics.median(base.cpu)
    for name, speed in found.items():
        own = statistics.median(speed.wall), max(speed.wall), statistics.median(speed.cpu)
        ratios = (f"{mine / theirs:.2f}" for mine, theirs in zip(own, against, strict=True))
        table.add_row(name, *(f"{x:,.0f}" for x in own), *ratios, f"{speed.startup:.2f}")
    bench.keep(part, "speed", {name: speed._asdict() for name, speed in found.items()})
    bench.console.print(table)


def memory(bench: Bench) -> None:
    """The most memory that training takes: in memory, and out of core on a file that is several times as long."""
    table = Table("training", "rows", "peak MB", title="Peak memory of the process")
    rows = bench.lines("kdd99-10percent.csv.gz")
    options = ["--label-map", "kdd99", "--cost-matrix", "kdd99", "--passes", "1", "--threads", "2"]
    options += ["-o", bench.path("m.lols")]
    long = bench.put("long.csv", rows * (2 if bench.quick else 8))
    for name, path, more, count in (
        ("in memory", bench.train, [], len(rows)),
        ("out of core", bench.train, ["--memory", "1MB"], len(rows)),
        ("out of core, 8 times as long", long, ["--memory", "1MB"], len(rows) * 8),
    ):
        command = [*LOLS, "train", "classifier", path, *options, *more, "--json"]
        # A process counts the memory of the one that started it: a small one stands between.
        done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=True)
        peak = float(done.stdout) / 1024
        bench.keep("memory", name, peak)
        table.add_row(name, f"{count:,}", f"{peak:,.0f}")
    bench.console.print(table)


# --- many classes ---


def many_classes(count: int, rows: int, columns: int = 20, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows of categories: each class has a code of its own, of which a part of the cells is replaced by chance."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 8, (count, columns))
    labels = rng.integers(0, count, rows)
    cells = np.where(rng.random((rows, columns)) < 0.3, rng.integers(0, 8, (rows, columns)), codes[labels])
    return {f"c{k}": cells[:, k].astype(str) for k in range(columns)}, labels


def labels(bench: Bench) -> None:
    """One pass over 100,000 rows with more and more classes: a tree's time grows with their logarithm."""
    import pyarrow as pa

    count = 5_000 if bench.quick else 100_000
    table = Table(
        "classes",
        "steps",
        "tree, s",
        "ns a step",
        "error",
        "flat, s",
        "error",
        title=f"Training on {count:,} rows, one pass",
    )
    for classes in (4, 16, 64, 250, 1000):
        columns, true = many_classes(classes, count + 10_000)
        whole = pa.table(columns)
        found: dict[str, Any] = {"steps": math.log2(classes)}
        for tree in ("order", None):
            seconds = []
            for _ in range(max(1, bench.repeats // 2)):
                model = CostSensitiveClassifier(tree=tree, classes=range(classes), passes=1, progress=False)
                model.fit(whole.slice(0, count), true[:count])
                report = model.model_.report
                seconds.append(report["seconds_total"] - report["seconds_compiling"])
            error = model.evaluate(whole.slice(count), true[count:]).error
            found[str(tree)] = {"seconds": min(seconds), "error": error}
        bench.keep("labels", str(classes), found)
        of_tree, of_flat = found["order"], found["None"]
        a_step = 1e9 * of_tree["seconds"] / count / found["steps"]
        table.add_row(
            f"{classes:,}", f"{found['steps']:.1f}", f"{of_tree['seconds']:.2f}", f"{a_step:,.0f}",
            f"{of_tree['error']:.3f}", f"{of_flat['seconds']:.2f}", f"{of_flat['error']:.3f}",
        )  # fmt: skip
    bench.console.print(table)


PARTS: dict[str, Callable[[Bench], None]] = {
    "training": training,
    "prediction": prediction,
    "memory": memory,
    "labels": labels,
    "accuracy": accuracy,
    "table2": table2,
}


def main() -> None:
    """Run all, or what is asked for."""
    shared.run_parts(PARTS, Bench, shared.options(PARTS, __doc__, "table2").parse_args())


if __name__ == "__main__":
    main()
