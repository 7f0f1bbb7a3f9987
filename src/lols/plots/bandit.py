"""A drawing of how a bandit's loss falls, beside what it is compared with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lols.plots.look import BLUE, GREEN, GREY, ORANGE, drawing, new_figure, save

APART = 0.055  # the distance between two labels, as a share of the height
OUTLYING = 0.45  # a line that would take more than this share of the height is named at the edge instead


def bandit_curves(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw how a bandit's loss falls, as PNG, SVG or PDF by the ending of the path.

    The result is what `lols.bandit.worlds.outcome.summarise` returns and `lols bandit simulate --json` prints: losses
    in windows of rounds, with bands over seeds (95 % intervals of the mean), beside the reference and other policies.

    Parameters
    ----------
    result
        What `summarise` returned.
    path
        A .png, .svg or .pdf to write.

    Examples
    --------
    >>> import tempfile; from pathlib import Path
    >>> path = tempfile.mkdtemp() + "/bandit.svg"
    >>> curve = {"rounds": [10, 20], "loss": [0.7, 0.6], "loss_interval": [0.1, 0.1]}
    >>> bandit_curves({"world": "layout", "rounds": 20, "seeds": [0, 1], "curve": curve, "reference_loss": 0.65}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'

    """
    save(bandit_figure(result), path)


@drawing
def bandit_figure(result: Mapping[str, Any]) -> Any:
    """The drawing of `bandit_curves` as a matplotlib figure."""
    curve = result["curve"]
    ends, loss = np.array(curve["rounds"]), np.array(curve["loss"])
    middles = (np.concatenate([[0], ends[:-1]]) + ends) / 2
    band = np.array(curve.get("loss_interval") or np.zeros(len(loss)))
    of_rounds = _levels(result, [("random", "random_loss", GREY), ("reference", "reference_loss", ORANGE)])
    held_out = _levels(
        result,
        [
            ("reference", "held_out_reference_loss", ORANGE),
            ("final policy", "policy_loss", BLUE),
            ("full information", "full_information_loss", GREEN),
            ("optimum", "optimum_loss", GREY),
        ],
    )
    lowest, highest = float((loss - band).min()), float((loss + band).max())
    levels = [lowest, highest, *(level.value for level in (*of_rounds, *held_out) if level.name != "random")]
    outlying = [k for k in of_rounds if k.value - max(levels) > OUTLYING * (k.value - min(levels))]
    of_rounds = [level for level in of_rounds if level not in outlying]
    figure = new_figure(9.6, 4.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
    left.fill_between(middles, loss - band, loss + band, color=BLUE, alpha=0.2, linewidth=0)
    left.plot(middles, loss, color=BLUE, linewidth=1.8)
    for level in of_rounds:
        left.axhline(level.value, color=level.colour, linewidth=1.2, zorder=1.5)
    for level in held_out:
        if level.name not in ("reference", "final policy"):
            left.axhline(level.value, color=level.colour, linewidth=1.0, linestyle=(0, (4, 4)), alpha=0.6)
        right.errorbar([0], [level.value], [level.spread], color=level.colour, capsize=4, linewidth=1.2)
        right.plot([-0.3, 0.3], [level.value] * 2, color=level.colour, linewidth=2.4, solid_capstyle="butt")
    left.set_xlim(0, result["rounds"])
    right.set_xlim(-0.5, 0.5)
    left.margins(y=0.08)
    _label(left, [LossLevel("bandit", float(loss[-1]), BLUE, printed=result.get("final_loss")), *of_rounds])
    _label(right, held_out)
    left.set_xlabel("rounds")
    left.set_ylabel("loss, mean of a window")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    right.set_xticks([])
    right.set_xlabel("held out")
    right.spines["left"].set_visible(False)
    right.tick_params(left=False, labelleft=False)
    left.set_title(_heading(result), pad=12)
    for level in outlying:
        text = f"{level.name} {level.value:.3f} ↑"
        left.text(0.995, 0.985, text, transform=left.transAxes, ha="right", va="top", fontsize=9, color=level.colour)
    return figure


class LossLevel(NamedTuple):
    """A loss to compare with: its label, value, colour, half the width of its interval, and the number to print."""

    name: str
    value: float
    colour: str
    spread: float = 0.0
    printed: float | None = None


def _levels(result: Mapping[str, Any], wanted: list[tuple[str, str, str]]) -> list[LossLevel]:
    spreads = result.get("intervals") or {}
    return [
        LossLevel(name, result[key], colour, spreads.get(key) or 0.0)
        for name, key, colour in wanted
        if result.get(key) is not None
    ]


def _heading(result: Mapping[str, Any]) -> str:
    seeds, closed = len(result["seeds"]), result.get("gap_closed")
    heading = f"{result['world']}: {result['rounds']:,} rounds" + (f", {seeds} seeds" if seeds > 1 else "")
    if closed is None:
        return heading
    if closed <= 0.0:
        return f"{heading}; the final policy is no better than the reference"
    spread = (result.get("intervals") or {}).get("gap_closed")
    more = "" if spread is None else f" ± {100 * spread:.0f}"
    return f"{heading}; {100 * closed:.0f}{more} % of the way from the reference to full information"


def _label(axes: Any, levels: list[LossLevel]) -> None:
    """Write labels at the right edge, each at its height or as near to it as the others allow."""
    low, high = axes.get_ylim()
    levels = sorted(levels, key=lambda level: level.value)
    heights = [(level.value - low) / (high - low) for level in levels]
    for _ in range(200):  # neighbours push each other apart
        for k in range(len(heights) - 1):
            lacking = APART - (heights[k + 1] - heights[k])
            if lacking > 1e-6:
                heights[k], heights[k + 1] = heights[k] - lacking / 2, heights[k + 1] + lacking / 2
    for height, level in zip(heights, levels):
        text = f"{level.name} {level.value if level.printed is None else level.printed:.3f}"
        place = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
        axes.annotate(text, (1.0, height), (8, 0), va="center", color=level.colour, fontsize=9, **place)
