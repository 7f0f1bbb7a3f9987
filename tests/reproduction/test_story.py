"""The story of `lols reproduce`: told with figures, as a picture, and true."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from lols.contract.checks import check_space
from lols.reproduction.console import print_sections
from lols.reproduction.story import Trip, drawn_map, run_story, story_section
from tests.reproduction.report_result import made_story


def test_the_problem_keeps_the_contract():
    maps = [np.random.default_rng(houses).random((houses, 2)) for houses in (2, 3, 5)]
    assert check_space(Trip, maps) == []


def test_figures_are_those_of_the_trips():
    found = run_story(sizes=(1, 4), tests=4, houses=6, compiled=False)
    places = np.array(found["houses"])
    for name, length in zip(("teacher", "learned"), found["shown_lengths"]):
        trip = places[found[name]]
        assert sorted(found[name]) == list(range(6)) and found[name][0] == 0
        assert np.linalg.norm(trip - np.roll(trip, -1, axis=0), axis=1).sum() == pytest.approx(length, abs=1e-3)
    apart = np.linalg.norm(places[:, np.newaxis] - places, axis=-1)
    for k, here in enumerate(found["teacher"][:-1]):
        left = found["teacher"][k + 1 :]
        assert apart[here, left[0]] == min(apart[here, left])
    assert found["gain"] == pytest.approx(found["teacher_length"] - np.mean(found["lengths"][-1]))


@pytest.mark.slow
def test_the_policy_overtakes_its_teacher():
    found = run_story(sizes=(1, 30), tests=100)
    first, last = (max(lengths) for lengths in found["lengths"])
    assert last < found["teacher_length"] < first
    assert found["gain"] > 4 * found["gain_error"]


def test_it_is_told_in_words_and_as_a_picture():
    out = io.StringIO()
    print_sections([story_section(made_story())], Console(file=out, width=100))
    text = out.getvalue()
    assert "8.7 % shorter" in text and "± 1.0" in text and "the teacher: 4.83" in text
    assert text.count("●") == 2 and text.count("○") == 6
    bars = [line for line in text.splitlines() if "█" in line]
    assert [line.split()[0] for line in bars] == ["(the", "1", "10"]
    assert [line.endswith("shorter") for line in map(str.rstrip, bars)] == [False, False, True]


def test_every_house_is_on_the_map():
    places = np.random.default_rng(3).random((9, 2))
    lines = drawn_map(places.tolist(), list(range(9)), width=60, height=30)
    assert len(lines) == 30 and {len(line) for line in lines} == {60}
    assert "".join(lines).count("○") == 8 and "".join(lines).count("●") == 1
    for k, (east, north) in enumerate(places):
        row, column = round((1 - north) * 119) // 4, round(east * 119) // 2
        assert lines[row][column] == ("○" if k else "●")
