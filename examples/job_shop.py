"""Job shop: which job goes on next, learned from a dispatching rule, and compared on instances of the literature.

    python examples/job_shop.py --data jsplib.tar.gz

Every job visits the machines in its own order, and the schedule should end early. The rule goes on with the job that
has the most work left; without `--data`, random instances are compared. The learned policy sees the candidates for one
machine side by side: how long each one waits and takes, how late the others become, and where the rule would end if
the candidate went first. `--foresight 0` leaves the last part out, for decisions in microseconds.
"""

from __future__ import annotations

import argparse
import json
import math
import tarfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from helpers import solving

import lols
from lols import emit_curve, feature

__all__ = ["RULES", "JobShop", "best_known", "draw", "solve"]

Shop = tuple[np.ndarray, np.ndarray]  # machines and times, [job, operation]

SPT, FIFO, MOR, MWKR = range(4)  # the rules
FAR, SHORT = 1e30, 1e-6  # later than anything; the least time, because some operations take none


def begin(x, s, j):
    """When the next operation of a job can begin."""
    return max(s.job[j], s.machine[x.machine[j * x.machines + s.done[j]]])


def conflict(x, s):
    """The machine of the operation that can end first, and when: what begins there later would leave it idle."""
    at, end = -1, 0.0
    for j in range(x.jobs):
        if s.done[j] < x.machines:
            k = j * x.machines + s.done[j]
            soon = begin(x, s, j) + max(x.time[k], SHORT)
            if at < 0 or soon < end:
                at, end = x.machine[k], soon
    return at, end


def urgency(x, rule, j, k, ready):
    """How much a rule wants operation k of a job next: shortest time, first come, most operations or most work left."""
    if rule == SPT:
        return -x.time[j * x.machines + k]
    if rule == FIFO:
        return -ready
    return float(x.machines - k) if rule == MOR else x.rest[j * x.machines + k]


def rule_ends(x, s, a):
    """When the schedule ends if job `a` goes on next, and then always the one with the most work left of those that can
    begin first.

    The rest of the schedule is made in parts of the state that nothing else reads. `soon` is when a job can begin, or
    earlier: it is brought up to date where it matters.
    """
    for i in range(x.machines):
        s.free[i] = s.machine[i]
    for j in range(x.jobs):
        s.next[j] = j * x.machines + s.done[j]
        s.soon[j] = begin(x, s, j) if s.done[j] < x.machines else math.inf
    end = 0.0
    while a >= 0:
        k = s.next[a]
        until = s.soon[a] + x.time[k]
        end, s.free[x.machine[k]], s.next[a] = max(end, until), until, k + 1
        s.soon[a] = until if k + 1 < (a + 1) * x.machines else math.inf
        a, least = -1, FAR
        for j in range(x.jobs):
            if s.soon[j] <= least:
                soon = s.soon[j] = max(s.soon[j], s.free[x.machine[s.next[j]]])
                if soon < least or (soon == least and x.rest[s.next[j]] > x.rest[s.next[a]]):
                    a, least = j, soon
    return end


def others_end(x, s, legal, a):
    """When the last candidate for a machine can end if job `a` has it first, and the others wait until it is free."""
    k = a * x.machines + s.done[a]
    end = begin(x, s, a) + x.rest[k]
    for j in range(x.jobs):
        if legal[j] and j != a:
            free = max(begin(x, s, j), begin(x, s, a) + x.time[k])
            end = max(end, free + x.rest[j * x.machines + s.done[j]])
    return end


class JobShop(lols.Task):
    """The state: operations done of each job, when jobs and machines are free. Schedules are active (Giffler-Thompson).

    The other parts are what `survey` finds out about the candidates, for the features.
    """

    needs_truth = False
    settings: ClassVar = {"foresight": 1}
    sizes = lols.Sizes(
        state=lols.State(
            done="jobs", job=lols.reals("jobs"), machine=lols.reals("machines"), next="jobs",
            soon=lols.reals("jobs"), free=lols.reals("machines"), wait=lols.reals("jobs"),
            slack=lols.reals("jobs"), late=lols.reals("jobs"), ends=lols.reals("jobs"),
        ),
        steps=lambda x: x.jobs * x.machines, actions="jobs", features=0, action_features=14,
    )  # fmt: skip

    def encode(shop):
        machine, length = shop
        rest = np.cumsum(length[:, ::-1], axis=1)[:, ::-1].astype(float)
        x = {"jobs": len(machine), "machines": machine.shape[1], "machine": machine.ravel(), "rest": rest.ravel()}
        bound = max(rest[:, 0].max(), np.bincount(machine.ravel(), length.ravel()).max())
        return lols.Example(x | {"time": length.ravel().astype(float), "bound": bound, "mean": length.mean()}, {})

    def actions(x, s, legal):
        at, end = conflict(x, s)
        for j in range(x.jobs):
            if s.done[j] < x.machines and x.machine[j * x.machines + s.done[j]] == at:
                legal[j] = begin(x, s, j) < end

    def step(x, s, a):
        k = a * x.machines + s.done[a]
        s.job[a] = s.machine[x.machine[k]] = begin(x, s, a) + x.time[k]
        s.done[a] += 1

    def survey(x, s, legal):
        choices, last = 0, 0.0  # how many candidates there are, and the least possible end
        for j in range(x.jobs):
            choices += legal[j]
            if s.done[j] < x.machines:
                last = max(last, begin(x, s, j) + x.rest[j * x.machines + s.done[j]])
        for a in range(x.jobs):
            if legal[a] and choices > 1:
                s.wait[a], s.late[a] = begin(x, s, a), others_end(x, s, legal, a)
                s.slack[a] = last - begin(x, s, a) - x.rest[a * x.machines + s.done[a]]
                if x.foresight == 1:
                    s.ends[a] = rule_ends(x, s, a)
        for part in (s.wait, s.late, s.ends):
            lols.above_least(part, legal)

    def action_features(x, s, a, out):
        k, mean = a * x.machines + s.done[a], x.mean
        length, wait, slack, late = x.time[k] / mean, s.wait[a] / mean, s.slack[a] / mean, s.late[a] / mean
        ends, rest = s.ends[a] / mean, x.rest[k] / mean
        left = float(x.machines - s.done[a])
        curves = ((length, 0.25), (wait, 0.25), (slack, 0.5), (late, 0.25), (rest, 1.0), (left, 1.0), (ends, 0.25))
        for n, (value, width) in enumerate(curves):
            emit_curve(out, feature(n), value, width)

    def loss(x, y, s):
        end = 0.0
        for j in range(x.jobs):
            end = max(end, s.job[j])
        return 100.0 * end / x.bound

    def output(x, s):
        return float(s.job.max())

    def reference(x, y, s):
        return dispatch(x, s, MWKR)


def dispatch(x, s, rule):
    """Of the jobs that can begin first on the machine in conflict, the most urgent one."""
    at, _ = conflict(x, s)
    chosen, soon, most = -1, 0.0, 0.0
    for j in range(x.jobs):
        if s.done[j] < x.machines and x.machine[j * x.machines + s.done[j]] == at:
            ready, wanted = begin(x, s, j), urgency(x, rule, j, s.done[j], s.job[j])
            if chosen < 0 or ready < soon or (ready == soon and wanted > most):
                chosen, soon, most = j, ready, wanted
    return chosen


RULES = {
    "SPT": lols.Reference(action=lambda x, y, s: dispatch(x, s, SPT), needs_truth=False),
    "FIFO": lols.Reference(action=lambda x, y, s: dispatch(x, s, FIFO), needs_truth=False),
    "MOR": lols.Reference(action=lambda x, y, s: dispatch(x, s, MOR), needs_truth=False),
    "MWKR": JobShop.teacher,
}


# --- instances --------------------------------------------------------------------------------------------------------

SIZES = ((6, 6), (8, 8), (10, 8), (10, 10))  # to learn from: small ones are quick, and the policy serves large ones


def draw(rng: np.random.Generator, size: tuple[int, int] | None = None) -> Shop:
    """A random instance: operations in any order, times of 1 to 99, as in the instances of Taillard (1993)."""
    jobs, machines = size or SIZES[rng.integers(len(SIZES))]
    order = np.array([rng.permutation(machines) for _ in range(jobs)])
    return order, rng.integers(1, 100, (jobs, machines))


def best_known(path: Path) -> dict[str, tuple[Shop, float]]:
    """The instances of JSPLIB by name, each with its best known end, from its archive or folder."""
    read = _files(path)
    found = {}
    for entry in json.loads(read("instances.json")):
        lines = [line.split() for line in read(f"instances/{entry['name']}").splitlines() if line[:1] not in ("#", "")]
        rows = np.array([[int(cell) for cell in line] for line in lines[1 : 1 + int(lines[0][0])]])
        best = entry["optimum"] or (entry["bounds"] or {}).get("upper")
        if best is not None:
            found[entry["name"]] = ((rows[:, 0::2], rows[:, 1::2]), float(best))
    return found


def _files(path: Path) -> Callable[[str], str]:
    """A function that reads a file of an archive or a folder by its name."""
    if path.is_dir():
        return lambda name: (path / name).read_text()
    with tarfile.open(path) as archive:
        texts = {m.name.removeprefix("./"): archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
        kept = {name: file.read().decode() for name, file in texts.items() if file is not None}
    return kept.__getitem__


def solve(shop: Shop, seconds: float) -> float | None:
    """The end of the best schedule that OR-Tools finds in so many seconds; None if it finds none."""
    from ortools.sat.python import cp_model

    model, horizon = cp_model.CpModel(), int(shop[1].sum())
    on_machine: dict[int, list[Any]] = {}
    end = model.new_int_var(0, horizon, "end")
    for machines, times in zip(*shop, strict=True):
        before = 0
        for machine, length in zip(machines.tolist(), times.tolist(), strict=True):
            begins = model.new_int_var(0, horizon, "")
            model.add(begins >= before)
            on_machine.setdefault(machine, []).append(model.new_fixed_size_interval_var(begins, length, ""))
            before = begins + length
        model.add(end >= before)
    for intervals in on_machine.values():
        model.add_no_overlap(intervals)
    model.minimize(end)
    return solving.cp_sat(model, seconds)


# --- the comparison ---------------------------------------------------------------------------------------------------

Group = list[tuple[Shop, float]]  # instances with their best known end


def families(instances: dict[str, tuple[Shop, float]], which: str) -> dict[str, Group]:
    """The instances whose names begin with `which`, by their size; all by their family if it is "all"."""
    groups: dict[str, Group] = {}
    for name, (shop, best) in sorted(instances.items()):
        if which == "all" or name.startswith(which):
            size = "{}x{}".format(*shop[0].shape)
            groups.setdefault(name.rstrip("0123456789").upper() if which == "all" else size, []).append((shop, best))
    return groups


def above(ends: Sequence[float], group: Group) -> list[float]:
    """By how many percent schedules end later than the best known ones."""
    return [100.0 * (end / best - 1.0) for end, (_, best) in zip(ends, group, strict=True)]


Decide = Callable[[list[Shop]], Sequence[float]]


def print_row(name: str, decide: Decide, groups: dict[str, Group], seconds: float | None = None) -> float:
    """Print how far above the best known ends a way to decide is, and return its seconds for an instance."""
    began = time.perf_counter()
    each = [above(decide([shop for shop, _ in group]), group) for group in groups.values()]
    took = seconds or (time.perf_counter() - began) / sum(len(group) for group in groups.values())
    means = [*(np.nanmean(e) if not np.all(np.isnan(e)) else math.nan for e in each), np.nanmean(np.concatenate(each))]
    unsolved = int(np.isnan(np.concatenate(each)).sum())
    note = f"  without {unsolved} that it did not solve" if unsolved else ""
    print(f"{name:<22}" + "".join(f"{mean:>8.1f}" for mean in means) + f"{1000.0 * took:>10.2f}{note}", flush=True)
    return took


def main(argv: list[str] | None = None) -> None:
    """Learn, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="JSPLIB, an archive or a folder; default: random instances")
    parser.add_argument(
        "--family", default="ta", help="instances of JSPLIB, by the beginning of their names, or all (default ta)"
    )
    parser.add_argument("--rule", choices=RULES, default="MWKR", help="the teacher (default MWKR)")
    parser.add_argument(
        "--foresight", type=int, choices=(0, 1), default=1, help="0 leaves out where the rule would end"
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="time to learn in (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn to learn from (default 0)")
    parser.add_argument("--largest", type=int, default=600, help="the most operations of an instance (default 600)")
    parser.add_argument(
        "--minute", type=int, default=0, help="instances of each group that the solver has a minute for (default 0)"
    )
    parser.add_argument("--together", type=int, default=1, help="instances that are solved at a time (default 1)")
    chosen = parser.parse_args(argv)
    task = JobShop(foresight=chosen.foresight)
    found = lols.optimise(task, draw, RULES[chosen.rule], minutes=chosen.minutes, seed=chosen.seed, best_of=1)
    print(found.report, end="\n\n")
    if chosen.data is None:
        rng = np.random.default_rng([chosen.seed, 1])
        groups = {"{}x{}".format(*size): [(draw(rng, size), 0.0) for _ in range(10)] for size in SIZES}
        groups = {name: [(shop, task.encode(shop).x["bound"]) for shop, _ in group] for name, group in groups.items()}
    else:
        groups = families(best_known(chosen.data), chosen.family)
        groups = {name: [one for one in group if one[0][0].size <= chosen.largest] for name, group in groups.items()}
        groups = {name: group for name, group in groups.items() if group}
    model, every = found.model, [shop for group in groups.values() for shop, _ in group]
    learned = {"learned": model.predict, "best of 64": lambda shops: model.predict(shops, best_of=64)}
    print(f"percent above the {'least possible' if chosen.data is None else 'best known'} end")
    heading = f"{'':<22}" + "".join(f"{name:>8}" for name in (*groups, "all")) + f"{'ms each':>10}"
    print(heading)
    for name, rule in RULES.items():
        model.reference_outputs(every, rule)  # compiles
        print_row(name, lambda shops, rule=rule: model.reference_outputs(shops, rule), groups)
    model.predict(every[:1], best_of=2)
    same = [print_row(name, decide, groups) for name, decide in learned.items()][-1]
    if not solving.INSTALLED:
        return
    first = {name: group[: chosen.minute] for name, group in groups.items()}
    for words, seconds, some in (("the same time", same, groups), ("a minute", solving.MINUTE, first)):
        if any(some.values()):
            solver = partial(solving.solve_all, solve, seconds=seconds, together=chosen.together)
            print_row(f"CP-SAT, {words}", solver, some, seconds)
    if 0 < chosen.minute < max(len(group) for group in groups.values()):
        print(f"\nthe first {chosen.minute} of each, which had a minute:\n{heading}")
        for name, decide in learned.items():
            print_row(name, decide, first)


if __name__ == "__main__":
    main()
