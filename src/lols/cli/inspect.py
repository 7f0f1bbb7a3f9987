"""`lols inspect`: what is in a model file."""

from __future__ import annotations

from typing import Any

from lols.cli.base import Json, app, report
from lols.cli.generate import command, optional, required
from lols.cli.verb import ModelArgument, VerbOptions

HELP = """Say what a model file holds: what it was trained on and how, and which features speak for each label.

A weight is a share in a predicted cost, and the cheapest label is taken: the most negative weights speak for a label.
Features are kept as hashes; their names are found again from the words that the file holds. A parser has actions in
place of labels; those with the largest weights are shown. A classifier decides at each node of a tree which child to
go to; its features are the values of columns.
"""
OPTIONS = VerbOptions("inspect", files=False)


def inspect_file(model: str, as_json: bool, **typed: Any) -> None:
    """Inspect a model file."""
    from lols.tasks.registry import inspect_model, verbs_of_file

    options = OPTIONS.values(typed, verbs_of_file(model))
    report(inspect_model(model, **options), {}, as_json)


command(
    app,
    "inspect",
    [required("model", ModelArgument), *OPTIONS.parameters(), optional("as_json", Json, False)],
    inspect_file,
    HELP,
)
