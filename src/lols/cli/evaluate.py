"""`lols evaluate`: how good a model is on a labelled file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, report
from lols.cli.generate import command, optional, required
from lols.cli.verb import ModelArgument, Threads, VerbOptions, cores, file_help

HELP = """Compare predictions with a labelled file.

For a tagger: accuracy, also by label and of unknown words; for spans also F1. For a parser: UAS, LAS and CLAS as the
CoNLL 2018 scorer counts, sentences without a mistake, and every relation. For a classifier: the average cost, the
share of errors, which class was taken for which, and every class.
"""
OPTIONS = VerbOptions("evaluate")
File = Annotated[str, typer.Argument(metavar="FILE", help=file_help("Labelled. "), show_default=False)]


def evaluate(model: str, file: str, threads: int | None, as_json: bool, **typed: Any) -> None:
    """Evaluate on a file."""
    from lols.front import load
    from lols.training.clock import Clock

    clock = Clock()
    estimator = load(model)
    options = OPTIONS.values(typed, estimator.VERBS)
    made = estimator.evaluate_file(file, threads=threads or cores(), **options)
    speed = {estimator.VERBS.counted.speed: made.count / clock.working(made.seconds_reading)}
    report(made, {"model": model, "file": file}, as_json, clock.facts(made.seconds_reading) | speed)


command(
    app,
    "evaluate",
    [
        required("model", ModelArgument),
        required("file", File),
        *OPTIONS.parameters(),
        optional("threads", Threads, None),
        optional("as_json", Json, False),
    ],
    evaluate,
    HELP,
)
