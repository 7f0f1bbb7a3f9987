"""`lols train classifier`: from a table to a model."""

from __future__ import annotations

import re
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
    Beta,
    LearnerName,
    Mix,
    Output,
    Passes,
    Patience,
    Rate,
    ReferenceName,
    Resume,
    RollIn,
    RollOut,
    Seed,
    Separator,
    Shuffle,
    TableHeader,
    Tables,
    TrainingThreads,
    Update,
)
from lols.cli.train import commands
from lols.cli.training import ROWS, Seconds, check_output, check_patience, report_training
from lols.errors import ConfigurationError

UNITS = {"": 1, "b": 1}
UNITS |= {f"{name}b": 1000**k for k, name in enumerate("kmgt", 1)}
UNITS |= {f"{name}ib": 1024**k for k, name in enumerate("kmgt", 1)}
FEW = 12  # classes whose counts are shown


@commands.command()
def classifier(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=Tables, show_default=False)],
    output: Output,
    dev: Annotated[
        str | None, typer.Option(help="A labelled table on which the best pass is chosen.", show_default=False)
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column of the labels; the last one unless given.", show_default=False)
    ] = None,
    label_map: Annotated[
        str | None,
        typer.Option(
            help="Where labels are finer than classes: a CSV file of name,class in each line; or kdd99.",
            show_default=False,
        ),
    ] = None,
    cost_matrix: Annotated[
        str | None,
        typer.Option(
            help="What mistakes cost: a CSV file whose first line names the classes, then a row for each true class, "
            "with the cost of predicting each; or kdd99. All mistakes cost 1 unless given.",
            show_default=False,
        ),
    ] = None,
    header: TableHeader = None,
    separator: Separator = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that holds categories though it looks like numbers; may be repeated.", rich_help_panel=INPUT
        ),
    ] = None,
    numerical: Annotated[
        list[str] | None,
        typer.Option(help="A column that must hold numbers; may be repeated.", rich_help_panel=INPUT),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column that is not used; may be repeated.", rich_help_panel=INPUT)
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="A text that means a missing value, besides the empty one; may be repeated. By default NA, N/A, NaN, "
            "nan, null, NULL, None and ?.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    numeric: Annotated[
        str,
        typer.Option(
            help="What a number's feature is: the bin that it falls into (bins), its scaled value (scaled), or both.",
            rich_help_panel=INPUT,
        ),
    ] = "bins",
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of a column of numbers, about; by default from 4 to 64, the more rows, the more.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    interaction: Annotated[
        list[str] | None,
        typer.Option(
            help="Two columns A*B whose values together are features, too; may be repeated.", rich_help_panel=INPUT
        ),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            help="How much of a table is held, such as 512MB or 2GB: a larger one is read again in every pass, piece "
            "by piece.",
            rich_help_panel=INPUT,
        ),
    ] = "1GB",
    tree: Annotated[
        str,
        typer.Option(
            help="How classes are split, again and again: order, in half as they come; frequency, so that both sides "
            "are met equally often; similarity, by where their rows lie; or flat: one decision among all.",
            rich_help_panel=SEARCH,
        ),
    ] = "order",
    algorithm: AutoAlgorithm = "auto",
    roll_in: RollIn = None,
    roll_out: RollOut = None,
    beta: Beta = None,
    mix: Mix = None,
    reference: ReferenceName = "optimal",
    skill: Annotated[
        float,
        typer.Option(help="How often the suboptimal teacher goes to the best child.", rich_help_panel=SEARCH),
    ] = 0.5,
    learner: LearnerName = "hinge",
    update: Update = None,
    margin: Annotated[
        str, typer.Option(help="The hinge's margin: weighted, cost or unit.", rich_help_panel=LEARNING)
    ] = "weighted",
    rate: Rate = None,
    passes: Passes = 5,
    patience: Patience = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="How many rows see the same policy; by default a hundredth of them, at most 4096.",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    shuffle: Shuffle = True,
    seed: Seed = 0,
    threads: TrainingThreads = 1,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Train a cost-sensitive classifier on tables, and write a model file.

    It walks down a tree of the classes to the one that costs least. Columns of numbers and of categories are told apart
    by themselves; both may have missing values.

    `lols train classifier kdd.csv --label-map kdd99 --cost-matrix kdd99 -o kdd.lols`
    """
    from lols.cli.prepare import prepare_classifier, settle
    from lols.io.costs import read_cost_matrix, read_label_map
    from lols.tasks.tables.estimator import CostSensitiveClassifier
    from lols.tasks.tables.files import TableFiles, fit_files, open_files
    from lols.tasks.tables.tree_of_labels import TREES

    check_output(output)
    check_patience(patience, dev)
    if tree not in (*TREES, "flat"):
        raise ConfigurationError(f"--tree is '{tree}': choose {', '.join(TREES)} or flat")
    held = size_of(memory)
    clock = Clock()  # importing is start-up
    classes, costs = (None, None) if cost_matrix is None else read_cost_matrix(cost_matrix)
    made = CostSensitiveClassifier(
        tree=None if tree == "flat" else tree,
        classes=classes,
        cost_matrix=costs,
        label_map=None if label_map is None else read_label_map(label_map),
        categorical=categorical,
        numerical=numerical,
        ignore=ignore,
        numeric=numeric,
        bins=bins,
        interactions=[pair_of(text) for text in interaction or ()],
        missing=None if missing is None else ["", *missing],
        algorithm=algorithm,
        roll_in=roll_in,
        roll_out=roll_out,
        beta=beta,
        mix=mix,
        reference=reference,
        skill=skill,
        learner=learner,
        update=update,
        margin=margin,
        rate=rate,
        passes=passes,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        threads=threads,
        patience=patience,
        progress=False if as_json else None,
    )
    layout = TableFiles(label, header, separator)
    for path in [*files, *([dev] if dev else [])]:  # which must be there, before anything is compiled
        open_files([path], layout)
    prepare_classifier(made)
    settle()
    checkpoint = Path(output).with_name(Path(output).name + ".checkpoint")
    seconds = {"reading": 0.0}
    facts = fit_files(
        made,
        files,
        layout,
        dev=dev,
        memory=held,
        seconds=seconds,
        tell=None if as_json else announce,
        checkpoint=checkpoint,
        resume=resume,
    )
    made.save(output)
    checkpoint.unlink(missing_ok=True)
    spent = Seconds(clock.total(), seconds["reading"], clock.compiling())
    report_training(made, output, spent, facts, as_json, ROWS)


def announce(facts: dict[str, Any]) -> None:
    """Say what was read."""
    gaps = f", {facts['missing_cells']:,} missing cells" if facts["missing_cells"] else ""
    say.print(
        f"{facts['rows']:,} rows, {facts['columns']} column{'s' if facts['columns'] != 1 else ''} "
        f"({facts['numbers']} of numbers, {facts['categories']} of categories){gaps}"
    )
    classes = facts["classes"]
    counts = ": " + ", ".join(f"{name} {count:,}" for name, count in classes.items()) if len(classes) <= FEW else ""
    say.print(f"{len(classes)} class{'es' if len(classes) != 1 else ''}{counts}", markup=False)
    unseen = sum(count == 0 for count in classes.values())
    if unseen:
        say.print(f"{unseen} of the classes are in no row: nothing can be learned of them")
    if facts["dropped_cells"]:
        say.print(
            f"{facts['dropped_cells']:,} cells of columns with too many categories: the rarest are not told apart"
        )
    if not facts["in_memory"]:
        say.print("larger than --memory: the files are read again in every pass, and there is no checkpoint")


def size_of(text: str) -> int:
    """A number of bytes as people write it.

    >>> size_of("512MB"), size_of("2 GiB"), size_of("1.5k")
    (512000000, 2147483648, 1500)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", text.lower())
    unit = found and next((u for u in (found[2], found[2] + "b") if u in UNITS), None)
    if found is None or unit is None:
        raise ConfigurationError(f"--memory is '{text}': give a number of bytes, such as 512MB or 2GB")
    return int(float(found[1]) * UNITS[unit])


def pair_of(text: str) -> tuple[str, str]:
    """The two columns of an interaction.

    >>> pair_of("service * flag")
    ('service', 'flag')
    """
    first, star, second = (part.strip() for part in text.partition("*"))
    if not (first and star and second):
        raise ConfigurationError(f"--interaction is '{text}': name two columns, as A*B")
    return first, second
