"""The examples of operations research: tasks are short, keep the contract and beat their rules; solvers are right."""

from __future__ import annotations

import importlib.util
import itertools
import json
import tarfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bin_packing as packing
import graph_colouring as colouring
import job_shop
import numpy as np
import pytest
import tardiness
import tsp_insertion
import vrp
from helpers import solving

import lols
from benchmarks import heuristics
from lols.contract.checks import check_space
from lols.plots.plans import plans_figure
from tests.examples.example_checks import lines_of_code, source_of

MOST_LINES = 60
SMALL: dict[str, Any] = {
    "tardiness": (tardiness, tardiness.Tardiness, partial(tardiness.draw, jobs=7)),
    "packing": (packing, packing.Packing, partial(packing.draw, items=25)),
    "vehicles": (vrp, vrp.Vehicles, partial(vrp.draw, customers=10)),
    "colouring": (colouring, colouring.Colouring, partial(colouring.draw, vertices=10)),
    "job_shop": (job_shop, job_shop.JobShop, partial(job_shop.draw, size=(5, 4))),
    "salesman": (tsp_insertion, tsp_insertion.Trip, partial(tsp_insertion.draw, cities=9)),
}


def small(name: str, count: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [SMALL[name][2](rng) for _ in range(count)]


@pytest.mark.parametrize("name", SMALL)
def test_the_task_is_short_and_keeps_the_contract(name: str) -> None:
    module, task, _ = SMALL[name]
    assert lines_of_code(source_of(module.__name__, task.__name__)) < MOST_LINES
    for rule in module.RULES.values():
        if isinstance(rule, lols.Reference):
            assert check_space(task, small(name, 2, seed=1), rule, rollouts=8, seconds=0.5) == []


@pytest.mark.parametrize("name", SMALL)
def test_it_beats_a_rule(name: str) -> None:
    problem, (_, task, _) = heuristics.PROBLEMS[name], SMALL[name]
    rule = problem.rules[problem.bad]
    learner = heuristics.LEARNER
    train, test = small(name, 12, seed=1), small(name, 40, seed=2)
    model = lols.train(task, train, rule, algorithm="aggrevate", learner=learner, passes=2, seed=1, compiled=False)
    assert model.losses(test).mean() < model.reference_losses(test, rule).mean()


@pytest.mark.parametrize("name", [name for name, (module, *_) in SMALL.items() if hasattr(module, "show")])
def test_a_plan_is_drawn(name: str) -> None:
    module, task, _ = SMALL[name]
    [instance] = small(name, 1, seed=1)
    model = lols.train(task, [instance] * 2, passes=1, compiled=False)
    figure = plans_figure(module.show, [(instance, model.predict_one(instance))], ["learned"])
    [axes] = figure.axes
    assert len(axes.patches) + len(axes.lines) >= 2


def test_tardiness_counts_what_is_late() -> None:
    for jobs in small("tardiness", 4, seed=3):
        orders = np.array(list(itertools.permutations(range(5))))
        few = tuple(column[:5] for column in jobs)
        least = tardiness.losses(few, orders).min()
        assert tardiness.descend(few, 0.05) == pytest.approx(least)
        model = lols.train(tardiness.Tardiness, [jobs] * 2, passes=1, compiled=False)
        [order] = model.reference_outputs([jobs])
        assert order == tardiness.rule_order(jobs)
        assert model.reference_losses([jobs])[0] == pytest.approx(tardiness.losses(jobs, np.array([order]))[0])


def test_packing_fills_no_bin_too_full() -> None:
    size, items = packing.draw(np.random.default_rng(4), items=40)
    model = lols.train(packing.Packing, [(size, items)] * 2, passes=1, compiled=False)
    [chosen] = model.predict([(size, items)])
    gaps: list[int] = []
    for item, gap in zip(items.tolist(), chosen):
        if gap < size:
            gaps.remove(gap)
        gaps.append(gap - item)
    assert min(gaps) >= 0
    assert model.losses([(size, items)])[0] == pytest.approx(100.0 * len(gaps) * size / items.sum())
    assert packing.all_known((size, items)) <= packing.first_fit((size, items))


def test_a_schedule_has_one_job_at_a_time() -> None:
    shop = job_shop.draw(np.random.default_rng(4), (4, 3))
    model = lols.train(job_shop.JobShop, [shop] * 2, passes=1, compiled=False)
    jobs = model.run(lols.Examples(job_shop.JobShop, [shop])).actions(0)
    done, free, busy = np.zeros(4, int), np.zeros(4), np.zeros(3)
    for job in jobs:
        machine, length = (part[job, done[job]] for part in shop)
        free[job] = busy[machine] = max(free[job], busy[machine]) + length
        done[job] += 1
    assert (done == 3).all() and model.predict([shop]) == [free.max()]
    longest_job = shop[1].sum(axis=1).max()
    least = job_shop.solve(shop, 5.0) if importlib.util.find_spec("ortools") else longest_job
    assert least is not None and longest_job <= least <= model.predict([shop], best_of=16)[0] <= free.max()


def test_operations_that_take_no_time_are_done_too() -> None:
    machine, length = job_shop.draw(np.random.default_rng(4), (4, 3))
    length[:, 1] = 0
    model = lols.train(job_shop.JobShop, [(machine, length)] * 2, passes=1, compiled=False)
    examples = lols.Examples(job_shop.JobShop, [(machine, length)])
    assert len(model.run(examples).actions(0)) == 12
    assert model.predict([(machine, length)], best_of=16)[0] >= length.sum(axis=1).max()


def test_foresight_is_where_the_rule_ends() -> None:
    for seed in range(5):
        machine, length = job_shop.draw(np.random.default_rng(seed), (4, 3))
        rest = np.cumsum(length[:, ::-1], axis=1)[:, ::-1].astype(float)
        x = SimpleNamespace(jobs=4, machines=3, machine=machine.ravel(), time=length.ravel(), rest=rest.ravel())
        for first in range(4):
            s = SimpleNamespace(done=np.zeros(4, int), job=np.zeros(4), machine=np.zeros(3))
            s.next, s.soon, s.free = np.zeros(4, int), np.zeros(4), np.zeros(3)
            found, a = job_shop.rule_ends(x, s, first), first
            for _ in range(12):  # the same, job by job
                k = 3 * a + s.done[a]
                s.job[a] = s.machine[x.machine[k]] = job_shop.begin(x, s, a) + x.time[k]
                s.done[a] += 1
                open_ = [j for j in range(4) if s.done[j] < 3]
                a = min(open_, key=lambda j: (job_shop.begin(x, s, j), -rest[j, s.done[j]]), default=-1)
            assert found == s.job.max()


def test_families_of_instances() -> None:
    shop = job_shop.draw(np.random.default_rng(0), (4, 3))
    known = {"ft06": (shop, 1.0), "ft10": (shop, 2.0), "ta01": (shop, 3.0)}
    assert job_shop.families(known, "ft") == {"4x3": [(shop, 1.0), (shop, 2.0)]}
    assert {name: len(group) for name, group in job_shop.families(known, "all").items()} == {"FT": 2, "TA": 1}


def test_instances_of_the_literature_are_read(tmp_path: Path) -> None:
    (tmp_path / "instances").mkdir()
    (tmp_path / "instances" / "tiny").write_text("# two jobs\n2 2\n0 3 1 2\n1 4 0 1\n", "utf-8")
    entries = [{"name": "tiny", "optimum": None, "bounds": {"upper": 7, "lower": 6}}]
    (tmp_path / "instances.json").write_text(json.dumps(entries), "utf-8")
    archive = tmp_path / "all.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name in ("instances.json", "instances/tiny"):
            packed.add(tmp_path / name, name)
    for place in (tmp_path, archive):
        (shop, best) = job_shop.best_known(place)["tiny"]
        assert best == 7.0 and shop[0].tolist() == [[0, 1], [1, 0]] and shop[1].tolist() == [[3, 2], [4, 1]]


def test_a_trip_is_as_long_as_it_says() -> None:
    for places in small("salesman", 3, seed=3):
        model = lols.train(tsp_insertion.Trip, [places] * 2, passes=1, compiled=False)
        for rule in tsp_insertion.RULES.values():
            [trip] = model.reference_outputs([places], rule)
            assert sorted(trip) == list(range(9))
            assert model.reference_losses([places], rule)[0] == pytest.approx(tsp_insertion.lengths(places, trip))
        [best] = model.losses([places], best_of=32)
        if importlib.util.find_spec("elkai"):
            assert tsp_insertion.optimum(places) <= best + 1e-9


def test_routes_serve_everybody_once_within_the_capacity() -> None:
    [delivery] = small("vehicles", 1, seed=5)
    capacity, order, _ = delivery
    model = lols.train(vrp.Vehicles, [delivery] * 2, passes=1, compiled=False)
    [visits] = model.predict([delivery])
    assert sorted(c for c in visits if c > 0) == list(range(1, 11)) and visits[-1] == 0
    routes = [list(route) for customers, route in itertools.groupby(visits, bool) if customers]
    assert max(order[route].sum() for route in routes) <= capacity


def test_neighbours_have_different_colours() -> None:
    [joined] = small("colouring", 1, seed=6)
    model = lols.train(colouring.Colouring, [joined] * 2, passes=1, compiled=False)
    [colours] = model.predict([joined])
    assert all(colours[v] != colours[u] for v, u in zip(*np.nonzero(joined)))
    assert model.losses([joined])[0] == max(colours) + 1
    classes = colouring.greedy_classes(joined)
    assert sorted(itertools.chain(*classes)) == list(range(10))


@pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="OR-Tools is not installed")
def test_solvers_find_what_is_possible() -> None:
    for jobs in small("tardiness", 2, seed=7):
        assert tardiness.solve(jobs, 2.0) == pytest.approx(tardiness.descend(jobs, 0.1))
    joined = 1 - np.eye(4, dtype=np.int8)
    assert colouring.solve(joined, 2.0) == 4.0
    items = 10, np.array([6, 4, 3, 3, 2, 2])  # 6 + 4, 3 + 3 + 2 + 2
    assert packing.solve(items, 2.0) == pytest.approx(100.0) and packing.all_known(items) == pytest.approx(100.0)
    gap = 10, np.array([5, 4, 4, 3, 2, 2])  # best fit decreasing ends with 5 + 4, 4 + 3 + 2, 2
    assert packing.solve(gap, 2.0) == pytest.approx(100.0) and packing.all_known(gap) == pytest.approx(150.0)
    assert packing.solve((10, np.array([6, 6, 3])), 2.0) == pytest.approx(100.0 * 2 / 1.5)
    [delivery] = small("vehicles", 1, seed=8)
    model = lols.train(vrp.Vehicles, [delivery] * 2, passes=1, compiled=False)
    assert (vrp.solve(delivery, 0.2) or 0.0) <= model.losses([delivery])[0] + 1e-5


@pytest.mark.parametrize("installed", [True, False])
def test_the_table(installed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def learned(task: Any, draw: Any, rule: Any, **_options: Any) -> Any:
        model = lols.train(task, small("tardiness", 4, seed=1), rule, passes=1, compiled=False)
        return SimpleNamespace(
            model=model, report=SimpleNamespace(seconds=1.0, chosen="one way", kept_heuristic=not installed)
        )

    monkeypatch.setattr(solving.lols, "optimise", learned)
    monkeypatch.setattr(solving, "BEST_OF", 2)
    monkeypatch.setattr(solving, "INSTALLED", installed)
    monkeypatch.setattr(solving, "MINUTE", 0.06)
    asked = itertools.count()
    monkeypatch.setattr(tardiness, "solve", lambda _, seconds: None if seconds < 0.05 or next(asked) == 0 else 0.0)
    tardiness.main(["--jobs=4", "--tests=3", "--long=0.05", "--minute=2"])
    printed = capsys.readouterr().out
    assert "apparent tardiness cost" in printed and "learned, best of 2" in printed
    assert ("local search, 0.05 s" in printed) == ("CP-SAT, the same time" in printed) == installed
    assert ("CP-SAT, a minute" in printed) == ("The first 2 of them:" in printed) == installed
    assert ("on the 2 instances that it solved" in printed) == installed
    assert ("rows of the solver are left out" in printed) != installed
    assert ("predictions are the rule's" in printed) != installed


def test_the_study_names_what_is_level(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    losses = rng.random(50)
    learned = {"reference": losses + 1.0, "β = 0.5": losses + rng.normal(0.0, 0.1, 50), "auto": losses}
    result = heuristics.Result(losses + 2.0, learned)
    assert result.level("auto") and result.level("β = 0.5") and not result.level("reference")
    assert heuristics.cell(result, "auto").startswith("**") and "(+1.0" in heuristics.cell(result, "reference")
    assert "**" not in heuristics.cell(result, "reference")
    monkeypatch.setattr(heuristics, "study", lambda *_arguments: result)
    heuristics.main(["--only", "packing"])
    assert "best fit" in capsys.readouterr().out
