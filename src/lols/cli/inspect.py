"""`lols inspect`: what is in a model file."""

from __future__ import annotations

from typing import Any

from lols.cli.base import MAKERS, Json, report
from lols.cli.generate import built_command, optional, required
from lols.cli.task_file import TaskOption, compared_task
from lols.cli.verb import ModelArgument, VerbOptions

HELP = """Say what a model file holds: what it was trained on and how, and which features speak for each label.

A weight is a share in a predicted cost, and the cheapest label is taken: the most negative weights speak for a label.
Features are kept as hashes; their names are found again from the words that the file holds. A parser has actions in
place of labels; those with the largest weights are shown. A classifier decides at each node of a tree which child to
go to; its features are the values of columns.
"""


def inspect_command() -> Any:
    """`lols inspect`, with the options of all estimators."""
    options = VerbOptions("inspect", files=False)

    def inspect(model: str, task: str | None, as_json: bool, **typed: Any) -> None:
        from lols.tasks.registry import read_model

        stored = read_model(model)
        made: Any = stored.inspect(**options.values(typed, stored.verbs))
        if task is not None:
            made.values["task"] = compared_task(model, task)
        report(made, {}, as_json)

    parameters = [
        required("model", ModelArgument),
        *options.parameters(),
        optional("task", TaskOption, None),
        optional("as_json", Json, False),
    ]
    return built_command("inspect", parameters, inspect, HELP)


MAKERS["inspect"] = inspect_command
