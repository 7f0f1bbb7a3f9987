"""Charts of a result: heat maps, learning curves, β, the theory, the bandit's regret; functions return figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from lols.plots.look import BLUE, GOLD, GREEN, GREY, LINE, ORANGE, SERIES, SOFT, TEXT, band, drawing, new_figure
from lols.reproduction.document import TEXTS, TextCell, TextTable, Values
from lols.reproduction.paper import LOLS
from lols.reproduction.plan import row_name

ORDER = (LOLS, "learned/reference", "learned/learned", "searn", "auto")  # the rows with curves, in the order of styles
SLACK = (
    ("averaging", "one change must suit all averaged policies", BLUE),
    ("limits", "changes must be in the class", GREEN),
    ("teacher", "one better action would help the teacher", ORANGE),
)


# --- the story --------------------------------------------------------------------------------------------------------


@drawing
def overtaking(story: Values) -> Any:
    """Round trips by how many maps were learned from, beside the teacher's, and the same map twice."""
    figure = new_figure(12.4, 4.2)
    curve, *maps = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
    sizes, lengths = story["maps"], np.array(story["lengths"])
    band(curve, sizes, lengths.min(axis=1), lengths.max(axis=1), BLUE)
    curve.plot(
        sizes, lengths.mean(axis=1), label=f"the policy, mean and range of {lengths.shape[1]} trainings", **SERIES[0]
    )
    curve.axhline(
        story["teacher_length"], color=ORANGE, linewidth=1.8, label="its teacher: always to the nearest house"
    )
    curve.set_xscale("log")
    curve.set_xticks(sizes, [f"{size:,}" for size in sizes])
    curve.minorticks_off()
    curve.set(xlabel="maps learned from", ylabel=f"mean length on {story['new_maps']:,} new maps")
    curve.set_title("The policy overtakes its teacher")
    curve.legend()
    places = np.array(story["houses"])
    names, lengths = ("teacher", "learned"), story["shown_lengths"]
    for axes, name, length, colour in zip(maps, names, lengths, (ORANGE, BLUE)):
        trip = places[[*story[name], story[name][0]]]
        axes.plot(*trip.T, color=colour, linewidth=1.8, marker="o", markersize=4)
        axes.plot(*trip[0], color=TEXT, marker="o", markersize=8)
        axes.set_title(f"the {'teacher' if name == 'teacher' else 'policy'}: {length:.2f}")
        axes.set(aspect="equal", xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return figure


# --- tables -----------------------------------------------------------------------------------------------------------


@drawing
def heat_map(table: Values, strategies: Sequence[TextTable]) -> Any:
    """A table, as described for each learner: every strategy under every teacher, the paper's figures below ours."""
    from matplotlib.patches import Rectangle

    width = sum(len(one.columns) - 1 for one in strategies)
    height = max(len(one.rows) for one in strategies)
    figure = new_figure(2.0 + 1.35 * width, 1.3 + 0.55 * height)
    for one, axes in zip(strategies, figure.subplots(1, len(strategies), squeeze=False)[0]):
        cells = [[cell if isinstance(cell, TextCell) else TextCell(cell) for cell in row[1:]] for row in one.rows]
        shades = np.array([[np.nan if cell.shade is None else cell.shade for cell in row] for row in cells])
        axes.imshow(shades, cmap="Blues", vmin=-0.08, vmax=1.7, aspect="auto")
        for k, row in enumerate(cells):
            for j, cell in enumerate(row):
                weight, side = "bold" if cell.best else "normal", "bottom" if cell.paper else "center"
                axes.text(j, k, cell.text, ha="center", va=side, fontsize=8.5, fontweight=weight)
                if cell.paper:
                    axes.text(j, k + 0.06, f"paper {cell.paper}", ha="center", va="top", fontsize=7.5)
        if one.marked is not None:
            frame: dict[str, Any] = {"fill": False, "edgecolor": TEXT, "linewidth": 2.0, "clip_on": False}
            axes.add_patch(Rectangle((-0.5, one.marked - 0.5), len(one.columns) - 1, 1.0, **frame))
        axes.set_xticks(range(len(one.columns) - 1), [c.replace(" ", "\n") for c in one.columns[1:]], fontsize=9)
        names = [f"{row[0]} (LOLS)" if k == one.marked else str(row[0]) for k, row in enumerate(one.rows)]
        axes.set_yticks(range(len(one.rows)), names, fontsize=9)
        axes.xaxis.tick_top()
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(one.title, fontsize=10, pad=10, loc="center")
    figure.suptitle(_title(table))
    return figure


@drawing
def learning_curves(table: Values) -> Any:
    """The score after each pass, a panel for each learner and teacher."""
    curves = table["curves"]
    rows = list(dict.fromkeys([*ORDER, *(curve["row"] for curve in curves)]))
    learners, teachers = (_present(table, of, curves) for of in ("learner", "teacher"))
    shape = (len(learners), len(teachers)) if len(teachers) > 1 else (1, len(learners))
    figure = new_figure(1.2 + 3.1 * shape[1], 1.3 + 2.3 * shape[0])
    grid = figure.subplots(*shape, sharex=True, sharey="col" if len(teachers) > 1 else True, squeeze=False)
    for axes, (learner, teacher) in zip(grid.flat, product(learners, teachers)):
        here = [c for c in curves if (c["learner"], c["teacher"]) == (learner, teacher)]
        for curve in sorted(here, key=lambda c: rows.index(c["row"])):
            label = row_name(curve["row"]) + (" (LOLS)" if curve["row"] == LOLS else "")
            _line(axes, curve["passes"], curve["values"], curve["sd"], label, rows.index(curve["row"]), 4.5)
        axes.set_title(f"{learner}, {teacher} teacher", fontsize=10)
        axes.xaxis.get_major_locator().set_params(integer=True)
    return _finished(figure, grid, "passes", table)


@drawing
def beta_sweep(table: Values) -> Any:
    """LOLS by β, a panel for each learner and a line for each teacher."""
    cells = sorted(table["beta"]["cells"], key=lambda c: float(c["beta"]))
    learners = _present(table, "learner", cells)
    figure = new_figure(1.2 + 4.2 * len(learners), 3.9)
    grid = figure.subplots(1, len(learners), sharey=True, squeeze=False)
    for axes, learner in zip(grid[0], learners):
        for k, teacher in enumerate(table["teachers"]):
            here = [c for c in cells if c["learner"] == learner and c["teacher"] == teacher]
            if here:
                x, y, sd = ([c[name] for c in here] for name in ("beta", "mean", "sd"))
                _line(axes, x, y, sd, f"{teacher} teacher", k, 5.0)
        axes.set_title(learner, fontsize=10)
    return _finished(figure, grid, "β, the probability of the reference", table)


def _present(table: Values, of: str, cells: Sequence[Values]) -> list[str]:
    """The learners or teachers of which there are cells, in the order of the table."""
    return [name for name in table[f"{of}s"] if any(cell[of] == name for cell in cells)]


def _line(
    axes: Any, x: Sequence[float], y: Sequence[float], sd: Sequence[float], label: str, number: int, size: float
) -> None:
    """Draw a curve in the style of its number, and a band of one standard deviation over seeds around it."""
    style = SERIES[number % len(SERIES)] | {"markersize": size}
    axes.plot(x, y, label=label, **style)
    if any(sd):
        band(axes, x, np.subtract(y, sd), np.add(y, sd), style["color"])


def _title(table: Values) -> str:
    return f"Table {table['paper_table']}: {table['title']}"


def _finished(figure: Any, grid: np.ndarray, x: str, table: Values) -> Any:
    """Write labels around panels, and one legend for all of them."""
    for axes in grid[-1]:
        axes.set_xlabel(x)
    for axes in grid[:, 0]:
        axes.set_ylabel(TEXTS["metrics"].get(table["metric"], {}).get("axis", ""))
    handles: dict[str, Any] = {}
    for axes in grid.flat:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels())))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(handles), 5))
    figure.suptitle(_title(table))
    return figure


# --- the bandit -------------------------------------------------------------------------------------------------------


@drawing
def regret_slope(regret: Values) -> Any:
    """How the bandit's regret falls with the rounds, on logarithmic scales."""
    rounds, values, slope, bound = np.array(regret["rounds"]), regret["values"], regret["slope"], regret["bound"]
    means = np.array([np.mean(runs) for runs in values])
    figure = new_figure(6.2, 4.4)
    axes = figure.subplots()
    for k, (n, runs) in enumerate(zip(rounds, values)):
        label = None if k else "one seed"
        axes.plot([n] * len(runs), runs, linestyle="none", marker="v", markersize=4, color=GREY, label=label)
    axes.plot(rounds, means, linestyle="none", marker="o", markersize=6, color=BLUE, label="mean over seeds")
    if math.isfinite(slope["value"]):
        label = "slope {value:.2f} ({low:.2f} to {high:.2f})".format(**slope)
        axes.plot(rounds, slope["height"] * rounds ** slope["value"], color=BLUE, linewidth=1.6, label=label)
    promised = means[0] * (rounds / rounds[0]) ** bound
    label = f"slope {bound:.2f}, Corollary 2"
    axes.plot(rounds, promised, color=ORANGE, linestyle=(0, (5, 2)), linewidth=1.4, label=label)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(rounds, [f"{n:,}" for n in rounds])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="rounds N", ylabel="left side of Theorem 3")
    axes.legend()
    axes.set_title("How the bandit's regret falls")
    return figure


# --- the theory -------------------------------------------------------------------------------------------------------


@drawing
def tightness(theorem: Values) -> Any:
    """Theorem 3's left side against its right one for all runs, and what lies between them by β."""
    runs, by_beta = theorem["runs"], theorem["by_beta"]
    figure = new_figure(10.4, 4.8)
    points, bars = figure.subplots(1, 2, width_ratios=[1.15, 1])
    for row, style in zip(by_beta, SERIES):
        here = [run for run in runs if run["beta"] == row["beta"]]
        right, left = ([run[name] for run in here] for name in ("right", "left"))
        look = {"s": 13, "color": style["color"], "marker": style["marker"], "alpha": 0.65, "linewidths": 0.5}
        points.scatter(right, left, label=f"β = {row['beta']:g}", **look)
    most = max((run["right"] for run in runs), default=1.0) * 1.04
    points.plot([0.0, most], [0.0, most], color=GREY, linewidth=1.0)
    place = {"xytext": (-6, 4), "textcoords": "offset points", "ha": "right", "va": "bottom"}
    points.annotate("equal", (0.75 * most, 0.75 * most), color=SOFT, fontsize=9, **place)
    points.axhline(0.0, color=LINE, linewidth=0.8, zorder=0)
    points.set(xlabel="right side, T δ_N", ylabel="left side: regret to teacher and to deviations")
    points.set_title(f"Theorem 3 holds in {len(runs) - theorem['violations']:,} of {len(runs):,} runs")
    points.legend(markerscale=1.8, loc="lower right")
    at, bottom = np.arange(len(by_beta)), np.zeros(len(by_beta))
    for name, label, colour in SLACK:
        heights = np.array([row[name] for row in by_beta])
        bars.bar(at, heights, 0.62, bottom, color=colour, alpha=0.85, label=label)
        bottom += heights
    bars.set_xticks(at, [f"{row['beta']:g}" for row in by_beta])
    bars.set_xlabel("β")
    bars.set_ylim(0.0, max(float(bottom.max()) * 1.32, 1e-6))
    bars.set_title("right side less left side, mean")
    bars.legend(loc="upper left")
    return figure


@drawing
def gap_curves(gap: Values) -> Any:
    """By β: how far the minimum of the average may stay above the average of the minima."""
    rows = gap["spaces"]
    betas = [row["beta"] for row in rows]
    figure = new_figure(12.4, 4.0)
    worlds, means, shares = figure.subplots(1, 3)
    for name, style in zip(dict.fromkeys(row["world"] for row in gap["worlds"]), SERIES):
        here = [row for row in gap["worlds"] if row["world"] == name]
        line = _broken([r["beta"] for r in here], [r["gap"] for r in here])
        worlds.plot(*line, label=name, **{**style, "marker": ""})
    worlds.legend()
    worlds.set_ylabel("largest gap at which a learner may stay")
    worlds.set_title("two worlds, exactly")
    means.plot(betas, [row["mean"] for row in rows], color=BLUE, linewidth=1.8, marker="o", markersize=4)
    means.set_ylim(bottom=0.0)
    means.set_title(f"{max(row['spaces'] for row in rows)} random spaces: mean gap")
    names = (("above_zero", "with a gap above 0"), ("worse_than_reference", "with a policy worse than the teacher"))
    for (name, label), style in zip(names, SERIES):
        percent = [100.0 * row[name] / row["spaces"] for row in rows]
        shares.plot(betas, percent, markersize=4, label=label, **style)
    shares.set_ylim(0.0, 1.35 * max(100.0 * row["above_zero"] / row["spaces"] for row in rows) + 1.0)
    shares.legend()
    shares.set_title("% of them in which it may stay")
    for axes in (worlds, means, shares):
        axes.set_xlabel("β")
        axes.set_xlim(-0.02, 1.02)
    return figure


def _broken(betas: list[float], gaps: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """A curve with a break where it jumps by more than half of its height."""
    cuts = np.flatnonzero(np.abs(np.diff(gaps)) > 0.5 * max(gaps)) + 1
    return np.insert(betas, cuts, np.nan), np.insert(gaps, cuts, np.nan)


@drawing
def snake_growth(snakes: Values) -> Any:
    """How many updates descent takes by T, on a logarithmic scale, with the fit and with Hamming loss."""
    rows, fit = snakes["rows"], snakes["fit"]
    steps = [row["steps"] for row in rows]
    figure = new_figure(6.6, 4.4)
    axes = figure.subplots()
    fine = np.linspace(steps[0] - 0.25, steps[-1] + 0.25, 50)
    axes.plot(fine, fit["scale"] * fit["base"] ** fine, color=GOLD, linewidth=1.0)
    fitted = f"updates along a snake\n≈ {fit['scale']:.2f} × {fit['base']:.2f}^T"
    lines = (("policies", "policies, 2^T", GREY), ("updates", fitted, ORANGE),
             ("hamming_updates", "updates, Hamming loss", BLUE))  # fmt: skip
    for name, label, colour in lines:
        values = [row[name] for row in rows]
        joined = {"linestyle": "none"} if name == "updates" else {"linestyle": (0, (4, 3)), "linewidth": 1.0}
        axes.plot(steps, values, color=colour, marker="o", markersize=5, **joined)
        place = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
        axes.annotate(label, (steps[-1] + 0.2, values[-1]), color=colour, fontsize=9, **place)
    for row in rows:
        place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "fontsize": 9}
        axes.annotate(str(row["updates"]), (row["steps"], row["updates"]), color=ORANGE, **place)
    axes.set_yscale("log")
    axes.set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"])
    axes.minorticks_off()
    axes.set_xticks(steps)
    axes.set_xlim(steps[0] - 0.3, steps[-1] + 0.3)
    axes.set(xlabel="T, decisions", ylabel="updates to a local optimum")
    axes.set_title("Theorem 4: local descent can take exponentially long")
    return figure
