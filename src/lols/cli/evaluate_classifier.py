"""`lols evaluate` for classifiers: cost, errors, which class was taken for which, and every class."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from lols.cli.base import print_json
from lols.cli.console import say
from lols.cli.predict_classifier import open_table_file, say_unknown
from lols.training.clock import Clock

__all__ = ["evaluate_classifier"]

MOST = 24  # classes whose confusions are shown as a table
WORST = 20  # confusions that are listed where classes are more


def evaluate_classifier(
    classifier: Any,
    model: str,
    file: str,
    *,
    places: tuple[str | None, bool | None, str | None],
    plot: str | None,
    threads: int,
    clock: Clock,
    as_json: bool,
) -> None:
    """Classify a labelled table, and say what the mistakes cost."""
    from lols.tasks.tables.files import evaluate_files

    if plot is not None:
        from lols.plots import check_plot

        check_plot(plot)
    source, label = open_table_file(classifier, file, *places)
    seconds = {"reading": 0.0}
    scores = evaluate_files(classifier, source, label or source.names[-1], threads=threads, seconds=seconds)
    result = {"model": model, "file": file, **scores.as_dict(), "unknown": classifier.unknown_}
    reading = seconds["reading"]
    result |= clock.facts(reading) | {"examples_per_second": scores.rows / clock.working(reading)}
    if plot is not None:
        from lols.plots import confusion

        confusion(scores, plot)
        result["plot"] = plot
    if as_json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    say.print(f"cost {result['cost']:.4f} per row on {result['rows']:,} rows, error {100 * result['error']:.2f} %")
    for line in say_unknown(result["unknown"]):
        say.print(line, markup=False)
    say.print()
    if len(result["classes"]) <= MOST:
        _show_confusion(result["classes"], result["confusion"])
    else:
        _show_worst(result["classes"], result["confusion"])
    say.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    for name in ("precision", "recall", "F1", "count"):
        table.add_column(name, justify="right")
    for name, row in result["by_class"].items():
        shares = (f"{100 * row[k]:.2f}" for k in ("precision", "recall", "f1"))
        table.add_row(escape(name), *shares, f"{row['count']:,}")
    say.print(table)
    if "plot" in result:
        say.print(f"\n{escape(result['plot'])} written")


def _show_confusion(classes: list[str], confusion: list[list[int]]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("true \\ predicted")
    for name in classes:
        table.add_column(escape(name), justify="right", no_wrap=True)
    for k, (name, row) in enumerate(zip(classes, confusion, strict=True)):
        cells = [f"[bold]{n:,}[/]" if n and j == k else f"{n:,}" if n else "[dim]·[/]" for j, n in enumerate(row)]
        table.add_row(escape(name), *cells)
    say.print(table)


def _show_worst(classes: list[str], confusion: list[list[int]]) -> None:
    pairs = [(n, a, b) for a, row in enumerate(confusion) for b, n in enumerate(row) if n and a != b]
    pairs.sort(key=lambda pair: -pair[0])
    more = f" and {len(pairs) - WORST} more" if len(pairs) > WORST else ""
    say.print("most frequent mistakes (true → predicted):")
    say.print(", ".join(f"{classes[a]} → {classes[b]} {n:,}" for n, a, b in pairs[:WORST]) + more, markup=False)
