"""What is said before training: the mistakes that nothing else would notice."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import StructuredBandit
from lols.contract.checks.guards import MOST_WORK, WORK
from lols.contract.checks.quick import check_quickly
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engine import door
from lols.errors import SpaceError
from lols.kernels.dual import bind


class Jobs(lols.Task):
    """Do all jobs one after the other; each costs the time at which it ends."""

    sizes = lols.Sizes(
        state=lols.State(count=1, time=lols.reals(1), late=lols.reals(1), done="jobs"),
        actions=3,
        features=1,
        action_features=1,
        steps=lambda x: x.jobs,
    )

    def encode(lengths):
        return lols.Example({"jobs": len(lengths), "length": np.array(lengths, float)})

    def actions(x, s, legal):
        for a in range(x.jobs):
            legal[a] = s.done[a] == 0

    def step(x, s, a):
        s.count[0] += 1
        s.done[a] = s.count[0]
        s.time[0] += x.length[a]
        s.late[0] += s.time[0]

    def features(x, s, out):
        lols.emit(out, lols.feature(0, s.count[0]))

    def action_features(x, s, a, out):
        lols.emit(out, lols.feature(1), x.length[a])

    def loss(x, y, s):
        return s.late[0]

    def output(x, s):
        return s.done.tolist()

    def reference(x, y, s):
        for a in range(x.jobs):
            if s.done[a] == 0:
                return a
        return -1


class Halved(Jobs):
    def step(x, s, a):
        s.done[a] = 1
        s.count[0] += 0.5 * x.length[a]


class Marked(Jobs):
    def features(x, s, out):
        s.count[0] += 1


class Fractional(Jobs):
    def reference(x, y, s):
        return 0.7


class Keyed(Jobs):
    def key(x, s):
        return s.count[0] * 0.5


class Refunding(Jobs):
    nonnegative = True

    def cost(x, y, s, a):
        return s.time[0] + x.length[a] if s.count[0] > 0 else -1.0


class Cheap(Jobs):
    def cost(x, y, s, a):
        return x.length[a]


class Merged(Jobs):
    def key(x, s):
        return 0


class Boolean(Jobs):
    def reference(x, y, s):
        return s.done[0] != 0


DATA = [[1.5, 2.0], [4.0, 1.0], [2.5, 0.5], [1.0, 3.0]] * 4
OPTIONS: dict[str, Any] = {"passes": 1, "compiled": False, "progress": False}
WRONG = {
    Halved: r"^`step`, example 0, step 0: writes 0.75 into the state, whose cells .* \(test_quick.py:",
    Marked: r"^`features`, example 0, step 0: changes `count` of the state",
    Fractional: r"^`Reference.action`, example 0, step 0: gives 0.7, which is cut off: return the number of an action",
    Keyed: r"^`key`, example 0, step 1: gives 0.5, which is cut off: return a whole number",
    Refunding: r"^`cost`, example 0, step 0: is negative",
}


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_LOOKED_OVER", {})


@pytest.fixture
def silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("task", WRONG)
def test_what_makes_results_wrong_is_refused_before_anything_is_compiled(task: Any, compiled: bool) -> None:
    with pytest.raises(SpaceError, match=WRONG[task]):
        lols.train(task, DATA, passes=1, compiled=compiled)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (Cheap, r"`cost`, example 0, step 2: adds up to .* along the way, but `loss` is .* at the end"),
        (Merged, r"`key`, example 0, step \d: is the same for two states"),
    ],
)
def test_what_may_be_meant_is_a_warning_at_the_line_of_the_user(task: Any, says: str) -> None:
    with pytest.warns(UserWarning, match=says) as warned:
        lols.train(task, DATA, **OPTIONS)
    assert [w.filename for w in warned] == [__file__] * len(warned)
    assert all("checks=False" in str(w.message) for w in warned)


@pytest.mark.usefixtures("silence")
def test_nothing_is_said_of_a_sound_task_nor_with_checks_off() -> None:
    lols.train(Jobs, DATA, **OPTIONS)
    for task in (Halved, Cheap, Merged):
        lols.train(task, DATA, **OPTIONS, checks=False)


@pytest.mark.usefixtures("silence")
def test_true_is_action_1() -> None:
    assert lols.train(Boolean, DATA, **OPTIONS).reference_outputs([[3.0, 1.0]], Boolean.teacher) == [[1, 2]]


def test_a_bandit_looks_at_its_first_object() -> None:
    for checks in (True, False):
        bandit = StructuredBandit(Halved, compiled=False, checks=checks)
        if checks:
            with pytest.raises(SpaceError, match=WRONG[Halved]):
                bandit.decide(DATA[0])
        else:
            bandit.decide(DATA[0])


def test_optimise_says_it_too() -> None:
    with pytest.raises(SpaceError, match=r"^`step`, example \d+, step 0: writes .* into the state"):
        lols.optimise(Halved, DATA, minutes=0.01)


def test_it_is_looked_once_and_again_at_far_more_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(door, "check_quickly", lambda space, reference, examples: looked.append(len(examples)))
    for count in (4, 4, 6, 2, 8, 9):
        lols.train(Jobs, DATA[:count], **OPTIONS)
    assert looked == [4, 8]


def test_spaces_of_the_library_are_not_looked_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "check_quickly", lambda *_: pytest.fail("looked over"))
    lols.train(tagging_space(labels=3), tagging_data(3, labels=3), tagging_references()["bad"], **OPTIONS)
    monkeypatch.setenv("LOLS_CHECK", "0")
    assert not bind("Space", Jobs.space.functions()).checked


def test_a_huge_example_takes_no_longer_even_within_one_call() -> None:
    class Slow(Jobs):
        def actions(x, s, legal):
            for a in range(len(x.length)):
                for b in range(len(x.length)):
                    legal[0] = x.length[a] + x.length[b] > 0.0

    examples, before = lols.Examples(Slow.space, [np.ones(3000)]), WORK[0]
    began = time.process_time()
    check_quickly(Slow.space, Slow.teacher, examples)
    assert WORK[0] - before < 2_000_000 and time.process_time() - began < 10.0 and math.inf == MOST_WORK[0]


def test_real_parts_may_hold_anything() -> None:
    class Least(Jobs):
        def start(x, s):
            s.time[0] = math.inf

    check_quickly(Least.space, None, lols.Examples(Least.space, DATA))
