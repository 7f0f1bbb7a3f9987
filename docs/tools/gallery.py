"""Draw the pictures of examples/README.md: for each example, what the teacher does and what the policy does.

    python docs/tools/gallery.py [NAME...]

Each takes up to half a minute. Most pictures show the test instance with the median gain. They are written to
docs/pictures/examples/.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lols
from lols.plots.look import BLUE, GREY, ORANGE, drawing, new_figure
from lols.plots.plans import plans_figure

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import bin_packing
import chunking
import graph_colouring
import grid
import job_shop
import layout
import ocr
import tardiness
import tsp
import tsp_insertion
import vrp
from helpers import comparing, phrases
from helpers import drawing as shapes

from pictures import PICTURES, write

MINUTES, TESTS = 0.4, 101

# --- before and after ---


def optimised(
    module: Any,
    task: Any,
    draw: Any,
    names: tuple[str, str],
    *,
    rule: Any = None,
    best_of: int = 1,
    quantile: float = 0.5,
    **options: Any,
) -> Any:
    """The figure of a task that `lols.optimise` learns."""
    found = lols.optimise(task, draw, rule, minutes=MINUTES, best_of=1, seed=1, **options).model
    rng, given = np.random.default_rng([1, 1]), () if rule is None else (rule,)
    test = [draw(rng) for _ in range(TESTS)]
    before, after = found.reference_losses(test, *given), found.losses(test, best_of=best_of)
    at = comparing.typical({comparing.TEACHER: before[np.newaxis], "LOLS": after[np.newaxis]}, quantile)
    outputs = found.reference_outputs([test[at]], *given)[0], found.predict([test[at]], best_of=best_of)[0]
    titles = [f"{name}: {loss:.4g}" for name, loss in zip(names, (before[at], after[at]))]
    print(*titles, f"mean {before.mean():.4g} and {after.mean():.4g}", sep="; ")
    return plans_figure(module.show, [(test[at], output) for output in outputs], titles)


def trained(module: Any, task: Any, draw: Any, names: tuple[str, str], quantile: float = 0.5) -> Any:
    """The figure of a task that `lols.train` learns."""
    model, test = lols.train(task, draw(1000, 1), learner=module.LEARNER, passes=3, seed=1), draw(400, 1000)
    before, after = model.reference_losses(test), model.losses(test)
    at = comparing.typical({comparing.TEACHER: before[np.newaxis], "LOLS": after[np.newaxis]}, quantile)
    outputs = model.reference_outputs([test[at]])[0], model.predict_one(test[at])
    titles = [f"{name}: {loss:.4g}" for name, loss in zip(names, (before[at], after[at]))]
    print(*titles, f"mean {before.mean():.4g} and {after.mean():.4g}", sep="; ")
    return plans_figure(module.show, [(test[at], output) for output in outputs], titles)


# --- the job shop, with its schedule as the output ---


class PlannedShop(job_shop.JobShop):
    """The same decisions; the output says when each operation of each job begins."""

    sizes = lols.Sizes(
        state=lols.State(
            done="jobs", job=lols.reals("jobs"), machine=lols.reals("machines"), next="jobs",
            soon=lols.reals("jobs"), free=lols.reals("machines"), wait=lols.reals("jobs"), slack=lols.reals("jobs"),
            late=lols.reals("jobs"), ends=lols.reals("jobs"), begun=lols.reals(lambda x: x.jobs * x.machines),
        ),
        steps=lambda x: x.jobs * x.machines, actions="jobs", features=0, action_features=14,
    )  # fmt: skip

    def step(x, s, a):
        k = a * x.machines + s.done[a]
        s.begun[k] = job_shop.begin(x, s, a)
        s.job[a] = s.machine[x.machine[k]] = s.begun[k] + x.time[k]
        s.done[a] += 1

    def output(x, s):
        return s.begun.tolist()

    @staticmethod
    def show(axes: Any, shop: job_shop.Shop, begun: list[float]) -> None:
        """What each machine does when; each job has a colour and a number."""
        jobs = np.indices(shop[0].shape)[0].flat
        for machine, length, begins, job in zip(*map(np.ravel, shop), begun, jobs):
            colour = shapes.COLOURS[job % len(shapes.COLOURS)]
            axes.barh(machine, 0.96 * length, 0.8, begins, color=colour, alpha=0.75)
            axes.text(begins + length / 2, machine, job + 1, ha="center", va="center", fontsize=8)
        axes.set(xlabel="time", ylabel="machine", yticks=[])


# --- sequences ---


@drawing
def letters() -> Any:
    """A word with what is read letter by letter, and what is read with the letters before."""
    words = ocr.seen(ocr.generate(900, 1), ocr.strokes)
    train, test = words[:300], words[300:]
    outputs = [ocr.learn(train, before=before, seed=1, passes=6).predict(test) for before in (0, ocr.BEFORE)]
    print(*(f"{ocr.accuracy(test, output):.3f}" for output in outputs))
    wrong = [[sum(a != b for a, b in zip(w["letters"], found)) for w, found in zip(test, out)] for out in outputs]
    at = max(range(len(test)), key=lambda k: (wrong[1][k] == 0) * wrong[0][k])
    figure = new_figure(8.4, 2.6)
    for k, axes in enumerate(figure.subplots(1, len(test[at]["letters"]))):
        rows, columns = np.nonzero(test[at]["pictures"][k])
        axes.plot(columns, -rows, "s", color=shapes.TEXT, markersize=3.2)
        axes.set(aspect="equal", xlim=(-1, 8), ylim=(-16, 1), xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        for output, row, colour in zip(outputs, (-0.12, -0.32), (ORANGE, BLUE)):
            letter = chr(ord("a") + output[at][k])
            right = output[at][k] == test[at]["letters"][k]
            axes.text(
                0.5, row, letter, transform=axes.transAxes, ha="center", color=colour,
                weight="normal" if right else "bold", fontsize=13,
            )  # fmt: skip
        if k == 0:
            for text, row, colour in (("alone", -0.12, ORANGE), ("LOLS", -0.32, BLUE)):
                axes.text(-0.25, row, text, transform=axes.transAxes, ha="right", color=colour)
    return figure


@drawing
def chunks() -> Any:
    """A sentence with its chunks as the policy marks them."""
    sentences = phrases.generate(260, 1)
    train, test = sentences[:200], sentences[200:]
    found = chunking.ours(train, test, 1, passes=4)
    at = max(range(len(test)), key=lambda k: min(len(test[k]["words"]), 11))
    figure = new_figure(8.4, 1.3)
    axes = figure.subplots()
    kinds: dict[str, str] = {}
    left = 0.0
    for word, tag in zip(test[at]["words"], found[at]):
        width, kind = 0.5 + 0.32 * len(word), tag[2:]
        axes.text(left + width / 2, 1, word, ha="center", va="center", fontsize=11)
        if kind:
            colour = kinds.setdefault(kind, shapes.COLOURS[len(kinds) % len(shapes.COLOURS)])
            begins = tag[0] == "B"
            axes.barh(0.45, width - 0.12 * begins, 0.16, left + 0.12 * begins, color=colour)
            if begins:
                axes.text(left + 0.12, 0.08, kind, va="center", fontsize=9, color=colour)
        left += width
    axes.set(xlim=(0, left), ylim=(-0.2, 1.3), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return figure


@drawing
def bars(rows: dict[str, float], unit: str, form: str = ".1f", others: int = 0) -> Any:
    """A bar for each row; the first ones, if they are of others, in grey."""
    figure = new_figure(7.2, 0.5 + 0.42 * len(rows))
    axes = figure.subplots()
    names = list(rows)[::-1]
    axes.barh(names, [rows[name] for name in names], 0.62, color=[BLUE] * (len(rows) - others) + [GREY] * others)
    for k, name in enumerate(names):
        place, text = (rows[name], k), f"{rows[name]:{form}}"
        axes.annotate(text, place, (5, 0), textcoords="offset points", va="center", fontsize=10)
    axes.set(xlabel=unit, xlim=(0, 1.12 * max(rows.values())))
    axes.grid(visible=False)
    return figure


def scorers() -> Any:
    """The three policies of any_scorer.py."""
    import any_scorer

    found = any_scorer.compare(1000)
    names = ["linear", "SGDRegressor", "network"]
    return bars({name: 100 * right for name, right in zip(names, found.values())}, "kinds that are right, %", others=2)


# docs/results/neural.md; these two take a GPU
HANDWRITTEN = {"SeaRNN (2018), the best of its losses": 1.9, "this network": 0.34}
TRIPS = {"20 cities": 1.0, "50 cities": 4.1, "50 cities, best of 64": 0.5, "20 cities, best of 64": 0.01}

# --- all ---

small_shop = partial(job_shop.draw, size=(8, 6))
PICTURED: dict[str, Callable[[], Any]] = {
    "tsp": lambda: trained(tsp, tsp.Tour, tsp.maps, ("nearest city next", "learned")),
    "layout": lambda: trained(layout, layout.Page, layout.pages, ("slots without a click, the rule", "learned")),
    "grid": lambda: trained(grid, grid.Robot, grid.maps, ("seconds lost, the bot", "learned"), 0.9),
    "job_shop": lambda: optimised(PlannedShop, PlannedShop, small_shop, ("most work left", "learned")),
    "tardiness": lambda: optimised(
        tardiness, tardiness.Tardiness, tardiness.draw, ("the rule", "learned"), quantile=0.9
    ),
    "tsp_insertion": lambda: optimised(
        tsp_insertion, tsp_insertion.Trip, partial(tsp_insertion.draw, cities=30),
        ("nearest to the last", "learned"), rule=tsp_insertion.RULES["nearest to the last"],
    ),
    "bin_packing": lambda: optimised(
        bin_packing, bin_packing.Packing, partial(bin_packing.draw, items=120), ("best fit", "learned"),
        sample_steps=40,
    ),
    "vrp": lambda: optimised(vrp, vrp.Vehicles, vrp.draw, ("savings", "best of 64 samples"), best_of=64),
    "graph_colouring": lambda: optimised(
        graph_colouring, graph_colouring.Colouring, partial(graph_colouring.draw, vertices=40),
        ("DSATUR", "best of 64 samples"), best_of=64,
    ),
    "ocr": letters,
    "chunking": chunks,
    "any_scorer": scorers,
    "ocr_network": lambda: bars(HANDWRITTEN, "letters that are wrong, %", ".2f", others=1),
    "tsp_network": lambda: bars(TRIPS, "above the shortest trip, %", ".2f"),
}  # fmt: skip


def main(names: list[str]) -> None:
    """Draw all pictures, or those named."""
    for name in names or PICTURED:
        print(name, flush=True)
        write(PICTURED[name](), PICTURES / "examples" / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
