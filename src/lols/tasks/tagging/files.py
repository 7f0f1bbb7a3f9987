"""A tagger and files: which columns hold words, labels and further input; training data in, tagged files out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from lols.errors import LolsError, short, shown
from lols.io import conll
from lols.io.conll import Sentences
from lols.io.strings import Column, Texts, intern
from lols.tasks.pieces import PIECE, joined, line_of
from lols.tasks.replay import thinned
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.data import Tagged, TagScan
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tokens.corpus import WORD, Corpus, sentence_counts
from lols.training.clock import Clock

NO_LABEL = "_"
WITH_LABELS = "write one word and its label on each line, and a blank line after each sentence"


@dataclass(frozen=True)
class TaggedFile(Tagged):
    """The sentences of one or several files."""

    layout: FileColumns = field(default_factory=FileColumns)
    files: list[Sentences] = field(default_factory=list)
    seconds: float = 0.0  # that reading took

    def place(self, token: int) -> str:
        """File and line of a token."""
        return line_of(self.files, token)

    def summary(self) -> str:
        """The size of the data, in one line."""
        columns, corpus = self.layout, self.corpus
        names = ", ".join(f"{name} ({column})" for name, column in (columns.use or {}).items())
        used = f", using {names}" if names else ""
        return (
            f"{corpus.offsets.size - 1:,} sentences, {corpus.tokens:,} tokens, {len(self.names)} labels in column "
            f"{columns.label}{used}"
        )

    def remarks(self, held: TaggedFile | None) -> Iterator[str]:
        """What is to be said of training data, and of dev data beside them."""
        yield self.summary()
        unseen = [] if held is None else sorted(set(held.names) - set(self.names))
        if unseen:
            yield f"labels of the dev file that training never sees, counted as wrong: {', '.join(unseen)}"

    def facts(self) -> dict[str, Any]:
        """How much there is."""
        return sentence_counts(self.corpus)

    def check(self) -> None:
        """Raise an error if this cannot be learned from, such as text, or sentences without words."""
        self.check_text()
        super().check()

    def check_labels(self) -> None:
        """Labels must be there: a column without any is the wrong column, or a file without labels."""
        if set(self.names) <= {NO_LABEL, ""}:
            raise LolsError(
                f"{self.place(0)}: there are no labels in column '{self.layout.label}'; name another with --column, "
                "or give a labelled file"
            )
        if "" in self.names:
            token = int(np.argmax(self.numbers == self.names.index("")))
            raise LolsError(f"{self.place(token)}: the label in column '{self.layout.label}' is empty; fill it in")

    def check_text(self) -> None:
        """A single line of text is not a word, further columns and its label, unless the user says that they are."""
        first = self.files[0]
        if first.format == "columns" and self.layout.format is None and len(self.names) == 1:
            raise LolsError(
                f"{self.place(0)}: {first.width} columns, and {shown(self.names[0])} is the only label; if this is "
                f"text, {WITH_LABELS}; if these are columns, name that of the labels with --column"
            )

    def check_known(self, task: Any, otherwise: str = "leave such sentences out") -> None:
        """Labels must be ones that training showed."""
        unseen = task.number(self.names) < 0
        if unseen.any():
            first = int(unseen[self.numbers].argmax())
            label = short(self.names[int(self.numbers[first])])
            raise LolsError(
                f"{self.place(first)}: label '{label}' was never seen in training; name "
                f"the right column with --column, or {otherwise}"
            )


def read_files(paths: Sequence[str | os.PathLike[str]], columns: FileColumns) -> tuple[list[Sentences], FileColumns]:
    """Bytes to columns of strings; the columns that were left open are settled by the first file."""
    columns = settle(paths[0], columns)
    wanted = [columns.word, str(columns.label), *(columns.use or {}).values()]
    files = [thinned(conll.read(path, wanted, format=columns.format, header=columns.header), path) for path in paths]
    return files, columns


def settle(path: str | os.PathLike[str], columns: FileColumns) -> FileColumns:
    """Fill in the defaults that depend on a file's format."""
    if columns.label not in (None, "last") and columns.use is not None:
        return columns
    if path == "-":
        raise LolsError("standard input: name the columns with --column and --use, since it can be read only once")
    first = next(conll.chunks(path, [columns.word], format=columns.format, header=columns.header, size=1 << 16))
    named = first.format in ("conllu", "conllx")
    label = columns.label or ("upos" if named else "last")
    use = columns.use
    if label == "last":  # a file without labels has another last column
        if first.width == 1:
            raise LolsError(f"{path}, line {first.lines[0]}: one column, and so no labels; {WITH_LABELS}")
        label = str(first.width)
    if use is None and first.format == "columns":
        last = int(label) if label.isdigit() else first.width
        word = 1 if columns.word == "form" else int(columns.word) if columns.word.isdigit() else 1
        use = {f"column{k}": str(k) for k in range(1, last) if k != word}
    width = None if label == str(first.width) else first.width
    return replace(columns, label=label, use=use or {}, trained=first.format, width=width)


def tagged(files: Sequence[Sentences], columns: FileColumns) -> TaggedFile:
    """Files as a corpus and labels; interning strings is work, not reading."""
    whole = joined(files)
    names = [WORD, "", *(columns.use or {})]
    made: dict[str, Column] = {}
    for k, name in enumerate(names):
        made[name] = intern(Texts(whole.buffer, whole.begin[k], whole.end[k]))
    labels = made.pop("")
    strings = labels.texts.strings()
    if str(columns.label).startswith(("feats:", "misc:")):
        strings = [s or NO_LABEL for s in strings]
    return TaggedFile(Corpus(made, whole.offsets), labels.numbers, strings, columns, list(files))


class PieceOfText(NamedTuple):
    """The strings of a piece of a file, as a `Session` takes them."""

    texts: dict[str, Texts]
    offsets: np.ndarray

    @property
    def size(self) -> int:
        """How many words there are."""
        return int(self.offsets[-1])


@dataclass(frozen=True)
class TaggedFormat:
    """Files of tokens with a label each: reads them, here or on a worker, and writes what was predicted."""

    layout: FileColumns
    clusters: Mapping[str, str] | None = None

    def settled(self, paths: Sequence[str | os.PathLike[str]]) -> Self:
        """The format with the columns that were left open as the first file has them."""
        return replace(self, layout=settle(paths[0], self.layout))

    def agreed(self, scan: TagScan) -> Self:
        """The same: the first file says all."""
        return self

    def read(self, paths: Sequence[str | os.PathLike[str]]) -> TaggedFile:
        """The sentences of labelled files."""
        clock = Clock()
        files, layout = read_files(paths, self.layout)
        seconds = clock.working()
        data = tagged(files, layout)
        if data.size:
            data.check_labels()
        return replace(data, corpus=with_clusters(data.corpus, self.clusters), seconds=seconds)

    def scan(self, path: str) -> TagScan:
        """What is to be known of one file."""
        return replace(self.read([path]).scan(), corpus=None)

    @property
    def use(self) -> dict[str, str]:
        """Further columns by the names that templates have for them."""
        return dict(self.layout.use or {})

    def pieces(self, path: str | os.PathLike[str], *, size: int = PIECE) -> Iterator[Sentences]:
        """A file that need not have labels, piece by piece."""
        layout, label = self.layout, str(self.layout.label)
        wanted = [layout.word, label, *self.use.values()]
        how: Any = {"format": layout.format, "header": layout.header, "optional": [label], "size": size}
        for piece in conll.chunks(path, wanted, **how):
            layout.check(piece)
            layout.check_words(piece)
            yield piece

    def inputs(self, piece: Sentences) -> PieceOfText:
        """The strings of a piece."""
        names = [WORD, "", *self.use]
        texts = {name: Texts(piece.buffer, piece.begin[k], piece.end[k]) for k, name in enumerate(names) if name}
        return PieceOfText(texts, piece.offsets)

    def write(self, piece: Sentences, problem: Any, outputs: Any, sure: Any) -> bytes:
        """The piece with its labels replaced; all else stays as it is, byte for byte."""
        if piece.lines.size == 0:
            return piece.buffer.tobytes()
        label = str(self.layout.label)
        made: bytes = conll.replace(piece, label, problem.labels, outputs)
        return made if sure is None else conll.add_confidence(made, piece, {label: sure})
