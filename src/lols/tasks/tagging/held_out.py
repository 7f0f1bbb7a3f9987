"""What a tagger is scored by on held-out sentences, and which of its tags there are right."""

from __future__ import annotations

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.tasks.tagging.span_scores import span_scores
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import Corpus
from lols.training.calibration import Judged, most_judged
from lols.training.model import Model

TEMPERATURE = 0.5  # of shares that no held-out data have calibrated


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

    def judged(self, model: Model) -> Judged:
        """The tags of a model, and which are right."""
        return judged_tags(self.task, model, self.examples, self.corpus.offsets, self.gold)


def judged_tags(task: TaggingTask, model: Model, examples: Examples, offsets: np.ndarray, gold: np.ndarray) -> Judged:
    """The tags that a model gives to sentences, as many as a calibration needs, and which are right."""
    count = int(np.searchsorted(offsets, most_judged(len(task.inner_labels)), side="left"))
    if count < offsets.size - 1:
        examples, offsets = some(examples, np.arange(count)), offsets[: count + 1]
    run = model.run(examples, scores=True)
    taken = run.all_actions()
    right = task.labels_of(taken, offsets) == gold[: int(offsets[-1])]
    return Judged(run.all_costs(), taken, task.in_order(right, offsets))  # turned round twice is as it was
