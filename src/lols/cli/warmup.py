"""`lols warmup`: fill the compilation cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, print_json
from lols.training.clock import Clock

# Generated sentences that `warmup` trains on: kernels are compiled for types, so a few do.
SENTENCES = 8


@app.command()
def warmup(
    everything: Annotated[
        bool, typer.Option("--all", help="Also other learners, searches and losses of spans.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fill the compilation cache, so that no later run has to wait for it.

    Trains taggers, a parser and a classifier on a few generated examples, and predicts. What this compiles is kept on
    disk until the library, Numba or Python changes. A search space of your own is compiled on its first run, and kept
    as well.
    """
    from rich.console import Console

    os.environ.setdefault("LOLS_ANNOUNCE", "0")  # that it compiles is all that this command says
    out = Console(quiet=as_json, highlight=False)
    out.print("Compiling what training and prediction need: about a minute, unless it is cached.")
    steps: list[dict[str, Any]] = []
    work = _warmup_steps(everything)
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
        out.print(f"Done in {total:.1f} s. The {compiling:.1f} s of compilation will not come again.")
    else:
        out.print(f"Everything was cached already; checking took {total:.1f} s.")


def _warmup_steps(everything: bool) -> Iterator[str]:
    """Give the name of each step, then do it when asked for the next one."""
    yield "loading the engine"
    from lols.cli.prepare import prepare_classifier, prepare_prediction
    from lols.datasets.worlds import tagging_data
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.tables.estimator import CostSensitiveClassifier
    from lols.tasks.tagging.estimator import Tagger

    data = tagging_data(SENTENCES)
    words = [[f"w{n}" for n in sentence["words"]] for sentence in data]
    tags = [[f"T{n:02}" for n in sentence["tags"]] for sentence in data]
    spans = [[f"B-{n % 2}" for n in sentence["tags"]] for sentence in data]
    yield "tagger, training"
    tagger = Tagger(passes=1, progress=False).fit(words, tags, dev=(words, tags))
    yield "tagger, prediction"
    prepare_prediction(tagger)
    yield "tagger, the paper's learner (csoaa)"
    Tagger(passes=1, progress=False, learner="csoaa").fit(words, tags)
    trees = [[(n, "next" if n else "root") for n in range(len(sentence))] for sentence in words]
    yield "parser, training"
    parser = Parser(passes=1, progress=False).fit(words, trees, dev=(words, trees))
    yield "parser, prediction"
    prepare_prediction(parser)
    yield "classifier, training and prediction"
    prepare_classifier(CostSensitiveClassifier())
    if everything:
        yield "classifier, the paper's learner (csoaa)"
        prepare_classifier(CostSensitiveClassifier(learner="csoaa"))
        yield "parser, beam search"
        parser.set_params(beam=2).predict(words)
        for loss in ("spans", "f1"):
            yield f"tagger, loss {loss}"
            Tagger(passes=1, progress=False, loss=loss).fit(words, spans).predict(words)
