"""The example of page layout: the class is short, its functions keep the contract, and it beats the rule."""

from __future__ import annotations

import json

import layout
import pytest
from helpers import comparing

import lols
from lols.contract.checks import check_space
from tests.examples.example_checks import check_length, check_page, read_table, run


def test_the_task_is_short_and_the_page_shows_it():
    check_length("layout", "Page")
    check_page("layout", "Page")


def test_the_contract_is_kept():
    assert check_space(layout.Page, layout.pages(4, seed=1)) == []


def test_the_rule_takes_the_best_story_of_another_topic():
    for page in layout.pages(20, seed=2):
        left, wanted = set(range(layout.STORIES)), list[int]()
        while len(wanted) < layout.SLOTS:
            before = page["topic"][wanted[-1]] if wanted else -1
            others = {story for story in left if page["topic"][story] != before} or left
            wanted.append(max(others, key=lambda story: page["quality"][story]))
            left.remove(wanted[-1])
        assert comparing.follow(layout.Page, page) == wanted


def test_the_best_page_has_the_loss_that_the_task_gives_it():
    for page in layout.pages(5, seed=3):
        loss, order = layout.best_page(page)
        assert loss == pytest.approx(layout.SLOTS - sum(layout.clicked_slots(page, order)))
        assert loss <= layout.SLOTS - sum(layout.clicked_slots(page, comparing.follow(layout.Page, page)))


def test_it_beats_its_teacher():
    model = lols.train(layout.Page, layout.pages(40, seed=1), learner=layout.LEARNER, passes=1, seed=1, compiled=False)
    test = layout.pages(80, seed=2)
    losses = model.losses(test)
    assert losses.mean() < model.reference_losses(test).mean()
    order = model.predict_one(test[0])
    assert losses[0] == pytest.approx(layout.SLOTS - sum(layout.clicked_slots(test[0], order)))


def test_the_table(capsys, tmp_path):
    small = ["--size=3", "--tests=5", "--seeds=1", "--uncompiled"]
    printed = run(layout.main, capsys, *small, f"--svg={tmp_path / 'page.svg'}")
    table = read_table(printed)
    assert list(table) == [comparing.TEACHER, *comparing.STRATEGIES, layout.BEST]
    assert table[layout.BEST][0] <= min(row[0] for row in table.values())
    assert printed.count("interest") == 2 * layout.SLOTS
    assert (tmp_path / "page.svg").read_text("utf-8").startswith("<?xml")
    assert [row["name"] for row in json.loads(run(layout.main, capsys, *small, "--json"))["rows"]] == list(table)
