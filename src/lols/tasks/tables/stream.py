"""Training on rows that are too many to be held: read again in every pass, mixed as far as memory goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from lols.errors import ConfigurationError
from lols.kernels.hashing import mix
from lols.tasks.choice import Choice
from lols.tasks.tables.importances import NO_ROWS
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.targets import Targets, together
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.tree_of_labels import centres_of, make_tree
from lols.training.order import shuffled
from lols.training.progress import Progress
from lols.training.stream import Stream

Piece = tuple[Rows, Targets]


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
    total, passes = int(counts.sum()), int(estimator.chosen_["passes"])
    estimator.batch_size_ = estimator.batch_for(total)
    losses: list[float] = []
    training: tuple[ClassificationTask, Stream, Choice] | None = None
    with Progress(estimator.progress, passes * total, "training", "rows", passes) as bar:
        done = 0
        for number in range(passes):
            before = np.zeros(2) if training is None else training[1].sums.copy()
            for rows, targets in mixed(pieces(), room):
                if training is None:
                    centres = partial(centres_of, rows, targets.cheapest, len(known.classes))
                    tree = make_tree(estimator.chosen_["tree"], known.classes, counts, centres)
                    task = ClassificationTask(known.classes, tree, encoder, matrix=known.matrix, skill=estimator.skill)
                    choice = Choice(task.space, scorer(task, held_out), estimator.patience, bar)
                    training = task, _new_stream(estimator, task), choice
                task, stream, choice = training
                order = None
                if estimator.shuffle:
                    key = mix(mix(mix(estimator.seed, 0x0DE2), number), done)
                    order = shuffled(rows.rows, key, estimator.NEIGHBOURS)
                stream.learn(task.examples(rows, targets), order)
                done += rows.rows
                if number == 0:
                    estimator.look_at(rows, NO_ROWS if done == rows.rows else estimator._seen)
                bar.advance(done, loss=float(stream.sums[0] / max(stream.sums[1], 1.0)))
                del rows, targets  # before the next ones are read
            assert training is not None
            task, stream, choice = training
            loss, seen = stream.sums - before
            losses.append(float(loss / max(seen, 1.0)))
            enough = held_out is not None and choice(number, stream.model())
            bar.end_pass(number + 1, loss=losses[-1])
            if enough:
                break
    estimator.set_fitted(task, stream, choice, losses, total, held_out)


def mixed(pieces: Iterator[Piece], room: int) -> Iterator[Piece]:
    """Pieces put together until they take `room` bytes."""
    held: list[Piece] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += piece[0].nbytes
        if size >= room:
            whole, held, size = _together(held), [], 0  # what it was made of is not kept while it is learned from
            del piece
            yield whole
            del whole
    if held:
        yield _together(held)


def _together(pieces: list[Piece]) -> Piece:
    return joined([rows for rows, _ in pieces]), together([targets for _, targets in pieces])


def scorer(task: ClassificationTask, held_out: tuple[Rows, Targets] | None) -> Any:
    """What scores a model on held-out rows, if there are any."""
    if held_out is None:
        return None
    examples = task.examples(*held_out)
    return lambda model: {"cost": model.evaluate(examples)}


def _new_stream(estimator: Any, task: ClassificationTask) -> Stream:
    try:
        return estimator._trainer(task).stream()
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; or hold the table in memory, by more --memory") from None
