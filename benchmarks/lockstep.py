"""What lock-step costs: decisions per second in training, fused and in lock-step, with policies of several kinds.

    python -m benchmarks.lockstep

Generated tagging data with 12 labels, LOLS with its default options. All systems run in one process, one after the
other, each after a small run that compiles; the best of three. A decision is a state that is learned from: all its
deviations are rolled out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.policies import LinearPolicy

LABELS = 12
EXAMPLE = Path(__file__).parents[1] / "examples" / "any_scorer.py"


def any_scorer() -> Any:
    """The example's policies."""
    found = importlib.util.spec_from_file_location("any_scorer", EXAMPLE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def main() -> None:
    """Train each, and show."""
    parser = argparse.ArgumentParser(description="Training speed, fused and in lock-step.")
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8, 64])
    chosen = parser.parse_args()
    space, teacher = tagging_space(labels=LABELS), tagging_references()["optimal"]
    example = any_scorer()
    ways: dict[str, Callable[[], Any]] = {
        "linear, fused": lambda: None,
        "linear, lock-step": lambda: LinearPolicy(space),
        "SGDRegressor for each label": lambda: example.Regressors(LABELS, columns=1 << 14),
        "network, 256 columns, 32 hidden": lambda: example.Network(LABELS),
    }
    data = lols.Examples(space, tagging_data(chosen.sentences, labels=LABELS))
    small = lols.Examples(space, tagging_data(5, labels=LABELS))
    decisions = int(data.steps.sum())
    print("| policy | " + " | ".join(f"batch_size={n}" for n in chosen.batch_sizes) + " |")
    print("|---|" + "---:|" * len(chosen.batch_sizes))
    for name, make in ways.items():
        lols.train(space, small, teacher, policy=make(), passes=1)
        speeds = []
        for size in chosen.batch_sizes:
            best = 0.0
            for _ in range(3):
                policy, began = make(), time.process_time()
                lols.train(space, data, teacher, policy=policy, passes=1, batch_size=size)
                best = max(best, decisions / (time.process_time() - began))
            speeds.append(best)
        print(f"| {name} | " + " | ".join(f"{speed:,.0f}" for speed in speeds) + " |", flush=True)


if __name__ == "__main__":
    main()
