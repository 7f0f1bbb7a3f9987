"""`lols train`: from a file to a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from lols.cli.base import Json, app, print_json, say
from lols.cli.options import Column, Files, Format, Header, Use, Word, use_of
from lols.errors import ConfigurationError

commands = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(commands, name="train", help="Train a model from files: `lols train tagger --help`.")

SEARCH = "How it searches"
LEARNING = "How it learns"
INPUT = "What it reads"


@commands.command()
def tagger(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=Files, show_default=False)],
    output: Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)],
    dev: Annotated[
        str | None, typer.Option(help="Labelled sentences on which the best pass is chosen.", show_default=False)
    ] = None,
    column: Column = None,
    word: Word = "form",
    use: Use = None,
    file_format: Format = None,
    header: Header = None,
    templates: Annotated[
        str | None,
        typer.Option(help="A file of templates, one per line, in place of the default ones.", rich_help_panel=INPUT),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help="One more template, such as 'word[-1] & word'; may be repeated.", rich_help_panel=INPUT),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            help="A file of word clusters: 'word TAB cluster', or Brown's 'path TAB word TAB count'.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            help="How spans are written: auto, bio, iob1, bilou, bioes, or none for plain tags.", rich_help_panel=INPUT
        ),
    ] = "auto",
    inner_scheme: Annotated[
        str,
        typer.Option(help="How the tagger itself writes spans: auto, bio, bilou or bioes.", rich_help_panel=LEARNING),
    ] = "auto",
    direction: Annotated[
        str,
        typer.Option(
            help="forward, backward (places in templates then count from the end), or auto: backward for spans.",
            rich_help_panel=SEARCH,
        ),
    ] = "auto",
    loss: Annotated[
        str,
        typer.Option(help="What is minimised: hamming, or for spans: spans (FP + FN) or f1.", rich_help_panel=LEARNING),
    ] = "hamming",
    algorithm: Annotated[
        str, typer.Option(help="lols, aggrevate, dagger, cloning or searn.", rich_help_panel=SEARCH)
    ] = "lols",
    roll_in: Annotated[str | None, typer.Option(help="learned, reference or mixture.", rich_help_panel=SEARCH)] = None,
    roll_out: Annotated[
        str | None, typer.Option(help="mixture, reference, learned or none.", rich_help_panel=SEARCH)
    ] = None,
    beta: Annotated[
        str | None,
        typer.Option(
            help="Probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            help="Where the coin is tossed: state, rollout, example, expected or step.", rich_help_panel=SEARCH
        ),
    ] = None,
    prune: Annotated[
        int | None,
        typer.Option(
            help="Roll out this many best-liked tags and the teacher's; 0 for all tags, as Algorithm 1 is printed. "
            "By default 2 with the optimal teacher, else 0.",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    reference: Annotated[
        str, typer.Option(help="The teacher: optimal, suboptimal or bad.", rich_help_panel=SEARCH)
    ] = "optimal",
    learner: Annotated[str, typer.Option(help="hinge, csoaa or secoc.", rich_help_panel=LEARNING)] = "hinge",
    update: Annotated[
        str | None, typer.Option(help="adagrad, nag, gd, ridge or perceptron.", rich_help_panel=LEARNING)
    ] = None,
    rate: Annotated[float | None, typer.Option(help="The learning rate.", rich_help_panel=LEARNING)] = None,
    passes: Annotated[int, typer.Option(help="Passes over the data.", rich_help_panel=LEARNING)] = 5,
    patience: Annotated[
        int | None,
        typer.Option(help="With --dev: stop after this many passes without improvement.", rich_help_panel=LEARNING),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(help="How many sentences see the same policy.", rich_help_panel=LEARNING)
    ] = 32,
    shuffle: Annotated[bool, typer.Option(help="Another order in every pass.", rich_help_panel=LEARNING)] = True,
    seed: Annotated[int, typer.Option(help="One number behind all randomness.", rich_help_panel=LEARNING)] = 0,
    threads: Annotated[int, typer.Option(help="Threads; they do not change the result.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint of a training that was interrupted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a tagger, and write a model file.

    `lols train tagger en-train.conllu --dev en-dev.conllu --column xpos -o pos.lols`
    """
    from lols.cli.prepare import prepare_tagger, settle
    from lols.estimators.tagger import Tagger
    from lols.estimators.tagger_clusters import read_clusters
    from lols.estimators.tagger_files import FileColumns, read_files, tagged

    _check_output(output)
    if patience is not None and dev is None:
        raise ConfigurationError("patience has no effect: there is no --dev file to get better on")
    began = time.perf_counter()  # importing is start-up
    made = Tagger(
        templates=None,
        scheme=None if scheme == "none" else scheme,
        inner_scheme=inner_scheme,
        direction=direction,
        loss=loss,
        algorithm=algorithm,
        roll_in=roll_in,
        roll_out=roll_out,
        beta=beta,
        mix=mix,
        prune="auto" if prune is None else prune or None,
        reference=reference,
        learner=learner,
        update=update,
        rate=rate,
        passes=passes,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        threads=threads,
        patience=patience,
        progress=False if as_json else None,
    )
    made.clusters = read_clusters(clusters) if clusters else None
    reading = time.perf_counter()
    columns = FileColumns(word, column, use_of(use), file_format, header)
    sentences, columns = read_files(files, columns)
    dev_sentences = read_files([dev], columns)[0] if dev else None
    reading = time.perf_counter() - reading
    made.templates = _templates(templates, template, ["word", *(columns.use or {})], clusters is not None)
    compiling = time.perf_counter()
    prepare_tagger(made, sentences[0], list(columns.use or {}))
    settle()
    compiling = time.perf_counter() - compiling
    data = tagged(sentences, columns)
    data.check_labels()
    held = tagged(dev_sentences, columns) if dev_sentences else None
    if held is not None:
        held.check_labels()
    if not as_json:
        _announce(made, data, held)
    checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
    made.columns_ = columns
    made.fit_columns(
        data.corpus,
        data.labels,
        dev=None if held is None else (held.corpus, held.labels),
        checkpoint=checkpoint,
        resume=resume,
    )
    made.save(output)
    checkpoint.unlink(missing_ok=True)
    report = made.model_.report
    compiling += report["seconds_compiling"]
    total = time.perf_counter() - began
    passes_done = len(report["progressive_loss"])
    work = max(total - compiling - reading, 1e-9)
    result = {
        "model": output,
        "tokens": data.corpus.tokens,
        "sentences": data.corpus.offsets.size - 1,
        "labels": len(made.task_.labels),
        "scheme": made.task_.scheme,
        "passes": passes_done,
        "features": report["features"],
        "progressive_loss": report["progressive_loss"],
        "dev": report["dev"],
        "seed": seed,
        "threads": threads,
        "seconds_reading": reading,
        "seconds_compiling": compiling,
        "seconds_total": total,
        "tokens_per_second": data.corpus.tokens * passes_done / work,
    }
    if report["dev"]:
        best = report["dev"][made.model_.about["best_pass"] - 1]
        result |= {"accuracy": best["accuracy"], "best_pass": int(best["pass"])}
        result |= {"f1": best["f1"]} if "f1" in best else {}
    if as_json:
        print_json(result)
    else:
        _summary(result, data.corpus)


def _check_output(output: str) -> None:
    """Say at once, not after training, that a model cannot be written there."""
    path = Path(output)
    try:
        if path.is_dir():
            raise ConfigurationError(f"{output}: is a folder; name a file in it with -o")
        if not path.parent.is_dir():
            raise ConfigurationError(f"{output}: there is no folder {path.parent}; make it first")
    except OSError as error:
        raise ConfigurationError(f"{output}: cannot be written: {error.strerror or error}") from error


def _templates(path: str | None, more: list[str] | None, names: list[str], clustered: bool) -> list[str] | None:
    """The templates, read before anything is compiled, so that mistakes show at once; None for the default ones."""
    from lols.tasks.tagging_task import default_templates
    from lols.tasks.templates import parse_templates

    if path is None and not more:
        return None
    columns = [*names, *(["cluster"] if clustered else [])]
    lines = default_templates(columns)
    if path is not None:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: cannot be read ({error}); give a text file of templates") from None
    parse_templates([*lines, *(more or [])], columns)
    return [*lines, *(more or [])]


def _announce(tagger: Any, data: Any, held: Any) -> None:
    columns = data.columns
    tokens, sentences = data.corpus.tokens, data.corpus.offsets.size - 1
    used = f", using {', '.join(f'{n} ({c})' for n, c in columns.use.items())}" if columns.use else ""
    say.print(f"{sentences:,} sentences, {tokens:,} tokens, {len(data.names)} labels in column {columns.label}{used}")
    if held is not None:
        unseen = sorted(set(held.names) - set(data.names))
        if unseen:
            say.print(f"labels in the dev file that training never shows, counted as wrong: {', '.join(unseen)}")


def _summary(result: dict[str, Any], corpus: Any) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("pass", "loss per sentence", *(["dev accuracy"] if result["dev"] else [])):
        table.add_column(name, justify="right")
    spans = bool(result["dev"]) and "f1" in result["dev"][0]
    if spans:
        table.add_column("dev F1", justify="right")
    for k, loss in enumerate(result["progressive_loss"]):
        row = [str(k + 1), f"{loss:.4f}"]
        if result["dev"]:
            entry = result["dev"][k]
            row += [f"{100 * entry['accuracy']:.2f}"] + ([f"{100 * entry['f1']:.2f}"] if spans else [])
        table.add_row(*row)
    say.print(table)
    if result["dev"]:
        say.print(f"best on the dev file: pass {result['best_pass']}")
    say.print(
        f"{result['model']} written: {result['features']:,} features; {result['seconds_total']:.1f} s "
        f"({result['seconds_reading']:.1f} reading, {result['seconds_compiling']:.1f} compiling), "
        f"{result['tokens_per_second']:,.0f} tokens/s"
    )
