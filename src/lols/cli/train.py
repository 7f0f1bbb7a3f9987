"""`lols train`: from files to a model; one command for each estimator of the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lols.cli.base import Json, app
from lols.cli.console import say
from lols.cli.generate import built_command, optional, parameters_of, required
from lols.cli.training import check_output, report_training
from lols.tasks.engine_options import EngineOptions, engine_of
from lols.tasks.options import values_of
from lols.tasks.registry import ESTIMATORS, estimator


class Commands(TyperGroup):
    """A command for each estimator, which is imported when its command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The estimators of the registry."""
        return list(ESTIMATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of an estimator, made from its options."""
        return train_command(cmd_name) if cmd_name in ESTIMATORS else None


commands = typer.Typer(cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
commands.callback()(lambda: None)
app.add_typer(commands, name="train", help="Train a model from files: `lols train parser --help`.")

Output = Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint of an interrupted training.")]


def train_command(name: str) -> Any:
    """`lols train NAME`: its options are the fields of the estimator and of what it says about files."""
    kind = estimator(name)

    def train(files: list[str], output: str, dev: str | None, resume: bool, as_json: bool, **typed: Any) -> None:
        from lols.cli.verb import settle
        from lols.tasks.choice import check_patience, forget
        from lols.training.clock import Clock

        check_output(output)
        check_patience(typed.get("patience"), dev is not None)
        clock = Clock()
        made = kind.from_typed(typed)
        made.progress, made.engine = False if as_json else None, engine_of(typed)
        places = values_of(kind.VERBS.files, typed) | (values_of(kind.TRAINING, typed) if kind.TRAINING else {})
        settle()
        checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
        tell = (lambda line: None) if as_json else (lambda line: say.print(line))
        made.fit_files(files, dev=dev, checkpoint=checkpoint, resume=resume, say=tell, **places)
        made.save(output)
        forget(checkpoint)
        report_training(made, output, clock, as_json)

    parameters = [
        required(
            "files", Annotated[list[str], typer.Argument(metavar="FILE", help=kind.VERBS.input, show_default=False)]
        ),
        required("output", Output),
        optional("dev", Annotated[str | None, typer.Option(help=kind.DEV, show_default=False)], None),
    ]
    for part in (kind.VERBS.files, kind, *kind.PARTS, *([kind.TRAINING] if kind.TRAINING else []), EngineOptions):
        taken = {*kind.WITHOUT, *(each.name for each in parameters)}
        parameters += [each for each in parameters_of(part) if each.name not in taken]
    parameters += [optional("resume", Resume, False), optional("as_json", Json, False)]
    return built_command(name, parameters, train, kind.HELP)
