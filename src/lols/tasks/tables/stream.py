"""Training on rows that are too many to be held: read again in every pass, mixed as far as memory goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from lols.contract.hashing import mix
from lols.errors import ConfigurationError
from lols.tasks.choice import Choice
from lols.tasks.tables.encoding import Rows, joined
from lols.tasks.tables.input import Targets, centres_of, make_tree
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.training.progress import Progress
from lols.training.run import shuffled
from lols.training.stream import Stream

__all__ = ["fit_stream", "scorer"]

Piece = tuple[Rows, np.ndarray]  # encoded rows, and the numbers of their classes


def fit_stream(
    estimator: Any,
    pieces: Callable[[], Iterator[Piece]],
    encoder: Encoder,
    known: Targets,
    counts: np.ndarray,
    held_out: tuple[Rows, Targets] | None,
    room: int,
) -> None:
    """Train on pieces that are made anew in every pass; up to `room` bytes of them are shuffled together."""
    total = int(counts.sum())
    estimator.batch_size_ = estimator.batch_for(total)
    losses: list[float] = []
    training: tuple[ClassificationTask, Stream, Choice] | None = None
    with Progress(estimator.progress, estimator.passes * total, "training", "rows") as bar:
        done = 0
        for number in range(estimator.passes):
            before = np.zeros(2) if training is None else training[1].sums.copy()
            for rows, labels in mixed(pieces(), room):
                if training is None:
                    centres = partial(centres_of, rows, labels, len(known.classes))
                    tree = make_tree(estimator.tree, known.classes, counts, centres)
                    task = ClassificationTask(known.classes, tree, encoder, matrix=known.matrix, skill=estimator.skill)
                    choice = Choice(task.space, scorer(task, held_out), estimator.patience, bar)
                    training = task, _new_stream(estimator, task), choice
                task, stream, choice = training
                order = None
                if estimator.shuffle:
                    key = mix(mix(mix(estimator.seed, 0x0DE2), number), done)
                    order = shuffled(rows.rows, key, estimator.NEIGHBOURS)
                stream.learn(task.examples(rows, labels), order)
                done += rows.rows
                bar.advance(done, loss=float(stream.sums[0] / max(stream.sums[1], 1.0)))
            assert training is not None
            task, stream, choice = training
            loss, seen = stream.sums - before
            losses.append(float(loss / max(seen, 1.0)))
            if held_out is not None and choice(number, stream.model()):
                break
    estimator.set_fitted(task, stream, choice, losses, total, held_out)


def mixed(pieces: Iterator[Piece], room: int) -> Iterator[Piece]:
    """Pieces put together until they take `room` bytes."""
    parts: list[Rows] = []
    labels: list[np.ndarray] = []
    size = 0
    for rows, numbers in pieces:
        parts.append(rows)
        labels.append(numbers)
        size += rows.nbytes
        if size >= room:
            yield joined(parts), np.concatenate(labels)
            parts, labels, size = [], [], 0
    if parts:
        yield joined(parts), np.concatenate(labels)


def scorer(task: ClassificationTask, held_out: tuple[Rows, Targets] | None) -> Any:
    """What scores a model on held-out rows, if there are any."""
    if held_out is None:
        return None
    examples = task.examples(held_out[0], held_out[1].labels, held_out[1].vectors)
    return lambda model: {"cost": model.evaluate(examples)}


def _new_stream(estimator: Any, task: ClassificationTask) -> Stream:
    try:
        return Stream(estimator._trainer(task))
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or hold the table in memory, by more --memory") from None
