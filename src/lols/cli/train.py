"""`lols train`: from files to a model; one command for each estimator of the registry."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Commands, Json, app, print_json
from lols.cli.console import say
from lols.cli.generate import ShortHelp, built_command, help_all, optional, parameters_of, required
from lols.contract.threads import chosen_threads
from lols.errors import ConfigurationError
from lols.io.whole_file import check_output
from lols.tasks.engine_options import EngineOptions, engine_of
from lols.tasks.options import INPUT, values_of
from lols.tasks.registry import ESTIMATORS, estimator
from lols.tasks.show import plain_table
from lols.tasks.verbs import FromWeights, Unit
from lols.training.clock import Clock

SCORES = {"accuracy": "dev accuracy", "f1": "dev F1", "uas": "dev UAS", "las": "dev LAS", "cost": "dev cost"}
COSTS = ("cost",)  # scores that are no shares


def gone_on(kind: Any, path: str, typed: Mapping[str, Any], context: Any) -> tuple[Any, dict[str, Any]]:
    """A model to go on from, with the options that were typed; and where things are in files, as in its training."""
    from lols.tasks.registry import read_model

    sources = {name: context.get_parameter_source(name) for name in typed}
    given = {name: typed[name] for name, found in sources.items() if found is not None and found.name != "DEFAULT"}
    stored = read_model(path)
    if stored.name != kind.VERBS.name:
        raise ConfigurationError(f"{path}: not {kind.VERBS.described}, which is what is trained here")
    made = stored.load()
    layout = values_of(kind.VERBS.files, given)
    options = {
        name: value
        for part in (kind, *kind.PARTS)
        for name, value in values_of(part, given).items()
        if name not in layout
    }
    fixed = next((name for name in options if name not in kind.AGAIN), None)
    if fixed is not None:
        raise ConfigurationError(f"--{fixed.replace('_', '-')} has no effect: with --from it stays as it is in {path}")
    made.go_on_with(options)
    columns = made.file_columns.changed(**layout)
    return made, {each.name: getattr(columns, each.name) for each in fields(columns) if each.init}


def replayed(texts: Sequence[str] | None, seed: int) -> list[str]:
    """The files of `--replay`."""
    from lols.tasks.replay import ReplayedFile

    return [ReplayedFile.read(text, seed) for text in texts or ()]


def report_training(estimator: Any, output: str, clock: Clock, as_json: bool) -> None:
    """Say how training went: as one JSON object, or in words."""
    report, unit, facts = estimator.model_.report, estimator.VERBS.counted, dict(estimator.training_facts_)
    passes, reading = len(report["progressive_loss"]), facts.pop("seconds_reading")
    seconds = clock.facts(reading)
    work = seconds["seconds_total"] - seconds["seconds_compiling"] - reading
    result = {
        "model": output,
        **facts,
        "passes": passes,
        "features": report.get("features"),  # only the linear policy has them
        "progressive_loss": report["progressive_loss"],
        "dev": report["dev"],
        "seed": estimator.seed,
        "threads": chosen_threads(estimator.threads),
        **seconds,
        unit.speed: facts[unit.name] * passes / max(work, 1e-9),
    }
    if report["dev"]:
        best = report["dev"][estimator.model_.about["best_pass"] - 1]
        result |= {"best_pass": int(best["pass"])} | {name: best[name] for name in SCORES if name in best}
    if "outside" in report:
        result["outside"] = report["outside"]
    if as_json:
        print_json(result)
    else:
        _summary(result, unit)


def _summary(result: dict[str, Any], unit: Unit) -> None:
    shown = [name for name in SCORES if result["dev"] and name in result["dev"][0]]
    table = plain_table()
    for title in ("pass", unit.loss, *(SCORES[name] for name in shown)):
        table.add_column(title, justify="right")
    for k, loss in enumerate(result["progressive_loss"]):
        table.add_row(str(k + 1), f"{loss:.4f}", *(_score(name, result["dev"][k][name]) for name in shown))
    say.print(table)
    if result["dev"]:
        say.print(f"best on the dev file: pass {result['best_pass']}")
    if result.get("outside"):
        say.print(_outside_text(**result["outside"]))
    features = "" if result["features"] is None else f": {result['features']:,} features"
    say.print(f"{result['model']} written{features}")
    reading, compiling, total = (result[f"seconds_{name}"] for name in ("reading", "compiling", "total"))
    scoring = " and scoring the dev file" if result["dev"] else ""
    say.print(
        f"{total:.1f} s: {reading:.1f} reading, {compiling:.1f} compiling, {total - reading - compiling:.1f} learning"
        f"{scoring} ({result[unit.speed]:,.0f} {unit.name}/s)"
    )
    model = shlex.quote(result["model"])
    say.print(f"next: lols evaluate {model} FILE, on labelled data; lols predict {model} FILE; lols inspect {model}")


def _outside_text(cost: float, f1_before: float, f1: float) -> str:
    """What the dev data say that O should cost."""
    from lols.tasks.tagging.outside import more_than_learned

    gain = f"; dev F1 {100 * f1:.2f}, without that {100 * f1_before:.2f}" if cost else ""
    return f"cost of O: {more_than_learned(cost)}{gain}"


def _score(name: str, value: float) -> str:
    return f"{value:.4f}" if name in COSTS else f"{100 * value:.2f}"


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
