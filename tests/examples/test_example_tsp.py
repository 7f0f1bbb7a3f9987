"""The example of round trips: the class is short, its functions keep the contract, and it beats its teacher."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
import tsp
from helpers import comparing

import lols
from lols.contract.checks import check_space
from tests.examples.example_checks import check_length, check_page, read_table, run


def nearest_neighbour(places: np.ndarray) -> list[int]:
    """The rule once more, the obvious way."""
    trip, left = [0], set(range(1, len(places)))
    while left:
        trip.append(min(left, key=lambda city: np.linalg.norm(places[city] - places[trip[-1]])))
        left.remove(trip[-1])
    return trip


def test_the_task_is_short_and_the_page_shows_it():
    check_length("tsp", "Tour")
    check_page("tsp", "Tour")


def test_the_contract_is_kept():
    assert check_space(tsp.Tour, [tsp.maps(1, seed=n, cities=n)[0] for n in (2, 3, 5, 8)]) == []


def test_the_teacher_is_the_nearest_neighbour():
    for places in tsp.maps(10, seed=3, cities=9):
        assert comparing.follow(tsp.Tour, places) == nearest_neighbour(places)


def shortest(apart: np.ndarray) -> float:
    """The length of the shortest trip, by dynamic programming over sets of cities (Held & Karp 1962)."""
    rest = range(1, len(apart))
    best = {(frozenset([city]), city): apart[0, city] for city in rest}
    for size in range(2, len(apart)):
        for cities in map(frozenset, combinations(rest, size)):
            for last in cities:
                best[cities, last] = min(best[cities - {last}, k] + apart[k, last] for k in cities - {last})
    return min(best[frozenset(rest), last] + apart[last, 0] for last in rest)


def test_two_opt_finds_the_shortest_trip_of_few_cities():
    for places in tsp.maps(4, seed=4, cities=9):
        length, trip = tsp.two_opt(places)
        assert length == pytest.approx(shortest(np.linalg.norm(places[:, np.newaxis] - places, axis=-1)))
        assert length == pytest.approx(tsp.lengths(places, np.array(trip)))
        assert sorted(trip) == list(range(9))


def test_it_beats_its_teacher():
    model = lols.train(tsp.Tour, tsp.maps(20, seed=1, cities=16), learner=tsp.LEARNER, passes=2, seed=1, compiled=False)
    test = tsp.maps(60, seed=2, cities=16)
    losses = model.losses(test)
    assert losses.mean() < model.reference_losses(test).mean()
    trips = model.predict(test[:3])
    assert all(sorted(trip) == list(range(16)) for trip in trips)
    assert losses[:3] == pytest.approx([tsp.lengths(places, np.array(trip)) for places, trip in zip(test, trips)])


def test_the_table(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tsp, "maps", lambda count, seed: list(np.random.default_rng(seed).random((count, 6, 2))))
    small = ["--size=4", "--tests=6", "--seeds=1", "--uncompiled"]
    table = read_table(run(tsp.main, capsys, *small, f"--svg={tmp_path / 'trip.svg'}"))
    assert list(table) == [comparing.TEACHER, *comparing.STRATEGIES, tsp.NEARLY_BEST]
    assert table[tsp.NEARLY_BEST][0] <= min(row[0] for row in table.values())
    assert (tmp_path / "trip.svg").read_text("utf-8").startswith("<?xml")
    figures = json.loads(run(tsp.main, capsys, *small, "--json"))
    for row in figures["rows"][1:]:
        mean, _, difference, low, high, closed = table[row["name"]]
        assert (mean, difference) == (round(row["mean"], 3), round(row["difference"], 3))
        assert low <= difference <= high and closed == round(100 * row["closed"])
