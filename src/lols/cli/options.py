"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    *("Column", "File", "Files", "Format", "Header", "LikeTraining", "Threads", "Use", "UseLikeTraining", "Word"),
    "use_of",
]

Files = "Files that hold one token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz is read as it is."

File = "A file that holds one token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz is read as it is."

LikeTraining = Annotated[
    str | None,
    typer.Option(
        help="The column of the labels; as in training unless given. A number one beyond the last appends a column.",
        show_default=False,
    ),
]
UseLikeTraining = Annotated[
    list[str] | None,
    typer.Option(help="A further column, as NAME=COLUMN; as in training unless given.", show_default=False),
]
Column = Annotated[
    str | None,
    typer.Option(
        help="The column of the labels: upos, xpos, feats:Case, misc:NER, a number from 1 on, or last. "
        "By default upos, and the last one of plain columns.",
        show_default=False,
    ),
]
Word = Annotated[str, typer.Option(help="The column of the words.")]
Use = Annotated[
    list[str] | None,
    typer.Option(
        help="A further column that templates look at, such as xpos or pos=2; may be repeated. In plain columns all "
        "those before the labels are used unless --use says otherwise; --use none for none.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="conllu, conllx, columns or tsv; by default what the file looks like."),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a TSV file begins with the columns' names.", show_default=False),
]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores unless given.", show_default=False)]


def use_of(given: list[str] | None) -> dict[str, str] | None:
    """`["pos=2", "lemma"]` as a mapping from names to columns."""
    if not given:
        return None
    if given == ["none"]:
        return {}
    made = {}
    for entry in given:
        name, equals, column = entry.rpartition("=")
        column = column or entry
        made[name if equals else _name(column)] = column
    return made


def _name(column: str) -> str:
    return f"column{column}" if column.isdigit() else column.replace(":", "_")
