"""What the drawings of plans share: colours for light and dark pages, maps, trips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.plots.look import BLUE, EDGE, GOLD, GREEN, GREY, LINE, ORANGE, PURPLE, SOFT, TEXT

__all__ = ["BLUE", "COLOURS", "EDGE", "LINE", "ORANGE", "SOFT", "TEXT", "empty_map", "trip"]

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, GOLD, GREY)


def empty_map(axes: Any) -> None:
    """Make the axes a map: without ticks, as wide as high."""
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.06)


def trip(axes: Any, places: np.ndarray, order: Sequence[int]) -> None:
    """Draw a round trip."""
    axes.plot(*places[[*order, order[0]]].T, color=BLUE, linewidth=2)
    axes.plot(*places.T, "o", color=TEXT, markersize=4)
    empty_map(axes)
