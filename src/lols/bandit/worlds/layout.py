"""Page layout as a world for the bandit: fill a page with some of the candidate items; the only feedback is clicks.

A request has a user (a few numbers), the visibility of the page's slots, and candidate items with topic, quality
estimate, freshness and size. A decision puts one of the remaining items that fit into the next free slot; a large item
takes two slots. Features and the current system do not see how relevant each item is for this user, nor how neighbours
change each other's clicks. A click on every slot is a loss of 0, no click at all a loss of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lols.bandit.worlds.layout_clicks import (
    LARGE,
    TOPICS,
    Request,
    best_layout,
    click_chances,
    from_before,
    from_behind,
    layout_loss,
    random_layout,
    seen,
)
from lols.bandit.worlds.world import Objects, World
from lols.contract.features import emit, feature
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError
from lols.front import train
from lols.kernels.hashing import mix
from lols.learners.settings import LearnerSettings

__all__ = [
    "best_layout",
    "click_chances",
    "layout_data",
    "layout_loss",
    "layout_reference",
    "layout_space",
    "layout_world",
    "random_layout",
]

USER = 4  # numbers that describe a user
HELD_OUT = 2000

# The relevance of an item depends on its quality, its size, and (by topic, drawn once for the world) on the user's
# interest and on how much freshness counts.
BASE, QUALITY, BONUS, INTEREST, FRESH, NOISE = -0.3, 1.8, 0.9, 0.8, 0.8, 0.1


# --- the space --------------------------------------------------------------------------------------------------------


def layout_space(items: int = 8) -> SearchSpace:
    """The search space of requests with at most `items` candidates; an action is the number of a candidate.

    The output is the page: the number of the item in each slot, -1 for an empty slot.

    >>> import lols
    >>> model = lols.train(layout_space(), layout_data(20), layout_reference(), passes=1, compiled=False)
    >>> request = layout_data(1, seed=1)[0]
    >>> page = model.predict_one(request)
    >>> len(page), 0.0 <= layout_loss(request, page) <= 1.0
    (5, True)
    """

    def encode(request: Request) -> Example:
        return _encode(request, items)

    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        action_features=_action_features,
        loss=_loss,
        output=_output,
        encode=encode,
        sizes=Sizes(
            state=lambda x: 1 + len(x.visibility),
            actions=items,
            features=2,
            steps=lambda x: len(x.visibility),
            action_features=ACTION_FEATURES,
        ),
        name="lols.bandit.layout",
    )


# The state: the number of filled slots, then for each slot the number of its item plus 1, or 0.


def _start(x, s):
    pass


def _actions(x, s, legal):
    left = len(x.visibility) - s[0]
    for a in range(len(x.size)):
        legal[a] = x.size[a] <= left
    for slot in range(s[0]):
        legal[s[1 + slot] - 1] = False


def _step(x, s, a):
    for _ in range(x.size[a]):
        s[1 + s[0]] = a + 1
        s[0] += 1


def _before(s):
    """The item in the slot before the next free one, -1 on an empty page."""
    return s[s[0]] - 1 if s[0] > 0 else -1


def _features(x, s, out):
    before = _before(s)
    emit(out, feature(0, s[0]))
    emit(out, feature(1, len(x.visibility) - s[0], x.size[before] if before >= 0 else 0))


ACTION_FEATURES = 13 + USER


def _action_features(x, s, a, out):
    topic, size, slot, left = x.topic[a], x.size[a], s[0], len(x.visibility) - s[0]
    before = _before(s)
    topic_before, size_before = (x.topic[before], x.size[before]) if before >= 0 else (-1, 0)
    quality, fresh = 2.0 * x.quality[a] - 1.0, 2.0 * x.freshness[a] - 1.0
    emit(out, feature(10, topic))
    emit(out, feature(11, size, slot))
    emit(out, feature(12, size, left))
    emit(out, feature(13), quality)
    emit(out, feature(14, size), quality)
    emit(out, feature(15, slot), quality)
    emit(out, feature(16, topic), fresh)
    emit(out, feature(17, topic == topic_before))
    emit(out, feature(18, topic_before, topic))
    emit(out, feature(19, size_before, size))
    emit(out, feature(20, topic == topic_before), quality)
    for k in range(len(x.user)):
        emit(out, feature(21, k, topic), x.user[k])
    alike = following = 0
    for other in range(len(x.topic)):
        if other != a and not _shown(s, other):
            alike += x.topic[other] == topic
            following += x.topic[other] == (topic + 1) % TOPICS
    emit(out, feature(22, min(alike, 3)))
    emit(out, feature(23, min(following, 2), min(left - size, 1)))


def _shown(s, item):
    for slot in range(s[0]):
        if s[1 + slot] == item + 1:
            return True
    return False


def _loss(x, y, s):
    clicks, slot, before, chance = 0.0, 0, -1, 0.0
    while slot < s[0]:
        item = s[1 + slot] - 1
        own = seen(x.visibility, slot, x.size[item]) * y.relevance[item]
        if before >= 0:
            own *= from_before(x.topic[before], x.size[before], x.topic[item], x.size[item])
            clicks += min(chance * from_behind(x.topic[before], x.topic[item]), 1.0)
        before, chance = item, own
        slot += x.size[item]
    clicks += min(chance, 1.0)
    return 1.0 - clicks / len(x.visibility)


def _output(x: Any, s: np.ndarray) -> list[int]:
    return [int(item) - 1 for item in s[1:]]


def _encode(request: Request, most: int) -> Example:
    items, truth = request["items"], request.get("relevance")
    where = f"request {request.get('number', '')}".strip()
    if not 1 <= len(items) <= most:
        raise ConfigurationError(
            f"{where} has {len(items)} items, this space takes 1 to {most}: give layout_space(items=...)"
        )
    if len(request["user"]) != USER:
        raise ConfigurationError(f"{where} has {len(request['user'])} numbers of the user: give {USER}")
    if any(item["size"] not in (1, LARGE) for item in items):
        raise ConfigurationError(f"{where} has an item of another size than 1 or {LARGE}")
    if min(item["size"] for item in items) > len(request["visibility"]):
        raise ConfigurationError(f"{where} has no item that fits into {len(request['visibility'])} slots: give more")
    if truth is not None and len(truth) != len(items):
        raise ConfigurationError(f"{where} has {len(truth)} relevances for {len(items)} items: give one for each")
    x = {
        "user": np.array(request["user"], np.float64),
        "visibility": np.array(request["visibility"], np.float64),
        "topic": np.array([item["topic"] for item in items], np.int64),
        "size": np.array([item["size"] for item in items], np.int64),
        "quality": np.array([item["quality"] for item in items], np.float64),
        "freshness": np.array([item["freshness"] for item in items], np.float64),
    }
    return Example(x, None if truth is None else {"relevance": np.array(truth, np.float64)})


# --- the current system -----------------------------------------------------------------------------------------------


def layout_reference() -> Reference:
    """The current system: the best quality estimate first, different topics side by side, large items preferred a bit.

    It ignores the user, and does not need the truth.

    >>> layout_reference().needs_truth
    False
    """
    return Reference(action=_rule, needs_truth=False, name="layout rule")


def _rule(x, y, s):
    left, before = len(x.visibility) - s[0], _before(s)
    best, chosen = -1.0e9, -1
    for a in range(len(x.size)):
        if x.size[a] <= left and not _shown(s, a):
            score = x.quality[a]
            if before >= 0 and x.topic[a] == x.topic[before]:
                score -= 0.5
            if x.size[a] == LARGE:
                score += 0.2
            if score > best:
                best, chosen = score, a
    return chosen


# --- requests ---------------------------------------------------------------------------------------------------------


def layout_data(
    count: int, seed: int = 0, *, items: int = 8, slots: int = 5, truth: bool = True
) -> list[dict[str, Any]]:
    """Requests as JSON-like dictionaries, with the relevances of their items unless `truth` is False.

    >>> first, second = layout_data(2, seed=7)
    >>> sorted(first), len(first["items"]), len(first["visibility"])
    (['items', 'number', 'relevance', 'user', 'visibility'], 8, 5)
    >>> layout_data(1, seed=7) == [first]
    True
    """
    if count < 0 or items < 1 or slots < LARGE:
        raise ConfigurationError(f"{count} requests, {items} items, {slots} slots: give at least 0, 1 and {LARGE}")
    rng, world = np.random.default_rng(seed), np.random.default_rng(2015)
    interests = world.normal(size=(TOPICS, USER))
    fresh = FRESH * world.uniform(-0.5, 1.0, size=TOPICS)
    visibility = [round(0.9 * 0.82**slot, 3) for slot in range(slots)]
    requests: list[dict[str, Any]] = []
    for number in range(count):
        user = np.round(rng.uniform(-1.0, 1.0, USER), 3)
        topics, sizes = rng.integers(TOPICS, size=items), 1 + (rng.random(items) < 0.3)
        quality, freshness = np.round(rng.random((2, items)), 3)
        score = BASE + QUALITY * (2.0 * quality - 1.0) + BONUS * (sizes - 1) + fresh[topics] * (2.0 * freshness - 1.0)
        score += INTEREST * (interests[topics] @ user) + NOISE * rng.normal(size=items)
        request: dict[str, Any] = {
            "number": number,
            "user": user.tolist(),
            "visibility": list(visibility),
            "items": [
                {"topic": t, "quality": q, "freshness": f, "size": z}
                for t, q, f, z in zip(topics.tolist(), quality.tolist(), freshness.tolist(), sizes.tolist())
            ],
        }
        if truth:
            request["relevance"] = np.round(1.0 / (1.0 + np.exp(-score)), 4).tolist()
        requests.append(request)
    return requests


# --- the world --------------------------------------------------------------------------------------------------------


def layout_world(*, clicks: bool = False, items: int = 8, slots: int = 5, held_out: int = HELD_OUT) -> World:
    """Pages for users whose interests the current system does not know.

    Parameters
    ----------
    clicks
        Whether the feedback is clicks that were drawn, or their expected number.
    items
        The candidates of a request.
    slots
        The slots of the page to be filled with them.
    held_out
        The number of requests to compare policies on.

    """
    space, reference = layout_space(items), layout_reference()

    def feedback(request: Any, page: Any, seed: int) -> float:
        return layout_loss(request, page, feedback="sampled" if clicks else "expected", seed=seed)

    def full_information(requests: Objects, seed: int) -> Callable[[Objects], list[Any]]:
        learner = LearnerSettings("hinge", "adagrad", margin="weighted")
        return train(space, requests, reference, learner=learner, passes=1, seed=seed, progress=False).predict

    return World(
        name="layout",
        space=space,
        reference=reference,
        arrivals=lambda count, seed: layout_data(count, abs(mix(seed, 1)), items=items, slots=slots),
        held_out=layout_data(held_out, 101, items=items, slots=slots),
        loss=layout_loss,
        feedback=feedback,
        at_random=random_layout,
        full_information=full_information,
        best=best_layout,
    )
