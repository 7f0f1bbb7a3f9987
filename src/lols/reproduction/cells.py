"""One cell of a table: train with a strategy, teacher, learner and seed, and score every pass on the test part."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from lols.reproduction.data import DataPlace
from lols.reproduction.plan import Cell, options_of
from lols.tasks.registry import estimator

# By task: the estimator and its options. All actions are rolled out, as in Algorithm 1; the estimators' default prunes
# under the optimal teacher only, so that teachers could not be compared.
TRAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "tagging": ("tagger", {"prune": None}),
    "parsing": ("parser", {"prune": None, "labelling": "none"}),
    "classification": ("classifier", {"numeric": "bins", "tree": "order"}),
}
COSTS = {"cost_matrix": "kdd99", "label_map": "kdd99"}  # of classification, as they are typed on a command line


class Run(NamedTuple):
    """What came of a cell: the score after each pass, of which the last counts, and how long it took."""

    values: list[float]
    seconds: float
    items: int  # words or rows tested on
    most: float  # the most that one of them can cost


def measure(cell: Cell, place: DataPlace) -> Run:
    """Train and score. The test part only scores: the policy of the last pass counts, whatever the others reach."""
    began, printed = time.perf_counter(), place.spec.printed
    history = trained(cell, place).model_.report["dev"]
    values = [float(entry[printed.metric]) for entry in history]
    return Run(values, time.perf_counter() - began, place.spec.tested, printed.most)


def trained(cell: Cell, place: DataPlace) -> Any:
    """The estimator of a cell, trained on the files of its table."""
    name, options = TRAINED[place.spec.printed.task]
    options = options | options_of(cell.row) | {"reference": cell.teacher, "learner": cell.learner, "seed": cell.seed}
    options |= {"passes": place.spec.passes, "threads": 1, "calibrate": False, "progress": False}  # cells run together
    layout = {"label": place.label, "use": {}} if name == "tagger" else {}
    made = estimator(name).from_typed(COSTS).set_params(**options)
    return made.fit_files(place.train, dev=place.test, **layout)
