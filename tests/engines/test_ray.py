"""Training on Ray: exact and by passes, with one local Ray for all tests here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

import lols
from lols.engines import InProcess, Ray
from lols.engines import ray as ray_engine
from tests.engines.ray_clusters import cluster
from tests.engines.small_problems import DATA, dies_once, doubled, fitted, refused, same, slowly

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module", autouse=True)
def connected() -> Iterator[Any]:
    """A cluster of two nodes, with two processors and one."""
    with cluster(2, 1) as made:
        yield made


def test_exact_mode_gives_the_same_weights_for_any_number_of_workers() -> None:
    plain = fitted(None)
    for workers in (1, 3):
        assert same(plain, fitted(Ray(workers=workers)))


def test_more_workers_than_examples_and_than_processors() -> None:
    assert same(fitted(None, data=DATA[:2]), fitted(Ray(workers=8), data=DATA[:2]))


def test_shards_give_the_same_weights_as_in_one_process() -> None:
    expected = fitted(InProcess(sync="pass", shards=4))
    assert same(expected, fitted(Ray(workers=2, sync="pass", shards=4)))


def test_maps_are_in_order_and_errors_are_one_line() -> None:
    with Ray(workers=2).start() as workers:
        assert list(workers.map(slowly, range(6))) == list(range(6))
        assert list(workers.map(doubled, range(3))) == [0, 2, 4]
        with pytest.raises(lols.LolsError, match=r"^item 2 is refused$"):
            list(workers.map(refused, range(5)))


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with Ray(workers=2).start() as workers:
        assert list(workers.map(dies_once, [(str(tmp_path), n) for n in range(5)])) == list(range(5))


def test_a_slow_worker_is_helped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "SLOW_LEAST", 0.5)
    with Ray(workers=2).start() as workers:
        began = time.monotonic()
        assert list(workers.map(slow_once, [(str(tmp_path), n) for n in range(6)])) == list(range(6))
        assert time.monotonic() - began < 15.0


def slow_once(task: tuple[str, int]) -> int:
    """The last item takes half a minute when it comes for the first time."""
    mark = Path(task[0]) / str(task[1])
    if task[1] == 5 and not mark.exists():
        mark.touch()
        time.sleep(30.0)
    return task[1]


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ray_engine.versions() | {"Numba": "0.1"}
    monkeypatch.setattr(ray_engine, "versions", lambda: mine)
    with pytest.raises(lols.LolsError, match=r"has Numba 0\.1, and the worker on .* has Numba .*: install the same"):
        Ray(workers=1).start()


def test_nobody_answers_is_an_error() -> None:
    with pytest.raises(lols.LolsError, match="no worker has answered for 1 s; 0 of 1 are alive"):
        Ray(workers=1, cpus=64, patience=1.0).start()


def test_another_address_is_refused_while_connected() -> None:
    with pytest.raises(lols.LolsError, match="this process is connected with another Ray"):
        Ray(address="10.0.0.1:6379").start()
    assert ray.is_initialized()


def test_an_estimator_takes_an_engine() -> None:
    sentences = [["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 4
    tags = [["DET", "NOUN", "VERB"]] * 8
    tagger = lols.Tagger(passes=1, engine=Ray(workers=1)).fit(sentences, tags)
    assert tagger.predict([["the", "cat", "barks"]]) == [["DET", "NOUN", "VERB"]]
    assert "engine" not in tagger.contents()[0]["task"]["options"]
