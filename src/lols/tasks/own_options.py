"""What the command line knows of models of the user's own tasks: the options of their verbs."""

from __future__ import annotations

from dataclasses import dataclass

from lols.tasks.options import option
from lols.tasks.verbs import NoOptions, PageOptions, PredictOptions, Verbs


class OwnVerbs(Verbs):
    """The verbs of a task that has no name of its own on the command line."""

    @property
    def described(self) -> str:
        """What messages say that a model is."""
        return "of a task of your own"


@dataclass(frozen=True, kw_only=True)
class OwnSearch:
    """How results are searched for."""

    best_of: int = option(
        default=1,
        help="How many samples of the policy are compared for each example, if the loss needs no labels; the best one "
        "counts.",
    )
    beam: int = option(
        default=1, help="How many paths are followed at once, if the loss needs no labels; the best one counts."
    )


@dataclass(frozen=True, kw_only=True)
class OwnEvaluate(OwnSearch, NoOptions):
    """How results are searched for, to be evaluated."""


@dataclass(frozen=True, kw_only=True)
class OwnPredict(OwnSearch, PredictOptions):
    """How results are searched for, and what is written of them."""


VERBS = OwnVerbs(
    "task",
    "examples",
    "A JSON value in each line, as the task encodes it, or what read_line(line) of its file makes of a line.",
    options={"predict": OwnPredict, "evaluate": OwnEvaluate, "explain": PageOptions},
)
