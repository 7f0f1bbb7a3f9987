"""The page layout as a world to try a bandit in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lols.bandit.worlds.layout import layout_data, layout_reference, layout_space
from lols.bandit.worlds.layout_clicks import best_layout, layout_loss, random_layout
from lols.bandit.worlds.world import Objects, World
from lols.contract.hashing import mix
from lols.front import train
from lols.learners.settings import LearnerSettings

__all__ = ["layout_world"]

HELD_OUT = 2000


def layout_world(*, clicks: bool = False, items: int = 8, slots: int = 5, held_out: int = HELD_OUT) -> World:
    """Pages for users whose interests the rule does not know.

    Parameters
    ----------
    clicks
        Whether a bandit sees clicks that were drawn, or their expected number.
    items, slots
        The size of a request.
    held_out
        How many requests policies are compared on.

    """
    space, rules = layout_space(items), layout_reference()

    def feedback(request: Any, page: Any, seed: int) -> float:
        return layout_loss(request, page, feedback="sampled" if clicks else "expected", seed=seed)

    def full_information(requests: Objects, seed: int) -> Callable[[Objects], list[Any]]:
        learner = LearnerSettings("hinge", "adagrad", margin="weighted")
        return train(space, requests, rules, learner=learner, passes=1, seed=seed, progress=False).predict

    return World(
        name="layout",
        space=space,
        rules=rules,
        arrivals=lambda count, seed: layout_data(count, abs(mix(seed, 1)), items=items, slots=slots),
        held_out=layout_data(held_out, 101, items=items, slots=slots),
        loss=layout_loss,
        feedback=feedback,
        at_random=random_layout,
        full_information=full_information,
        best=best_layout,
    )
