"""Beam search where paths meet, and its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.beam import beam_search
from lols.engine.structures import following
from lols.errors import ConfigurationError, SpaceError
from tests.engine.beam_twin import (
    ALL_PATHS,
    KEYED,
    SCORES,
    SPACES,
    assert_same_beams,
    cases,
    model_of,
    random_policy,
    walk,
)
from tests.engine.random_space import VARIANTS, random_data

# --- paths that meet --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", KEYED)
@settings(max_examples=20)
@given(st.data())
def test_recombination_keeps_the_best_score(name: str, score: str, data: st.DataObject) -> None:
    variant, examples, policy, _ = data.draw(cases(name))
    model, columns = model_of(variant, policy), lols.Examples(variant.space, examples)
    one, other = (beam_search(model, columns, width=ALL_PATHS, recombine=r, score=score) for r in (False, True))
    for i in range(len(examples)):
        assert one.scores(i).tolist() == other.scores(i).tolist()


@pytest.mark.uncompiled
def test_recombination_is_the_default_for_one_result_where_paths_can_meet() -> None:
    for name in SPACES:
        variant = VARIANTS[name]
        model = model_of(variant, random_policy(2, variant))
        columns = lols.Examples(variant.space, random_data(2, variant, depth=5, nodes=12))
        for best in (1, 3):
            of = beam_search(model, columns, width=3, best=best, score="cost")
            recombine = best == 1 and variant.space.key is not None
            assert_same_beams(of, beam_search(model, columns, width=3, best=best, recombine=recombine, score="cost"))


def test_recombination_leaves_room_for_others() -> None:
    variant = VARIANTS["full"]
    scores = {True: 0.0, False: 0.0}
    for seed in range(30):
        model = model_of(variant, random_policy(seed, variant))
        columns = lols.Examples(variant.space, random_data(seed, variant, depth=5, nodes=12))
        for recombine in scores:
            found = beam_search(model, columns, width=2, recombine=recombine, score="cost")
            scores[recombine] += found.found.scores.sum()
    assert scores[True] < scores[False]


@pytest.mark.uncompiled
def test_only_states_that_go_on_are_asked_for_their_key() -> None:
    def key(x, s):
        return lols.feature(0, x.words[s[0]], s[0], s[1], s[2])

    space = replace(tagging_space(labels=3), key=key)
    data = tagging_data(6, labels=3)
    model = lols.train(space, data, tagging_references()["optimal"], passes=1, compiled=False)
    found = beam_search(model, lols.Examples(space, data), width=4, recombine=True)
    assert [found.outputs(i)[0][0] for i in range(6)] == model.predict(data)


# --- errors -----------------------------------------------------------------------------------------------------------


def assert_same_error(model: lols.Model, examples: lols.Examples, match: str, width: int = 1) -> None:
    with pytest.raises(SpaceError, match=match) as greedy:
        model.run(examples)
    with pytest.raises(SpaceError, match=match) as beam:
        beam_search(model, examples, width=width)
    assert str(beam.value) == str(greedy.value)


def refuse(word, bad):
    if word == bad:
        raise ValueError("a bad word")


BREAKS: dict[str, tuple[dict[str, Any], str]] = {
    "steps": ({"steps": 2}, r"example 1, step 2: the search goes on after 2 steps"),
    "features": ({"features": 9}, r"example 0, step 0: `features` or `action_features` emits more"),
}


@pytest.mark.uncompiled
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("what", BREAKS)
def test_sizes_that_are_too_small_are_reported_as_by_the_prediction(what: str, compiled: bool, width: int) -> None:
    space = tagging_space(labels=3)
    data = [{"words": [1, 2], "tags": [0, 1]}, {"words": [3, 4, 5], "tags": [0, 1, 2]}]
    model = lols.train(space, data, tagging_references()["optimal"], passes=1, compiled=compiled)
    sizes, match = BREAKS[what]
    model.space = replace(space, sizes=replace(space.sizes, **sizes))
    assert_same_error(model, lols.Examples(model.space, data), match, width)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_item_that_is_not_there_is_reported_as_by_the_prediction(compiled: bool) -> None:
    variant = VARIANTS["full"]
    data = random_data(4, variant)
    data[2].x["looks"][:] = 7
    model = model_of(variant, random_policy(4, variant), compiled=compiled)
    assert_same_error(model, lols.Examples(variant.space, data), r"example 2, step 0: `items` looks at item 7")


def failing_space() -> lols.SearchSpace:
    """A space in which each function fails at a word of its own."""

    def start(x, s):
        refuse(x.words[1], 6)
        s[1] = s[2] = -1

    def actions(x, s, legal):
        if s[0] < len(x.words):
            refuse(x.words[s[0]], 7)
            legal[:] = True

    def step(x, s, a):
        refuse(x.words[s[0]], 8)
        s[3 + s[0]] = a
        s[0] += 1

    def features(x, s, out):
        refuse(x.words[s[0]], 9)

    return replace(tagging_space(labels=3), start=start, actions=actions, step=step, features=features)


@pytest.mark.parametrize(("name", "word"), [("start", 6), ("actions", 7), ("step", 8), ("features", 9)])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_that_fails_is_named_as_by_the_prediction(name: str, word: int, compiled: bool) -> None:
    data = [{"words": [1, 2, 3], "tags": [0, 1, 2]}, {"words": [4, word, 5], "tags": [0, 1, 2]}]
    model = lols.train(tagging_space(labels=3), data, tagging_references()["optimal"], passes=1, compiled=compiled)
    model.space = failing_space()
    where = f"example 1, step {0 if name == 'start' else 1}: `{name}` failed with ValueError: a bad word"
    assert_same_error(model, lols.Examples(model.space, data), where)


@pytest.mark.uncompiled
def test_a_path_beside_the_greedy_one_may_be_too_long() -> None:
    model, examples = walk(stop=[0.0, 0.0, 0.0], go=[1.0, 1.0, 1.0], steps=2)
    assert beam_search(model, examples, width=1).outputs(0) == [("0 of 3", 0.0)]
    with pytest.raises(SpaceError, match="example 0, step 2: the search goes on after 2 steps"):
        beam_search(model, examples, width=3)


@pytest.mark.uncompiled
def test_a_path_beside_the_greedy_one_may_fail() -> None:
    model, examples = walk(stop=[0.0, 0.0, 0.0], go=[1.0, 1.0, 1.0])

    def step(x, s, a):
        if s[0] == 1 and a == 1:
            raise ValueError("no way")
        s[a ^ 1] += 1

    model.space = replace(model.space, step=step)
    with pytest.raises(SpaceError, match="example 0, step 1: `step` failed with ValueError: no way"):
        beam_search(model, examples, width=3)


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"width": 0}, "the width of a beam is 0; it must be at least 1"),
        ({"best": 0}, "1 <= best <= width"),
        ({"width": 2, "best": 3}, "width=2 cannot give the best=3"),
        ({"score": "surprise", "temperature": 0.0}, "temperature is 0.0; it must be positive"),
        ({"score": "luck"}, "score='luck' is not one of regret, cost, surprise"),
        ({"recombine": True}, "needs a space with `key`"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], match: str) -> None:
    model, examples = walk(stop=[0.0], go=[0.0])
    with pytest.raises(ConfigurationError, match=match):
        beam_search(model, examples, **options)


@pytest.mark.uncompiled
def test_policies_that_draw_at_random_are_refused() -> None:
    model, examples = walk(stop=[0.0], go=[0.0])
    ties = model.replaced(plan=following(0, True))
    with pytest.raises(ConfigurationError, match='use ties="first"'):
        beam_search(ties, examples)
    several = model.replaced(policy=model.policy._replace(chances=np.array([0.5, 1.0])))
    with pytest.raises(ConfigurationError, match="mixture of several"):
        beam_search(several, examples)
