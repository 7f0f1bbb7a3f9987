"""Drawings of the paper's theory, from what `lols.reproduction.theory_part.run_theory` gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.plots import BLUE, GREEN, GREY, RED, check_plot, drawing

__all__ = ["gap_curves", "snake_growth", "tightness"]

SHADES = ("#f2a65a", "#d9783d", "#b0508a", "#6a4ca3", "#27408b")  # β from 0 to 1
SLACK = (
    ("averaging", "one change must suit all averaged policies", BLUE),
    ("limits", "changes must be in the class", GREEN),
    ("teacher", "one better action would help the teacher", RED),
)


def tightness(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw Theorem 3's left side against its right one for all runs, and what lies between them by β.

    PNG, SVG or PDF by the ending of the path.

    >>> import tempfile; path = tempfile.mkdtemp() + "/sides.svg"
    >>> run = {"beta": 0.5, "left": 0.1, "right": 0.2}
    >>> row = {"beta": 0.5, "averaging": 0.0, "limits": 0.0, "teacher": 0.1}
    >>> tightness({"theorem3": {"runs": [run], "by_beta": [row], "spaces": 1, "violations": 0}}, path)
    >>> os.path.exists(path)
    True
    """
    check_plot(path)
    three = result["theorem3"]
    with drawing(10.4, 4.8, path) as (figure, axes):
        axes.remove()
        points, bars = figure.subplots(1, 2, width_ratios=[1.15, 1])
        for row, colour in zip(three["by_beta"], SHADES):
            here = [run for run in three["runs"] if run["beta"] == row["beta"]]
            right, left = ([run[name] for run in here] for name in ("right", "left"))
            points.scatter(right, left, s=11, color=colour, alpha=0.65, linewidths=0, label=f"β = {row['beta']:g}")
        most = max(run["right"] for run in three["runs"]) * 1.04
        points.plot([0.0, most], [0.0, most], color=GREY, linewidth=1.0)
        place = {"xytext": (-6, 4), "textcoords": "offset points", "ha": "right", "va": "bottom"}
        points.annotate("equal", (0.75 * most, 0.75 * most), color=GREY, fontsize=9, **place)
        points.axhline(0.0, color="#cccccc", linewidth=0.8, zorder=0)
        points.set_xlabel(r"right side, $T\,\delta_N$")
        points.set_ylabel("left side: regret to teacher and to deviations")
        runs = len(three["runs"])
        held = f"{runs:,}" if not three["violations"] else f"{runs - three['violations']:,} of {runs:,}"
        points.set_title(f"Theorem 3 holds in {held} runs on {three['spaces']} spaces", fontsize=11, loc="left")
        points.legend(frameon=False, fontsize=9, markerscale=1.8, loc="lower right")
        where, bottom = np.arange(len(three["by_beta"])), np.zeros(len(three["by_beta"]))
        for name, label, colour in SLACK:
            heights = np.array([row[name] for row in three["by_beta"]])
            bars.bar(where, heights, 0.62, bottom, color=colour, alpha=0.85, label=label)
            bottom += heights
        bars.set_xticks(where, [f"{row['beta']:g}" for row in three["by_beta"]])
        bars.set_xlabel("β")
        bars.set_ylim(0.0, max(float(bottom.max()) * 1.32, 1e-6))
        bars.set_title("right side less left side, mean", fontsize=11, loc="left")
        bars.legend(frameon=False, fontsize=9, loc="upper left")
        _tidy(points, bars)


def gap_curves(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw by β how far the minimum of the average may stay above the average of the minima.

    PNG, SVG or PDF by the ending of the path.

    >>> import tempfile; path = tempfile.mkdtemp() + "/gap.svg"
    >>> worlds = [{"world": "one", "beta": b, "gap": min(b, 1 - b)} for b in (0.0, 0.5, 1.0)]
    >>> row = {"spaces": 10, "mean": 0.1, "above_zero": 3, "worse_than_reference": 1}
    >>> gap_curves({"gap": {"worlds": worlds, "spaces": [row | {"beta": 0.0}, row | {"beta": 1.0}]}}, path)
    >>> os.path.exists(path)
    True
    """
    check_plot(path)
    gap = result["gap"]
    rows = gap["spaces"]
    betas, total = [row["beta"] for row in rows], max(row["spaces"] for row in rows)
    with drawing(12.4, 4.0, path) as (figure, axes):
        axes.remove()
        worlds, means, shares = figure.subplots(1, 3)
        for name, colour in zip(dict.fromkeys(row["world"] for row in gap["worlds"]), (RED, BLUE)):
            here = [row for row in gap["worlds"] if row["world"] == name]
            worlds.plot(
                *_broken([r["beta"] for r in here], [r["gap"] for r in here]), color=colour, linewidth=1.8, label=name
            )
        worlds.legend(frameon=False, fontsize=9)
        worlds.set_ylabel("largest gap at which a learner may stay")
        worlds.set_title("two worlds, exactly", fontsize=11, loc="left")
        means.plot(betas, [row["mean"] for row in rows], color=BLUE, linewidth=1.8, marker="o", markersize=4)
        means.set_ylim(bottom=0.0)
        means.set_title(f"{total} random spaces: mean of it", fontsize=11, loc="left")
        for name, label, colour in (
            ("above_zero", "with a gap above 0", BLUE),
            ("worse_than_reference", "with a policy worse than the teacher", RED),
        ):
            percent = [100.0 * row[name] / row["spaces"] for row in rows]
            shares.plot(betas, percent, color=colour, linewidth=1.8, marker="o", markersize=4, label=label)
        shares.set_ylim(0.0, 1.35 * max(100.0 * row["above_zero"] / row["spaces"] for row in rows) + 1.0)
        shares.legend(frameon=False, fontsize=9)
        shares.set_title("% of them in which it may stay", fontsize=11, loc="left")
        for one in (worlds, means, shares):
            one.set_xlabel("β")
            one.set_xlim(-0.02, 1.02)
        _tidy(worlds, means, shares)


def snake_growth(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw how many updates descent takes by T, on a logarithmic scale, with the fit and with Hamming loss.

    PNG, SVG or PDF by the ending of the path.

    >>> import tempfile; path = tempfile.mkdtemp() + "/snakes.svg"
    >>> rows = [{"steps": t, "policies": 2**t, "updates": 2**t // 2, "hamming_updates": t} for t in (3, 4)]
    >>> snake_growth({"snakes": {"rows": rows, "fit": {"base": 2.0, "scale": 0.5}}}, path)
    >>> os.path.exists(path)
    True
    """
    check_plot(path)
    rows, fit = result["snakes"]["rows"], result["snakes"]["fit"]
    steps = [row["steps"] for row in rows]
    with drawing(6.6, 4.4, path) as (_, axes):
        fine = np.linspace(steps[0] - 0.25, steps[-1] + 0.25, 50)
        axes.plot(fine, fit["scale"] * fit["base"] ** fine, color=RED, linewidth=1.0, alpha=0.6)
        lines = (("policies", "policies, $2^T$", GREY), ("updates", "updates along a snake", RED),
                 ("hamming_updates", "updates, Hamming loss", BLUE))  # fmt: skip
        for name, label, colour in lines:
            values = [row[name] for row in rows]
            joined = {"linestyle": "none"} if name == "updates" else {"linestyle": (0, (4, 3)), "linewidth": 1.0}
            axes.plot(steps, values, color=colour, marker="o", markersize=5, **joined)
            place = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
            text = label + (f"\n≈ {fit['scale']:.2f} × {fit['base']:.2f}$^T$" if name == "updates" else "")
            axes.annotate(text, (steps[-1] + 0.2, values[-1]), color=colour, fontsize=9, **place)
        for row in rows:
            place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "fontsize": 9}
            axes.annotate(str(row["updates"]), (row["steps"], row["updates"]), color=RED, **place)
        axes.set_yscale("log")
        axes.set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"])
        axes.minorticks_off()
        axes.set_xticks(steps)
        axes.set_xlim(steps[0] - 0.3, steps[-1] + 0.3)
        axes.set_xlabel("T, decisions")
        axes.set_ylabel("updates to a local optimum")
        axes.set_title("Theorem 4: local descent can take exponentially long", fontsize=11, loc="left")
        _tidy(axes)


def _broken(betas: list[float], gaps: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """A curve with a break where it jumps: from one point to the next by more than half of its height."""
    cuts = np.flatnonzero(np.abs(np.diff(gaps)) > 0.5 * max(gaps)) + 1
    return np.insert(betas, cuts, np.nan), np.insert(gaps, cuts, np.nan)


def _tidy(*all_axes: Any) -> None:
    for axes in all_axes:
        axes.grid(axis="y", color="#ececec", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("#bbbbbb")
