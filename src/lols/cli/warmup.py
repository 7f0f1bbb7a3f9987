"""`lols warmup`: fill the compilation cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, print_json
from lols.tasks.registry import ESTIMATORS, estimator
from lols.training.clock import Clock


@app.command()
def warmup(
    everything: Annotated[
        bool, typer.Option("--all", help="Also other learners, searches and losses of spans.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fill the compilation cache, so that no later run has to wait for it.

    Trains estimators of every kind on a few made-up examples, and predicts. What this compiles is kept on disk until
    the library, Numba or Python changes. A search space of your own is compiled on its first run, and kept as well.
    """
    from lols.cli.console import plain_console

    os.environ.setdefault("LOLS_ANNOUNCE", "0")  # this command reports compilation itself
    out = plain_console(quiet=as_json)
    out.print("Compiling what training and prediction need: about a minute, unless it is cached.")
    steps: list[dict[str, Any]] = []
    work = warmup_steps(everything)
    name = next(work, None)
    while name is not None:
        out.print(f"  {name} ... ", end="")
        clock = Clock()
        following = next(work, None)
        seconds, compiling = clock.total(), clock.compiling()
        out.print(f"{seconds:.1f} s" if compiling else f"{seconds:.1f} s, nothing to compile")
        steps.append({"name": name, "seconds": seconds, "seconds_compiling": compiling})
        name = following
    total, compiling = (sum(step[key] for step in steps) for key in ("seconds", "seconds_compiling"))
    if as_json:
        sums = {"seconds_compiling": compiling, "seconds_total": total}
        print_json({"cached": not compiling, **sums, "steps": steps})
    elif compiling:
        out.print(f"Done in {total:.1f} s. The {compiling:.1f} s of compilation are not needed again.")
    else:
        out.print(f"Everything was cached already; checking took {total:.1f} s.")


def warmup_steps(everything: bool) -> Iterator[str]:
    """Give the name of each step, then do it when asked for the next one."""
    yield "loading the engine"
    import lols.training.trainer  # noqa: F401

    for name in ESTIMATORS:
        yield from estimator(name).warmup_steps(everything)
