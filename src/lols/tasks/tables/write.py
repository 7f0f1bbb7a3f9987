"""How tables with predicted classes are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lols.errors import ConfigurationError
from lols.io.opening import without_compression

ENDINGS = {"csv": (".csv", ".tsv", ".tab"), "parquet": (".parquet", ".pq"), "arrow": (".arrow", ".feather")}
SPECIAL = '"\r\n'


CONFIDENCE = "confidence"  # the name of its column


def table_writer(source: Any, label: str, classes: Any, *, labels_only: bool, confidence: bool = False) -> Any:
    """What writes the rows of a table with their classes in the column `label`, or the classes only.

    With `confidence`, that in the classes is a further column, the last one.
    """
    if confidence and not labels_only and CONFIDENCE in source.names:
        raise ConfigurationError(
            f"{source.paths[0]}: there is a column '{CONFIDENCE}' already; rename it, or use --labels-only"
        )
    return (_LabelsOnly if labels_only else _WRITERS[source.format])(source, label, classes, confidence)


def check_format(output: str, kind: str) -> None:
    """Whether the output's name says another format than the table's, which it keeps."""
    name = without_compression(output)
    said = next((other for other, endings in ENDINGS.items() if name.endswith(endings)), kind)
    if said != kind:
        raise ConfigurationError(f"{output}: the output is {kind}, as the table is; name it {ENDINGS[kind][0]}")


class _LabelsOnly:
    """The classes, one a line, below the name of their column if the table has names; and confidence behind a tab."""

    def __init__(self, source: Any, label: str, classes: Any, confidence: bool):
        import pyarrow as pa

        names = f"{label}\t{CONFIDENCE}\n" if confidence else f"{label}\n"
        self.head = names.encode() if source.format == "csv" and source.header is not None else b""
        self.names = [str(name) for name in classes]
        self.lines = pa.array([f"{name}\n" for name in classes], pa.string())

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        out.write(self.head)
        for _, numbers, sure in batches:
            if sure is None:
                out.write(content(self.lines.take(numbers)))
            else:
                pairs = zip(numbers.tolist(), sure.tolist(), strict=True)
                out.write("".join(f"{self.names[k]}\t{value:.4f}\n" for k, value in pairs).encode())


class _Csv:
    """Cells as they were, in quotes where they need them; the separator, names and ends of lines are the file's."""

    def __init__(self, source: Any, label: str, classes: Any, confidence: bool):
        from lols.io.opening import opened

        self.separator, self.special = source.separator, SPECIAL + source.separator
        with opened(source.paths[0]) as stream:
            self.end = "\r\n" if stream.readline(1 << 20).endswith(b"\r\n") else "\n"
        self.names = [*source.names] if label in source.names else [*source.names, label]
        self.at = self.names.index(label)
        self.head = list(source.header or ())
        if source.header is not None and self.at == len(self.head):
            self.head.append(label)
        if confidence:
            self.names.append(CONFIDENCE)
            self.head += [CONFIDENCE] if source.header is not None else []
        self.classes = self.quoted([str(name) for name in classes], self.at == len(self.names) - 1)

    def quoted(self, texts: list[str], last: bool) -> Any:
        """Texts as cells; those of the last column with the end of the line."""
        from lols.io.tables import text_array

        end = self.end if last else ""
        made = []
        for text in texts:
            special = any(c in text for c in self.special) or (last and not text and len(self.names) == 1)
            made.append(('"' + text.replace('"', '""') + '"' if special else text) + end)
        return text_array(made)

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        from lols.tasks.pieces import in_order

        if self.head:
            cells = [self.quoted([name], False)[0].as_py() for name in self.head]
            out.write((self.separator.join(cells) + self.end).encode())
        for data in in_order(self.lines, batches, threads):
            out.write(data)

    def lines(self, given: tuple[Any, Any, Any]) -> memoryview:
        """The rows of a batch as bytes."""
        import pyarrow.compute as pc

        from lols.io.tables import index_array, text_array

        batch, numbers, sure = given
        columns = []
        for k in range(len(self.names)):
            if k == self.at:
                columns.append(self.classes.take(index_array(numbers)))
            elif sure is not None and k == len(self.names) - 1:
                columns.append(text_array([f"{value:.4f}{self.end}" for value in sure.tolist()]))
            else:
                column = batch.column(k)
                texts = self.quoted(column.dictionary.to_pylist(), k == len(self.names) - 1)
                columns.append(texts.take(column.indices))
        return content(pc.binary_join_element_wise(*columns, text_array([self.separator])[0]))


class _Arrow:
    """The same columns and types, in Arrow's own format."""

    def __init__(self, source: Any, label: str, classes: Any, _confidence: bool):
        import pyarrow as pa

        self.label, self.names = label, source.names
        self.classes = pa.array([str(name) for name in classes], pa.string())

    def write(self, batches: Iterator[Any], out: Any, threads: int) -> None:
        import pyarrow as pa

        writer = None
        try:
            for batch, numbers, sure in batches:
                made = self.replaced(batch, numbers)
                if sure is not None:
                    columns, names = [*made.columns, pa.array(sure)], [*made.schema.names, CONFIDENCE]
                    made = pa.RecordBatch.from_arrays(columns, names=names)
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
