"""Engines: results in their order, bounded work ahead, deaths, errors in one line."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import lols
from lols.engines import InProcess, Processes, Ray, as_engine
from lols.engines.ray import check_versions, versions
from tests.engines.small_problems import dies, dies_once, doubled, refused, slowly


def test_an_engine_has_a_name_or_is_one() -> None:
    assert isinstance(as_engine(None), InProcess)
    assert isinstance(as_engine("processes"), Processes)
    assert as_engine(engine := Ray(workers=3)) is engine
    with pytest.raises(lols.LolsError, match="unknown engine 'spark': choose this, processes or ray"):
        as_engine("spark")


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Processes(workers=0), "workers is 0"),
        (lambda: Ray(sync="never"), "unknown sync 'never': choose exact or pass"),
        (lambda: InProcess(shards=2), "shards has no effect"),
        (lambda: Ray(cpus=0.0), "cpus is 0.0: give a number above 0"),
    ],
)
def test_settings_are_checked(make: Any, line: str) -> None:
    with pytest.raises(lols.LolsError, match=line):
        make()


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with Processes(workers=2).start() as started:
        yield started


def test_results_come_in_order(workers: Any) -> None:
    assert list(workers.map(slowly, range(8))) == list(range(8))
    assert sorted(workers.completed(doubled, [5, 6])) == [(0, 10), (1, 12)]
    assert list(workers.map(doubled, [])) == []


def test_the_first_error_is_raised(workers: Any) -> None:
    found = []
    with pytest.raises(lols.LolsError, match=r"^item 2 is refused$"):
        for number in workers.map(refused, range(8)):
            found.append(number)
    assert found == [0, 1]


def test_no_more_items_are_taken_than_the_window_allows(workers: Any) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    results = workers.map(doubled, items(), 4)
    for expected in range(6):
        assert next(results) == 2 * expected
        assert len(taken) <= expected + 1 + 4
    results.close()


def test_shared_values_arrive(workers: Any) -> None:
    import numpy as np

    array = np.arange(1000.0)
    shared = workers.share({"array": array, "more": (lambda n: n + 1)})
    assert list(workers.map(total_of, [shared, shared])) == [array.sum(), array.sum()]


def total_of(shared: Any) -> float:
    found = shared.get()
    return float(found["array"].sum()) + found["more"](-1)


def test_a_process_that_dies_is_replaced(workers: Any, tmp_path: Any) -> None:
    assert list(workers.map(dies_once, [(str(tmp_path), n) for n in range(5)])) == list(range(5))
    assert (tmp_path / "2").exists()


def test_work_that_always_kills_is_given_up() -> None:
    with Processes(workers=1).start() as started, pytest.raises(lols.LolsError, match="ended from outside"):
        list(started.map(dies, range(2)))


def test_versions_are_compared() -> None:
    here = versions()
    check_versions(here, here | {"host": "elsewhere"})
    with pytest.raises(lols.LolsError, match=r"and the worker on b has lols 9.9: install the same on both"):
        check_versions(here, here | {"lols": "9.9", "host": "b"})


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(lols.LolsError, match=r"^engine 'ray' needs Ray: pip install 'lols\[ray\]'$"):
        Ray().start()
