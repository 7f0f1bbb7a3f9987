"""A tagger and files: which columns hold words, labels and further input; training data in, tagged files out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lols.contract.threads import Threads
from lols.errors import LolsError, short, shown
from lols.io import conll
from lols.io.conll import Sentences
from lols.io.strings import Column, Texts, intern
from lols.tasks.pieces import PIECE, in_order, joined, line_of
from lols.tasks.replay import thinned
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tagging.session import Session
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.training.clock import Clock

NO_LABEL = "_"
WITH_LABELS = "write one word and its label on each line, and a blank line after each sentence"


@dataclass
class TaggedFile:
    """The sentences of one or several files, with the labels as numbers and names."""

    corpus: Corpus
    numbers: np.ndarray
    names: list[str]
    columns: FileColumns
    files: list[Sentences] = field(default_factory=list)

    @property
    def labels(self) -> tuple[np.ndarray, list[str]]:
        """Numbers of labels, and their names."""
        return self.numbers, self.names

    def place(self, token: int) -> str:
        """File and line of a token."""
        return line_of(self.files, token)

    def summary(self) -> str:
        """The size of the data, in one line."""
        columns, corpus = self.columns, self.corpus
        names = ", ".join(f"{name} ({column})" for name, column in (columns.use or {}).items())
        used = f", using {names}" if names else ""
        return (
            f"{corpus.offsets.size - 1:,} sentences, {corpus.tokens:,} tokens, {len(self.names)} labels in column "
            f"{columns.label}{used}"
        )

    def check_labels(self) -> None:
        """Labels must be there: a column without any is the wrong column, or a file without labels."""
        if set(self.names) <= {NO_LABEL, ""}:
            raise LolsError(
                f"{self.place(0)}: there are no labels in column '{self.columns.label}'; name another with --column, "
                "or give a labelled file"
            )
        if "" in self.names:
            token = int(np.argmax(self.numbers == self.names.index("")))
            raise LolsError(f"{self.place(token)}: the label in column '{self.columns.label}' is empty; fill it in")

    def check_text(self) -> None:
        """A single line of text is not a word, further columns and its label, unless the user says that they are."""
        first = self.files[0]
        if first.format == "columns" and self.columns.format is None and len(self.names) == 1:
            raise LolsError(
                f"{self.place(0)}: {first.width} columns, and {shown(self.names[0])} is the only label; if this is "
                f"text, {WITH_LABELS}; if these are columns, name that of the labels with --column"
            )

    def check_known(self, task: Any, otherwise: str) -> None:
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


def read_tagged(paths: Sequence[str | os.PathLike[str]], columns: FileColumns | None = None) -> TaggedFile:
    """Read labelled files."""
    made = tagged(*read_files(paths, columns or FileColumns()))
    made.check_labels()
    return made


def read_like_training(path: str, columns: FileColumns) -> tuple[TaggedFile, float]:
    """A labelled file for a trained tagger, and how many seconds reading it took."""
    clock = Clock()
    files, columns = read_files([path], columns)
    seconds = clock.working()
    columns.check(files[0])
    data = tagged(files, columns)
    data.check_labels()
    return data, seconds


def tag_pieces(
    tagger: Any,
    path: str | os.PathLike[str],
    columns: FileColumns,
    *,
    threads: Threads = None,
    size: int = PIECE,
    keep: bool = True,
    confidence: bool = False,
) -> Iterator[tuple[bytes, int]]:
    """The file with its label column replaced by predictions, piece by piece, and how many tokens each piece has.

    With `confidence` it is written as well. What is known of strings is kept from piece to piece; without that the
    result is the same.
    """
    use = dict(columns.use or {})
    wanted = [columns.word, str(columns.label), *use.values()]
    pieces = conll.chunks(
        path, wanted, format=columns.format, header=columns.header, optional=[str(columns.label)], size=size
    )

    idle: deque[Session] = deque()

    def work(piece: Sentences) -> tuple[bytes, int]:
        columns.check(piece)
        columns.check_words(piece)
        if piece.lines.size == 0:
            return piece.buffer.tobytes(), 0
        texts = {
            name: Texts(piece.buffer, piece.begin[k], piece.end[k]) for k, name in enumerate([WORD, "", *use]) if name
        }
        session = idle.pop() if keep and idle else tagger.session()
        sure = None
        if confidence:
            numbers, sure = session.predict_confident(texts, piece.offsets)
        else:
            numbers = session.predict(texts, piece.offsets)
        idle.append(session)
        made = conll.replace(piece, str(columns.label), tagger.task_.labels, numbers)
        if sure is not None:
            made = conll.add_confidence(made, piece, {str(columns.label): sure})
        return made, piece.lines.size

    yield from in_order(work, pieces, threads)
