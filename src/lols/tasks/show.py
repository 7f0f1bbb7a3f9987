"""What reports share when they are printed for people: lines and tables.

Labels, cells and paths are printed as they are. Rich would take some of them for markup (`[/b]`) or for an emoji
(`:x:`), whatever the console: so all that is printed is a `Text`, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

SCORES = {"precision": "precision", "recall": "recall", "f1": "F1"}
MOST = 10  # labels whose scores are printed, unless all are asked for
LONG = 20  # lines of tables after which the headline is out of sight


def printable(text: str) -> str:
    r"""A text that can be printed: halves of characters, which a forged file may hold, are escaped.

    >>> printable("grün"), printable("\ud800")
    ('grün', '\\ud800')
    """
    return text.encode("utf-8", "backslashreplace").decode()


def styled(text: str, style: str) -> Text:
    """A text in a style, as it is."""
    return Text(printable(text), style=style)


NONE = styled("·", "dim")  # an empty cell of a matrix


def write(console: Console, content: Any = "", *, style: str = "", **options: Any) -> None:
    """Print a line of text as it is, or a table."""
    console.print(styled(content, style) if isinstance(content, str) else content, **options)


class PlainTable(Table):
    """A table without lines, whose headings and cells are printed as they are."""

    def __init__(self, **options: Any):
        super().__init__(box=None, pad_edge=False, **options)

    def add_column(self, header: Any = "", *more: Any, **options: Any) -> None:
        """Add a column with this heading."""
        super().add_column(_text(header), *more, **options)

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row of cells."""
        super().add_row(*map(_text, cells), **options)


def _text(cell: Any) -> Any:
    return styled(cell, "") if isinstance(cell, str) else cell


def plain_table(*columns: str, right: Sequence[str] = (), **options: Any) -> PlainTable:
    """A table without lines; the columns on the `right` are aligned there."""
    table = PlainTable(**options)
    for name in columns:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def show_scores(
    console: Console,
    heading: str,
    rows: Mapping[str, Mapping[str, Any]],
    more: Mapping[str, str] | None = None,
    *,
    whole: bool,
) -> int:
    """Precision, recall, F1 and count of the most frequent labels, or of all if `whole`; returns how many those are.

    `more` are further shares, with their headings.
    """
    shares = SCORES | dict(more or {})
    table = plain_table(heading, right=[*shares.values(), "count"])
    shown = dict(rows if whole else sorted(rows.items(), key=lambda item: -item[1]["count"])[:MOST])
    for name, row in shown.items():
        table.add_row(name, *(f"{100 * row[key]:.2f}" for key in shares), f"{row['count']:,}")
    write(console, table)
    if len(shown) < len(rows):
        write(console, f"and {len(rows) - len(shown)} that are less frequent: --all prints all")
    return len(shown)


def show_again(console: Console, headline: Sequence[str], lines: int) -> None:
    """Print a headline again after so many lines of tables, if it is out of sight."""
    if lines > LONG:
        write(console)
        for line in headline:
            write(console, line)


def show_calibration(console: Console, reliability: Any, of: str = "confidence") -> None:
    """How far confidence is from accuracy, if it is known."""
    if reliability is not None:
        write(console, f"{of}: calibration error {reliability.error:.4f} ({reliability.by_chance:.4f} by chance alone)")


def show_matrix(console: Console, heading: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A square of cells, with the same names on both sides."""
    table = plain_table(heading, right=names)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *row)
    write(console, table)


def at_least(console: Console, width: int) -> Console:
    """The console; a file or a pipe is as wide as need be."""
    if console.is_terminal or console.width >= width:
        return console
    return type(console)(width=width, highlight=False, file=console.file)
