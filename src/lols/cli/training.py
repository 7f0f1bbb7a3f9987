"""What the commands under `lols train` share: checks before the work, and the report after it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lols.cli.base import print_json
from lols.cli.console import say
from lols.contract.threads import chosen_threads
from lols.errors import ConfigurationError
from lols.tasks.options import values_of
from lols.tasks.show import plain_table
from lols.tasks.verbs import Unit
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
    features = "" if result["features"] is None else f"{result['features']:,} features; "
    say.print(
        f"{result['model']} written: {features}{result['seconds_total']:.1f} s "
        f"({result['seconds_reading']:.1f} reading, {result['seconds_compiling']:.1f} compiling), "
        f"{result[unit.speed]:,.0f} {unit.name}/s"
    )
    model = shlex.quote(result["model"])
    say.print(f"next: lols evaluate {model} FILE, on labelled data; lols predict {model} FILE; lols inspect {model}")


def _score(name: str, value: float) -> str:
    return f"{value:.4f}" if name in COSTS else f"{100 * value:.2f}"
