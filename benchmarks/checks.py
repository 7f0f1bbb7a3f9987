"""What bounds checks in the functions of a search space cost: ratios of CPU time, to run and to compile.

    python -m benchmarks.checks [--only NAME ...] [--repeats N] [--json FILE]

The task of the README and those of `examples/`, each compiled without checks (`LOLS_CHECK=0`) and with them, in
processes of their own. Compiling is measured with an empty cache. Runs are interleaved, and the best of each counts.
Other tasks are added with `--also FILE:CLASS:FUNCTION`; the function makes the data.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

TIMES, PASSES = 5, 10
PARTS = ("training", "prediction", "compiling")
Case = tuple[Any, Any, dict[str, Any]]  # a task, its data, options of training


def readme() -> Case:
    """The task of the README, with its data."""
    block = next(b for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S) if "Words" in b)
    path = Path(tempfile.mkdtemp()) / "words.py"
    path.write_text(block.partition("model = ")[0])
    module = loaded(path)
    return module.Words, module.train, {}


def chunking() -> Case:
    """Chunks of generated sentences."""
    import chunking
    from helpers import phrases

    return chunking.Chunks, chunking.prepared(phrases.generate(1000)), {}


def grid() -> Case:
    """The delivery robot."""
    import grid

    return grid.Robot, grid.maps(150, seed=1), {}


def layout() -> Case:
    """Page layout."""
    import layout

    return layout.Page, layout.pages(1000, seed=1), {}


def ocr() -> Case:
    """Handwritten words, generated."""
    import ocr

    return ocr.Letters(before=1), ocr.seen(ocr.generate(400, seed=1), ocr.pixels), {}


def tours() -> Case:
    """Round trips."""
    import tsp

    return tsp.Tour, tsp.maps(60, seed=1), {}


def tiles() -> Case:
    """The task of the example of other scorers."""
    import any_scorer

    return any_scorer.Tiles, any_scorer.rows_of_tiles(600, seed=1), {}


CASES: dict[str, Callable[[], Case]] = {
    "README": readme,
    **{made.__name__: made for made in (chunking, grid, layout, ocr, tours, tiles)},
}


def loaded(path: Path) -> Any:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def case(name: str) -> Case:
    """A case by its name, or `FILE:CLASS:FUNCTION`."""
    if name in CASES:
        return CASES[name]()
    file, task, data = name.split(":")
    module = loaded(Path(file))
    return getattr(module, task), getattr(module, data)(), {}


def run(name: str) -> dict[str, float]:
    """Train and predict several times in this process: CPU seconds of compiling, of training, and of prediction."""
    import lols

    task, data, options = case(name)
    examples = lols.Examples(task, data)
    best = {"training": float("inf"), "prediction": float("inf")}
    cold = 0.0
    for number in range(1 + TIMES):
        began = time.process_time()
        model = lols.train(task, examples, passes=PASSES, seed=1, **options)
        middle = time.process_time()
        for _ in range(PASSES):
            model.run(examples)
        end = time.process_time()
        if number == 0:  # compiles
            cold = end - began
        else:
            best["training"] = min(best["training"], middle - began)
            best["prediction"] = min(best["prediction"], end - middle)
    return best | {"compiling": cold - best["training"] - best["prediction"]}


def measured(name: str, repeats: int) -> dict[str, Any]:
    """Both ways, interleaved."""
    runs: dict[str, list[dict[str, float]]] = {"0": [], "1": []}
    for repeat in range(repeats):
        for checked in ("0", "1") if repeat % 2 else ("1", "0"):
            with tempfile.TemporaryDirectory() as cache:
                given = os.environ | {"LOLS_CHECK": checked, "LOLS_CACHE": cache, "LOLS_COMPILE_AHEAD": "0"}
                command = [sys.executable, "-m", "benchmarks.checks", "--child", name]
                out = subprocess.run(command, cwd=ROOT, env=given, check=True, stdout=subprocess.PIPE, text=True).stdout
                runs[checked].append(json.loads(out.splitlines()[-1]))
    parts: dict[str, Any] = {}
    for part in PARTS:
        without, with_checks = (min(run[part] for run in runs[checked]) for checked in ("0", "1"))
        parts[part] = {"seconds": without, "ratio": with_checks / without}
    return parts


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--also", nargs="*", default=[], help="FILE:CLASS:FUNCTION")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(run(given.child)))
        return
    found: dict[str, Any] = {}
    table = Table("task", *(f"{part}{what}" for part in PARTS for what in (", s", ", ratio")))
    for name in [*given.only, *given.also]:
        found[name] = measured(name, given.repeats)
        cells = [cell for row in found[name].values() for cell in (f"{row['seconds']:.2f}", f"{row['ratio']:.2f}")]
        print(name, *cells, file=sys.stderr)
        table.add_row(Path(name.partition(":")[0]).stem, *cells)
    middle = [statistics.median(row[part]["ratio"] for row in found.values()) for part in PARTS]
    table.add_row("median", *(cell for ratio in middle for cell in ("", f"{ratio:.2f}")))
    Console(width=120).print(table)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
