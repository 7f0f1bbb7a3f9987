"""What a first run costs: kernels compiled and seconds, with an empty cache, each task in a process of its own.

    python -m benchmarks.compiling [--only NAME ...] [--repeats N] [--json FILE]

The commands train on data that the project generates. Each is run cold (nothing was compiled before) and warm (again);
and once more, with one process that compiles, to count functions and seconds. Time an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]

COMMAND = "import sys; from lols.cli import main; sys.argv[0] = 'lols'; sys.exit(main())"
# Counts the functions that the compiler is given, and the seconds it takes, in this process.
COUNTED = """
import atexit, os, sys
from numba.core import event
from lols.kernels.kernel import compile_seconds

class Counter(event.Listener):
    functions = 0
    def on_start(self, event):
        Counter.functions += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Counter())

def said():
    with open(os.environ["LOLS_COUNTED"], "w") as file:
        file.write(f"{Counter.functions} {compile_seconds()}")

atexit.register(said)
"""


class Case(NamedTuple):
    """A program or command to be run, and what must have run before it."""

    name: str
    code: str
    arguments: list[str]
    before: list[str] | None = None


class Measured(NamedTuple):
    """What a case costs."""

    name: str
    cold: float
    warm: float
    functions: int
    compiling: float


def cases(folder: Path) -> list[Case]:
    """The built-in tasks, a second teacher of each, the README's own task, and a bandit."""
    from lols.datasets import grammar, intrusion

    trees, table = folder / "trees.conllu", folder / "connections.csv"
    grammar.write_conllu(trees, grammar.generate(500, seed=1))
    intrusion.write_csv(table, intrusion.generate(20_000, seed=1))
    sentence = folder / "one.conllu"
    grammar.write_conllu(sentence, grammar.generate(1, seed=2))
    model = str(folder / "model.lols")

    def train(kind: str, file: Path, *more: str) -> list[str]:
        return ["train", kind, str(file), "-o", model, "--passes", "1", "--json", *more]

    made = []
    for kind, file in (("parser", trees), ("tagger", trees), ("classifier", table)):
        made.append(Case(f"lols train {kind}", COMMAND, train(kind, file)))
        bad = train(kind, file, "--reference", "bad", "--algorithm", "lols")
        good = train(kind, file, "--algorithm", "lols")
        made.append(Case(f"lols train {kind}, another teacher", COMMAND, bad, before=good))
    made.append(Case("lols predict, one sentence", COMMAND, ["predict", model, str(sentence)], train("tagger", trees)))
    made.append(Case("the README's own task, to its first prediction", readme_task(), []))
    simulated = ["bandit", "simulate", "layout", "--rounds", "500", "--json"]
    made.append(Case("lols bandit simulate layout", COMMAND, simulated))
    made.append(Case("lols --help", COMMAND, ["--help"]))
    return made


def readme_task() -> str:
    """The program of the README that defines a task, as far as its first prediction."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (program,) = (block for block in blocks if "(lols.Task)" in block)
    training, _, _ = program.partition("teacher = model.reference_losses")
    return training + 'print(model.predict(["thereisaseainthehat"]))\n'


def run(code: str, arguments: list[str], cache: Path, **environment: str) -> float:
    """Run a program that finds kernels in this folder only, not those of the user; the seconds it took."""
    own = dict.fromkeys(("LOLS_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"), str(cache))
    given = os.environ | own | environment
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], env=given, check=True, capture_output=True, cwd=cache)
    return time.perf_counter() - began


def measure(case: Case, repeats: int) -> Measured:
    """Run a case cold and warm, the best of several runs each, and count what it compiles."""
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            cache = Path(name)
            if case.before is not None:
                run(COMMAND, case.before, cache)
            cold.append(run(case.code, case.arguments, cache))
            warm += [run(case.code, case.arguments, cache) for _ in range(3)]
    with tempfile.TemporaryDirectory() as name:
        cache, counted = Path(name), Path(name) / "counted"
        alone = {"LOLS_COMPILE_AHEAD": "0", "LOLS_COUNTED": str(counted)}
        if case.before is not None:
            run(COMMAND, case.before, cache)
        run(COUNTED + case.code, case.arguments, cache, **alone)
        functions, seconds = counted.read_text().split()
    return Measured(case.name, min(cold), min(warm), int(functions), float(seconds))


def show(found: list[Measured]) -> None:
    """A table of what was measured."""
    table = Table(title="A first run: whole commands, with an empty cache and again")
    for name in ("", "cold, s", "warm, s", "functions compiled", "compiling in one process, s"):
        table.add_column(name, justify="right" if name else "left")
    for row in found:
        table.add_row(row.name, f"{row.cold:.1f}", f"{row.warm:.2f}", f"{row.functions}", f"{row.compiling:.1f}")
    Console().print(table)


def main(arguments: list[str] | None = None) -> None:
    """Measure, show, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="parts of the names of cases")
    parser.add_argument("--repeats", type=int, default=1, help="cold runs of each case; the best counts")
    parser.add_argument("--json", type=Path, help="a file for the results")
    given = parser.parse_args(arguments)
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        for case in cases(Path(name)):
            if given.only and not any(part in case.name for part in given.only):
                continue
            found.append(measure(case, given.repeats))
            print(f"{case.name}: {found[-1].cold:.1f} s cold, {found[-1].warm:.2f} s warm", file=sys.stderr)
    show(found)
    if given.json:
        rows: list[dict[str, Any]] = [row._asdict() for row in found]
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
