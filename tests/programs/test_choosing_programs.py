"""Programs that choose among candidates learn and decide as the same task with features of actions does."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.errors import ConfigurationError, ModelFileError, SpaceError
from lols.io.model_file import read_tensors
from lols.programs.driver import TRICKS
from tests.programs.courier_worlds import Couriers, PaidAtOnce, days, distances, either, equally_near, program
from tests.programs.program_worlds import tagging
from tests.programs.test_programs import ALGORITHMS

DATA = days(5)
TEST = [*days(4, seed=9), *days(2, seed=10, couriers=7)]  # more candidates than were learned from
OPTIONS: dict[str, Any] = {"passes": 2, "batch_size": 3, "seed": 3, "compiled": False}
OFF = dict.fromkeys(TRICKS, False)
PLAIN = program()
FEW = {"passes": 1} | {name: OPTIONS[name] for name in ("batch_size", "seed", "compiled")}


class Courier:
    """A candidate that is made anew in each run, and equals nothing but itself."""

    def __init__(self, number: int):
        self.number = number


def weights(model: Any, folder: Path) -> dict[str, Any]:
    model.save(folder / "model")
    return {name: array.tolist() for name, array in read_tensors(folder / "model", "model")[1].items()}


def same(one: Any, other: Any, folder: Path) -> None:
    assert weights(one, folder) == weights(other, folder)
    assert one.predict(TEST) == other.predict(TEST)
    assert one.about["beta"] == other.about["beta"]
    assert np.allclose(one.report["progressive_loss"], other.report["progressive_loss"])
    assert one.losses(TEST).tolist() == other.losses(TEST).tolist()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("options", ALGORITHMS, ids=lambda o: "-".join(map(str, o.values())) or "lols")
def test_a_program_learns_the_weights_of_its_task_with_and_without_tricks(options, tmp_path):
    options = OPTIONS | options
    kind = PaidAtOnce if {"horizon", "beta"} & set(options) else Couriers
    task = lols.train(kind(shared=1), DATA, **options)
    assert weights(task, tmp_path)["single.features"]
    same(lols.train(program(shared=True), DATA, **options), task, tmp_path)
    same(lols.train(program(shared=True, keyed=True), DATA, **options), task, tmp_path)
    same(lols.train(program(shared=True, keyed=True, name=Courier), DATA, tricks=OFF, **options), task, tmp_path)


def test_teachers_of_all_kinds_teach_what_those_of_a_task_do(tmp_path):
    def good(away: dict[Any, int]) -> dict[str, Any]:
        least = min(away.values())
        return {"reference": [c for c in reversed(away) if away[c] == least]}

    cases: list[tuple[lols.Reference, Any]] = [
        (lols.Reference(free=equally_near), good),
        (lols.Reference(costs=distances), lambda away: {"costs": away}),
        (lols.Reference(costs=distances), lambda away: {"costs": lambda: list(away.values())}),
        (lols.Reference(action=either), lambda _: {"reference": lambda rng: 0 if lols.uniform(rng) < 0.5 else 1}),
    ]
    for reference, teach in cases:
        for options in ({}, {"algorithm": "dagger"}, {"algorithm": "aggrevate", "sample_actions": 2}):
            task = lols.train(Couriers, DATA, reference, checks=False, **FEW, **options)
            same(lols.train(program(teach=teach), DATA, **FEW, **options), task, tmp_path)


@pytest.mark.parametrize("options", [{}, {"roll_out": "learned"}], ids=["mixture", "learned"])
def test_features_may_be_functions_that_are_called_only_if_needed(options, tmp_path):
    plain = lols.train(program(shared=True), DATA, **FEW, **options)
    for keyed in (False, True):
        same(lols.train(program(shared=True, lazy=True, keyed=keyed), DATA, **FEW, **options), plain, tmp_path)


def random_program(seed: int, keyed: bool) -> lols.Program:
    """A program whose decisions are drawn once and for all: candidates, ever others and more or fewer, and losses."""

    def draw(*place: int) -> int:
        return lols.feature(seed, *place) % 1000

    def run(search: Any, x: int) -> list[str]:
        made, place = list[str](), 0
        for step in range(5):
            some = [c for c in "abcd" if draw(step, place, ord(c), 1) < 600] or ["e"]
            right = [c for c in some if draw(step, place, ord(c), 2) < 400] or some[:1]
            seen = {c: {"value": draw(step, place, ord(c), 3) / 500, "name": c} for c in some}
            c = search.choose(seen, right, shared=[("step", step)], key=(step, place) if keyed else None)
            search.loss(draw(x, step, place, ord(c), 4) % 3 / 4)
            made.append(c)
            place = (place + ord(c)) % 2
            if draw(step, place, x, 5) < 150:
                break
        return made

    return lols.Program(run)


def test_one_candidate_after_many_is_the_same_set_as_one_candidate_before(tmp_path):
    def run(search: Any, x: int) -> None:
        for step, count in enumerate((1, 3, 1, 2)):
            c = search.choose({c: {"c": c} for c in range(count)}, 0, key=step if x else None)
            search.loss(c)

    plain, keyed = (lols.train(lols.Program(run), [x] * 3, tricks=OFF, **FEW) for x in (0, 1))
    assert weights(plain, tmp_path) == weights(keyed, tmp_path)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(ALGORITHMS))
def test_programs_drawn_at_random_learn_the_same_with_and_without_tricks(seed, options):
    made = []
    for keyed, tricks in ((True, {}), (True, {"chain": False}), (True, OFF), (False, {})):
        model = lols.train(random_program(seed, keyed), range(6), tricks=tricks, **(OPTIONS | options))
        table, stack = model.policy.single, model.policy.single_stack
        learned = {int(f): stack[:, r].tolist() for f, r in zip(table.keys, table.rows, strict=True) if r >= 0}
        made.append((learned, model.predict(range(9)), model.losses(range(9)).tolist()))
    assert all(other == made[0] for other in made[1:])


@pytest.mark.parametrize(
    "learner", ["csoaa", lols.LearnerSettings("hinge", "nag"), lols.LearnerSettings(bits=12)], ids=str
)
def test_other_learners_learn_the_weights_of_the_task(learner, tmp_path):
    task = lols.train(Couriers, DATA, learner=learner, **FEW)
    same(lols.train(PLAIN, DATA, learner=learner, **FEW), task, tmp_path)


def test_learners_without_a_form_for_candidates_are_refused():
    with pytest.raises(ConfigurationError, match="secoc with adagrad has no form for `action_features` and candidates"):
        lols.train(PLAIN, DATA, learner="secoc", **FEW)


def test_candidates_may_be_tuples_and_strings_and_objects_of_one_run(tmp_path):
    plain = lols.train(PLAIN, DATA, **FEW)
    for name in (lambda c: ("courier", c), "abcdefg".__getitem__, Courier, lambda c: frozenset([c])):
        for keyed in (False, True):
            same(lols.train(program(name=name, keyed=keyed), DATA, **FEW), plain, tmp_path)


@pytest.mark.uncompiled
def test_compiled_or_not_and_with_defaults(tmp_path):
    compiled = lols.train(PLAIN, DATA, passes=2, seed=1)
    same(lols.train(PLAIN, DATA, passes=2, seed=1, compiled=False), compiled, tmp_path)
    assert compiled.evaluate(DATA) < compiled.reference_losses(DATA).mean()
    large = days(1, couriers=90, seed=3)  # more than there was room for
    slow = lols.train(PLAIN, DATA, passes=2, seed=1, compiled=False)
    assert compiled.predict(large) == slow.predict(large)


def test_samples_are_those_of_the_task():
    task, chosen = (lols.train(each, DATA, **FEW) for each in (Couriers, PLAIN))
    for search in ({"best_of": 6}, {"best_of": 6, "starts": 3}, {"best_of": 4, "temperature": 4.0, "seed": 7}):
        assert chosen.losses(TEST, **search).tolist() == task.losses(TEST, **search).tolist()
        assert chosen.predict(TEST, **search) == task.predict(TEST, **search)
    assert chosen.reference_losses(TEST).tolist() == task.reference_losses(TEST).tolist()
    assert chosen.reference_outputs(TEST) == task.reference_outputs(TEST)


def test_a_model_is_saved_loaded_pickled_and_gone_on_from(tmp_path):
    whole = lols.train(PLAIN, DATA, **FEW | {"passes": 2})
    model = lols.train(PLAIN, DATA, **FEW)
    model.save(tmp_path / "state", keep_state=True)
    loaded = lols.load(tmp_path / "state", PLAIN, compiled=False)
    assert loaded.predict(TEST) == model.predict(TEST) and "program_changed" not in loaded.about
    assert repr(loaded) == "ProgramModel(tests.programs.courier_worlds:program.run, candidates)"
    assert weights(lols.train(PLAIN, DATA, start=loaded, **FEW), tmp_path) == weights(whole, tmp_path)
    assert pickle.loads(pickle.dumps(lols.train(CHOOSING, [3], **FEW))).predict([3, 5]) == [2, 4]
    with pytest.raises(ModelFileError, match="any number of actions"):
        lols.load(tmp_path / "state", tagging())
    with pytest.raises(ConfigurationError, match="start was trained for candidates: go on with a program that chooses"):
        lols.train(tagging(), DATA, start=model, **FEW)


def last(search: Any, x: int) -> Any:
    number = search.choose({n: {"last": n == x - 1} for n in range(x)}, x - 1)
    search.loss(number != x - 1)
    return number


CHOOSING = lols.Program(last)


def test_a_run_that_is_stopped_and_resumed_ends_with_the_same_weights(tmp_path):
    class Stopped(Exception):
        pass

    def until(number: int, model: Any) -> None:
        raise Stopped

    whole = lols.train(PLAIN, DATA, **OPTIONS)
    how: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    with pytest.raises(Stopped):
        lols.train(PLAIN, DATA, after_pass=until, **how, **OPTIONS)
    same(lols.train(PLAIN, DATA, resume=True, **how, **OPTIONS), whole, tmp_path)


def test_features_are_values_or_categories_or_a_list_or_a_function(tmp_path):
    def run(search: Any, x: int) -> Any:
        seen = {
            "a": {"cost": np.float32(x), "kind": "van", "old": np.True_, "none": None},
            "b": lambda: {"cost": Decimal(1), "kind": ("van", 2)},
            "c": ["old", ("kind", "van")],
        }
        a = search.choose(seen, "c", shared=lambda: ["evening"])
        search.loss(a != "c")
        return a

    def plainly(search: Any, x: int) -> Any:
        mine = [("kind", "van"), ("old", True), ("none", None)]
        seen = {
            "a": {"cost": float(x), **{feature: 1.0 for feature in mine}},
            "b": {"cost": 1.0, ("kind", ("van", 2)): 1.0},
            "c": {"old": 1.0, ("kind", "van"): 1.0},
        }
        a = search.choose(seen, "c", shared={"evening": 1.0})
        search.loss(a != "c")
        return a

    one, other = (lols.train(lols.Program(each), [1, 2, 3], **OPTIONS) for each in (run, plainly))
    assert weights(one, tmp_path) == weights(other, tmp_path)
    assert one.predict([2]) == ["c"]


def test_the_most_candidates_are_counted():
    assert lols.train(PLAIN, DATA, **FEW).most_actions([*DATA, *TEST]) == 7
    assert lols.train(tagging(), [{"words": [1], "tags": [1]}], **FEW).most_actions([]) == 4


BAD_CANDIDATES = [
    (
        lambda search: search.choose({}, 0),
        "there are no candidates: do not call choose when there",
    ),
    (lambda search: search.choose([1, 2], 1), r"the candidates are \[1, 2\]: give a dict from each to its features"),
    (lambda search: search.choose({"a": {}}, "b"), "the reference is 'b': it is not one of the candidates"),
    (lambda search: search.choose({"a": {}, "b": {}}, costs={"a": 1.0}), "`costs` has nan for action 'b'"),
    (lambda search: search.choose({"a": {}, "b": {}}, costs=[1.0]), "`costs` has 1 numbers for 2 actions"),
    (lambda search: search.choose({"a": {"x": float("nan")}}, "a"), "feature 'x' of 'a' is nan: give a finite number"),
    (lambda search: search.choose({"a": {"x": 10**400}}, "a"), "feature 'x' of 'a' is 1000"),
    (lambda search: search.choose({"a": {"x": 1j}}, "a"), "feature 'x' of 'a' is 1j: give a finite number"),
    (lambda search: search.choose({"a": {"x": []}}, "a"), "a feature of 'a' cannot be looked up"),
    (lambda search: search.choose({"a": "word"}, "a"), "the features of 'a' are 'word': give a dict"),
    (lambda search: search.choose({"a": 3}, "a"), "the features of 'a' are 3: give a dict"),
    (lambda search: search.choose({"a": {"x": 1e30}}, "a", shared={"y": 1e30}), "a feature of 'a' in combination"),
    (lambda search: search.predict(["a"], reference=0), "the program has no actions to predict: give lols.Program"),
]


@pytest.mark.parametrize(("decide", "says"), BAD_CANDIDATES, ids=[says[:30] for _, says in BAD_CANDIDATES])
def test_mistakes_are_named_in_one_line(decide, says):
    with pytest.raises(SpaceError, match=f"^example 0, step 0: {says}") as caught:
        lols.train(lols.Program(lambda search, x: decide(search)), [0], **FEW)
    assert "\n" not in str(caught.value)


def test_the_reference_is_needed_where_it_is_imitated():
    run = lols.Program(lambda search, x: search.choose({"a": {}}))
    with pytest.raises(SpaceError, match="example 0, step 0: the reference is needed here"):
        lols.train(run, [0], algorithm="cloning", **FEW)


def test_choose_needs_a_program_without_actions():
    def run(search: Any, x: Any) -> None:
        search.choose({0: {}}, 0)

    with pytest.raises(SpaceError, match="chooses among candidates or predicts actions, not both: leave out `actions`"):
        lols.train(lols.Program(run, actions=2), [0], **FEW)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_program_that_is_random_is_found_out(keyed):
    sizes = iter([3, 3, 1, 1, 1, 1, 1, 1, 1])

    def run(search: Any, x: Any) -> None:
        some = range(next(sizes))
        for step in range(2):
            search.loss(search.choose({n: {"n": n} for n in some}, some[-1], key=step if keyed else None))

    with pytest.raises(SpaceError, match=r"is it random\?|is the program random\?"):
        lols.train(lols.Program(run), [0], **FEW)
