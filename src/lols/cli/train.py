"""`lols train`: from files to a model; one command for each estimator of the registry."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app
from lols.cli.console import say
from lols.cli.generate import command, optional, parameters_of, required
from lols.cli.training import check_output, check_patience, report_training
from lols.tasks.options import values_of
from lols.tasks.registry import ESTIMATORS, estimator

commands = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(commands, name="train", help="Train a model from files: `lols train parser --help`.")

Output = Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint of an interrupted training.")]


def add_command(name: str) -> None:
    """Add `lols train NAME`; its options are the fields of the estimator and of what it says about files."""
    kind = estimator(name)

    def train(files: list[str], output: str, dev: str | None, resume: bool, as_json: bool, **typed: Any) -> None:
        from lols.cli.prepare import settle
        from lols.training.clock import Clock

        check_output(output)
        check_patience(typed.get("patience"), dev)
        clock = Clock()
        made = kind.from_typed(typed)
        made.progress = False if as_json else None
        places = values_of(kind.Files, typed) | (values_of(kind.TRAINING, typed) if kind.TRAINING else {})
        settle()
        checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
        tell = (lambda line: None) if as_json else (lambda line: say.print(line, markup=False))
        made.fit_files(files, dev=dev, checkpoint=checkpoint, resume=resume, say=tell, **places)
        made.save(output)
        checkpoint.unlink(missing_ok=True)
        report_training(made, output, clock, as_json)

    parameters = [
        required("files", Annotated[list[str], typer.Argument(metavar="FILE", help=kind.INPUT, show_default=False)]),
        required("output", Output),
        optional("dev", Annotated[str | None, typer.Option(help=kind.DEV, show_default=False)], None),
    ]
    for part in (kind.Files, kind, *kind.PARTS, *([kind.TRAINING] if kind.TRAINING else [])):
        taken = {*kind.WITHOUT, *(each.name for each in parameters)}
        parameters += [each for each in parameters_of(part) if each.name not in taken]
    parameters += [optional("resume", Resume, False), optional("as_json", Json, False)]
    command(commands, name, parameters, train, inspect.cleandoc(kind.HELP))


def _wanted() -> list[str]:
    """The command that is called, or all of them; the estimators of the others need not be imported."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return [words[1]] if words[:1] == ["train"] and words[1:2] and words[1] in ESTIMATORS else list(ESTIMATORS)


for each in _wanted():
    add_command(each)
