"""Options that taggers, parsers and pipelines share: where things are in files of tokens, and how verbs show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from lols.errors import ConfigurationError
from lols.tasks.options import INPUT, option, size_of
from lols.tasks.verbs import FileLayout, InspectOptions, PageOptions

FILE = "One token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz, .xz and .bz2 are read directly."


@dataclass(frozen=True, kw_only=True)
class TokenTraining:
    """Further options of training on files."""

    memory: int | None = option(
        default=None,
        help="How much memory the training data may take, such as 512MB or 2GB: larger files are read again in every "
        "pass, part by part. By default as much as they need.",
        panel=INPUT,
        kind=str | None,
        parse=size_of,
    )


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What is drawn of an evaluation."""

    plot: str | None = option(
        default=None,
        help="Draw how often predictions are right, by confidence, as .png, .svg or .pdf; the model must be "
        "calibrated.",
    )


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(PageOptions):
    """How the search of a sentence is shown."""

    top: int
    reference: str | None = option(
        default=None, help="The teacher: optimal, suboptimal or bad; as in training unless given."
    )
    roll_out: str | None = option(
        default=None,
        help="Which policy completes the deviations: reference, mixture, learned or none; as in training unless given.",
    )
    beta: str | float | None = option(
        default=None,
        help="The probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA.",
        kind=str | None,
    )

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigurationError(f"--top is {self.top}: give at least 1")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(InspectOptions):
    """Which labels or actions are shown of a model."""

    label: Sequence[str] | None = option(
        default=None,
        help="Show the features of this label only, or of this action of a parser, such as 'Left nsubj', or of this "
        "relation; may be repeated.",
        kind=list[str] | None,
    )


@dataclass(frozen=True, kw_only=True)
class TokenColumns(FileLayout):
    """Where things are in a file of tokens; a subclass has the columns as fields."""

    format: str | None = option(
        default=None,
        help="The format of the file: conllu, conllx, columns, tsv or words (one word on each line); detected by "
        "default.",
        flag="--format",
    )
    header: bool | None = option(
        default=None, help="Whether the first line of a TSV file names the columns.", flag="--header/--no-header"
    )

    def changed(self, **given: Any) -> Self:
        """The same columns in another file, whose format is detected anew, but for those that are given."""
        return super().changed(**{"format": None, "header": None} | given)

    @classmethod
    def from_description(cls, files: Mapping[str, Any]) -> Self:
        """What `describe` described; anything else is an error."""
        columns = cls(**files)
        values = {each.name: getattr(columns, each.name) for each in fields(cls)}
        use, header = values.pop("use"), values.pop("header")
        if not isinstance(use, dict | None):
            raise ValueError("the files' further columns are not a mapping")
        width = values.pop("width", None)
        if width is not None and type(width) is not int:
            raise ValueError("the number of the files' columns is not a number")
        names = [value for name, value in values.items() if value is not None or name not in ("format", "trained")]
        if not all(isinstance(name, str) for name in (*names, *(use or {}), *(use or {}).values())):
            raise ValueError("the files' columns are not named by strings")
        if header not in (None, True, False):
            raise ValueError("the files' header is neither true nor false")
        return columns

    def describe(self) -> dict[str, Any]:
        """Plain values, for model files."""
        values = asdict(self)
        if values.get("width") is None:
            values.pop("width", None)
        return values | {"use": None if values["use"] is None else dict(values["use"])}


def use_of(entries: list[str]) -> dict[str, str] | None:
    """Further columns as a mapping from the names that templates use to columns.

    >>> use_of(["pos=2", "lemma"]), use_of(["none"])
    ({'pos': '2', 'lemma': 'lemma'}, {})
    """
    if not entries:
        return None
    if entries == ["none"]:
        return {}
    columns = {}
    for entry in entries:
        name, equals, column = entry.rpartition("=")
        column = column or entry
        if not equals:
            name = f"column{column}" if column.isdigit() else column.replace(":", "_")
        if name == "word":
            raise ConfigurationError(f"--use {entry}: word is the column of --word; take another name")
        columns[name] = column
    return columns
