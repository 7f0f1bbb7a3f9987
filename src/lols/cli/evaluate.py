"""`lols evaluate`: how good a model is on a labelled file."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from lols.cli.base import MAKERS, Json, report
from lols.cli.generate import built_command, optional, parameters_of, required
from lols.cli.task_file import TaskOption, check_alone, loaded
from lols.cli.verb import ModelArgument, Threads, VerbOptions, file_argument, told_pieces
from lols.cli.workers import EngineOptions, engine_of
from lols.errors import ConfigurationError

HELP = """Compare predictions with a labelled file.

For a tagger: accuracy, also by label and of unknown words; for spans also F1. For a parser: UAS, LAS and CLAS as the
CoNLL 2018 scorer counts, sentences without a mistake, and every relation. For a classifier: the average cost, the
share of errors, which class was taken for which, and every class. Of labels, relations and classes, the ten most
frequent are printed unless `--all` is given; `--json` has all of them.
"""

All = Annotated[bool, typer.Option("--all", help="Print the scores of all labels, relations or classes.")]


def evaluate_command() -> Any:
    """`lols evaluate`, with the options of all estimators."""
    options = VerbOptions("evaluate")

    def evaluate(
        model: str,
        files: list[str],
        task: str | None,
        threads: int | None,
        whole: bool,
        as_json: bool,
        **typed: Any,
    ) -> None:
        from lols.engines import as_engine
        from lols.io.conll import glance
        from lols.tasks.many_files import evaluate_many, expanded
        from lols.training.clock import Clock

        clock, names = Clock(), expanded(files)
        if typed.get("format") is None and task is None:
            for name in names:
                glance(name)  # before the model is loaded, which may take long
        estimator = loaded(model, task)
        values = options.values(typed, estimator.VERBS)
        engine = engine_of(typed)
        if engine is None and len(names) == 1:
            made = replace(estimator.evaluate_file(names[0], threads=threads, **values), whole=whole)
            speed = {estimator.VERBS.counted.speed: made.count / clock.working(made.seconds_reading)}
            report(
                made,
                {"model": model, "file": names[0]},
                as_json,
                clock.facts(made.seconds_reading) | speed,
            )
            return
        check_alone(task)
        if "-" in names or values.get("plot") is not None:
            what = "standard input" if "-" in names else "--plot"
            raise ConfigurationError(f"{what} cannot be used with several files or an engine: give one file alone")
        watch = (lambda file, pieces: None) if as_json else told_pieces()
        made = evaluate_many(model, names, as_engine(engine), watch=watch, threads=threads or 1, **values)
        made = replace(made, whole=whole)
        speed = {estimator.VERBS.counted.speed: made.count / max(clock.total(), 1e-9)}
        report(
            made,
            {"model": model, "files": len(names)},
            as_json,
            {"seconds_total": clock.total()} | speed,
        )

    parameters = [
        required("model", ModelArgument),
        required("files", file_argument("A labelled file; several, or a pattern, count as one.", list[str])),
        *options.parameters(),
        *(each for each in parameters_of(EngineOptions) if each.name in ("engine", "workers", "address")),
        optional("task", TaskOption, None),
        optional("threads", Threads, None),
        optional("whole", All, False),
        optional("as_json", Json, False),
    ]
    return built_command("evaluate", parameters, evaluate, HELP)


MAKERS["evaluate"] = evaluate_command
