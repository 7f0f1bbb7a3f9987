"""Beam search against its twin, against all paths there are, and against the greedy prediction."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.beam import Beams, beam_search
from lols.engine.structures import following
from lols.errors import ConfigurationError, SpaceError
from lols.learners.learner import hadamard_code
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, all_features, data_sets, random_data
from tests.engine.twin import in_arrays

JIT = os.environ.get("NUMBA_DISABLE_JIT") != "1"
needs_compiler = pytest.mark.skipif(not JIT, reason="compares with compiled code")
SPACES = ["bare", "keyed", "full", "pictured"]  # "closed" is the space of "full"
KEYED = ["keyed", "full"]
SCORES = ["regret", "cost"]
ALL_PATHS = ACTIONS**5

Path = tuple[float, list[int], list[int]]  # score, actions, end state


# --- the twin ---------------------------------------------------------------------------------------------------------


def twin_beam(search: SlowSearch, *, width: int, best: int, recombine: bool, score: str) -> list[Path]:
    """All continuations of all paths in a list, sorted; the first are kept."""
    paths: list[tuple[float, np.ndarray, list[int]]] = [(0.0, search.begin(), [])]
    while any(search.legal(s) for _, s, _ in paths):
        candidates = []
        for rank, (so_far, s, taken) in enumerate(paths):
            if not search.legal(s):
                candidates.append((so_far, rank, 0.0, -1, s, taken))
            for a, regret, added in continuations(search, s, score):
                candidates.append((so_far + added, rank, regret, a, search.after(s, a), [*taken, a]))
        candidates.sort(key=lambda c: c[:4])
        paths, keys = [], set()
        for total, _, _, a, s, taken in candidates:
            if recombine and a >= 0 and search.legal(s):
                key = search.space.key(search.x, s)
                if key in keys:
                    continue
                keys.add(key)
            paths.append((total, s, taken))
            if len(paths) == width:
                break
    return [(total, taken, s.tolist()) for total, s, taken in paths[:best]]


def continuations(search: SlowSearch, s: np.ndarray, score: str) -> Iterator[tuple[int, float, float]]:
    """The legal actions of a state, with their regret, and with what they add to the score."""
    costs = search.policy.costs(0, search.features(s), search.by_action(s), search.actions)
    legal = search.legal(s)
    for a in legal:
        regret = costs[a] - min(costs[b] for b in legal)
        yield a, regret, costs[a] if score == "cost" else regret


def all_paths(search: SlowSearch, score: str, s: np.ndarray | None = None) -> Iterator[Path]:
    """Every path from a state to an end state."""
    s = search.begin() if s is None else s
    if not search.legal(s):
        yield 0.0, [], s.tolist()
    for a, _, added in continuations(search, s, score):
        for rest, taken, end in all_paths(search, score, search.after(s, a)):
            yield added + rest, [a, *taken], end


# --- the engine -------------------------------------------------------------------------------------------------------


def random_policy(seed: int, variant: Variant, *, thresholds: int = 0) -> SlowPolicy:
    """Weights that are small multiples of 1/4: sums are exact, and many paths are tied."""
    rng = np.random.default_rng(seed)
    code = hadamard_code(ACTIONS) if thresholds else np.zeros((0, ACTIONS), np.float32)
    width = code.shape[0] * thresholds if thresholds else ACTIONS
    states, actions = all_features(variant)
    return SlowPolicy(
        [{f: rng.integers(-2, 3, width) / 4.0 for f in states}],
        [{f: rng.integers(-2, 3) / 4.0 for f in actions}],
        [1.0],
        code,
        thresholds,
    )


def model_of(variant: Variant, policy: SlowPolicy, **options: Any) -> lols.Model:
    return lols.Model(variant.space, in_arrays(policy, ACTIONS), following(0, False), **options)


def searches(variant: Variant, data: list[lols.Example], policy: SlowPolicy) -> list[SlowSearch]:
    return [SlowSearch(variant.space, variant.reference, example, policy, Choices()) for example in data]


def paths_of(beams: Beams, index: int) -> list[Path]:
    scores, actions, states = beams.scores(index), beams.actions(index), beams.states(index)
    assert [score for _, score in beams.outputs(index)] == scores.tolist()
    return [(*one, s.tolist()) for *one, s in zip(scores.tolist(), (a.tolist() for a in actions), states, strict=True)]


def assert_same_beams(one: Beams, other: Beams) -> None:
    for mine, others in zip(one.found, other.found, strict=True):
        assert np.array_equal(mine, others)


Case = tuple[Variant, list[lols.Example], SlowPolicy, dict[str, Any]]


@st.composite
def cases(draw: Any, name: str, *, exact: bool = True) -> Case:
    variant = VARIANTS[name]
    thresholds = 0 if variant.space.action_features else draw(st.sampled_from([0, 0, 2]))
    policy = random_policy(draw(st.integers(0, 2**31)), variant, thresholds=thresholds)
    width = draw(st.sampled_from([1, 2, 3, 5, 8, 40]))
    options = {
        "width": width,
        "best": draw(st.sampled_from([1, width, (width + 1) // 2])),
        "recombine": draw(st.booleans()) if variant.space.key else False,
        "score": draw(st.sampled_from(SCORES)),
    }
    return variant, draw(data_sets(variant, exact=exact)), policy, options


def surprises(search: SlowSearch, temperature: float, s: np.ndarray | None = None) -> Iterator[tuple[float, list[int]]]:
    """Every path from a state, with minus the logarithm of its share among all paths."""
    s = search.begin() if s is None else s
    legal = search.legal(s)
    if not legal:
        yield 0.0, []
        return
    costs = search.policy.costs(0, search.features(s), search.by_action(s), search.actions)
    shares = {a: math.exp(-costs[a] / temperature) for a in legal}
    for a in legal:
        for rest, taken in surprises(search, temperature, search.after(s, a)):
            yield rest - math.log(shares[a] / sum(shares.values())), [a, *taken]


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


def walk(stop: list[float], go: list[float], steps: int | None = None) -> tuple[lols.Model, lols.Examples]:
    """At each place one may stop (action 0), or go on (action 1) to the next; the end of the way is an end, too."""
    f = [lols.feature(0, k) for k in range(len(stop))]

    def start(x, s):
        pass

    def actions(x, s, legal):
        legal[:] = s[1] == 0 and s[0] < x.places

    def step(x, s, a):
        s[a ^ 1] += 1

    space = lols.SearchSpace(
        start=start,
        actions=actions,
        step=step,
        features=lambda x, s, out: lols.emit(out, lols.feature(0, s[0])),
        loss=lambda x, y, s: 0.0,
        output=lambda x, s: f"{s[0]} of {x.places}",
        encode=lambda obj: lols.Example({"places": obj}),
        sizes=lols.Sizes(state=2, actions=2, features=1, steps=len(stop) if steps is None else steps),
    )
    policy = SlowPolicy(
        [{f[k]: np.array([stop[k], go[k]]) for k in range(len(stop))}], [{}], [1.0], np.zeros((0, 2), np.float32)
    )
    return lols.Model(space, in_arrays(policy, 2), following(0, False), compiled=False), lols.Examples(
        space, [len(stop)]
    )


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


def refuse(word):
    if word == 7:
        raise ValueError("seven")


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


@pytest.mark.parametrize("name", ["start", "actions", "step", "features"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_that_fails_is_named_as_by_the_prediction(name: str, compiled: bool) -> None:
    space = tagging_space(labels=3)
    data = [{"words": [1, 2, 3], "tags": [0, 1, 2]}, {"words": [4, 7, 5], "tags": [0, 1, 2]}]
    model = lols.train(space, data, tagging_references()["optimal"], passes=1, compiled=compiled)

    def start(x, s):
        refuse(x.words[1])
        s[1] = s[2] = -1

    def actions(x, s, legal):
        if s[0] < len(x.words):
            refuse(x.words[s[0]])
            legal[:] = True

    def step(x, s, a):
        refuse(x.words[s[0]])
        s[3 + s[0]] = a
        s[0] += 1

    def features(x, s, out):
        refuse(x.words[s[0]])

    failing = {"start": start, "actions": actions, "step": step, "features": features}[name]
    model.space = replace(space, **{name: failing})
    where = f"example 1, step {0 if name == 'start' else 1}: `{name}` failed with ValueError: seven"
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
        ({"width": 0}, "1 <= best <= width"),
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
    ties = replace(model, plan=following(0, True))
    with pytest.raises(ConfigurationError, match='use ties="first"'):
        beam_search(ties, examples)
    several = replace(model, policy=model.policy._replace(chances=np.array([0.5, 1.0])))
    with pytest.raises(ConfigurationError, match="mixture of several"):
        beam_search(several, examples)
