"""The classifier: tables in, decisions out, at the least cost, with scikit-learn's habits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.threads import Threads
from lols.contract.whole_numbers import MOST, check_whole
from lols.errors import ConfigurationError, LolsError
from lols.io.costs import read_cost_matrix, read_label_map
from lols.tasks.base import Variants, as_paths
from lols.tasks.choice import Choice
from lols.tasks.options import INPUT, LEARNING, SEARCH, estimator, option, shared, values_of
from lols.tasks.search import SearchEstimator
from lols.tasks.tables.cells import NoNumber
from lols.tasks.tables.confidence import ProbableClassifier, judges_of
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.files import (
    MEMORY,
    TableTraining,
    evaluate_files,
    fit_files,
    open_files,
    predict_batches,
    table_notes,
)
from lols.tasks.tables.importances import NO_ROWS, some_rows
from lols.tasks.tables.input import (
    InputTable,
    Targets,
    as_columns,
    as_sparse,
    centres_of,
    column_kinds,
    column_names,
    comma_note,
    make_tree,
    missing_texts,
    pair_of,
    scan_table,
    table_of,
    targets_of,
    tree_of,
)
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.scores import ClassScores, score_classes
from lols.tasks.tables.settling import LARGE, fixed, settle, settled
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.stream import scorer
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.weights import class_weights, product, row_weights, weights_of
from lols.tasks.verbs import Say, silent
from lols.training.algorithms import Algorithm
from lols.training.stream import Stream
from lols.training.trainer import Trainer

__all__ = ["CostSensitiveClassifier"]

MOST_CELLS = 1 << 22  # cells that are encoded at a time
TOGETHER = 1 << 15  # rows whose costs are computed at a time
MOST_TOGETHER = 1 << 12  # rows of a batch


@estimator
class CostSensitiveClassifier(ProbableClassifier):
    """A classifier that walks down a tree of classes to the one that costs least, trained by learning to search.

    `X` is a data frame (pandas, polars, Arrow), an array, nested lists or a sparse matrix. Columns of texts are
    categories, all others numbers; both may have missing values.

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
    WARMUP_ALL: ClassVar[Variants] = {"the paper's learner (csoaa)": {"learner": "csoaa"}}
    RATE = 0.2  # like the bins chosen on random splits of KDD99
    UNIT = "steps"
    NEIGHBOURS = 8

    algorithm: str | Algorithm = shared(ProbableClassifier, "algorithm", default="auto")
    batch_size: int | None = option(
        default=None,
        help="How many rows are classified with the same policy before it learns from them; by default a "
        "hundredth of all, at most 4096.",
        panel=LEARNING,
    )
    passes: Any = option(
        default=None,
        help="Passes over the training data; by default 5, for small tables chosen on rows held out.",
        panel=LEARNING,
        kind=int | None,
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
        help="Texts that mean a missing value, besides the empty text; by default NA, N/A, NaN, nan, null, NULL, "
        "None and ?.",
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

    # --- training ---

    def _without_effect(self, chosen: Algorithm) -> Iterator[tuple[str, str]]:
        yield from super()._without_effect(chosen)
        if self.reference != "suboptimal":
            yield "skill", f"it is that of the suboptimal reference, and the reference is {self.reference}"
        if self.numeric == "scaled" and not self.interactions:
            yield "bins", "numbers are scaled, not binned"
        if self.margin == "unit" and self.learner == "hinge":
            yield "class_weight", "a margin of unit depends on which class costs least, not on how much"

    def fit(
        self, X: Any, y: Any = None, costs: Any = None, *, sample_weight: Any = None, dev: Any = None
    ) -> CostSensitiveClassifier:
        """Train from scratch.

        `y` are labels. `costs` is a matrix (rows true, columns predicted, in the order of the classes); or a vector of
        costs for each row, for which `y` may be left out; or one number for each row, what a mistake costs there.
        `sample_weight` is what all costs of a row are multiplied by. With `dev` data, (X, y) or (X, y, costs), the pass
        that costs least on them is kept.
        """
        goes_on = self._goes_on()
        table = table_of(self, X, reset=not goes_on)
        if table.rows == 0:
            raise LolsError("the table has no rows: give some to learn from")
        given = Targets(self.task_.classes, None, self.task_.matrix, None) if goes_on else None
        targets = self._targets(table.rows, y, costs, given, sample_weight=sample_weight)
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

    def settle(self, targets: Targets, encode: Any, cells: int = MOST, numbers: int = 0) -> None:
        """Choose the settings that were left open, on rows held out if there are few cells."""
        self.chosen_, self._trials = settle(self, targets, cells, numbers, encode)

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
        task = self.task_ if goes_on else self.make_task(encoder, rows, targets)
        self.batch_size_ = self.batch_for(rows.rows)
        if dev is not None and dev[0].rows == 0:
            raise LolsError("there are no dev rows to choose on: give some, or no dev data")
        made = partial(task.examples, rows, targets.labels, targets.vectors, targets.weights)
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
        return SearchEstimator._trainer(settled(self, self.chosen_), task, examples)

    def batch_for(self, rows: int) -> int:
        """How many of `rows` rows see the same policy."""
        return max(1, min(MOST_TOGETHER, rows // 100)) if self.batch_size is None else self.batch_size

    def _together(self) -> int:
        found: int | None = getattr(self, "batch_size_", None)
        return int(self._fitted.about["batch_size"]) if found is None else found  # as in its training

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, costs: Any = None, *, sample_weight: Any = None
    ) -> CostSensitiveClassifier:
        """Learn from the next rows of a stream, in the given order.

        The first call needs `classes` (or the parameter of that name), and settles what the columns are: bins and
        categories are those of its rows. Give it enough of them.
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
            stream = Stream(self._trainer(task))
        else:
            task = self.task_
            if classes is not None and set(classes) != set(task.classes):
                raise ConfigurationError("classes are not those of the first call: they cannot change")
            stream = self._stream or self._opened(task)
            given = Targets(task.classes, None, task.matrix, None)
            targets = self._targets(table.rows, y, costs, given, sample_weight=sample_weight)
            known = np.zeros(0) if task.matrix is None else task.matrix
            if targets.matrix is not None and not np.array_equal(targets.matrix, known):
                raise ConfigurationError("the cost matrix is not that of the first call: it cannot change")
        rows = self._encode(task.encoder, table)
        stream.learn(task.examples(rows, targets.labels, targets.vectors, targets.weights))
        self.look_at(rows, NO_ROWS if first else self._seen)
        self.task_, self._stream, self._model = task, stream, None
        self.classes_ = np.array(task.classes)
        return self

    def fit_files(
        self,
        paths: Sequence[str] | str,
        *,
        label: str | None = None,
        header: bool | None = None,
        separator: str | None = None,
        dev: str | None = None,
        memory: int = MEMORY,
        weight: str | None = None,
        say: Say = silent,
        **fitting: Any,
    ) -> CostSensitiveClassifier:
        """Train on tables in files (CSV, Parquet, Arrow), which may be larger than memory.

        `label` is the column of the labels, by default the last one, and `weight` that of the weights of rows. Where
        the cells take more than `memory` bytes, the files are read again in every pass.
        """
        layout, seconds = TableFiles(label, header, separator), {"reading": 0.0}

        def tell(facts: dict[str, Any]) -> None:
            for line in table_notes(facts):
                say(line)

        options: Any = {"dev": dev, "memory": memory, "weight": weight, "seconds": seconds, "tell": tell}
        self.table_ = fit_files(self, as_paths(paths), layout, **options, **fitting)
        self.training_facts_ = self.table_ | {"seconds_reading": seconds["reading"]}
        return self

    def predict_files(self, paths: Sequence[str] | str, *, threads: Threads = None) -> np.ndarray:
        """The class of each row of tables in files, laid out as in training."""
        source = open_files(as_paths(paths), self.file_columns)
        numbers = [batch.numbers for batch in predict_batches(self, source, threads=threads)]
        return self.classes_[np.concatenate(numbers)]

    def evaluate_files(
        self, paths: Sequence[str] | str, *, label: str | None = None, threads: Threads = None
    ) -> ClassScores:
        """Compare predictions with labelled rows in files, in constant memory."""
        layout = self.file_columns
        source = open_files(as_paths(paths), layout)
        name = label or layout.label or source.names[-1]
        return evaluate_files(self, source, name, threads=threads)

    def set_fitted(
        self,
        task: ClassificationTask,
        stream: Stream,
        choice: Choice,
        losses: list[float],
        rows: int,
        dev: tuple[Rows, Targets] | None,
    ) -> None:
        """Take over what training out of core has come to."""
        self.task_, self._model = task, None
        self.model_ = choice.best or stream.model()
        self.model_.learning = stream.state()
        self._stream = None
        self.model_.about |= {"best_pass": choice.best_pass, "passes": len(losses), "examples": rows}
        self.model_.report |= {"progressive_loss": losses, "dev": choice.history}
        if dev is not None:
            self._calibrate_with_dev(task, dev)
        self.classes_ = np.array(task.classes)

    # --- prediction ---

    def predict(self, X: Any, *, confidence: bool = False) -> Any:
        """The class of each row; with `confidence` a pair: these, and how likely each of them is to be right.

        For that the classifier must be calibrated.
        """
        if not confidence:
            numbers = self.predict_rows(self._rows(X))
            return self.classes_[numbers]
        self._check_fitted()
        self.calibrated()
        numbers, sure = self.confident_rows(self._rows(X))
        return self.classes_[numbers], sure

    def predict_rows(self, rows: Rows) -> np.ndarray:
        """The numbers of the classes of rows that are encoded already."""
        if rows.rows == 0:
            return np.zeros(0, np.int64)
        return self.task_.labels_of(self._fitted.run(self.task_.examples(rows)).states)

    def predict_costs(self, X: Any) -> np.ndarray:
        """How much more each class seems to cost than the one that is predicted: `[row, class]`, 0 for the prediction.

        In a tree: what each step on the way costs more than the best step there, added up. (Searn's policy is drawn
        from several: then the average over them, which need not have its least where the draw has.)
        """
        rows = self._rows(X)
        pieces = [rows.cut(k, k + TOGETHER) for k in range(0, max(rows.rows, 1), TOGETHER)]
        return np.concatenate([self.task_.class_costs(self._fitted.policy, p) for p in pieces]).astype(np.float64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Minus the predicted costs, `[row, class]`; of two classes how much better the second one is."""
        costs = self.predict_costs(X)
        return costs[:, 0] - costs[:, 1] if costs.shape[1] == 2 else -costs

    # --- scores ---

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are classified right."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def evaluate(self, X: Any, y: Any, costs: Any = None) -> ClassScores:
        """The average cost, the share of errors, and which classes were taken for which."""
        rows = self._rows(X)
        targets = self._targets(rows.rows, y, costs, Targets(self.task_.classes, None, self.task_.matrix, None))
        if self._fitted.calibration is None:
            return score_classes(self.task_.classes, targets, self.predict_rows(rows))
        numbers, sure = self.confident_rows(rows)
        return score_classes(self.task_.classes, targets, numbers, sure)

    # --- helpers ---

    def _targets(
        self, rows: int, y: Any, costs: Any, known: Targets | None = None, *, sample_weight: Any = None
    ) -> Targets:
        matrix = self.cost_matrix if known is None or known.matrix is None else known.matrix
        classes = self.classes if known is None else known.classes
        made = targets_of(rows, y, costs, classes=classes, matrix=matrix, label_map=self.label_map)
        weights = product(made.weights, row_weights(sample_weight, rows))
        by_class = class_weights(self.class_weight, made.classes, made.counts())
        if weights is not None and self.margin == "unit" and self.learner == "hinge":
            raise ConfigurationError("weights of rows have no effect with margin unit: choose weighted or cost")
        return made._replace(weights=product(weights, None if by_class is None else by_class[made.cheapest]))

    def _scans(self, table: InputTable) -> list[ColumnScan]:
        """What the columns of a table hold; nothing of a sparse matrix."""
        if table.matrix is not None:
            return []
        kinds = column_kinds(list(table.columns), self.categorical, self.numerical, self.ignore, self.text)
        return scan_table(table.columns, kinds, missing_texts(self.missing))

    def _encoder(self, table: InputTable) -> Encoder:
        if table.matrix is not None:
            return SparseEncoder.from_matrix(table.matrix)
        return self.make_encoder(self._scans(table), table.rows, self.chosen_)

    def make_encoder(self, scans: Sequence[ColumnScan], rows: int, settings: Mapping[str, Any]) -> TableEncoder:
        """The encoder for columns that were looked at."""
        for pair in self.interactions:
            if isinstance(pair, str) or len(pair) != 2:
                raise ConfigurationError(f"interactions has {pair!r}: give pairs of columns, such as ('age', 'colour')")
        options = {"numeric": settings["numeric"], "interactions": [(str(a), str(b)) for a, b in self.interactions]}
        commas = [scan.name for scan in scans if scan.decimal_commas]
        if commas:
            warnings.warn(comma_note(commas), stacklevel=3)
        if self.bins is not None:
            check_whole("bins", self.bins, least=2)
        return TableEncoder.from_scans(scans, rows, settings["bins"], missing=missing_texts(self.missing), **options)

    def _rows(self, X: Any) -> Rows:
        self._check_fitted()
        rows = self._encode(self.task_.encoder, table_of(self, X, reset=False))
        encoder = self.task_.encoder
        if isinstance(encoder, TableEncoder):
            encoder.unknown = encoder.unknown + rows.unknown  # not in place: it may be mapped from a file
        return rows

    def _encode(self, encoder: Encoder, table: InputTable) -> Rows:
        """The rows of a table that came as a whole; sparse where training was, or not."""
        if isinstance(encoder, SparseEncoder):
            return encoder.encode(table.matrix if table.matrix is not None else as_sparse(table))
        columns = table.columns if table.matrix is None else as_columns(table.matrix, column_names(self))
        piece = max(1, MOST_CELLS // max(len(columns), 1))  # so that what is needed on the way takes little memory
        try:
            if table.rows <= piece:
                return encoder.encode(columns, table.rows)
            parts = []
            for begin in range(0, table.rows, piece):
                end = min(begin + piece, table.rows)
                parts.append(encoder.encode({name: c.cut(begin, end) for name, c in columns.items()}, end - begin))
            return joined(parts)._replace(unknown=np.sum([part.unknown for part in parts], axis=0))
        except NoNumber as error:
            raise error.at(columns[error.column], lambda row: f"row {row}") from None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
