"""The example of the delivery robot: the class is short, its functions keep the contract, and it beats the bot."""

from __future__ import annotations

import json

import grid
import numpy as np
import pytest
from helpers import comparing
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import lols
from lols.contract.checks import check_space
from tests.examples.example_checks import check_length, check_page, read_table, run

POCKET = [
    "#########",
    "#.......#",
    "#..###..#",
    "#....#..#",
    "#S...#.G#",
    "#....#..#",
    "#..###..#",
    "#.......#",
    "#########",
]


@pytest.fixture(autouse=True)
def _weak_battery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer steps, so that plain Python is quick enough."""
    monkeypatch.setattr(grid, "LIMIT", 24)


def test_the_task_is_short_and_the_page_shows_it():
    check_length("grid", "Robot")
    check_page("grid", "Robot")


def test_the_contract_is_kept():
    assert check_space(grid.Robot, grid.maps(3, seed=1, size=5)) == []


def test_the_quickest_way_is_the_one_that_scipy_finds():
    for world in grid.maps(8, seed=3, size=8):
        seconds, width = np.array(world["seconds"]), world["width"]
        edges = np.zeros((seconds.size, seconds.size))
        for cell in np.flatnonzero(seconds):
            for beyond in (cell - width, cell + width, cell - 1, cell + 1):
                edges[cell, beyond] = seconds[beyond]
        assert world["quickest"] == dijkstra(csr_array(edges), indices=world["home"])[world["goal"]]


def test_the_bot_is_caught_in_a_pocket():
    world = grid.from_text(POCKET)
    picture = grid.draw(world, comparing.follow(grid.Robot, world), [])
    assert picture.splitlines()[4] == "#Sooo#.G#    #S...#.G#"
    assert world["quickest"] == 12


def test_it_beats_its_teacher():
    model = lols.train(
        grid.Robot, grid.maps(20, seed=1, size=6), learner=grid.LEARNER, passes=2, seed=1, compiled=False
    )
    test = grid.maps(40, seed=2, size=6)
    losses = model.losses(test)
    assert losses.mean() < model.reference_losses(test).mean()
    assert losses.min() >= 0.0


def test_the_table(capsys, monkeypatch):
    maps = grid.maps
    monkeypatch.setattr(grid, "maps", lambda count, seed: maps(count, seed, size=4))
    small = ["--size=3", "--tests=5", "--seeds=1", "--uncompiled"]
    printed = run(grid.main, capsys, *small)
    table = read_table(printed)
    assert list(table) == [comparing.TEACHER, *comparing.STRATEGIES, grid.BEST]
    assert table[grid.BEST][0] == 0.0
    assert printed.count("S") >= 2 and printed.count("G") >= 2
    assert [row["name"] for row in json.loads(run(grid.main, capsys, *small, "--json"))["rows"]] == list(table)
