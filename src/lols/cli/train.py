"""`lols train`: from a file to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app
from lols.training.clock import Clock
from lols.cli.console import say
from lols.cli.options import (
    INPUT,
    LEARNING,
    SEARCH,
    AlgorithmName,
    BatchSize,
    Beta,
    Column,
    Dev,
    Files,
    Format,
    Header,
    LearnerName,
    Mix,
    Output,
    Passes,
    Patience,
    Prune,
    Rate,
    ReferenceName,
    Resume,
    RollIn,
    RollOut,
    Seed,
    Shuffle,
    Templates,
    TrainingThreads,
    Update,
    Use,
    Word,
    use_of,
)
from lols.cli.training import Seconds, check_output, check_patience, read_templates, report_training, sentences

commands = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(
    commands,
    name="train",
    help="Train a tagger, a parser, a pipeline or a classifier from files: `lols train parser --help`.",
)


@commands.command()
def tagger(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=Files, show_default=False)],
    output: Output,
    dev: Dev = None,
    column: Column = None,
    word: Word = "form",
    use: Use = None,
    file_format: Format = None,
    header: Header = None,
    templates: Templates = None,
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
    algorithm: AlgorithmName = "lols",
    roll_in: RollIn = None,
    roll_out: RollOut = None,
    beta: Beta = None,
    mix: Mix = None,
    prune: Prune = None,
    reference: ReferenceName = "optimal",
    learner: LearnerName = "hinge",
    update: Update = None,
    rate: Rate = None,
    passes: Passes = 5,
    patience: Patience = None,
    batch_size: BatchSize = 32,
    shuffle: Shuffle = True,
    seed: Seed = 0,
    threads: TrainingThreads = 1,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Train a tagger, and write a model file.

    `lols train tagger en-train.conllu --dev en-dev.conllu --column xpos -o pos.lols`
    """
    from lols.cli.prepare import settle
    from lols.tasks.tagging.clusters import read_clusters
    from lols.tasks.tagging.estimator import Tagger
    from lols.tasks.tagging.files import FileColumns, read_files, tagged

    check_output(output)
    check_patience(patience, dev)
    clock = Clock()  # importing is start-up
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
    reader = Clock()
    columns = FileColumns(word, column, use_of(use), file_format, header)
    given, columns = read_files(files, columns)
    dev_sentences = read_files([dev], columns)[0] if dev else None
    reading = reader.working()
    made.templates = _templates(templates, template, ["word", *(columns.use or {})], clusters is not None)
    settle()
    data = tagged(given, columns)
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
    seconds = Seconds(clock.total(), reading, clock.compiling())
    facts = sentences(data.corpus) | {"labels": len(made.task_.labels), "scheme": made.task_.scheme}
    report_training(made, output, seconds, facts, as_json)


def _templates(path: str | None, more: list[str] | None, names: list[str], clustered: bool) -> list[str] | None:
    from lols.tasks.tagging.task import default_templates
    from lols.tasks.tokens.templates import parse_templates

    columns = [*names, *(["cluster"] if clustered else [])]
    return read_templates(path, more, columns, default_templates, parse_templates)


def _announce(tagger: Any, data: Any, held: Any) -> None:
    columns = data.columns
    tokens, sentences = data.corpus.tokens, data.corpus.offsets.size - 1
    used = f", using {', '.join(f'{n} ({c})' for n, c in columns.use.items())}" if columns.use else ""
    say.print(f"{sentences:,} sentences, {tokens:,} tokens, {len(data.names)} labels in column {columns.label}{used}")
    if held is not None:
        unseen = sorted(set(held.names) - set(data.names))
        if unseen:
            say.print(f"labels in the dev file that training never shows, counted as wrong: {', '.join(unseen)}")
