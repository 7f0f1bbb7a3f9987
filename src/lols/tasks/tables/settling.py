"""Settings that were left open: for a small table they are chosen by what predictions cost on rows held out.

The work is bounded by the size of the table, never by the clock, so that the same seed gives the same model. Trials
that are done are kept in a file beside the checkpoint: a training that was killed does not repeat them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.best_pass import trials_beside
from lols.tasks.tables.data import EncodedTable, TableData
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.targets import Targets

Settings = dict[str, Any]

# What is used where nothing is given, and the table is too large to choose.
LARGE: Settings = {"numeric": "bins", "bins": None, "tree": "order", "rate": None, "passes": 5}
SMALL: Settings = {"numeric": "curve", "bins": 8, "tree": None, "rate": None, "passes": 10}
MOST_CELLS = 1_000_000  # of a table that is small
FEWEST_ROWS = 40  # that some are held out of
MOST_CLASSES = 64  # for which one decision among all is tried
PASSES = (5, 10)  # after which models are compared
TRIAL_PARTS = 4  # of which one is held out
HELD_OUT = 1500  # rows, if there are that many: in several parts if need be
BATCHES = 20  # of a pass
SLOW = 0.05  # the other rate


class Trial(NamedTuple):
    """Settings, and what the predictions of a model trained with them cost on rows held out, by passes."""

    settings: Settings
    costs: dict[int, float]

    @property
    def cost(self) -> float:
        """The least cost."""
        return min(self.costs.values())

    @property
    def passes(self) -> int:
        """The fewest passes with the least cost."""
        return min(self.costs, key=lambda passes: (self.costs[passes], passes))

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return self.settings | {"passes": self.passes, "cost": self.cost}


class KeptTrials:
    """What trials cost, by a digest of all that they depend on; in a file beside the checkpoint, if there is one."""

    def __init__(self, checkpoint: str | os.PathLike[str] | None, *, resume: bool = False):
        self.path = None if checkpoint is None else trials_beside(checkpoint)
        self.costs: dict[str, dict[str, float]] = {}
        if self.path is not None and resume and Path(self.path).exists():
            costs = read_tensors(self.path, "trials")[0].get("costs")
            if not isinstance(costs, dict) or not all(_are_costs(each) for each in costs.values()):
                raise ModelFileError(f"{self.path}: damaged; delete it, and resume again")
            self.costs = costs

    def key(self, estimator: Any, settings: Settings, rows: Rows, targets: Targets) -> str | None:
        """What a trial is found by; None where nothing is kept."""
        if self.path is None:
            return None
        given = [estimator._options(), settings, [str(name) for name in targets.classes]]
        made = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode())
        for array in (*rows, targets.labels, targets.matrix, targets.vectors, targets.weights):
            made.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        return made.hexdigest()

    def find(self, key: str | None) -> dict[int, float] | None:
        """What a trial cost, by passes, if it is done."""
        return {int(passes): cost for passes, cost in self.costs[key].items()} if key in self.costs else None

    def keep(self, key: str | None, costs: dict[int, float]) -> None:
        """Write down what a trial cost."""
        if self.path is not None and key is not None and key not in self.costs:
            self.costs[key] = {str(passes): cost for passes, cost in costs.items()}
            write_tensors(self.path, "trials", {"costs": self.costs}, {})


def _are_costs(given: Any) -> bool:
    """Whether these are costs by numbers of passes."""
    return (
        isinstance(given, dict)
        and len(given) > 0
        and all(passes.isdecimal() and len(passes) < 8 for passes in given)
        and all(isinstance(cost, float) and np.isfinite(cost) for cost in given.values())
    )


# --- settings ---


def fixed(estimator: Any) -> Settings:
    """The settings that were given."""
    given = {name: getattr(estimator, name) for name in LARGE}
    return {name: value for name, value in given.items() if not ((value is None and name != "tree") or value == "auto")}


def settled(estimator: Any, settings: Settings) -> Any:
    """The estimator with its settings in place of those that were left open; what it has learned is shared."""
    made: Any = object.__new__(type(estimator))
    vars(made).update(vars(estimator) | settings)
    return made


def settle(
    estimator: Any, data: TableData, *, checkpoint: Any = None, resume: bool = False
) -> tuple[Settings, list[Trial]]:
    """All settings, and the trials by which those that were left open were chosen.

    Trials that are done are kept beside the checkpoint, and not repeated when a training is resumed.
    """
    given, targets = fixed(estimator), data.targets
    if not _is_open(given) or data.cells > MOST_CELLS:
        return LARGE | given, []
    start = SMALL | {"tree": None if len(targets.classes) <= MOST_CLASSES else "order"} | given
    if targets.cheapest.size < FEWEST_ROWS:
        return start, []
    best: Trial | None = None
    kept = KeptTrials(checkpoint, resume=bool(resume))
    trials: list[Trial] = []
    folds = list(_folds(targets, estimator.seed))
    for options in _stages(estimator, given, targets, data.numbers):
        for option in options:
            settings = (start if best is None else best.settings) | option
            if any(trial.settings == settings for trial in trials):
                continue
            encoder = data.encoder(settings)
            rows = data.encode(encoder)
            key = kept.key(estimator, settings, rows, targets)
            costs = kept.find(key) or _try(estimator, settings, EncodedTable(encoder, rows, targets), folds)
            kept.keep(key, costs)
            trials.append(Trial(settings, costs))
            if best is None or trials[-1].cost < best.cost:
                best = trials[-1]
    if best is None:
        return start, []
    return best.settings | ({} if "passes" in given else {"passes": best.passes}), trials


def passes_in(trials: Sequence[Trial], rows: int) -> int:
    """How many passes the trials come to."""
    return _folds_of(rows) * sum(max(trial.costs) for trial in trials)


def _is_open(given: Settings) -> bool:
    """Whether something is to be chosen; bins and rate alone are not."""
    return not {"numeric", "tree", "passes"} <= given.keys()


def _stages(estimator: Any, given: Settings, targets: Targets, numbers: int) -> Iterator[Sequence[Settings]]:
    """Lists of settings to try one after the other, each with the best of those before it."""
    if "numeric" not in given and numbers:
        curves = [{"bins": given["bins"]}] if "bins" in given else [{"bins": bins} for bins in (8, 4, 16)]
        plain = {"bins": given.get("bins")}
        yield [{"numeric": "curve"} | each for each in curves]
        yield [{"numeric": name} | plain for name in ("both", "scaled", "bins")]
    else:
        yield [{}]
    if "tree" not in given and 2 < len(targets.classes) <= MOST_CLASSES:
        yield [{"tree": "order"}, {"tree": "similarity"}]
    margins = estimator.learner == "hinge" and estimator.update in (None, "adagrad")
    if not {"rate", "passes"} & given.keys() and margins:
        yield [{"rate": SLOW}]


def _folds_of(rows: int) -> int:
    """How many parts are held out in turn."""
    return min(TRIAL_PARTS, -(-HELD_OUT * TRIAL_PARTS // rows))


def _folds(targets: Targets, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows held out, with about the same share of each class."""
    rows = targets.cheapest.size
    mixed = np.random.default_rng(seed).permutation(rows)
    part = np.empty(rows, np.int64)
    part[mixed[np.argsort(targets.cheapest[mixed], kind="stable")]] = np.arange(rows) % TRIAL_PARTS
    for k in range(_folds_of(rows)):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)


def _try(
    estimator: Any,
    settings: Settings,
    whole: EncodedTable,
    folds: Sequence[tuple[np.ndarray, np.ndarray]],
) -> dict[int, float]:
    """Learn from some rows, and predict the others: what that costs, by passes."""
    most = settings["passes"] if "passes" in fixed(estimator) else PASSES[-1]
    after = [passes for passes in PASSES if passes < most] + [most]
    if "passes" in fixed(estimator):
        after = [most]
    sums = dict.fromkeys(after, 0.0)
    for learned, held in folds:
        size = max(1, learned.size // BATCHES) if estimator.batch_size is None else estimator.batch_size
        made = settled(estimator, {"chosen_": settings | {"passes": most}, "batch_size_": size})
        some = whole.take(learned)
        task = made.PROBLEM.propose(some, made)
        test = task.examples_of(whole.take(held))

        def note(number: int, model: Any, test: Any = test) -> None:
            if number + 1 in sums:
                sums[number + 1] += model.evaluate(test) * len(test)

        made._trainer(task).fit(task.examples_of(some), progress=False, after_pass=note)
    count = sum(held.size for _, held in folds)
    return {passes: cost / count for passes, cost in sums.items()}
