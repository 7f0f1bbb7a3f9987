"""Round trips of 20 to 100 cities, made by inserting one city after the other: which one next?

    python examples/tsp_insertion.py --cities 50

The rule inserts the city that is nearest to the trip, always where the detour is least. The learned policy sees all
candidates side by side: their detours now, how far they are, what an insertion saves and spoils for the others. Unlike
examples/tsp.py, which goes on to the next city, an insertion does not leave cities behind.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import vrp
from helpers import drawing, solving

import lols
from lols import emit_curve, emit_surface, feature

__all__ = ["RULES", "Trip", "draw", "lengths", "optimum", "show"]


def far(x, a, b):
    """The distance of two cities, where neighbours are typically one apart."""
    return sqrt((x.east[a] - x.east[b]) ** 2 + (x.north[a] - x.north[b]) ** 2)


def offer(x, s, p, c):
    """Keep in mind what inserting city `c` after city `p` costs, if it is the best or the second-best place."""
    detour = far(x, p, c) + far(x, c, s.after[p]) - far(x, p, s.after[p])
    if detour < s.best[c]:
        s.second[c], s.best[c], s.place[c] = s.best[c], detour, p
    elif detour < s.second[c]:
        s.second[c] = detour


def change(x, s, c, o):
    """By how much the least detour of city `o` grows if city `c` is inserted; negative if the insertion helps it."""
    p, q, way = s.place[c], s.after[s.place[c]], far(x, c, o)
    new = way + min(far(x, p, o) - far(x, p, c), far(x, o, q) - far(x, c, q))
    return min(new, s.second[o] if s.place[o] == p else s.best[o]) - s.best[o]


def insert(x, s, a):
    """Insert a city where it fits best, and see where the others fit best then."""
    p = s.place[a]
    s.after[a], s.after[p] = s.after[p], a
    s.inside[a], s.last = 1, a
    s.size += 1
    for c in range(x.n):
        if s.inside[c] == 0:
            s.near[c] = min(s.near[c], far(x, a, c))
            if s.place[c] != p:  # its place is still there
                offer(x, s, p, c)
                offer(x, s, a, c)
            else:
                s.best[c] = s.second[c] = 1e9
                q = a
                for _ in range(s.size):
                    offer(x, s, q, c)
                    q = s.after[q]


def look_around(x, s, legal, c):
    """What inserting a city saves and spoils for the others, and how far the nearest of them is."""
    s.saves[c], s.spoils[c], s.lonely[c] = 0.0, 0.0, 5.0
    for o in range(x.n):
        if legal[o] and o != c:
            growth = change(x, s, c, o)
            s.saves[c] -= min(growth, 0.0)
            s.spoils[c] += max(growth, 0.0)
            s.lonely[c] = min(s.lonely[c], far(x, c, o))
    s.detour[c], s.behind[c], s.regret[c] = s.best[c], -s.near[c], s.best[c] - s.second[c]
    s.net[c] = s.best[c] - s.saves[c] + s.spoils[c]


class Trip(lols.Task):
    """The state: the city after each one, the size of the trip, and for each city left where it fits best."""

    needs_truth = False
    sizes = lols.Sizes(
        state=lols.State(
            inside="n", after="n", place="n", size=int, last=int, best=lols.reals("n"), second=lols.reals("n"),
            near=lols.reals("n"), saves=lols.reals("n"), spoils=lols.reals("n"), lonely=lols.reals("n"),
            detour=lols.reals("n"), net=lols.reals("n"), regret=lols.reals("n"), behind=lols.reals("n"),
        ),
        steps="n", actions="n", features=0, action_features=70,
    )  # fmt: skip

    def encode(places):
        apart = np.linalg.norm(places[:, np.newaxis] - places, axis=-1)
        ends = np.unravel_index(apart.argmax(), apart.shape)  # the trip begins with the two cities farthest apart
        x = {"n": len(places), "first": int(ends[0]), "to": int(ends[1])}
        return lols.Example(x | dict(zip(("east", "north"), sqrt(len(places)) * places.T, strict=True)), {})

    def start(x, s):
        s.after[x.first], s.after[x.to], s.size, s.last = x.to, x.first, 2, x.to
        s.inside[x.first] = s.inside[x.to] = 1
        for c in range(x.n):
            s.best[c] = s.second[c] = 1e9
            s.near[c] = min(far(x, c, x.first), far(x, c, x.to))
            offer(x, s, x.first, c)
            offer(x, s, x.to, c)

    def actions(x, s, legal):
        for c in range(x.n):
            legal[c] = s.inside[c] == 0

    def step(x, s, a):
        insert(x, s, a)

    def survey(x, s, legal):
        for c in range(x.n):
            if legal[c]:
                look_around(x, s, legal, c)
        for part in (s.detour, s.behind, s.regret, s.net):  # 0: cheapest, farthest, most regret, best for all
            lols.above_least(part, legal)

    def action_features(x, s, a, out):
        done, regret = s.size / x.n, s.second[a] - s.best[a]
        for n, value in enumerate((s.best[a], s.near[a], s.saves[a], s.spoils[a], s.lonely[a])):
            emit_curve(out, feature(n), value, 0.2)
        for n, value in enumerate((s.detour[a], s.behind[a], s.regret[a], s.net[a], s.saves[a], s.spoils[a])):
            emit_surface(out, feature(10 + n), value, 0.4, done, 0.2)
        pairs = ((s.behind[a], s.detour[a]), (s.best[a], regret), (s.net[a], s.behind[a]), (s.lonely[a], s.best[a]))
        for n, (value, other) in enumerate(pairs):
            emit_surface(out, feature(20 + n), value, 0.4, other, 0.4)

    def loss(x, y, s):
        length = 0.0
        for c in range(x.n):
            length += far(x, c, s.after[c])
        return length / sqrt(x.n)

    def output(x, s):
        trip = [x.first]
        while len(trip) < x.n:
            trip.append(int(s.after[trip[-1]]))
        return trip

    def reference(x, y, s):
        chosen = -1
        for c in range(x.n):
            if s.inside[c] == 0 and (chosen < 0 or s.near[c] < s.near[chosen]):
                chosen = c
        return chosen


def nearest_to_last(x, y, s):
    """A worse rule, that of the nearest neighbour: the city nearest to the one inserted last."""
    chosen = -1
    for c in range(x.n):
        if s.inside[c] == 0 and (chosen < 0 or far(x, s.last, c) < far(x, s.last, chosen)):
            chosen = c
    return chosen


def farthest(x, y, s):
    """A better rule: the city that is farthest from the trip."""
    chosen = -1
    for c in range(x.n):
        if s.inside[c] == 0 and (chosen < 0 or s.near[c] > s.near[chosen]):
            chosen = c
    return chosen


show = drawing.trip

RULES = {
    "nearest to the last": lols.Reference(action=nearest_to_last, needs_truth=False),
    "farthest insertion": lols.Reference(action=farthest, needs_truth=False),
    "nearest insertion": Trip.teacher,
}


# --- instances, and what is possible ----------------------------------------------------------------------------------


def draw(rng: np.random.Generator, cities: int = 20) -> np.ndarray:
    """Cities drawn uniformly from the unit square: the usual benchmark."""
    return rng.random((cities, 2))


def lengths(places: np.ndarray, trip: list[int]) -> float:
    """The length of a round trip."""
    return float(np.linalg.norm(places[trip] - np.roll(places[trip], -1, axis=0), axis=1).sum())


def nearest_neighbour(places: np.ndarray) -> float:
    """The length of a trip that always goes on to the nearest city left."""
    trip, left = [0], set(range(1, len(places)))
    while left:
        trip.append(min(left, key=lambda c: float(np.linalg.norm(places[c] - places[trip[-1]]))))
        left.remove(trip[-1])
    return lengths(places, trip)


def optimum(places: np.ndarray) -> float:
    """The length of the shortest trip, as far as the heuristic of Lin, Kernighan and Helsgaun finds it."""
    import elkai

    units = np.rint(1e6 * np.linalg.norm(places[:, np.newaxis] - places, axis=-1)).astype(int)
    return lengths(places, elkai.DistanceMatrix(units.tolist()).solve_tsp()[:-1])


def solve(places: np.ndarray, seconds: float) -> float | None:
    """The length of the trip that OR-Tools' routing library finds: one vehicle has room for all."""
    return vrp.solve((1, np.zeros(len(places), np.int64), places), seconds)


def main(argv: list[str] | None = None) -> None:
    """Learn on a few cities, and print the table."""
    chosen = solving.options(__doc__ or "", argv, cities=(20, 50, 100), rule=tuple(reversed(RULES)), learn=0)
    rules: dict[str, Any] = {"nearest neighbour": nearest_neighbour}
    if importlib.util.find_spec("elkai") is not None:
        rules["optimum (LKH)"] = optimum
    rules |= {name: rule for name, rule in RULES.items() if name != chosen.rule}
    rules[chosen.rule] = RULES[chosen.rule]  # the last one is learned from
    learn = partial(draw, cities=chosen.learn or min(chosen.cities, 30))
    solving.compare(Trip, learn, rules, {"OR-Tools routing": solve}, chosen, partial(draw, cities=chosen.cities))


if __name__ == "__main__":
    main()
