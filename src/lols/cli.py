"""The command line. Whatever needs Numba is imported inside the commands, so that `lols --help` is instant."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lols import __version__
from lols.errors import LolsError

__all__ = ["app", "main"]

# Generated sentences that `warmup` trains on: kernels are compiled for types, so a few do.
SENTENCES = 8
REDUCTIONS = ("hinge", "csoaa")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; what is the input's fault becomes one line and exit code 2."""
    try:
        app()
    except LolsError as error:
        print("lols:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)


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


@app.command()
def warmup(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Fill the compilation cache, so that no later run has to wait for it.

    Trains and predicts on a few generated sentences, with each way of learning and each kind of teacher. What this
    compiles is kept on disk until the library, Numba or Python changes. A search space of your own is compiled on its
    first run, and kept as well.
    """
    os.environ.setdefault("LOLS_ANNOUNCE", "0")  # that it compiles is all that this command says
    out = Console(quiet=as_json, highlight=False)
    out.print("Compiling what training and prediction need: about a minute, unless it is cached.")
    steps: list[dict[str, Any]] = []
    work = _warmup_steps()
    name = next(work, None)
    while name is not None:
        out.print(f"  {name} ... ", end="")
        began, compiled = time.perf_counter(), _compile_seconds()
        following = next(work, None)
        seconds, compiling = time.perf_counter() - began, _compile_seconds() - compiled
        out.print(f"{seconds:.1f} s" if compiling else f"{seconds:.1f} s, nothing to compile")
        steps.append({"name": name, "seconds": seconds, "seconds_compiling": compiling})
        name = following
    total, compiling = (sum(step[key] for step in steps) for key in ("seconds", "seconds_compiling"))
    if as_json:
        sums = {"seconds_compiling": compiling, "seconds_total": total}
        print(json.dumps({"cached": not compiling, **sums, "steps": steps}))
    elif compiling:
        out.print(f"Done in {total:.1f} s. The {compiling:.1f} s of compilation will not come again.")
    else:
        out.print(f"Everything was cached already; checking took {total:.1f} s.")


def _warmup_steps() -> Iterator[str]:
    """Give the name of each step, then do it when asked for the next one."""
    yield "loading the engine"
    from lols.trainer import train
    from lols.worlds import tagging_data, tagging_references, tagging_space

    space, data, teachers = tagging_space(labels=12), tagging_data(SENTENCES), tagging_references()
    for reduction in REDUCTIONS:
        yield f"training with {reduction}"
        model = train(space, data, teachers["optimal"], learner=reduction, passes=1, progress=False)
    yield "prediction and evaluation"
    model.predict([{"words": sentence["words"]} for sentence in data])
    model.losses(data)
    for name, teacher in teachers.items():
        yield f"the {name} teacher"
        train(space, data, teacher, passes=1, progress=False)
        model.reference_losses(data, teacher)


def _compile_seconds() -> float:
    from lols.engine.compiling import compile_seconds

    return compile_seconds()


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
