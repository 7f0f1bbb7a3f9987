"""Checks of large tasks: what is sampled, within which time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lols
from lols import Reference, SpaceError
from lols.contract.checks import assert_space, check_space
from lols.errors import ConfigurationError
from tests.contract.checks.spaces import DATA, GOOD, SEEN, TEACHER, sized

# --- large tasks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_clock(monkeypatch):
    """What is sampled follows from counting; a slow machine must not change it here."""
    monkeypatch.setattr("lols.contract.checks.budget.monotonic", lambda: 0.0)


def texts(*lengths):
    rng = np.random.default_rng(1)
    return [{"words": rng.integers(3, 9, n).tolist(), "tags": rng.integers(0, 3, n).tolist()} for n in lengths]


def read_all(x, s, out):
    SEEN["looks"] = SEEN.get("looks", 0) + 1
    total = 0
    for i in range(len(x.words)):
        total += x.words[i] + s[3 + i]
    lols.emit(out, lols.feature(0, total))


LARGE = sized(replace(GOOD, features=read_all, key=None), live=None)
LENGTHS = [40, 200, 120, 60, 180]


def counted(*arguments, **options):
    """The report, and how often features were asked for."""
    SEEN["looks"] = 0
    return check_space(*arguments, **options), SEEN["looks"]


def test_of_a_large_task_a_sample_is_looked_at(no_clock):
    report, looks = counted(LARGE, texts(*LENGTHS), TEACHER)
    said = report.coverage
    assert report == [] and not said.complete
    assert 0 < looks < 5000  # twice at each of 12000 states, and more, if all were looked at
    assert said.states < said.states_met and said.walks < said.walks_asked == 100 and said.examples_given == 5
    for part in (f"{said.examples} of 5 examples", f"{said.walks} of 100 walks", f"{said.states} of {said.states_met}"):
        assert part in report.summary
    assert "thorough=True" in report.summary


def test_fewer_seconds_mean_fewer_looks(no_clock):
    looks = [counted(LARGE, texts(*LENGTHS), TEACHER, seconds=seconds)[1] for seconds in (4.0, 1.0, 0.25, 0.001)]
    assert looks == sorted(looks, reverse=True) and looks[0] > 2 * looks[2]


def test_thorough_looks_at_everything():
    data = texts(150, 100)
    sampled = check_space(LARGE, data, TEACHER, rollouts=3, seconds=0.1).coverage
    assert not sampled.complete
    report = check_space(LARGE, data, TEACHER, rollouts=3, thorough=True)
    assert report.coverage.complete and report.coverage.states == report.coverage.states_met == 3 * 250
    assert report.summary == "looked at 2 of 2 examples, on 6 of 6 walks, at 750 of 750 states"


def test_small_tasks_are_looked_at_completely(no_clock):
    report = check_space(GOOD, DATA, TEACHER)
    assert report.summary == "looked at 3 of 3 examples, on 60 of 60 walks, at 240 of 240 states"
    assert report == check_space(GOOD, DATA, TEACHER, thorough=True)


def at_step(step, length):
    """Features that read beyond the words at one step of examples of one length."""

    def features(x, s, out):
        read_all(x, s, out)
        if s[0] == step and len(x.words) == length:
            lols.emit(out, x.words[len(x.words)])

    return replace(LARGE, features=features)


@pytest.mark.parametrize("step", [0, 199])
def test_both_ends_of_the_longest_example_are_looked_at(no_clock, step):
    (finding,) = check_space(at_step(step, 200), texts(*LENGTHS), TEACHER)
    assert (finding.function, finding.example, finding.step) == ("features", 1, step)
    (finding,) = check_space(at_step(step, 200), texts(*LENGTHS), TEACHER, seconds=0.2)
    assert (finding.example, finding.step) == (1, step)


def test_the_last_step_is_looked_at_where_sizes_give_more(no_clock):
    roomy = sized(at_step(199, 200), steps=lambda x: 5 * len(x.words))
    assert [finding.step for finding in check_space(roomy, texts(*LENGTHS), TEACHER, seconds=1.0)] == [199]


def test_a_reference_is_heard_at_every_state_it_leads_through(no_clock):
    reference = Reference(action=lambda x, y, s: 7 if s[0] == 101 else y.tags[s[0]])
    (finding,) = check_space(LARGE, texts(200, 200), reference, seconds=1.0)
    assert finding.function == "Reference.action" and finding.step == 101


def test_costs_and_keys_of_a_large_task_are_compared(no_clock):
    def functions(space, reference=TEACHER):
        return [finding.function for finding in check_space(space, texts(*LENGTHS), reference, seconds=1.0)]

    def costs(x, y, s, out):
        for a in range(len(out)):
            out[a] = 2.0 * (a != y.tags[s[0]])

    assert functions(LARGE) == []
    assert functions(replace(LARGE, key=lambda x, s: s[0])) == ["key"]
    assert functions(replace(LARGE, cost=lambda x, y, s, a: 1.0)) == ["cost"]
    assert functions(LARGE, Reference(costs=costs)) == ["Reference.costs"]


def test_one_seed_gives_one_sample(no_clock):
    broken = replace(at_step(150, 200), key=lambda x, s: s[0])
    one, two = (counted(broken, texts(*LENGTHS), TEACHER, seed=4, seconds=1.0) for _ in range(2))
    assert one == two and one[0].coverage == two[0].coverage and not one[0].coverage.complete


def test_slow_functions_are_stopped_by_the_clock(monkeypatch):
    now = [0.0]

    def tick():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr("lols.contract.checks.budget.monotonic", tick)
    report = check_space(GOOD, texts(*[20] * 10), TEACHER)
    assert now[0] < 5.01 and report == []
    assert not report.coverage.complete and report.coverage.walks < 20
    assert report.coverage.examples > 2  # the first one is not all there is time for


def test_of_very_many_objects_the_first_are_encoded(monkeypatch):
    monkeypatch.setattr("lols.contract.checks.MOST_ENCODED", 2)
    report = check_space(GOOD, DATA, TEACHER)
    assert "objects after the first 2 were not encoded" in report.summary and not report.coverage.complete
    assert check_space(GOOD, DATA, TEACHER, thorough=True).coverage.examples == 3


def test_assert_space_takes_the_same_options():
    broken = at_step(49, 100)
    assert_space(LARGE, texts(100), TEACHER, rollouts=1, seconds=0.05)
    with pytest.raises(SpaceError, match=r"step 49: (.|\n)*on 1 of 1 walks, at 100 of 100 states"):
        assert_space(broken, texts(100), TEACHER, rollouts=1, thorough=True)


def test_seconds_are_above_zero():
    with pytest.raises(ConfigurationError, match="seconds is 0; it must be above 0"):
        check_space(GOOD, DATA, seconds=0)
