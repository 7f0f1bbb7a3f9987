"""Taggers, parsers and classifiers as cases for a certificate: from what `fit` takes, or from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.certificates.certify import Case
from lols.certificates.choosing import drawn, some
from lols.certificates.deviations import Deviations
from lols.certificates.places import Naming
from lols.contract.examples import Examples
from lols.errors import ConfigurationError, LolsError
from lols.tasks.tokens.corpus import Corpus

__all__ = ["case_of", "classifier_case", "parser_case", "tagger_case"]


def case_of(estimator: Any, data: Any, reference: str | None, *, limit: int | None, seed: int) -> Case:
    """The case of an estimator and a pair of inputs and truths, as for `fit`."""
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.parsing.input import checked_trees
    from lols.tasks.tables.estimator import CostSensitiveClassifier
    from lols.tasks.tagging.estimator import Tagger
    from lols.tasks.tagging.input import check_lengths, checked_labels, numbered

    if not isinstance(estimator, Tagger | Parser | CostSensitiveClassifier):
        raise refused(type(estimator).__name__)
    estimator._check_fitted()
    if not isinstance(data, tuple) or len(data) < 2:
        raise ConfigurationError("an estimator is certified on a pair, inputs and truths, as for `fit`")
    X, y = data[:2]
    if isinstance(estimator, CostSensitiveClassifier):
        rows = estimator._rows(X)
        targets = estimator._targets(rows.rows, y, data[2] if len(data) > 2 else None, known_targets(estimator))
        examples = estimator.task_.examples(rows, targets.labels, targets.vectors)
        return classifier_case(estimator, *_drawn(examples, limit, seed), reference)
    corpus = estimator._corpus(X)
    check_lengths(corpus.offsets)
    if isinstance(estimator, Parser):
        examples, notes = parser_examples(estimator, corpus, *checked_trees(X, y))
        return parser_case(estimator, *_drawn(examples, limit, seed), reference, notes)
    numbers, names = numbered(checked_labels(X, y))
    unknown = [name for name in names if name not in set(estimator.task_.labels)]
    if unknown:
        raise LolsError(f"label '{unknown[0]}' was never seen in training: leave its sentences out")
    examples = tagger_examples(estimator, corpus, numbers, names)
    return tagger_case(estimator, *_drawn(examples, limit, seed), reference)


def refused(what: str) -> ConfigurationError:
    """Why there is no certificate of something."""
    return ConfigurationError(
        f"{what}: certify one policy at a time, a tagger's, a parser's or a classifier's, or a lols.Model"
    )


def known_targets(classifier: Any) -> Any:
    """What a classifier knows of classes and costs."""
    from lols.tasks.tables.input import Targets

    return Targets(classifier.task_.classes, None, classifier.task_.matrix, None)


def _drawn(examples: Examples, limit: int | None, seed: int) -> tuple[Examples, int]:
    count = len(examples)
    chosen = drawn(count, limit, seed)
    return (some(examples, chosen) if chosen.size < count else examples), count


def _teacher(estimator: Any, name: str | None) -> tuple[Any, str]:
    chosen = name or estimator.reference
    return estimator.task_.reference(chosen), chosen


# --- taggers ----------------------------------------------------------------------------------------------------------


def tagger_examples(tagger: Any, corpus: Corpus, numbers: np.ndarray, names: Sequence[str]) -> Examples:
    """Sentences with their true labels, all of them known to the tagger."""
    from lols.tasks.tagging.clusters import with_clusters

    task = tagger.task_
    return task.examples(with_clusters(corpus, tagger.clusters), task.number(names)[numbers])


def tagger_case(tagger: Any, examples: Examples, of: int, reference: str | None) -> Case:
    """A tagger: decisions are called by their labels, as the tagger itself writes them."""
    task = tagger.task_
    teacher, name = _teacher(tagger, reference)
    notes = []
    if task.direction == "backward":
        notes.append("Steps are counted from the last word to the first, as the tagger goes.")
    labels = list(task.inner_labels)
    return Case(tagger._fitted, examples, teacher, Naming(lambda _, a: labels[a]), of, name, tuple(notes))


# --- parsers ----------------------------------------------------------------------------------------------------------


def parser_examples(
    parser: Any, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str]
) -> tuple[Examples, list[str]]:
    """Sentences with their trees as the parser would be taught them, and what was changed for that."""
    from lols.tasks.parsing.input import punctuation
    from lols.tasks.parsing.projective import lift
    from lols.tasks.parsing.treebank import ARROW, UNLABELLED, Trees
    from lols.tasks.parsing.trees import single_root

    task, notes = parser.task_, []
    missing = [name for name in task.columns if name not in corpus.columns]
    if missing:
        raise LolsError(f"the parser looks at the column '{missing[0]}', which is not there")
    if task.roots == "one":
        before = heads
        heads, mended = single_root(heads, corpus.offsets)
        if mended.size:
            names = [*names, UNLABELLED]  # a word below another one is no root
            numbers = np.where(before != heads, len(names) - 1, numbers)
            notes.append(f"Sentences with several roots: {mended.size:,}; all but the first root are attached to it.")
    lifted = lift(heads, numbers, corpus.offsets)
    moved = np.flatnonzero(lifted.origin >= 0)
    if moved.size:
        notes.append(f"Words lifted to make trees projective: {moved.size:,}; losses are those of the trees as taught.")
    if task.labelling == "none":
        trees = Trees(lifted.heads, (lifted.heads < 0).astype(np.int64))
    else:
        known = {name: k for k, name in enumerate(task.relations)}
        relations = np.array([known.get(name, -1) for name in names], np.int64)[numbers]
        for k in moved.tolist():
            way = f"{names[numbers[k]]}{ARROW}{names[lifted.origin[k]]}"
            relations[k] = known.get(way, relations[k])
        unseen = {names[n] for n in np.unique(numbers[(relations < 0) & (lifted.heads >= 0)]).tolist()}
        if unseen:
            notes.append(f"Never seen in training, and so always wrong: {', '.join(sorted(unseen))}.")
        trees = Trees(lifted.heads, relations)
    weights = None if parser.punctuation else (~punctuation(corpus)).astype(np.float64)
    return task.examples(corpus, trees, weights), notes


def parser_case(parser: Any, examples: Examples, of: int, reference: str | None, notes: Sequence[str] = ()) -> Case:
    """A parser: decisions are called by their transitions."""
    from lols.tasks.parsing.inspect import action_name

    task = parser.task_
    teacher, name = _teacher(parser, reference)
    names = [action_name(task, a) for a in range(len(task.actions))]
    more = [f"The greedy search is judged, not the beam of {parser.beam}."] if parser.beam > 1 else []
    return Case(parser.model_, examples, teacher, Naming(lambda _, a: names[a]), of, name, (*notes, *more))


# --- classifiers ------------------------------------------------------------------------------------------------------


def classifier_case(classifier: Any, examples: Examples, of: int, reference: str | None) -> Case:
    """A classifier: decisions are called by the classes below, at each node of the tree."""
    from lols.tasks.tables.inspect import child_name

    task = classifier.task_
    teacher, named = _teacher(classifier, reference)
    children = task.tree.children

    def nodes(deviations: Deviations, taken: np.ndarray) -> np.ndarray:
        """The node at which each decision was made."""
        made = np.zeros(taken.size, np.int64)
        for step in range(1, int(deviations.step.max(initial=0)) + 1):
            now = np.flatnonzero(deviations.step == step)
            made[now] = children[made[now - 1], taken[now - 1]]
        return made

    def name_of(node: int, action: int) -> str:
        return child_name(task, node, action).partition(" (node ")[0]

    naming = Naming(name_of, nodes)
    return Case(classifier._fitted, examples, teacher, naming, of, named)
