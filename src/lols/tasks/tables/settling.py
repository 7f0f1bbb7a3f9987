"""Settings that were left open: for a small table they are chosen by what predictions cost on rows held out.

The work is bounded by the size of the table, never by the clock, so that the same seed gives the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lols.tasks.tables.rows import Rows
from lols.tasks.tables.targets import Targets
from lols.tasks.tables.trials import KeptTrials, Settings, Trial

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
    estimator: Any,
    targets: Targets,
    cells: int,
    numbers: int,
    encode: Callable[[Settings], tuple[Any, Rows]],
    *,
    checkpoint: Any = None,
    resume: bool = False,
) -> tuple[Settings, list[Trial]]:
    """All settings, and the trials by which those that were left open were chosen.

    `cells` and `numbers` say how many cells and columns of numbers there are; `encode` makes encoder and rows. Trials
    that are done are kept beside the checkpoint, and not repeated when a training is resumed.
    """
    given = fixed(estimator)
    if cells > MOST_CELLS or not _is_open(given):
        return LARGE | given, []
    start = SMALL | {"tree": None if len(targets.classes) <= MOST_CLASSES else "order"} | given
    if targets.cheapest.size < FEWEST_ROWS:
        return start, []
    best: Trial | None = None
    kept = KeptTrials(checkpoint, resume=bool(resume))
    trials: list[Trial] = []
    folds = list(_folds(targets, estimator.seed))
    for options in _stages(estimator, given, targets, numbers):
        for option in options:
            settings = (start if best is None else best.settings) | option
            if any(trial.settings == settings for trial in trials):
                continue
            encoder, rows = encode(settings)
            key = kept.key(estimator, settings, rows, targets)
            costs = kept.find(key) or _try(estimator, settings, encoder, rows, targets, folds)
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
    encoder: Any,
    rows: Rows,
    targets: Targets,
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
        made = settled(estimator, {"chosen_": settings | {"passes": most}, "batch_size": size})
        some = targets.take(learned)
        task = made.make_task(encoder, rows.take(learned), some)
        test = task.examples(rows.take(held), targets.take(held))

        def note(number: int, model: Any, test: Any = test) -> None:
            if number + 1 in sums:
                sums[number + 1] += model.evaluate(test) * len(test)

        made._trainer(task).fit(task.examples(rows.take(learned), some), progress=False, after_pass=note)
    count = sum(held.size for _, held in folds)
    return {passes: cost / count for passes, cost in sums.items()}
