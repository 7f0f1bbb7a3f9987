"""A parser that goes on: relations that are new come after those so far, which keep their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from lols.tasks.parsing.task import ParsingTask
from lols.tasks.parsing.treebank import Prepared, Trees, taught


def with_treebank(task: ParsingTask, prepared: Prepared, offsets: np.ndarray) -> tuple[ParsingTask, Trees]:
    """The task with what a treebank has more, and its trees as that numbers relations."""
    if task.labelling == "none":
        return task, Trees(prepared.trees.heads, (prepared.trees.heads < 0).astype(np.int64))
    names, numbers = _joined(task.relations, prepared.names)
    return _with_actions(task, names, Trees(prepared.trees.heads, numbers[prepared.trees.relations]), offsets)


def taught_on(
    task: ParsingTask, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray
) -> tuple[ParsingTask, Trees]:
    """The same for a few sentences: words are lifted in ways that the task knows, and no others are learned."""
    if task.labelling == "none":
        return task, taught(task, heads, numbers, names, offsets).trees
    used = [names[k] for k in np.unique(numbers[heads >= 0]).tolist()]
    wide, _ = _joined(task.relations, used)
    known = SimpleNamespace(relations=wide, labelling=task.labelling, roots=task.roots)
    return _with_actions(task, wide, taught(known, heads, numbers, names, offsets).trees, offsets)


def places_of(old: ParsingTask, new: ParsingTask) -> np.ndarray:
    """The numbers that the actions of a task have in one that it grew to."""
    number = {action: k for k, action in enumerate(new.actions)}
    return np.array([number[action] for action in old.actions], np.int64)


def _joined(old: Sequence[str], more: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """All names, those so far first; and the numbers of the further ones."""
    names = list(dict.fromkeys([*old, *more]))
    number = {name: k for k, name in enumerate(names)}
    return names, np.array([number[name] for name in more], np.int64)


def _with_actions(task: ParsingTask, names: list[str], trees: Trees, offsets: np.ndarray) -> tuple[ParsingTask, Trees]:
    """The task with these relations, and with the actions that the trees need."""
    own = np.arange(trees.heads.size) - np.repeat(offsets[:-1], np.diff(offsets))
    labelled = trees.relations >= 0
    right, left = list(task.right), list(task.left)
    for numbers, side in ((right, (trees.heads >= 0) & (trees.heads < own)), (left, trees.heads > own)):
        numbers += [r for r in np.unique(trees.relations[labelled & side]).tolist() if r not in numbers]
    if names == task.relations and (right, left) == (task.right, task.left):
        return task, trees
    return type(task)(names, right, left, task.root, **task.options()), trees
