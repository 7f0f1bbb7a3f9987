"""What reports share when they are printed for people: tables, and numbers without digits that say nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["plain_table", "show_matrix", "show_scores", "step_table"]

SCORES = {"precision": "precision", "recall": "recall", "f1": "F1"}


def plain_table(*columns: str, right: Sequence[str] = (), **options: Any) -> Table:
    """A table without lines; the columns on the `right` are aligned there."""
    table = Table(box=None, pad_edge=False, **options)
    for name in columns:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def show_scores(
    console: Console, heading: str, rows: Mapping[str, Mapping[str, Any]], more: Mapping[str, str] | None = None
) -> None:
    """Precision, recall, F1 and count of each label; `more` are further shares, with their headings."""
    shares = SCORES | dict(more or {})
    table = plain_table(heading, right=[*shares.values(), "count"])
    for name, row in rows.items():
        table.add_row(escape(name), *(f"{100 * row[key]:.2f}" for key in shares), f"{row['count']:,}")
    console.print(table)


def show_matrix(console: Console, heading: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A square of cells that are markup, with the same names on both sides."""
    table = plain_table(heading, right=[escape(name) for name in names])
    for name, row in zip(names, rows, strict=True):
        table.add_row(escape(name), *row)
    console.print(table)


def step_table(columns: Sequence[str], known: bool, losses: bool, wide: str = "") -> Table:
    """The table of a search: what identifies a step, its actions, and their predicted costs, losses and costs."""
    table = plain_table(padding=(0, 2, 0, 0))
    for name in columns:
        if name == wide:
            table.add_column(name, overflow="fold", max_width=30)
        else:
            table.add_column(name, justify="right" if name in ("#", "stack") else "left", no_wrap=True)
    for name, wanted in (("predicted", True), ("loss", losses), ("cost", known)):
        if wanted:
            table.add_column(name, justify="right", no_wrap=True)
    return table
