"""The output of `lols bandit simulate`: mean losses, the running loss, and a summary sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.cli.console import say
from lols.tasks.show import plain_table

ROWS = 8  # rows of the running loss
WIDTH = 24  # the width of its bars, in characters
UNITS = {"layout": "page"}  # what a loss is for; a sentence in other worlds


def show(result: dict[str, Any]) -> None:
    """Print the figures of a simulation."""
    _figures(result)
    say.print()
    _running(result["curve"])
    say.print()
    say.print(_sentence(result))
    seeds = len(result["seeds"])
    if "guard_bound_held" in result:
        held = result["guard_bound_held_seeds"]
        which = ("yes" if held else "no") if seeds == 1 else f"{held} of {seeds} seeds"
        say.print(f"total loss at most the reference's + the sum of ε + 3 √n after every round n: {which}")
    for name in ("plot", "log"):
        if name in result:
            say.print(f"{result[name]} written")


def _figures(result: dict[str, Any]) -> None:
    table = plain_table()
    table.add_column("loss")
    for title in (f"{result['rounds']:,} rounds", f"{result['held_out_objects']:,} held out", "gap closed"):
        table.add_column(title, justify="right")
    rows = [
        ("random", "random_loss", "held_out_random_loss"),
        ("reference", "reference_loss", "held_out_reference_loss"),
        ("bandit while learning", "mean_loss", None),
        ("bandit, last 10 %", "final_loss", None),
        ("final policy", None, "policy_loss"),
        ("full information", None, "full_information_loss"),
        ("optimum", None, "optimum_loss"),
    ]
    for name, of_rounds, of_held_out in rows:
        if of_rounds is None and of_held_out is not None and result[of_held_out] is None:
            continue
        closed = _share(result, "gap_closed") if name == "final policy" else ""
        table.add_row(name, _loss(result, of_rounds), _loss(result, of_held_out), closed)
    say.print(table)
    seeds = len(result["seeds"])
    if seeds > 1:
        say.print(f"means of {seeds} seeds ± half the width of their 95 % intervals", style="dim")


def _loss(result: dict[str, Any], name: str | None) -> str:
    return "" if name is None else f"{result[name]:.4f}{_spread(result, name, 1.0, 4)}"


def _share(result: dict[str, Any], name: str) -> str:
    return "" if result[name] is None else f"{100 * result[name]:.0f}{_spread(result, name, 100.0, 0)} %"


def _spread(result: dict[str, Any], name: str, scale: float, digits: int) -> str:
    half = result["intervals"][name]
    return "" if not half else f" ± {scale * half:.{digits}f}"


def _running(curve: dict[str, list[float]]) -> None:
    """A few windows of the running loss, with bars from the lowest to the highest loss."""
    ends = np.array([0, *curve["rounds"]])
    groups = np.array_split(np.arange(ends.size - 1), min(ROWS, ends.size - 1))
    sizes = np.diff(ends)
    bandit, reference = (
        [float(np.average(np.array(curve[name])[group], weights=sizes[group])) for group in groups]
        for name in ("loss", "reference")
    )
    low, high = min(*bandit, *reference), max(*bandit, *reference)
    table = plain_table()
    for title in ("rounds", "bandit", "reference"):
        table.add_column(title, justify="right")
    table.add_column("bandit against the reference (│)", no_wrap=True)
    for group, mine, theirs in zip(groups, bandit, reference):
        span = f"{ends[group[0]] + 1:,} to {ends[group[-1] + 1]:,}"
        table.add_row(span, f"{mine:.4f}", f"{theirs:.4f}", _bar(mine, theirs, low, high))
    say.print(table)


def _bar(mine: float, theirs: float, low: float, high: float) -> str:
    places = [round((WIDTH - 1) * (value - low) / (high - low)) if high > low else 0 for value in (mine, theirs)]
    cells = ["█" if k <= places[0] else " " for k in range(WIDTH)]
    cells[places[1]] = "│" if places[1] > places[0] else "┃"
    return "".join(cells)


def _sentence(result: dict[str, Any]) -> str:
    unit = UNITS.get(result["world"], "sentence")
    policy, reference, closed = result["policy_loss"], result["held_out_reference_loss"], result["gap_closed"]
    losses = f"loses {policy:.3f} a {unit}, the reference {reference:.3f}"
    sentence = f"After {result['rounds']:,} rounds the bandit's policy {losses}"
    if policy >= reference:
        return sentence + ": it is not better yet."
    if closed is None:
        return sentence + "."
    if closed >= 1.0:
        return sentence + ": as good as a learner that sees the truth."
    return sentence + f": {100 * closed:.0f} % of the way to a learner that sees the truth."
