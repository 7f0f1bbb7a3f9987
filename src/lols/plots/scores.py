"""Drawings of scores: a confusion matrix, and how reliable confidence is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.plots.look import BLUE, EDGE, LINE, SERIES, SOFT, TEXT, drawing, new_figure, save, shortened

NUMBERED = 16  # classes up to which the cells have numbers
GAMMA = 0.6  # below 1, so that small shares differ visibly from none
DARK = 0.6  # cells darker than this have white numbers
TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


def confusion(scores: Any, path: str | os.PathLike[str]) -> None:
    """Draw a confusion matrix, as PNG, SVG or PDF by the ending of the path.

    Colours are shares of a row, so that rare classes show as well as frequent ones; the numbers are counts.

    Parameters
    ----------
    scores
        What `evaluate` of a classifier returned.
    path
        A .png, .svg or .pdf to write.

    Examples
    --------
    >>> import tempfile; from pathlib import Path; from lols.tasks.tables.scores import scores_of_confusion
    >>> path = tempfile.mkdtemp() + "/mistakes.svg"
    >>> confusion(scores_of_confusion(["no", "yes"], np.array([[8, 1], [2, 5]]), None), path)
    >>> Path(path).read_text()[:5]
    '<?xml'

    """
    save(_confusion(scores), path)


@drawing
def _confusion(scores: Any) -> Any:
    classes = [shortened(str(name)) for name in scores.classes]
    counts = np.asarray(scores.confusion)
    colours = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)) ** GAMMA
    size, longest = len(classes), max(map(len, classes))
    numbered = size <= NUMBERED
    cell = 0.85 if size <= 8 else 0.62 if numbered else max(0.16, 0.3 - 0.002 * size)  # inches
    font = 10 if size <= 8 else 8 if numbered else max(4.0, min(8.0, 60 * cell * 0.6))
    margin = 0.075 * longest * font / 10 + 0.75
    figure = new_figure(max(size * cell + margin + 1.1, 4.6), size * cell + margin + 0.85)
    axes = figure.subplots()
    image = axes.imshow(colours, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    slanted = longest * font * 0.6 / 72 > cell
    axes.set_xticks(range(size), classes, fontsize=font, rotation=90 if slanted else 0)
    axes.set_yticks(range(size), classes, fontsize=font)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_xticks(np.arange(1, size) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, size) - 0.5, minor=True)
    axes.grid(visible=False)
    axes.grid(visible=True, axis="both", which="minor", color=EDGE, linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(True)
    title = f"cost {scores.cost:.4f}, error {100 * scores.error:.2f} % on {scores.rows:,} rows"
    axes.set_title(title, pad=10, loc="center")
    if numbered:
        _numbers(axes, counts, colours, cell, font)
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.04, ticks=[share**GAMMA for share in TICKS])
    bar.ax.set_yticklabels([f"{100 * share:g} %" for share in TICKS], fontsize=8)
    bar.outline.set_visible(False)
    bar.ax.set_ylabel("share of the true class", fontsize=9)
    return figure


def _numbers(axes: Any, counts: np.ndarray, colours: np.ndarray, cell: float, font: float) -> None:
    for (true, predicted), count in np.ndenumerate(counts):
        text = f"{count:,}" if count else "·"
        fits = min(font, cell * 72 * 0.92 / (0.58 * len(text)))
        colour = "white" if colours[true, predicted] > DARK else TEXT if count else "#aaaaaa"
        axes.text(predicted, true, text, ha="center", va="center", color=colour, fontsize=fits)


def reliability_plot(seen: Any, path: str | os.PathLike[str]) -> None:
    """Draw how often decisions were right, by confidence, as PNG, SVG or PDF by the ending of the path.

    `seen` is a `Reliability`, or several by name. Below is how many decisions had which confidence.

    Parameters
    ----------
    seen
        A `Reliability`, or several by name.
    path
        A .png, .svg or .pdf to write.

    Examples
    --------
    >>> import tempfile; from pathlib import Path; from lols.training.calibration import Reliability
    >>> path = tempfile.mkdtemp() + "/reliability.svg"
    >>> reliability_plot(Reliability.of(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False])), path)
    >>> Path(path).read_text()[:5]
    '<?xml'

    """
    save(reliability_figure(seen if isinstance(seen, Mapping) else {"": seen}), path)


@drawing
def reliability_figure(seen: Mapping[str, Any]) -> Any:
    """The drawing of `reliability_plot` as a matplotlib figure."""
    figure = new_figure(5.2, 6.0)
    above, below = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    above.plot([0, 1], [0, 1], color=LINE, linewidth=1.2)
    errors = []
    for (name, each), style in zip(seen.items(), SERIES, strict=False):
        rows = each.rows()
        where, right = ([row[key] for row in rows] for key in ("confidence", "accuracy"))
        above.plot(where, right, label=name, **style)
        errors.append(f"{name} {each.error:.4f}".strip())
        total = max(each.counts.sum(), 1.0)
        at = (np.arange(each.counts.size) + 0.5) / each.counts.size
        below.plot(at, each.counts / total, color=style["color"], drawstyle="steps-mid")
    if len(seen) > 1:
        above.legend(loc="upper left")
    decisions = int(next(iter(seen.values())).counts.sum())
    above.set_title(f"calibration error {', '.join(errors)}\non {decisions:,} decisions")
    above.set_ylabel("share that is right")
    above.set_ylim(0.0, 1.02)
    below.set_yscale("log")
    below.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    below.yaxis.set_minor_formatter(lambda value, _: "")
    below.set_ylim(top=1.0)
    below.set_ylabel("share of decisions", color=SOFT if len(seen) > 1 else BLUE)
    below.set_xlabel("confidence")
    below.set_xlim(0.0, 1.02)
    return figure
