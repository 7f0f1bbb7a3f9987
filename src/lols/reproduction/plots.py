"""Drawings of what `lols reproduce` gives: tables as heat maps, learning curves, the sweep of β, the bandit's regret.

A table is one of `result["tables"]`, as `lols reproduce --json` writes them. `report` puts all of it on
one page.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ConfigurationError
from lols.plots import BLUE, ENDINGS, GREEN, GREY, RED, bandit_curves, check_plot, drawing

__all__ = ["beta_sweep", "heat_map", "learning_curves", "regret_slope", "write_plots"]

Table = Mapping[str, Any]
PURPLE, GOLD = "#8b3f92", "#8a6d00"
STYLES = (
    {"color": BLUE, "marker": "o", "linewidth": 2.4},
    {"color": "#c2570c", "marker": "s", "linestyle": (0, (5, 2)), "linewidth": 1.6},
    {"color": GREEN, "marker": "^", "linestyle": (0, (2, 2)), "linewidth": 1.6},
    {"color": PURPLE, "marker": "D", "linestyle": (0, (6, 2, 1, 2)), "linewidth": 1.6},
    {"color": GREY, "marker": "v", "linestyle": (0, (1, 1.5)), "linewidth": 1.6},
    {"color": GOLD, "marker": "x", "linewidth": 1.6},
)


def heat_map(table: Table, path: str | os.PathLike[str]) -> None:
    """Draw a table, every strategy under every teacher: our means, and the paper's figures below them.

    PNG, SVG or PDF by the ending of the path. The darker, the closer to the best of the table; LOLS has a frame; what
    is best in its column, or level with it, is bold.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/table.svg"
    >>> cell = {"row": "learned/mixture", "teacher": "bad", "learner": "hinge", "mean": 90.1, "sd": 0.1, "paper": 89.4}
    >>> heat_map({"teachers": ["bad"], "learners": ["hinge"], "rows": ["learned/mixture"], "cells": [cell]}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    from lols.reproduction.paper import LOLS
    from lols.reproduction.report_html import learner_name, row_name, show
    from lols.reproduction.report_tables import closeness, level_with_best, paper_digits

    check_plot(path)
    close = dict(zip(((c["row"], c["teacher"], c["learner"]) for c in table["cells"]), closeness(table)))
    cells = {(c["row"], c["teacher"], c["learner"]): c for c in table["cells"]}
    learners = [x for x in table["learners"] if any(c["learner"] == x for c in table["cells"])]
    rows, teachers, digits = table["rows"], table["teachers"], paper_digits(table)
    width = 2.0 + 1.35 * len(teachers) * len(learners)
    with drawing(width, 1.3 + 0.55 * len(rows), path) as (figure, axes):
        axes.remove()
        for learner, one in zip(learners, figure.subplots(1, len(learners), sharey=True, squeeze=False)[0]):
            colours = np.array([[close.get((r, t, learner), np.nan) for t in teachers] for r in rows])
            one.imshow(colours, cmap="Blues", vmin=-0.08, vmax=1.7, aspect="auto")
            for j, teacher in enumerate(teachers):
                here = [k for k, row in enumerate(rows) if (row, teacher, learner) in cells]
                column = [cells[rows[k], teacher, learner] for k in here]
                level = level_with_best(column, bool(table.get("higher_is_better", True)))
                for k, cell, best in zip(here, column, level):
                    _numbers(one, (j, k), cell, best, lambda value: show(table, value), digits)
            if LOLS in rows:
                frame = {"fill": False, "edgecolor": "black", "linewidth": 2.0, "clip_on": False}
                _frame(one, -0.5, rows.index(LOLS) - 0.5, len(teachers), frame)
            one.set_xticks(range(len(teachers)), [f"{teacher}\nteacher" for teacher in teachers], fontsize=9)
            named = [row_name(row) + (" (LOLS)" if row == LOLS else "") for row in rows]
            one.set_yticks(range(len(rows)), named, fontsize=9)
            one.xaxis.tick_top()
            one.tick_params(length=0)
            one.spines[:].set_visible(False)
            one.set_title(learner_name(learner), fontsize=10, pad=10)
        figure.suptitle(_title(table), fontsize=11)


def _numbers(
    axes: Any, at: tuple[int, int], cell: Mapping[str, Any], best: bool, show: Callable[[float], str], digits: int
) -> None:
    several, paper = len(cell.get("values") or ()) > 1, cell.get("paper")
    text = show(cell["mean"]) + (f" ± {show(cell['sd'])}" if several else "")
    weight, place = "bold" if best else "normal", "center" if paper is None else "bottom"
    axes.text(*at, text, ha="center", va=place, fontsize=8.5, fontweight=weight)
    if paper is not None:
        axes.text(at[0], at[1] + 0.06, f"paper {paper:.{digits}f}", ha="center", va="top", fontsize=7.5)


def _frame(axes: Any, left: float, bottom: float, width: float, how: Mapping[str, Any]) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((left, bottom), width, 1.0, **how))


def learning_curves(table: Table, path: str | os.PathLike[str]) -> None:
    """Draw the score after each pass, a panel for each learner and teacher, as PNG, SVG or PDF.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/curves.svg"
    >>> curve = {"row": "auto", "teacher": "bad", "learner": "hinge", "passes": [1, 2], "values": [88.0, 89.0]}
    >>> learning_curves({"teachers": ["bad"], "learners": ["hinge"], "curves": [curve]}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    from lols.reproduction.paper import LOLS
    from lols.reproduction.report_html import row_name, teacher_name
    from lols.reproduction.report_tables import curve_kinds, unit

    check_plot(path)
    curves = table.get("curves") or []
    if not curves:
        raise ConfigurationError("the table has no learning curves")
    kinds = curve_kinds(curves)
    learners, teachers = (
        [x for x in table[f"{name}s"] if any(c[name] == x for c in curves)] for name in ("learner", "teacher")
    )
    with drawing(1.2 + 3.1 * len(teachers), 1.3 + 2.3 * len(learners), path) as (figure, axes):
        axes.remove()
        grid = figure.subplots(len(learners), len(teachers), sharex=True, sharey="col", squeeze=False)
        for one, learner, teacher in (
            (grid[i, j], x, y) for i, x in enumerate(learners) for j, y in enumerate(teachers)
        ):
            for curve in sorted(curves, key=lambda c: kinds[c["row"]]):
                if (curve["learner"], curve["teacher"]) == (learner, teacher):
                    style = STYLES[kinds[curve["row"]]]
                    label = row_name(curve["row"]) + (" (LOLS)" if curve["row"] == LOLS else "")
                    one.plot(curve["passes"], curve["values"], markersize=4.5, label=label, **style)
            one.set_title(f"{learner}, {teacher_name(teacher)}", fontsize=10, loc="left")
            one.xaxis.get_major_locator().set_params(integer=True)
        _finish(figure, grid, "passes", unit(table), _title(table))


def beta_sweep(table: Table, path: str | os.PathLike[str]) -> None:
    """Draw LOLS by β, a panel for each learner and a line for each teacher, as PNG, SVG or PDF.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/beta.svg"
    >>> cells = [{"teacher": "bad", "learner": "hinge", "beta": b, "mean": 89 - b, "sd": 0.1} for b in (0.0, 0.5, 1.0)]
    >>> beta_sweep({"teachers": ["bad"], "learners": ["hinge"], "beta": {"cells": cells}}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    from lols.reproduction.report_html import teacher_name
    from lols.reproduction.report_tables import unit

    check_plot(path)
    cells = (table.get("beta") or {}).get("cells") or []
    if not cells:
        raise ConfigurationError("the table has no sweep of β")
    learners = [x for x in table["learners"] if any(c["learner"] == x for c in cells)]
    with drawing(1.2 + 4.2 * len(learners), 3.9, path) as (figure, axes):
        axes.remove()
        grid = figure.subplots(1, len(learners), sharey=True, squeeze=False)
        for one, learner in zip(grid[0], learners):
            for teacher, style in zip(table["teachers"], STYLES):
                here = sorted(
                    (c for c in cells if c["learner"] == learner and c["teacher"] == teacher),
                    key=lambda c: float(c["beta"]),
                )
                if here:
                    x, y, spread = ([c.get(name) or 0.0 for c in here] for name in ("beta", "mean", "sd"))
                    one.errorbar(
                        x, y, spread, capsize=3, elinewidth=1.0, markersize=5, label=teacher_name(teacher), **style
                    )
            one.set_title(learner, fontsize=10, loc="left")
        _finish(figure, grid, "β, the probability of the reference", unit(table), _title(table))


def regret_slope(regret: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw how the bandit's regret falls with the rounds, on logarithmic scales, as PNG, SVG or PDF.

    The values are `result["bandit"]["regret"]`: `rounds`, `values` of all seeds for each, `slope`, and `bound`.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/regret.svg"
    >>> slope = {"value": -0.5, "height": 1.0, "low": -0.6, "high": -0.4}
    >>> regret_slope({"rounds": [100, 400], "values": [[0.1], [0.05]], "slope": slope, "bound": -1 / 3}, path)
    >>> Path(path).read_text()[:5]
    '<?xml'
    """
    check_plot(path)
    rounds, values, slope = np.array(regret["rounds"]), regret["values"], regret.get("slope") or {}
    means = np.array([np.mean(runs) for runs in values])
    with drawing(6.2, 4.4, path) as (_, axes):
        for n, runs in zip(rounds, values):
            axes.plot([n] * len(runs), runs, linestyle="none", marker="v", markersize=4, color=GREY, alpha=0.8)
        axes.plot(rounds, means, linestyle="none", marker="o", markersize=6, color=BLUE)
        if math.isfinite(slope.get("value", math.nan)):
            label = f"slope {slope['value']:.2f} ({slope['low']:.2f} to {slope['high']:.2f})"
            axes.plot(rounds, slope["height"] * rounds ** slope["value"], color=BLUE, linewidth=1.6, label=label)
        if regret.get("bound") is not None:
            line = means[0] * (rounds / rounds[0]) ** regret["bound"]
            label = f"slope {regret['bound']:.2f}, Corollary 2"
            axes.plot(rounds, line, color=RED, linestyle=(0, (5, 2)), linewidth=1.4, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(rounds, [f"{n:,}" for n in rounds])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("rounds N")
        axes.set_ylabel("left side of Theorem 3")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=9)
        axes.set_title("How the bandit's regret falls", fontsize=11, loc="left")
        _tidy([axes])


def write_plots(result: Mapping[str, Any], folder: str | os.PathLike[str], ending: str = ".png") -> list[Path]:
    """Draw all that a result has, as files in a folder that is there; their paths.

    Parameters
    ----------
    result
        What `lols reproduce --json` writes.
    folder
        Where to.
    ending
        `.png`, `.svg` or `.pdf`.

    Examples
    --------
    >>> import tempfile
    >>> regret = {"rounds": [100, 400], "values": [[0.1], [0.05]]}
    >>> [path.name for path in write_plots({"bandit": {"regret": regret}}, tempfile.mkdtemp(), ".svg")]
    ['bandit-regret.svg']

    """
    from lols.plots.certificates import regret_plot
    from lols.reproduction.plots_theory import gap_curves, snake_growth, tightness

    if ending not in ENDINGS:
        raise ConfigurationError(f"ending is {ending!r}: take one of {', '.join(ENDINGS)}")
    wanted: list[tuple[str, Any, Any]] = []
    for name, table in (result.get("tables") or {}).items():
        wanted += [(name, heat_map, table)] if table.get("cells") else []
        wanted += [(f"{name}-curves", learning_curves, table)] if table.get("curves") else []
        wanted += [(f"{name}-beta", beta_sweep, table)] if (table.get("beta") or {}).get("cells") else []
    theory, bandit = result.get("theory") or {}, result.get("bandit") or {}
    drawn = (("theorem3", tightness), ("gap", gap_curves), ("snakes", snake_growth))
    wanted += [(f"theory-{part}", draw, theory) for part, draw in drawn if theory.get(part)]
    wanted += [(f"bandit-{name}", bandit_curves, world) for name, world in (bandit.get("worlds") or {}).items()]
    wanted += [("bandit-regret", regret_slope, bandit["regret"])] if bandit.get("regret") else []
    certificates = (result.get("certificates") or {}).values()
    wanted += [(f"certificate-{k + 1}", regret_plot, made) for k, made in enumerate(certificates)]
    made = []
    for name, draw, values in wanted:
        made.append(Path(folder) / f"{name}{ending}")
        draw(values, made[-1])
    return made


def _title(table: Table) -> str:
    parts = [f"Table {table['paper_table']}" if table.get("paper_table") else "", str(table.get("title", ""))]
    return ": ".join(part for part in parts if part)


def _finish(figure: Any, grid: np.ndarray, x: str, y: str, title: str) -> None:
    """Words around panels, and one legend for all of them."""
    for one in grid[-1]:
        one.set_xlabel(x)
    for one in grid[:, 0]:
        one.set_ylabel(y)
    _tidy(grid.flat)
    known: dict[str, Any] = {}
    for one in grid.flat:
        known |= dict(zip(*reversed(one.get_legend_handles_labels())))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=len(known), frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=11)


def _tidy(all_axes: Iterable[Any]) -> None:
    for axes in all_axes:
        axes.grid(axis="y", color="#ececec", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("#bbbbbb")
