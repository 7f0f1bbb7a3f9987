"""The page layout world: pages are legal, losses are those of the click model, and there is room to learn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations
from statistics import mean
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit.worlds.layout import (
    best_layout,
    click_chances,
    layout_data,
    layout_loss,
    layout_reference,
    layout_space,
    random_layout,
)
from lols.bandit.worlds.layout_clicks import LEADS, SAME, SHADOW, TOPICS
from lols.errors import ConfigurationError

SPACE, REFERENCE = layout_space(), layout_reference()
SMALL = [layout_data(12, seed, items=items, slots=slots) for seed, items, slots in ((3, 5, 3), (4, 4, 4), (5, 3, 5))]
WEIGHTED = lols.LearnerSettings("hinge", "adagrad", margin="weighted")


def all_pages(request: dict[str, Any]) -> Iterator[list[int]]:
    """Every page that nothing can be added to, from the orders of all items."""
    sizes, slots = [item["size"] for item in request["items"]], len(request["visibility"])
    known = set()
    for order in permutations(range(len(sizes))):
        for count in range(1, len(order) + 1):
            page = [item for item in order[:count] for _ in range(sizes[item])]
            left = slots - len(page)
            if left >= 0 and all(sizes[item] > left for item in order[count:]):
                known.add((*page, *[-1] * left))
    return map(list, sorted(known))


def slow_loss(request: dict[str, Any], page: list[int]) -> float:
    """The click model slot by slot, looking left and right from each item's own edges."""
    items, clicks = request["items"], 0.0
    for item in set(page) - {-1}:
        first, last = page.index(item), len(page) - 1 - page[::-1].index(item)
        unseen = np.prod([1 - request["visibility"][slot] for slot in range(first, last + 1)])
        chance = (1 - unseen) * request["relevance"][item]
        for slot in (first - 1, last + 1):
            if 0 <= slot < len(page) and page[slot] >= 0 and items[page[slot]]["topic"] == items[item]["topic"]:
                chance *= SAME
        if first > 0:
            before = items[page[first - 1]]
            chance *= LEADS if items[item]["topic"] == (before["topic"] + 1) % TOPICS else 1
            chance *= SHADOW if before["size"] > items[item]["size"] else 1
        clicks += min(chance, 1)
    return float(1 - clicks / len(page))


def walk_all(request: dict[str, Any]) -> Iterator[tuple[list[int], float]]:
    """Page and loss of every end state of the space."""
    examples = lols.Examples(SPACE, [request])
    x, y = examples.example(0)[:2]

    def go(s: np.ndarray) -> Iterator[tuple[list[int], float]]:
        legal = np.zeros(SPACE.sizes.actions, bool)
        SPACE.actions(x, s, legal)
        if not legal.any():
            yield SPACE.output(x, s), SPACE.loss(x, y, s)
        for a in np.flatnonzero(legal):
            after = s.copy()
            SPACE.step(x, after, a)
            yield from go(after)

    yield from go(np.zeros(1 + len(request["visibility"]), np.int32))


# --- pages and losses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requests", SMALL, ids=["5 items, 3 slots", "4 items, 4 slots", "3 items, 5 slots"])
def test_the_space_ends_in_all_full_pages_and_their_losses_are_those_of_the_click_model(requests: list[Any]) -> None:
    for request in requests:
        ends = list(walk_all(request))
        assert sorted(page for page, _ in ends) == list(all_pages(request))
        for page, loss in ends:
            assert loss == layout_loss(request, page) == pytest.approx(slow_loss(request, page), abs=1e-12)
            assert 0 <= loss <= 1


@pytest.mark.parametrize("requests", SMALL, ids=["5 items, 3 slots", "4 items, 4 slots", "3 items, 5 slots"])
def test_the_best_page_is_the_best_of_all(requests: list[Any]) -> None:
    for request in requests:
        pages = list(all_pages(request))
        assert best_layout(request) in pages and random_layout(request) in pages
        assert layout_loss(request, best_layout(request)) == min(layout_loss(request, page) for page in pages)


def test_the_best_page_is_the_best_of_all_at_the_default_size() -> None:
    for request in layout_data(3, seed=8):
        losses = [loss for _, loss in walk_all(request)]
        assert layout_loss(request, best_layout(request)) == min(losses)


def test_neighbours_change_clicks() -> None:
    def chances(topics: list[int], sizes: list[int]) -> list[float]:
        items = [{"topic": t, "size": z, "quality": 0.5, "freshness": 0.5} for t, z in zip(topics, sizes, strict=True)]
        page = [k for k, size in enumerate(sizes) for _ in range(size)]
        known = {"visibility": [0.5] * len(page), "user": [0.0] * 4, "relevance": [0.5] * len(items)}
        return list(click_chances({"number": 0, "items": items} | known, page).values())

    assert chances([0, 2, 4], [1, 1, 1]) == [0.25] * 3
    assert chances([0, 0, 4], [1, 1, 1]) == [0.25 * SAME, 0.25 * SAME, 0.25]
    assert chances([0, 0, 0], [1, 1, 1]) == pytest.approx([0.25 * SAME, 0.25 * SAME * SAME, 0.25 * SAME])
    assert chances([5, 0, 4], [1, 1, 1]) == [0.25, 0.25 * LEADS, 0.25]
    assert chances([0, 2, 4], [2, 1, 1]) == [0.375, 0.25 * SHADOW, 0.25]
    assert chances([0, 2], [2, 2]) == [0.375, 0.375]


def test_sampled_clicks_have_the_expected_mean_and_are_the_same_again() -> None:
    request = layout_data(3, seed=2)[2]
    page = best_layout(request)
    drawn = [layout_loss(request, page, feedback="sampled", seed=seed) for seed in range(4000)]
    assert drawn[:50] == [layout_loss(request, page, feedback="sampled", seed=seed) for seed in range(50)]
    assert {round(loss * 5, 9) for loss in drawn} <= {0, 1, 2, 3, 4, 5} and len(set(drawn)) > 3
    assert mean(drawn) == pytest.approx(layout_loss(request, page), abs=5 * np.std(drawn) / 4000**0.5)
    others = [layout_loss(request | {"number": k}, page, feedback="sampled") for k in range(50)]
    assert others != drawn[:50]


def test_data_are_the_same_again_and_plain_json() -> None:
    data = layout_data(20, seed=1)
    assert layout_data(30, seed=1)[:20] == data == json.loads(json.dumps(data)) and layout_data(20, seed=2) != data
    bare = [{name: value for name, value in request.items() if name != "relevance"} for request in data]
    assert layout_data(20, seed=1, truth=False) == bare
    assert all(0 < relevance < 1 for request in data for relevance in request["relevance"])


# --- the contract, rule and learner -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "slots"), [(8, 5), (1, 2), (3, 6), (8, 2)])
def test_the_space_keeps_the_contract_and_the_rule_is_legal_everywhere(items: int, slots: int) -> None:
    data = layout_data(8, seed=1, items=items, slots=slots)
    assert lols.checks.check_space(SPACE, data, REFERENCE, rollouts=6) == []


def test_compiled_and_plain_python_give_the_same_weights_pages_and_losses() -> None:
    data, held_out = layout_data(12, seed=1), layout_data(12, seed=2)
    one, other = (
        lols.train(SPACE, data, REFERENCE, learner=WEIGHTED, passes=2, seed=3, compiled=compiled)
        for compiled in (True, False)
    )
    assert one.policy.single_stack.tobytes() == other.policy.single_stack.tobytes()
    assert one.policy.stack.tobytes() == other.policy.stack.tobytes()
    pages = one.predict([{k: v for k, v in request.items() if k != "relevance"} for request in held_out])
    assert pages == other.predict(held_out)
    for model in (one, other):
        assert model.losses(held_out).tolist() == [layout_loss(r, page) for r, page in zip(held_out, pages)]


def test_the_rule_closes_half_of_the_gap_to_the_best_page_and_the_learner_half_of_what_is_left() -> None:
    held_out = layout_data(500, seed=101)
    model = lols.train(SPACE, layout_data(1000, seed=100), REFERENCE, learner=WEIGHTED, passes=4, seed=1)
    at_random = mean(layout_loss(r, random_layout(r, seed)) for r in held_out for seed in range(3))
    best = mean(layout_loss(r, best_layout(r)) for r in held_out)
    rule, learned = model.reference_losses(held_out, REFERENCE).mean(), model.evaluate(held_out)
    assert 0.5 < (at_random - rule) / (at_random - best) < 0.65
    assert (learned - best) / (rule - best) < 0.4


# --- what cannot be used ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": []}, "has 0 items, this space takes 1 to 8"),
        ({"user": [0.0]}, "has 1 numbers of the user: give 4"),
        ({"visibility": []}, "has no item that fits into 0 slots"),
        ({"relevance": [0.5]}, "has 1 relevances for 8 items"),
        ({"items": [{"topic": 0, "quality": 0.5, "freshness": 0.5, "size": 3}]}, "another size than 1 or 2"),
    ],
)
def test_requests_that_are_none_are_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^request 0 {message}|^request 0 has an item of {message}"):
        SPACE.encode(layout_data(1)[0] | change)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ([0, 1], "the page has 2 slots, the request 3"),
        ([0, 0, -1], "slot 1 has item 0, which is already shown or does not exist"),
        ([2, -1, -1], "slot 0 has item 2, which is already shown or does not exist"),
        ([0, 1, -1], "slot 1 has item 1, which takes 2 neighbouring slots"),
        ([0, -1, 1], "slot 1 is empty, but a later one is not"),
    ],
)
def test_pages_that_are_none_are_errors(page: list[int], message: str) -> None:
    items = [{"topic": k, "quality": 0.5, "freshness": 0.5, "size": 1 + k} for k in range(2)]
    known = {"number": 0, "user": [0.0] * 4, "visibility": [0.9, 0.5, 0.2], "relevance": [0.5, 0.5]}
    with pytest.raises(ConfigurationError, match=message):
        layout_loss(known | {"items": items}, page)
    with pytest.raises(ConfigurationError, match="unknown feedback 'clicks': choose expected or sampled"):
        layout_loss(known | {"items": items}, [0, 1, 1], feedback="clicks")
    with pytest.raises(ConfigurationError, match="give at least 0, 1 and 2"):
        layout_data(1, slots=1)
