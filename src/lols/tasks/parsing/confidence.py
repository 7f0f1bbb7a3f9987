"""How sure a parser is of heads: the confidence in the step that attached a word, or that left it as the root."""

from __future__ import annotations

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.engine.compile.kernel import kernel
from lols.tasks.parsing.space import LABEL, SHIFT
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
    sure = calibration.confidence(run.all_shares()[deciding(task, actions, corpus.offsets)])
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
    decided = deciding(task, actions, offsets)
    built = task.trees if task.labelling == NETWORK else task.parses
    right = built(actions, offsets).heads == heads[: int(offsets[-1])]
    return Judged(run.all_costs()[decided], actions[decided], right)


def deciding(task: ParsingTask, actions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The step that decides on the head of each word, counted over all sentences.

    That of a single root, which no step attaches, is the last step of its sentence: it leaves the word alone.
    """
    lengths = np.diff(offsets)
    steps = task.steps_of(lengths)
    decided = np.repeat(np.cumsum(steps) - 1, lengths)
    stack = np.empty(int(lengths.max(initial=0)), np.int64)
    _find_deciding(actions, steps, offsets, task.space.settings["kinds"], task.labelling == "second", stack, decided)
    return decided


@kernel
def _find_deciding(actions, steps, offsets, kinds, labels_later, stack, decided):
    """Replay actions; the stack has room for the words of the longest sentence."""
    at = 0
    for k in range(offsets.size - 1):
        depth, front = 0, 0
        for _ in range(steps[k]):
            kind = kinds[actions[at]]
            if kind == SHIFT:
                stack[depth] = front
                depth += 1
                front += 1
            elif kind == LABEL or not labels_later:
                depth -= 1
                decided[offsets[k] + stack[depth]] = at - 1 if kind == LABEL else at
            at += 1
