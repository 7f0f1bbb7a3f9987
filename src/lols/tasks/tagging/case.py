"""A tagger and labelled sentences as a case for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.errors import LolsError, short
from lols.tasks.case import Case, Naming, draw_examples, teacher_of
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import read_like_training
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.input import check_lengths, checked_labels, numbered

__all__ = ["tagged_file_case", "tagger_case"]


def tagger_case(tagger: Any, X: Any, y: Any, reference: str | None, limit: int | None, seed: int) -> Case:
    """The case of sentences and tags as `fit` takes them."""
    corpus = tagger._corpus(X)
    check_lengths(corpus.offsets)
    numbers, names = numbered(checked_labels(X, y))
    unknown = [name for name in names if name not in set(tagger.task_.labels)]
    if unknown:
        raise LolsError(f"label '{short(unknown[0])}' was never seen in training: leave its sentences out")
    return _case(tagger, corpus, numbers, names, reference, limit, seed)


def tagged_file_case(
    tagger: Any, path: str, columns: FileColumns, reference: str | None, limit: int | None, seed: int
) -> Case:
    """The case of a file."""
    data, _ = read_like_training(path, columns)
    data.check_known(tagger.task_, "leave such sentences out")
    return _case(tagger, data.corpus, data.numbers, data.names, reference, limit, seed)


def _case(
    tagger: Any,
    corpus: Corpus,
    numbers: np.ndarray,
    names: Sequence[str],
    reference: str | None,
    limit: int | None,
    seed: int,
) -> Case:
    """Decisions are named by labels, as the tagger itself writes them."""
    task = tagger.task_
    examples = task.examples(with_clusters(corpus, tagger.clusters), task.number(names)[numbers])
    chosen, count = draw_examples(examples, limit, seed)
    teacher, name = teacher_of(tagger, reference)
    backward = task.direction == "backward"
    notes = ("Steps are counted from the last word to the first, as the tagger goes.",) if backward else ()
    labels = list(task.inner_labels)
    naming = Naming(lambda _, a: labels[a])
    return Case(tagger._fitted, chosen, teacher, naming, count, name, notes, tagger.reference)
