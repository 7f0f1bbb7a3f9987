"""Decisions a second in the job shop of 20 jobs and 15 machines: ``python benchmarks/decisions.py``.

The task of examples/job_shop.py, on one thread: prediction with and without foresight, training with reference
roll-outs and with LOLS. For comparison, the same job shop as an environment in the style of Gym, with NumPy, and the
task itself as plain Python. A decision is one choice of a policy; in training, those of the roll-outs count. Then a
walk over up to 5,000 places of which a few may be next: what do actions cost that are not legal? Times are CPU times,
so that other programs matter less.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import job_shop

import lols
from lols import emit, feature

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


def microseconds(model: lols.Model, shops: Any, steps: int = STEPS) -> float:
    """Time of one decision in prediction, the best of three."""
    model.losses(shops)
    took = []
    for _ in range(3):
        began = time.process_time()
        model.losses(shops)
        took.append(time.process_time() - began)
    return 1e6 * min(took) / (len(shops) * steps)


def trained_per_second(task: lols.Task, shops: list[job_shop.Shop], algorithm: str) -> float:
    """States that training learns from in a second; each stands for a roll-out of every candidate."""
    lols.train(task, shops[:2], algorithm=algorithm, passes=1, progress=False, threads=1)
    began = time.process_time()
    lols.train(task, shops, algorithm=algorithm, passes=1, progress=False, threads=1)
    return len(shops) * STEPS / (time.process_time() - began)


class Walk(lols.Task):
    """Sixty steps over `n` places, of which `few` may be next; each pair of places has its price."""

    needs_truth = False
    sizes = lols.Sizes(
        state=lols.State(count=1, here=1, paid=lols.reals(1)), steps=60, actions="n", features=0, action_features=2
    )

    def encode(walk):
        n, few, price = walk
        return lols.Example({"n": n, "few": few, "price": price}, {})

    def actions(x, s, legal):
        if s.count[0] < 60:
            for i in range(x.few):
                legal[(7 * s.here[0] + i * (x.n // x.few)) % x.n] = True

    def step(x, s, a):
        s.paid[0] += x.price[(31 * a + 17 * s.here[0]) % len(x.price)]
        s.here[0] = a
        s.count[0] += 1

    def action_features(x, s, a, out):
        emit(out, feature(0), x.price[(31 * a + 17 * s.here[0]) % len(x.price)])
        emit(out, feature(1, a % 7))

    def loss(x, y, s):
        return s.paid[0]

    def output(x, s):
        return float(s.paid[0])

    def reference(x, y, s):
        return (7 * s.here[0]) % x.n


def in_walk(n: int, few: int) -> tuple[float, float]:
    """Microseconds for a decision in prediction, and for a state in training."""
    rng, took = np.random.default_rng(0), []
    walks = lols.Examples(Walk, [(n, few, rng.random(1000)) for _ in range(200)])
    some = lols.Examples(Walk, [(n, few, rng.random(1000)) for _ in range(20)])
    for _ in range(4):
        began = time.process_time()
        model = lols.train(Walk, some, algorithm="lols", passes=1, progress=False, threads=1)
        took.append(time.process_time() - began)
    model.threads = 1
    return microseconds(model, walks, 60), 1e6 * min(took[1:]) / (len(some) * 60)


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
    print("a walk: microseconds for a decision in prediction, and for a state in training")
    for n, few in ((20, 4), (200, 4), (1000, 4), (5000, 4), (200, 16), (200, 64), (200, 200)):
        decision, state = in_walk(n, few)
        print(f"  {n:>5} actions, {few:>3} legal {decision:9.2f} {state:9.0f}", flush=True)


if __name__ == "__main__":
    main()
