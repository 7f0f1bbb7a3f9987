"""The options of a classifier: those of the class, and those of training on files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from lols.errors import ConfigurationError
from lols.io.costs import read_cost_matrix, read_label_map
from lols.tasks.estimator import Estimator
from lols.tasks.options import INPUT, LEARNING, SEARCH, estimator, option, shared, values_of
from lols.tasks.tables.tree_of_labels import tree_of
from lols.tasks.tables.weights import weights_of
from lols.training.algorithms import Algorithm

MEMORY = 1 << 30  # bytes of cells that are held
MOST_BYTES = 1 << 60  # as good as no limit
SIZES = {"": 1, "b": 1}
SIZES |= {f"{name}b": 1000**k for k, name in enumerate("kmgt", 1)}
SIZES |= {f"{name}ib": 1024**k for k, name in enumerate("kmgt", 1)}


def pair_of(text: str) -> tuple[str, str]:
    """The two columns of an interaction.

    >>> pair_of("service * flag")
    ('service', 'flag')
    """
    first, star, second = (part.strip() for part in text.partition("*"))
    if not (first and star and second):
        raise ConfigurationError(f"--interaction is '{text}': name two columns, as A*B")
    return first, second


def size_of(text: str) -> int:
    """A number of bytes as people write it.

    >>> size_of("512MB"), size_of("2 GiB"), size_of("1.5k")
    (512000000, 2147483648, 1500)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", text.lower())
    unit = match and next((unit for unit in (match[2], match[2] + "b") if unit in SIZES), None)
    if match is None or unit is None:
        raise ConfigurationError(f"--memory is '{text}': give a number of bytes, such as 512MB or 2GB")
    return int(min(float(match[1]) * SIZES[unit], float(MOST_BYTES)))


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


@estimator
class ClassifierOptions(Estimator):
    """What a classifier can be told."""

    OF_DATA = (
        "tree",
        "classes",
        "cost_matrix",
        "label_map",
        "categorical",
        "numerical",
        "text",
        "ignore",
        "interactions",
        "missing",
        "class_weight",
    )

    algorithm: str | Algorithm = shared(Estimator, "algorithm", default="auto")
    batch_size: int | None = option(
        default=None,
        help="How many rows are classified with the same policy before it learns from them; by default a "
        "hundredth of all, at most 4096.",
        panel=LEARNING,
    )
    calibrate: bool | None = shared(
        Estimator,
        "calibrate",
        default=None,
        help="Whether probabilities are fitted: to the dev data where there are any; else to rows that are held out of "
        "a shorter training (None), or of trainings like the first, which take longer and are more exact (True). "
        "False: never. The weights do not depend on it.",
        typed="Fit probabilities: to the dev data if there are any, else by a second training without a part of the "
        "data. By default by a shorter one. The weights do not depend on it.",
    )
    passes: Any = option(
        default=None,
        help="Passes over the training data; by default 5, for small tables chosen on rows held out.",
        panel=LEARNING,
        kind=int | None,
        common=True,
    )
    tree: Any = option(
        default="auto",
        help="How the classes are split, again and again: order, in half in their order, as in the paper; "
        "frequency, so that both sides are equally frequent; similarity, in half by where their rows lie; "
        "nested lists of classes; None for one decision among all classes; or auto: order, for small tables chosen on "
        "rows held out.",
        panel=SEARCH,
        typed="How the classes are split, again and again: order, in half in their order; frequency, so that both "
        "sides are equally frequent; similarity, by where their rows lie; flat: one decision among all classes; or "
        "auto: order, for small tables chosen on rows held out.",
        kind=str,
        parse=tree_of,
    )
    classes: Sequence[Any] | None = option(
        default=None, help="The classes in their order; by default those of `y`, sorted.", cli=False
    )
    cost_matrix: Any = option(
        default=None,
        help="What it costs to predict the class of a column where that of the row is true, in the order of "
        "the classes; by default every mistake costs 1.",
        panel=INPUT,
        typed="What mistakes cost: a CSV file whose first line names the classes, then a row for each true class with "
        "the cost of predicting each; or kdd99. By default every mistake costs 1.",
        kind=str | None,
        parse=read_cost_matrix,
        common=True,
    )
    class_weight: Any = option(
        default=None,
        help="What costs are multiplied by where a class is true: a dictionary, 1 for classes that are not in it; or "
        "balanced, so that all classes weigh the same.",
        panel=INPUT,
        typed="What costs are multiplied by where a class is true: CLASS=WEIGHT,CLASS=WEIGHT; or balanced, so that all "
        "classes weigh the same.",
        kind=str | None,
        parse=weights_of,
    )
    label_map: Mapping[str, str] | None = option(
        default=None,
        help="The class of each label, where labels are finer than classes.",
        panel=INPUT,
        typed="The class of each label, where labels are finer than classes: a CSV file with name,class in each line, "
        "or kdd99.",
        kind=str | None,
        parse=read_label_map,
    )
    categorical: Sequence[str] | None = option(
        default=None,
        help="Columns that hold categories although they look like numbers.",
        panel=INPUT,
        kind=list[str] | None,
    )
    numerical: Sequence[str] | None = option(
        default=None, help="Columns that must hold numbers.", panel=INPUT, kind=list[str] | None
    )
    text: Sequence[str] | None = option(
        default=None,
        help="Columns of texts, whose words are features.",
        panel=INPUT,
        kind=list[str] | None,
    )
    ignore: Sequence[str] | None = option(
        default=None, help="Columns that are not used.", panel=INPUT, kind=list[str] | None
    )
    numeric: str = option(
        default="auto",
        help="What the features of a number are: the bin that it falls into (bins), its scaled value (scaled), "
        "both, or its place between the edges of bins (curve); or auto: bins, for small tables chosen on rows held "
        "out.",
        panel=INPUT,
    )
    bins: int | None = option(
        default=None,
        help="About how many bins a column of numbers has; by default 4 to 64, depending on the number of rows.",
        panel=INPUT,
    )
    interactions: Sequence[tuple[str, str]] = option(
        default=(),
        help="Pairs of columns whose values together are features as well.",
        panel=INPUT,
        typed="Two columns A*B whose values together are features as well; may be repeated.",
        flag="--interaction",
        kind=list[str] | None,
        initial=None,
        parse=lambda pairs: [pair_of(text) for text in pairs],
    )
    missing: Sequence[str] | None = option(
        default=None,
        help="Texts that mean a missing value, besides the empty text; by default NA, N/A, n/a, #N/A, <NA>, NaN, "
        "nan, NaT, null, NULL, None and ?.",
        panel=INPUT,
        kind=list[str] | None,
        parse=lambda texts: ["", *texts],
    )
    skill: float = option(default=0.5, help="How often the suboptimal reference goes to the best child.", panel=SEARCH)
    margin: str = option(default="weighted", help="The margin of the hinge: weighted, cost or unit.", panel=LEARNING)

    @classmethod
    def from_typed(cls, typed: Mapping[str, Any]) -> Self:
        """The classifier with the options that were typed; a cost matrix in a file names the classes as well."""
        values = values_of(cls, typed)
        if "cost_matrix" in values:
            values["classes"], values["cost_matrix"] = values["cost_matrix"]
        return cls(**values)

    def _margin(self, problem: Any) -> str:
        return self.margin

    def _without_effect(self, chosen: Algorithm) -> Iterator[tuple[str, str]]:
        if self.learner != "hinge":
            yield "margin", f"{self.learner} has no margin, only the hinge has"
        yield from super()._without_effect(chosen)
        if self.reference != "suboptimal":
            yield "skill", f"it is that of the suboptimal reference, and the reference is {self.reference}"
        if self.numeric == "scaled" and not self.interactions:
            yield "bins", "numbers are scaled, not binned"
        if self.margin == "unit" and self.learner == "hinge":
            yield "class_weight", "a margin of unit depends on which class costs least, not on how much"
