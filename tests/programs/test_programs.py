"""Programs give the very weights and predictions of the same task as a search space, with and without speed tricks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_references, tagging_space
from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors
from lols.programs.driver import TRICKS
from tests.programs.program_worlds import DATA, LABELS, TEST, random_program, tagging

SPACE = tagging_space(labels=LABELS)
TEACHERS = tagging_references()
OPTIONS: dict[str, Any] = {"passes": 2, "batch_size": 3, "seed": 3, "compiled": False}
OFF = dict.fromkeys(TRICKS, False)

ALGORITHMS: list[dict[str, Any]] = [
    {},
    {"mix": "rollout"},
    {"mix": "example"},
    {"mix": "expected"},
    {"mix": "step"},
    {"beta": "auto"},
    {"roll_out": "learned"},
    {"algorithm": "aggrevate"},
    {"algorithm": "dagger"},
    {"algorithm": "cloning", "learner": "csoaa"},
    {"algorithm": "searn"},
    {"roll_in": "mixture", "roll_out": "reference", "beta_in": 0.5},
    {"ties": "random"},
    {"sample_steps": 3, "sample_actions": 3},
    {"prune": 2, "returned": "drawn"},
    {"horizon": 2},
]


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
def test_a_program_learns_the_weights_of_its_space_with_and_without_tricks(options, tmp_path):
    options = OPTIONS | options
    space = lols.train(SPACE, DATA, TEACHERS["optimal"], **options)
    same(lols.train(tagging(), DATA, **options), space, tmp_path)
    same(lols.train(tagging(), DATA, tricks=OFF, **options), space, tmp_path)
    if options.get("roll_out") != "none":
        same(lols.train(tagging(keyed=False), DATA, **options), space, tmp_path)


@pytest.mark.parametrize("trick", TRICKS)
def test_each_trick_alone_changes_nothing(trick, tmp_path):
    for keyed in (True, False):
        plain = lols.train(tagging(keyed), DATA, **OPTIONS)
        same(lols.train(tagging(keyed), DATA, tricks={trick: False}, **OPTIONS), plain, tmp_path)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(ALGORITHMS))
def test_programs_drawn_at_random_learn_the_same_with_and_without_tricks(seed, options):
    made = []
    for keyed, tricks in ((True, {}), (True, {"chain": False}), (True, OFF), (False, {})):
        model = lols.train(random_program(seed, keyed=keyed), range(6), tricks=tricks, **(OPTIONS | options))
        table, stack = model.policy.shared, model.policy.stack
        weights = {int(f): stack[:, r].tolist() for f, r in zip(table.keys, table.rows, strict=True) if r >= 0}
        made.append((weights, model.predict(range(9)), model.losses(range(9)).tolist()))
    assert all(other == made[0] for other in made[1:])


def test_tricks_that_do_not_exist_are_refused():
    with pytest.raises(ConfigurationError, match="unknown trick 'live' of programs"):
        lols.train(tagging(), DATA, tricks={"live": False})


def test_teachers_of_all_kinds_teach_what_those_of_a_space_do(tmp_path):
    def free(x, y, s, out):
        out[0] = out[y.tags[s[0]]] = True

    def costs(x, y, s, out):
        for a in range(LABELS):
            out[a] = 1.0 if a != y.tags[s[0]] else 0.0

    def random(gold):
        return {"reference": lambda rng: gold if lols.uniform(rng) < 0.5 else 0}

    cases: list[tuple[lols.Reference, Any]] = [
        (TEACHERS["bad"], lambda gold: {"reference": 0}),
        (TEACHERS["suboptimal"], random),
        (lols.Reference(free=free), lambda gold: {"reference": {gold, 0}}),
        (lols.Reference(costs=costs), lambda gold: {"costs": [1.0 * (a != gold) for a in range(LABELS)]}),
        (lols.Reference(costs=costs), lambda gold: {"costs": lambda: {a: 1.0 * (a != gold) for a in range(LABELS)}}),
    ]
    choices = [{}, {"algorithm": "aggrevate", "roll_in": "reference"}, {"algorithm": "dagger"}]
    for number, (reference, teach) in enumerate(cases):
        for options in choices[: 3 if number < 4 else 1]:
            space = lols.train(SPACE, DATA, reference, **OPTIONS, **options)
            same(lols.train(tagging(teach=teach), DATA, **OPTIONS, **options), space, tmp_path)
            if not options:
                same(lols.train(tagging(keyed=False, teach=teach), DATA, **OPTIONS), space, tmp_path)
                same(lols.train(tagging(teach=teach), DATA, tricks=OFF, **OPTIONS), space, tmp_path)


def test_a_random_teacher_samples_and_imitates_as_in_a_space(tmp_path):
    def random(gold):
        return {"reference": lambda rng: gold if lols.uniform(rng) < 0.5 else 0}

    for options in ({"sample_actions": 2}, {"prune": 1}, {"algorithm": "cloning"}, {"horizon": 1}):
        space = lols.train(SPACE, DATA, TEACHERS["suboptimal"], **OPTIONS, **options)
        same(lols.train(tagging(teach=random), DATA, **OPTIONS, **options), space, tmp_path)


def test_a_loss_at_the_end_is_as_good_as_one_along_the_way(tmp_path):
    along = lols.train(tagging(keyed=False), DATA, **OPTIONS)
    same(lols.train(tagging(keyed=False, at_end=True), DATA, **OPTIONS), along, tmp_path)


@pytest.mark.uncompiled
def test_compiled_or_not_and_with_defaults(tmp_path):
    options = {"passes": 3, "seed": 1}
    compiled = lols.train(tagging(), DATA, **options)
    same(lols.train(tagging(), DATA, compiled=False, **options), compiled, tmp_path)
    assert compiled.evaluate(DATA) < compiled.report["progressive_loss"][0]
    assert compiled.predict_one(DATA[0]) == compiled.predict(DATA[:1])[0]
    assert compiled.reference_losses(DATA).sum() == 0.0


def test_a_model_is_saved_and_loaded_with_its_program(tmp_path):
    model = lols.train(tagging(), DATA, **OPTIONS)
    model.save(tmp_path / "model")
    loaded = lols.load(tmp_path / "model", tagging(), compiled=False)
    assert loaded.predict(TEST) == model.predict(TEST)
    assert "program_changed" not in loaded.about
    with pytest.raises(ModelFileError, match="a model of a program of your own"):
        lols.load(tmp_path / "model")
    other = lols.Program(lambda search, x: [search.predict(["a"])], LABELS)
    assert lols.load(tmp_path / "model", other, compiled=False).about["program_changed"]
    with pytest.raises(ModelFileError, match="trained for 4 actions"):
        lols.load(tmp_path / "model", lols.Program(other.run, 5))
    with pytest.raises(ModelFileError, match="other labels"):
        lols.load(tmp_path / "model", lols.Program(other.run, labels="abcd"))
    lols.train(SPACE, DATA, TEACHERS["optimal"], **OPTIONS).save(tmp_path / "space")
    with pytest.raises(ModelFileError, match="not of a program"):
        lols.load(tmp_path / "space", tagging())


@pytest.mark.parametrize("options", [{}, {"algorithm": "searn"}, {"beta": "auto"}], ids=lambda o: str(o))
def test_a_run_that_is_stopped_and_resumed_ends_with_the_same_weights(options, tmp_path):
    options = OPTIONS | options

    class Stopped(Exception):
        pass

    def until(number: int, model: Any) -> None:
        if number == 0:
            raise Stopped

    whole = lols.train(tagging(), DATA, **options)
    how: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    with pytest.raises(Stopped):
        lols.train(tagging(), DATA, after_pass=until, **how, **options)
    seen: list[int] = []
    resumed = lols.train(tagging(), DATA, resume=True, after_pass=lambda n, m: seen.append(n), **how, **options)
    same(resumed, whole, tmp_path)
    assert seen == [0, 1]  # the pass was learned, but what comes after it had not been done
    with pytest.raises(ModelFileError, match="made with another data"):
        lols.train(tagging(), DATA[1:] + DATA[:1], resume=True, **how, **options)
    with pytest.raises(ModelFileError, match="made with another seed"):
        lols.train(tagging(), DATA, resume=True, **how, **(options | {"seed": 4}))


def test_training_stops_when_after_pass_says_so():
    model = lols.train(tagging(), DATA, after_pass=lambda number, model: True, **OPTIONS)
    assert len(model.report["progressive_loss"]) == 1


def test_a_program_goes_on(tmp_path):
    whole = lols.train(tagging(), DATA, **OPTIONS | {"passes": 3})
    first = lols.train(tagging(), DATA, **OPTIONS)
    first.save(tmp_path / "state", keep_state=True)
    first.save(tmp_path / "bare")
    for start in (first, lols.load(tmp_path / "state", tagging())):
        made = lols.train(tagging(), DATA, start=start, **OPTIONS | {"passes": 1})
        assert weights(made, tmp_path) == weights(whole, tmp_path)
    bare = lols.load(tmp_path / "bare", tagging())
    with pytest.warns(UserWarning, match="start has no learner's state: learning starts from its weights alone"):
        made = lols.train(tagging(), DATA, start=bare, **OPTIONS | {"passes": 1})
    assert weights(made, tmp_path) not in (weights(whole, tmp_path), weights(first, tmp_path))
    assert made.evaluate(DATA) <= lols.train(tagging(), DATA, **OPTIONS | {"passes": 1}).evaluate(DATA)


def test_a_program_goes_on_from_its_own_models_only():
    first = lols.train(tagging(), DATA, **OPTIONS)
    with pytest.raises(ConfigurationError, match="start was trained with other labels"):
        lols.train(lols.Program(tagging().run, labels=["a", "b", "c", "d"]), DATA, start=first, **OPTIONS)
    model = lols.train(SPACE, DATA, TEACHERS["optimal"], **OPTIONS)
    with pytest.raises(ConfigurationError, match="start is of type Model: give a model of this program"):
        lols.train(tagging(), DATA, start=model, **OPTIONS)
