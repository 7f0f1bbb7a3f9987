"""`lols predict` for classifiers: a table in, the same table with the predicted classes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from lols.cli.base import print_json
from lols.errors import ConfigurationError
from lols.training.clock import Clock

__all__ = ["open_table_file", "predict_classifier", "say_unknown"]

NAME = "prediction"  # of a new column, where training had no name for it
ENDINGS = {"csv": (".csv", ".tsv", ".tab"), "parquet": (".parquet", ".pq"), "arrow": (".arrow", ".feather")}
SPECIAL = '"\r\n'


def open_table_file(
    classifier: Any, file: str, label: str | None, header: bool | None, separator: str | None
) -> tuple[Any, str | None]:
    """A table that is laid out as in training unless said otherwise, and what its column of labels is called."""
    from lols.tasks.tables.files import open_like_training

    if file == "-":
        raise ConfigurationError("a classifier reads tables from files, not from standard input: name a file")
    known = getattr(classifier, "files_", None) or {}
    return open_like_training(classifier, file, header, separator), label or known.get("label")


def predict_classifier(
    classifier: Any,
    file: str,
    output: str,
    written: Callable[[str], Any],
    *,
    places: tuple[str | None, bool | None, str | None],
    labels_only: bool,
    threads: int,
    clock: Clock,
    as_json: bool,
) -> None:
    """Classify the rows of a table, and write them."""
    from lols.tasks.tables.files import check_columns, predict_batches, table_encoder

    source, label = open_table_file(classifier, file, *places)
    check_columns(source, [column.name for column in table_encoder(classifier).columns], None)
    if not labels_only:
        check_format(output, source.format)
    writer = (_LabelsOnly if labels_only else _WRITERS[source.format])(source, label or NAME, classifier.classes_)
    work = Clock()
    seconds = {"reading": 0.0}
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for batch, numbers in predict_batches(classifier, source, threads=threads, seconds=seconds):
            rows += numbers.size
            yield batch, numbers

    with written(output) as out:
        writer.write(counted(), out, threads)
    speed = rows / work.working()
    if as_json:
        result = {"output": output, "rows": rows, "unknown": classifier.unknown_}
        result |= {"seconds_reading": seconds["reading"], "seconds_compiling": clock.compiling()}
        print_json(result | {"seconds_total": clock.total(), "examples_per_second": speed})
        return
    print(f"{rows:,} rows, {speed:,.0f} rows/s", file=sys.stderr)
    for line in say_unknown(classifier.unknown_):
        print(line, file=sys.stderr)


def check_format(output: str, kind: str) -> None:
    """Whether the output's name says another format than the table's, which it keeps."""
    name = output.lower().removesuffix(".gz")
    said = next((other for other, endings in ENDINGS.items() if name.endswith(endings)), kind)
    if said != kind:
        raise ConfigurationError(f"{output}: the output is {kind}, as the table is; name it {ENDINGS[kind][0]}")


def say_unknown(unknown: dict[str, int]) -> list[str]:
    """How many cells had categories that training never showed, as a line if there are any."""
    if not unknown:
        return []
    columns = ", ".join(f"{name} {count:,}" for name, count in sorted(unknown.items(), key=lambda item: -item[1]))
    return [f"cells whose category training never showed, left out: {columns}"]


# --- how tables are written -------------------------------------------------------------------------------------------


class _LabelsOnly:
    """The classes, one a line, below the name of their column if the table has names."""

    def __init__(self, source: Any, label: str, classes: Any):
        import pyarrow as pa

        self.head = f"{label}\n".encode() if source.format == "csv" and source.header is not None else b""
        self.lines = pa.array([f"{name}\n" for name in classes], pa.string())

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        out.write(self.head)
        for _, numbers in batches:
            out.write(content(self.lines.take(numbers)))


class _Csv:
    """Cells as they were, in quotes where they need them; the separator, names and ends of lines are the file's."""

    def __init__(self, source: Any, label: str, classes: Any):
        from lols.io.opening import opened

        self.separator, self.special = source.separator, SPECIAL + source.separator
        with opened(source.paths[0]) as stream:
            self.end = "\r\n" if stream.readline(1 << 20).endswith(b"\r\n") else "\n"
        self.names = [*source.names] if label in source.names else [*source.names, label]
        self.at = self.names.index(label)
        self.head = list(source.header or ())
        if source.header is not None and self.at == len(self.head):
            self.head.append(label)
        self.classes = self.quoted([str(name) for name in classes], self.at == len(self.names) - 1)

    def quoted(self, texts: list[str], last: bool) -> Any:
        """Texts as cells; those of the last column with the end of the line."""
        import pyarrow as pa

        end = self.end if last else ""
        made = []
        for text in texts:
            special = any(c in text for c in self.special) or (last and not text and len(self.names) == 1)
            made.append(('"' + text.replace('"', '""') + '"' if special else text) + end)
        return pa.array(made, pa.string())

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        from lols.tasks.pieces import in_order

        if self.head:
            cells = [self.quoted([name], False)[0].as_py() for name in self.head]
            out.write((self.separator.join(cells) + self.end).encode())
        for data in in_order(self.lines, batches, threads):
            out.write(data)

    def lines(self, given: tuple[Any, Any]) -> memoryview:
        """The rows of a batch as bytes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        batch, numbers = given
        columns = []
        for k in range(len(self.names)):
            if k == self.at:
                columns.append(self.classes.take(pa.array(numbers)))
            else:
                column = batch.column(k)
                texts = self.quoted(column.dictionary.to_pylist(), k == len(self.names) - 1)
                columns.append(texts.take(column.indices))
        return content(pc.binary_join_element_wise(*columns, self.separator))


class _Arrow:
    """The same columns and types, in Arrow's own format."""

    def __init__(self, source: Any, label: str, classes: Any):
        import pyarrow as pa

        self.label, self.names = label, source.names
        self.classes = pa.array([str(name) for name in classes], pa.string())

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        writer = None
        try:
            for batch, numbers in batches:
                made = self.replaced(batch, numbers)
                writer = writer or self.writer(out, made.schema)
                writer.write_batch(made)
        finally:
            if writer is not None:
                writer.close()

    def writer(self, out: Any, schema: Any) -> Any:
        import pyarrow as pa
        import pyarrow.ipc

        return pa.ipc.new_file(out, schema)

    def replaced(self, batch: Any, numbers: Any) -> Any:
        """A batch with the classes in place of the labels, as values of the same type where that is possible."""
        import pyarrow as pa

        columns, names = list(batch.columns), list(self.names)
        if self.label not in names:
            return pa.RecordBatch.from_arrays(
                [*columns, self.classes.take(pa.array(numbers))], names=[*names, self.label]
            )
        at = names.index(self.label)
        kind = columns[at].type
        try:
            classes = self.classes.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            classes = self.classes
        columns[at] = classes.take(pa.array(numbers))
        return pa.RecordBatch.from_arrays(columns, names=names)


class _Parquet(_Arrow):
    """The same columns and types, as Parquet."""

    def writer(self, out: Any, schema: Any) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(out, schema)


_WRITERS: dict[str, Any] = {"csv": _Csv, "parquet": _Parquet, "arrow": _Arrow}


def content(texts: Any) -> memoryview:
    """The bytes of an array of texts, one after the other."""
    import numpy as np

    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
