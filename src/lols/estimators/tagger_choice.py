"""Choosing a tagger's model on held-out sentences: the best pass, early stopping, and a temperature for confidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors
from lols.model import Model, make_model
from lols.progress import Progress
from lols.tasks.corpus import Corpus
from lols.tasks.span_scores import span_scores
from lols.tasks.tagging_task import TaggingTask

__all__ = ["TEMPERATURE", "Choice", "shares"]

TEMPERATURE = 0.5


class Choice:
    """Called after every pass: scores the model on the dev data, keeps the best, says when to stop.

    For spans F1 is what counts, else accuracy. Labels that the tagger does not know count as wrong.
    """

    def __init__(
        self,
        task: TaggingTask,
        dev: tuple[Corpus, np.ndarray] | None,
        patience: int | None,
        bar: Progress,
        checkpoint: Any = None,
    ):
        if patience is not None and patience < 1:
            raise ConfigurationError(f"patience is {patience}; it must be at least 1 pass, or None for all passes")
        self.task, self.patience, self.bar = task, patience, bar
        self.kept = None if checkpoint is None else Path(f"{checkpoint}.best")
        self.best: Model | None = None
        self.history: list[dict[str, float]] = []
        self.temperature = TEMPERATURE
        if dev is not None:
            self.corpus, self.gold = dev
            self.examples = task.examples(self.corpus)

    def __call__(self, number: int, model: Model) -> bool:
        """Score a pass; True if training shall stop."""
        made = self.task.labels_of(model.run(self.examples).all_actions(), self.corpus.offsets)
        entry = {"pass": float(number + 1), "accuracy": float((made == self.gold).mean())}
        if self.task.scheme is not None:
            labels = [*self.task.labels, "B-?"]  # stands for labels that training never showed
            gold = np.where(self.gold < 0, len(labels) - 1, self.gold)
            found = span_scores(gold, made, self.corpus.offsets, labels, self.task.scheme)
            entry["f1"] = found.f1
        values = [self._value(e) for e in self.history]
        self.history.append(entry)
        self.bar.say(f"dev {100 * self._value(entry):.2f}")
        if self.best is None or self._value(entry) > max(values):
            self.best = model
        if self.kept is not None and self.best is not None:
            self.best.save(self.kept, task={"name": "best so far", "history": self.history})
        since = len(values) - int(np.argmax([*values, self._value(entry)]))
        return self.patience is not None and since >= self.patience

    @property
    def best_pass(self) -> int | None:
        """The pass that was best, counted from 1."""
        values = [self._value(entry) for entry in self.history]
        return int(np.argmax(values)) + 1 if values else None

    def resume(self, checkpoint: Any) -> None:
        """Take over what was best before an interruption, if that is what the checkpoint goes on from."""
        if checkpoint is None or self.kept is None or not self.kept.exists() or not Path(checkpoint).exists():
            return
        header, tensors = read_tensors(self.kept, "model")
        passes = int(read_tensors(checkpoint, "checkpoint")[0]["pass"])
        try:
            self.history = list(header["task"]["history"])[:passes]
            [float(self._value(entry)) for entry in self.history]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{self.kept}: what was best so far is damaged; delete it") from error
        if self.history:
            self.best = make_model(self.kept, header, tensors, self.task.space)

    def forget(self) -> None:
        """Training is done: the best model is in its own file."""
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)

    @staticmethod
    def _value(entry: dict[str, float]) -> float:
        return entry.get("f1", entry["accuracy"])

    def fit_temperature(self, model: Model) -> None:
        """Choose the temperature under which the shares of the true actions are likeliest on the dev data."""
        known = self.gold >= 0
        if not known.any():
            return
        gold = self.task.actions_of(np.where(known, self.gold, 0), self.corpus.offsets)
        costs = model.run(self.examples, scores=True).all_costs()
        options = np.geomspace(0.05, 5.0, 41)
        at = np.arange(gold.size)
        surprise = [-np.log(np.maximum(shares(costs, t)[at, gold], 1e-6)).mean() for t in options]
        self.temperature = float(options[int(np.argmin(surprise))])


def shares(costs: np.ndarray, temperature: float) -> Any:
    """A softmax of costs `[word, action]`: the cheaper, the larger the share; nothing for what is illegal."""
    if costs.shape[0] == 0:
        return np.zeros(costs.shape)
    weight = np.exp((costs.min(axis=1, keepdims=True).astype(np.float64) - costs) / temperature)
    return weight / weight.sum(axis=1, keepdims=True)
