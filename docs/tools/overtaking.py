"""Draw the picture of the start page: a policy overtakes the heuristic that it learns from.

    python docs/tools/overtaking.py

Round trips of 20 cities (examples/tsp.py), learned from the rule of the nearest neighbour, on 1 to 2,048 maps. It
takes about a minute, prints what it draws, and writes docs/pictures/overtaking.svg, and overtaking-narrow.svg for
phones.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import lols
from lols.plots.look import BLUE, GREY, ORANGE, TEXT, drawing, new_figure

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import tsp

from pictures import PICTURES, write

SIZES = [2**k for k in range(12)]
SEEDS = range(5)


def curves(test: list[np.ndarray], best: float) -> tuple[dict[str, np.ndarray], float, Any]:
    """By algorithm, seed and maps, percent above the shortest trips; those of the teacher; the last model of LOLS."""
    found = {name: np.zeros((len(SEEDS), len(SIZES))) for name in ("cloning", "lols")}
    for seed in SEEDS:
        maps = tsp.maps(SIZES[-1], seed + 1)
        for name, losses in found.items():
            for k, size in enumerate(SIZES):
                model = lols.train(tsp.Tour, maps[:size], algorithm=name, passes=1, seed=seed)
                losses[seed, k] = 100 * (model.evaluate(test) / best - 1)
    return found, 100 * (model.reference_losses(test).mean() / best - 1), model


def note(axes: Any, text: str, place: tuple[float, float], offset: tuple[int, int], colour: str) -> None:
    """Write beside a line what it is."""
    axes.annotate(text, place, offset, textcoords="offset points", color=colour, weight="bold")


@drawing
def picture(
    found: dict[str, np.ndarray], teacher: float, places: np.ndarray, trips: dict[str, list[int]], narrow: bool
) -> Any:
    """On the left the curves, on the right one map twice; if it is narrow, for phones, the maps are below."""
    from matplotlib.ticker import NullLocator

    figure = new_figure(5, 5.6) if narrow else new_figure(11, 3.5)
    parts, sizes = ("ll;tp", {"height_ratios": [1.2, 1]}) if narrow else ("ltp", {"width_ratios": [1.8, 1, 1]})
    left, *right = figure.subplot_mosaic(parts, **sizes).values()
    lines: dict[str, tuple[str, Any]] = {"cloning": (GREY, (0, (2, 2))), "lols": (BLUE, "-")}
    for name, (colour, style) in lines.items():
        losses = found[name]
        left.fill_between(SIZES, losses.min(axis=0), losses.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        left.plot(SIZES, losses.mean(axis=0), color=colour, linestyle=style, linewidth=2.4)
    left.axhline(teacher, color=ORANGE, linewidth=2, linestyle=(0, (6, 3)))
    note(left, "the teacher:\nalways to the nearest city", (1, teacher), (0, -27), ORANGE)
    note(left, "a copy of the teacher", (SIZES[5], found["cloning"][:, 5].mean()), (10, 12), GREY)
    note(left, "the policy (LOLS)", (SIZES[7], found["lols"][:, 7].mean()), (-14, -18), BLUE)
    left.set(xscale="log", ylim=(0, None), xlabel="maps learned from", ylabel="% longer than the shortest trip")
    left.set_xticks(SIZES[::2], [f"{size:,}" for size in SIZES[::2]])
    left.xaxis.set_minor_locator(NullLocator())
    left.set_title("The policy overtakes its teacher")
    for axes, (name, trip), colour in zip(right, trips.items(), (ORANGE, BLUE)):
        there = places[[*trip, trip[0]]]
        axes.plot(*there.T, color=colour, linewidth=2)
        axes.plot(*places.T, "o", color=TEXT, markersize=4)
        axes.set(aspect="equal", xticks=[], yticks=[], title=name)
        axes.spines[:].set_visible(True)
        axes.margins(0.06)
    return figure


def main() -> None:
    """Learn, print, draw."""
    test = tsp.maps(200, 1000)
    best = np.array([tsp.two_opt(places)[0] for places in test])
    found, teacher, model = curves(test, float(best.mean()))
    for name, losses in {**found, "teacher": np.array([[teacher]])}.items():
        print(name, *(f"{loss:.1f}" for loss in losses.mean(axis=0)))
    gains = model.reference_losses(test) - model.losses(test)
    typical = int(np.argsort(gains)[len(gains) // 2])
    places = test[typical]
    trips = {"teacher": model.reference_outputs([places])[0], "policy": model.predict_one(places)}
    titles = {}
    for name, trip in trips.items():
        titles[f"the {name}'s trip: {tsp.lengths(places, np.array(trip)):.2f}"] = trip
    for name in ("overtaking", "overtaking-narrow"):
        drawn = picture(found, teacher, places, titles, narrow="narrow" in name)
        write(drawn, PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
