"""Drawings of plans beside each other: the same instance, decided in different ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from lols.plots.look import check_plot, drawing, new_figure, save

SIDE = 4.2  # inches


Draw = Callable[[Any, Any, Any], None]


def side_by_side(
    draw: Draw, plans: Sequence[tuple[Any, Any]], titles: Sequence[str], path: str | os.PathLike[str]
) -> None:
    """Draw several plans in one figure: `draw(axes, instance, output)` for each instance with its output."""
    check_plot(path)
    save(plans_figure(draw, plans, titles), path)


@drawing
def plans_figure(draw: Draw, plans: Sequence[tuple[Any, Any]], titles: Sequence[str]) -> Any:
    """The drawing of `side_by_side` as a matplotlib figure."""
    figure = new_figure(SIDE * len(plans), SIDE)
    axes = figure.subplots(1, len(plans), sharex=True, sharey=True, squeeze=False)[0]
    for plan, axis, title in zip(plans, axes, titles, strict=True):
        axis.grid(visible=False)
        draw(axis, *plan)
        axis.set_title(title)
    return figure
