"""A heuristic as the teacher: round trips (the travelling salesman), learned from the rule of the nearest neighbour.

    python examples/tsp.py

A decision goes on to one of the five nearest cities that are left. The teacher always takes the nearest, and pays for
the cities it leaves behind when it has to come back for them. The learned policy sees how lonely a candidate is, and
where the rest of the cities are.
"""

from __future__ import annotations

import time
from math import sqrt
from typing import Any

import numpy as np
from helpers import comparing, drawing

import lols
from lols import emit, feature
from lols.plots.plans import side_by_side

__all__ = ["Tour", "maps", "show", "two_opt"]

LEARNER = lols.LearnerSettings("hinge", "adagrad", margin="cost")
NEARLY_BEST = "2-opt, best of 30"


def far(x, a, b):
    """The distance of two cities, where neighbours are typically one apart."""
    return sqrt(x.n * ((x.east[a] - x.east[b]) ** 2 + (x.north[a] - x.north[b]) ** 2))


def arrive(x, s):
    """Be in the next city of the trip, and sort those that are left by their distance from it."""
    s[0] += 1
    here = s[s[0]]
    for i in range(s[0] + 2, x.n + 1):
        for k in range(i, s[0] + 1, -1):
            if far(x, here, s[k]) < far(x, here, s[k - 1]):
                s[k], s[k - 1] = s[k - 1], s[k]


def prospects(x, s, city):
    """How far a city is, and from there the two nearest that are left, home, and on average all that are left."""
    home = first = second = far(x, city, s[1])
    total = 0.0
    for k in range(s[0] + 1, x.n + 1):
        if s[k] != city:
            distance = far(x, city, s[k])
            first, second = min(first, distance), min(second, max(first, distance))
            total += distance
    return far(x, s[s[0]], city), first, second, home, total / (x.n - s[0])


class Tour(lols.Task):
    """The state: how many cities the trip has so far, these in their order, and the others, the nearest first."""

    needs_truth = False
    sizes = lols.Sizes(state=lambda x: 1 + x.n, steps="n", actions=5, features=0, action_features=10)

    def encode(places):
        return lols.Example({"n": len(places), "east": places[:, 0], "north": places[:, 1]}, {})

    def start(x, s):
        for city in range(x.n):
            s[1 + city] = city
        arrive(x, s)

    def actions(x, s, legal):
        legal[: x.n - s[0]] = True

    def step(x, s, a):
        s[s[0] + 1], s[s[0] + 1 + a] = s[s[0] + 1 + a], s[s[0] + 1]
        arrive(x, s)

    def action_features(x, s, a, out):
        for k, distance in enumerate(prospects(x, s, s[s[0] + 1 + a])):
            emit(out, feature(k, 5 * s[0] // x.n), distance)
            emit(out, feature(5 + k, int(4.0 * distance)))

    def loss(x, y, s):
        length = 0.0
        for k in range(x.n):
            length += far(x, s[1 + k], s[1 + (k + 1) % x.n])
        return length / sqrt(x.n)

    def output(x, s):
        return s[1:].tolist()

    def reference(x, y, s):
        return 0


# --- the world, and what is possible in it ---


def maps(count: int, seed: int, cities: int = 20) -> list[np.ndarray]:
    """Cities drawn uniformly from the unit square: the usual benchmark."""
    return list(np.random.default_rng(seed).random((count, cities, 2)))


def lengths(places: np.ndarray, trips: np.ndarray) -> np.ndarray:
    """The length of each round trip."""
    return np.linalg.norm(places[trips] - places[np.roll(trips, -1, axis=-1)], axis=-1).sum(axis=-1)


def two_opt(places: np.ndarray, seed: int = 0, tries: int = 30) -> tuple[float, list[int]]:
    """The shortest of many trips, each a random one whose parts were reversed while that helped: nearly the optimum."""
    n = len(places)
    apart = np.linalg.norm(places[:, np.newaxis] - places, axis=-1)
    trips = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (tries, 1)), axis=1)
    i, j = np.triu_indices(n, 1)  # the part from i + 1 to j is reversed
    moving = np.arange(tries)
    while moving.size:
        now, after = trips[moving], np.roll(trips[moving], -1, axis=1)
        gain = apart[now[:, i], after[:, i]] + apart[now[:, j], after[:, j]]
        gain -= apart[now[:, i], now[:, j]] + apart[after[:, i], after[:, j]]
        best = gain.argmax(axis=1)
        moving, best = moving[gain.max(axis=1) > 1e-9], best[gain.max(axis=1) > 1e-9]
        for trip, move in zip(moving, best):
            part = slice(i[move] + 1, j[move] + 1)
            trips[trip, part] = trips[trip, part][::-1]
    shortest = lengths(places, trips).argmin()
    return float(lengths(places, trips)[shortest]), trips[shortest].tolist()


def show(axes: Any, places: np.ndarray, trip: list[int]) -> None:
    """Draw a trip, with a ring around the city where it begins."""
    drawing.trip(axes, places, trip)
    axes.plot(*places[0], "o", color=drawing.ORANGE, markersize=11, markerfacecolor="none", markeredgewidth=2)


def main(argv: list[str] | None = None) -> None:
    """Learn, compare, show."""
    chosen = comparing.options(__doc__ or "", argv, size=1000, pictures=True)
    began = time.perf_counter()
    train, test = maps(chosen.size, chosen.seed + 1), maps(chosen.tests, chosen.seed + 1000)
    losses, model = comparing.compare(Tour, train, test, chosen, learner=LEARNER, passes=3)
    losses[NEARLY_BEST] = np.array([[two_opt(places)[0] for places in test]])
    comparing.show(losses, NEARLY_BEST, "length of the trip", chosen, began)
    if chosen.svg:
        places = test[comparing.typical(losses)]
        trips = [comparing.follow(Tour, places), model.predict_one(places)]
        titles = [
            f"{name}: {lengths(places, np.array(trip)):.2f}" for name, trip in zip(("nearest first", "LOLS"), trips)
        ]
        side_by_side(show, [(places, trip) for trip in trips], titles, chosen.svg)


if __name__ == "__main__":
    main()
