"""The classifier: tables in, decisions out, at the least cost, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads
from lols.contract.whole_numbers import MOST
from lols.errors import ConfigurationError, LolsError
from lols.tasks.base import Variants, as_paths
from lols.tasks.estimator import Estimator, Judges
from lols.tasks.format import by_workers, never
from lols.tasks.options import estimator
from lols.tasks.tables.confidence import ProbableClassifier, judges_of
from lols.tasks.tables.fields import MEMORY, TableTraining
from lols.tasks.tables.files import fit_files, table_notes
from lols.tasks.tables.importances import NO_ROWS, some_rows
from lols.tasks.tables.input import InputTable, table_of
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.own_files import fit_own_files
from lols.tasks.tables.predicting import evaluate_files, predict_batches
from lols.tasks.tables.reading import costs_or_labels, open_files
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.scores import ClassScores, score_classes
from lols.tasks.tables.settling import LARGE, fixed, settle, settled
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.stream import scorer
from lols.tasks.tables.targets import Targets
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.tree_of_labels import centres_of, make_tree
from lols.tasks.verbs import Say, silent
from lols.training.sources import InPieces
from lols.training.trainer import Trainer

TOGETHER = 1 << 15  # rows whose costs are computed at a time
MOST_TOGETHER = 1 << 12  # rows of a batch


@estimator
class CostSensitiveClassifier(ProbableClassifier):
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
    PROBLEM = ClassificationTask

    # --- training ---

    @exclusive
    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, costs: Any = None, *, sample_weight: Any = None, dev: Any = None
    ) -> CostSensitiveClassifier:
        """Train from scratch.

        `y` are labels. `costs` is a matrix (rows true, columns predicted, in the order of the classes); or a vector of
        costs for each row, for which `y` may be left out; or one number for each row, what a mistake costs there.
        `sample_weight` is what all costs of a row are multiplied by. With `dev` data, (X, y) or (X, y, costs), the pass
        that costs least on them is kept.

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

        """
        goes_on = self._goes_on()
        table = table_of(self, X, reset=not goes_on)
        if table.rows == 0:
            raise LolsError("the table has no rows: give some to learn from")
        given = Targets(self.task_.classes, None, self.task_.matrix, None) if goes_on else None
        targets = self._targets(
            table.rows, y, costs, given, sample_weight=sample_weight, grows=goes_on and self.task_.matrix is None
        )
        if goes_on:
            encoder, rows = self.task_.encoder, self._encode(self.task_.encoder, table)
        else:
            self.__dict__.pop("files_", None)
            encoder, rows = self._settled(table, targets)
        held = None
        if dev is not None:
            other = table_of(self, dev[0], reset=False)
            known = self._targets(other.rows, dev[1], dev[2] if len(dev) > 2 else None, targets)
            held = self._encode(encoder, other), known
        return self.fit_rows(encoder, rows, targets, dev=held, goes_on=goes_on)

    def _settled(self, table: InputTable, targets: Targets) -> tuple[Encoder, Rows]:
        """Encoder and rows, with the settings that were left open chosen."""
        scans = self._scans(table)
        numbers = sum(scan.kind == "number" for scan in scans)

        def encode(settings: dict[str, Any]) -> tuple[Encoder, Rows]:
            encoder = SparseEncoder.from_matrix(table.matrix) if table.matrix is not None else None
            made = encoder or self.make_encoder(scans, table.rows, settings)
            return made, self._encode(made, table)

        cells = table.rows * len(scans) if table.matrix is None else int(table.matrix.nnz)
        self.settle(targets, encode, cells, numbers)
        return encode(self.chosen_)

    def settle(self, targets: Targets, encode: Any, cells: int = MOST, numbers: int = 0, **kept: Any) -> None:
        """Choose the settings that were left open, on rows held out if there are few cells."""
        self.chosen_, self._trials = settle(self, targets, cells, numbers, encode, **kept)

    @exclusive
    def fit_rows(
        self,
        encoder: Encoder,
        rows: Rows,
        targets: Targets,
        *,
        dev: tuple[Rows, Targets] | None = None,
        goes_on: bool = False,
        **fitting: Any,
    ) -> CostSensitiveClassifier:
        """Train on rows that are encoded already."""
        if not hasattr(self, "chosen_"):
            self.chosen_, self._trials = LARGE | fixed(self), []
        if goes_on:
            again = {name: value for name, value in fixed(self).items() if name in self.AGAIN}
            self.chosen_, self._trials = self.chosen_ | again, []
        task = self.task_.with_classes(targets.classes) if goes_on else self.make_task(encoder, rows, targets)
        if goes_on and task is not self.task_:
            fitting["places"] = np.arange(self.task_.tree.arity)
        self.batch_size_ = self.batch_for(rows.rows)
        if dev is not None and dev[0].rows == 0:
            raise LolsError("there are no dev rows to choose on: give some, or no dev data")
        made = partial(task.examples, rows, targets)
        self._train(task, made, scorer(task, dev), judges_of(task, targets, dev), goes_on=goes_on, **fitting)
        self.classes_ = np.array(targets.classes)
        self.model_.report["trials"] = [trial.as_dict() for trial in self._trials]
        self._stream = self._model = None
        self.look_at(rows)
        return self

    def look_at(self, rows: Rows, seen: Rows | None = None) -> None:
        """Keep some rows of training, from which importances are computed when asked for; of a stream, the first."""
        self._seen, self._importances = some_rows(rows, self.n_features_in_, seen), None

    def make_task(self, encoder: Encoder, rows: Rows, targets: Targets) -> ClassificationTask:
        """The search space for these classes and columns."""
        self.batch_size_ = self.batch_for(rows.rows)
        centres = partial(centres_of, rows, targets.cheapest, len(targets.classes))
        tree = make_tree(self.chosen_["tree"], targets.classes, targets.counts(), centres)
        return ClassificationTask(targets.classes, tree, encoder, matrix=targets.matrix, skill=self.skill)

    def _trainer(self, task: Any, examples: int | None = None) -> Trainer:
        return Estimator._trainer(settled(self, self.chosen_), task, examples)

    def batch_for(self, rows: int) -> int:
        """How many of `rows` rows see the same policy."""
        return max(1, min(MOST_TOGETHER, rows // 100)) if self.batch_size is None else self.batch_size

    def _together(self) -> int:
        found: int | None = getattr(self, "batch_size_", None)
        return int(self._fitted.about["batch_size"]) if found is None else found  # as in its training

    @exclusive
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, costs: Any = None, *, sample_weight: Any = None
    ) -> CostSensitiveClassifier:
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
        first = not hasattr(self, "task_")
        table = table_of(self, X, reset=first)
        if first:
            names = classes if classes is not None else self.classes
            if names is None:
                raise ConfigurationError("the first call of partial_fit needs classes: all that there can be")
            given = Targets(list(names), None, None, None)
            targets = self._targets(table.rows, y, costs, given, sample_weight=sample_weight)
            self.settle(targets, None)
            encoder = self._encoder(table)
            task = self.make_task(encoder, self._encode(encoder, table), targets)
            stream = self._trainer(task).stream()
        else:
            task = self.task_.with_classes(() if classes is None else list(classes))
            same = self._stream if task is self.task_ else None
            stream = same or self._opened(task, np.arange(self.task_.tree.arity))
            given = Targets(task.classes, None, task.matrix, None)
            targets = self._targets(table.rows, y, costs, given, sample_weight=sample_weight)
            known = np.zeros(0) if task.matrix is None else task.matrix
            if targets.matrix is not None and not np.array_equal(targets.matrix, known):
                raise ConfigurationError("the cost matrix is not that of the first call: it cannot change")
        rows = self._encode(task.encoder, table)
        stream.learn(task.examples(rows, targets))
        self.look_at(rows, NO_ROWS if first else self._seen)
        self.task_, self._stream, self._model = task, stream, None
        self.classes_ = np.array(task.classes)
        return self

    @exclusive
    def fit_files(
        self,
        paths: Sequence[str] | str,
        *,
        label: str | None = None,
        header: bool | None = None,
        separator: str | None = None,
        cost_columns: str | None = None,
        dev: str | None = None,
        memory: int = MEMORY,
        weight: str | None = None,
        say: Say = silent,
        **fitting: Any,
    ) -> CostSensitiveClassifier:
        """Train on tables in files (CSV, Parquet, Arrow), which may be larger than memory.

        `label` is the column of the labels, by default the last one, and `weight` that of the weights of rows. With
        `cost_columns="cost_"`, the columns `cost_CLASS` hold what each class costs in each row. Where the cells take
        more than `memory` bytes, the files are read again in every pass.

        Parameters
        ----------
        paths
            One table or several with the same columns.
        label
            The column of the classes; None for the last one.
        header
            Whether the first line of a CSV file has the names of the columns; None to look.
        separator
            What is between the cells of a CSV file; None to look.
        cost_columns
            What the names of the columns begin with that hold the costs of each class.
        dev
            A labelled table that is not learned from, to keep the best pass and to calibrate with.
        memory
            How many bytes the encoded rows may take before they are read again in every pass.
        weight
            The column that says how much a row counts.
        say
            Called with a line for each thing that is being done.
        **fitting
            A checkpoint, and whether to resume from it.

        """
        layout, seconds = TableFiles(label, header, separator, cost_columns), {"reading": 0.0}

        def tell(facts: dict[str, Any]) -> None:
            for line in table_notes(facts):
                say(line)

        if by_workers(self, as_paths(paths), dev):
            own: Any = {"dev": dev, "weight": weight, "tell": tell}
            self.table_ = fit_own_files(self, as_paths(paths), layout, **own, **fitting)
            self.training_facts_ = self.table_ | {"seconds_reading": 0.0}
            return self
        options: Any = {"dev": dev, "memory": memory, "weight": weight, "seconds": seconds, "tell": tell}
        self.table_ = fit_files(self, as_paths(paths), layout, **options, **fitting)
        self.training_facts_ = self.table_ | {"seconds_reading": seconds["reading"]}
        return self

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

    @exclusive
    def fit_pieces(self, task: ClassificationTask, pieces: InPieces, dev: tuple[Rows, Targets] | None) -> None:
        """Train on rows that are too many to be held."""
        judges = Judges(never, None if dev is None else judges_of(task, dev[1], dev).dev)
        try:
            self._train(task, lambda: pieces, scorer(task, dev), judges)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; or hold the table in memory, by more --memory") from None
        self.classes_ = np.array(task.classes)
        self._stream = self._model = None

    # --- prediction ---

    @on_snapshot
    def predict(self, X: Any, *, confidence: bool = False) -> Any:
        """The class of each row; with `confidence` a pair: these, and how likely each of them is to be right.

        For that the classifier must be calibrated.

        Parameters
        ----------
        X
            The rows: a list of lists, an array, a sparse matrix or a data frame.
        confidence
            Whether a pair is returned: the predictions, and the probability that each is right.

        """
        if not confidence:
            numbers = self.predict_rows(self._rows(X))
            return self.classes_[numbers]
        self._check_fitted()
        self.calibrated()
        numbers, sure = self.confident_rows(self._rows(X))
        return self.classes_[numbers], sure

    @on_snapshot
    def predict_rows(self, rows: Rows) -> np.ndarray:
        """The numbers of the classes of rows that are encoded already."""
        if rows.rows == 0:
            return np.zeros(0, np.int64)
        return self.task_.labels_of(self._fitted.run(self.task_.examples(rows)).states)

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
        rows = self._rows(X)
        targets = self._targets(rows.rows, y, costs, Targets(self.task_.classes, None, self.task_.matrix, None))
        if self._fitted.calibration is None:
            return score_classes(self.task_.classes, targets, self.predict_rows(rows))
        numbers, sure = self.confident_rows(rows)
        return score_classes(self.task_.classes, targets, numbers, sure)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
