"""Decisions a second in the job shop of 20 jobs and 15 machines: ``python benchmarks/decisions.py``.

The task of examples/job_shop.py, on one thread: prediction with and without foresight, training with reference
roll-outs and with LOLS, and for comparison the same decisions in a loop of plain Python, as environments in the style
of Gym have it. A decision is one choice of the policy; in training, those of the roll-outs count.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import job_shop

import lols

SIZE = (20, 15)
STEPS = SIZE[0] * SIZE[1]


def microseconds(model: lols.Model, shops: list[job_shop.Shop]) -> float:
    """Time of one decision in prediction, the best of three."""
    model.losses(shops)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        model.losses(shops)
        took.append(time.perf_counter() - began)
    return 1e6 * min(took) / (len(shops) * STEPS)


def trained_per_second(task: lols.Task, shops: list[job_shop.Shop], algorithm: str) -> float:
    """States that training learns from in a second; each stands for a roll-out of every candidate."""
    lols.train(task, shops[:2], algorithm=algorithm, passes=1, progress=False, threads=1)
    began = time.perf_counter()
    lols.train(task, shops, algorithm=algorithm, passes=1, progress=False, threads=1)
    return len(shops) * STEPS / (time.perf_counter() - began)


def main(argv: list[str] | None = None) -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=int, default=100, help="instances to decide on (default 100)")
    chosen = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    small = [job_shop.draw(rng, (6, 6)) for _ in range(40)]
    shops = [job_shop.draw(rng, SIZE) for _ in range(chosen.instances)]
    print(f"{SIZE[0]} jobs, {SIZE[1]} machines, one thread; microseconds for a decision")
    for foresight, words in ((0, "without foresight"), (1, "with foresight")):
        task = job_shop.JobShop(foresight=foresight)
        model = lols.train(task, small, passes=1, progress=False, threads=1)
        model.threads = 1
        plain = lols.Model(model.space, model.policy, model.plan, compiled=False)
        fast = microseconds(model, shops)
        began = time.perf_counter()
        plain.predict(shops[:1])
        slow = 1e6 * (time.perf_counter() - began) / STEPS
        print(f"  {words:<20} {fast:9.1f}   in a Python loop {slow:10.0f}   {slow / fast:8.0f} times")
    task = job_shop.JobShop(foresight=0)
    print("states learned from in a second of training, without foresight")
    for algorithm in ("aggrevate", "lols"):
        print(f"  {algorithm:<20} {trained_per_second(task, shops[:20], algorithm):9,.0f}")


if __name__ == "__main__":
    main()
