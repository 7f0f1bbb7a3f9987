"""Decisions a second in the job shop of 20 jobs and 15 machines: ``python benchmarks/decisions.py``.

The task of examples/job_shop.py, on one thread: prediction with and without foresight, training with reference
roll-outs and with LOLS. For comparison, the same job shop as an environment in the style of Gym, with NumPy, and the
task itself as plain Python. A decision is one choice of a policy; in training, those of the roll-outs count. Times are
CPU times, so that other programs matter less.
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


class Environment:
    """The job shop as people write environments: `reset` and `step` in Python, observations by NumPy."""

    def __init__(self, shop: job_shop.Shop):
        self.machine, self.time = shop
        self.rest = np.cumsum(self.time[:, ::-1], axis=1)[:, ::-1].astype(float)

    def reset(self) -> tuple[np.ndarray, np.ndarray]:
        """The first observation."""
        jobs, machines = self.machine.shape
        self.done, self.job, self.free = np.zeros(jobs, int), np.zeros(jobs), np.zeros(machines)
        return self.observation()

    def observation(self) -> tuple[np.ndarray, np.ndarray]:
        """The candidates for the next machine in conflict, and their features: waiting, length, work and jobs left."""
        live = np.flatnonzero(self.done < self.machine.shape[1])
        if live.size == 0:
            return np.zeros((0, 4)), live
        next_ = self.done[live]
        at, length = self.machine[live, next_], self.time[live, next_]
        begin = np.maximum(self.job[live], self.free[at])
        first = np.argmin(begin + length)
        chosen = (at == at[first]) & (begin < begin[first] + length[first])
        features = np.stack([begin, length, self.rest[live, next_], self.machine.shape[1] - next_], axis=1)[chosen]
        return features - features.min(axis=0), live[chosen]

    def step(self, a: int) -> tuple[tuple[np.ndarray, np.ndarray], float, bool]:
        """Let a job go on; observation, reward and whether it was the last decision."""
        at, length = self.machine[a, self.done[a]], self.time[a, self.done[a]]
        before, self.done[a] = self.job.max(), self.done[a] + 1
        self.job[a] = self.free[at] = max(self.job[a], self.free[at]) + length
        seen = self.observation()
        return seen, float(before - self.job.max()), seen[1].size == 0


def in_gym(shops: list[job_shop.Shop]) -> tuple[float, float]:
    """Microseconds for a decision of a linear policy in that environment; and decisions in all roll-outs of a state."""
    weights, rolled, began = np.array([1.0, 0.5, -0.5, -1.0]), 0, time.process_time()
    for shop in shops:
        world = Environment(shop)
        features, candidates = world.reset()
        left, over = STEPS, False
        while not over:
            rolled += left * candidates.size * (candidates.size > 1)
            left -= 1
            (features, candidates), _, over = world.step(int(candidates[np.argmin(features @ weights)]))
    states = len(shops) * STEPS
    return 1e6 * (time.process_time() - began) / states, rolled / states


def microseconds(model: lols.Model, shops: list[job_shop.Shop]) -> float:
    """Time of one decision in prediction, the best of three."""
    model.losses(shops)
    took = []
    for _ in range(3):
        began = time.process_time()
        model.losses(shops)
        took.append(time.process_time() - began)
    return 1e6 * min(took) / (len(shops) * STEPS)


def trained_per_second(task: lols.Task, shops: list[job_shop.Shop], algorithm: str) -> float:
    """States that training learns from in a second; each stands for a roll-out of every candidate."""
    lols.train(task, shops[:2], algorithm=algorithm, passes=1, progress=False, threads=1)
    began = time.process_time()
    lols.train(task, shops, algorithm=algorithm, passes=1, progress=False, threads=1)
    return len(shops) * STEPS / (time.process_time() - began)


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
        began = time.process_time()
        plain.predict(shops[:1])
        slow = 1e6 * (time.process_time() - began) / STEPS
        print(f"  {words:<20} {fast:9.1f}   in a Python loop {slow:10.0f}   {slow / fast:8.0f} times")
    gym, rolled = in_gym(shops[:5])
    print(f"  {'in the style of Gym':<20} {gym:9.1f}   with NumPy, four features")
    print("training: states learned from in a second, and decisions in their roll-outs")
    for foresight, words in ((0, "without foresight"), (1, "with foresight")):
        task = job_shop.JobShop(foresight=foresight)
        for algorithm in ("aggrevate", "lols"):
            states = trained_per_second(task, shops[: 20 - 15 * foresight], algorithm)
            print(f"  {algorithm + ', ' + words:<30} {states:9,.0f} {states * rolled:12,.0f}")
    print(
        f"  {'in the style of Gym':<30} {1e6 / gym / rolled:9,.1f} {1e6 / gym:12,.0f}   if it did all these roll-outs"
    )


if __name__ == "__main__":
    main()
