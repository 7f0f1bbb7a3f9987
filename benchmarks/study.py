"""Which roll-out, which coin, which learner: tagging the WSJ sample, every combination, several seeds.

``python benchmarks/study.py [--seeds 5]`` prints the table of docs/study.md. All is as Algorithm 1 is printed but for
what is varied: all 45 tags are rolled out at every word, no state is passed over, five passes, the default templates.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tagging import data
from lols import Tagger
from lols.tasks.tagging.files import FileColumns, read_tagged

ROLL_OUTS: list[tuple[str, dict[str, Any]]] = [
    ("none", {"roll_out": "none"}),
    ("reference", {"roll_out": "reference"}),
    ("mixture, one coin per state", {"mix": "state"}),
    ("mixture, expected", {"mix": "expected"}),
    ("mixture, one coin per example", {"mix": "example"}),
    ("mixture, one coin per roll-out", {"mix": "rollout"}),
    ("learned", {"roll_out": "learned"}),
]
LEARNERS = ("csoaa", "hinge")


def main() -> None:
    """Run the study; the results so far are written after every combination."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    columns = FileColumns(label="xpos", use={})
    train, test = (read_tagged([data() / f"wsj-{part}.conll.gz"], columns) for part in ("train", "test"))
    target = Path(__file__).resolve().parents[1] / "reports" / "study.json"
    target.parent.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    table = Table("roll-out", *LEARNERS, title=f"Accuracy on the WSJ sample, 5 passes, {chosen.seeds} seeds")
    for name, options in ROLL_OUTS:
        cells = []
        for learner in LEARNERS:
            began, found = time.perf_counter(), []
            for seed in range(chosen.seeds):
                tagger = Tagger(seed=seed, learner=learner, prune=None, slack=None, progress=False, **options)
                tagger.fit_columns(train.corpus, train.labels)
                found.append(tagger.evaluate_columns(test.corpus, test.labels).accuracy)
            spread = statistics.stdev(found) if len(found) > 1 else 0.0
            cells.append(f"{100 * statistics.mean(found):.2f} ± {100 * spread:.2f}")
            results[f"{name}, {learner}"] = {"accuracy": found, "seconds": time.perf_counter() - began}
            target.write_text(json.dumps(results, indent=1))
            print(f"{name}, {learner}: {cells[-1]}", file=sys.stderr, flush=True)
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
