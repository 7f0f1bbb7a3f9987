"""What a classifier's verbs take, and training on files; nothing here takes time to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lols.errors import ConfigurationError
from lols.tasks.options import INPUT, option, size_of
from lols.tasks.verbs import ROWS, CertifyOptions, FileLayout, InspectOptions, PageOptions, PredictOptions, Verbs

MEMORY = 1 << 30  # bytes of cells that are held


@dataclass(frozen=True)
class TableFiles(FileLayout):
    """How tables are laid out: goes into the model file, so that others like them are read the same way."""

    label: str | None = option(
        default=None, help="The column of the labels; in training by default the last one.", common=True
    )
    header: bool | None = option(
        default=None,
        help="Whether a CSV file begins with the names of the columns; detected by default. Without names the "
        "columns are column1, column2, ...",
        flag="--header/--no-header",
    )
    separator: str | None = option(
        default=None,
        help="The character between the cells of a CSV file: detected by default (comma, semicolon, tab or bar).",
    )
    cost_columns: str | None = option(
        default=None,
        help="What the names of columns begin with that hold the costs of each class in each row: with cost_ those of "
        "class ask are in cost_ask. Labels are then not needed.",
    )

    def describe(self) -> dict[str, Any]:
        """Plain values, for model files."""
        return {name: value for name, value in asdict(self).items() if value is not None or name != "cost_columns"}

    @classmethod
    def from_description(cls, facts: Mapping[str, Any]) -> TableFiles:
        """The layout that a model file describes."""
        known = {"label": str, "header": bool, "separator": str, "cost_columns": str}
        given = {name: facts[name] if name != "cost_columns" else facts.get(name) for name in known}
        if any(value is not None and not isinstance(value, known[name]) for name, value in given.items()):
            raise ValueError("the layout of the files is damaged")
        return cls(**given)


def columns_of(text: str) -> tuple[str, str]:
    """The two columns of an interaction.

    >>> columns_of("service * flag")
    ('service', 'flag')
    """
    first, star, second = (part.strip() for part in text.partition("*"))
    if not (first and star and second):
        raise ConfigurationError(f"--interaction is '{text}': name two columns, as A*B")
    return first, second


@dataclass(frozen=True)
class TableTraining:
    """Further options of training on files."""

    memory: int = option(
        default=MEMORY,
        help="How much of a table is held in memory, such as 512MB or 2GB: a larger one is read again in every pass.",
        panel=INPUT,
        kind=str,
        initial="1GB",
        parse=size_of,
    )
    weight: str | None = option(
        default=None, help="The column of what the costs of each row are multiplied by.", panel=INPUT
    )


@dataclass(frozen=True, kw_only=True)
class ClassifierPredictOptions(PredictOptions):
    """What is written for each row."""

    labels_only: bool = option(default=False, help="Write only the classes, one per line.", flag="--labels-only")


@dataclass(frozen=True, kw_only=True)
class ClassifierEvaluateOptions:
    """What is drawn of an evaluation."""

    plot: str | None = option(
        default=None,
        help="Draw how often each class was taken for each other one, as .png, .svg or .pdf; of a calibrated model "
        "also how often predictions are right, by confidence, in a second file NAME-reliability.",
    )


@dataclass(frozen=True, kw_only=True)
class ClassifierExplainOptions(PageOptions):
    """What is shown of a decision."""

    top: int = option(default=5, help="How many features of each decision to show.")

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ConfigurationError(f"--top is {self.top}: give at least 0")


@dataclass(frozen=True, kw_only=True)
class ClassifierInspectOptions(InspectOptions):
    """What is shown of a classifier."""

    label: Sequence[str] | None = option(
        default=None,
        help="Show only the features of the child of the node that leads to this class; may be repeated.",
        kind=list[str] | None,
    )
    node: int = option(default=0, help="The node of the tree of classes whose features are shown; 0 is the root.")


VERBS = Verbs(
    name="classifier",
    unit="rows",
    input="Tables: CSV (also compressed: .gz, .xz, .bz2), Parquet, Arrow or Feather.",
    files=TableFiles,
    options={
        "predict": ClassifierPredictOptions,
        "evaluate": ClassifierEvaluateOptions,
        "explain": ClassifierExplainOptions,
        "inspect": ClassifierInspectOptions,
        "certify": CertifyOptions,
    },
    counted=ROWS,
)
