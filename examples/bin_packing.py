"""Online bin packing: which bin takes the item that comes next, learned from the rule "best fit".

    python examples/bin_packing.py
    python examples/bin_packing.py --kind uniform

Items come one after the other, and the next ones are not known. What counts is the number of bins, in percent above
the total size of the items. Best fit takes the fullest bin in which the item fits. The learned policy learns which
gaps are good to have: those that the sizes of coming items often fill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from helpers import drawing, solving

import lols
from lols import emit, feature

__all__ = ["RULES", "Packing", "draw", "show", "solve"]

Items = tuple[int, np.ndarray]  # the size of a bin, and the items in their order


class Packing(lols.Task):
    """The state: how many open bins have each gap. An action is the gap of the bin that takes the item; the largest
    is that of a new bin."""

    needs_truth, nonnegative = False, True
    sizes = lols.Sizes(
        state=lols.State(next=int, bins=int, open=lambda x: x.size + 1, gap=lambda x: len(x.items)),
        steps=lambda x: len(x.items),
        actions=lambda x: x.size + 1,
        features=0,
        action_features=8,
    )

    def encode(packing):
        size, items = packing
        return lols.Example({"size": size, "items": items, "least": items.sum() / size}, {})

    def actions(x, s, legal):
        if s.next < len(x.items):
            for gap in range(x.items[s.next], x.size):
                legal[gap] = s.open[gap] > 0
            legal[x.size] = True

    def step(x, s, a):
        if a == x.size:
            s.bins += 1
        else:
            s.open[a] -= 1
        s.open[a - x.items[s.next]] += 1
        s.gap[s.next] = a
        s.next += 1

    def action_features(x, s, a, out):
        item, tighter = x.items[s.next], 0
        left = a - item
        for gap in range(item, a):
            tighter += s.open[gap] > 0
        emit(out, feature(0, a // 5))
        emit(out, feature(1, left))
        emit(out, feature(2, left // 5))
        emit(out, feature(3, left // 4, min(s.open[left], 2)))
        emit(out, feature(4), s.open[left] / 4.0)
        emit(out, feature(5, min(tighter, 3), left // 8))
        emit(out, feature(6, a // 10, left // 10))
        emit(out, feature(7, int(a == x.size), min(tighter, 3)))

    def cost(x, y, s, a):
        return 100.0 / x.least if a == x.size else 0.0

    def loss(x, y, s):
        return 100.0 * s.bins / x.least

    def key(x, s):
        found = s.next
        for gap in range(x.size):
            if s.open[gap] > 0:
                found = lols.mix(lols.mix(found, gap), s.open[gap])
        return found

    def output(x, s):
        return s.gap.tolist()

    def reference(x, y, s):
        for gap in range(x.items[s.next], x.size):
            if s.open[gap] > 0:
                return gap
        return x.size


def worst_fit(x, y, s):
    """The emptiest open bin in which the item fits."""
    for gap in range(x.size - 1, x.items[s.next] - 1, -1):
        if s.open[gap] > 0:
            return gap
    return x.size


def first_fit(packing: Items) -> float:
    """The loss of the rule that takes the first bin in which the item fits; all items in their order."""
    size, items = packing
    gaps = np.full(len(items), size)
    for item in items:
        gaps[np.argmax(gaps >= item)] -= item
    return 100.0 * (gaps < size).sum() / (items.sum() / size)


def all_known(packing: Items) -> float:
    """What is possible if all items are known: best fit, the largest items first."""
    size, items = packing
    return 100.0 * sum(gap == size for gap, _ in largest_first(packing)) / (items.sum() / size)


def largest_first(packing: Items) -> list[tuple[int, int]]:
    """Best fit of the items by their size: for each, the gap of its bin before, and the item."""
    size, items = packing
    gaps, found = np.full(len(items), size), []
    for item in np.sort(items)[::-1]:
        at = np.argmin(np.where(gaps >= item, gaps, 2 * size))
        found.append((int(gaps[at]), int(item)))
        gaps[at] -= item
    return found


RULES = {
    "best fit decreasing (offline)": all_known,
    "first fit": first_fit,
    "worst fit": lols.Reference(action=worst_fit, needs_truth=False, name="worst fit"),
    "best fit": Packing.teacher,
}


def draw(rng: np.random.Generator, kind: str = "weibull", items: int = 250) -> Items:
    """The size of a bin, and items: as in FunSearch (Romera-Paredes et al. 2024), or as in the OR-Library."""
    if kind == "uniform":
        return 150, rng.integers(20, 101, items)
    return 100, np.clip(np.round(45.0 * rng.weibull(3.0, items)), 1, 100).astype(np.int64)


def solve(packing: Items, seconds: float) -> float | None:
    """The loss that OR-Tools' CP-SAT reaches if it knows all items, from best fit decreasing.

    Bins are paths from the size of a bin down to smaller gaps, and how often each item is put into each gap is counted
    (arc flow, Valério de Carvalho 1999).
    """
    from ortools.sat.python import cp_model

    size, items = packing
    model, hint = cp_model.CpModel(), Counter(largest_first(packing))
    kinds = Counter(items.tolist())
    put = {(gap, i): model.new_int_var(0, n, "") for i, n in kinds.items() for gap in range(i, size + 1)}
    leaving: dict[int, list[Any]] = {gap: [] for gap in range(size + 1)}
    reaching: dict[int, list[Any]] = {gap: [] for gap in range(size + 1)}
    for (gap, i), count in put.items():
        leaving[gap].append(count)
        reaching[gap - i].append(count)
        model.add_hint(count, hint[gap, i])
    for gap in range(size):
        model.add(sum(leaving[gap]) <= sum(reaching[gap]))
    for i, n in kinds.items():
        model.add(sum(put[gap, i] for gap in range(i, size + 1)) == n)
    model.minimize(sum(leaving[size]))
    found = solving.cp_sat(model, seconds)
    return None if found is None else 100.0 * found / (items.sum() / size)


def show(axes: Any, packing: Items, gaps: Sequence[int]) -> None:
    """Draw the bins beside each other, with their items from below; what stays empty is open at the top."""
    size, items = packing
    fill: list[int] = []
    for item, gap in zip(items.tolist(), gaps):
        at = len(fill) if gap == size else fill.index(size - gap)
        if gap == size:
            fill.append(0)
        axes.bar(at, item, 0.8, fill[at], color=drawing.BLUE, alpha=0.6)
        fill[at] += item
    axes.bar(range(len(fill)), [size - full for full in fill], 0.8, fill, color=drawing.ORANGE)
    axes.set(xlabel="bin", ylabel="filled")


def main(argv: list[str] | None = None) -> None:
    """Learn on 500 items, at 50 random states of each instance, and print the table."""
    chosen = solving.options(__doc__ or "", argv, kind=("weibull", "uniform"), items=1000)
    whole = partial(draw, kind=chosen.kind, items=chosen.items)
    solvers = {"CP-SAT (offline)": solve}
    solving.compare(Packing, partial(draw, kind=chosen.kind, items=500), RULES, solvers, chosen, whole, sample_steps=50)


if __name__ == "__main__":
    main()
