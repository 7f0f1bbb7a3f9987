"""What is said about a result, once for the console, the page and the picture files: sections of tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lols.reproduction.paper import data_file

Values = Mapping[str, Any]
TEXTS = data_file("texts.toml")
FIGURES = "The figures behind it"  # a heading
SIGNS = {
    "holds": ("✓", "good"), "fails": ("✗", "bad"), "no difference": ("≈", "level"),
    "holds in part": ("◐", "good"), "mixed": ("◑", "bad"), "fails in part": ("◔", "bad"),
}  # fmt: skip


class TextCell(NamedTuple):
    """A cell of a table that is more than text."""

    text: str
    note: str = ""  # said in small print
    paper: str = ""  # the paper's figure
    mark: str = ""  # good, bad or level: its colour
    best: bool = False
    shade: float | None = None  # of a heat map, from 0 to 1
    link: str = ""  # the id of a figure


Row = list[TextCell | str]


class TextTable(NamedTuple):
    """A table; the first columns are words, the others are numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[TextCell | str]]
    title: str = ""
    words: int = 1
    marked: int | None = None  # the row of LOLS
    folded: str = ""  # if not empty: on the page behind this heading, and not on the console
    wraps: bool = False  # whether the first column may be broken into lines


class Chart(NamedTuple):
    """A picture: the name of its file, its content in words, and a function that returns a matplotlib figure."""

    name: str
    title: str
    draw: Callable[[], Any]
    file_only: bool = False  # left out of the page, where a table shows the same


class FigureText(NamedTuple):
    """Tables and charts with a title, a note, and the command that computes them."""

    title: str
    tables: Sequence[TextTable] = ()
    charts: Sequence[Chart] = ()
    note: str = ""
    command: str = ""
    id: str = ""
    legend: str = ""  # how to read it on the page
    drawn: Sequence[str] = ()  # a picture in lines of text, for the console
    folded: bool = False  # left out of the console


class Section(NamedTuple):
    """A heading, a few lines, and figures."""

    title: str
    lines: Sequence[str] = ()
    figures: Sequence[FigureText] = ()
    in_brief: bool = False  # what people read first on the page, and last on the console


def verdict(word: str) -> TextCell:
    """A judgement with its sign.

    >>> verdict("fails").text, verdict("not said").text
    ('✗ fails', '– not said')
    """
    sign, mark = SIGNS.get(word, ("–", ""))
    return TextCell(f"{sign} {word}", mark=mark)


def figure(text: str, tables: Sequence[TextTable] = (), /, *charts: Chart, **values: Any) -> FigureText:
    """A figure with the title, note and legend that `texts.toml` has for it, filled in with values.

    >>> figure("table1", agree=5, cells=6).note
    '5 of 6 cells come out as the paper prints them.'
    """
    title, note, legend = (TEXTS[text].get(part, "").format(**values) for part in ("title", "note", "legend"))
    return FigureText(title, tables, charts, note, legend=legend)


def formatted(columns: Mapping[str, str], rows: Sequence[Values]) -> TextTable:
    """A table of numbers with a row for each mapping, from a format for each column.

    >>> formatted({"β": "{beta:g}", "equal": "{equal}/{runs}"}, [{"beta": 0.5, "equal": 2, "runs": 9}]).rows
    [['0.5', '2/9']]
    """
    return TextTable(list(columns), [[text.format(**row) for text in columns.values()] for row in rows], words=0)
