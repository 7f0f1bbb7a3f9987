"""`lols train`: from files to a model; one command for each estimator of the registry."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Commands, Json, app
from lols.cli.console import say
from lols.cli.generate import ShortHelp, built_command, help_all, optional, parameters_of, required
from lols.cli.training import gone_on, replayed, report_training
from lols.errors import ConfigurationError
from lols.io.whole_file import check_output
from lols.tasks.engine_options import EngineOptions, engine_of
from lols.tasks.options import INPUT, values_of
from lols.tasks.registry import ESTIMATORS, estimator
from lols.tasks.verbs import FromWeights


class Estimators(Commands):
    """A command for each estimator, which is imported when its command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The estimators of the registry."""
        return list(ESTIMATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of an estimator, made from its options."""
        return train_command(cmd_name) if cmd_name in ESTIMATORS else None


commands = typer.Typer(cls=Estimators, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
commands.callback()(lambda: None)
app.add_typer(commands, name="train", help="Train a model from files: `lols train parser --help`.")

Output = Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="MODEL",
        help="A model file to go on from, in place of beginning anew: its features, columns and options stay, and "
        "labels that are new are learned.",
        show_default=False,
    ),
]
Replay = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE:SHARE",
        help="With --from: old data to mix in, so that less is forgotten, such as old.conllu:0.3; may be repeated.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint of an interrupted training.")]


def train_command(name: str) -> Any:
    """`lols train NAME`: its options are the fields of the estimator and of what it says about files."""
    kind = estimator(name)

    def train(
        context: typer.Context,
        files: list[str],
        output: str,
        dev: str | None,
        old: str | None,
        replay: list[str] | None,
        resume: bool,
        as_json: bool,
        **typed: Any,
    ) -> None:
        from lols.cli.verb import settle
        from lols.tasks.choice import check_patience, forget
        from lols.tasks.many_files import expanded
        from lols.training.clock import Clock

        files = expanded(files)
        check_output(output, *files, dev)
        check_patience(typed.get("patience"), dev is not None)
        clock = Clock()
        training = values_of(kind.TRAINING, typed) if kind.TRAINING else {}
        if old is None:
            if replay:
                raise ConfigurationError("--replay has no effect without --from: give all data as files to train on")
            made, places = kind.from_typed(typed), values_of(kind.VERBS.files, typed)
        else:
            made, places = gone_on(kind, old, typed, context)
            files = files + replayed(replay, made.seed)
        made.progress, made.engine = not as_json, engine_of(typed)
        settle()
        checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
        tell = (lambda line: None) if as_json else (lambda line: say.print(line))
        if resume and not checkpoint.exists():
            tell(f"there is no checkpoint {checkpoint}: training begins anew")
        if old is not None and (note := made.starts_from_weights()) is not None:
            tell(note)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FromWeights)  # it has been said
            made.fit_files(files, dev=dev, checkpoint=checkpoint, resume=resume, say=tell, **places, **training)
        made.save(output)
        forget(checkpoint)
        report_training(made, output, clock, as_json)

    parameters = [
        required("context", typer.Context),
        required(
            "files", Annotated[list[str], typer.Argument(metavar="FILE", help=kind.VERBS.input, show_default=False)]
        ),
        required("output", Output),
        optional("dev", Annotated[str | None, typer.Option(help=kind.DEV, show_default=False)], None),
        optional("old", From, None),
        optional("replay", Replay, None),
    ]
    for part in (kind.VERBS.files, kind, *kind.PARTS, *([kind.TRAINING] if kind.TRAINING else []), EngineOptions):
        taken = {*kind.WITHOUT, *(each.name for each in parameters)}
        parameters += [each for each in parameters_of(part, short=True) if each.name not in taken]
    parameters += [optional("resume", Resume, False), optional("as_json", Json, False), help_all()]
    return built_command(name, parameters, train, kind.HELP, ShortHelp)
