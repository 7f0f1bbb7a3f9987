"""Vehicle routing with capacities: which customer next, or back to the depot, learned from a sequential savings rule.

    python examples/vrp.py --customers 20

Vehicles leave a depot, bring customers what they ordered, and return when they are empty. What counts is the length of
all routes. The rule starts each route at the customer farthest away and goes on to the one that saves most over a
route of its own. Customers, orders and capacities are those of Kool, van Hoof and Welling (2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from math import sqrt
from typing import Any

import numpy as np
from helpers import drawing, solving

import lols
from lols import emit, feature

__all__ = ["RULES", "Vehicles", "draw", "show", "solve"]

Delivery = tuple[int, np.ndarray, np.ndarray]  # the capacity, the orders, and the places; the depot comes first
CAPACITY = {10: 20, 20: 30, 50: 40, 100: 50}


def far(x, a, b):
    """The distance of two places."""
    return x.apart[a * x.places + b]


def fits(x, s, c):
    """Whether a customer waits, and the vehicle has enough for the order."""
    return s.served[c] == 0 and x.order[c] <= s.load


def saving(x, s, c):
    """What going on to a customer saves over a route of its own."""
    return far(x, s.here, 0) + far(x, c, 0) - far(x, s.here, c)


def nearest(x, s, here, load, but):
    """The nearest customer other than these two who waits for no more than `load`; 0 for none."""
    found = 0
    for c in range(1, x.places):
        waits = s.served[c] == 0 and x.order[c] <= load and c != here and c != but
        if waits and (found == 0 or far(x, here, c) < far(x, here, found)):
            found = c
    return found


def savings(x, s):
    """The rule: the farthest customer first, then the one that saves most; the depot if nobody can be served."""
    chosen, most = 0, 0.0
    for c in range(1, x.places):
        if fits(x, s, c):
            value = far(x, 0, c) if s.here == 0 else saving(x, s, c)
            if chosen == 0 or value > most:
                chosen, most = c, value
    return chosen


class Vehicles(lols.Task):
    """The state: where the vehicle is, what it carries, who is served, and all places visited, 0 for the depot."""

    needs_truth, nonnegative = False, True
    sizes = lols.Sizes(
        state=lols.State(here=int, load=int, waiting=int, count=int, served="places", visits=lambda x: 2 * x.places),
        steps=lambda x: 2 * x.places,
        actions="places",
        features=0,
        action_features=28,
    )

    def encode(delivery):
        capacity, order, places = delivery
        apart = np.sqrt(((places[:, np.newaxis] - places) ** 2).sum(axis=-1))
        x = {"places": len(places), "capacity": capacity, "order": order, "apart": apart.ravel()}
        return lols.Example(x | {"scale": sqrt(len(places))}, {})

    def start(x, s):
        s.load, s.waiting = x.capacity, x.order.sum()

    def actions(x, s, legal):
        for c in range(1, x.places):
            legal[c] = fits(x, s, c)
        legal[0] = s.here != 0

    def step(x, s, a):
        s.visits[s.count] = s.here = a
        s.count += 1
        s.load = x.capacity if a == 0 else s.load - x.order[a]
        s.waiting -= x.order[a]
        s.served[a] = 1

    def action_features(x, s, a, out):
        here, load = s.here, x.capacity if a == 0 else s.load - x.order[a]
        kind = 2 * (a == 0) + (here == 0)
        closest, after = nearest(x, s, here, s.load, 0), nearest(x, s, a, load, 0)
        later, lonely = nearest(x, s, after, load - x.order[after], a), nearest(x, s, a, x.capacity, 0)
        way, home, full = x.scale * far(x, here, a), x.scale * far(x, a, 0), load / x.capacity
        detour, inward = way - x.scale * far(x, here, closest), x.scale * far(x, here, 0) - home
        on, further, alone = x.scale * far(x, a, after), x.scale * far(x, after, later), x.scale * far(x, a, lonely)
        saved, rest = x.scale * saving(x, s, a), s.waiting / x.capacity
        for k, value in enumerate((way, home, detour, on, further, saved, full, inward, alone)):
            emit(out, feature(k, kind), value)
            emit(out, feature(10 + k, kind, int(4.0 * value)))
        emit(out, feature(20, kind, int(3.0 * saved), int(3.0 * way)))
        emit(out, feature(21, kind, int(3.0 * detour), int(3.0 * on)))
        emit(out, feature(22, kind, int(5.0 * full), int(2.0 * home)))
        emit(out, feature(23, kind, int(after == 0), int(2.0 * home)))
        emit(out, feature(24, kind, int(3.0 * alone), int(3.0 * way)))
        emit(out, feature(25, kind, int(5.0 * full), int(2.0 * (rest % 1.0))))
        emit(out, feature(26, kind, int(3.0 * inward), int(5.0 * full)))
        emit(out, feature(27, int(a == savings(x, s)), kind))

    def cost(x, y, s, a):
        return far(x, s.here, a)

    def loss(x, y, s):
        length, here = 0.0, 0
        for k in range(s.count):
            length += far(x, here, s.visits[k])
            here = s.visits[k]
        return length

    def output(x, s):
        return s.visits[: s.count].tolist()

    def reference(x, y, s):
        return savings(x, s)


def nearest_neighbour(x, y, s):
    """The nearest customer who can be served; the depot if there is none."""
    return nearest(x, s, s.here, s.load, 0)


RULES = {
    "nearest neighbour": lols.Reference(action=nearest_neighbour, needs_truth=False, name="nearest"),
    "savings": Vehicles.teacher,
}


def draw(rng: np.random.Generator, customers: int = 20, capacity: int = 0) -> Delivery:
    """A depot and customers in the unit square, each with an order of 1 to 9."""
    order = np.concatenate([[0], rng.integers(1, 10, customers)])
    return capacity or CAPACITY[customers], order, rng.random((customers + 1, 2))


def solve(delivery: Delivery, seconds: float) -> float | None:
    """The length of the routes that OR-Tools' routing library finds: savings first, then guided local search."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    capacity, order, places = delivery
    apart = np.sqrt(((places[:, np.newaxis] - places) ** 2).sum(axis=-1))
    units = np.round(1e6 * apart).astype(int).tolist()
    nodes = pywrapcp.RoutingIndexManager(len(order), len(order) - 1, 0)
    model = pywrapcp.RoutingModel(nodes)
    way = model.RegisterTransitCallback(lambda a, b: units[nodes.IndexToNode(a)][nodes.IndexToNode(b)])
    model.SetArcCostEvaluatorOfAllVehicles(way)
    wanted = model.RegisterUnaryTransitCallback(lambda a: int(order[nodes.IndexToNode(a)]))
    model.AddDimensionWithVehicleCapacity(wanted, 0, [capacity] * (len(order) - 1), True, "load")
    search = pywrapcp.DefaultRoutingSearchParameters()
    search.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.SAVINGS
    search.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    search.time_limit.FromMilliseconds(max(1, round(1000.0 * seconds)))
    found = model.SolveWithParameters(search)
    return None if found is None else found.ObjectiveValue() / 1e6


def show(axes: Any, delivery: Delivery, visits: Sequence[int]) -> None:
    """Draw each round of a vehicle in a colour of its own, and the depot as a square."""
    stops, places = np.array([0, *visits]), delivery[2]
    rounds = np.split(stops, np.flatnonzero(stops == 0)[1:])
    for stop, colour in zip(rounds, cycle(drawing.COLOURS)):
        axes.plot(*places[[*stop, 0]].T, color=colour, linewidth=1.8)
    axes.plot(*places[1:].T, "o", color=drawing.TEXT, markersize=4)
    axes.plot(*places[0], "s", color=drawing.TEXT, markersize=9)
    drawing.empty_map(axes)


def main(argv: list[str] | None = None) -> None:
    """Learn on 20 customers, and print the table."""
    chosen = solving.options(__doc__ or "", argv, customers=(20, 50, 100, 10))
    few, whole = partial(draw, capacity=CAPACITY[chosen.customers]), partial(draw, customers=chosen.customers)
    solving.compare(Vehicles, few, RULES, {"OR-Tools routing": solve}, chosen, whole)


if __name__ == "__main__":
    main()
