"""What the commands under `lols train` share: checks before the work, and the report after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from lols.cli.base import print_json
from lols.cli.console import say
from lols.errors import ConfigurationError

__all__ = ["ROWS", "Seconds", "check_output", "check_patience", "read_templates", "report_training", "sentences"]

SCORES = {"accuracy": "dev accuracy", "f1": "dev F1", "uas": "dev UAS", "las": "dev LAS", "cost": "dev cost"}
COSTS = ("cost",)  # scores that are no shares


class Unit(NamedTuple):
    """What the data are counted in."""

    name: str
    speed: str  # the key under which its speed is reported
    loss: str  # the heading of the losses


TOKENS = Unit("tokens", "tokens_per_second", "loss per sentence")
ROWS = Unit("rows", "examples_per_second", "cost per row")


class Seconds(NamedTuple):
    """Where the time went."""

    total: float
    reading: float
    compiling: float


def check_output(output: str) -> None:
    """Say at once, not after training, that a model cannot be written there."""
    path = Path(output)
    try:
        if path.is_dir():
            raise ConfigurationError(f"{output}: is a folder; name a file in it with -o")
        if not path.parent.is_dir():
            raise ConfigurationError(f"{output}: there is no folder {path.parent}; make it first")
    except OSError as error:
        raise ConfigurationError(f"{output}: cannot be written: {error.strerror or error}") from error


def read_templates(
    path: str | None,
    more: list[str] | None,
    columns: list[str],
    defaults: Callable[[Sequence[str]], list[str]],
    parse: Callable[[Sequence[str], Sequence[str]], Any],
) -> list[str] | None:
    """The templates, read before anything is compiled, so that mistakes show at once; None for the default ones."""
    if path is None and not more:
        return None
    lines = defaults(columns)
    if path is not None:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: cannot be read ({error}); give a text file of templates") from None
    parse([*lines, *(more or [])], columns)
    return [*lines, *(more or [])]


def check_patience(patience: int | None, dev: str | None) -> None:
    """Patience needs something to lose it on."""
    if patience is not None and dev is None:
        raise ConfigurationError("patience has no effect: there is no --dev file to get better on")


def sentences(corpus: Any) -> dict[str, Any]:
    """How large a corpus is."""
    return {"tokens": corpus.tokens, "sentences": corpus.offsets.size - 1}


def report_training(
    estimator: Any, output: str, seconds: Seconds, facts: dict[str, Any], as_json: bool, unit: Unit = TOKENS
) -> None:
    """Say how training went: as one JSON object, or in words. The facts have the size of the data in its unit."""
    report = estimator.model_.report
    passes = len(report["progressive_loss"])
    work = max(seconds.total - seconds.compiling - seconds.reading, 1e-9)
    result = {
        "model": output,
        **facts,
        "passes": passes,
        "features": report["features"],
        "progressive_loss": report["progressive_loss"],
        "dev": report["dev"],
        "seed": estimator.seed,
        "threads": estimator.threads,
        "seconds_reading": seconds.reading,
        "seconds_compiling": seconds.compiling,
        "seconds_total": seconds.total,
        unit.speed: facts[unit.name] * passes / work,
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
    table = Table(box=None, pad_edge=False)
    for title in ("pass", unit.loss, *(SCORES[name] for name in shown)):
        table.add_column(title, justify="right")
    for k, loss in enumerate(result["progressive_loss"]):
        table.add_row(str(k + 1), f"{loss:.4f}", *(_score(name, result["dev"][k][name]) for name in shown))
    say.print(table)
    if result["dev"]:
        say.print(f"best on the dev file: pass {result['best_pass']}")
    say.print(
        f"{result['model']} written: {result['features']:,} features; {result['seconds_total']:.1f} s "
        f"({result['seconds_reading']:.1f} reading, {result['seconds_compiling']:.1f} compiling), "
        f"{result[unit.speed]:,.0f} {unit.name}/s"
    )


def _score(name: str, value: float) -> str:
    return f"{value:.4f}" if name in COSTS else f"{100 * value:.2f}"
