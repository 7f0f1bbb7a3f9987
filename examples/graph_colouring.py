"""Graph colouring: which vertex next, learned from the rule DSATUR.

    python examples/graph_colouring.py --vertices 50

No two neighbours may have the same colour, and what counts is the number of colours. A vertex gets the first colour
that none of its neighbours has, so only the order decides. DSATUR (Brélaz 1979) takes a vertex whose neighbours have
the most colours. The learned policy also sees what the colour that a vertex would get means for those that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from helpers import drawing, solving

import lols
from lols import emit, feature

__all__ = ["RULES", "Colouring", "draw", "show", "solve"]

NEAR = 2  # vertices whose neighbours have at most so many colours less than the most are candidates


def first_colour(x, s, v):
    """The first colour that no neighbour of a vertex has."""
    c = 0
    while s.seen[v * x.most + c] > 0:
        c += 1
    return c


def most_colours(x, s):
    """How many colours the vertex without a colour has beside it that has the most."""
    most = 0
    for v in range(x.n):
        if s.colour[v] == 0:
            most = max(most, s.colours[v])
    return most


def effects(x, s, v, c):
    """Vertices without a colour: neighbours that may still have colour `c`, those that may not, and others that may."""
    lose, lost, keep = 0, 0, 0
    for u in range(x.n):
        if s.colour[u] == 0 and u != v:
            free = s.seen[u * x.most + c] == 0
            if x.joined[v * x.n + u]:
                lose, lost = lose + free, lost + (not free)
            else:
                keep += free
    return lose, lost, keep


def preferred(s, u, v):
    """Whether DSATUR prefers a vertex to another: more colours beside it, then more neighbours without one."""
    return s.colours[u] > s.colours[v] or (s.colours[u] == s.colours[v] and s.open[u] > s.open[v])


def saturated(x, s):
    """The rule DSATUR."""
    chosen = -1
    for v in range(x.n):
        if s.colour[v] == 0 and (chosen < 0 or preferred(s, v, chosen)):
            chosen = v
    return chosen


class Colouring(lols.Task):
    """The state: the colour of each vertex, from 1 on; by how many neighbours of a vertex each colour is seen, and how
    many colours that makes; how many neighbours have none."""

    needs_truth, nonnegative = False, True
    sizes = lols.Sizes(
        state=lols.State(used=int, count=int, colour="n", colours="n", open="n", seen=lambda x: x.n * x.most),
        steps="n",
        actions="n",
        features=0,
        action_features=13,
    )

    def encode(joined):
        degrees = joined.sum(axis=0)
        x = {"n": len(joined), "joined": joined.ravel(), "degree": degrees, "most": int(degrees.max()) + 2}
        return lols.Example(x, {})

    def start(x, s):
        for v in range(x.n):
            s.open[v] = x.degree[v]

    def actions(x, s, legal):
        most = most_colours(x, s)
        for v in range(x.n):
            legal[v] = s.colour[v] == 0 and s.colours[v] >= most - NEAR

    def step(x, s, a):
        c = first_colour(x, s, a)
        s.colour[a] = c + 1
        s.used = max(s.used, c + 1)
        s.count += 1
        for u in range(x.n):
            if x.joined[a * x.n + u]:
                s.colours[u] += s.seen[u * x.most + c] == 0
                s.seen[u * x.most + c] += 1
                s.open[u] -= 1

    def action_features(x, s, a, out):
        c, most, rank = first_colour(x, s, a), most_colours(x, s), 0
        for u in range(x.n):
            rank += s.colour[u] == 0 and preferred(s, u, a)
        lose, lost, keep = effects(x, s, a, c)
        left, back, behind = x.n - s.count, min(s.used - c, 6), most - s.colours[a]
        shares = (rank / left, s.open[a] / left, lose / left, lost / left, keep / left)
        for k, share in enumerate(shares):
            emit(out, feature(k), 4.0 * share)
            emit(out, feature(5 + k, behind, int(10.0 * share)))
        emit(out, feature(10, min(rank, 4)))
        emit(out, feature(11, back, behind))
        emit(out, feature(12, back, 10 * keep // left))

    def cost(x, y, s, a):
        return 1.0 if first_colour(x, s, a) == s.used else 0.0

    def key(x, s):
        found = 0
        for v in range(x.n):
            found = lols.mix(found, s.colour[v])
        return found

    def loss(x, y, s):
        return float(s.used)

    def output(x, s):
        return (s.colour - 1).tolist()

    def reference(x, y, s):
        return saturated(x, s)


def first_candidate(x, y, s):
    """A weak rule: the first vertex that has nearly the most colours beside it."""
    most = most_colours(x, s)
    for v in range(x.n):
        if s.colour[v] == 0 and s.colours[v] >= most - NEAR:
            return v
    return -1


RULES = {
    "largest first": lambda joined: float(len(greedy_classes(joined))),
    "first candidate": lols.Reference(action=first_candidate, needs_truth=False, name="first candidate"),
    "DSATUR": Colouring.teacher,
}


def draw(rng: np.random.Generator, vertices: int = 50, density: float = 0.5) -> np.ndarray:
    """A random graph: each two vertices are joined with the same probability."""
    upper = np.triu(rng.random((vertices, vertices)) < density, 1)
    return (upper | upper.T).astype(np.int8)


def solve(joined: np.ndarray, seconds: float) -> float | None:
    """The number of colours that OR-Tools' CP-SAT reaches; None if it finds no colouring in time."""
    from ortools.sat.python import cp_model

    model, most = cp_model.CpModel(), len(greedy := greedy_classes(joined))
    has = [[model.new_bool_var("") for _ in range(most)] for _ in joined]
    used = [model.new_bool_var("") for _ in range(most)]
    for v, row in enumerate(has):
        model.add_exactly_one(row)
        for c in range(most):
            model.add_implication(row[c], used[c])
            model.add_hint(row[c], v in greedy[c])
    for v, u in zip(*np.nonzero(np.triu(joined))):
        for c in range(most):
            model.add_bool_or(has[v][c].negated(), has[u][c].negated())
    for c in range(1, most):
        model.add_implication(used[c], used[c - 1])
    model.minimize(sum(used))
    return solving.cp_sat(model, seconds)


def greedy_classes(joined: np.ndarray) -> list[set[int]]:
    """Classes of one colour each: vertices of most neighbours first, each into the first class it fits in."""
    classes: list[set[int]] = []
    for v in np.argsort(-joined.sum(axis=0), kind="stable").tolist():
        fitting = [members for members in classes if not any(joined[v, u] for u in members)]
        if fitting:
            fitting[0].add(v)
        else:
            classes.append({v})
    return classes


def show(axes: Any, joined: np.ndarray, colours: Sequence[int]) -> None:
    """Draw a column for each colour, with the vertices that have it."""
    for colour in range(max(colours) + 1):
        members = np.flatnonzero(np.array(colours) == colour)
        axes.plot([colour + 1] * len(members), range(1, len(members) + 1), "o", color=drawing.BLUE, markersize=9)
    axes.set(xlabel="colour", ylabel="vertices", xticks=range(1, max(colours) + 2), ylim=(0, None))


def main(argv: list[str] | None = None) -> None:
    """Learn on graphs of 30 vertices, which are quickly coloured, and print the table."""
    chosen = solving.options(__doc__ or "", argv, vertices=50, density=0.5)
    few = partial(draw, vertices=30, density=chosen.density)
    whole = partial(few, vertices=chosen.vertices)
    solving.compare(Colouring, few, RULES, {"CP-SAT": solve}, chosen, whole)


if __name__ == "__main__":
    main()
