"""The application: `lols` itself, errors as one line, and what the commands share."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from lols import __version__
from lols.errors import LolsError

__all__ = ["Json", "app", "main", "print_json"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """Run the command line; what is the input's fault becomes one line and exit code 2."""
    try:
        app()
    except LolsError as error:
        print("lols:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)


def print_json(values: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(values))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"lols {__version__}")
        raise typer.Exit


@app.callback()
def lols(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learning to search: fast policies for dependent decisions, which may end up better than their teacher."""
