"""Drawings of a certificate: where in the trajectory regret arises, and on which decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lols.plots import BLUE, GREEN, check_plot, drawing, short

__all__ = ["regret_plot"]

LONGEST = 44  # characters of a decision


def regret_plot(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw regret by step and by decision, as PNG, SVG or PDF by the ending of the path.

    The result is what `Certificate.as_dict` gives, and `lols certify --json` prints. Bars have 95 % intervals.

    >>> import tempfile; from pathlib import Path
    >>> path = tempfile.mkdtemp() + "/regret.svg"
    >>> much, some = ({"value": v, "low": v / 2, "high": v * 2} for v in (0.2, 0.1))
    >>> steps = [{"step": "1", "decisions": 5, "hindsight": much, "in_class": some}]
    >>> decisions = [{"taken": "N", "better": "V", "decisions": 5, "hindsight": much, "in_class": some}]
    >>> regret_plot({"by_step": steps, "by_decision": decisions, "verdict": "locally optimal", "examples": 9}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    check_plot(path)
    steps, decisions = list(result["by_step"]), list(result["by_decision"])
    height = max(3.4, 0.36 * max(len(steps), len(decisions)) + 1.4)
    with drawing(11.0, height, path) as (figure, axes):
        axes.remove()
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        names = [row["step"] for row in steps]
        _bars(left, names, steps, "of the way" if "%" in names[0] else "step")
        _bars(right, [_short_pair(row) for row in decisions], decisions, "taken → better")
        left.legend(frameon=False, fontsize=9, loc="lower right" if _falls(steps) else "best")
        figure.suptitle(
            f"Regret to one-step deviations on {result['examples']:,} examples: {result['verdict']}", fontsize=11
        )
        left.set_title("where in the trajectory", fontsize=10, loc="left")
        right.set_title("on which decisions", fontsize=10, loc="left")


def _falls(rows: Sequence[Mapping[str, Any]]) -> bool:
    return bool(rows[-1]["hindsight"]["value"] < rows[0]["hindsight"]["value"])


def _short_pair(row: Mapping[str, Any]) -> str:
    name = f"{short(row['taken'])} → {short(row['better'])}"
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _bars(axes: Any, names: Sequence[str], rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Two bars for each row, the first row on top."""
    for shift, key, colour, what in ((-0.19, "hindsight", BLUE, "hindsight"), (0.19, "in_class", GREEN, "in class")):
        values = [row[key]["value"] for row in rows]
        below = [row[key]["value"] - row[key]["low"] for row in rows]
        above = [row[key]["high"] - row[key]["value"] for row in rows]
        at = [k + shift for k in range(len(rows))]
        axes.barh(at, values, 0.36, color=colour, alpha=0.85, label=what)
        if rows:
            axes.errorbar(values, at, xerr=[below, above], fmt="none", ecolor="#333333", elinewidth=0.9, capsize=2)
    axes.set_yticks(range(len(rows)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_ylabel(title)
    axes.set_xlabel("regret per example")
    axes.axvline(0.0, color="#888888", linewidth=0.8)
    axes.grid(axis="x", color="#ececec", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#bbbbbb")
    axes.tick_params(axis="y", length=0)
    if not rows:
        axes.text(0.5, 0.5, "no decision would better be another one", transform=axes.transAxes, ha="center")
