"""The verbs of an estimator on files: what the command line calls, and what it must know to offer them.

A command parses options, calls a verb, and prints what it returns. It asks no model which kind it is: the options that
a verb takes are in the estimator's `VERBS`, and what a verb returns can show itself. This module, and the modules that
define the `VERBS`, import nothing that takes time, so that `lols predict --help` is immediate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from lols.errors import ConfigurationError
from lols.tasks.options import option

if TYPE_CHECKING:
    from rich.console import Console


class Unit(NamedTuple):
    """What data are counted in."""

    name: str
    speed: str  # the key under which the speed is reported
    loss: str  # the heading of the losses


TOKENS = Unit("tokens", "tokens_per_second", "loss per sentence")
ROWS = Unit("rows", "examples_per_second", "cost per row")
EXAMPLES = Unit("examples", "examples_per_second", "loss per example")

BEST_SO_FAR = "best so far"  # the name of the task in what training keeps beside its checkpoint

Say = Callable[[str], None]  # is given remarks for the user


def silent(line: str) -> None:
    """Say nothing."""


class FromWeights(UserWarning):
    """Learning goes on from weights alone."""


@dataclasses.dataclass(frozen=True)
class FileLayout:
    """Where things are in a file: the base of the dataclasses that say so for each task."""

    def changed(self, **given: Any) -> Self:
        """The same layout, but for what is given."""
        return dataclasses.replace(self, **given)

    def describe(self) -> dict[str, Any]:
        """Plain values, for model files."""
        return dataclasses.asdict(self)

    @classmethod
    def from_description(cls, files: Mapping[str, Any]) -> Self:
        """The layout that a model file describes."""
        return cls(**files)


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """The options of a verb that has none: nothing can be asked for."""

    confidence: bool = dataclasses.field(default=False, init=False)
    plot: str | None = dataclasses.field(default=None, init=False)
    reference: str | None = dataclasses.field(default=None, init=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """What is written of every prediction."""

    confidence: bool = option(
        default=False,
        help="Also write how likely each prediction is to be right: to MISC in CoNLL-U, else to a new last column. The "
        "model must have been trained with --dev or --calibrate, or be the result of `lols calibrate`.",
        flag="--confidence",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """What `inspect` shows of every estimator."""

    top: int = option(default=10, help="How many features to show for each label or action; 0 for none.")
    against: bool = option(
        default=False, help="Also show the features that speak against each label.", flag="--against"
    )

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ConfigurationError(f"--top is {self.top}: give 0 or more")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageOptions:
    """How the explanation of an example is kept."""

    html: str | None = option(default=None, help="Draw it as a page, and write that to this file.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CertifyOptions:
    """What a case for a certificate can be made with."""

    reference: str | None = option(
        default=None, help="The teacher: optimal, suboptimal or bad; as in training unless given."
    )


@dataclasses.dataclass(frozen=True)
class Verbs:
    """What the command line knows of an estimator before it imports it.

    Parameters
    ----------
    name
        The estimator's name in model files and on the command line, such as `"tagger"`.
    unit
        What its examples are called, such as `"sentences"`.
    input
        What its files are, in a sentence for `--help`.
    files
        A dataclass that says where things are in a file. Its fields are options of all verbs that read one; what is not
        given is as in training.
    options
        For each verb a dataclass of its further options.
    counted
        What the size of the data and the speed are counted in.

    """

    name: str
    unit: str
    input: str
    files: type = FileLayout
    options: Mapping[str, type] = dataclasses.field(default_factory=dict)
    counted: Unit = EXAMPLES

    @property
    def described(self) -> str:
        """The name with its article.

        >>> Verbs("tagger", "sentences", "").described
        'a tagger'
        """
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    @property
    def one(self) -> str:
        """The unit in the singular: also the option of `explain` that names one of them."""
        return self.unit.removesuffix("s")

    def options_of(self, verb: str) -> type:
        """The dataclass of a verb's further options."""
        return self.options.get(verb, NoOptions)


class VerbReport(Protocol):
    """What a verb returns: plain values for `--json`, and text for people."""

    def as_dict(self) -> dict[str, Any]:
        """The plain values."""

    def show(self, console: Console) -> None:
        """Print it."""


class Scores(Protocol):
    """What `evaluate` returns of a task."""

    def as_dict(self) -> dict[str, Any]:
        """The plain values."""

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print them; of long tables all rows if `whole`."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Scores on a file: how many tokens or rows they are of, and how many seconds reading the file took."""

    scores: Scores
    count: int
    seconds_reading: float
    plot: str | None = None  # where it was drawn how reliable confidence is
    whole: bool = False  # whether all rows of long tables are printed

    def as_dict(self) -> dict[str, Any]:
        """The scores as plain values."""
        return self.scores.as_dict() | ({} if self.plot is None else {"reliability_plot": self.plot})

    def show(self, console: Console) -> None:
        """Print the scores."""
        self.scores.show(console, whole=self.whole)
        if self.plot is not None:
            from lols.tasks.show import write

            write(console, f"\n{self.plot} written")

    def drawn(self, plot: str | None, reliability: Any) -> Self:
        """The same, with a picture of how reliable confidence is, if one is wanted."""
        if plot is None:
            return self
        from lols.plots import reliability_plot

        reliability_plot(reliability, plot)
        return dataclasses.replace(self, plot=plot)


@dataclasses.dataclass(frozen=True)
class Recalibration:
    """What confidence was fitted to: for each thing that the model decides on, what `Refit` says."""

    fits: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"confidence": {name: fit.as_dict() for name, fit in self.fits.items()}}

    def show(self, console: Console) -> None:
        """Print them."""
        from lols.tasks.show import write

        for name, fit in self.fits.items():
            seen = f"{fit.calibration.decisions:,} decisions, {100 * fit.accuracy:.2f} % of them right"
            known = "" if fit.error_before is None else f"; on these the calibration error was {fit.error_before:.4f}"
            write(console, f"confidence in {name}: fitted to {seen}{known}")


def some_of(names: Iterable[str], most: int) -> str:
    """Some names, and how many more there are.

    >>> some_of("abcd", 2)
    'a, b and 2 more'
    """
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
