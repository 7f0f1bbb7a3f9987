"""What `lols reproduce` runs and keeps: results in any order, taken up again, in processes."""

from __future__ import annotations

import json

import pytest

from lols.reproduction import run
from lols.reproduction.certify_part import POLICIES
from lols.reproduction.data import DataPlace
from lols.reproduction.plan import TABLES
from lols.reproduction.runner import Work, run_work


def test_other_results_are_taken_up_again_unless_they_have_other_seeds(tmp_path):
    place = DataPlace(TABLES["table4"], "", "", "upos", "0")
    file, found = tmp_path / "kept.json", {"seeds": [0, 1]}

    def state(part, seeds, places=()):
        return run._State(part, places, False, seeds, None, "lols reproduce all", file)

    first = state("all", 2, [place])
    others = [work for work in first.work if "|" not in work.name]
    assert len(others) == 1 + 3 + 3  # the theory, the bandit, certificates
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
    made = {jobs: {} for jobs in (1, 2)}
    for jobs, found in made.items():
        items = [Work(f"square {k}", abs, (-k,)) for k in range(3)]
        running: list[list[str]] = []
        run_work(
            items, jobs=jobs, keep=lambda one, value, found=found: found.update({one.name: value}), watch=running.append
        )
        assert running and all(len(names) <= jobs for names in running)
    assert made[1] == made[2] == {"square 0": 0, "square 1": 1, "square 2": 2}
