"""`lols certify`: what Theorem 3 says about a model, where its regret arises, and what stands in its way."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lols.cli.base import Json, app, print_json
from lols.cli.console import say
from lols.cli.options import (
    AnyHeader,
    File,
    Format,
    LikeTraining,
    OneTable,
    Separator,
    TableLabel,
    Threads,
    UseLikeTraining,
    refuse,
)
from lols.cli.predict import cores, file_columns, refuse_for_tables
from lols.cli.predict_classifier import open_table_file
from lols.errors import ConfigurationError

UNITS = {"tagger": "sentences", "parser": "sentences", "classifier": "rows"}


@app.command()
def certify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help=f"Labelled; best what training did not see. {File} {OneTable}", show_default=False
        ),
    ],
    reference: Annotated[
        str | None, typer.Option(help="The teacher: optimal, suboptimal or bad; as in training unless given.")
    ] = None,
    limit: Annotated[
        int, typer.Option(help="The most examples that are looked at, drawn by the seed; 0 for all.")
    ] = 2000,
    seed: Annotated[int, typer.Option(help="One number behind all randomness.")] = 0,
    top: Annotated[int, typer.Option(help="How many kinds of decisions are listed.")] = 10,
    plot: Annotated[
        str | None,
        typer.Option(help="Draw where regret arises, as .png, .svg or .pdf.", show_default=False),
    ] = None,
    column: LikeTraining = None,
    word: Annotated[str | None, typer.Option(help="The column of the words; as in training unless given.")] = None,
    use: UseLikeTraining = None,
    file_format: Format = None,
    header: AnyHeader = None,
    label: TableLabel = None,
    separator: Separator = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure a model against its teacher and against its own one-step deviations, and give one sentence of advice.

    Every decision on the way is changed to every other one, and the model itself goes on from there. Regret to the best
    of them is told two ways: with hindsight, and within the class, by policies of the same features and learner that
    were fitted on the other half of the examples. Intervals are 95 %, by a bootstrap over examples.
    """
    from lols.certificates.certify import certify_case, check_limit
    from lols.engine.compile.kernel import compile_seconds

    if limit < 0 or top < 0:
        raise ConfigurationError(f"--{'limit' if limit < 0 else 'top'} is {min(limit, top)}: give 0 or more")
    chosen = check_limit(limit or None)
    if plot is not None:
        from lols.plots import check_plot

        check_plot(plot)
    began, compiling = time.perf_counter(), compile_seconds()
    places = {"column": column, "word": word, "use": use, "file_format": file_format}
    case, kind = _case(model, file, places, (label, header, separator), reference, chosen, seed)
    made = certify_case(case, seed=seed, top=top, threads=threads or cores(), progress=False if as_json else None)
    result = {"model": model, "file": file, **made.as_dict(), "seconds_compiling": compile_seconds() - compiling}
    result["seconds_total"] = time.perf_counter() - began
    if plot is not None:
        from lols.plots.certificates import regret_plot

        regret_plot(result, plot)
        result["plot"] = plot
    if as_json:
        print_json(result)
    else:
        _show(result, UNITS[kind])


def _case(
    model: str,
    file: str,
    places: dict[str, Any],
    tables: tuple[str | None, bool | None, str | None],
    reference: str | None,
    limit: int | None,
    seed: int,
) -> tuple[Any, str]:
    """The case of a model file and a labelled file, and what kind of model it is."""
    from lols.certificates.files import table_case, tagged_case, treebank_case
    from lols.certificates.tasks import refused
    from lols.front import load
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.tagging.estimator import Tagger

    estimator = load(model)
    if not isinstance(estimator, Tagger | Parser) and estimator.READS != "tables":
        raise refused(f"{model} is a {type(estimator).__name__.lower()}")
    if estimator.READS == "tables":
        refuse_for_tables(places["column"], places["word"], places["use"], places["file_format"], None)
        source, label = open_table_file(estimator, file, *tables)
        return table_case(estimator, source, label or source.names[-1], reference, limit, seed), "classifier"
    refuse({"--label": tables[0], "--separator": tables[2]}, "no classifier")
    columns = file_columns(estimator, places["word"], places["column"], places["use"], places["file_format"], tables[1])
    if isinstance(estimator, Parser):
        return treebank_case(estimator, file, columns, reference, limit, seed), "parser"
    return tagged_case(estimator, file, columns, reference, limit, seed), "tagger"


# --- what is shown ----------------------------------------------------------------------------------------------------

ROWS = (
    ("loss", "loss", ""),
    ("teacher's loss", "teacher_loss", ""),
    ("regret to the teacher", "regret_to_teacher", "below 0: it beats it"),
    ("to deviations, hindsight", "deviation_regret_hindsight", "the truth known"),
    ("to deviations, in class", "deviation_regret_in_class", "to others of its class"),
)


def _show(result: dict[str, Any], unit: str) -> None:
    drawn = (
        f", drawn from {result['examples_given']:,} by the seed"
        if result["examples"] < result["examples_given"]
        else ""
    )
    say.print(
        f"{result['examples']:,} {unit}{drawn}, {result['decisions']:,} decisions; {result['model']} "
        f"({result['algorithm']}, {result['roll_in']} in, {result['roll_out']} out) against the {result['reference']} "
        "teacher",
        markup=False,
    )
    for note in result["notes"]:
        say.print(note, markup=False, style="dim")
    say.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"per {unit.removesuffix('s')}")
    table.add_column("", justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    for name, key, words in ROWS:
        table.add_row(name, _number(result[key]["value"]), _interval(result[key]), words)
    if result["theorem"] is not None:
        both = result["theorem"]
        left = f"at most {_number(both['right']['value'])} (β = {both['beta']:.2g})"
        table.add_row("Theorem 3, left side", _number(both["left"]["value"]), _interval(both["left"]), left)
    say.print(table, soft_wrap=False)
    say.print(f"\n[bold]{escape(result['advice'])}[/]")
    _show_places(result)
    if "plot" in result:
        say.print(f"\n{escape(result['plot'])} written")


def _show_places(result: dict[str, Any]) -> None:
    if not result["by_decision"]:
        return
    steps = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names = ("step" if "%" not in result["by_step"][0]["step"] else "of the way", "decisions", "hindsight", "in class")
    for name in names:
        steps.add_column(name, justify="right")
    steps.add_column("")
    most = max(row["hindsight"]["value"] for row in result["by_step"])
    for row in result["by_step"]:
        bar = "█" * round(20 * row["hindsight"]["value"] / most) if most > 0.0 else ""
        regrets = (_number(row[key]["value"]) for key in ("hindsight", "in_class"))
        steps.add_row(row["step"], f"{row['decisions']:,}", *regrets, f"[cyan]{bar}[/]")
    say.print("\nwhere in the trajectory (regret per example):")
    say.print(steps, soft_wrap=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("taken → better", overflow="fold")
    for name in ("decisions", "hindsight", "share", "in class"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["by_decision"]:
        cells = f"{row['decisions']:,}", _number(row["hindsight"]["value"]), f"{100 * row['share']:.1f} %"
        name = escape(f"{row['taken']} → {row['better']}")
        table.add_row(name, *cells, _number(row["in_class"]["value"]))
    say.print("\non which decisions:")
    say.print(table, soft_wrap=False)


def _number(value: float) -> str:
    return f"{value + 0.0:.4f}" if abs(value) < 100.0 else f"{value:,.1f}"


def _interval(estimate: dict[str, float]) -> str:
    return f"{_number(estimate['low'])} .. {_number(estimate['high'])}"
