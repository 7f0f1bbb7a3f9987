"""How a tagger predicts: tags, confidences, costs, and the best taggings by a beam search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.contract.sharing import on_snapshot
from lols.engine.drivers.predictions import Predictions
from lols.errors import ConfigurationError
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.held_out import TEMPERATURE
from lols.tasks.tagging.session import Session
from lols.tasks.tagging.verbs import TaggerVerbs
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.input import cut
from lols.training.calibration import Calibration

Sentence = Sequence[str] | Sequence[Mapping[str, Any]]


class TaggerPrediction(TaggerVerbs):
    """The predictions of `Tagger`."""

    @on_snapshot
    def predict(self, X: Sequence[Sentence], *, confidence: bool = False) -> Any:
        """The tags of each sentence; with `confidence` a pair: these, and an array of probabilities for each of them.

        A probability says how likely a tag is to be right. The tagger must be calibrated.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        confidence
            Whether a pair is returned: the predictions, and the probability that each is right.

        """
        corpus = self._corpus(X)
        if not confidence:
            return cut([self.task_.labels[n] for n in self.predict_columns(corpus).tolist()], corpus.offsets)
        numbers, sure = self.predict_confident(corpus)
        return cut([self.task_.labels[n] for n in numbers.tolist()], corpus.offsets), cut(sure, corpus.offsets)

    def predict_one(self, x: Sentence) -> list[str]:
        """The tags of one sentence.

        Parameters
        ----------
        x
            A sentence: a list of words, or of dictionaries with the words and further columns.

        """
        return self.predict([x])[0]

    @on_snapshot
    def predict_columns(self, corpus: Corpus) -> np.ndarray:
        """The numbers of the labels of all words (into `classes_`)."""
        corpus = with_clusters(corpus, self.clusters)
        self._check_fitted()
        if corpus.tokens == 0:
            return np.zeros(0, np.int64)
        actions = self._run(corpus).all_actions()
        return self.task_.labels_of(actions, corpus.offsets)

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the labels of all words, and how likely each is to be right."""
        corpus = with_clusters(corpus, self.clusters)
        self._check_fitted()
        calibration = self.calibrated()
        if corpus.tokens == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        run = self._run(corpus, temperature=calibration.temperature)
        sure = calibration.confidence(self.task_.in_order(run.all_shares(), corpus.offsets))
        return self.task_.labels_of(run.all_actions(), corpus.offsets), sure

    @on_snapshot
    def session(self) -> Session:
        """Tag a data set piece by piece, in columns, without doing again what was done for the pieces before."""
        self._check_fitted()
        return Session(self.task_, self._fitted, self.clusters)

    @on_snapshot
    def predict_costs(self, X: Sequence[Sentence]) -> list[np.ndarray]:
        """Predicted costs `[word, label]` of each sentence, infinite for illegal ones; the least was taken.

        Columns are `classes_`. For spans a cost is that of the cheapest decision with which the word would have this
        label, if all other decisions stayed as they are.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.

        """
        corpus = self._corpus(X)
        if corpus.tokens == 0:
            return [np.zeros((0, len(self.task_.labels)), np.float32) for _ in X]
        run = self._run(corpus, scores=True)
        return cut(self.task_.label_costs(run.all_costs(), run.all_actions(), corpus.offsets), corpus.offsets)

    @on_snapshot
    def predict_confidence(self, X: Sequence[Sentence]) -> list[np.ndarray]:
        """How sure the tagger is of each tag, between 0 and 1.

        If the tagger is calibrated, this is the probability that the tag is right. Otherwise it is the tag's share in a
        softmax of the costs with a temperature of 0.5, which only says of which of two tags the tagger is surer.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.

        """
        self._check_fitted()
        if self._fitted.calibration is not None:
            return list(self.predict(X, confidence=True)[1])
        corpus = self._corpus(X)
        if corpus.tokens == 0:
            return [np.zeros(0) for _ in X]
        shares = Calibration(self.temperature_).shares(self._run(corpus, scores=True).all_costs())
        return cut(self.task_.in_order(shares.max(axis=1), corpus.offsets), corpus.offsets)

    @on_snapshot
    def predict_kbest(
        self, X: Sequence[Sentence], k: int = 5, width: int | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """The `k` best taggings of each sentence with their scores, best first, by a beam search.

        A score is how much the tags together seem to cost more than the cheapest choices on their way: 0 is the best.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        k
            How many taggings of each sentence.
        width
            How many paths the beam follows; None for a width that follows from `k`.

        """
        from lols.engine.beam import beam_search

        if k < 1:
            raise ConfigurationError(f"k is {k}; it must be at least 1")
        corpus = self._corpus(X)
        self._check_fitted()
        if corpus.tokens == 0:
            return [[([], 0.0)] for _ in X]
        beams = beam_search(self._fitted, self.task_.examples(corpus), width=width or k, best=k)

        def tags(actions: np.ndarray) -> list[str]:
            whole = np.array([0, actions.size], np.int64)
            return [self.task_.labels[n] for n in self.task_.labels_of(actions.astype(np.int64), whole).tolist()]

        return [
            [(tags(a), score) for a, score in zip(beams.actions(i), beams.scores(i).tolist(), strict=True)]
            for i in range(len(X))
        ]

    @property
    def classes_(self) -> np.ndarray:
        """The tags, in the order of their numbers."""
        self._check_fitted()
        return np.array(self.task_.labels, dtype=object)

    @property
    def temperature_(self) -> float:
        """What costs are divided by before a softmax turns them into shares: fitted if the tagger is calibrated."""
        calibration = self._fitted.calibration
        return (
            float(getattr(self, "_stored_temperature", TEMPERATURE)) if calibration is None else calibration.temperature
        )

    @property
    def action_labels_(self) -> list[str]:
        """What the tagger decides between, and the columns of `scores`: the tags, or for spans the tagger's own labels.

        Those are of the inner scheme, in the direction of tagging: from the end, a span "begins" with its last word.
        """
        self._check_fitted()
        return list(self.task_.inner_labels)

    def _run(self, corpus: Corpus, *, scores: bool = False, temperature: float = 0.0) -> Predictions:
        self._check_fitted()
        return self._fitted.run(self.task_.examples(corpus), scores=scores, temperature=temperature)
