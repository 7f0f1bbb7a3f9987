"""Candidates with features of their own: a page is put together from stories, slot by slot.

    python examples/layout.py

A decision puts one of eight stories into the next of five slots. Which stories there are changes from page to page, so
an action has no meaning of its own: what counts is what `action_features` says about it. The teacher is the rule that
runs today, the best story first and no topic twice in a row. How readers really click is in the training data only.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from helpers import comparing, drawing

import lols
from lols import emit, feature
from lols.plots.plans import side_by_side

__all__ = ["Page", "best_page", "draw", "pages", "show"]

SLOTS, STORIES = 5, 8
SEEN = (0.9, 0.75, 0.6, 0.45, 0.35)  # how many readers look at each slot
TOPICS = ("news", "sport", "music", "travel", "food")
AGAIN, LEADS = 0.6, 1.3  # a topic that was there before is clicked less, one that the story before leads on to, more
LEARNER = lols.LearnerSettings("hinge", "adagrad", margin="weighted")
BEST = "the best page"


def again(x, s, slot, story):
    """How often the topic of a story is on the page before a slot."""
    count = 0
    for k in range(slot):
        count += x.topic[s[1 + k]] == x.topic[story]
    return count


def before(x, s, slot):
    """The topic of the story before a slot, -1 for the first."""
    return x.topic[s[slot]] if slot > 0 else -1


def clicks(x, y, s, slot):
    """How many readers click on the story in a slot."""
    story = s[1 + slot]
    follows = slot > 0 and x.topic[story] == (before(x, s, slot) + 1) % len(TOPICS)
    return SEEN[slot] * y.liked[story] * AGAIN ** again(x, s, slot, story) * (LEADS if follows else 1.0)


def rule(x, s):
    """The rule that runs today: the story of the best quality, of another topic than the one before if it can be."""
    best, chosen = -9.0, 0
    for a in range(STORIES):
        score = x.quality[a] - (x.topic[a] == before(x, s, s[0]))
        for slot in range(s[0]):
            score -= 9.0 * (s[1 + slot] == a)
        if score > best:
            best, chosen = score, a
    return chosen


class Page(lols.Task):
    """The state: how many slots are filled, and the story in each."""

    needs_truth = False
    sizes = lols.Sizes(state=1 + SLOTS, steps=SLOTS, actions=STORIES, features=0, action_features=6)
    columns = lols.Columns(x=("topic", "quality", "interest"), y="liked")

    def actions(x, s, legal):
        legal[:] = s[0] < SLOTS
        for slot in range(s[0]):
            legal[s[1 + slot]] = False

    def step(x, s, a):
        s[1 + s[0]] = a
        s[0] += 1

    def action_features(x, s, a, out):
        emit(out, feature(0, s[0]), x.quality[a])
        emit(out, feature(1, x.topic[a]))
        emit(out, feature(2, s[0]), x.interest[x.topic[a]])
        emit(out, feature(3, min(again(x, s, s[0], a), 2)))
        emit(out, feature(4, before(x, s, s[0]), x.topic[a]))

    def loss(x, y, s):
        missed = SLOTS * 1.0
        for slot in range(SLOTS):
            missed -= clicks(x, y, s, slot)
        return missed

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        return rule(x, s)


# --- the world, and what is possible in it ---


def pages(count: int, seed: int) -> list[dict[str, Any]]:
    """Stories to choose from, with the editors' estimate of their quality, for a reader with interests."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        topic, quality, interest = rng.integers(len(TOPICS), size=STORIES), rng.random(STORIES), rng.random(len(TOPICS))
        liked = 1.0 / (1.0 + np.exp(4.0 - 3.0 * quality - 4.0 * interest[topic] + 0.3 * rng.normal(size=STORIES)))
        made.append({"topic": topic, "quality": quality, "interest": interest, "liked": liked})
    return made


ORDERS = np.array(list(itertools.permutations(range(STORIES), SLOTS)))


def best_page(page: dict[str, Any]) -> tuple[float, list[int]]:
    """The least loss that a page can have, and its stories, from all of them."""
    topics = page["topic"][ORDERS]
    chances = np.array(SEEN) * page["liked"][ORDERS]
    for slot in range(SLOTS):
        chances[:, slot] *= AGAIN ** (topics[:, :slot] == topics[:, slot, np.newaxis]).sum(axis=1)
        if slot > 0:
            chances[:, slot] *= np.where(topics[:, slot] == (topics[:, slot - 1] + 1) % len(TOPICS), LEADS, 1.0)
    losses = SLOTS - chances.sum(axis=1)
    return float(losses.min()), ORDERS[losses.argmin()].tolist()


def draw(page: dict[str, Any], order: list[int]) -> str:
    """A page as text: for each slot the topic, the editors' estimate, the reader's interest, and the clicks."""
    lines = []
    for slot, (story, clicked) in enumerate(zip(order, clicked_slots(page, order))):
        topic = page["topic"][story]
        facts = f"quality {page['quality'][story]:.2f}  interest {page['interest'][topic]:.2f}  clicks {clicked:.2f}"
        lines.append(f"{slot + 1}. {TOPICS[topic]:<7} {facts}  {'#' * round(20 * clicked)}")
    return "\n".join(lines)


def clicked_slots(page: dict[str, Any], order: list[int]) -> list[float]:
    """How many readers click on each slot of a page."""
    x, y = lols.Examples(Page, [page]).example(0)
    return [float(clicks(x, y, [SLOTS, *order], slot)) for slot in range(SLOTS)]


def show(axes: Any, page: dict[str, Any], order: list[int]) -> None:
    """Draw a box for each slot, as high as the share of readers who see it, with a bar for its clicks."""
    top = 0.0
    for story, clicked, seen in zip(order, clicked_slots(page, order), SEEN):
        topic, middle = page["topic"][story], top - 0.5 * seen
        facts = f"{TOPICS[topic]}, quality {page['quality'][story]:.2f}, interest {page['interest'][topic]:.2f}"
        axes.barh(middle, 1.0, seen - 0.02, color=drawing.COLOURS[topic], alpha=0.25)
        axes.barh(top - seen + 0.05, clicked, 0.06, color=drawing.BLUE)
        axes.text(0.02, middle + 0.02, facts, va="center", fontsize=9)
        top -= seen
    axes.set(xlim=(0, 1), ylim=(top, 0), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def main(argv: list[str] | None = None) -> None:
    """Learn, compare, show."""
    chosen = comparing.options(__doc__ or "", argv, size=1000, pictures=True)
    began = time.perf_counter()
    train, test = pages(chosen.size, chosen.seed + 1), pages(chosen.tests, chosen.seed + 1000)
    losses, model = comparing.compare(Page, train, test, chosen, learner=LEARNER, passes=3)
    losses[BEST] = np.array([[best_page(page)[0] for page in test]])
    comparing.show(losses, BEST, "slots without a click", chosen, began)
    page = test[comparing.typical(losses)]
    orders = {"the rule": comparing.follow(Page, page), "LOLS": model.predict_one(page)}
    titles = [f"{name}: {sum(clicked_slots(page, order)):.2f} clicks" for name, order in orders.items()]
    if not chosen.json:
        for title, order in zip(titles, orders.values()):
            print(f"\n{title}\n{draw(page, order)}")
    if chosen.svg:
        side_by_side(show, [(page, order) for order in orders.values()], titles, chosen.svg)


if __name__ == "__main__":
    main()
