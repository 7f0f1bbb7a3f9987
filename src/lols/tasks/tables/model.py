"""Model files of classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from lols.contract.sharing import exclusive
from lols.contract.threads import Threads
from lols.errors import LolsError, ModelFileError
from lols.tasks.options import is_plain
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.importances import importances_of
from lols.tasks.tables.input import column_names
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.rows import Rows
from lols.tasks.tables.settling import LARGE
from lols.tasks.tables.sparse_encoding import SparseEncoder
from lols.tasks.tables.task import ClassificationTask
from lols.tasks.tables.verbs import ClassifierVerbs
from lols.training.model import Model, make_model
from lols.training.stream import Stream

MOST_IGNORED = 1 << 16  # columns without a name that are not used
MOST_LETTERS = 1 << 22  # of the classes in an array, where each has room for the longest; more if they are long, too


class StoredClassifier(ClassifierVerbs):
    """A classifier that can be written to a file, and read again."""

    task_: ClassificationTask
    classes_: np.ndarray
    _stream: Stream | None
    _model: Model | None
    _seen: Rows | None  # some of training, for importances
    _importances: np.ndarray | None

    @property
    def _fitted(self) -> Model:
        """The model as it is now."""
        with self._lock.here():
            if self._stream is not None and self._model is None:
                self._model = self.model_ = self._stream.model()
                self.model_.learning = self._stream.state()
            return self.model_

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file."""
        self._check_fitted()
        task, tensors = self.task_.describe()
        task["options"] = self._options() | {"interactions": [list(pair) for pair in self.interactions]}
        task["label_map"] = None if self.label_map is None else dict(self.label_map)
        task["files"] = getattr(self, "files_", None)
        task["chosen"] = {k: v for k, v in self.chosen_.items() if is_plain(v)}
        task["features"] = int(self.n_features_in_)
        task["names"] = [str(n) for n in getattr(self, "feature_names_in_", ())]
        tensors |= {"importances": self.feature_importances_}
        return self._fitted.contents(task, tensors, keep_state=self.keep_state)

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

    @classmethod
    def from_file(  # type: ignore[override]
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], *, threads: Threads = None
    ) -> Self:
        """The classifier that a file's header and arrays describe."""
        try:
            task = header["task"]
            known = cls().get_params()
            options = {k: v for k, v in dict(task["options"]).items() if k in known and k != "interactions"}
            if not all(map(is_plain, options.values())):
                raise ValueError("the options are not plain values")
            made = cls(**options | {"threads": threads})
            own = {name.removeprefix("task."): array for name, array in tensors.items() if name.startswith("task.")}
            made.task_ = ClassificationTask.from_description(task, own)
            made.cost_matrix = made.task_.matrix
            made.label_map = (
                None if task["label_map"] is None else {str(k): str(v) for k, v in task["label_map"].items()}
            )
            made.classes_ = _class_array(made.task_.classes)
            made.chosen_ = LARGE | {k: v for k, v in dict(task.get("chosen", options)).items() if k in LARGE}
            if not all(map(is_plain, made.chosen_.values())):
                raise ValueError("the settings are not plain values")
            made.n_features_in_ = int(task["features"])
            encoder = made.task_.encoder
            described = encoder.scales.size if isinstance(encoder, SparseEncoder) else len(encoder.columns)
            if made.n_features_in_ > max(described, len(task["names"])) + MOST_IGNORED:
                raise ValueError("the columns are too many")
            if task["names"]:
                made.feature_names_in_ = np.array([str(n) for n in task["names"]], dtype=object)
            if task["files"] is not None:
                made.files_ = TableFiles.from_description(task["files"]).describe()
            made.interactions = encoder.interactions if isinstance(encoder, TableEncoder) else ()
            columns = column_names(made)
            width = encoder.scales.size if isinstance(encoder, SparseEncoder) else made.n_features_in_
            if len(columns) != made.n_features_in_ or width != made.n_features_in_ or width < 1:
                raise ValueError("the columns do not fit")
            if isinstance(encoder, TableEncoder) and not {c.name for c in encoder.columns} <= set(columns):
                raise ValueError("the names of the columns do not fit")
            made._stream = made._model = made._seen = None
            made._importances = own.get("importances", np.zeros(made.n_features_in_)).astype(np.float64)
            if made._importances.shape != (made.n_features_in_,) or not (made._importances >= 0.0).all():
                raise ValueError("the importances of the columns are damaged")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError, LolsError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        made.model_ = make_model(path, header, tensors, made.task_.space, threads=threads)
        return made


def _class_array(classes: Sequence[Any]) -> np.ndarray:
    """The classes of a model file as an array."""
    lengths = [len(name) for name in classes if isinstance(name, str)]
    if len(lengths) * max(lengths, default=0) > MOST_LETTERS + 64 * sum(lengths):
        raise ValueError("the names of the classes differ too much in length")
    return np.array(classes)
