"""A tagger on one piece of a file after the other: strings, their features and their scores are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.engine.drivers.predictions import Predictions
from lols.io.strings import Interner, Texts
from lols.tasks.tagging.clusters import CLUSTER, ClusterColumn
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.encoding import Encoder
from lols.training.model import Model

MOST_STRINGS = 1 << 17


class Session:
    """What one thread knows of the pieces that it has tagged; forgotten when there are too many strings.

    It is only faster than `Tagger.predict_columns`: the result is the same.
    """

    def __init__(self, task: TaggingTask, model: Model, clusters: Mapping[str, str] | None):
        self.task, self.model, self.clusters = task, model, clusters
        self._forget()

    def _forget(self) -> None:
        self._strings = 0
        self._names: dict[str, Interner] = {}
        self._clusters = None if self.clusters is None else ClusterColumn(self.clusters)
        self._encoder = Encoder(self.task.layout)
        self._follower = self.model.follower()

    def predicted(self, given: Any, confidence: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        """The numbers of the labels of all words of a piece, and how likely each is to be right, if that is asked."""
        if confidence:
            return self.predict_confident(given.texts, given.offsets)
        return self.predict(given.texts, given.offsets), None

    def predict(self, texts: Mapping[str, Texts], offsets: np.ndarray) -> np.ndarray:
        """The numbers of the labels of all words of a piece, given as columns of strings."""
        return self.task.labels_of(self._run(texts, offsets).all_actions(), offsets)

    def predict_confident(self, texts: Mapping[str, Texts], offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, and how likely each label is to be right."""
        calibration = self.model.calibrated()
        run = self._run(texts, offsets, calibration.temperature)
        sure = calibration.confidence(self.task.in_order(run.all_shares(), offsets))
        return self.task.labels_of(run.all_actions(), offsets), sure

    def _run(self, texts: Mapping[str, Texts], offsets: np.ndarray, temperature: float = 0.0) -> Predictions:
        if self._strings > MOST_STRINGS:
            self._forget()
        columns = {name: self._names.setdefault(name, Interner()).number(column) for name, column in texts.items()}
        self._strings = sum(column.texts.begin.size for column in columns.values())
        if self._clusters is not None:
            columns[CLUSTER] = self._clusters.of(columns[WORD])
        examples = self.task.examples(Corpus(columns, offsets), encoder=self._encoder)
        return self._follower.run(examples, temperature=temperature)
