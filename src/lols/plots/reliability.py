"""A drawing of how reliable confidence is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.plots.look import BLUE, LINE, SERIES, SOFT, drawing, new_figure, save

__all__ = ["reliability_plot"]


def reliability_plot(seen: Any, path: str | os.PathLike[str]) -> None:
    """Draw how often decisions were right, by confidence, as PNG, SVG or PDF by the ending of the path.

    `seen` is a `Reliability`, or several by name. Below is how many decisions had which confidence.

    >>> import tempfile; from pathlib import Path; from lols.training.calibration import Reliability
    >>> path = tempfile.mkdtemp() + "/reliability.svg"
    >>> reliability_plot(Reliability.of(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False])), path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    save(_figure(seen if isinstance(seen, Mapping) else {"": seen}), path)


@drawing
def _figure(seen: Mapping[str, Any]) -> Any:
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
    above.set_title(f"calibration error {', '.join(errors)} on {decisions:,} decisions")
    above.set_ylabel("share that is right")
    above.set_ylim(0.0, 1.02)
    below.set_yscale("log")
    below.set_ylabel("share of decisions", color=SOFT if len(seen) > 1 else BLUE)
    below.set_xlabel("confidence")
    below.set_xlim(0.0, 1.02)
    return figure
