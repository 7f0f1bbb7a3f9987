"""A described result on the console."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lols.reproduction.document import Section, TextCell, TextTable
from lols.tasks.show import PlainTable, styled, write

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
        write(console, section.title, style="bold")
        for line in section.lines:
            write(console, line)
        write(console)
        for figure in section.figures:
            tables = [table for table in figure.tables if not table.folded]
            if tables or figure.drawn:
                write(console, figure.title, style="italic")
                for line in figure.drawn:
                    write(console, line, no_wrap=True, overflow="crop")
                for table in tables:
                    write(console, _table(table))
                if figure.note:
                    write(console, figure.note, style="dim")
                write(console)


def _table(table: TextTable) -> PlainTable:
    shown = PlainTable(title=table.title or None, title_justify="left", title_style="", padding=(0, 2, 0, 0))
    for k, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if k < table.words else "right", no_wrap=not (k or table.wraps))
    for k, row in enumerate(table.rows):
        marked = LOLS if k == table.marked else ""
        shown.add_row(*(_cell(cell, marked) for cell in row))
    return shown


def _cell(cell: TextCell | str, style: str) -> Text:
    if isinstance(cell, str):
        return styled(cell, style)
    text = styled(cell.text, f"{style or COLOURS[cell.mark]} {'bold' if cell.best else ''}".strip())
    if cell.paper:
        text.append(f" ({cell.paper})", style=style or "dim")
    if cell.note:
        text.append(f" ({cell.note})", style="dim")
    return text
