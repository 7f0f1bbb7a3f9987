"""`lols warmup`: fill the compilation cache."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from lols.cli.base import Json, app, print_json

# Generated sentences that `warmup` trains on: kernels are compiled for types, so a few do.
SENTENCES = 8
REDUCTIONS = ("hinge", "csoaa")


@app.command()
def warmup(
    as_json: Json = False,
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
        print_json({"cached": not compiling, **sums, "steps": steps})
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
