"""A small job shop: states of named parts with real numbers, as many actions as an instance has jobs, and a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

import lols
from lols import emit, feature


def ready(x, s, j):
    """When the next operation of a job can begin."""
    return max(s.job[j], s.machine[x.machine[j * x.machines + s.done[j]]])


class Shop(lols.Task):
    needs_truth = False
    sizes = lols.Sizes(
        state=lols.State(done="jobs", job=lols.reals("jobs"), machine=lols.reals(lambda x: x.machines)),
        steps=lambda x: x.jobs * x.machines,
        actions="jobs",
        features=0,
        action_features=4,
    )

    def encode(shop):
        machine, time = shop
        rest = np.cumsum(time[:, ::-1], axis=1)[:, ::-1]
        x = {"jobs": len(machine), "machines": machine.shape[1], "machine": machine.ravel(), "time": time.ravel()}
        return lols.Example(x | {"rest": rest.ravel(), "scale": float(rest[:, 0].max())}, {})

    def actions(x, s, legal):
        for j in range(x.jobs):
            legal[j] = s.done[j] < x.machines

    def step(x, s, a):
        at = a * x.machines + s.done[a]
        end = ready(x, s, a) + x.time[at]
        s.job[a] = s.machine[x.machine[at]] = end
        s.done[a] += 1

    def action_features(x, s, a, out):
        at = a * x.machines + s.done[a]
        emit(out, feature(0), ready(x, s, a) / x.scale)
        emit(out, feature(1), x.rest[at] / x.scale)
        emit(out, feature(2), x.time[at] / x.scale)
        emit(out, feature(3), (ready(x, s, a) - s.job[a]) / x.scale)

    def loss(x, y, s):
        last = 0.0
        for j in range(x.jobs):
            last = max(last, s.job[j])
        return 100.0 * last / x.scale

    def output(x, s):
        return float(s.job.max())

    def reference(x, y, s):
        """The job with the most work left."""
        chosen = -1
        for j in range(x.jobs):
            if s.done[j] < x.machines:
                rest = x.rest[j * x.machines + s.done[j]]
                if chosen < 0 or rest > x.rest[chosen * x.machines + s.done[chosen]]:
                    chosen = j
        return chosen


def draw(rng: np.random.Generator, jobs: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """An instance with three machines."""
    return np.array([rng.permutation(3) for _ in range(jobs)]), rng.integers(1, 30, (jobs, 3)).astype(float)


def shops(count: int, seed: int = 0, jobs: int = 5) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [draw(rng, jobs) for _ in range(count)]
