"""`lols explain` for classifiers: a row's way down the tree of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lols.cli.base import print_json
from lols.cli.console import say
from lols.cli.predict_classifier import open_table_file
from lols.errors import ConfigurationError

if TYPE_CHECKING:  # this needs Numba
    from lols.tasks.tables.explain import TreeWalk, Turn

__all__ = ["explain_classifier"]

MOST = 12  # children that are shown
CELLS = 400  # characters of a row


def explain_classifier(
    classifier: Any,
    model: str,
    file: str,
    row: int,
    places: tuple[str | None, bool | None, str | None],
    top: int,
    as_json: bool,
) -> None:
    """Show how a classifier decides about one row of a table, counted from 1."""
    from lols.tasks.tables.explain import explain_row, read_row

    if row < 1:
        raise ConfigurationError(f"--row is {row}: rows are counted from 1")
    source, label = open_table_file(classifier, file, *places)
    known = label if label in source.names or places[0] is not None else None
    rows, true, cells = read_row(classifier, source, row - 1, known)
    made = explain_row(classifier, rows, true, top=top)
    if as_json:
        print_json({"model": model, "file": file, "row": row, **made.as_dict()})
        return
    say.print(f"Row {row:,} of {file} ({source.place(row - 1).removeprefix(file + ', ')}), by {model}", markup=False)
    text = ", ".join(cells)
    say.print(text if len(text) <= CELLS else text[: CELLS - 2] + " …", markup=False, style="dim")
    say.print(_verdict(made), markup=False)
    for turn in made.turns:
        _show(turn, made)
    costs = "; cost: of the cheapest class below" if made.true is not None else ""
    say.print(f"\n→ the way taken; predicted: the cost in the eyes of the model{costs}")
    if any(turn.reasons for turn in made.turns):
        say.print("because: + made the way taken seem cheaper than the others, - dearer")


def _verdict(made: TreeWalk) -> str:
    if made.true is None:
        return f"predicted {made.predicted}"
    if made.predicted == made.true:
        return f"predicted {made.predicted}, which is right"
    return f"predicted {made.predicted}, true {made.true}: a cost of {made.cost:g}"


def _show(turn: Turn, made: TreeWalk) -> None:
    say.print(f"\nnode {turn.node}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("child", overflow="fold")
    table.add_column("predicted", justify="right", no_wrap=True)
    if made.true is not None:
        table.add_column("cost", justify="right", no_wrap=True)
    children = sorted(turn.children, key=lambda child: child.predicted) if len(turn.children) > 2 else turn.children
    for k, child in enumerate(children):
        if k >= MOST and not child.taken and made.true not in child.classes:
            continue
        style = ("bold red" if turn.costly else "bold") if child.taken else "default"
        true = " ✓" if made.true in child.classes else ""
        cost = [] if child.cost is None else [f"{child.cost:g}"]
        name = f"[{style}]{escape(child.name)}{true}[/]"
        table.add_row("→" if child.taken else "", name, f"{child.predicted:.3f}", *cost)
    say.print(table, soft_wrap=False)
    if len(children) > MOST:
        say.print(f"  and others, {len(children)} in all", style="dim")
    if turn.reasons:
        reasons = "   ".join(f"{reason.push:+.3f} {reason.feature}" for reason in turn.reasons)
        say.print(f"  because {reasons}", markup=False)
