"""`lols.optimise`: better than the heuristic, or the heuristic."""

from __future__ import annotations

import math
import pickle
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lols
from lols import emit, feature
from lols.errors import ConfigurationError, ModelFileError, SpaceError
from lols.heuristics.budget import TimeBudget
from lols.heuristics.optimise import Optimised
from lols.heuristics.report import Comparison, OptimisationReport
from lols.io.model_file import read_tensors
from lols.tasks.registry import read_model
from tests.heuristics.small_shop import Shop, draw, shops


@pytest.fixture(scope="module")
def compiled() -> None:
    lols.optimise(Shop, draw, minutes=0.001, best_of=2, threads=1)


def test_a_policy_that_is_better_than_its_heuristic(compiled: None, processor_time: None) -> None:
    found = lols.optimise(Shop, draw, minutes=0.05, best_of=16, threads=1)
    heuristic, learned, best = found.report.rows
    assert heuristic.change == 0.0 and learned.high < 0.0 and best.mean <= learned.mean
    assert not found.report.kept_heuristic and found.report.held_out == 200
    data = shops(20, seed=9)
    assert found.predict(data) == found.model.predict(data)
    assert np.mean(found.predict(data, best_of=16)) < np.mean(found.model.reference_outputs(data))
    text = str(found)
    assert (
        "learned, best of 16" in text and f"chosen: {found.report.chosen}" in text and len(found.report.attempts) >= 9
    )


def test_instances_in_a_list_are_divided(tmp_path) -> None:
    found = lols.optimise(Shop, shops(40), minutes=0.01, best_of=1, threads=1, sample_steps=3)
    assert found.report.held_out == 8 and len(found.report.rows) == 2
    assert found.model.about["algorithm"]["sample_steps"] == 3
    found.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols", Shop).predict(shops(3)) == found.model.predict(shops(3))


def test_a_picture_of_one_instance_before_and_after(tmp_path) -> None:
    found = lols.optimise(Shop, shops(40), minutes=0.01, best_of=1, threads=1)
    seen: list[tuple[float, float]] = []

    def draw_length(axes: Any, instance: Any, output: float) -> None:
        seen.append((float(instance[1].sum()), output))
        axes.barh([0], [output])

    shop = shops(1, seed=3)[0]
    found.picture(shop, draw_length, tmp_path / "plans.svg", best_of=4)
    assert seen == [
        (shop[1].sum(), found.model.reference_outputs([shop])[0]),
        (shop[1].sum(), found.predict([shop], best_of=4)[0]),
    ]
    assert (tmp_path / "plans.svg").read_text("utf-8").startswith("<?xml")
    with pytest.raises(ConfigurationError, match="a drawing is"):
        found.picture(shop, draw_length, tmp_path / "plans.txt")


def on_one_machine(count: int, seed: int = 0) -> list[Any]:
    """Instances in which any order takes the same time, so that nothing is better than the heuristic."""
    return [(np.zeros_like(machine), time) for machine, time in shops(count, seed)]


def test_the_heuristic_is_kept_if_nothing_is_better() -> None:
    found = lols.optimise(Shop, on_one_machine(40), minutes=0.01, best_of=1, threads=1)
    assert found.report.kept_heuristic and "predictions are the heuristic's" in str(found)
    data = on_one_machine(5, seed=3)
    assert found.predict(data) == found.model.reference_outputs(data)
    assert found.predict(data, improve=lambda shop, length: -length) == [-length for length in found.predict(data)]
    assert "decides by its reference" in repr(found.model)
    assert found.model.about["optimised"]["kept_heuristic"]


class ByNothing(Shop):
    """With features that say nothing of the jobs, a policy takes the first one."""

    def action_features(x, s, a, out):
        emit(out, feature(0), 1.0)


class WithoutRule(Shop):
    reference = None


def shortest(x, y, s):
    """The job with the shortest next operation."""
    chosen = -1
    for j in range(x.jobs):
        if s.done[j] < x.machines and (
            chosen < 0 or x.time[j * x.machines + s.done[j]] < x.time[chosen * x.machines + s.done[chosen]]
        ):
            chosen = j
    return chosen


def test_a_kept_heuristic_decides_after_files_and_pickles(tmp_path) -> None:
    path, data = tmp_path / "m.lols", shops(20, seed=9)
    found = lols.optimise(ByNothing, shops(40), minutes=0.01, best_of=1, threads=1)
    assert found.report.kept_heuristic
    rejected = found.model.replaced(kept_reference=None)
    heuristic, policy = found.model.reference_losses(data), rejected.losses(data)
    assert policy.mean() > heuristic.mean()
    found.save(path)
    for model in (found.model, lols.load(path, ByNothing), pickle.loads(pickle.dumps(found)).model):
        assert model.losses(data).tolist() == heuristic.tolist()
        assert model.predict(data) == found.predict(data) == found.model.reference_outputs(data)
        best = np.minimum(heuristic, rejected.losses(data, best_of=4))
        assert model.losses(data, best_of=4).tolist() == best.tolist()
        assert model.losses(data, beam=3).tolist() == np.minimum(heuristic, rejected.losses(data, beam=3)).tolist()
        assert "space_changed" not in model.about
    with pytest.raises(ModelFileError, match=r"decides by the reference .* because no policy was better") as failed:
        lols.load(path, WithoutRule)
    assert "\n" not in str(failed.value)
    facts = read_model(path).inspect().as_dict()
    assert facts["decides_by"] and "margin" in facts["optimised"]["strategy"]


def test_a_kept_heuristic_that_is_not_the_tasks_own_is_asked_for(tmp_path) -> None:
    path, data, given = tmp_path / "m.lols", shops(20, seed=9), lols.Reference(action=shortest)
    found = lols.optimise(ByNothing, shops(40), given, minutes=0.01, best_of=1, threads=1)
    assert found.report.kept_heuristic
    found.save(path)
    with pytest.raises(ModelFileError, match=r"was given: give it to lols\.load\(path, task, reference=\.\.\.\)"):
        lols.load(path, ByNothing)
    again = lols.load(path, ByNothing, reference=given)
    assert again.predict(data) == found.predict(data) == pickle.loads(pickle.dumps(found)).predict(data)


def test_earlier_versions_refuse_files_in_which_the_reference_decides(tmp_path) -> None:
    model = lols.train(Shop, shops(2), passes=1, compiled=False, progress=False)
    for kept, number in ((None, 2), (Shop.teacher, 3)):
        model.replaced(kept_reference=kept).save(tmp_path / "m.lols")
        assert read_tensors(tmp_path / "m.lols", "model")[0]["format"] == number


def test_compiling_is_not_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = [0.0]
    monkeypatch.setattr("lols.heuristics.budget.compile_seconds", lambda: compiled[0])
    monkeypatch.setattr("lols.heuristics.budget.time", SimpleNamespace(perf_counter=lambda: 10.0 + compiled[0]))
    budget = TimeBudget(6.0)
    compiled[0] += 30.0
    assert (budget.spent(), budget.left(), budget.total(), budget.compiling()) == (0.0, 6.0, 30.0, 30.0)


def test_a_drawn_instance_that_fails_can_be_drawn_again() -> None:
    with pytest.raises(SpaceError, match=r"`loss` gives NaN or infinity.*gives this instance again") as failed:
        lols.optimise(Endless, draw, minutes=0.01, threads=1)
    seed = int(str(failed.value).rpartition("default_rng(")[2].partition(")")[0])
    assert draw(np.random.default_rng(seed))[0].shape == (5, 3)


def test_samples_of_a_policy_that_is_not_better_do_not_replace_better_plans_of_the_heuristic() -> None:
    report = OptimisationReport((), "x", 2, (), 1.0, kept_heuristic=True)
    learned = lols.train(Shop, shops(2), passes=1, compiled=False, progress=False)
    found = Optimised(learned.replaced(kept_reference=Shop.teacher), Shop.teacher, report)
    data = shops(30, seed=4)
    sampled, heuristic = learned.predict(data, best_of=2), learned.reference_outputs(data)
    assert np.any(np.array(sampled) < heuristic) and np.any(np.array(sampled) > heuristic)
    assert found.predict(data, best_of=2) == np.minimum(sampled, heuristic).tolist()
    assert found.predict(data) == heuristic and found.predict([], best_of=2) == []


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((Shop, []), {}, "there are 0 instances: give at least 10"),
        ((Shop, draw), {"minutes": 0.0}, "minutes is 0.0; it must be a positive number"),
        ((Shop, draw), {"minutes": "2"}, "minutes is '2'; it must be a positive number"),
        ((Shop, draw), {"best_of": 0}, "best_of is 0; it must be at least 1"),
        ((Shop, draw), {"seed": -1}, "seed is -1; it must be at least 0"),
        ((Shop, draw), {"threads": 0}, "threads is 0; it must be at least 1"),
        ((Shop, draw), {"sample_steps": 0}, "sample_steps is 0; it must be at least 1"),
        (
            (Shop, lambda: draw(None)),
            {},
            "draws an instance fails with TypeError: .*it is given a numpy.random.Generator",
        ),
    ],
)
def test_mistakes(arguments: Any, options: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        lols.optimise(*arguments, **options)


class NothingToDo(Shop):
    def actions(x, s, legal):
        for j in range(x.jobs):
            legal[j] = s.done[j] < x.machines and x.scale < 0.0


class Coin(Shop):
    def reference(x, y, s):
        j = np.random.randint(x.jobs)
        while s.done[j] == x.machines:
            j = np.random.randint(x.jobs)
        return j


class Saved(Shop):
    def loss(x, y, s):
        return -s.job[0]


class Endless(Shop):
    def loss(x, y, s):
        return math.inf


class FewJobs(Shop):
    sizes = lols.Sizes(
        state=lols.State(done="jobs", job=lols.reals("jobs"), machine=lols.reals("machines")),
        steps=15,
        actions=5,
        features=0,
        action_features=4,
    )


@pytest.mark.parametrize(
    ("task", "jobs", "says"),
    [
        (NothingToDo, 5, ", step 0: `actions` allows nothing at the start state: leave such examples out"),
        (Coin, 5, "gives another answer when asked again with the same arguments: draw by lols.uniform(rng), from the"),
        (Saved, 5, "example 0: `loss` is negative: add a constant, so that the best result costs 0"),
        (Endless, 5, "example 0: `loss` gives NaN or infinity: a dead end, or a mistake in it"),
        (FewJobs, 6, "`actions`, example 0, step 0: uses index 5 of legal, which has 5 entries: actions are numbered"),
    ],
)
def test_instances_and_heuristics_that_do_not_work_are_one_line(task: Any, jobs: int, says: str) -> None:
    with pytest.raises(SpaceError, match=re.escape(says)) as failed:
        lols.optimise(task, shops(20, jobs=jobs), minutes=0.01, threads=1)
    assert "\n" not in str(failed.value)


def test_a_list_with_one_bad_instance_is_told_its_number() -> None:
    class LateTrouble(Shop):
        def loss(x, y, s):
            return math.inf if x.jobs > 4 else 1.0

    with pytest.raises(SpaceError, match="example 23: `loss` gives NaN or infinity"):
        lols.optimise(LateTrouble, [*shops(23, jobs=4), *shops(1, jobs=5), *shops(9, jobs=4)], minutes=0.01, threads=1)


def test_the_time_is_kept_and_progress_says_what_was_reached(capsys: pytest.CaptureFixture[str]) -> None:
    lols.optimise(Shop, draw, minutes=0.01, best_of=16, threads=1)  # compiles
    found = lols.optimise(Shop, draw, minutes=0.05, best_of=16, threads=1, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert found.report.seconds < 2 * 3.0  # the machine may be busy
    assert "s  the heuristic: " in lines[0]
    assert any("reference roll-outs, margin='cost': " in line for line in lines)


def test_an_interval_that_contains_nothing_is_pointed_out() -> None:
    rows = tuple(Comparison.of(name, np.array(each), np.array([2.0, 2.0])) for name, each in
                 (("heuristic", [2.0, 2.0]), ("learned", [0.0, 3.0])))  # fmt: skip
    report = OptimisationReport((), "x", 2, rows, 1.0, kept_heuristic=False)
    assert report.verdict.startswith("The policy may be better than the heuristic: mean loss 1.5, not 2, on 2 held")
    assert "The interval contains 0" in " ".join(str(report).split())
    assert "contains 0" not in str(report._replace(rows=(rows[0], rows[0]._replace(high=-0.1))))


def test_time_that_went_into_compiling_is_pointed_out() -> None:
    rows = (Comparison.of("heuristic", np.ones(2), np.ones(2)),) * 2
    report = OptimisationReport((), "x", 2, rows, 20.0, kept_heuristic=False, compiling=15.0)
    assert (
        "compiling took 15 s besides, which the budget does not count" in str(report)
        and report.as_dict()["compiling"] == 15.0
    )
    assert "compiling" not in str(report._replace(compiling=3.0))


def test_a_loss_that_needs_labels_is_refused() -> None:
    class Labelled(Shop):
        def encode(shop):
            return lols.Example(Shop.encode(shop).x)

        def loss(x, y, s):
            return abs(y.best - x.long[0])

    with pytest.raises(SpaceError, match="gave no truth"):
        lols.optimise(Labelled, shops(20), minutes=0.01)
