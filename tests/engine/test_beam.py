"""Beam search against its twin, against all paths, and against the greedy prediction."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.beam import beam_search
from lols.policies import LinearPolicy
from tests.engine.beam_twin import (
    ALL_PATHS,
    SCORES,
    SPACES,
    Case,
    all_paths,
    assert_same_beams,
    cases,
    model_of,
    needs_compiler,
    paths_of,
    random_policy,
    searches,
    surprises,
    twin_beam,
    walk,
)
from tests.engine.random_space import VARIANTS, random_data

# --- what is found ----------------------------------------------------------------------------------------------------


def assert_finds_what_the_twin_does(case: Case, compiled: bool) -> None:
    variant, data, policy, options = case
    found = beam_search(model_of(variant, policy, compiled=compiled), lols.Examples(variant.space, data), **options)
    assert len(found) == len(data)
    for i, search in enumerate(searches(variant, data, policy)):
        assert paths_of(found, i) == twin_beam(search, **options)


@pytest.mark.parametrize("name", SPACES)
@given(st.data())
def test_the_beam_is_the_twins(name: str, data: st.DataObject) -> None:
    assert_finds_what_the_twin_does(data.draw(cases(name)), compiled=True)


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=10)
@given(st.data())
def test_policies_that_score_batches_find_the_same(name: str, data: st.DataObject) -> None:
    variant, examples, policy, options = data.draw(cases(name))
    columns, model = lols.Examples(variant.space, examples), model_of(variant, policy, compiled=False)
    expected = beam_search(model, columns, **options)
    linear: Any = LinearPolicy(variant.space, weights=model.policy)
    model.policy, costs, asked = linear, linear.costs, []
    linear.batch, linear.most_examples = data.draw(st.sampled_from([(None, None), (2, 1)]))
    linear.costs = lambda states: (asked.append((len(states), np.unique(states.example).size)), costs(states))[1]
    found = beam_search(model, columns, **options)
    for i in range(len(examples)):
        assert paths_of(found, i) == paths_of(expected, i)
    assert not linear.batch or all(states <= 2 and of <= 1 for states, of in asked)
    linear.costs = lambda states: np.full((len(states), states.actions), np.nan)
    with pytest.raises(lols.LolsError, match="gave NaN or infinity") if asked else nullcontext():
        beam_search(model, columns, **options)


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=15)
@given(st.data())
def test_the_beam_is_the_twins_at_both_speeds(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    for compiled in (False, True):
        assert_finds_what_the_twin_does(case, compiled)


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=20)
@given(st.data())
def test_by_surprise_a_beam_for_all_paths_gives_the_likeliest_path(name: str, data: st.DataObject) -> None:
    variant, examples, policy, _ = data.draw(cases(name))
    temperature = data.draw(st.sampled_from([0.25, 1.0, 2.0]))
    model, columns = model_of(variant, policy), lols.Examples(variant.space, examples)
    found = beam_search(model, columns, width=ALL_PATHS, recombine=False, score="surprise", temperature=temperature)
    narrow, greedy = beam_search(model, columns, width=1, score="surprise", temperature=temperature), model.run(columns)
    for i, search in enumerate(searches(variant, examples, policy)):
        every = list(surprises(search, temperature))
        assert found.scores(i)[0] == pytest.approx(min(score for score, _ in every), abs=1e-4)
        by_path = {tuple(taken): score for score, taken in every}
        assert by_path[tuple(found.actions(i)[0].tolist())] == pytest.approx(found.scores(i)[0], abs=1e-4)
        assert narrow.actions(i)[0].tolist() == greedy.actions(i).tolist()


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=20)
@given(st.data())
def test_a_beam_for_all_paths_gives_the_exact_best(name: str, data: st.DataObject) -> None:
    variant, examples, policy, options = data.draw(cases(name))
    best, score = data.draw(st.sampled_from([1, 3, 20, ALL_PATHS])), options["score"]
    model = model_of(variant, policy)
    found = beam_search(
        model, lols.Examples(variant.space, examples), width=ALL_PATHS, best=best, recombine=False, score=score
    )
    for i, search in enumerate(searches(variant, examples, policy)):
        every = list(all_paths(search, score))
        paths = paths_of(found, i)
        assert [path[0] for path in paths] == sorted(path[0] for path in every)[:best]
        assert all(path in every for path in paths)
        assert len({tuple(path[1]) for path in paths}) == len(paths)


@pytest.mark.uncompiled
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=10)
@given(st.data())
def test_a_beam_of_one_is_the_greedy_prediction(name: str, score: str, data: st.DataObject) -> None:
    variant, examples, policy, _ = data.draw(cases(name, exact=data.draw(st.booleans())))
    model, columns = model_of(variant, policy), lols.Examples(variant.space, examples)
    greedy, found = model.run(columns), beam_search(model, columns, width=1, score=score)
    for i in range(len(examples)):
        assert found.actions(i)[0].tolist() == greedy.actions(i).tolist()
        assert found.states(i).tolist() == [greedy.state(i).tolist()]
        assert found.outputs(i)[0][0] == greedy.output(i)


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=20)
@given(st.data())
def test_by_regret_the_greedy_prediction_comes_first_at_any_width(name: str, data: st.DataObject) -> None:
    variant, examples, policy, options = data.draw(cases(name, exact=data.draw(st.booleans())))
    model, columns = model_of(variant, policy), lols.Examples(variant.space, examples)
    greedy, found = model.run(columns), beam_search(model, columns, **options | {"score": "regret"})
    for i in range(len(examples)):
        assert found.scores(i)[0] == 0.0
        assert found.actions(i)[0].tolist() == greedy.actions(i).tolist()
        assert (np.diff(found.scores(i)) >= 0).all()


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=20)
@given(st.data())
def test_by_regret_any_beam_gives_the_exact_best(name: str, data: st.DataObject) -> None:
    """Whatever is dropped could at best stay as bad as it is, and so can each of those that are kept."""
    variant, examples, policy, options = data.draw(cases(name))
    options |= {"recombine": False, "score": "regret"}
    found = beam_search(model_of(variant, policy), lols.Examples(variant.space, examples), **options)
    for i, search in enumerate(searches(variant, examples, policy)):
        every = sorted(score for score, _, _ in all_paths(search, "regret"))
        assert found.scores(i).tolist() == every[: options["best"]]


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, 3e38])
def test_weights_that_overflow_leave_the_beam_of_one_greedy(scale: float) -> None:
    variant = VARIANTS["full"]
    model, columns = model_of(variant, random_policy(1, variant)), lols.Examples(variant.space, random_data(1, variant))
    model.policy.stack[0, ::2, ::2] = scale
    for compiled in (False, True):
        model.compiled = compiled
        greedy = model.run(columns)
        for score in SCORES:
            found = beam_search(model, columns, width=1, score=score)
            wide = beam_search(model, columns, width=6, best=6, score=score)
            for i in range(len(columns)):
                assert found.actions(i)[0].tolist() == greedy.actions(i).tolist()
                assert np.isfinite(wide.scores(i)).all()


@needs_compiler
@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=15)
@given(st.data())
def test_both_speeds_and_any_number_of_threads_give_the_same(name: str, data: st.DataObject) -> None:
    variant, examples, policy, options = data.draw(cases(name, exact=False))
    columns = lols.Examples(variant.space, examples)
    first, *others = (
        beam_search(model_of(variant, policy, compiled=compiled, threads=threads), columns, **options)
        for compiled, threads in ((False, 1), (True, 1), (True, 2))
    )
    for other in others:
        assert_same_beams(first, other)


# --- a beam by hand ---------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_paths_at_their_end_compete_with_those_that_go_on() -> None:
    model, examples = walk(stop=[1.75, 1.0, 1.0], go=[1.0, 1.5, 4.0])
    by_regret = beam_search(model, examples, width=3, best=3)
    assert by_regret.outputs(0) == [("1 of 3", 0.0), ("2 of 3", 0.5), ("0 of 3", 0.75)]
    assert [a.tolist() for a in by_regret.actions(0)] == [[1, 0], [1, 1, 0], [0]]
    by_cost = beam_search(model, examples, width=3, best=3, score="cost")
    assert by_cost.outputs(0) == [("0 of 3", 1.75), ("1 of 3", 2.0), ("2 of 3", 3.5)]
    narrow = beam_search(model, examples, width=1, score="cost")
    assert narrow.outputs(0) == [("1 of 3", 2.0)]


@pytest.mark.uncompiled
def test_ties_go_to_the_path_that_was_better_before() -> None:
    model, examples = walk(stop=[2.0, 1.0, 1.0], go=[1.0, 1.5, 4.0])
    found = beam_search(model, examples, width=3, best=2, score="cost")
    assert found.outputs(0) == [("1 of 3", 2.0), ("0 of 3", 2.0)]


@pytest.mark.uncompiled
def test_there_are_no_more_results_than_paths() -> None:
    model, examples = walk(stop=[0.0, 0.0], go=[0.0, 0.0])
    found = beam_search(model, examples, width=9, best=7)
    assert found.outputs(0) == [("0 of 2", 0.0), ("1 of 2", 0.0), ("2 of 2", 0.0)]


@pytest.mark.uncompiled
def test_a_start_state_that_is_an_end_state_is_the_result() -> None:
    space = tagging_space(labels=3)
    data = tagging_data(5, labels=3)
    model = lols.train(space, data, tagging_references()["optimal"], passes=1)
    found = beam_search(model, lols.Examples(space, [{"words": []}, {"words": [1]}]), width=2, best=2)
    assert found.outputs(0) == [([], 0.0)]
    assert [a.tolist() for a in found.actions(0)] == [[]]
    assert len(found.outputs(1)) == 2


def test_a_taggers_actions_are_its_tags() -> None:
    space = tagging_space(labels=4)
    data = tagging_data(60, labels=4, words=60)
    model = lols.train(space, data[:40], tagging_references()["optimal"], passes=2)
    examples = lols.Examples(space, data[40:])
    found = beam_search(model, examples, width=5, best=5)
    for i in range(len(examples)):
        assert [tags for tags, _ in found.outputs(i)] == [a.tolist() for a in found.actions(i)]
    assert [found.outputs(i)[0][0] for i in range(len(examples))] == model.predict(data[40:])
