"""The verbs of an estimator on files: what the command line calls, and what it must know to offer them.

A command parses options, calls a verb, and prints what it returns. It asks no model which kind it is: the options that
a verb takes are in the estimator's `VERBS`, and what a verb returns can show itself. This module, and the modules that
define the `VERBS`, import nothing that takes time, so that `lols predict --help` is immediate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple, NoReturn, Protocol, Self

from lols.contract.threads import Threads
from lols.errors import ConfigurationError
from lols.tasks.options import option

if TYPE_CHECKING:
    from rich.console import Console

    from lols.tasks.case import Case


class Unit(NamedTuple):
    """What data are counted in."""

    name: str
    speed: str  # the key under which the speed is reported
    loss: str  # the heading of the losses


TOKENS = Unit("tokens", "tokens_per_second", "loss per sentence")
ROWS = Unit("rows", "examples_per_second", "cost per row")
EXAMPLES = Unit("examples", "examples_per_second", "loss per example")

Say = Callable[[str], None]  # is given remarks for the user


def silent(line: str) -> None:
    """Say nothing."""


@dataclasses.dataclass(frozen=True)
class FileLayout:
    """Where things are in a file: the base of the dataclasses that say so for each task."""

    def changed(self, **given: Any) -> Self:
        """The same layout, but for what is given."""
        return dataclasses.replace(self, **given)


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """The options of a verb that has none."""


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


class FileVerbs:
    """The verbs, as estimators inherit them; each of them says what it needs in its own folder."""

    VERBS: ClassVar[Verbs]
    path_: Any = None  # the model file that it was read from

    @property
    def named(self) -> str:
        """What reports call the model: its file, if it was read from one."""
        return str(self.path_ or f"this {self.VERBS.name}")

    @property
    def file_columns(self) -> Any:
        """Where things are in files like those of training."""
        raise NotImplementedError

    def asked(self, verb: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Split the options of a verb: where things are in the file, as in training unless given, and the others."""
        names = {each.name for each in dataclasses.fields(self.VERBS.files)}
        files = {name: value for name, value in given.items() if name in names}
        rest = {name: value for name, value in given.items() if name not in names}
        return self.file_columns.changed(**files), self.VERBS.options_of(verb)(**rest)

    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a file with predictions to `out`, and return facts about it.

        `output` is what `out` is called, and `say` is given remarks for the user.
        """
        raise NotImplementedError

    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a labelled file."""
        raise NotImplementedError

    def calibrate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Recalibration:
        """Fit confidence to a labelled file that training did not see: a sample of the data that are to come."""
        raise NotImplementedError

    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how one example of a file, counted from 1, is decided."""
        self.refuse("there is no single search to explain")

    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate: inputs and truths, as for `fit`, of which at most `limit` are drawn."""
        self.refuse("certify one policy at a time, such as a tagger's or a parser's")

    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled file."""
        self.refuse("certify one policy at a time, such as a tagger's or a parser's")

    def prepare(self) -> None:
        """Compile what prediction needs, or load it from the cache, by predicting something tiny."""

    def rehearse(self) -> None:
        """Compile what training and prediction with these options need, by doing both with something tiny."""

    def refuse(self, why: str) -> NoReturn:
        """Say that this estimator cannot do something."""
        what = type(self).__name__ if self.path_ is None else f"{self.path_} is {self.VERBS.described}"
        raise ConfigurationError(f"{what}: {why}")


def some_of(names: Iterable[str], most: int) -> str:
    """Some names, and how many more there are.

    >>> some_of("abcd", 2)
    'a, b and 2 more'
    """
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
