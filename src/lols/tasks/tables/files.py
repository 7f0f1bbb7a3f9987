"""Training on files of rows: looked at once, then held in memory, or read again in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError, LolsError, shown
from lols.io.costs import cost_matrix_of
from lols.tasks.pieces import in_order
from lols.tasks.replay import ReplayedFile
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.fields import MEMORY
from lols.tasks.tables.input import check_lists, column_kinds, missing_texts
from lols.tasks.tables.options import TableFiles
from lols.tasks.tables.reading import (
    LabelNumbers,
    TablePiece,
    TableReader,
    TargetColumns,
    check_columns,
    encoded,
    open_files,
    target_columns,
)
from lols.tasks.tables.rows import Rows, joined
from lols.tasks.tables.scan import ColumnScan
from lols.tasks.tables.stream import fit_stream
from lols.tasks.tables.targets import Targets, together
from lols.tasks.tables.weights import class_weights, product

FEW = 12  # classes whose counts are shown


def fit_files(
    estimator: Any,
    paths: Sequence[str],
    layout: TableFiles,
    *,
    dev: str | None = None,
    memory: int = MEMORY,
    weight: str | None = None,
    seconds: dict[str, float] | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
    **fitting: Any,
) -> dict[str, Any]:
    """Train a classifier on files, and say what was in them.

    Tables whose cells take more than `memory` bytes are read again in every pass, and shuffled as far as a quarter of
    that memory goes. `tell` is called with what is in the files before training begins, and the time from bytes to
    columns of texts is added to `seconds["reading"]`.
    """
    replayed = [path for path in paths if isinstance(path, ReplayedFile)]
    source = open_files([path for path in paths if not isinstance(path, ReplayedFile)], layout)
    goes_on, path = estimator._goes_on(), source.paths[0]
    known = estimator.task_ if goes_on else None
    wanted, classes, kinds, names = columns_in_use(estimator, source, layout, weight, known)
    if known is not None:
        absent = [column.name for column in known.encoder.columns if column.name not in kinds]
        if absent:
            raise LolsError(f"{path}: there is no column '{absent[0]}', which the model was trained with")
    grows = known is not None and known.matrix is None and not wanted.costs
    of_matrix = known is not None and known.matrix is not None
    labels = LabelNumbers(wanted.label, classes, estimator.label_map, grows=grows, of_matrix=of_matrix)
    how: Any = {"threads": estimator.threads, "seconds": seconds}
    reader = TableReader(source, wanted, list(kinds), labels, **how)
    missing = missing_texts(estimator.missing)
    scans = [ColumnScan(name, kind, missing, len(kinds)) for name, kind in kinds.items()]
    held, rows = reader.scan(scans, memory)
    if held is None:
        _check_large(estimator, path, goes_on, dev, bool(fitting.get("resume")))
    names_of, renumber = labels.classes()
    classes_of = names_of if known is None else _grown(known.classes, names_of)
    matrix = None if estimator.cost_matrix is None else cost_matrix_of(estimator.cost_matrix, classes_of)
    if not goes_on:
        estimator.n_features_in_, estimator.feature_names_in_ = len(names), np.array(names, dtype=object)
    estimator.files_ = TableFiles(wanted.label, layout.header, layout.separator, layout.cost_columns).describe()
    counts = reader.counts[renumber.argsort()] if renumber.size else reader.counts
    facts = facts_of(scans, rows, dict(zip(classes_of, counts.tolist(), strict=True)), held is not None)
    if known is not None and len(classes_of) > len(known.classes):
        facts["new_classes"] = [str(name) for name in classes_of[len(known.classes) :]]
    if dev is not None:  # a mistake is better told before any work
        check_columns(open_files([dev], layout), list(kinds), wanted.label)
    if tell is not None:
        tell(facts)
    by_class = class_weights(estimator.class_weight, classes_of, counts)
    empty = Targets(classes_of, None, matrix, None)
    encoder = partial(estimator.make_encoder, scans, rows)
    held_out = None if dev is None else partial(dev_rows, estimator, dev, layout, wanted, empty, by_class, how)
    if held is None:
        estimator.settle(empty, None)
        made = encoder(estimator.chosen_)
        scans.clear()  # in a wide table they take as much as many rows

        def pieces() -> Iterator[tuple[Rows, Targets]]:
            return ((part, weighed(targets, by_class)) for part, targets in reader.encoded(made, empty, renumber))

        fit_stream(estimator, pieces, made, empty, counts, None if held_out is None else held_out(made), memory // 4)
        return facts
    shares: dict[int, np.ndarray] = {}
    labels.known = True  # what is replayed has no further classes
    sources = [source] * len(held)
    for share in replayed:
        old = open_files([share], layout)
        check_columns(old, [*kinds, *wanted.names])
        more = TableReader(old, wanted, list(kinds), labels, **how)
        for piece, chosen in _shares(share, list(more.pieces())):
            shares[len(held)] = chosen
            held.append(piece)
            sources.append(old)
    parts = [_targets(piece, empty, renumber, shares.get(k)) for k, piece in enumerate(held)]
    targets = weighed(together(parts), by_class)

    def encode(settings: dict[str, Any]) -> tuple[TableEncoder, Rows]:
        made = estimator.task_.encoder if goes_on else encoder(settings)
        pieces = zip(held, sources, strict=True)
        parts = list(in_order(lambda given: encoded(made, *given), pieces, estimator.threads))
        for k, chosen in shares.items():
            parts[k] = parts[k].take(chosen)
        return made, joined(parts)

    if not goes_on:
        kept = {name: fitting.get(name) for name in ("checkpoint", "resume")}
        estimator.settle(targets, encode, rows * len(kinds), facts["numbers"], **kept)
    made, encoded_rows = encode(estimator.chosen_)
    held.clear()
    dev_data = None if held_out is None else held_out(made)
    estimator.fit_rows(made, encoded_rows, targets, dev=dev_data, goes_on=goes_on, **fitting)
    return facts


class ColumnsInUse(NamedTuple):
    """What is read of a table."""

    wanted: TargetColumns
    classes: list[Any] | None  # if they are known
    kinds: dict[str, str | None]  # of the columns that are looked at
    names: list[str]  # of all columns but those wanted


def columns_in_use(
    estimator: Any, source: Any, layout: TableFiles, weight: str | None, known: Any = None
) -> ColumnsInUse:
    """The columns of a table, checked; `known` is the task of a model that goes on."""
    check_lists(estimator)
    given = estimator.classes if known is None else known.classes
    wanted, classes = target_columns(source, layout, weight, given)
    if wanted.costs and estimator.cost_matrix is not None and known is None:
        raise ConfigurationError("cost_matrix has no effect beside costs of each row: leave out one of them")
    names = [name for name in source.names if name not in wanted.names]
    if not names:
        raise LolsError(f"{source.paths[0]}: there is no column beside the labels")
    kinds = column_kinds(names, estimator.categorical, estimator.numerical, estimator.ignore, estimator.text)
    return ColumnsInUse(wanted, classes, dict(kinds), names)


def _check_large(estimator: Any, path: str, goes_on: bool, dev: str | None, resume: bool) -> None:
    """Refuse what cannot be done with a table that is larger than memory."""
    if goes_on:
        raise ConfigurationError(
            f"{path}: the table is larger than --memory, and a model goes on only with tables in memory: allow more, "
            "or give it in parts"
        )
    if estimator.calibrate and dev is None:
        raise ConfigurationError(
            f"{path}: the table is larger than memory, so nothing is held out of it: calibrate needs dev data (--dev), "
            "or more --memory"
        )
    if resume:
        raise ConfigurationError(
            f"{path}: the table is larger than memory, so its training has no checkpoint to resume from; start again "
            "without --resume, or allow more with --memory"
        )


def _grown(known: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The classes so far, and further ones of the same type; in files all are texts."""
    kind = type(known[0])
    try:
        return [*known, *(name if kind is str else kind(name) for name in names[len(known) :])]
    except ValueError:
        raise LolsError(
            f"the labels of the file have new classes such as {shown(names[-1])}, but those of the model are numbers"
        ) from None


def _targets(piece: TablePiece, known: Targets, renumber: np.ndarray, chosen: np.ndarray | None) -> Targets:
    """What is right in a piece, or in some rows of it."""
    assert piece.labels is not None
    made = known._replace(labels=renumber[piece.labels], vectors=piece.costs, weights=piece.weights)
    return made if chosen is None else made.take(chosen)


def weighed(targets: Targets, by_class: np.ndarray | None) -> Targets:
    """The same with the weights of classes."""
    weights = None if by_class is None else by_class[targets.cheapest]
    return targets._replace(weights=product(targets.weights, weights))


def _shares(path: ReplayedFile, pieces: list[TablePiece]) -> Iterator[tuple[TablePiece, np.ndarray]]:
    """The pieces of a table that is replayed, and which rows of each are taken."""
    chosen, first = path.chosen(sum(piece.rows for piece in pieces)), 0
    for piece in pieces:
        own = chosen[(chosen >= first) & (chosen < first + piece.rows)] - first
        first += piece.rows
        if own.size:
            yield piece, own


def dev_rows(
    estimator: Any,
    path: str,
    layout: TableFiles,
    wanted: TargetColumns,
    known: Targets,
    by_class: np.ndarray | None,
    how: dict[str, Any],
    encoder: TableEncoder,
) -> tuple[Rows, Targets]:
    """The rows of a table to choose on, and what is right."""
    source, names = open_files([path], layout), [column.name for column in encoder.columns]
    check_columns(source, names, wanted.label)
    columns, _ = target_columns(source, layout.changed(label=wanted.label), classes=known.classes)
    reader = TableReader(source, columns, names, LabelNumbers(wanted.label, known.classes, estimator.label_map), **how)
    parts: list[Rows] = []
    targets: list[Targets] = []
    for piece in reader.pieces():
        parts.append(encoded(encoder, piece, source))
        targets.append(_targets(piece, known, np.arange(len(known.classes)), None))
    return joined(parts), weighed(together(targets), by_class)


# --- what was read ---


def facts_of(scans: Sequence[ColumnScan], rows: int, classes: dict[Any, int], in_memory: bool) -> dict[str, Any]:
    """What is in the files."""
    kinds = [scan.kind for scan in scans]
    facts = {
        "rows": rows,
        "columns": len(scans),
        "numbers": kinds.count("number"),
        "categories": kinds.count("category"),
        "missing_cells": sum(scan.empty for scan in scans),
        "dropped_cells": sum(scan.dropped for scan in scans),
        "classes": {str(name): int(count) for name, count in classes.items()},
        "in_memory": in_memory,
    }
    return facts | ({"texts": kinds.count("text")} if "text" in kinds else {})


def table_notes(facts: dict[str, Any]) -> list[str]:
    """What was read, in a few lines."""
    gaps = f", {facts['missing_cells']:,} missing cells" if facts["missing_cells"] else ""
    columns = f"{facts['columns']} column{'s' if facts['columns'] != 1 else ''}"
    kinds = f"{facts['numbers']} of numbers, {facts['categories']} of categories"
    kinds += f", {facts['texts']} of texts" if "texts" in facts else ""
    notes = [f"{facts['rows']:,} rows, {columns} ({kinds}){gaps}"]
    classes = facts["classes"]
    counts = ": " + ", ".join(f"{name} {count:,}" for name, count in classes.items()) if len(classes) <= FEW else ""
    notes.append(f"{len(classes)} class{'es' if len(classes) != 1 else ''}{counts}")
    unseen = sum(count == 0 for count in classes.values())
    if unseen:
        notes.append(f"{unseen} of the classes are in no row, so nothing can be learned about them")
    if "new_classes" in facts:
        notes.append(f"new to the model: {', '.join(facts['new_classes'][:FEW])}")
    if facts["dropped_cells"]:
        notes.append(f"{facts['dropped_cells']:,} cells of columns with too many categories: the rarest count as one")
    if not facts["in_memory"]:
        notes.append("larger than --memory: the files are read again in every pass, and there is no checkpoint")
    return notes
