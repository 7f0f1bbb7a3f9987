"""`lols train parser`: from a treebank to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Json
from lols.training.clock import Clock
from lols.cli.console import say
from lols.cli.options import (
    INPUT,
    LEARNING,
    SEARCH,
    AutoAlgorithm,
    BatchSize,
    Beta,
    Dev,
    Files,
    Format,
    Head,
    Header,
    LearnerName,
    Mix,
    Output,
    Passes,
    Patience,
    Prune,
    Rate,
    ReferenceName,
    Relation,
    Resume,
    RollIn,
    RollOut,
    Seed,
    Shuffle,
    Templates,
    TrainingThreads,
    Update,
    Word,
    use_of,
)
from lols.cli.train import commands
from lols.cli.training import Seconds, check_output, check_patience, read_templates, report_training, sentences


@commands.command()
def parser(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=Files, show_default=False)],
    output: Output,
    dev: Dev = None,
    word: Word = "form",
    head: Head = "head",
    relation: Relation = "deprel",
    use: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that templates look at, such as xpos or pos=2; may be repeated. By default upos, xpos "
            "and feats, those of them that are filled in; --use none for none.",
            show_default=False,
        ),
    ] = None,
    file_format: Format = None,
    header: Header = None,
    templates: Templates = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help="One more template, such as 'S0.upos & N0.upos'; may be repeated.", rich_help_panel=INPUT),
    ] = None,
    labelling: Annotated[
        str,
        typer.Option(
            help="joint: an arc and its relation at once; second: the relation after the arc; none: arcs only; auto: "
            "joint where there are relations to tell apart.",
            rich_help_panel=SEARCH,
        ),
    ] = "auto",
    roots: Annotated[
        str,
        typer.Option(help="Roots of a sentence: one, many, or auto: as the treebank has them.", rich_help_panel=SEARCH),
    ] = "auto",
    punctuation: Annotated[
        bool, typer.Option(help="Whether the heads of punctuation count in the loss.", rich_help_panel=LEARNING)
    ] = True,
    algorithm: AutoAlgorithm = "auto",
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
    """Train a dependency parser, and write a model file.

    `lols train parser en-train.conllu --dev en-dev.conllu -o parser.lols`
    """
    from lols.cli.prepare import settle
    from lols.tasks.parsing.defaults import default_parsing_templates
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.parsing.files import ParserColumns, read_treebank, treebank
    from lols.tasks.parsing.templates import parse_parsing_templates

    check_output(output)
    check_patience(patience, dev)
    clock = Clock()  # importing is start-up
    made = Parser(
        labelling=labelling,
        roots=roots,
        punctuation=punctuation,
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
    columns = ParserColumns(word, head, relation, use_of(use), file_format, header)
    reader = Clock()
    given = read_treebank(files, columns)
    reading = reader.working()
    settle()
    data = treebank(given, columns)
    reader = Clock()
    dev_sentences = read_treebank([dev], data.columns) if dev else None
    reading += reader.working()
    held = treebank(dev_sentences, data.columns) if dev_sentences else None
    made.templates = read_templates(
        templates, template, list(data.corpus.columns), default_parsing_templates, parse_parsing_templates
    )
    if not as_json:
        announce(data)
    checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
    made.columns_ = data.columns
    made.fit_columns(
        data.corpus,
        *data.trees,
        dev=None if held is None else (held.corpus, *held.trees),
        checkpoint=checkpoint,
        resume=resume,
    )
    made.save(output)
    checkpoint.unlink(missing_ok=True)
    facts = sentences(data.corpus) | {"relations": len(made.task_.plain), "actions": len(made.task_.actions)}
    if not as_json:
        say_treebank(made, data)
    seconds = Seconds(clock.total(), reading, clock.compiling())
    report_training(made, output, seconds, facts | made.prepared_, as_json)


def announce(data: Any) -> None:
    """Say what was read."""
    tokens, sentences = data.corpus.tokens, data.corpus.offsets.size - 1
    used = ", ".join(name for name in data.corpus.columns if name != "word") or "words only"
    say.print(f"{sentences:,} sentences, {tokens:,} tokens, {len(data.names)} relations, using {used}")


def say_treebank(made: Any, data: Any) -> None:
    """What is not as the parser builds it, and what was done about it."""
    facts, sentences = made.prepared_, data.corpus.offsets.size - 1
    how = "without relations they cannot be restored: use --labelling joint"
    if made.task_.labelling != "none":
        how = "their relations say so, and parsing restores them"
        how += f", but for {facts['rare']:,} in ways too rare to be learned" if facts["rare"] else ""
    if facts["nonprojective"]:
        share = 100 * facts["nonprojective"] / sentences
        say.print(
            f"{facts['nonprojective']:,} sentences ({share:.1f} %) are not projective: {facts['lifted']:,} words were "
            f"lifted; {how}"
        )
    if made.task_.roots == "many":
        say.print("many sentences have several roots, and the parser may give several; --roots one for one")
    if facts["mended"]:
        first = made.mended_[:3].tolist()
        say.print(
            f"{facts['mended']:,} sentences had several roots; all but the first were attached to it: "
            f"{'; '.join(data.place(k) for k in first)}{' ...' if facts['mended'] > 3 else ''}"
        )
