"""The fuzzer in brief, and its own tests: `make fuzz` runs it for long."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import bad_targets, campaign, targets
from tests.fuzz.bad_targets import BAD
from tests.fuzz.campaign import Campaign, Finding, Tally, attempt, generator
from tests.fuzz.mutators import ANY, WRITTEN, damaged
from tests.fuzz.targets import TARGETS

SEED, CASES = 18, 25


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_inputs_are_taken_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    ends = []
    for case in range(CASES):
        ends.append(attempt(target, generator(SEED, name, case)))
        again = f"again: python -m tests.fuzz --seed {SEED} --target {name} --case {case}"
        assert ends[-1] in ("taken", "refused"), f"{ends[-1]}; {again}"
    assert set(ends) == {"taken", "refused"}  # mutations are neither without effect nor so coarse that nothing is read


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_valid_before_they_are_mutated(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "damaged", lambda rng, data, how=(): data)
    monkeypatch.setattr(targets, "change_value", lambda rng, value: None)
    monkeypatch.setattr(targets, "other_array", lambda rng, array: array)
    for name_of in ("other_value", "other_object"):
        monkeypatch.setattr(targets, name_of, lambda rng, value: value)
    target = TARGETS[name](tmp_path)
    assert {attempt(target, generator(SEED, name, case)) for case in range(10)} == {"taken"}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("other error", "KeyError: 'column'"),
        ("two lines", "a message of 2 lines"),
        ("whole input", "a message of 3"),
        ("long", "a message of 3000 characters"),
        ("memory", "MB"),
        ("exit", "SystemExit: 1"),
    ],
)
def test_broken_promises_are_found(name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "BYTES", 64 << 20)
    target = bad_targets.TARGETS[name](tmp_path)
    ends = [attempt(target, Random(case)) for case in range(BAD + 2)]
    assert what in ends.pop(BAD) and set(ends) == {"refused"}


def test_a_case_that_takes_too_long_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SECONDS", 0.0)
    assert attempt(bad_targets.TARGETS["exit"](tmp_path), Random(0)) == "it took 0 seconds"


def test_a_crash_is_found_and_the_cases_behind_it_are_run() -> None:
    made = Campaign(seed=1, module="tests.fuzz.bad_targets")
    made.run("crash", 0, BAD + 3)
    # two processes: the second runs the cases behind the crash
    assert made.tallies == {"crash": Tally(taken=0, refused=BAD + 2, failed=1)}
    (found,) = made.findings
    assert found[:2] == Finding("crash", BAD, "")[:2]
    assert "exit code -11" in found.what and "Segmentation fault" in found.what


def test_a_process_that_hangs_is_killed() -> None:
    made, began = Campaign(seed=1, module="tests.fuzz.bad_targets", silence=1.0), time.monotonic()
    made.run("hang", 0, BAD + 1)
    assert time.monotonic() - began < 50
    assert [found.case for found in made.findings] == [BAD] and "hangs" in made.findings[0].what


def test_a_case_is_the_same_every_time() -> None:
    data = b"1\tthe\tDET\n2\tdog\tNOUN\n\n" * 5

    def made(seed: int) -> list[bytes]:
        return [damaged(generator(seed, "tokens", case), data, WRITTEN) for case in range(200)]

    assert made(1) == made(1) != made(2)
    assert sum(each != data for each in made(1)) > 150
    for how in ANY:
        assert any(how(Random(k), data) != data for k in range(9)) and isinstance(how(Random(0), b""), bytes)
