"""How sure a parser is of heads: the confidence in the step that attached a word, or that left it as the root."""

from __future__ import annotations

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.tasks.parsing.task import NETWORK, ParsingTask
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.corpus import Corpus
from lols.training.calibration import Judged, most_judged
from lols.training.model import Model


def parse_confidently(task: ParsingTask, corpus: Corpus, model: Model) -> tuple[Trees, np.ndarray]:
    """Trees, and how likely each head is to be right."""
    calibration = model.calibrated()
    run = model.run(task.examples(corpus), temperature=calibration.temperature)
    actions = run.all_actions()
    sure = calibration.confidence(run.all_shares()[task.replay(actions, corpus.offsets)[1]])
    if task.labelling == NETWORK:  # which gives labels while it remembers the words
        return task.parsing(corpus)(model), sure
    return task.parses(actions, corpus.offsets), sure


def judged_heads(task: ParsingTask, model: Model, examples: Examples, offsets: np.ndarray, heads: np.ndarray) -> Judged:
    """The steps that decide on heads, as many as a calibration needs, and which of these are right."""
    count = int(np.searchsorted(offsets, most_judged(2 * len(task.actions)), side="left"))
    if count < offsets.size - 1:
        examples, offsets = some(examples, np.arange(count)), offsets[: count + 1]
    run = model.run(examples, scores=True)
    actions = run.all_actions()
    trees, decided = task.replay(actions, offsets)
    built = trees if task.labelling == NETWORK else task.restored(trees, offsets)
    right = built.heads == heads[: int(offsets[-1])]
    return Judged(run.all_costs()[decided], actions[decided], right)
