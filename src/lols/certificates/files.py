"""Labelled files as cases for a certificate of the model that reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.certificates.certify import Case
from lols.certificates.choosing import Draw, drawn, runs, some
from lols.certificates.tasks import (
    classifier_case,
    parser_case,
    parser_examples,
    tagger_case,
    tagger_examples,
)
from lols.errors import LolsError
from lols.tasks.tables.encoding import Rows, joined

__all__ = ["table_case", "tagged_case", "treebank_case"]


def tagged_case(tagger: Any, file: str, columns: Any, reference: str | None, limit: int | None, seed: int) -> Case:
    """A tagger and a file of sentences."""
    from lols.tasks.tagging.files import read_files, tagged

    sentences, columns = read_files([file], columns)
    columns.check(sentences[0])
    data = tagged(sentences, columns)
    data.check_labels()
    strange = tagger.task_.number(data.names) < 0
    if strange.any():
        first = int(strange[data.numbers].argmax())
        raise LolsError(
            f"{data.place(first)}: label '{data.names[int(data.numbers[first])]}' was never seen in training; name the "
            "right column with --column, or leave such sentences out"
        )
    examples = tagger_examples(tagger, data.corpus, *data.labels)
    return tagger_case(tagger, some(examples, drawn(len(examples), limit, seed)), len(examples), reference)


def treebank_case(parser: Any, file: str, columns: Any, reference: str | None, limit: int | None, seed: int) -> Case:
    """A parser and a treebank."""
    from lols.tasks.parsing.files import read_treebank, treebank

    data = treebank(read_treebank([file], columns), columns)
    examples, notes = parser_examples(parser, data.corpus, *data.trees)
    chosen = some(examples, drawn(len(examples), limit, seed))
    return parser_case(parser, chosen, len(examples), reference, notes)


def table_case(classifier: Any, source: Any, label: str, reference: str | None, limit: int | None, seed: int) -> Case:
    """A classifier and a table, of which no more than the rows that may be drawn are held."""
    from lols.tasks.tables.cells import cells_of_batch
    from lols.tasks.tables.files import LabelNumbers, TablePiece, check_columns, encoded, table_encoder

    encoder, task = table_encoder(classifier), classifier.task_
    names = [column.name for column in encoder.columns]
    check_columns(source, names, label)
    numbers = LabelNumbers(label, [str(name) for name in task.classes], classifier.label_map)
    draw = Draw(limit, seed)
    parts: list[Rows] = []
    labels: list[np.ndarray] = []
    for batch in source.batches():
        cells = cells_of_batch(batch, [*names, label], source.typed)
        true = numbers.number(cells.pop(label), draw.count, source)
        rows = encoded(encoder, TablePiece(draw.count, batch.num_rows, cells, None), source)
        kept = draw.more(batch.num_rows)
        parts.append(_rows(rows, kept))
        labels.append(true[kept])
    if not parts:
        raise LolsError(f"{source.paths[0]}: there are no rows; give a table with some")
    chosen = draw.chosen()
    examples = task.examples(_rows(joined(parts), chosen), np.concatenate(labels)[chosen])
    return classifier_case(classifier, examples, draw.count, reference)


def _rows(rows: Rows, chosen: np.ndarray) -> Rows:
    """Some of the rows."""
    at, bounds = runs(rows.bounds, chosen)
    if not rows.start.size:
        return Rows(bounds, rows.types[at], rows.start, rows.ids, rows.values)
    own, start = runs(rows.start, chosen)
    return Rows(bounds, rows.types[at], start, rows.ids[own], rows.values[own])
