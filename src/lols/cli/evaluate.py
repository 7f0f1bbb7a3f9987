"""`lols evaluate`: how good a model is on labelled files."""

from __future__ import annotations

from typing import Annotated, Any

import typer
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
from lols.cli.predict import cores, file_columns, refuse_for_tables, set_beam
from lols.errors import LolsError
from lols.training.clock import Clock


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"Labelled. {File} {OneTable}", show_default=False)],
    column: LikeTraining = None,
    word: Annotated[str | None, typer.Option(help="The column of the words; as in training unless given.")] = None,
    use: UseLikeTraining = None,
    file_format: Format = None,
    header: AnyHeader = None,
    unseen: Annotated[
        str, typer.Option(help="What a label that training never showed is: an error, or counted as wrong.")
    ] = "error",
    punctuation: Annotated[
        bool, typer.Option(help="Of a parser: whether words that are all punctuation count.")
    ] = True,
    beam: Annotated[int | None, typer.Option(help="Of a parser: the width of a beam search; 1 is greedy.")] = None,
    label: TableLabel = None,
    separator: Separator = None,
    plot: Annotated[
        str | None,
        typer.Option(
            help="Of a classifier: draw which class was taken for which, as .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Compare predictions with a labelled file.

    Of a tagger: accuracy, also by label and of unknown words; for spans also F1. Of a parser: UAS, LAS and CLAS as the
    CoNLL 2018 scorer counts, sentences without a mistake, and every relation. Of a classifier: the average cost, the
    share of errors, which class was taken for which, and every class.
    """
    from lols.cli.evaluate_parser import evaluate_parser
    from lols.cli.prepare import prepare_classifying
    from lols.front import load
    from lols.tasks.tagging.estimator import Tagger
    from lols.tasks.tagging.files import read_files, tagged

    if unseen not in ("error", "wrong"):
        raise LolsError(f"--unseen is '{unseen}': choose error or wrong")
    clock = Clock()
    tagger = load(model, threads=threads or 1)
    if tagger.READS == "tables":
        from lols.cli.evaluate_classifier import evaluate_classifier

        refuse_for_tables(column, word, use, file_format, beam)
        refuse({"--unseen": unseen if unseen != "error" else None, "--no-punctuation": not punctuation}, "a classifier")
        tagger.set_params(threads=1).model_.threads = 1  # it is pieces that are shared among threads
        prepare_classifying(tagger)
        evaluate_classifier(
            tagger,
            model,
            file,
            places=(label, header, separator),
            plot=plot,
            threads=threads or cores(),
            clock=clock,
            as_json=as_json,
        )
        return
    refuse({"--label": label, "--separator": separator, "--plot": plot}, "no classifier")
    set_beam(tagger, beam)
    if not isinstance(tagger, Tagger):
        columns = file_columns(tagger, word, column, use, file_format, header)
        evaluate_parser(tagger, model, file, columns, punctuation, clock, as_json)
        return
    reader = Clock()
    sentences, columns = read_files([file], file_columns(tagger, word, column, use, file_format, header))
    reading = reader.working()
    columns.check(sentences[0])
    data = tagged(sentences, columns)
    data.check_labels()
    strange = tagger.task_.number(data.names) < 0
    if unseen == "error" and strange.any():
        first = int(strange[data.numbers].argmax())
        name = data.names[int(data.numbers[first])]
        raise LolsError(
            f"{data.place(first)}: label '{name}' was never seen in training; name the right column with --column, or "
            "count such labels as wrong with --unseen wrong"
        )
    scores = tagger.evaluate_columns(data.corpus, data.labels)
    result = {"model": model, "file": file, **scores.as_dict()}
    result |= clock.facts(reading) | {"tokens_per_second": data.corpus.tokens / clock.working(reading)}
    if as_json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    say.print(f"accuracy {100 * result['accuracy']:.2f} on {result['tokens']:,} tokens")
    say.print(f"sentences all right {100 * result['sentence_accuracy']:.2f} of {result['sentences']:,}")
    if result["unknown_accuracy"] is not None:
        share = 100 * result["unknown_tokens"] / result["tokens"]
        say.print(
            f"unknown words {100 * result['unknown_accuracy']:.2f} on {result['unknown_tokens']:,} tokens "
            f"({share:.1f} %)"
        )
    if result["unseen_labels"]:
        say.print(f"labels never seen in training, counted as wrong: {', '.join(result['unseen_labels'])}")
    if "f1" in result:
        say.print(
            f"spans: precision {100 * result['precision']:.2f}, recall {100 * result['recall']:.2f}, "
            f"F1 {100 * result['f1']:.2f}"
        )
    say.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("span type" if "f1" in result else "label")
    for name in ("precision", "recall", "F1", "count"):
        table.add_column(name, justify="right")
    rows = result.get("types", result["tags"])
    for name, row in sorted(rows.items(), key=lambda item: -item[1]["count"]):
        table.add_row(name, *(f"{100 * row[k]:.2f}" for k in ("precision", "recall", "f1")), f"{row['count']:,}")
    say.print(table)
    if result["confusions"]:
        say.print("\nmost frequent mistakes (true → predicted):")
        say.print(", ".join(f"{a} → {b} {n}" for a, b, n in result["confusions"]))
