"""`lols certify`: what Theorem 3 says about a model, where its regret arises, and what stands in its way."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lols.cli.base import MAKERS, Json, print_json
from lols.cli.generate import built_command, optional, required
from lols.cli.task_file import TaskOption, loaded
from lols.cli.verb import ModelArgument, Threads, VerbOptions, file_argument
from lols.errors import ConfigurationError

HELP = """Measure a model against its teacher and against its own one-step deviations, and give one sentence of advice.

Every decision is changed to every other one, and the model itself completes the rest. Regret to the best of them is
given in two ways: with hindsight, and within the class, by policies with the same features and learner that were fitted
on the other half of the examples. Intervals are 95 %, by a bootstrap over examples.
"""
Limit = Annotated[int, typer.Option(help="The largest number of examples to look at, drawn by the seed; 0 for all.")]
Seed = Annotated[int, typer.Option(help="The seed of all random choices.")]
Top = Annotated[int, typer.Option(help="How many kinds of decisions are listed.")]
Plot = Annotated[str | None, typer.Option(help="Draw where regret arises, as .png, .svg or .pdf.", show_default=False)]


def certify_command() -> Any:
    """`lols certify`, with the options of all estimators."""
    options = VerbOptions("certify")

    def certify(
        model: str,
        file: str,
        limit: int,
        seed: int,
        top: int,
        plot: str | None,
        task: str | None,
        threads: int | None,
        as_json: bool,
        **typed: Any,
    ) -> None:
        from lols.certificates.certify import certify_case, check_limit
        from lols.training.clock import Clock

        if limit < 0 or top < 0:
            raise ConfigurationError(f"--{'limit' if limit < 0 else 'top'} is {min(limit, top)}: give 0 or more")
        most = check_limit(limit or None)
        if plot is not None:
            from lols.plots import check_plot

            check_plot(plot)
        clock = Clock()
        estimator = loaded(model, task)
        case = estimator.case_of_file(file, limit=most, seed=seed, **options.values(typed, estimator.VERBS))
        made = certify_case(case, seed=seed, top=top, threads=threads, progress=not as_json)
        result = {"model": model, "file": file, **made.as_dict(), "seconds_compiling": clock.compiling()}
        result["seconds_total"] = clock.total()
        if plot is not None:
            from lols.plots.certificates import regret_plot

            regret_plot(result, plot)
            result["plot"] = plot
        if as_json:
            print_json(result)
        else:
            from lols.certificates.certificate import show_certificate
            from lols.cli.console import say

            show_certificate(say, result, estimator.VERBS.unit)

    parameters = [
        required("model", ModelArgument),
        required("file", file_argument("A labelled file, if possible one that training did not see.")),
        optional("limit", Limit, 2000),
        optional("seed", Seed, 0),
        optional("top", Top, 10),
        optional("plot", Plot, None),
        *options.parameters(),
        optional("task", TaskOption, None),
        optional("threads", Threads, None),
        optional("as_json", Json, False),
    ]
    return built_command("certify", parameters, certify, HELP)


MAKERS["certify"] = certify_command
