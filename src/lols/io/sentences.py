"""Sentences of CoNLL-U and column files as Python objects, and back; and as tables."""

from __future__ import annotations

import html
import importlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from lols.errors import ConfigurationError, LolsError, shown
from lols.io.opening import read_text
from lols.io.whole_file import write_whole

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
TAGS = ("upos", "xpos", "feats")
NOTHING = "_"


class Sentence(list[dict[str, str]]):
    """The words of a sentence: dictionaries of `word` and its tags, as estimators take them; and all columns.

    Parameters
    ----------
    columns
        The strings of each column by its name; in CoNLL-U `form`, `lemma`, `upos`, `xpos`, `feats`, `head`, `deprel`,
        `deps` and `misc`.
    comments
        The lines before it that begin with #, without line ends.
    others
        Lines of multi-word tokens and empty nodes: the number of words before each, and its line.
    word
        The column of the words.
    tags
        The columns that the dictionaries have beside the word; by default those of `upos`, `xpos` and `feats` that are
        filled in.

    Examples
    --------
    >>> one = Sentence({"form": ["a", "dog"], "upos": ["DET", "NOUN"], "head": ["2", "0"], "deprel": ["det", "root"]})
    >>> one[1], one.words, one.tree
    ({'word': 'dog', 'upos': 'NOUN'}, ['a', 'dog'], [(2, 'det'), (0, 'root')])

    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[str]],
        *,
        comments: Sequence[str] = (),
        others: Sequence[tuple[int, str]] = (),
        word: str = "form",
        tags: Sequence[str] | None = None,
    ):
        if word not in columns:
            raise LolsError(f"a sentence has no column '{word}' of words: name another with word=")
        self.columns = {name: _strings(name, values, name == word) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len({*lengths.values()}) > 1:
            raise LolsError(f"the columns of a sentence have different lengths: {lengths}")
        self.comments, self.others, self.word = list(comments), list(others), word
        if tags is None:
            tags = [name for name in TAGS if {*self.columns.get(name, ())} - {NOTHING, ""}]
        names = {"word": word} | {name: name for name in tags}
        super().__init__({key: self.columns[name][k] for key, name in names.items()} for k in range(lengths[word]))

    @property
    def words(self) -> list[str]:
        """The words alone."""
        return list(self.columns[self.word])

    @property
    def tree(self) -> list[tuple[int, str]]:
        """Head, counted from 1, and relation of each word, as `Parser.fit` takes them; an error if there is none."""
        try:
            heads = [int(head) for head in self.columns["head"]]
        except (KeyError, ValueError):
            raise LolsError(f"the sentence '{' '.join(self.words)[:60]}' has no tree in its columns") from None
        return list(zip(heads, self.columns.get("deprel", [NOTHING] * len(heads)), strict=True))

    def tags(self, column: str) -> list[str]:
        """The strings of a column, as `Tagger.fit` takes them.

        Parameters
        ----------
        column
            The name of the column, such as upos.

        """
        if column not in self.columns:
            raise LolsError(f"there is no column '{column}'; there are {', '.join(self.columns)}")
        return list(self.columns[column])

    def changed(self, tree: Sequence[tuple[int, str]] | None = None, **columns: Sequence[str]) -> Self:
        """A copy with other columns, or another tree; comments and lines of other tokens stay.

        Parameters
        ----------
        tree
            The new tree; None to keep it.
        **columns
            New columns by name, each with a string for each word.

        """
        given: dict[str, Sequence[str]] = dict(columns)
        if tree is not None:
            given |= {"head": [str(head) for head, _ in tree], "deprel": [relation for _, relation in tree]}
        return type(self)(self.columns | given, comments=self.comments, others=self.others, word=self.word)

    def text(self) -> str:
        """The sentence as CoNLL-U, with the blank line after it."""
        lines, others = list(self.comments), list(self.others)
        empty = [NOTHING] * len(self)
        ids = self.columns.get("id", [str(k + 1) for k in range(len(self))])
        values = [ids, self.words, *(self.columns.get(name, empty) for name in CONLLU[2:])]
        for k in range(len(self) + 1):
            while others and others[0][0] == k:
                lines.append(others.pop(0)[1])
            if k < len(self):
                lines.append("\t".join(_cell(column[k]) for column in values))
        return "\n".join(lines) + "\n\n"

    def __repr__(self) -> str:
        return f"Sentence({' '.join(self.words)!r}: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        names = [name for name, values in self.columns.items() if {*values} - {NOTHING, ""}]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(self.columns[name][k])}</td>" for name in names) + "</tr>"
            for k in range(len(self))
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def __reduce__(self) -> Any:
        return _made, (type(self), self.columns, self.comments, self.others, self.word)


def _made(kind: type[Sentence], columns: Any, comments: Any, others: Any, word: str) -> Sentence:
    return kind(columns, comments=comments, others=others, word=word)


def _strings(column: str, values: Sequence[Any], words: bool) -> list[str]:
    """A column as strings; numbers are written as such, but words are strings with something in them."""
    for k, value in enumerate(values):
        number = not words and isinstance(value, int | float | np.number) and value == value
        if not (isinstance(value, str) or number) or (words and not value):
            wanted = "a string with something in it" if words else "a string"
            raise LolsError(f"word {k} of a sentence: its {column} is {shown(value)}; give {wanted}")
    return [str(value) for value in values]


def _cell(text: str) -> str:
    if "\t" in text or "\n" in text or "\r" in text:
        raise LolsError(f"{text!r} has a tab or a line end in it, and cannot be written; replace it")
    return text or NOTHING


def read_conllu(path: str | os.PathLike[str]) -> list[Sentence]:
    """Read a CoNLL-U file, compressed or not.

    Parameters
    ----------
    path
        The file; .gz, .bz2 and .xz are read directly.

    Examples
    --------
    >>> import tempfile; path = tempfile.mkdtemp() + "/two.conllu"
    >>> write_conllu(path, [Sentence({"form": ["Go"], "upos": ["VERB"]}), Sentence({"form": ["Stop", "!"]})])
    >>> read_conllu(path)[0].tags("upos"), [s.words for s in read_conllu(path)]
    (['VERB'], [['Go'], ['Stop', '!']])

    """
    return [_conllu(block, path) for block in _blocks(path)]


def _conllu(block: list[tuple[int, str]], path: Any) -> Sentence:
    comments: list[str] = []
    others: list[tuple[int, str]] = []
    rows: list[list[str]] = []
    for number, line in block:
        if line.startswith("#") and not rows and not others:
            comments.append(line)
            continue
        cells = line.split("\t")
        if len(cells) != len(CONLLU):
            raise LolsError(f"{path}, line {number}: {len(cells)} columns, but CoNLL-U has 10, separated by tabs")
        if cells[0].isdigit():
            if not cells[1]:
                raise LolsError(f"{path}, line {number}: the word is empty; give its form, or _ if there is none")
            rows.append(cells)
        elif re.fullmatch(r"[0-9]+[-.][0-9]+", cells[0]):
            others.append((len(rows), line))
        else:
            raise LolsError(f"{path}, line {number}: the id {cells[0]!r} is not a CoNLL-U id (such as 3, 3-4 or 5.1)")
    if not rows:
        raise LolsError(f"{path}, line {block[0][0]}: a sentence without any word; remove it")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(CONLLU)}
    return Sentence(columns, comments=comments, others=others)


def _blocks(path: str | os.PathLike[str]) -> Iterator[list[tuple[int, str]]]:
    """The lines between blank lines, with their numbers."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[Sentence]) -> None:
    """Write a CoNLL-U file, whole or not at all.

    Parameters
    ----------
    path
        The file to write.
    sentences
        The sentences.

    """
    write_whole(path, "".join(sentence.text() for sentence in sentences).encode())


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str] | None = None, *, separator: str | None = None
) -> list[Sentence]:
    """Read a file of columns, a word on each line: by default separated by spaces or tabs, the word first.

    Parameters
    ----------
    path
        The file; .gz, .bz2 and .xz are read directly.
    names
        The names of the columns, one of them `form`; by default form, column2, column3, ...
    separator
        What is between two columns; None for spaces or tabs.

    Examples
    --------
    >>> import tempfile; path = tempfile.mkdtemp() + "/chunks.txt"
    >>> _ = open(path, "w").write("The DT B-NP\\ncat NN I-NP\\n\\nIt PRP B-NP\\n")
    >>> [s.tags("chunk") for s in read_columns(path, ["form", "pos", "chunk"])]
    [['B-NP', 'I-NP'], ['B-NP']]

    """
    made = []
    for block in _blocks(path):
        rows = [
            re.split("[ \t]+", line.strip(" \t")) if separator is None else line.split(separator) for _, line in block
        ]
        given = list(names) if names is not None else ["form", *(f"column{k}" for k in range(2, len(rows[0]) + 1))]
        for (number, _), row in zip(block, rows, strict=True):
            if len(row) != len(given):
                raise LolsError(f"{path}, line {number}: {len(row)} columns, not {len(given)}; give all lines the same")
            if "form" in given and not row[given.index("form")]:
                raise LolsError(f"{path}, line {number}: the word is empty; give its form, or leave the line out")
        columns = {name: [row[k] for row in rows] for k, name in enumerate(given)}
        made.append(Sentence(columns, tags=[name for name in given if name != "form"]))
    return made


def write_columns(
    path: str | os.PathLike[str], sentences: Iterable[Sentence], names: Sequence[str], *, separator: str = "\t"
) -> None:
    """Write columns of sentences, a word on each line and a blank line after each sentence.

    Parameters
    ----------
    path
        The file to write.
    sentences
        The sentences.
    names
        The columns to write.
    separator
        What is written between two columns.

    """
    parts = []
    for sentence in sentences:
        columns = [sentence.tags(name) for name in names]
        parts += [separator.join(_cell(c[k]) for c in columns) + "\n" for k in range(len(sentence))] + ["\n"]
    write_whole(path, "".join(parts).encode())


# --- tables -----------------------------------------------------------------------------------------------------------


def _table(sentences: Iterable[Sentence]) -> dict[str, list[Any]]:
    """One row for each word, with the numbers of sentence and word, from 1; what a sentence lacks is None."""
    listed = list(sentences)
    names = list(dict.fromkeys(name for sentence in listed for name in sentence.columns if name != "id"))
    table: dict[str, list[Any]] = {"sentence": [], "word": []} | {name: [] for name in names}
    for number, sentence in enumerate(listed, 1):
        table["sentence"] += [number] * len(sentence)
        table["word"] += range(1, len(sentence) + 1)
        for name in names:
            table[name] += sentence.columns.get(name, [None] * len(sentence))
    return table


def to_pandas(sentences: Iterable[Sentence]) -> Any:
    """A pandas data frame with a row for each word.

    Parameters
    ----------
    sentences
        The sentences.

    """
    return _frames("pandas").DataFrame(_table(sentences))


def to_polars(sentences: Iterable[Sentence]) -> Any:
    """A polars data frame with a row for each word.

    Parameters
    ----------
    sentences
        The sentences.

    """
    return _frames("polars").DataFrame(_table(sentences))


def _frames(library: str) -> Any:
    """A library of data frames, or an error that says how to get it."""
    try:
        return importlib.import_module(library)
    except ImportError:
        raise ConfigurationError(f"to_{library} needs {library}: pip install {library}") from None


def from_frame(frame: Any, *, sentence: str = "sentence", word: str = "form") -> list[Sentence]:
    """Sentences from a data frame (pandas or polars) with a row for each word, in order.

    Rows with the same value in the column `sentence` that follow each other are one sentence.

    Parameters
    ----------
    frame
        A frame of pandas or polars.
    sentence
        The column that says which sentence a row belongs to.
    word
        The column of the words.

    """
    if not hasattr(frame, "columns"):
        raise LolsError(f"a data frame has columns; this is {shown(frame)}: give one of pandas or polars")
    table = {str(name): list(frame[name]) for name in frame.columns}
    for name in (sentence, word):
        if name not in table:
            raise LolsError(f"the frame has no column '{name}'; it has {', '.join(table)}")
        if (at := next((k for k, value in enumerate(table[name]) if _missing(value)), None)) is not None:
            raise LolsError(f"row {at} of the frame: its {name} is missing; fill it in, or leave the row out")
    of, made, first = table.pop(sentence), [], 0
    if word != "word":
        table.pop("word", None)
    for k in range(1, len(of) + 1):
        if k == len(of) or of[k] != of[first]:
            columns = {
                name: [NOTHING if _missing(value) else str(value) for value in values[first:k]]
                for name, values in table.items()
            }
            made.append(Sentence(columns, word=word))
            first = k
    return made


def _missing(value: Any) -> bool:
    """Whether a cell of a frame is empty: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA does not say whether it is itself
        return True
