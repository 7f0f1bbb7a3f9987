"""`lols calibrate`: confidence fitted to a labelled sample, without training again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lols.cli.base import MAKERS, Json, print_json
from lols.cli.generate import built_command, optional, required
from lols.cli.task_file import TaskOption, loaded
from lols.cli.verb import ModelArgument, Threads, VerbOptions, file_argument
from lols.io.whole_file import check_output

HELP = """Fit the confidence of a trained model to a labelled file, and write the model anew.

Confidence is about data like those it was fitted to. Where the data have changed since training, a random sample of new
ones, with labels, makes it right again; some thousand decisions do. Predictions stay as they are, and so does all else
in the model file.

`lols calibrate orders.lols last-week.csv -o orders.lols`
"""
Output = Annotated[
    str,
    typer.Option("--output", "-o", help="The model file to write; it may be the same one.", show_default=False),
]


def calibrate_command() -> Any:
    """`lols calibrate`, with the options of all estimators."""
    options = VerbOptions("calibrate")

    def calibrate(
        model: str, file: str, output: str, task: str | None, threads: int | None, as_json: bool, **typed: Any
    ) -> None:
        from lols.training.clock import Clock

        check_output(output, file)
        clock = Clock()
        estimator = loaded(model, task)
        made = estimator.calibrate_file(file, threads=threads, **options.values(typed, estimator.VERBS))
        estimator.save(output)
        seconds = {"seconds_compiling": clock.compiling(), "seconds_total": clock.total()}
        if as_json:
            print_json({"model": output, "file": file} | made.as_dict() | seconds)
            return
        from lols.cli.console import say

        made.show(say)
        say.print(f"{output} written")

    parameters = [
        required("model", ModelArgument),
        required("file", file_argument("A labelled file that training did not see: a sample of the data to come.")),
        required("output", Output),
        *options.parameters(),
        optional("task", TaskOption, None),
        optional("threads", Threads, None),
        optional("as_json", Json, False),
    ]
    return built_command("calibrate", parameters, calibrate, HELP)


MAKERS["calibrate"] = calibrate_command
