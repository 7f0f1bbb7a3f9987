"""Every speed trick can be switched off, and then nothing changes but the work that is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
import lols.engine.memory
import lols.engine.policy
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.drivers.fused import FusedDriver
from lols.learners.learner import Learner
from lols.training.trainer import TRICKS
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, data_sets, in_parts, random_data

ROLL_OUTS = ["mixture", "learned", "reference"]


def weights(space: lols.SearchSpace, data: Any, reference: lols.Reference, off: str | None, **options: Any) -> Any:
    tricks = dict.fromkeys(TRICKS, False) if off == "all" else {off: False} if off else None
    made = lols.train(space, data, reference, tricks=tricks, batch_size=2, **options)
    return made.policy, made.report["progressive_loss"]


def assert_same(one: Any, other: Any) -> None:
    assert np.array_equal(one[0].stack, other[0].stack)
    assert np.array_equal(one[0].single_stack, other[0].single_stack)
    assert one[1] == other[1]


# --- the result stays the same ----------------------------------------------------------------------------------------


@pytest.mark.thinned(4)
@pytest.mark.parametrize("roll_out", ROLL_OUTS)
@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=6)
@given(st.data())
def test_random_spaces_need_no_trick(name: str, roll_out: str, data: st.DataObject) -> None:
    variant = VARIANTS[name]
    examples = data.draw(data_sets(variant, exact=False))
    options = {
        "roll_out": roll_out,
        "roll_in": data.draw(st.sampled_from(["learned", "reference", "mixture"])),
        "ties": data.draw(st.sampled_from(["first", "random"])),
        "learner": data.draw(
            st.sampled_from(
                ["hinge", "csoaa", lols.LearnerSettings(slack=0.0), lols.LearnerSettings(slack=0.0, margin="weighted")]
            )
        ),
        "seed": data.draw(st.integers(0, 9)),
        "passes": 3,
    }
    if roll_out != "reference":
        options["prune"] = data.draw(st.sampled_from([None, 1, 2]))
    if roll_out == "mixture":
        options["mix"] = data.draw(st.sampled_from(["state", "rollout", "example", "expected", "step"]))
    if variant.space.cost and data.draw(st.booleans()):
        options["horizon"] = 2
    columns: Any = lols.Examples(variant.space, examples)
    if variant.space.items:
        columns = in_parts(columns, data.draw(st.sampled_from([1, 2])), options["seed"])
    plain = weights(variant.space, columns, variant.reference, "all", **options)
    assert_same(weights(variant.space, columns, variant.reference, None, **options), plain)
    for trick in TRICKS:
        assert_same(weights(variant.space, columns, variant.reference, trick, **options), plain)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mix", ["state", "rollout", "example", "expected", "step"])
@pytest.mark.parametrize("name", ["closed", "pictured"])
def test_what_is_pruned_does_not_depend_on_a_trick(name: str, mix: str) -> None:
    variant = VARIANTS[name]
    pruned = 0
    for seed in range(6):
        data = random_data(seed, variant, count=4, depth=5, nodes=12, exact=False)
        options = {"mix": mix, "passes": 2, "seed": seed}
        every = weights(variant.space, data, variant.reference, None, **options)
        plain = weights(variant.space, data, variant.reference, "all", prune=1, **options)
        for trick in (None, *TRICKS):
            assert_same(weights(variant.space, data, variant.reference, trick, prune=1, **options), plain)
        pruned += not np.array_equal(every[0].stack, plain[0].stack)
    assert pruned >= 3


@pytest.mark.parametrize("roll_out", ROLL_OUTS)
def test_tagging_needs_no_trick(roll_out: str) -> None:
    space, reference = tagging_space(labels=6), tagging_references()["optimal"]
    data = tagging_data(12, labels=6, words=50)
    for learner in ("hinge", "csoaa"):
        options = {"roll_out": roll_out, "learner": learner, "passes": 2}
        plain = weights(space, data, reference, None, **options)
        for trick in (*TRICKS, "all"):
            assert_same(weights(space, data, reference, trick, **options), plain)


@pytest.mark.uncompiled
@pytest.mark.parametrize("algorithm", ["lols", "aggrevate", "dagger", "searn"])
def test_no_algorithm_needs_a_trick(algorithm: str) -> None:
    variant = VARIANTS["closed"]
    data = random_data(21, variant, count=4, exact=False)
    options = {"algorithm": algorithm, "passes": 3}
    plain = weights(variant.space, data, variant.reference, "all", **options)
    for trick in (*TRICKS, None):
        assert_same(weights(variant.space, data, variant.reference, trick, **options), plain)


# --- items in parts ---------------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["full", "closed"])
@pytest.mark.parametrize("algorithm", ["lols", "aggrevate", "dagger", "cloning", "searn"])
def test_an_item_in_parts_is_the_item_in_one_piece(name: str, algorithm: str) -> None:
    variant = VARIANTS[name]
    learner = lols.LearnerSettings("hinge", "perceptron")  # its weights are sums of features' values: exact
    for seed in range(4):
        whole = lols.Examples(variant.space, random_data(seed, variant, count=4, depth=5, nodes=12))
        options = {"algorithm": algorithm, "learner": learner, "ties": "random", "passes": 4, "seed": seed}
        expected = lols.train(variant.space, whole, variant.reference, batch_size=2, **options)
        for parts in (2, 3):
            cut = in_parts(whole, parts, seed)
            assert cut.items.types.size == parts * whole.items.types.size
            found = lols.train(variant.space, cut, variant.reference, batch_size=2, **options)
            assert_same(
                (found.policy, found.report["progressive_loss"]), (expected.policy, expected.report["progressive_loss"])
            )
            # The draws among ties, and of Searn's policies, are made of the features, too.
            assert found.run(cut).taken.tolist() == expected.run(whole).taken.tolist()


@pytest.mark.parametrize("learner", ["hinge", "csoaa", "secoc"])
def test_parts_differ_from_one_piece_by_rounding_only(learner: str) -> None:
    variant = VARIANTS["full"]
    whole = lols.Examples(variant.space, random_data(5, variant, count=8, depth=5, nodes=12, exact=False))
    one, other = (
        lols.train(variant.space, data, variant.reference, learner=learner, passes=3, batch_size=2).policy
        for data in (whole, in_parts(whole, 2))
    )
    assert np.array_equal(one.shared.entries, other.shared.entries)
    np.testing.assert_allclose(one.stack, other.stack, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("places", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["lols", "searn"])
def test_a_cache_that_is_too_small_gives_what_none_gives(
    algorithm: str, places: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = VARIANTS["full"]
    data = in_parts(
        lols.Examples(variant.space, random_data(6, variant, count=6, depth=5, nodes=12, exact=False)), parts
    )
    assert data.items.start.size - 1 > 3
    options = {"algorithm": algorithm, "passes": 3}
    plain = weights(variant.space, data, variant.reference, "cache_items", **options)
    large = weights(variant.space, data, variant.reference, None, **options)
    monkeypatch.setattr(lols.engine.memory, "TYPES_MOST", places)
    small = weights(variant.space, data, variant.reference, None, **options)
    assert_same(small, plain)
    assert_same(large, plain)


def lookups(monkeypatch: pytest.MonkeyPatch, data: lols.Examples, policy: Any, batches: Any, **tricks: bool) -> int:
    """How often weights are looked up while a policy goes through batches of examples."""
    variant, calls, found = VARIANTS["full"], Counter[str](), lols.engine.policy.lookup

    def lookup(table: Any, identity: int) -> int:
        calls["lookup"] += 1
        return found(table, identity)

    plan = lols.Trainer(variant.space, variant.reference, roll_out="none", tricks=tricks).plan
    with (
        monkeypatch.context() as patched,
        FusedDriver(variant.space, data, variant.reference, compiled=False) as driver,
    ):
        patched.setattr(lols.engine.policy, "lookup", lookup)
        for batch in batches:
            half = np.full(len(batch), 0.5)
            driver.make_lessons(np.array(batch), np.array(batch), policy, plan, half, half)
    return calls["lookup"]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_type_is_scored_once_per_policy(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = VARIANTS["full"]
    worn = [([lols.feature(9, k), lols.feature(9, k, 1)], [1.0, 0.5]) for k in range(3)]
    graphs = random_data(22, variant, count=6, depth=5, nodes=12)
    bare, data = (
        in_parts(lols.Examples(variant.space, [g._replace(items=items) for g in graphs]), parts, 1)
        for items in ([[]] * 3, worn)
    )
    policy = Learner(lols.LearnerSettings(), ACTIONS).policy()
    together, apart = [range(6)], [[k] for k in range(6)]
    own = lookups(monkeypatch, bare, policy, together)  # the states' own features
    once = lookups(monkeypatch, data, policy, together) - own
    assert 0 < once <= 2 * data.items.ids.size  # in two roles
    assert lookups(monkeypatch, data, policy, together * 3) == 3 * (once + own)  # a batch may have another policy
    assert once + own < lookups(monkeypatch, data, policy, apart)
    assert lookups(monkeypatch, data, policy, apart) < lookups(monkeypatch, data, policy, apart, cache_items=False)
    monkeypatch.setattr(lols.engine.memory, "TYPES_MOST", 2)
    assert once + own < lookups(monkeypatch, data, policy, together)  # forgotten, and scored again


# --- and the trick is at work -----------------------------------------------------------------------------------------


def counting(function: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    """The same function with the same number of arguments, counting its calls."""
    if function.__code__.co_argcount == 2:

        def two(x, s):
            calls[name] += 1
            return function(x, s)

        return two
    if function.__code__.co_argcount == 3:

        def three(x, s, last):
            calls[name] += 1
            return function(x, s, last)

        return three

    def four(x, y, s, last):
        calls[name] += 1
        return function(x, y, s, last)

    return four


def work(variant: Variant, off: str | None, **options: Any) -> Counter[str]:
    """How often each function is called in a run as plain Python, with one trick switched off or none."""
    calls: Counter[str] = Counter()
    names = ("actions", "step", "features", "cost")
    space = replace(variant.space, **{n: counting(getattr(variant.space, n), n, calls) for n in names})
    wrapped = {n: counting(f, f"reference.{n}", calls) for n, f in variant.reference.functions().items()}
    data = random_data(22, variant, count=6, depth=5, nodes=12)
    weights(space, data, lols.Reference(**wrapped), off, compiled=False, checks=False, passes=1, **options)
    return calls


@pytest.mark.parametrize("name", ["full", "closed"])
@pytest.mark.parametrize("roll_out", ["mixture", "learned"])
def test_merged_roll_outs_look_at_fewer_states(name: str, roll_out: str) -> None:
    merged, full = (work(VARIANTS[name], off, roll_out=roll_out) for off in (None, "merge"))
    assert merged["features"] < full["features"]
    assert merged["step"] < full["step"]


def test_roll_outs_of_a_deterministic_teacher_are_merged() -> None:
    merged, full = (work(VARIANTS["full"], off, roll_out="reference") for off in (None, "merge"))
    assert merged["reference.action"] < full["reference.action"]


@pytest.mark.parametrize(("roll_in", "roll_out"), [("learned", "learned"), ("reference", "reference")])
def test_the_roll_in_is_not_rolled_out_again(roll_in: str, roll_out: str) -> None:
    variant = VARIANTS["full"]
    variant = replace(variant, space=replace(variant.space, key=None))
    reused, again = (work(variant, off, roll_in=roll_in, roll_out=roll_out) for off in (None, "reuse"))
    assert reused["step"] < again["step"]


def test_pruned_actions_are_not_rolled_out() -> None:
    for options in ({"roll_out": "learned"}, {"mix": "step"}, {"mix": "expected"}):
        every, some = (work(VARIANTS["full"], "all", prune=prune, **options) for prune in (None, 1))
        assert some["step"] < every["step"], options


def test_closed_form_costs_need_no_roll_out() -> None:
    closed, rolled = (work(VARIANTS["closed"], off, roll_out="reference") for off in (None, "closed_form"))
    assert closed["reference.costs"] > 0
    assert closed["reference.action"] == 0  # the learner rolls in, and nobody rolls out
    assert rolled["reference.costs"] == 0
    assert rolled["reference.action"] > 0


def test_an_item_is_scored_once_per_example(monkeypatch: pytest.MonkeyPatch) -> None:
    variant, calls = VARIANTS["full"], Counter[str]()
    found = lols.engine.policy.lookup

    def lookup(table: Any, identity: int) -> int:
        calls["lookup"] += 1
        return found(table, identity)

    monkeypatch.setattr(lols.engine.policy, "lookup", lookup)
    looked = {}
    for off in (None, "cache_items"):
        work(variant, off, roll_out="learned")
        looked[off] = calls.pop("lookup")
    assert looked[None] < looked["cache_items"]


def broken_paths(off: str | None) -> int:
    """How many steps are taken from states whose cells behind the live ones hold another path than the one taken."""
    variant, broken = VARIANTS["full"], Counter[str]()

    def step(x, s, a):
        path = s[2 : 2 + s[1]] - 1
        reached = [x.root, *x.next[path]]
        broken["paths"] += reached != [*(path // ACTIONS), s[0]]
        variant.space.step(x, s, a)

    data = random_data(22, variant, count=6, depth=5, nodes=12)
    space = replace(variant.space, step=step)
    weights(space, data, variant.reference, off, compiled=False, passes=1, roll_out="learned")
    return broken["paths"]


def test_a_deviation_copies_only_live_cells() -> None:
    assert broken_paths(None) > 0
    assert broken_paths("live") == 0


def test_random_draws_switch_merging_and_reuse_off() -> None:
    for options in ({"ties": "random", "roll_out": "learned"}, {"mix": "step"}, {"horizon": 2, "roll_out": "learned"}):
        merged, full = (work(VARIANTS["full"], off, **options) for off in (None, "merge"))
        assert merged == full, options
        reused, again = (work(VARIANTS["full"], off, **options) for off in (None, "reuse"))
        assert reused == again, options
