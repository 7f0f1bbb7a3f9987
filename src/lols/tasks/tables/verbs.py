"""What a classifier does with files."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError
from lols.tasks.case import Case, pair_of
from lols.tasks.tables.classifier_rows import ClassifierRows
from lols.tasks.tables.encoding import TableEncoder
from lols.tasks.tables.options import VERBS, ClassifierInspectOptions, TableFiles
from lols.tasks.tables.predicting import evaluate_files, predict_batches, table_encoder
from lols.tasks.tables.reading import check_columns, costs_or_labels, open_files
from lols.tasks.tables.validation import installed
from lols.tasks.verbs import Evaluation, Say, VerbReport, silent
from lols.training.clock import Clock

if TYPE_CHECKING:
    from lols.io.tables import TableSource

PREDICTION = "prediction"  # the name of a new column, where training had no name for it
THREE_ROWS = "a,b,c\n1,x,no\n2,y,yes\n3,x,yes\n"


class ClassifierVerbs(ClassifierRows):
    """The verbs of `CostSensitiveClassifier`."""

    VERBS = VERBS
    STORED = ("files", "options", "label_map")
    classes_: np.ndarray
    files_: Any
    save: Any

    @property
    def file_columns(self) -> TableFiles:
        """How files like those of training are laid out."""
        known = getattr(self, "files_", None)
        return TableFiles() if known is None else TableFiles.from_description(known)

    def open_file(self, path: str, layout: TableFiles) -> TableSource:
        """Look at a table."""
        if path == "-":
            raise ConfigurationError("a classifier reads tables from files, not from standard input: name a file")
        return open_files([str(path)], layout)

    @on_snapshot
    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a table with the predicted classes; its format and all other cells stay as they are.

        Parameters
        ----------
        path
            A table.
        out
            The stream of bytes to write to.
        output
            The name of what is written, which says its format.
        threads
            How many threads share the work; None for as many as help.
        say
            Called with a line for each thing that is being done.
        **options
            Where things are in the file, and what `lols predict` takes besides.

        """
        from lols.tasks.tables.scores import unknown_text
        from lols.tasks.tables.write import check_format, table_writer

        if options.get("cost_columns") is not None:
            raise ConfigurationError("cost_columns has no effect: predictions do not look at costs; leave it out")
        layout, asked = self.asked("predict", options)
        self.prepare()
        source = self.open_file(path, layout)
        check_columns(source, [column.name for column in table_encoder(self).columns])
        if not asked.labels_only:
            check_format(output, source.format)
        if asked.confidence:
            self.check_calibrated()
        how: Any = {"labels_only": asked.labels_only, "confidence": asked.confidence}
        writer = table_writer(source, layout.label or PREDICTION, self.classes_, **how)
        clock, seconds, rows = Clock(), {"reading": 0.0}, 0

        def counted() -> Iterator[Any]:
            nonlocal rows
            how: Any = {"threads": threads, "seconds": seconds, "confidence": asked.confidence}
            for each in predict_batches(self, source, **how):
                rows += each.numbers.size
                yield each

        writer.write(counted(), out, threads)
        speed = rows / clock.working()
        for line in [f"{rows:,} rows, {speed:,.0f} rows/s from file to file", *unknown_text(self.unknown_)]:
            say(line)
        reading = seconds["reading"]
        return {"rows": rows, "unknown": self.unknown_, "seconds_reading": reading, "examples_per_second": speed}

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a labelled table, in constant memory; threads share its pieces.

        Parameters
        ----------
        path
            A labelled table.
        threads
            How many threads share the work; None for as many as help.
        **options
            Where things are in the file, and what `lols evaluate` takes besides.

        """
        from lols.tasks.tables.scores import ClassifierScores

        layout, asked = self.asked("evaluate", options)
        if asked.plot is not None:
            from lols.plots import check_plot

            check_plot(asked.plot)
        self.prepare()
        source, seconds, before = self.open_file(path, layout), {"reading": 0.0}, self.unknown_
        note = ""
        if layout.cost_columns is not None and options.get("cost_columns") is None:
            layout, begin = costs_or_labels(source, layout), layout.cost_columns
            note = "" if layout.cost_columns else f"there are no columns {begin}CLASS of costs: every error costs 1"
        scores = evaluate_files(self, source, layout, threads=threads, seconds=seconds)
        if asked.plot is not None:
            from lols.plots import confusion

            confusion(scores, asked.plot)
        unknown = {name: count - before.get(name, 0) for name, count in self.unknown_.items()}
        unknown = {name: count for name, count in unknown.items() if count}
        found = Evaluation(ClassifierScores(scores, unknown, asked.plot, note), scores.rows, seconds["reading"])
        if asked.plot is None or scores.reliability is None:
            return found
        beside = Path(asked.plot)
        return found.drawn(str(beside.with_stem(f"{beside.stem}-reliability")), scores.reliability)

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how a row is led down the tree of classes, and which of its values mattered.

        Parameters
        ----------
        path
            A labelled table.
        number
            Which example of the file, counted from 1.
        **options
            Where things are in the file, and what `lols explain` takes besides.

        """
        from lols.tasks.explain import ExampleReport
        from lols.tasks.tables.explain import CHILDREN, explain_row, read_row, words_in

        if number < 1:
            raise ConfigurationError(f"--row is {number}: rows are counted from 1")
        layout, asked = self.asked("explain", options)
        source = self.open_file(path, layout)
        asked_for = any(options.get(name) is not None for name in ("label", "cost_columns"))
        costs_there = layout.cost_columns and any(name.startswith(layout.cost_columns) for name in source.names)
        labelled = asked_for or bool(costs_there) or layout.label in source.names
        rows, piece = read_row(self, source, number - 1, layout, labelled=labelled)
        true = int(piece.labels[0]) if piece.labels is not None and piece.labels.size else None
        costs = None if piece.costs is None else piece.costs[0]
        words = words_in(table_encoder(self), piece)
        how: Any = {"costs": costs, "words": words, "top": asked.top}
        cells = [f"{name}={column.text(0)}" for name, column in piece.columns.items()]
        place = source.place(number - 1).removeprefix(f"{path}, ")
        explanation = explain_row(self, rows, true, **how, place=place, shown=cells)
        return ExampleReport(self.named, path, VERBS.one, number, None, explanation, CHILDREN)

    def inspected(self, values: dict[str, Any], asked: ClassifierInspectOptions) -> VerbReport:
        """A report on a model file, with the features that speak for each child of a node."""
        from lols.tasks.tables.inspect import inspect_classifier

        return inspect_classifier(self, values, asked)

    @on_snapshot
    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate from a table and labels or costs."""
        from lols.tasks.tables.case import rows_case

        self._check_fitted()
        X, y, *costs = pair_of(data)
        return rows_case(self, X, y, costs[0] if costs else None, reference, limit, seed)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled table, of which only the rows that may be drawn are held."""
        from lols.tasks.tables.case import table_case

        layout, asked = self.asked("certify", options)
        source = self.open_file(path, layout)
        return table_case(self, source, layout, asked.reference, limit, seed)

    @property
    def unknown_(self) -> dict[str, int]:
        """For each column the cells so far whose category training never showed: they were predicted without it."""
        self._check_fitted()
        encoder = self.task_.encoder
        if not isinstance(encoder, TableEncoder):
            return {}
        pairs = zip(encoder.columns, encoder.unknown.tolist(), strict=True)
        return {column.name: count for column, count in pairs if count}

    def prepare(self) -> None:
        """Classify a row of a CSV file."""
        encoder = self.task_.encoder
        if not isinstance(encoder, TableEncoder) or not installed("pyarrow"):
            return
        from lols.io.tables import open_table

        names = [column.name for column in encoder.columns]
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(LolsError):
            path = Path(folder) / "tiny.csv"
            path.write_text(",".join("0" for _ in names) + "\n")
            before = encoder.unknown.copy()
            list(predict_batches(self, open_table(str(path), header=False, names=names)))
            encoder.unknown[:] = before

    def rehearse(self) -> None:
        """Train on three rows, with costs, and predict."""
        made: Any = self
        if not installed("pyarrow"):
            made.fit([[1.0, "x"], [2.0, "y"], [3.0, "x"]], ["no", "yes", "yes"]).predict_costs([[1.0, "x"]])
            return
        import pyarrow as pa

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tiny.csv"
            path.write_text(THREE_ROWS)
            made.fit_files(str(path), dev=str(path))
        made.prepare()
        made.predict_costs(pa.table({"a": [1], "b": ["x"]}))
