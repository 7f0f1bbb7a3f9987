"""Clicks on a page: the hidden click model of `layout`, its feedback, and the best page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lols.errors import ConfigurationError
from lols.kernels.hashing import mix, unit

Request = Mapping[str, Any]

TOPICS, LARGE = 6, 2
EMPTY = -1  # an empty slot

# Neighbours with the same topic get fewer clicks. A topic leads to the one with the next number: an item of that topic
# gets more clicks after it. After a large item, one of size 1 gets fewer.
SAME, LEADS, SHADOW = 0.55, 1.3, 0.75


# --- the click model --------------------------------------------------------------------------------------------------


def seen(visibility, slot, size):
    """The chance that an item is looked at; a large one, if either of its slots is."""
    missed = 1.0
    for k in range(size):
        missed *= 1.0 - visibility[slot + k]
    return 1.0 - missed


def from_before(topic_before, size_before, topic, size):
    """The factor on the clicks on an item by the item before it."""
    factor = 1.0
    if topic == topic_before:
        factor *= SAME
    if topic == (topic_before + 1) % TOPICS:
        factor *= LEADS
    if size < size_before:
        factor *= SHADOW
    return factor


def from_behind(topic, topic_behind):
    """The factor on the clicks on an item by the item after it."""
    return SAME if topic == topic_behind else 1.0


# --- feedback ---------------------------------------------------------------------------------------------------------


def layout_loss(request: Request, page: Sequence[int], *, feedback: str = "expected", seed: int = 0) -> float:
    """The loss of a page for a request with relevances: 1 minus clicks per slot.

    Parameters
    ----------
    request, page
        A request of `layout_data`, and a page as the space's `output` returns it.
    feedback
        `"expected"`: the expected number of clicks; `"sampled"`: clicks drawn for each item, by the seed, the number of
        the request, the item and the slot.
    seed
        The seed of the clicks.

    Examples
    --------
    >>> request = {"number": 0, "visibility": [0.8, 0.5], "user": [0.0] * 4, "relevance": [0.5, 0.2], "items": [
    ...     {"topic": 1, "quality": 0.6, "freshness": 0.1, "size": 1},
    ...     {"topic": 4, "quality": 0.5, "freshness": 0.9, "size": 2}]}
    >>> round(layout_loss(request, [0, -1]), 3), round(layout_loss(request, [1, 1]), 3)
    (0.8, 0.91)
    >>> layout_loss(request, [0, -1], feedback="sampled", seed=3)
    0.5

    """
    chances = click_chances(request, page)
    if feedback == "expected":
        clicks = 0.0
        for chance in chances.values():  # in order, like the space's loss: `sum` may round differently
            clicks += chance
    elif feedback == "sampled":
        key = mix(mix(seed, 0xC11C), request["number"])
        clicks = float(sum(unit(mix(mix(key, item), page.index(item))) < chance for item, chance in chances.items()))
    else:
        raise ConfigurationError(f"unknown feedback '{feedback}': choose expected or sampled")
    return 1.0 - clicks / len(page)


def click_chances(request: Request, page: Sequence[int]) -> dict[int, float]:
    """The chance of a click on each item of a page, in the order of the page.

    >>> from lols.bandit.worlds.layout import layout_data
    >>> request = layout_data(1)[0]
    >>> all(0.0 < chance < 1.0 for chance in click_chances(request, best_layout(request)).values())
    True
    """
    items, visibility, relevance = request["items"], request["visibility"], request["relevance"]
    shown = _items_of(request, page)
    chances: dict[int, float] = {}
    for k, item in enumerate(shown):
        this, slot = items[item], page.index(item)
        chance = seen(visibility, slot, this["size"]) * relevance[item]
        if k > 0:
            before = items[shown[k - 1]]
            chance *= from_before(before["topic"], before["size"], this["topic"], this["size"])
        if k + 1 < len(shown):
            chance *= from_behind(this["topic"], items[shown[k + 1]]["topic"])
        chances[item] = min(chance, 1.0)
    return chances


def _items_of(request: Request, page: Sequence[int]) -> list[int]:
    """The items of a page in order; an error if the page is invalid."""
    items, slot, shown = request["items"], 0, list[int]()
    if len(page) != len(request["visibility"]):
        raise ConfigurationError(f"the page has {len(page)} slots, the request {len(request['visibility'])}")
    while slot < len(page) and page[slot] != EMPTY:
        item = page[slot]
        if not 0 <= item < len(items) or item in shown:
            raise ConfigurationError(f"slot {slot} has item {item}, which is already shown or does not exist")
        size = items[item]["size"]
        if list(page[slot : slot + size]) != [item] * size:
            raise ConfigurationError(f"slot {slot} has item {item}, which takes {size} neighbouring slots")
        shown.append(item)
        slot += size
    if any(item != EMPTY for item in page[slot:]):
        raise ConfigurationError(f"slot {slot} is empty, but a later one is not: pages are filled from the front")
    return shown


# --- pages ------------------------------------------------------------------------------------------------------------


def random_layout(request: Request, seed: int = 0) -> list[int]:
    """A page whose items are drawn in order, each from those that fit; the same for the same seed.

    >>> from lols.bandit.worlds.layout import layout_data
    >>> request = layout_data(1)[0]
    >>> random_layout(request, 1) == random_layout(request, 1) != random_layout(request, 2)
    True
    """
    key, sizes, slots = mix(mix(seed, 0xD1CE), request["number"]), _sizes(request), len(request["visibility"])
    page: list[int] = []
    while True:
        fitting = [item for item, size in enumerate(sizes) if size <= slots - len(page) and item not in page]
        if not fitting:
            return page + [EMPTY] * (slots - len(page))
        item = fitting[int(unit(mix(key, len(page))) * len(fitting))]
        page += [item] * sizes[item]


def best_layout(request: Request) -> list[int]:
    """The page with the most expected clicks, by branch and bound: exact, for requests of about the default size.

    >>> from lols.bandit.worlds.layout import layout_data
    >>> request = layout_data(1)[0]
    >>> layout_loss(request, best_layout(request)) <= layout_loss(request, random_layout(request))
    True
    """
    items, visibility, relevance = request["items"], request["visibility"], request["relevance"]
    sizes, slots = _sizes(request), len(visibility)
    order = sorted(range(len(items)), key=lambda item: -relevance[item])
    # an upper bound: no slot is worth more than its visibility times the largest factor
    worth = [LEADS * sum(visibility[slot:]) for slot in range(slots + 1)]
    best: tuple[float, list[int]] = (-1.0, [])

    def search(page: list[int], before: int, settled: float, chance: float) -> None:
        """Extend a page; `settled` are the clicks on its items but the last, `chance` is that of the last."""
        nonlocal best
        slot, full = len(page), True
        left = [item for item in order if item not in page]
        if left and settled + chance + worth[slot] * relevance[left[0]] <= best[0]:
            return
        for item in left:
            if sizes[item] > slots - slot:
                continue
            full = False
            own, done = seen(visibility, slot, sizes[item]) * relevance[item], settled
            if before >= 0:
                was, this = items[before], items[item]
                own *= from_before(was["topic"], was["size"], this["topic"], this["size"])
                done += min(chance * from_behind(was["topic"], this["topic"]), 1.0)
            search(page + [item] * sizes[item], item, done, own)
        if full and settled + min(chance, 1.0) > best[0]:
            best = settled + min(chance, 1.0), page + [EMPTY] * (slots - slot)

    search([], -1, 0.0, 0.0)
    return best[1]


def _sizes(request: Request) -> list[int]:
    return [item["size"] for item in request["items"]]
