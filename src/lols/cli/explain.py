"""`lols explain`: an algorithm in words."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lols.cli.base import app


@app.command()
def explain(
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM",
            help="lols, aggrevate, dagger, cloning or searn; without it, they are listed.",
            show_default=False,
        ),
    ] = None,
    roll_in: Annotated[
        str | None, typer.Option(help="Who leads to the states learned from: reference, learned or mixture.")
    ] = None,
    roll_out: Annotated[
        str | None, typer.Option(help="Who completes the deviations: reference, mixture, learned or none.")
    ] = None,
    beta: Annotated[
        str | None,
        typer.Option(
            help="Probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA."
        ),
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help="Where the coin is tossed: state, rollout, example, expected or step.")
    ] = None,
    ties: Annotated[str | None, typer.Option(help="Which of equally cheap actions wins: first or random.")] = None,
    returned: Annotated[
        str | None, typer.Option(help="The policy that training gives: average, last or drawn.")
    ] = None,
) -> None:
    """Say in words what an algorithm does: a preset, with the options that change it.

    Options without an algorithm change lols. A contradiction is an error.
    """
    from lols.algorithms import explain as in_words

    options = {"roll_in": roll_in, "roll_out": roll_out, "beta": beta, "mix": mix, "ties": ties, "returned": returned}
    if algorithm is None and all(value is None for value in options.values()):
        _list_presets()
    else:
        print(in_words(algorithm or "lols", **options))


def _list_presets() -> None:
    from lols.algorithms import PRESETS

    table = Table(box=None, pad_edge=False)
    for heading in ("algorithm", "roll in", "roll out", "from"):
        table.add_column(heading)
    for name, preset in PRESETS.items():
        table.add_row(name, preset.roll_in, preset.roll_out, preset.cites)
    out = Console(highlight=False)
    out.print(table)
    out.print("\n`lols explain NAME` says what one does, step by step.")
