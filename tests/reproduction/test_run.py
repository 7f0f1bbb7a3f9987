"""What `lols reproduce` runs and keeps: results in any order, taken up again, in processes."""

from __future__ import annotations

import json

import pytest

from lols.engines import InProcess, Processes
from lols.reproduction import run
from lols.reproduction.data import DataPlace
from lols.reproduction.parts import POLICIES
from lols.reproduction.plan import TABLES, Work, cells_of
from lols.reproduction.run import run_work


def test_other_results_are_taken_up_again_unless_they_have_other_seeds(tmp_path):
    place = DataPlace(TABLES["table4"], "", "", "upos", "0")
    file, found = tmp_path / "kept.json", {"seeds": [0, 1]}

    def state(part, seeds, places=()):
        return run._State(part, places, False, seeds, None, "lols reproduce all", file)

    first = state("all", 2, [place])
    others = [work for work in first.work if "|" not in work.name]
    assert len(others) == 1 + 1 + 3 + 3  # the story, the theory, the bandit, certificates
    for work in reversed(others):  # results come in any order, and are shown in that of the work
        first.keep(work, found)
    first.write()
    kept = json.loads(file.read_text())
    assert list(kept["certificates"]) == list(POLICIES) and list(kept["bandit"]["worlds"]) == ["layout", "tagging"]
    same, more, other = state("all", 2, [place]), state("all", 3, [place]), state("theory", 3)
    for later in (same, more, other):
        later.load()
    assert same.result()["bandit"] == other.result()["bandit"] == kept["bandit"]
    assert {work.name for work in others} - set(more.done) == {"bandit layout", "bandit tagging"}
    assert other.result()["certificates"] == kept["certificates"] and other.done["theory"] == found


@pytest.mark.slow
def test_other_work_runs_in_processes_too():
    made = {engine: {} for engine in (InProcess(), Processes(workers=2))}
    for engine, found in made.items():
        items = [Work(f"square {k}", abs, (-k,)) for k in range(3)]
        running: list[list[str]] = []
        run_work(items, engine, lambda one, value, found=found: found.update({one.name: value}), running.append)
        assert running and all(len(names) <= engine.count for names in running)
    assert list(made.values()) == [{"square 0": 0, "square 1": 1, "square 2": 2}] * 2


def test_time_left_is_guessed_before_and_measured_during(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(run.time, "perf_counter", lambda: now[0])
    work = [Work(str(k), print, kernel=("parsing", "bad"), seconds=5.0) for k in range(9)]
    clock = run._Clock(work, workers=2)
    assert clock.left({}) == pytest.approx((9 * 5.0 + run.COMPILING) / 2)
    now[0] += 100.0  # for 25 of 60 seconds of work: the rest will take 140, and the guess was 17.5
    assert 100.0 < clock.left(dict.fromkeys("01", None)) < 140.0
    assert clock.left(dict.fromkeys("012345678", None)) == pytest.approx(0.0)


def test_three_seeds_where_they_fit_the_time():
    def seeds(table, **options):
        place = DataPlace(TABLES[table], "", "", "xpos", "0")
        return run._State(table, [place], options.get("quick", False), options.get("seeds"), None, "", None)

    assert seeds("table3").seeds == 3
    whole = TABLES["table4-ptb"]._replace(passes=50)
    long = run._State("table4", [DataPlace(whole, "", "", "xpos", "0")], False, None, None, "", None)
    assert long.seeds == 1 and all(work.name.endswith("|0") for work in long.work if "|" in work.name)
    assert seeds("table3", quick=True).seeds == 2 and seeds("table3", seeds=7).seeds == 7


def test_only_some_rows():
    spec = TABLES["table3"].only(["learned/mixture", "beta=0.25"])
    assert spec.rows == ("learned/mixture",) and spec.betas == (0.25, 0.5) and not spec.coins
    assert {cell.row for cell in cells_of(spec, 1)} == {"learned/mixture", "beta=0.25"}
