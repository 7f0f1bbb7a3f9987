"""The door: whoever runs a kernel, examples that do not fit their space are refused before, with function and line."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import lols
from lols.bandit import StructuredBandit
from lols.bandit.follow import LogFollower
from lols.certificates.certify import certify
from lols.contract.checks.guards import WORK
from lols.contract.checks.indices import check_indices
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine import door
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.lock_step import LockStepDriver
from lols.errors import SpaceError
from lols.kernels.dual import bind
from lols.policies import LinearPolicy
from lols.training.stream import Stream
from lols.training.trainer import Trainer


class Buying(lols.Task):
    """Buy all things, one after the other, each for its price times how many were bought before; at most three."""

    needs_truth = False
    sizes = lols.Sizes(state=lambda x: 1 + len(x.prices), actions=3, features=1, steps=lambda x: len(x.prices))
    columns = lols.Columns(x="prices")

    def actions(x, s, legal):
        for a in range(len(x.prices)):
            if s[1 + a] == 0:
                legal[a] = True

    def step(x, s, a):
        s[0] += 1
        s[1 + a] = s[0]

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.prices[s[0]]))

    def loss(x, y, s):
        total = 0.0
        for a in range(len(x.prices)):
            total += x.prices[a] * s[1 + a]
        return total

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        for a in range(len(x.prices)):
            if s[1 + a] == 0:
                return a
        return 0


class Refunding(Buying):
    """Looks at the price before the first one."""

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.prices[s[0] - 1]))


FIT = [{"prices": [5, 1, 2]}, {"prices": [4, 3]}] * 5
LARGE = {"prices": [3, 1, 4, 1, 5, 9]}
TOO_LARGE = r"`actions`, example \d+, step 0: uses index 3 of legal, which has 3 entries: .* \(test_door.py:\d+\)$"


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_LARGEST", WeakKeyDictionary())


@pytest.fixture(scope="module")
def model() -> lols.Model:
    """A model whose kernels would be compiled, if one were to run."""
    made = lols.train(Buying, FIT, passes=1, seed=1, compiled=False)
    made.compiled = True
    return made


def bandit() -> StructuredBandit:
    return StructuredBandit(Buying, advice=0.0)


def follow_parts(model: lols.Model) -> None:
    driver = FusedDriver(model.space, lols.Examples(Buying, FIT))
    driver.turn_to(lols.Examples(Buying, [LARGE]))


def stream() -> None:
    Stream(Trainer(Buying, batch_size=1)).learn(lols.Examples(Buying, [*FIT, LARGE]))


def follow_log() -> None:
    LogFollower(Buying.space, Buying.teacher)([0], [LARGE], [np.zeros(6, np.int32)])


ENTRANCES: dict[str, Callable[[Any], Any]] = {
    "train": lambda model: lols.train(Buying, [*FIT, LARGE]),
    "predict": lambda model: model.predict([LARGE]),
    "evaluate": lambda model: model.reference_losses(lols.Examples(Buying, [*FIT, LARGE])),
    "parts": follow_parts,
    "lock-step training": lambda model: lols.train(Buying, [*FIT, LARGE], policy=LinearPolicy(Buying)),
    "lock-step": lambda model: LockStepDriver(model.space, lols.Examples(Buying, [LARGE])),
    "stream": lambda model: stream(),
    "certify": lambda model: certify(model, lols.Examples(Buying, [*FIT * 3, LARGE]), Buying.teacher, progress=False),
    "decide": lambda model: bandit().decide(LARGE),
    "bandit's prediction": lambda model: bandit().predict(LARGE),
    "the live system": lambda model: bandit().show_reference(LARGE),
    "log": lambda model: follow_log(),
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_a_larger_example_than_declared_is_refused_at_every_entrance(entrance: Any, model: lols.Model) -> None:
    with pytest.raises(SpaceError, match=TOO_LARGE):
        entrance(model)


def test_a_negative_index_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(
        SpaceError, match=r"`features`, example 0, step 0: uses index -1 of x.prices: .* \(test_door.py:"
    ):
        lols.train(Refunding, FIT)


def test_later_examples_are_walked_through_only_if_they_are_larger(
    model: lols.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[list[int]] = []
    monkeypatch.setattr(
        door, "check_indices", lambda space, reference, examples, chosen, seconds: walked.append(chosen)
    )
    FusedDriver(model.space, lols.Examples(Buying, FIT[1:2]))
    FusedDriver(model.space, lols.Examples(Buying, [*FIT[1:2], {"prices": [1]}]))
    assert walked == [[0]]
    FusedDriver(model.space, lols.Examples(Buying, [*FIT[1:2], *FIT]))
    FusedDriver(model.space, lols.Examples(Buying, FIT[:1]))
    assert walked == [[0], [1]]


def first_or_last(x, s, first):
    chosen = -1
    for a in range(len(x.prices)):
        if s[1 + a] == 0 and (chosen < 0 or not first):
            chosen = a
    return chosen


def test_a_reference_that_is_not_deterministic_is_refused() -> None:
    turns = itertools.count()
    fickle = lols.Reference(action=lambda x, y, s: first_or_last(x, s, next(turns) % 2), needs_truth=False)
    with pytest.raises(SpaceError, match=r"`Reference.action`, example \d, step \d: gives another answer when asked"):
        lols.train(Buying, FIT * 5, fickle)
    said = lols.Reference(action=lambda x, y, s, rng: first_or_last(x, s, lols.uniform(rng) < 0.5), needs_truth=False)
    lols.train(Buying, FIT * 5, said)


def test_a_refused_example_is_refused_again(model: lols.Model) -> None:
    for _ in range(2):
        with pytest.raises(SpaceError, match=TOO_LARGE):
            model.predict([LARGE])


def test_spaces_of_the_library_and_plain_python_are_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "check_indices", lambda *_: pytest.fail("walked"))
    space, data = tagging_space(labels=3), tagging_data(3, labels=3)
    FusedDriver(space, lols.Examples(space, data), tagging_references()["bad"])
    FusedDriver(Buying.space, lols.Examples(Buying, FIT), Buying.teacher, compiled=False)


def test_a_huge_example_is_looked_at_in_part() -> None:
    huge = lols.Examples(Buying, [{"prices": np.ones(100_000, np.int64)}])
    before = WORK[0]
    check_indices(Buying.space, None, lols.Examples(Buying, FIT), [0], seconds=0.05)
    with pytest.raises(SpaceError, match="index 3 of legal"):
        check_indices(Buying.space, None, huge, [0], seconds=0.05)
    endless = tagging_space(labels=3)
    check_indices(endless, None, lols.Examples(endless, [{"words": [1] * 100_000}]), [0], seconds=0.05)
    assert WORK[0] - before < 500_000


def test_examples_of_another_space_are_refused(model: lols.Model) -> None:
    space = tagging_space(labels=4)
    with pytest.raises(SpaceError, match=r"made for a space with Sizes.actions = 4, and this one has 3"):
        model.run(lols.Examples(space, [{"words": [1, 2]}]))


@pytest.mark.parametrize("name", ["state", "steps"])
def test_sizes_beyond_all_memory_are_refused(name: str) -> None:
    class Boundless(Buying):
        sizes = lols.Sizes(**{"state": 9, "steps": 9, name: lambda x: 1 << 50}, actions=3, features=1)

    for compiled in (False, True):
        with pytest.raises(SpaceError, match=rf"example 0: Sizes.{name} gives 1125899906842624; it must be below"):
            lols.train(Boundless, FIT, compiled=compiled)


def test_indices_are_checked_in_functions_of_users_only(monkeypatch: pytest.MonkeyPatch) -> None:
    own, library = Buying.space.functions(), tagging_space(labels=3).functions()
    mixed = library | {"key": lambda x, s: s[0]}
    assert [bind("Space", functions).checked for functions in (own, library, mixed)] == [True, False, True]
    monkeypatch.setenv("LOLS_CHECK", "1")
    assert bind("Space", library).checked
    monkeypatch.setenv("LOLS_CHECK", "0")
    assert not bind("Space", own).checked
