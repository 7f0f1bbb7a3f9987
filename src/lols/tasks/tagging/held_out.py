"""What a tagger is scored by on held-out sentences, and a temperature for its confidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.tasks.tagging.span_scores import span_scores
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import Corpus
from lols.training.model import Model

__all__ = ["TEMPERATURE", "HeldOut", "shares"]

TEMPERATURE = 0.5


class HeldOut:
    """Dev sentences with their tags, for `Choice`: accuracy, and F1 for spans.

    Labels that the tagger does not know, numbered below 0, count as wrong.
    """

    def __init__(self, task: TaggingTask, corpus: Corpus, gold: np.ndarray):
        self.task, self.corpus, self.gold = task, corpus, gold
        self.examples: Examples = task.examples(corpus)

    def __call__(self, model: Model) -> dict[str, float]:
        """The scores of a model."""
        made = self.task.labels_of(model.run(self.examples).all_actions(), self.corpus.offsets)
        entry = {"accuracy": float((made == self.gold).mean())}
        if self.task.scheme is not None:
            labels = [*self.task.labels, "B-?"]  # stands for labels that training never showed
            gold = np.where(self.gold < 0, len(labels) - 1, self.gold)
            entry["f1"] = span_scores(gold, made, self.corpus.offsets, labels, self.task.scheme).f1
        return entry

    def temperature(self, model: Model) -> float:
        """The temperature under which the shares of the true actions are likeliest."""
        known = self.gold >= 0
        if not known.any():
            return TEMPERATURE
        gold = self.task.actions_of(np.where(known, self.gold, 0), self.corpus.offsets)
        costs = model.run(self.examples, scores=True).all_costs()
        options = np.geomspace(0.05, 5.0, 41)
        at = np.arange(gold.size)
        surprise = [-np.log(np.maximum(shares(costs, t)[at, gold], 1e-6)).mean() for t in options]
        return float(options[int(np.argmin(surprise))])


def shares(costs: np.ndarray, temperature: float) -> Any:
    """A softmax of costs `[word, action]`: the cheaper, the larger the share; nothing for what is illegal."""
    if costs.shape[0] == 0:
        return np.zeros(costs.shape)
    weight = np.exp((costs.min(axis=1, keepdims=True).astype(np.float64) - costs) / temperature)
    return weight / weight.sum(axis=1, keepdims=True)
