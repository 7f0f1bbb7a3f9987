"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lols.errors import ConfigurationError

Files = "Files that hold one token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz is read as it is."

File = "A file that holds one token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz is read as it is."

Tables = "Tables: CSV (also compressed by gzip), Parquet, Arrow or Feather; several with the same columns are one."

OneTable = "Of a classifier: a table, which is CSV (also compressed by gzip), Parquet, Arrow or Feather."

Separator = Annotated[
    str | None,
    typer.Option(
        help="Of a CSV file: the character between cells; a comma, semicolon, tab or bar, as it seems, unless given.",
        show_default=False,
    ),
]
TableHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file begins with the columns' names; as it seems unless given. Without, they are called "
        "column1, column2, ...",
        show_default=False,
    ),
]
TableLabel = Annotated[
    str | None,
    typer.Option(help="Of a classifier: the column of the labels; as in training unless given.", show_default=False),
]
LikeTraining = Annotated[
    str | None,
    typer.Option(
        help="The column of the labels; as in training unless given. A number one beyond the last appends a column.",
        show_default=False,
    ),
]
UseLikeTraining = Annotated[
    list[str] | None,
    typer.Option(help="A further column, as NAME=COLUMN; as in training unless given.", show_default=False),
]
Column = Annotated[
    str | None,
    typer.Option(
        help="The column of the labels: upos, xpos, feats:Case, misc:NER, a number from 1 on, or last. "
        "By default upos, and the last one of plain columns.",
        show_default=False,
    ),
]
Word = Annotated[str, typer.Option(help="The column of the words.")]
Use = Annotated[
    list[str] | None,
    typer.Option(
        help="A further column that templates look at, such as xpos or pos=2; may be repeated. In plain columns all "
        "those before the labels are used unless --use says otherwise; --use none for none.",
        show_default=False,
    ),
]
Head = Annotated[str, typer.Option(help="The column of the heads.")]
Relation = Annotated[str, typer.Option(help="The column of the relations.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="conllu, conllx, columns or tsv; by default what the file looks like."),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a TSV file begins with the columns' names.", show_default=False),
]
AnyHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a TSV file, or the CSV file of a classifier, begins with the columns' names.",
        show_default=False,
    ),
]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores unless given.", show_default=False)]


# --- training ---

SEARCH = "How it searches"
LEARNING = "How it learns"
INPUT = "What it reads"

Output = Annotated[str, typer.Option("--output", "-o", help="The model file to write.", show_default=False)]
Dev = Annotated[
    str | None, typer.Option(help="Labelled sentences on which the best pass is chosen.", show_default=False)
]
Templates = Annotated[
    str | None,
    typer.Option(help="A file of templates, one per line, in place of the default ones.", rich_help_panel=INPUT),
]
AlgorithmName = Annotated[str, typer.Option(help="lols, aggrevate, dagger, cloning or searn.", rich_help_panel=SEARCH)]
AutoAlgorithm = Annotated[
    str,
    typer.Option(
        help="lols, aggrevate, dagger, cloning, searn; or auto: aggrevate with the optimal teacher, else lols with "
        "beta auto.",
        rich_help_panel=SEARCH,
    ),
]
RollIn = Annotated[str | None, typer.Option(help="learned, reference or mixture.", rich_help_panel=SEARCH)]
RollOut = Annotated[str | None, typer.Option(help="mixture, reference, learned or none.", rich_help_panel=SEARCH)]
Beta = Annotated[
    str | None,
    typer.Option(
        help="Probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA.",
        rich_help_panel=SEARCH,
    ),
]
Mix = Annotated[
    str | None,
    typer.Option(help="Where the coin is tossed: state, rollout, example, expected or step.", rich_help_panel=SEARCH),
]
Prune = Annotated[
    int | None,
    typer.Option(
        help="Roll out this many best-liked actions and the teacher's; 0 for all, as Algorithm 1 is printed. "
        "By default 2 with the optimal teacher, else 0.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]
ReferenceName = Annotated[str, typer.Option(help="The teacher: optimal, suboptimal or bad.", rich_help_panel=SEARCH)]
LearnerName = Annotated[str, typer.Option(help="hinge, csoaa or secoc.", rich_help_panel=LEARNING)]
Update = Annotated[str | None, typer.Option(help="adagrad, nag, gd, ridge or perceptron.", rich_help_panel=LEARNING)]
Rate = Annotated[float | None, typer.Option(help="The learning rate.", rich_help_panel=LEARNING)]
Passes = Annotated[int, typer.Option(help="Passes over the data.", rich_help_panel=LEARNING)]
Patience = Annotated[
    int | None,
    typer.Option(help="With --dev: stop after this many passes without improvement.", rich_help_panel=LEARNING),
]
BatchSize = Annotated[int, typer.Option(help="How many sentences see the same policy.", rich_help_panel=LEARNING)]
Shuffle = Annotated[bool, typer.Option(help="Another order in every pass.", rich_help_panel=LEARNING)]
Seed = Annotated[int, typer.Option(help="One number behind all randomness.", rich_help_panel=LEARNING)]
TrainingThreads = Annotated[int, typer.Option(help="Threads; they do not change the result.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of a training that was interrupted.")]


def refuse(given: dict[str, Any], what: str) -> None:
    """Options that have no effect on this kind of model are a mistake."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise ConfigurationError(f"{name} has no effect: the model is {what}")


def use_of(given: list[str] | None) -> dict[str, str] | None:
    """`["pos=2", "lemma"]` as a mapping from names to columns."""
    if not given:
        return None
    if given == ["none"]:
        return {}
    made = {}
    for entry in given:
        name, equals, column = entry.rpartition("=")
        column = column or entry
        name = name if equals else _name(column)
        if name == "word":
            raise ConfigurationError(f"--use {entry}: word is the column of --word; take another name")
        made[name] = column
    return made


def _name(column: str) -> str:
    return f"column{column}" if column.isdigit() else column.replace(":", "_")
