"""`lols inspect` for classifiers: the tree of classes, what mistakes cost, and the columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table

from lols.cli.console import say

__all__ = ["classifier_facts", "show_classifier"]

MOST = 24  # classes whose costs are shown
WIDEST = 60  # columns that are listed


def classifier_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is said of a classifier beside what is said of every model."""
    steps = f"{found['depth']} decision{'s' if found['depth'] > 1 else ''} at most"
    yield "classes", f"{len(found['classes'])}: {' '.join(found['classes'])}"
    yield "tree", f"{found['nodes']} node{'s' if found['nodes'] > 1 else ''}, {steps}"
    if found["label_map"] is not None:
        yield "label map", f"of {len(found['label_map'])} labels"
    if isinstance(found["columns"], int):
        yield "columns", f"{found['columns']:,} of a sparse matrix"
        return
    kinds = [column["kind"] for column in found["columns"]]
    how = {"bins": "in bins", "scaled": "scaled", "both": "in bins and scaled"}[found["numeric"]]
    yield "columns", f"{kinds.count('number')} of numbers ({how}), {kinds.count('category')} of categories"
    if found["interactions"]:
        yield "interactions", ", ".join(f"{a} * {b}" for a, b in found["interactions"])
    if found["files"] is not None:
        yield "labels", f"in column {found['files']['label']}"


def show_classifier(found: dict[str, Any]) -> None:
    """The tree, the costs and the columns."""
    say.print("\ntree of classes: decisions by their number")
    for line in drawn(found["tree"]):
        say.print("  " + line, markup=False)
    if found["cost_matrix"] is not None and len(found["classes"]) <= MOST:
        say.print()
        table = Table(box=None, pad_edge=False)
        table.add_column("cost: true \\ predicted")
        for name in found["classes"]:
            table.add_column(escape(name), justify="right", no_wrap=True)
        for name, row in zip(found["classes"], found["cost_matrix"], strict=True):
            table.add_row(escape(name), *(f"{cost:g}" if cost else "[dim]·[/]" for cost in row))
        say.print(table)
    if isinstance(found["columns"], int):
        return
    say.print()
    table = Table(box=None, pad_edge=False)
    for name in ("column", "holds", "background: no feature"):
        table.add_column(name, overflow="fold")
    for column in found["columns"][:WIDEST]:
        one, more = ("bin", "bins") if column["kind"] == "number" else ("category", "categories")
        holds = f"{column['values']:,} {one if column['values'] == 1 else more}"
        often = (column["background"] or "").removeprefix(column["name"]).strip()
        table.add_row(escape(column["name"]), holds, escape(often))
    say.print(table)
    if len(found["columns"]) > WIDEST:
        say.print(f"and {len(found['columns']) - WIDEST} more")


def drawn(tree: Any) -> list[str]:
    """A tree as indented lines; nodes are numbered as the model numbers them.

    >>> print("\\n".join(drawn([["a", "b"], "c"])))
    0
    ├─ 1
    │  ├─ a
    │  └─ b
    └─ c
    """
    numbers = iter(range(1 << 30))

    def lines(part: Any) -> list[str]:
        if not isinstance(part, list):
            return [str(part)]
        made = [str(next(numbers))]
        for k, child in enumerate(part):
            last = k == len(part) - 1
            first, *rest = lines(child)
            made.append(("└─ " if last else "├─ ") + first)
            made += [("   " if last else "│  ") + line for line in rest]
        return made

    return lines(tree)
