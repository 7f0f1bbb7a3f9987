"""`lols train pipeline`: from a treebank to taggers and a parser in one model."""

from __future__ import annotations

from typing import Annotated

import typer

from lols.cli.base import Json
from lols.training.clock import Clock
from lols.cli.console import say
from lols.cli.options import (
    LEARNING,
    SEARCH,
    AutoAlgorithm,
    Beta,
    Dev,
    Files,
    Format,
    Head,
    Header,
    Mix,
    Output,
    Passes,
    Patience,
    ReferenceName,
    Relation,
    RollIn,
    RollOut,
    Seed,
    TrainingThreads,
    Word,
)
from lols.cli.train import commands
from lols.cli.train_parser import announce, say_treebank
from lols.cli.training import Seconds, check_output, check_patience, report_training, sentences
from lols.errors import ConfigurationError


@commands.command()
def pipeline(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=Files, show_default=False)],
    output: Output,
    dev: Dev = None,
    word: Word = "form",
    head: Head = "head",
    relation: Relation = "deprel",
    tags: Annotated[
        str | None,
        typer.Option(
            help="The columns to tag, such as upos,xpos; by default those of upos, xpos and feats that are filled in.",
            show_default=False,
        ),
    ] = None,
    file_format: Format = None,
    header: Header = None,
    folds: Annotated[
        int,
        typer.Option(
            help="Parts of the treebank, each tagged by taggers that were trained on the others, for the parser to "
            "learn from; 1 for the treebank's own tags.",
            rich_help_panel=LEARNING,
        ),
    ] = 5,
    labelling: Annotated[
        str, typer.Option(help="joint, second, none or auto; see `lols train parser`.", rich_help_panel=SEARCH)
    ] = "auto",
    roots: Annotated[
        str, typer.Option(help="Roots of a sentence: one, many or auto.", rich_help_panel=SEARCH)
    ] = "auto",
    algorithm: AutoAlgorithm = "auto",
    roll_in: RollIn = None,
    roll_out: RollOut = None,
    beta: Beta = None,
    mix: Mix = None,
    reference: ReferenceName = "optimal",
    passes: Passes = 5,
    patience: Patience = None,
    seed: Seed = 0,
    threads: TrainingThreads = 1,
    as_json: Json = False,
) -> None:
    """Train taggers and a dependency parser that works on their tags, and write one model file.

    Search options are the parser's; passes, seed and threads are for all parts.

    `lols train pipeline en-train.conllu --dev en-dev.conllu -o en.lols`
    """
    from lols.cli.prepare import prepare_parser, settle
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.parsing.files import ParserColumns, read_treebank, treebank
    from lols.tasks.pipeline.estimator import Pipeline
    from lols.tasks.tagging.estimator import Tagger

    check_output(output)
    if any(":" in name for name in (tags or "").split(",")):
        raise ConfigurationError(f"--tags is '{tags}': name whole columns, such as upos,feats")
    check_patience(patience, dev)
    clock = Clock()
    parser = Parser(
        labelling=labelling,
        roots=roots,
        algorithm=algorithm,
        roll_in=roll_in,
        roll_out=roll_out,
        beta=beta,
        mix=mix,
        reference=reference,
        passes=passes,
        patience=patience,
    )
    made = Pipeline(
        tags=None if tags is None else [name.strip() for name in tags.split(",") if name.strip()],
        folds=folds,
        tagger=Tagger(passes=passes, patience=patience),
        parser=parser,
        seed=seed,
        threads=threads,
        progress=False if as_json else None,
    )
    columns = ParserColumns(word, head, relation, None, file_format, header)
    if made.tags is not None:
        columns = ParserColumns(word, head, relation, {name: name for name in made.tags}, file_format, header)
    reader = Clock()
    given = read_treebank(files, columns)
    reading = reader.working()
    prepare_parser(parser)  # what is wrong with its options must not show only after the taggers
    settle()
    data = treebank(given, columns)
    reader = Clock()
    dev_sentences = read_treebank([dev], data.columns) if dev else None
    reading += reader.working()
    held = treebank(dev_sentences, data.columns) if dev_sentences else None
    if not as_json:
        announce(data)
    made.columns_ = data.columns
    made.fit_columns(
        data.corpus,
        *data.trees,
        dev=None if held is None else (held.corpus, *held.trees),
        say=(lambda line: None) if as_json else say.print,
    )
    made.save(output)
    found = made.parser_
    if not as_json:
        say_treebank(found, data)
    facts = sentences(data.corpus) | {"relations": len(found.task_.plain), "actions": len(found.task_.actions)}
    facts |= {"folds": folds, "tags": list(made.taggers_), **found.prepared_}
    seconds = Seconds(clock.total(), reading, clock.compiling())
    report_training(found, output, seconds, facts, as_json)
