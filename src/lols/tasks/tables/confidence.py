"""Probabilities of classes: a softmax of predicted costs, calibrated on rows that training did not see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.engines import ExampleFiles
from lols.tasks.estimator import FOLDS, MANY, PARTS, Judges, SecondTraining
from lols.tasks.tables.model import StoredClassifier
from lols.tasks.tables.predicting import drawn_rows
from lols.tasks.tables.reading import costs_or_labels
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.settling import BATCHES, TRIAL_PARTS, passes_in, settled
from lols.tasks.tables.targets import Targets
from lols.tasks.tables.task import ClassificationTask
from lols.tasks.tables.trials import Trial
from lols.training.algorithms import algorithm
from lols.training.calibration import Judged, check_enough, most_judged, not_calibrated
from lols.training.confidence import StepScores
from lols.training.model import Model
from lols.training.sources import InPieces

SHARE = 0.15  # of the work of `fit` that a calibration by default may add
TOGETHER = 1 << 15  # rows whose costs are computed at a time


class ProbableClassifier(StoredClassifier):
    """A classifier that knows how sure it is."""

    batch_size_: int
    _trials: list[Trial]

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """`predict_proba(X)`: the probability of each class, `[row, class]` in the order of `classes_`.

        There is none with `calibrate=False`, and after `partial_fit`, unless the classifier was calibrated later. Where
        mistakes cost the same, the class of the highest probability is the one that `predict` gives; otherwise a less
        likely class may cost less.
        """
        if self.__sklearn_is_fitted__():
            calibrated = self._fitted.calibration is not None
        else:
            calibrated = self.calibrate is not False
        if not calibrated:
            raise AttributeError(str(not_calibrated(self.named)))
        return self._probabilities

    @on_snapshot
    def _probabilities(self, X: Any) -> np.ndarray:
        self._check_fitted()
        return self.probabilities_of(self._rows(X))[1]

    @on_snapshot
    def probabilities_of(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the classes that are predicted for encoded rows, and the probabilities of all classes."""
        calibration, made, numbers = self.calibrated(), [], []
        for low in range(0, max(rows.rows, 1), TOGETHER):
            examples = self.task_.examples(rows.cut(low, low + TOGETHER))
            if len(examples):
                numbers.append(self.task_.labels_of(self._fitted.run(examples).states))
                costs = self.task_.costs_of(self._fitted.policy, examples)
                made.append(calibration.probabilities(costs, numbers[-1]))
        if not made:
            return np.zeros(0, np.int64), np.zeros((0, len(self.task_.classes)))
        return np.concatenate(numbers), np.concatenate(made)

    @on_snapshot
    def confident_rows(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the classes that are predicted for encoded rows, and how likely they are to be right."""
        numbers, made = self.probabilities_of(rows)
        return numbers, made[np.arange(numbers.size), numbers]

    def _short_training(self, examples: Examples) -> SecondTraining | None:
        """What is held out of a training that takes little of the time of `fit`, trials included.

        With many rows a tenth is held out, else each fifth in turn, or as many of them as there is time for. If not
        even one training of all passes can be had, it has fewer passes and rows, and its last policy is judged: the
        average of a short training lags behind.
        """
        count, passes = len(examples), int(self.chosen_["passes"])
        if count < 2 or isinstance(examples, ExampleFiles | InPieces):
            return None
        parts, most = (min(FOLDS, count), FOLDS) if count < MANY else (PARTS, 1)
        learned, trials = count - count // parts, passes_in(self._trials, count)
        own: dict[str, Any] = {"engine": None}
        small = count < MANY and self.batch_size is None
        if small:  # the time goes into batches, so they are as large as in trials
            own["batch_size_"] = max(1, learned // BATCHES)
            room = SHARE * (passes * count / self.batch_size_ / BATCHES + trials)
        else:
            room = SHARE * (passes + trials * (1.0 - 1.0 / TRIAL_PARTS)) * count / learned
        if room >= passes:
            return SecondTraining(parts, min(parts, most, int(room / passes)), settled(self, own), learned)
        own["chosen_"] = self.chosen_ | {"passes": max(1, int(room))}
        chosen = algorithm(self._algorithm())
        if not chosen.restart:
            own["algorithm"] = algorithm(chosen, returned="last")
        return SecondTraining(parts, 1, settled(self, own), learned if small else round(min(1.0, room) * learned))

    @exclusive
    def calibrate_with(self, X: Any, y: Any, costs: Any = None) -> Self:  # type: ignore[override]
        """Fit probabilities to labelled rows that training did not see; returns the classifier itself.

        Parameters
        ----------
        X
            The rows.
        y
            Their classes.
        costs
            The costs of all classes for each row, `[row, class]`, in place of classes.

        """
        rows = self._rows(X)
        known = Targets(self.task_.classes, None, self.task_.matrix, None)
        self._recalibrate(self._judged_on(rows, self._targets(rows.rows, y, costs, known)))
        return self

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which classes of a labelled table are right; of a large one, as many rows are held as are needed."""
        layout, _ = self.asked("calibrate", options)
        source, most = self.open_file(path, layout), most_judged(len(self.task_.classes))
        if options.get("cost_columns") is None:
            layout = costs_or_labels(source, layout)
        rows, targets, _ = drawn_rows(self, source, layout, most, self.seed)
        return self._judged_on(rows, targets)

    def _judged_on(self, rows: Rows, targets: Targets) -> dict[str, Judged]:
        check_enough(rows.rows)
        before = self._fitted.calibration
        learned_costs = self.file_columns.cost_columns is not None or (before is not None and before.bias.size > 0)
        return {"classes": _judged(self.task_, self._fitted, rows, targets, graded=learned_costs)}

    @on_snapshot
    def scores(self, X: Any) -> list[StepScores]:
        """All children at all nodes on the way to the predicted class, and what they seem to cost.

        Probabilities are those of classes: see `predict_proba`.

        Parameters
        ----------
        X
            The rows.

        """
        rows = self._rows(X)
        plain = self._fitted.replaced(calibration=None)
        return plain.scores(self.task_.examples(rows)) if rows.rows else []


def judges_of(task: ClassificationTask, targets: Targets, dev: tuple[Rows, Targets] | None) -> Judges:
    """Who says which classes are right, for the training of a classifier."""

    def part(model: Model, examples: Examples, chosen: np.ndarray) -> Judged:
        return _judged_examples(task, model, examples, targets, chosen)

    return Judges(part, None if dev is None else (lambda model: _judged(task, model, *dev)))


def _judged(task: ClassificationTask, model: Model, rows: Rows, targets: Targets, *, graded: bool = False) -> Judged:
    return _judged_examples(task, model, task.examples(rows), targets, np.arange(rows.rows), graded=graded)


def _judged_examples(
    task: ClassificationTask,
    model: Model,
    examples: Examples,
    targets: Targets,
    chosen: np.ndarray,
    *,
    graded: bool = False,
) -> Judged:
    """Which classes of some rows a model finds; `chosen` are their numbers among the targets.

    `graded` says that the model has learned from costs of rows, even if the targets have none.
    """
    most = most_judged(len(task.classes))
    if chosen.size > most:
        few = np.linspace(0, chosen.size - 1, most).astype(np.int64)
        examples, chosen = some(examples, few), chosen[few]
    true, taken = targets.cheapest[chosen], task.labels_of(model.run(examples).states)
    graded = graded or targets.matrix is not None or targets.vectors is not None
    return Judged(task.costs_of(model.policy, examples), taken, taken == true, true if graded else None)
