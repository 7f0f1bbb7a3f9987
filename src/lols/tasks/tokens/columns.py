"""Where things are in files of tokens: what taggers and parsers say about columns."""

from __future__ import annotations

from typing import Any

from lols.errors import ConfigurationError
from lols.tasks.options import option

__all__ = ["file_format", "file_header", "use_of"]


def file_format() -> Any:
    """The option that names the format."""
    return option(
        default=None,
        help="The format of the file: conllu, conllx, columns or tsv; detected by default.",
        flag="--format",
    )


def file_header() -> Any:
    """The option that says whether the first line names the columns."""
    return option(
        default=None, help="Whether the first line of a TSV file names the columns.", flag="--header/--no-header"
    )


def use_of(entries: list[str]) -> dict[str, str] | None:
    """Further columns as a mapping from the names that templates use to columns.

    >>> use_of(["pos=2", "lemma"]), use_of(["none"])
    ({'pos': '2', 'lemma': 'lemma'}, {})
    """
    if not entries:
        return None
    if entries == ["none"]:
        return {}
    columns = {}
    for entry in entries:
        name, equals, column = entry.rpartition("=")
        column = column or entry
        if not equals:
            name = f"column{column}" if column.isdigit() else column.replace(":", "_")
        if name == "word":
            raise ConfigurationError(f"--use {entry}: word is the column of --word; take another name")
        columns[name] = column
    return columns
