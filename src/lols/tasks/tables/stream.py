"""Training on rows that are too many to be held: read again in every pass, mixed as far as memory goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.tasks.tables.importances import NO_ROWS
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.targets import Targets, together
from lols.tasks.tables.task import ClassificationTask, Encoder
from lols.tasks.tables.tree_of_labels import centres_of, make_tree
from lols.training.sources import InPieces

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
    total = int(counts.sum())
    estimator.batch_size_ = estimator.batch_for(total)
    waiting = mixed(pieces(), room)  # of the first pass, whose first piece decides the tree
    first: list[Piece] = [next(waiting)]
    rows, targets = first[0]
    centres = partial(centres_of, rows, targets.cheapest, len(known.classes))
    tree = make_tree(estimator.chosen_["tree"], known.classes, counts, centres)
    task = ClassificationTask(known.classes, tree, encoder, matrix=known.matrix, skill=estimator.skill)
    seen = 0
    del rows, targets, centres

    def read() -> Iterator[Examples]:
        nonlocal seen
        begun = iter([first.pop()]) if first else None
        for rows, targets in chain(begun, waiting) if begun is not None else mixed(pieces(), room):
            if seen < total:
                estimator.look_at(rows, estimator._seen if seen else NO_ROWS)
                seen += rows.rows
            yield task.examples(rows, targets)
            del rows, targets  # before the next ones are read

    estimator.fit_pieces(task, InPieces(read, total, unit="rows"), held_out)


def mixed(pieces: Iterator[Piece], room: int) -> Iterator[Piece]:
    """InPieces put together until they take `room` bytes."""
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
