"""Drawings of a certificate: where in the trajectory regret arises, and on which decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lols.plots.look import BLUE, GREEN, TEXT, drawing, new_figure, save, shortened

LONGEST = 44  # characters of a decision
# Of each bar: its height, how far its interval is from the middle, colour, how much it covers, and name.
WAYS = (("hindsight", 0.74, -0.28, BLUE, 0.4, "hindsight"), ("in_class", 0.38, 0.0, GREEN, 1.0, "in class"))


def regret_plot(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw regret by step and by decision, as PNG, SVG or PDF by the ending of the path.

    The result is what `Certificate.as_dict` returns and `lols certify --json` prints. Bars have 95 % intervals.

    Parameters
    ----------
    result
        What `Certificate.as_dict` returned.
    path
        A .png, .svg or .pdf to write.

    Examples
    --------
    >>> import tempfile; from pathlib import Path
    >>> path = tempfile.mkdtemp() + "/regret.svg"
    >>> much, some = ({"value": v, "low": v / 2, "high": v * 2} for v in (0.2, 0.1))
    >>> steps = [{"step": "1", "decisions": 5, "hindsight": much, "in_class": some}]
    >>> decisions = [{"taken": "N", "better": "V", "decisions": 5, "hindsight": much, "in_class": some}]
    >>> regret_plot({"by_step": steps, "by_decision": decisions, "verdict": "locally optimal", "examples": 9}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'

    """
    save(regret_figure(result), path)


@drawing
def regret_figure(result: Mapping[str, Any]) -> Any:
    """The drawing of `regret_plot` as a matplotlib figure."""
    steps, decisions = list(result["by_step"]), list(result["by_decision"])
    figure = new_figure(11.0, max(3.4, 0.36 * max(len(steps), len(decisions)) + 1.4))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    names = [row["step"] for row in steps]
    pairs = [f"{shortened(row['taken'])} → {shortened(row['better'])}" for row in decisions]
    _bars(left, names, steps, "of the way" if "%" in names[0] else "step")
    _bars(right, [shortened(pair, LONGEST) for pair in pairs], decisions, "taken → better")
    falls = steps[-1]["hindsight"]["value"] < steps[0]["hindsight"]["value"]
    left.legend(loc="lower right" if falls else "best")
    figure.suptitle(f"Regret to one-step deviations on {result['examples']:,} examples: {result['verdict']}")
    left.set_title("where in the trajectory", fontsize=10)
    right.set_title("on which decisions", fontsize=10)
    return figure


def _bars(axes: Any, names: Sequence[str], rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Draw two bars for each row, the thinner one inside the other, at the height of its name; the first row on top."""
    for key, height, shift, colour, alpha, label in WAYS:
        values = [row[key]["value"] for row in rows]
        below = [row[key]["value"] - row[key]["low"] for row in rows]
        above = [row[key]["high"] - row[key]["value"] for row in rows]
        axes.barh(range(len(rows)), values, height, color=colour, alpha=alpha, label=label)
        if rows:
            at = [k + shift for k in range(len(rows))]
            axes.errorbar(values, at, xerr=[below, above], fmt="none", color=TEXT, elinewidth=0.9, capsize=2)
    axes.set_yticks(range(len(rows)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_ylabel(title)
    axes.set_xlabel("regret per example")
    axes.axvline(0.0, color=TEXT, linewidth=0.8)
    axes.grid(visible=False)
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)
    if not rows:
        axes.text(0.5, 0.5, "no other decision would be better", transform=axes.transAxes, ha="center")
