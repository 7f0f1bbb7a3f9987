"""Drawings of plans beside each other: the same instance, decided in different ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from lols.plots.look import check_plot, drawing, new_figure, save

__all__ = ["side_by_side"]

SIDE = 4.2  # inches


def side_by_side(draw: Sequence[Callable[[Any], None]], titles: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Draw several plans in one figure; each function draws on the axes that it is given."""
    check_plot(path)
    save(_figure(draw, titles), path)


@drawing
def _figure(draw: Sequence[Callable[[Any], None]], titles: Sequence[str]) -> Any:
    figure = new_figure(SIDE * len(draw), SIDE)
    axes = figure.subplots(1, len(draw), sharex=True, sharey=True, squeeze=False)[0]
    for one, axis, title in zip(draw, axes, titles, strict=True):
        axis.grid(visible=False)
        one(axis)
        axis.set_title(title)
    return figure
