"""A parser and files: which columns hold what; treebanks in, parsed files out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError, short
from lols.io import conll
from lols.io.conll import Sentences
from lols.io.strings import Column, Texts, intern
from lols.tasks.format import InParts
from lols.tasks.parsing.data import USUAL, Treebank, TreebankScan
from lols.tasks.parsing.input import wrong_relation
from lols.tasks.parsing.options import ParserColumns
from lols.tasks.parsing.treebank import UNLABELLED, Trees
from lols.tasks.parsing.trees import read_heads, require_trees
from lols.tasks.pieces import PIECE, gathered, in_order, joined, line_of
from lols.tasks.replay import thinned
from lols.tasks.tokens.corpus import WORD, Corpus, sentence_counts
from lols.training.clock import Clock

NOTHING = "_"
Changes = dict[str, tuple[Sequence[str], np.ndarray]]  # labels and their numbers, by column


@dataclass(frozen=True)
class TreebankFile(Treebank):
    """The sentences of one or several files, with their trees."""

    layout: ParserColumns = field(default_factory=ParserColumns)
    files: list[Sentences] = field(default_factory=list)
    seconds: float = 0.0  # that reading took

    @property
    def use(self) -> Mapping[str, str]:
        """The further columns."""
        return dict(self.layout.use or {})

    def summary(self) -> str:
        """The size of the treebank, in one line."""
        used = ", ".join(name for name in self.corpus.columns if name != WORD) or "words only"
        sentences = f"{len(self):,} sentences, {self.size:,} tokens"
        return f"{sentences}, {len(self.names)} relations, using {used}"

    def remarks(self, held: TreebankFile | None) -> list[str]:
        """What is to be said of training data."""
        return [self.summary()]

    def facts(self) -> dict[str, Any]:
        """How much there is."""
        return sentence_counts(self.corpus)

    def place(self, sentence: int) -> str:
        """File, sentence and line of a sentence, in words."""
        for one in self.files:
            if sentence < one.offsets.size - 1:
                return f"{one.path}, sentence {sentence + 1} (line {one.lines[one.offsets[sentence]]})"
            sentence -= one.offsets.size - 1
        raise IndexError(sentence)


@dataclass(frozen=True)
class TreebankFormat:
    """Treebanks: reads them, here or on a worker, and writes what was predicted."""

    layout: ParserColumns
    roots: str = "auto"
    punctuation: bool = True
    memory: int | None = None  # bytes, at most; None for as much as it takes

    def settled(self, paths: Sequence[str | os.PathLike[str]]) -> Self:
        """The same: what is left open depends on all files."""
        return self

    def agreed(self, known: Any) -> Self:
        """The format for dev data, and for files that workers read, with the columns that were left open."""
        return replace(self, layout=replace(self.layout, use=dict(known.use)), memory=None)

    def read(self, paths: Sequence[str | os.PathLike[str]]) -> Any:
        """The sentences of treebanks, and their trees; in parts, if memory does not hold them."""
        return InParts.of(self, paths, self.memory) or self.held(paths)

    def held(self, paths: Sequence[str | os.PathLike[str]]) -> TreebankFile:
        """The sentences of treebanks, and their trees."""
        clock = Clock()
        files = read_treebank(paths, self.layout)
        seconds = clock.working()
        return replace(self._part(files), seconds=seconds)

    def parts(self, paths: Sequence[str | os.PathLike[str]], room: int) -> Iterator[TreebankFile]:
        """The sentences of treebanks, and their trees, in parts of about so many bytes of text."""
        wanted, how = read_how(self.layout)
        files = (conll.chunks(path, wanted, **how, size=min(PIECE, room)) for path in paths)
        return map(self._part, gathered(files, room))

    def _part(self, files: Sequence[Sentences]) -> TreebankFile:
        return replace(treebank(files, self.layout), roots=self.roots, punctuation=self.punctuation)

    def scan(self, path: str) -> TreebankScan:
        """What is to be known of one file."""
        return self.scan_of(self.held([path]))

    def scan_of(self, data: TreebankFile) -> TreebankScan:
        """What is to be known of a part."""
        scan = data.scan()
        styles = ("one", "many") if self.roots == "auto" else (self.roots,)
        counts = {roots: scan.counts.get(roots) or data.counted(roots) for roots in styles}
        return replace(scan, counts=counts, use=data.use, corpus=None)

    def pieces(self, path: str | os.PathLike[str], *, size: int = PIECE) -> Iterator[Sentences]:
        """A file that need not have trees, piece by piece."""
        return tree_pieces(path, self.layout, list(dict(self.layout.use or {}).values()), needed=True, size=size)

    def inputs(self, piece: Sentences) -> Treebank:
        """The sentences of a piece."""
        check_ids(piece, 3)
        return Treebank(Corpus(cut_columns(piece, [WORD, "", "", "", *(self.layout.use or {})]), piece.offsets))

    def write(self, piece: Sentences, problem: Any, outputs: Any, sure: Any) -> bytes:
        """The piece with its trees replaced; all else stays as it is, byte for byte."""
        if piece.lines.size == 0:
            return piece.buffer.tobytes()
        return changed(piece, tree_changes(self.layout, outputs, problem.plain), {} if sure is None else {"head": sure})


def read_treebank(paths: Sequence[str | os.PathLike[str]], columns: ParserColumns) -> list[Sentences]:
    """Bytes to columns of strings: words, heads, relations, and all that a parser may look at."""
    wanted, how = read_how(columns)
    return [thinned(conll.read(path, wanted, **how), path) for path in paths]


def read_how(columns: ParserColumns) -> tuple[list[str], dict[str, Any]]:
    """The columns of a treebank that are read, and in what form they are."""
    usual = columns.use is None
    wanted = [columns.word, columns.head, columns.relation, "id"]
    wanted += USUAL if usual else (columns.use or {}).values()
    optional = ["id", *(USUAL if usual else ())]
    return wanted, {"format": columns.format, "header": columns.header, "optional": optional}


def read_treebanks(
    paths: Sequence[str], dev: str | None, columns: ParserColumns
) -> tuple[TreebankFile, TreebankFile | None, float]:
    """Training data, dev data if there are any, and the seconds that reading took."""
    form = TreebankFormat(columns)
    data = form.held(paths)
    held = None if dev is None else form.agreed(data).held([dev])
    return data, held, data.seconds + (0.0 if held is None else held.seconds)


def treebank(files: Sequence[Sentences], columns: ParserColumns) -> TreebankFile:
    """Files as a corpus and trees; what the columns left open is settled."""
    heads = []
    for one in files:
        if one.lines.size == 0:
            raise LolsError(f"{one.path}: there are no sentences; give a file with some")
        check_ids(one, 3)
        heads.append(read_heads(one, 1))
        require_trees(heads[-1], one)
    whole = joined(files)
    names = list(USUAL) if columns.use is None else list(columns.use)
    relations = cut_columns(whole, ["", "", "relation"])["relation"]
    made = cut_columns(whole, [WORD, "", "", "", *names])
    strings = relations.texts.strings()
    if set(strings) <= {NOTHING, ""}:
        strings = [UNLABELLED] * len(strings)
    for k, name in enumerate(strings):
        if wrong := wrong_relation(name):
            raise LolsError(f"{line_of(files, int(np.argmax(relations.numbers == k)))}: {wrong}")
    if columns.use is None:
        made = _filled(made)
        columns = replace(columns, use={name: name for name in made if name != WORD})
    corpus, numbers = Corpus(made, whole.offsets), relations.numbers
    return TreebankFile(corpus, np.concatenate(heads), numbers, strings, layout=columns, files=list(files))


def check_ids(sentences: Sentences, column: int) -> None:
    """Words must be numbered one after the other, or heads would be other words than they say."""
    if sentences.format not in ("conllu", "conllx"):
        return
    found = cut_columns(sentences, [*[""] * column, "id"])["id"]
    texts = found.texts.strings()  # CoNLL-X may have anything there
    given = np.array([int(t) if t.isdecimal() and len(t) < 10 else -1 for t in texts], np.int64)[found.numbers]
    first = np.repeat(sentences.offsets[:-1], np.diff(sentences.offsets))
    wrong = np.flatnonzero(given != np.arange(given.size) - first + 1)
    if wrong.size:
        at = int(wrong[0])
        raise LolsError(
            f"{sentences.path}, line {sentences.lines[at]}: word {at - first[at] + 1} of its sentence has the number "
            f"{short(texts[found.numbers[at]])}; number the words from 1"
        )


def cut_columns(sentences: Sentences, names: Sequence[str]) -> dict[str, Column]:
    """The first columns that were read, under these names; those without a name are left out."""
    return {
        name: intern(Texts(sentences.buffer, sentences.begin[k], sentences.end[k]))
        for k, name in enumerate(names)
        if name
    }


def _filled(made: dict[str, Column]) -> dict[str, Column]:
    """Without columns that are empty, or the same as another: tags are often there twice."""
    kept: dict[str, Column] = {}
    for name, column in sorted(made.items(), key=lambda item: (item[0] != WORD, item[0] == "upos")):
        texts = column.texts.strings()
        same = any(
            name == "upos" and np.array_equal(column.numbers, other.numbers) and texts == other.texts.strings()
            for other in kept.values()
        )
        if name == WORD or not (set(texts) <= {NOTHING, ""} or same):
            kept[name] = column
    return {name: kept[name] for name in made if name in kept}


def changed_pieces(
    path: str | os.PathLike[str],
    columns: ParserColumns,
    others: Sequence[str],
    predict: Callable[[Sentences], tuple[Changes, dict[str, np.ndarray]]],
    *,
    needed: bool,
    threads: Threads,
    size: int,
) -> Iterator[tuple[bytes, int]]:
    """The file with changed columns, piece by piece, and how many tokens each piece has.

    `predict` is given word, head, relation, id and the other columns, which may be missing unless they are `needed`. It
    returns what to change, and confidences to be added.
    """

    def work(piece: Sentences) -> tuple[bytes, int]:
        if piece.lines.size == 0:
            return piece.buffer.tobytes(), 0
        check_ids(piece, 3)
        return changed(piece, *predict(piece)), piece.lines.size

    return in_order(work, tree_pieces(path, columns, others, needed=needed, size=size), threads)


def tree_pieces(
    path: str | os.PathLike[str], columns: ParserColumns, others: Sequence[str], *, needed: bool, size: int
) -> Iterator[Sentences]:
    """A file piece by piece, with columns for trees; other columns may be missing unless they are `needed`."""
    wanted = [columns.word, columns.head, columns.relation, "id", *others]
    how: Any = {"format": columns.format, "header": columns.header, "optional": wanted[1:], "size": size}
    for piece in conll.chunks(path, wanted, **how):
        missing = next((name for name in others if needed and is_missing(piece, name)), None)
        if missing is not None:
            raise LolsError(
                f"{piece.path}: there is no column {missing!r}, which the parser uses; tag the file first, or use a "
                "pipeline, which tags words itself"
            )
        yield with_columns(piece, columns.head)


def changed(piece: Sentences, changes: Changes, sure: Mapping[str, np.ndarray]) -> bytes:
    """A piece with other columns, and with confidences if there are any."""
    data: bytes = conll.replace_columns(piece, changes)
    return conll.add_confidence(data, piece, sure) if sure else data


def is_missing(piece: Sentences, column: str) -> bool:
    """Whether words have none of a column that was read."""
    plain = piece.format not in ("conllu", "conllx")
    return plain and piece.lines.size > 0 and not piece.end[piece.columns.index(column)].any()


def with_columns(piece: Sentences, head: str) -> Sentences:
    """Words alone as CoNLL-U, so that there are columns for a tree; other files must have them."""
    if piece.width == 1:
        if piece.lines.size:
            return conll.as_conllu(piece)
        return piece._replace(buffer=piece.buffer[:0])  # CoNLL-U has its own blank lines
    if is_missing(piece, head):
        raise LolsError(
            f"{piece.path}, line {piece.lines[0]}: {piece.width} columns, and none of them is {head!r}; give CoNLL-U, "
            "or one word on each line and a blank line after each sentence (--format words)"
        )
    return piece


def tree_changes(columns: ParserColumns, trees: Trees, names: Sequence[str]) -> Changes:
    """What `conll.replace_columns` must change to write trees."""
    numbers = [str(n) for n in range(int(trees.heads.max(initial=-1)) + 2)]
    return {columns.head: (numbers, trees.heads + 1), columns.relation: (names, trees.relations)}


def check_sample(options: Mapping[str, Any]) -> None:
    """Raise an error if options of calibration have no effect."""
    if "relation" in options:
        raise ConfigurationError("--relation has no effect: confidence is in heads, not in relations; leave it out")
