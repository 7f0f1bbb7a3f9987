"""A described result on the console."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as ConsoleTable
from rich.text import Text

from lols.reproduction.document import Section, TextCell, TextTable

COLOURS = {"good": "green", "bad": "red", "level": "yellow", "": ""}
LOLS = "black on pale_green1"  # as the paper's cells are


def print_sections(sections: Sequence[Section], console: Console) -> None:
    """Print sections without their charts; the summary comes last.

    >>> from lols.reproduction.document import FigureText, verdict
    >>> table = TextTable(("where", ""), [["Theorem 3", verdict("holds")]], words=2)
    >>> print_sections([Section("Theory", (), [FigureText("Claims", [table])])], Console(width=60))
    Theory
    <BLANKLINE>
    Claims
    where
    Theorem 3  ✓ holds
    <BLANKLINE>
    """
    for section in sorted(sections, key=lambda section: section.in_brief):
        if all(figure.folded for figure in section.figures):
            continue
        console.print(Text(section.title, style="bold"))
        for line in section.lines:
            console.print(Text(line))
        console.print()
        for figure in section.figures:
            tables = [table for table in figure.tables if not table.folded]
            if tables or figure.drawn:
                console.print(Text(figure.title, style="italic"))
                for line in figure.drawn:
                    console.print(Text(line), no_wrap=True, overflow="crop")
                for table in tables:
                    console.print(_table(table))
                if figure.note:
                    console.print(Text(figure.note, style="dim"))
                console.print()


def _table(table: TextTable) -> ConsoleTable:
    shown = ConsoleTable(
        title=table.title or None, title_justify="left", title_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for k, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if k < table.words else "right", no_wrap=not (k or table.wraps))
    for k, row in enumerate(table.rows):
        marked = LOLS if k == table.marked else ""
        shown.add_row(*(_cell(cell, marked) for cell in row))
    return shown


def _cell(cell: TextCell | str, style: str) -> Text:
    if isinstance(cell, str):
        return Text(cell, style=style)
    text = Text(cell.text, style=f"{style or COLOURS[cell.mark]} {'bold' if cell.best else ''}".strip())
    if cell.paper:
        text.append(f" ({cell.paper})", style=style or "dim")
    if cell.note:
        text.append(f" ({cell.note})", style="dim")
    return text
