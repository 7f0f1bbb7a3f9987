"""The classifier: tables in, decisions out, at the least cost, with scikit-learn's habits."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads
from lols.engines import ExampleFiles
from lols.errors import ConfigurationError, LolsError
from lols.io.costs import read_cost_matrix, read_label_map
from lols.tasks.base import Variants, as_paths
from lols.tasks.case import Case, pair_of
from lols.tasks.estimator import FOLDS, MANY, PARTS, Estimator, SecondTraining
from lols.tasks.options import INPUT, LEARNING, SEARCH, estimator, is_plain, option, shared, values_of
from lols.tasks.tables.data import GivenTable, TableData, TableOptions
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.files import TableFormat
from lols.tasks.tables.importances import importances_of
from lols.tasks.tables.input import column_names, table_of
from lols.tasks.tables.options import (
    VERBS,
    ClassifierInspectOptions,
    TableFiles,
    TableTraining,
    columns_of,
)
from lols.tasks.tables.predicting import drawn_rows, evaluate_files, predict_batches, table_encoder
from lols.tasks.tables.reading import check_columns, costs_or_labels, open_files
from lols.tasks.tables.rows import NO_ROWS, Rows, some_rows
from lols.tasks.tables.scores import ClassifierScores, ClassScores, score_classes, unknown_text
from lols.tasks.tables.settling import (
    BATCHES,
    LARGE,
    TRIAL_PARTS,
    Settings,
    Trial,
    fixed,
    passes_in,
    settle,
    settled,
)
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.targets import Targets, targets_of
from lols.tasks.tables.task import TOGETHER, ClassificationTask
from lols.tasks.tables.tree_of_labels import tree_of
from lols.tasks.tables.validation import installed
from lols.tasks.tables.weights import class_weights, product, row_weights, weights_of
from lols.tasks.verbs import Evaluation, Say, VerbReport, silent
from lols.training.algorithms import Algorithm, algorithm
from lols.training.calibration import Judged, check_enough, most_judged, not_calibrated
from lols.training.clock import Clock
from lols.training.confidence import StepScores
from lols.training.sources import InPieces
from lols.training.trainer import Trainer

if TYPE_CHECKING:
    from lols.io.tables import TableSource

MOST_TOGETHER = 1 << 12  # rows of a batch
MOST_IGNORED = 1 << 16  # columns without a name that are not used
SHARE = 0.15  # of the work of `fit` that a calibration by default may add
PREDICTION = "prediction"  # the name of a new column, where training had no name for it
THREE_ROWS = "a,b,c\n1,x,no\n2,y,yes\n3,x,yes\n"


@estimator
class CostSensitiveClassifier(Estimator):
    """A classifier that walks down a tree of classes to the one that costs least, trained by learning to search.

    `X` is a data frame (pandas, polars, Arrow), an array, lists, dictionaries or a sparse matrix. Columns of texts are
    categories, as are Booleans; all others are numbers. Both may have missing values.

    Examples
    --------
    >>> from lols import CostSensitiveClassifier
    >>> X = [[age, colour] for age in range(20, 60) for colour in ("red", "blue")]
    >>> y = ["no" if age < 40 else "yes" if colour == "red" else "ask" for age, colour in X]
    >>> model = CostSensitiveClassifier(passes=10).fit(X, y)
    >>> model.predict([[30, "red"], [50, "red"], [55, "blue"]]).tolist()
    ['no', 'yes', 'ask']

    Where nobody can know, costs decide: to say "ask" for nothing costs 1, to miss it costs 5.

    >>> X, y = [[1]] * 100, (["no"] * 7 + ["ask"] * 3) * 10
    >>> CostSensitiveClassifier().fit(X, y).predict([[1]]).tolist()
    ['no']
    >>> costs = [[0, 5], [1, 0]]  # a row for each true class: ask, no
    >>> CostSensitiveClassifier(cost_matrix=costs).fit(X, y).predict([[1]]).tolist()
    ['ask']

    """

    _estimator_type = "classifier"  # what older versions of scikit-learn ask for
    HELP = """Train a cost-sensitive classifier on tables, and write a model file.

    It walks down a tree of the classes to the one that costs least. Columns of numbers and of categories are told apart
    automatically; both may have missing values.

    `lols train classifier kdd.csv --label-map kdd99 --cost-matrix kdd99 -o kdd.lols`
    """
    DEV = "A labelled table on which the best pass is chosen."
    TRAINING = TableTraining
    WARMUP_ALL: ClassVar[Variants] = {"the paper's learner (csoaa)": {"learner": "csoaa"}}
    VERBS = VERBS
    PROBLEM = ClassificationTask
    STORED = ("files", "options", "label_map")
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
        parse=lambda pairs: [columns_of(text) for text in pairs],
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

    task_: ClassificationTask = field(init=False)
    chosen_: Settings = field(init=False)
    batch_size_: int = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: Any = field(init=False)
    _trials: Sequence[Trial] = field(init=False, default=())
    _seen: Rows | None = field(init=False, default=NO_ROWS)  # some of training, for importances
    _importances: np.ndarray | None = field(init=False, default=None)

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

    # --- data ---

    def _data(self, X: Any, y: Any = None) -> GivenTable:
        self._check_fitted()
        return self._given(X, self.task_.known) if y is None else self._labelled_table(X, y)

    def _labelled_table(self, X: Any, y: Any, costs: Any = None) -> GivenTable:
        """Labelled rows of the classes that are known."""
        self._check_fitted()
        return self._given(X, self.task_.known, y, costs, labelled=True)

    def _certified(self, data: Any) -> GivenTable:
        return self._labelled_table(*pair_of(data))

    def _given(
        self,
        X: Any,
        known: Targets | None,
        y: Any = None,
        costs: Any = None,
        *,
        labelled: bool = False,
        reset: bool = False,
        sample_weight: Any = None,
        grows: bool = False,
    ) -> GivenTable:
        """A table, and what is right for its rows; `known` are classes and costs, and `reset` those of the columns."""
        table = table_of(self, X, reset=reset)
        targets = known
        if labelled:
            matrix = self.cost_matrix if known is None or known.matrix is None else known.matrix
            classes = self.classes if known is None else known.classes
            how: Any = {"label_map": self.label_map, "grows": grows}
            targets = targets_of(table.rows, y, costs, classes=classes, matrix=matrix, **how)
            weights = product(targets.weights, row_weights(sample_weight, table.rows))
            by_class = class_weights(self.class_weight, targets.classes, targets.counts())
            if weights is not None and self.margin == "unit" and self.learner == "hinge":
                raise ConfigurationError("weights of rows have no effect with margin unit: choose weighted or cost")
            by_row = None if by_class is None else by_class[targets.cheapest]
            targets = targets._replace(weights=product(weights, by_row))
        assert targets is not None
        return GivenTable(TableOptions.of(self), table, column_names(self), targets)

    def _rows(self, X: Any) -> Rows:
        """The rows of a table that is predicted."""
        data = self._data(X)
        return self.task_.to_predict(data)

    def _format(self, layout: TableFiles, **training: Any) -> Any:
        asked = TableTraining(**training)
        return TableFormat(layout, TableOptions.of(self), asked.memory, asked.weight, self._before)

    @property
    def file_columns(self) -> TableFiles:
        """How files like those of training are laid out."""
        known: TableFiles | None = vars(self).get("columns_")
        return known or TableFiles()

    @property
    def files_(self) -> dict[str, Any]:
        """How the files of training are laid out, as plain values."""
        described: dict[str, Any] = self.columns_.describe()
        return described

    @property
    def table_(self) -> dict[str, Any]:
        """What was in the files of training."""
        return {name: value for name, value in self.training_facts_.items() if name != "seconds_reading"}

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of their numbers."""
        self._check_fitted()
        return self.task_.class_array

    @property
    def _before(self) -> ClassificationTask | None:
        """The task that `fit` goes on from; None if it begins anew."""
        return self.task_ if self.warm_start and self.__sklearn_is_fitted__() else None

    # --- training ---

    @exclusive
    def fit(
        self,
        X: Any,
        y: Any = None,
        costs: Any = None,
        *,
        sample_weight: Any = None,
        dev: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> Self:
        """Train from scratch, or go on with `warm_start`.

        `y` are labels. `costs` is a matrix (rows true, columns predicted, in the order of the classes); or a vector of
        costs for each row, for which `y` may be left out; or one number for each row, what a mistake costs there.
        `sample_weight` is what all costs of a row are multiplied by. With `dev` data, (X, y) or (X, y, costs), the pass
        that costs least on them is kept. `checkpoint` names a file to which training is saved as it goes, and from
        which an interrupted one goes on with `resume`.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.
        y
            The class of each row.
        costs
            The costs of all classes for each row, `[row, class]`, in place of those of the cost matrix.
        sample_weight
            How much each row counts; 1 for each unless given.
        dev
            Rows and classes that are not learned from, to keep the best pass and to calibrate with.
        checkpoint
            The file to which training is saved as it goes.
        resume
            Whether to go on from the checkpoint, if there is one.

        """
        before = self._before
        known, grows = (None, False) if before is None else (before.known, before.matrix is None)
        how: Any = {"labelled": True, "reset": before is None, "grows": grows}
        data = self._given(X, known, y, costs, sample_weight=sample_weight, **how)
        held = None if dev is None else self._given(dev[0], data.targets, *dev[1:], labelled=True)
        if before is None:
            vars(self).pop("columns_", None)
        return self._fit(data, held, checkpoint=checkpoint, resume=resume)

    def _fit(self, data: Any, dev: Any = None, **fitting: Any) -> Self:
        if self._before is not None:
            again = {name: value for name, value in fixed(self).items() if name in self.AGAIN}
            self.chosen_, self._trials, self.batch_size_ = self.chosen_ | again, (), self.batch_for(len(data))
        held = None if dev is None else data.read_alike(dev)
        if data.in_memory:
            return super()._fit(data, held, **fitting)
        if self.calibrate and dev is None:
            raise ConfigurationError(
                f"{data.paths[0]}: the table is larger than memory, so nothing is held out of it: calibrate needs dev "
                "data (--dev), or more --memory"
            )
        try:
            return super()._fit(data, held, **fitting)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; or hold the table in memory, by more --memory") from None

    def _proposed(self, scan: TableData, **fitting: Any) -> ClassificationTask:
        """The task that a table poses, with the settings that were left open chosen."""
        if scan.names is not None:
            self.n_features_in_, self.feature_names_in_ = len(scan.names), np.array(scan.names, dtype=object)
        self.chosen_, self._trials = settle(self, scan, **fitting)
        return self._posed(scan)

    def _proposed_for(self, data: TableData, classes: Sequence[Any] | None) -> ClassificationTask:
        self.chosen_ = LARGE | fixed(self)
        return self._posed(data)

    def _posed(self, data: TableData) -> ClassificationTask:
        self.batch_size_ = self.batch_for(len(data))
        return self.PROBLEM.propose(data, self)

    def _note(self, scan: TableData, *, anew: bool, stream: bool = False) -> None:
        """Keep some rows of training, from which importances are computed when asked for; of a stream, the first."""
        encoder = self.task_.encoder
        if stream:
            self._seen = some_rows(scan.rows(encoder), self.n_features_in_, self._seen)
        else:
            self._seen = scan.sample(encoder, self.n_features_in_)
            self.model_.report["trials"] = [trial.as_dict() for trial in self._trials]
        self._importances = None

    def _trainer(self, problem: Any, examples: int | None = None) -> Trainer:
        return Estimator._trainer(settled(self, self.chosen_), problem, examples)

    def batch_for(self, rows: int) -> int:
        """How many of `rows` rows see the same policy."""
        return max(1, min(MOST_TOGETHER, rows // 100)) if self.batch_size is None else self.batch_size

    def _together(self) -> int:
        found: int | None = vars(self).get("batch_size_")
        return int(self._fitted.about["batch_size"]) if found is None else found  # as in its training

    @exclusive
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, costs: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Learn from the next rows of a stream, in the given order.

        The first call needs `classes` (or the parameter of that name), and settles what the columns are: bins and
        categories are those of its rows. Give it enough of them. Classes that a later call names are learned from then
        on, and come after the others in `classes_`.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.
        y
            The class of each row.
        classes
            All classes that may come, in the first call; later only new ones.
        costs
            The costs of all classes for each row, `[row, class]`, in place of those of the cost matrix.
        sample_weight
            How much each row counts; 1 for each unless given.

        """
        how: Any = {"labelled": True, "sample_weight": sample_weight}
        if not self.__sklearn_is_fitted__():
            names = classes if classes is not None else self.classes
            if names is None:
                raise ConfigurationError("the first call of partial_fit needs classes: all that there can be")
            return self._learn(self._given(X, Targets(list(names), None, None, None), y, costs, reset=True, **how))
        known = self.task_.with_classes(() if classes is None else list(classes)).known
        data = self._given(X, known, y, costs, **how)
        matrix = np.zeros(0) if known.matrix is None else known.matrix
        if data.targets.matrix is not None and not np.array_equal(data.targets.matrix, matrix):
            raise ConfigurationError("the cost matrix is not that of the first call: it cannot change")
        return self._learn(data, known.classes)

    # --- prediction ---

    @on_snapshot
    def predict_costs(self, X: Any) -> np.ndarray:
        """How much more each class seems to cost than the one that is predicted: `[row, class]`, 0 for the prediction.

        In a tree: what each step on the way costs more than the best step there, added up. (Searn's policy is drawn
        from several: then the average over them, which need not have its least where the draw has.)

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.

        """
        rows = self._rows(X)
        pieces = [rows.cut(k, k + TOGETHER) for k in range(0, max(rows.rows, 1), TOGETHER)]
        return np.concatenate([self.task_.class_costs(self._fitted.policy, p) for p in pieces]).astype(np.float64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Minus the predicted costs, `[row, class]`; of two classes how much better the second one is.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.

        """
        costs = self.predict_costs(X)
        return costs[:, 0] - costs[:, 1] if costs.shape[1] == 2 else -costs

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

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each column matters, all together 1: see `lols.tasks.tables.importances`.

        It is how far the column moves the margin of the predicted class over the others, on average over rows of
        training: all zero for a table of fixed size, and for secoc.
        """
        self._check_fitted()
        with self._lock.here():
            if self._importances is None:
                rows = self._seen
                self._importances = np.zeros(self.n_features_in_) if rows is None else importances_of(self, rows)
            return self._importances

    # --- confidence ---

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
        return self.task_.probabilities(self._fitted, self._rows(X))[1]

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
        self._recalibrate(self._judged(self._labelled_table(X, y, costs)))
        return self

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which classes of a labelled table are right; of a large one, as many rows are held as are needed."""
        layout, _ = self.asked("calibrate", options)
        source, most = self.open_file(path, layout), most_judged(len(self.task_.classes))
        if options.get("cost_columns") is None:
            layout = costs_or_labels(source, layout)
        return self._judged(drawn_rows(self, source, layout, most, self.seed)[0])

    def _judged(self, data: TableData) -> dict[str, Judged]:
        check_enough(len(data))
        before = self._fitted.calibration
        learned_costs = self.file_columns.cost_columns is not None or (before is not None and before.bias.size > 0)
        examples = self.task_.examples_of(data, truth=False)
        return {self.task_.DECISIONS: self.task_.judged(self._fitted, examples, data, graded=learned_costs)}

    # --- scores ---

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are classified right.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.
        y
            The class of each row.
        sample_weight
            How much each row counts; 1 for each unless given.

        """
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    @on_snapshot
    def evaluate(self, X: Any, y: Any, costs: Any = None) -> ClassScores:  # type: ignore[override]
        """The average cost, the share of errors, and which classes were taken for which.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.
        y
            The class of each row.
        costs
            The costs of all classes for each row, `[row, class]`, in place of those of the cost matrix.

        """
        data = self._labelled_table(X, y, costs)
        numbers, sure = self._predicted(data, self._knows_confidence())
        return score_classes(self.task_.classes, data.targets, numbers, sure)

    # --- files ---

    def open_file(self, path: str, layout: TableFiles) -> TableSource:
        """Look at a table."""
        if path == "-":
            raise ConfigurationError("a classifier reads tables from files, not from standard input: name a file")
        return open_files([str(path)], layout)

    @on_snapshot
    def predict_files(self, paths: Sequence[str] | str, *, threads: Threads = None) -> np.ndarray:
        """The class of each row of tables in files, laid out as in training.

        Parameters
        ----------
        paths
            One table or several.
        threads
            How many threads share the work; None for as many as help.

        """
        source = open_files(as_paths(paths), self.file_columns)
        numbers = [batch.numbers for batch in predict_batches(self, source, threads=threads)]
        return self.classes_[np.concatenate(numbers)]

    @on_snapshot
    def evaluate_files(
        self, paths: Sequence[str] | str, *, label: str | None = None, threads: Threads = None
    ) -> ClassScores:
        """Compare predictions with labelled rows in files, in constant memory.

        If the model was trained with `cost_columns` and the files have none, each error costs 1.

        Parameters
        ----------
        paths
            One table or several.
        label
            The column of the classes; None for that of the training.
        threads
            How many threads share the work; None for as many as help.

        """
        layout = self.file_columns if label is None else self.file_columns.changed(label=label)
        source = open_files(as_paths(paths), layout)
        return evaluate_files(self, source, costs_or_labels(source, layout), threads=threads)

    @on_snapshot
    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a table with the predicted classes; its format and all other cells stay as they are.

        Parameters
        ----------
        path
            A table.
        out
            The stream of bytes to write to.
        output
            The name of what is written, which says its format.
        threads
            How many threads share the work; None for as many as help.
        say
            Called with a line for each thing that is being done.
        **options
            Where things are in the file, and what `lols predict` takes besides.

        """
        from lols.tasks.tables.write import check_format, table_writer

        if options.get("cost_columns") is not None:
            raise ConfigurationError("cost_columns has no effect: predictions do not look at costs; leave it out")
        layout, asked = self.asked("predict", options)
        self.prepare()
        source = self.open_file(path, layout)
        check_columns(source, [column.name for column in table_encoder(self).columns])
        if not asked.labels_only:
            check_format(output, source.format)
        if asked.confidence:
            self.check_calibrated()
        how: Any = {"labels_only": asked.labels_only, "confidence": asked.confidence}
        writer = table_writer(source, layout.label or PREDICTION, self.classes_, **how)
        clock, seconds, rows = Clock(), {"reading": 0.0}, 0

        def counted() -> Iterator[Any]:
            nonlocal rows
            how: Any = {"threads": threads, "seconds": seconds, "confidence": asked.confidence}
            for each in predict_batches(self, source, **how):
                rows += each.numbers.size
                yield each

        writer.write(counted(), out, threads)
        speed = rows / clock.working()
        for line in [f"{rows:,} rows, {speed:,.0f} rows/s from file to file", *unknown_text(self.unknown_)]:
            say(line)
        reading = seconds["reading"]
        return {"rows": rows, "unknown": self.unknown_, "seconds_reading": reading, "examples_per_second": speed}

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a labelled table, in constant memory; threads share its pieces.

        Parameters
        ----------
        path
            A labelled table.
        threads
            How many threads share the work; None for as many as help.
        **options
            Where things are in the file, and what `lols evaluate` takes besides.

        """
        layout, asked = self.asked("evaluate", options)
        if asked.plot is not None:
            from lols.plots import check_plot

            check_plot(asked.plot)
        self.prepare()
        source, seconds, before = self.open_file(path, layout), {"reading": 0.0}, self.unknown_
        note = ""
        if layout.cost_columns is not None and options.get("cost_columns") is None:
            layout, begin = costs_or_labels(source, layout), layout.cost_columns
            note = "" if layout.cost_columns else f"there are no columns {begin}CLASS of costs: every error costs 1"
        scores = evaluate_files(self, source, layout, threads=threads, seconds=seconds)
        if asked.plot is not None:
            from lols.plots import confusion

            confusion(scores, asked.plot)
        unknown = {name: count - before.get(name, 0) for name, count in self.unknown_.items()}
        unknown = {name: count for name, count in unknown.items() if count}
        found = Evaluation(ClassifierScores(scores, unknown, asked.plot, note), scores.rows, seconds["reading"])
        if asked.plot is None or scores.reliability is None:
            return found
        beside = Path(asked.plot)
        return found.drawn(str(beside.with_stem(f"{beside.stem}-reliability")), scores.reliability)

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how a row is led down the tree of classes, and which of its values mattered.

        Parameters
        ----------
        path
            A labelled table.
        number
            Which example of the file, counted from 1.
        **options
            Where things are in the file, and what `lols explain` takes besides.

        """
        from lols.tasks.explain import ExampleReport
        from lols.tasks.tables.explain import CHILDREN, explain_row, read_row, words_in

        if number < 1:
            raise ConfigurationError(f"--row is {number}: rows are counted from 1")
        layout, asked = self.asked("explain", options)
        source = self.open_file(path, layout)
        asked_for = any(options.get(name) is not None for name in ("label", "cost_columns"))
        costs_there = layout.cost_columns and any(name.startswith(layout.cost_columns) for name in source.names)
        labelled = asked_for or bool(costs_there) or layout.label in source.names
        rows, piece = read_row(self, source, number - 1, layout, labelled=labelled)
        true = int(piece.labels[0]) if piece.labels is not None and piece.labels.size else None
        costs = None if piece.costs is None else piece.costs[0]
        words = words_in(table_encoder(self), piece)
        how: Any = {"costs": costs, "words": words, "top": asked.top}
        cells = [f"{name}={column.text(0)}" for name, column in piece.columns.items()]
        place = source.place(number - 1).removeprefix(f"{path}, ")
        explanation = explain_row(self, rows, true, **how, place=place, shown=cells)
        return ExampleReport(self.named, path, VERBS.one, number, None, explanation, CHILDREN, asked.html).written()

    def inspected(self, values: dict[str, Any], asked: ClassifierInspectOptions) -> VerbReport:
        """A report on a model file, with the features that speak for each child of a node."""
        from lols.tasks.tables.inspect import inspect_classifier

        return inspect_classifier(self, values, asked)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled table, of which only the rows that may be drawn are held."""
        layout, asked = self.asked("certify", options)
        data, count = drawn_rows(self, self.open_file(path, layout), layout, limit, seed)
        return replace(self._case(data, asked.reference, None, seed), of=count)

    @property
    def unknown_(self) -> dict[str, int]:
        """For each column the cells so far whose category training never showed: they were predicted without it."""
        self._check_fitted()
        encoder = self.task_.encoder
        if not isinstance(encoder, TableEncoder):
            return {}
        pairs = zip(encoder.columns, encoder.unknown.tolist(), strict=True)
        return {column.name: count for column, count in pairs if count}

    # --- model files ---

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"interactions": [list(pair) for pair in self.interactions]}

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        more = {
            "label_map": None if self.label_map is None else dict(self.label_map),
            "chosen": {k: v for k, v in self.chosen_.items() if is_plain(v)},
            "features": int(self.n_features_in_),
            "names": [str(name) for name in vars(self).get("feature_names_in_", ())],
        }
        return more, {"importances": self.feature_importances_}

    @classmethod
    def _stored_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in options.items() if name != "interactions"}
        if not all(map(is_plain, given.values())):
            raise ValueError("the options are not plain values")
        return given

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        encoder, names, mapping = self.task_.encoder, [str(name) for name in task["names"]], task["label_map"]
        self.cost_matrix = self.task_.matrix
        self.label_map = None if mapping is None else {str(k): str(v) for k, v in mapping.items()}
        given = dict(task.get("chosen", task["options"]))
        self.chosen_ = LARGE | {k: v for k, v in given.items() if k in LARGE}
        if not all(map(is_plain, self.chosen_.values())):
            raise ValueError("the settings are not plain values")
        self.n_features_in_ = int(task["features"])
        sparse = isinstance(encoder, SparseEncoder)
        described = encoder.scales.size if isinstance(encoder, SparseEncoder) else len(encoder.columns)
        if self.n_features_in_ > max(described, len(names)) + MOST_IGNORED:
            raise ValueError("the columns are too many")
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.interactions = encoder.interactions if isinstance(encoder, TableEncoder) else ()
        columns, width = column_names(self), described if sparse else self.n_features_in_
        if len(columns) != self.n_features_in_ or width != self.n_features_in_ or width < 1:
            raise ValueError("the columns do not fit")
        if isinstance(encoder, TableEncoder) and not {c.name for c in encoder.columns} <= set(columns):
            raise ValueError("the names of the columns do not fit")
        self._seen = None
        self._importances = tensors.get("importances", np.zeros(self.n_features_in_)).astype(np.float64)
        if self._importances.shape != (self.n_features_in_,) or not (self._importances >= 0.0).all():
            raise ValueError("the importances of the columns are damaged")

    # --- compilation, and what scikit-learn asks for ---

    def prepare(self) -> None:
        """Classify a row of a CSV file."""
        encoder = self.task_.encoder
        if not isinstance(encoder, TableEncoder) or not installed("pyarrow"):
            return
        from lols.io.tables import open_table

        names = [column.name for column in encoder.columns]
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(LolsError):
            path = Path(folder) / "tiny.csv"
            path.write_text(",".join("0" for _ in names) + "\n")
            before = encoder.unknown.copy()
            list(predict_batches(self, open_table(str(path), header=False, names=names)))
            encoder.unknown[:] = before

    def rehearse(self) -> None:
        """Train on three rows, with costs, and predict."""
        if not installed("pyarrow"):
            self.fit([[1.0, "x"], [2.0, "y"], [3.0, "x"]], ["no", "yes", "yes"]).predict_costs([[1.0, "x"]])
            return
        import pyarrow as pa

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tiny.csv"
            path.write_text(THREE_ROWS)
            self.fit_files(str(path), dev=str(path))
        self.prepare()
        self.predict_costs(pa.table({"a": [1], "b": ["x"]}))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
