"""The state of a learner: checkpoints, merging, tables that grow, memory."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import lols
from lols.contract.features import feature
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine.table import lookup
from lols.learners.learner import Learner
from lols.specification import Lesson
from tests.engine.twin import lessons_of
from tests.learners.learner_cases import (
    ACTIONS,
    BY_ACTION,
    EXACT,
    PAIRS,
    assert_weights_equal,
    make,
    named,
    predicted,
    random_rounds,
    taught,
)

# --- state, merging, tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [None, 6], ids=["growing", "fixed"])
@named(PAIRS)
def test_a_learner_goes_on_from_its_state_bit_for_bit(reduction: str, update: str, bits: int | None) -> None:
    rounds = random_rounds(10, count=12)
    first = taught(rounds[:6], reduction, update, bits=bits)
    second, _ = make(reduction, update, bits=bits)
    second.load(first.state())
    for learner in (first, second):
        for one in rounds[6:]:
            learner.learn(lessons_of([one], ACTIONS))
    mine, other = first.state(), second.state()
    assert mine.keys() == other.keys()
    for name in mine:
        assert np.array_equal(mine[name], other[name]), name


def test_a_state_is_not_touched_by_later_learning() -> None:
    rounds = random_rounds(11, count=12)
    learner = taught(rounds[:6], "csoaa", "nag")
    state = learner.state()
    before = {name: array.copy() for name, array in state.items()}
    learner.learn(lessons_of(rounds[6:], ACTIONS))
    for name in state:
        assert np.array_equal(state[name], before[name]), name


@named([p for p in PAIRS if p[1] != "sketch"])  # whose columns are turned in the order of the table
def test_a_fixed_table_without_collisions_learns_what_a_growing_one_does(reduction: str, update: str) -> None:
    rounds = random_rounds(16)
    bits = 8 if update == "ridge" else 18
    growing, fixed = (taught(rounds, reduction, update, bits=b) for b in (None, bits))
    ids = [feature(0, k) for k in range(8)]
    assert len({lookup(fixed.policy().shared, f) for f in ids}) == 8
    for averaged in (False, True):
        for example in (e for one in rounds for e in one):
            policies = growing.policy(averaged=averaged), fixed.policy(averaged=averaged)
            mine, other = (predicted(p, example) for p in policies)
            assert np.array_equal(mine, other)


def test_a_growing_table_keeps_all_weights_as_it_grows() -> None:
    rounds = random_rounds(17, count=600, features=3000)
    small = taught(rounds, "csoaa", "nag")
    large = taught(rounds, "csoaa", "nag", bits=24)
    assert small.report()["features"] > 1024  # it has grown more than once
    ids = sorted({f for one in rounds for e in one for f, _ in e.features})
    rows = [(lookup(small.policy().shared, f), lookup(large.policy().shared, f)) for f in ids]
    assert len({r for _, r in rows}) == len(ids)
    for row, other in rows:
        assert np.array_equal(small.policy().stack[0, row], large.policy().stack[0, other])


@named(PAIRS)
def test_features_beyond_the_limit_are_dropped_and_counted(reduction: str, update: str) -> None:
    rounds = random_rounds(18, count=10)
    learner, twin = make(reduction, update, max_features=3)
    for one in rounds:
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    if reduction != "hinge":  # which asks for a feature's weights only where they change
        known: list[int] = []
        for identity in (f for one in rounds for e in one for f, _ in e.features):
            if identity not in known and len(known) < 3:
                known.append(identity)
        assert twin.known["shared"] == known
    assert learner.report()["features"] == 3
    assert learner.report()["dropped"] == twin.dropped > 0
    assert learner.state()["shared.features"].tolist() == twin.known["shared"]
    assert_weights_equal(learner.last(), twin.policy(), exact=update in EXACT)


@named(BY_ACTION)
def test_features_of_actions_beyond_the_limit_are_dropped_and_counted(reduction: str, update: str) -> None:
    learner, twin = make(reduction, update, by_action=True, max_features=2)
    for one in random_rounds(20, count=10, by_action=True):
        learner.learn(lessons_of([one], ACTIONS))
        twin.learn_round(one)
    assert learner.report()["dropped"] == twin.dropped > 0
    for bank in ("shared", "single"):
        assert learner.state()[f"{bank}.features"].tolist() == twin.known[bank]
    assert_weights_equal(learner.last(), twin.policy(), exact=update in EXACT)


@named([("hinge", update) for update in EXACT])
def test_the_hinge_gives_a_feature_weights_only_when_they_change(reduction: str, update: str) -> None:
    def state(cheap: int, *features: int, legal: int = 2) -> Lesson:
        return Lesson([(f, 4.0) for f in features], {a: float(a != cheap) for a in range(legal)})

    learner, _ = make(reduction, update, rate=None if update == "perceptron" else 1.0)
    for example, known in (
        (Lesson([(1, 4.0)], {0: 1.0, 1: 1.0}), []),  # nothing is better
        (state(0, 2, legal=1), []),  # nothing is worse
        (state(0, 3, 4), [3, 4]),
        (state(0, 3, 5), [3, 4]),  # right by the margin
        (state(1, 3, 5), [3, 4, 5]),
        (Lesson([(6, 4.0)], {0: 0.0, 1: 1.0}, 0.0), [3, 4, 5]),  # not to be learned from
    ):
        learner.learn(lessons_of([[example]], ACTIONS))
        assert learner.state()["shared.features"].tolist() == known
        assert learner.report()["features"] == len(known)
        assert learner.policy(averaged=True).stack.shape[1] == max(len(known), 1)
    assert (learner.report()["rounds"], learner.report()["states"]) == (6, 5)


def test_a_dropped_feature_of_an_action_counts_once() -> None:
    example = Lesson([(1, 1.0)], {0: 0.0, 1: 1.0}, 1.0, {0: [(5, 1.0), (6, 1.0)], 1: [(5, 1.0), (7, 1.0)]})
    for reduction, update in BY_ACTION:
        learner = taught([[example]], reduction, update, by_action=True, max_features=1)
        assert learner.report()["dropped"] == 2, (reduction, update)


# --- memory -----------------------------------------------------------------------------------------------------------


def held(learner: Learner) -> int:
    """Bytes of all that a learner keeps, added up one by one; rows that no feature has are never touched."""
    total = 0
    for bank in (learner.shared, learner.single):
        total += sum(a.size * a.dtype.itemsize for a in (bank.table.entries, bank.inverse))
        for array in bank.arrays():
            rows = array[: bank.filled[0]]
            assert not array[bank.filled[0] :].any()
            total += rows.size * rows.dtype.itemsize
    return total


@named(PAIRS)
def test_the_report_counts_what_is_held(reduction: str, update: str) -> None:
    for count in (1, 60):
        rounds = random_rounds(19, count=count, features=16 if update == "ridge" else 600)
        learner, twin = make(reduction, update)
        for one in rounds:
            learner.learn(lessons_of([one], ACTIONS))
            twin.learn_round(one)
        report = learner.report()
        seen = {f for one in rounds for e in one for f, _ in e.features}
        known = set(twin.known["shared"])
        assert known <= seen if reduction == "hinge" else known == seen
        assert report["features"] == len(known) > 0
        assert report["bytes"] == held(learner)
        assert report["bytes_per_feature"] == report["bytes"] / len(known)
        assert (report["rounds"], report["states"]) == (count, sum(len(one) for one in rounds))


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "settled"), [("csoaa", 1), ("hinge", 4)])
def test_memory_stays_flat_over_passes(learner: str, settled: int) -> None:
    data = tagging_data(30, labels=6, words=50)
    sizes, traced = [], []

    def note(_: int, model: lols.Model) -> None:
        sizes.append(model.report["bytes"])
        del model
        gc.collect()
        traced.append(tracemalloc.get_traced_memory()[0])

    space, reference = tagging_space(labels=6), tagging_references()["optimal"]
    lols.train(space, data, reference, learner=learner, passes=1)  # whatever the first run allocates once and for all
    tracemalloc.start()
    try:
        lols.train(space, data, reference, learner=learner, passes=8, after_pass=note)
    finally:
        tracemalloc.stop()
    # The hinge may give a feature its weights in a later pass, but mistakes become rare.
    assert len(set(sizes[settled:])) == 1
    assert traced[-1] - traced[2] < 64 * 1024
