"""Weighted tardiness on one machine: which job next, learned from the rule "apparent tardiness cost".

    python examples/tardiness.py --jobs 20

Each job has a length, a weight and a due date; what it costs is its weight times the time by which it ends too late.
The rule (Vepsalainen and Morton 1987) divides weight by length, and discounts jobs that still have time. The learned
policy also sees what taking a job now does to the others: what they would cost in the order of due dates, and in that
of weight divided by length, if this job goes first.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from functools import partial
from math import exp
from typing import Any

import numpy as np
from helpers import drawing, solving

import lols
from lols import emit, feature

__all__ = ["RULES", "Tardiness", "descend", "draw", "show", "solve"]

Jobs = tuple[np.ndarray, np.ndarray, np.ndarray]  # lengths, weights and due dates


def late(x, j, end):
    """What a job costs that ends at a certain time, in units of the mean job."""
    return x.weight[j] * max(0.0, end - x.due[j]) / x.scale


def apparent_cost(x, s, j):
    """The priority of the rule: weight by length, less for jobs that still have time."""
    return x.weight[j] / x.time[j] * exp(-max(0.0, x.due[j] - x.time[j] - s.now) / (2.0 * x.mean))


def urgent(x, s):
    """The rule: the job of highest priority."""
    chosen, most = -1, 0.0
    for j in range(x.jobs):
        if s.done[j] == 0:
            priority = apparent_cost(x, s, j)
            if chosen < 0 or priority > most:
                chosen, most = j, priority
    return chosen


def rest_in_order(x, s, order, a):
    """What the jobs that are left cost if this one goes first, and the others follow in a fixed order."""
    now = s.now + x.time[a]
    total = late(x, a, now)
    for j in order:
        if s.done[j] == 0 and j != a:
            now += x.time[j]
            total += late(x, j, now)
    return total


def swaps(x, s, a):
    """What it costs that this job goes before another that is left, and not after it: the sum, and the most."""
    total = most = 0.0
    for j in range(x.jobs):
        if s.done[j] == 0 and j != a:
            after, before = s.now + x.time[a], s.now + x.time[j]
            both = s.now + x.time[a] + x.time[j]
            worse = late(x, a, after) + late(x, j, both) - late(x, j, before) - late(x, a, both)
            total, most = total + worse, max(most, worse)
    return total, most


class Tardiness(lols.Task):
    """The state: which jobs are done, their order, and the time."""

    needs_truth, nonnegative = False, True
    sizes = lols.Sizes(
        state=lols.State(count=int, done="jobs", order="jobs", now=float),
        steps="jobs",
        actions="jobs",
        features=0,
        action_features=20,
    )

    def encode(jobs):
        time, weight, due = jobs
        x = {"jobs": len(time), "time": time, "weight": weight, "due": due, "mean": float(time.mean())}
        orders = {"by_due": np.argsort(due), "by_ratio": np.argsort(time / weight)}
        return lols.Example(x | orders | {"scale": float(weight.mean() * time.mean())}, {})

    def actions(x, s, legal):
        for j in range(x.jobs):
            legal[j] = s.done[j] == 0

    def step(x, s, a):
        s.now += x.time[a]
        s.done[a] = 1
        s.order[s.count] = a
        s.count += 1

    def action_features(x, s, a, out):
        left, urgency = x.jobs - s.count, apparent_cost(x, s, a) / apparent_cost(x, s, urgent(x, s))
        slack = (x.due[a] - x.time[a] - s.now) / x.mean
        length, ratio = x.time[a] / x.mean, x.weight[a] / x.time[a] * x.mean
        dues, ratios = rest_in_order(x, s, x.by_due, a), rest_in_order(x, s, x.by_ratio, a)
        total, most = swaps(x, s, a)
        emit(out, feature(0), urgency)
        emit(out, feature(1), dues / left)
        emit(out, feature(2), ratios / left)
        emit(out, feature(3), min(dues, ratios) / left)
        emit(out, feature(4), total / left)
        emit(out, feature(5), most)
        emit(out, feature(6), length)
        emit(out, feature(7), ratio)
        emit(out, feature(8), max(slack, -3.0))
        emit(out, feature(9, int(10.0 * urgency)))
        emit(out, feature(10, int(2.0 * min(max(slack, -3.0), 8.0)), int(2.0 * length)))
        emit(out, feature(11, int(2.0 * min(max(slack, -3.0), 8.0)), int(ratio)))
        emit(out, feature(12, int(4.0 * most), int(5.0 * urgency)))

    def cost(x, y, s, a):
        return late(x, a, s.now + x.time[a])

    def loss(x, y, s):
        now = total = 0.0
        for k in range(s.count):
            now += x.time[s.order[k]]
            total += late(x, s.order[k], now)
        return total

    def output(x, s):
        return s.order.tolist()

    def reference(x, y, s):
        return urgent(x, s)


def earliest_due(x, y, s):
    """The rule EDD: the job that is due first."""
    for j in x.by_due:
        if s.done[j] == 0:
            return j
    return -1


def shortest_weighted(x, y, s):
    """The rule WSPT: the job of most weight by length."""
    for j in x.by_ratio:
        if s.done[j] == 0:
            return j
    return -1


RULES = {
    "earliest due date": lols.Reference(action=earliest_due, needs_truth=False, name="EDD"),
    "weighted shortest time": lols.Reference(action=shortest_weighted, needs_truth=False, name="WSPT"),
    "apparent tardiness cost": Tardiness.teacher,
}


def draw(rng: np.random.Generator, jobs: int = 20) -> Jobs:
    """Lengths, weights and due dates as in the OR-Library (Potts and Van Wassenhove 1991)."""
    time, weight = rng.integers(1, 101, jobs).astype(float), rng.integers(1, 11, jobs).astype(float)
    tight, spread = rng.choice([0.2, 0.4, 0.6, 0.8, 1.0], 2)
    due = rng.uniform(1.0 - tight - spread / 2.0, 1.0 - tight + spread / 2.0, jobs)
    return time, weight, np.floor(due * time.sum())


def rule_order(jobs: Jobs) -> list[int]:
    """The order of the rule, as plain Python."""
    time, weight, due = jobs
    left, now, order = list(range(len(time))), 0.0, list[int]()
    while left:
        slack = np.maximum(0.0, due[left] - time[left] - now) / (2.0 * time.mean())
        order.append(left.pop(int(np.argmax(weight[left] / time[left] * np.exp(-slack)))))
        now += time[order[-1]]
    return order


def losses(jobs: Jobs, orders: np.ndarray) -> np.ndarray:
    """The losses of several orders, one in each row."""
    time, weight, due = jobs
    tardy = np.maximum(0.0, np.cumsum(time[orders], axis=1) - due[orders])
    return (weight[orders] * tardy).sum(axis=1) / (weight.mean() * time.mean())


def descend(jobs: Jobs, seconds: float, seed: int = 0) -> float:
    """Local search: the best of all swaps and insertions as long as that helps, then again from a shaken order."""
    count, rng, until = len(jobs[0]), np.random.default_rng(seed), clock.perf_counter() + seconds
    moves = [np.insert(np.delete(range(count), i), j, i) for i in range(count) for j in range(count) if i != j]
    pairs = [(i, j) for i in range(count) for j in range(i)]
    swaps = [np.array([{i: j, j: i}.get(k, k) for k in range(count)]) for i, j in pairs]
    moves = np.array(moves + swaps)
    best = np.array(rule_order(jobs))
    least, order = losses(jobs, best[np.newaxis])[0], best
    while True:
        here = np.inf
        while True:
            tried = losses(jobs, order[moves])
            if tried.min() >= here - 1e-9 or clock.perf_counter() > until:
                break
            here, order = tried.min(), order[moves[tried.argmin()]]
        if here < least:
            least, best = here, order
        if clock.perf_counter() > until:
            return float(least)
        order = best[moves[rng.integers(len(moves))]]
        for _ in range(3):
            order = order[moves[rng.integers(len(moves))]]


def solve(jobs: Jobs, seconds: float) -> float | None:
    """The loss that OR-Tools' CP-SAT reaches from the order of the rule; None if it does not even finish that."""
    from ortools.sat.python import cp_model

    model, horizon = cp_model.CpModel(), int(jobs[0].sum())
    intervals, costs, ends = [], [], []
    for time, weight, due in zip(*(column.astype(int).tolist() for column in jobs)):
        end, tardy = model.new_int_var(time, horizon, ""), model.new_int_var(0, max(0, horizon - due), "")
        model.add(tardy >= end - due)
        intervals.append(model.new_fixed_size_interval_var(end - time, time, ""))
        costs.append(weight * tardy)
        ends.append(end)
    model.add_no_overlap(intervals)
    model.minimize(sum(costs))
    order = rule_order(jobs)
    for j, end in zip(order, np.cumsum(jobs[0][order]).tolist()):
        model.add_hint(ends[j], int(end))
    found = solving.cp_sat(model, seconds)
    return None if found is None else found / float(jobs[1].mean() * jobs[0].mean())


def show(axes: Any, jobs: Jobs, order: Sequence[int]) -> None:
    """Draw the jobs in their order, as high as their weight; those that are late in orange, the later the darker."""
    time, weight, due = (column[list(order)] for column in jobs)
    ends = np.cumsum(time)
    late = np.maximum(0.0, ends - due)
    shares = 0.25 + 0.75 * np.minimum(1.0, late / (4.0 * time.mean()))
    for end, length, height, tardy, share in zip(ends, time, weight, late, shares):
        colour, alpha = (drawing.ORANGE, share) if tardy > 0 else (drawing.BLUE, 0.35)
        axes.bar(end - length, height, 0.94 * length, align="edge", color=colour, alpha=alpha)
    axes.set(xlabel="time", ylabel="weight")


def main(argv: list[str] | None = None) -> None:
    """Learn on 20 jobs, and print the table."""
    chosen = solving.options(__doc__ or "", argv, jobs=20)
    solvers = {"CP-SAT": solve, "local search": descend}
    solving.compare(Tardiness, draw, RULES, solvers, chosen, partial(draw, jobs=chosen.jobs))


if __name__ == "__main__":
    main()
