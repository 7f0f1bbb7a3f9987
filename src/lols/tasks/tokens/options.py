"""Options that taggers, parsers and pipelines share."""

from __future__ import annotations

from dataclasses import dataclass

from lols.errors import ConfigurationError
from lols.tasks.options import option

__all__ = ["FILE", "ExplainOptions", "PlotOptions"]

FILE = "One token per line: CoNLL-U, CoNLL-X, plain columns or TSV; .gz, .xz and .bz2 are read directly."


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """What is drawn of an evaluation."""

    plot: str | None = option(
        default=None,
        help="Draw how often predictions are right, by confidence, as .png, .svg or .pdf; the model must be "
        "calibrated.",
    )


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
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
    html: str | None = option(default=None, help="Draw it as a page, and write that to this file.")

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigurationError(f"--top is {self.top}: give at least 1")
