"""A scripted bot as the teacher: a delivery robot crosses a grid with walls and mud.

    python examples/grid.py

The bot goes wherever it comes nearer to the goal, and turns back only where it must; so it runs into every dead end on
its way, and some of them it never leaves. The learned robot sees no more of the map than the bot does: the cells around
it, how far it can look, and where it has been.
"""

from __future__ import annotations

import heapq
import time
from typing import Any

import numpy as np
from helpers import comparing, drawing

import lols
from lols import emit, feature

__all__ = ["Robot", "draw", "maps", "quickest", "show"]

LIMIT = 80  # the robot's battery: seconds
LEARNER = lols.LearnerSettings("hinge", "adagrad", margin="weighted")
SECONDS = {"#": 0, "~": 3}  # a wall, mud; 1 for everything else
BEST = "the quickest way"


def beside(x, cell, a):
    """The cell above, below, left or right."""
    return cell + (-x.width, x.width, -1, 1)[a]


def away(x, cell):
    """How far a cell is from the goal, as if there were no walls."""
    return abs(cell % x.width - x.goal % x.width) + abs(cell // x.width - x.goal // x.width)


def view(x, cell, a):
    """How many cells are open in a direction, as far as the robot can see."""
    count = 0
    while count < 4 and x.seconds[cell] > 0:
        count += 1
        cell = beside(x, cell, a)
    return count


def bot(x, s):
    """The script that runs today: as near to the goal as it gets, and back only where there is no other way."""
    best, chosen = 1000, 0
    for a in range(4):
        cell = beside(x, s[1], a)
        score = away(x, cell) + 100 * (cell == s[2])
        if x.seconds[cell] > 0 and score < best:
            best, chosen = score, a
    return chosen


class Robot(lols.Task):
    """The state: seconds used, where the robot is and was, and how often it has been in each cell."""

    needs_truth = False
    sizes = lols.Sizes(state=lambda x: 3 + len(x.seconds), steps=LIMIT, actions=4, features=0, action_features=6)
    columns = lols.Columns(x=("seconds", "width", "home", "goal"), y="quickest")

    def start(x, s):
        s[1] = s[2] = x.home

    def actions(x, s, legal):
        for a in range(4):
            legal[a] = s[0] < LIMIT and s[1] != x.goal and x.seconds[beside(x, s[1], a)] > 0

    def step(x, s, a):
        s[3 + s[1]] += 1
        s[2], s[1] = s[1], beside(x, s[1], a)
        s[0] += x.seconds[s[1]]

    def action_features(x, s, a, out):
        cell = beside(x, s[1], a)
        nearer, been = away(x, cell) < away(x, s[1]), min(s[3 + cell], 3)
        emit(out, feature(0, nearer, been, cell == s[2]))
        emit(out, feature(1, nearer, x.seconds[cell]))
        for k in range(4):
            after = beside(x, cell, k)
            emit(out, feature(2, nearer, been, away(x, after) < away(x, cell), view(x, after, k)))

    def loss(x, y, s):
        return s[0] + away(x, s[1]) - y.quickest

    def output(x, s):
        return np.flatnonzero(s[3:]).tolist()

    def reference(x, y, s):
        return bot(x, s)


# --- the world, and what is possible in it ---


def maps(count: int, seed: int, size: int = 12) -> list[dict[str, Any]]:
    """Maps with bars, corners, scattered walls and mud, from S on the left to G on the right; there is always a way."""
    rng = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    while len(made) < count:
        grid = rng.choice(list("..........~~#"), size=(size, size))
        for _ in range(size // 2):
            row, column, length = rng.integers(size), rng.integers(size), rng.integers(size // 4, size // 2)
            if rng.random() < 0.5:
                grid[row, column : column + length] = "#"
            if rng.random() < 0.7:
                grid[row : row + length, column] = "#"
        grid[rng.integers(size), rng.integers(size // 4)] = "S"
        grid[rng.integers(size), size - 1 - rng.integers(size // 4)] = "G"
        found = from_text(["".join(row) for row in np.pad(grid, 1, constant_values="#")])
        if found["quickest"] <= LIMIT // 2:
            made.append(found)
    return made


def from_text(rows: list[str]) -> dict[str, Any]:
    """A map as the task takes it, from lines of text with a wall around: # wall, ~ mud, S start, G goal."""
    flat = "".join(rows)
    seconds = [SECONDS.get(cell, 1) for cell in flat]
    found: dict[str, Any] = {
        "rows": rows,
        "seconds": seconds,
        "width": len(rows[0]),
        "home": flat.index("S"),
        "goal": flat.index("G"),
    }
    return {**found, "quickest": quickest(**found)}


def quickest(seconds: list[int], width: int, home: int, goal: int, **_: Any) -> int:
    """The seconds of the quickest way (Dijkstra 1959); more than the robot has if there is none."""
    known, waiting = set[int](), [(0, home)]
    while waiting:
        used, cell = heapq.heappop(waiting)
        if cell == goal:
            return used
        if cell not in known:
            known.add(cell)
            for beyond in (cell - width, cell + width, cell - 1, cell + 1):
                if seconds[beyond]:
                    heapq.heappush(waiting, (used + seconds[beyond], beyond))
    return LIMIT + 1


def draw(world: dict[str, Any], *ways: list[int]) -> str:
    """The map, once for each robot, with a mark for each cell that it has been in."""
    width = world["width"]
    pictures = []
    for cells in ways:
        flat = list("".join(world["rows"]))
        for cell in cells:
            flat[cell] = flat[cell] if flat[cell] in "SG" else "o"
        pictures.append(["".join(flat[first : first + width]) for first in range(0, len(flat), width)])
    return "\n".join("    ".join(lines) for lines in zip(*pictures))


def show(axes: Any, world: dict[str, Any], cells: list[int]) -> None:
    """Draw the map: walls, mud, and the cells that the robot has been in."""
    kinds = {"#": ("s", drawing.SOFT, 13), "~": ("s", drawing.EDGE, 13)}
    for place, kind in enumerate("".join(world["rows"])):
        east, north = place % world["width"], -(place // world["width"])
        if kind in kinds:
            marker, colour, size = kinds[kind]
            axes.plot(east, north, marker, color=colour, markersize=size)
        if place in cells and kind not in "SG":
            axes.plot(east, north, "o", color=drawing.BLUE, markersize=5)
        if kind in "SG":
            axes.text(east, north, kind, ha="center", va="center", weight="bold", color=drawing.ORANGE)
    drawing.empty_map(axes)


def main(argv: list[str] | None = None) -> None:
    """Learn, compare, show."""
    chosen = comparing.options(__doc__ or "", argv, size=2000)
    began = time.perf_counter()
    train, test = maps(chosen.size, chosen.seed + 1), maps(chosen.tests, chosen.seed + 1000)
    losses, model = comparing.compare(Robot, train, test, chosen, learner=LEARNER, passes=3)
    losses[BEST] = np.zeros((1, len(test)))
    comparing.show(losses, BEST, "seconds lost", chosen, began)
    if not chosen.json:
        world = test[comparing.typical(losses, 0.9)]
        print("\nOne of the tenth of maps where it gains most: the bot on the left, LOLS on the right.\n")
        print(draw(world, comparing.follow(Robot, world), model.predict_one(world)))


if __name__ == "__main__":
    main()
