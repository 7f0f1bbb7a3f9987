"""`lols evaluate`: how good a model is on a labelled file."""

from __future__ import annotations

from typing import Any

from lols.cli.base import MAKERS, Json, report
from lols.cli.generate import built_command, optional, required
from lols.cli.verb import ModelArgument, Threads, VerbOptions, file_argument

HELP = """Compare predictions with a labelled file.

For a tagger: accuracy, also by label and of unknown words; for spans also F1. For a parser: UAS, LAS and CLAS as the
CoNLL 2018 scorer counts, sentences without a mistake, and every relation. For a classifier: the average cost, the
share of errors, which class was taken for which, and every class.
"""


def evaluate_command() -> Any:
    """`lols evaluate`, with the options of all estimators."""
    options = VerbOptions("evaluate")

    def evaluate(model: str, file: str, threads: int | None, as_json: bool, **typed: Any) -> None:
        from lols.front import load
        from lols.training.clock import Clock

        clock = Clock()
        estimator = load(model)
        values = options.values(typed, estimator.VERBS)
        made = estimator.evaluate_file(file, threads=threads, **values)
        speed = {estimator.VERBS.counted.speed: made.count / clock.working(made.seconds_reading)}
        report(made, {"model": model, "file": file}, as_json, clock.facts(made.seconds_reading) | speed)

    parameters = [
        required("model", ModelArgument),
        required("file", file_argument("A labelled file.")),
        *options.parameters(),
        optional("threads", Threads, None),
        optional("as_json", Json, False),
    ]
    return built_command("evaluate", parameters, evaluate, HELP)


MAKERS["evaluate"] = evaluate_command
