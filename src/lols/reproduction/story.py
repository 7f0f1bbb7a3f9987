"""A policy overtakes its teacher: round trips through houses, learned from the rule "always go to the nearest one"."""

# The first argument of a task's functions is an input, not an object.
# mypy: disable-error-code="attr-defined, arg-type, index"
from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

import lols
from lols.contract.features import emit, feature
from lols.reproduction import charts
from lols.reproduction.document import FIGURES, TEXTS, Chart, Section, TextTable, figure

HOUSES, TESTS, SEEDS = 20, 300, 3
SIZES = (1, 3, 10, 30, 100, 300)  # maps to learn from
NEW = 1000  # the seed of the maps to test on


def far(x, a, b):
    """The distance of two houses, where neighbours are typically one apart."""
    return sqrt(x.n * ((x.east[a] - x.east[b]) ** 2 + (x.north[a] - x.north[b]) ** 2))


class Trip(lols.Task):
    """A round trip that begins and ends at house 0: go on to one of the houses that are left, until none is."""

    needs_truth = False
    sizes = lols.Sizes(
        state=lols.State(visited="n", trip="n", length=1),
        steps=lambda x: x.n, actions=lambda x: x.n, features=0, action_features=10,
    )  # fmt: skip

    def encode(houses):
        return lols.Example({"n": len(houses), "east": houses[:, 0], "north": houses[:, 1]}, {})

    def start(x, s):
        s.visited[0] = s.length[0] = 1

    def actions(x, s, legal):
        for house in range(x.n):
            legal[house] = s.visited[house] == 0

    def step(x, s, a):
        s.trip[s.length[0]] = a
        s.visited[a] = 1
        s.length[0] += 1

    def action_features(x, s, a, out):
        """How far it is to a house, from there to the next two, home, and to all others on average."""
        home = first = second = far(x, a, 0)
        total = 0.0
        for other in range(x.n):
            if s.visited[other] == 0 and other != a:
                way = far(x, a, other)
                first, second = min(first, way), min(second, max(first, way))
                total += way
        ways = (far(x, s.trip[s.length[0] - 1], a), first, second, home, total / (x.n - s.length[0]))
        for k, way in enumerate(ways):
            emit(out, feature(k, 5 * s.length[0] // x.n), way)
            emit(out, feature(5 + k, int(4.0 * way)))

    def loss(x, y, s):
        way = 0.0
        for k in range(x.n):
            way += far(x, s.trip[k], s.trip[(k + 1) % x.n])
        return way / sqrt(x.n)

    def output(x, s):
        return s.trip.tolist()

    def reference(x, y, s):
        """The nearest house."""
        nearest = -1
        for house in range(x.n):
            here = s.trip[s.length[0] - 1]
            if s.visited[house] == 0 and (nearest < 0 or far(x, here, house) < far(x, here, nearest)):
                nearest = house
        return nearest


def run_story(
    sizes: Sequence[int] = SIZES, tests: int = TESTS, houses: int = HOUSES, *, compiled: bool = True
) -> dict[str, Any]:
    """Learn from more and more maps, and compare with the teacher on new ones; nothing is chosen on them.

    >>> found = run_story(sizes=(1, 2), tests=3, houses=5, compiled=False)
    >>> found["maps"], len(found["lengths"][0]), sorted(found["learned"])
    ([1, 2], 3, [0, 1, 2, 3, 4])
    """
    new = _maps(tests, houses, NEW)
    lengths = []
    for size in sizes:
        models = [
            lols.train(Trip, _maps(size, houses, seed), passes=3, seed=seed, compiled=compiled, progress=False)
            for seed in range(SEEDS)
        ]
        lengths.append([model.evaluate(new) for model in models])
    teacher, learned = models[0].reference_losses(new, Trip.teacher), models[0].losses(new)
    shown = int(np.argsort(learned - teacher)[tests // 2])  # the median of what it gains
    return {
        "houses": new[shown].round(4).tolist(),
        "teacher": [int(house) for house in models[0].reference_outputs([new[shown]], Trip.teacher)[0]],
        "learned": [int(house) for house in models[0].predict_one(new[shown])],
        "shown_lengths": [float(teacher[shown]), float(learned[shown])],
        "maps": list(sizes),
        "lengths": lengths,  # by size and seed: means over the new maps
        "teacher_length": float(teacher.mean()),
        "gain": statistics.fmean(float((teacher - model.losses(new)).mean()) for model in models),
        "gain_error": float((teacher - learned).std(ddof=1) / sqrt(tests)),  # over maps, of the first seed
        "new_maps": tests,
    }


def _maps(count: int, houses: int, seed: int) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).random((count, houses, 2)))


def drawn_map(houses: Sequence[Sequence[float]], trip: Sequence[int], width: int = 36, height: int = 13) -> list[str]:
    """A trip as lines of Braille dots, the houses as circles and the first one as a filled one.

    >>> print("\\n".join(drawn_map([[0, 0], [1, 0], [1, 1]], [0, 1, 2], width=6, height=3)))
    ⠀⠀⠀⠀⡠○
    ⠀⠀⡠⠊⠀⢸
    ●⣊⣀⣀⣀○
    """
    rows, columns = 4 * height, 2 * width
    places = np.array(houses) * [columns - 1, 1 - rows] + [0, rows - 1]
    dots = np.zeros((rows, columns), bool)
    for here, there in zip(places[list(trip)], places[[*trip[1:], trip[0]]]):
        for share in np.linspace(0.0, 1.0, 2 * columns):
            east, south = np.rint(here + share * (there - here)).astype(int)
            dots[south, east] = True
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    cells = np.einsum("hrwc,rc->hw", dots.reshape(height, 4, width, 2), bits)
    lines = [[chr(0x2800 + bits) for bits in row] for row in cells]
    for k, (east, south) in enumerate(np.rint(places).astype(int)):
        lines[south // 4][east // 2] = "○" if k else "●"
    return ["".join(line) for line in lines]


def story_section(story: Mapping[str, Any]) -> Section:
    """How a policy overtakes its teacher, in pictures."""
    teacher, means = story["teacher_length"], [statistics.fmean(runs) for runs in story["lengths"]]
    maps = [drawn_map(story["houses"], story[name]) for name in ("teacher", "learned")]
    titles = [f"{name}: {length:.2f}" for name, length in zip(("the teacher", "the policy"), story["shown_lengths"])]
    drawn = [f"{left:<40}{right}" for left, right in zip([titles[0], *maps[0]], [titles[1], *maps[1]])]
    drawn += ["", f"{'maps learned from':<20}mean length on {story['new_maps']:,} new maps"]
    rows = [("(the teacher)", teacher), *((f"{size:,}", mean) for size, mean in zip(story["maps"], means))]
    drawn += [f"{name:<20}{'█' * round(8 * mean)} {mean:.2f}{' shorter' * (mean < teacher)}" for name, mean in rows]
    values = {"maps": story["maps"][-1], "new_maps": story["new_maps"]}
    values |= {"gain": 100 * story["gain"] / teacher, "error": 100 * 2 * story["gain_error"] / teacher}
    figures = TextTable(
        ("maps learned from", "mean length"), [[name, f"{mean:.3f}"] for name, mean in rows], folded=FIGURES
    )
    chart = Chart("story", "Lengths of round trips, and one map twice", partial(charts.overtaking, story))
    made = figure("story", [figures], chart, **values)._replace(command="lols reproduce story", drawn=drawn)
    said = TEXTS["story"]["about"].format(houses=len(story["houses"]))
    return Section("A policy overtakes its teacher", (said,), [made])
