"""`lols.optimise` for programs: what it keeps, files and pickles, interruptions, going on, and its time."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, SpaceError
from lols.heuristics.budget import Watch
from lols.heuristics.optimise import Optimised
from lols.heuristics.report import CLAIRVOYANT
from lols.heuristics.strategies import ladder
from tests.heuristics.paying import CRASHING, PAYING, SAME, SLOW, STUMBLING, draw
from tests.programs.courier_worlds import days, program

AMOUNTS = list(range(1, 100))


@pytest.fixture(scope="module")
def found() -> Optimised:
    return lols.optimise(PAYING, AMOUNTS, minutes=0.02, best_of=4)


def test_a_program_overtakes_its_rule(found: Optimised, processor_time: None) -> None:
    better = lols.optimise(PAYING, draw, minutes=0.06, best_of=4)
    heuristic, learned, best = better.report.rows
    assert learned.mean < heuristic.mean and best.mean <= learned.mean
    assert np.mean([len(paid) for paid in better.predict(AMOUNTS)]) < better.model.reference_losses(AMOUNTS).mean()
    assert better.reference is None and better.report.held_out > 50 and found.report.held_out == 19
    assert better.predict([14], improve=lambda amount, paid: (amount, paid)) == [(14, (7, 7))]


def test_files_and_pickles_predict_the_same(found: Optimised, tmp_path) -> None:
    found.save(tmp_path / "m.lols")
    for again in (lols.load(tmp_path / "m.lols", PAYING), pickle.loads(pickle.dumps(found))):
        assert again.predict(AMOUNTS, best_of=3) == found.predict(AMOUNTS, best_of=3)
        assert again.predict(AMOUNTS) == found.predict(AMOUNTS)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_the_best_of_samples_is_said_to_be_chosen_after_the_fact(found: Optimised) -> None:
    sentence = CLAIRVOYANT.format(4)
    assert "by the true loss" in sentence and sentence in " ".join(str(found).split())
    assert [row["note"] for row in found.report.as_dict()["rows"]] == ["", "", sentence]


def test_a_kept_rule_decides_after_files_and_pickles(tmp_path) -> None:
    found = lols.optimise(SAME, AMOUNTS, minutes=0.005, best_of=2)
    assert found.report.kept_heuristic and found.model.kept_reference
    found.save(tmp_path / "m.lols")
    again = lols.load(tmp_path / "m.lols", SAME)
    assert again.kept_reference and again.about["optimised"]["kept_heuristic"]
    assert again.losses(AMOUNTS).tolist() == found.model.reference_losses(AMOUNTS).tolist()
    assert pickle.loads(pickle.dumps(found)).model.kept_reference


def test_a_picture_says_what_decided(found: Optimised, monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []
    monkeypatch.setattr("lols.heuristics.optimise.side_by_side", lambda draw, pairs, names, path: titles.extend(names))
    kept = copy.copy(found.model)
    kept.kept_reference = True
    for model in (found.model, kept):
        for search in ({}, {"best_of": 4}):
            Optimised(model, None, found.report).picture(14, lambda *plan: None, "plans.svg", **search)
    names = [title.partition(":")[0] for title in titles]
    assert names[::2] == ["heuristic"] * 4 and names[5::2] == [
        "heuristic, which was kept",
        "heuristic, or best of 4 if better",
    ]
    assert all("heuristic" not in name for name in names[1:4:2]) or found.report.kept_heuristic


def test_what_was_interrupted_is_the_best_so_far_and_can_be_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def advance(self: Watch, done: int, *, loss: float) -> None:
        seen.append(done)
        if len(seen) == 400:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Watch, "advance", advance)
        first = lols.optimise(PAYING, AMOUNTS, minutes=1.0, best_of=2)
    assert first.report.interrupted and "interrupted after" in str(first) and first.report.seconds < 30.0
    assert not first.report.kept_heuristic and len(first.report.rows) >= 2
    spent, chosen = first.model.about["optimised"]["seconds"], first.report.chosen
    for resume in (first, first.model):
        second = lols.optimise(PAYING, AMOUNTS, minutes=0.01, best_of=1, resume=resume)
        assert second.report.earlier == spent and "went on from a policy" in str(second)
        assert {attempt.name for attempt in second.report.attempts} == {chosen} == {second.report.chosen}
        assert second.report.rows[1].mean <= first.report.rows[1].mean + 1.0
        assert second.model.about["optimised"]["seconds"] >= spent
    with pytest.raises(ConfigurationError, match="resume began with seed 0: give the same"):
        lols.optimise(PAYING, AMOUNTS, resume=first, seed=1)
    with pytest.raises(ConfigurationError, match="resume was trained with other labels"):
        lols.optimise(SAME, AMOUNTS, resume=first)
    trained = lols.train(PAYING, AMOUNTS[:9], passes=1, progress=False)
    with pytest.raises(ConfigurationError, match=r"resume is a model that lols\.optimise has not made"):
        lols.optimise(PAYING, AMOUNTS, resume=trained)


def test_interrupted_before_anything_was_learned_the_rule_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: Watch, done: int, *, loss: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Watch, "advance", advance)
        found = lols.optimise(PAYING, draw, minutes=1.0, best_of=2)
    assert found.report.interrupted and found.report.kept_heuristic and found.report.chosen == ""
    assert "No policy was learned" in str(found) and len(found.report.rows) == 1
    assert found.predict([14]) == [(10, 1, 1, 1, 1)] and str(found.report.as_dict())
    again = lols.optimise(PAYING, draw, minutes=0.01, best_of=1, resume=found)
    assert len(again.report.attempts) >= 6  # all strategies are tried, because none was


def test_slow_instances_are_looked_at_in_part_or_not_at_all_within_the_time() -> None:
    for minutes, best_of in ((0.02, 64), (0.001, 1)):
        found = lols.optimise(SLOW, draw, minutes=minutes, best_of=best_of)
        assert found.report.seconds < 15.0 and found.report.notes
        assert " ".join(found.report.notes) in " ".join(str(found).split())
    assert ladder(None, 100, 3)[0] == (1, 2)


@pytest.mark.parametrize("program", [STUMBLING, CRASHING])
def test_an_instance_that_fails_can_be_drawn_again(program: Any) -> None:
    with pytest.raises((SpaceError, ZeroDivisionError)) as failed:
        lols.optimise(program, draw, minutes=0.01, best_of=1)
    text = "\n".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert "example" in text and "gives this instance again" in text
    seed = int(text.rpartition("default_rng(")[2].partition(")")[0])
    assert draw(np.random.default_rng(seed)) % 10 == 3


def test_an_instance_of_a_list_that_fails_is_named_by_its_place() -> None:
    amounts = [*range(10, 13), *range(20, 23), 43, *range(50, 53), *range(60, 63)]
    with pytest.raises(SpaceError, match="example 6"):
        lols.optimise(STUMBLING, amounts, minutes=0.01, best_of=1)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((PAYING, 42), {}, "the instances are 42: give a list of them, or a function"),
        ((PAYING, "pay"), {}, "the instances are 'pay': give a list"),
        ((PAYING, draw, lols.Reference(action=lambda x, y, s: 0)), {}, "a program gives its reference at each call"),
        ((PAYING, draw), {"threads": 2}, "threads has no effect: a program is plain Python"),
        ((PAYING, draw), {"best_of": "64"}, "best_of is '64'; it must be a whole number"),
        ((PAYING, draw), {"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ((PAYING, draw), {"resume": 3}, "resume is of type int"),
    ],
)
def test_mistakes(arguments: Any, options: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        lols.optimise(*arguments, **options)


def test_a_program_that_chooses_overtakes_its_rule(processor_time: None) -> None:
    found = lols.optimise(program(), days(150, orders=12), minutes=0.05, best_of=4)
    heuristic, learned, best = found.report.rows
    assert learned.mean < heuristic.mean and best.mean <= learned.mean
    assert found.predict(days(3, seed=5, couriers=6)) == found.model.predict(days(3, seed=5, couriers=6))
